"""How rarely a draw leaves doubles, and how long it takes then.

Draws from all merges choose by integers, and are accepted at the end (`sum_network.exact`). A
choice beyond a window, or an acceptance that doubles leave open, takes decimals. The first measure
is about the probability that a draw has a value beyond a window, as the tables give it. The second
bounds the probability that doubles leave the acceptance open. The third is the time of a draw whose
acceptance is decided in decimals on purpose.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from unittest import mock

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from congenial import sum_network
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.sum_network import exact
from congenial.sum_network.draws import Rare
from congenial.sum_network.exact.exact_draws import Acceptance, lacking_of_weights
from congenial.types import BoolArray, FloatArray, IntArray

FANS = (50, 40, 25, 20)
QUICK_FANS = (3, 2, 2, 2)
BEYOND = "probability of a value beyond a window, about"
OPEN = "probability that doubles leave the acceptance open, at most"
FORCED = "a draw whose acceptance is decided in decimals"
# Most seconds of the last.
LONGEST = 60.0


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case for every kind of bounds and scale."""
    return tuple(
        Case(
            "rare",
            f"{'every count ≥ 0' if bounded else 'equalities only'}, scale {scale:g}",
            (Measure(BEYOND, ""), Measure(OPEN, ""), Measure(FORCED, "s", LONGEST)),
            120.0,
            partial(_run, QUICK_FANS if quick else FANS, scale, bounded),
        )
        for bounded, scale in ((False, 2.0), (False, 10.0), (True, 0.5), (True, 2.0))
    )


def _run(fans: tuple[int, ...], scale: float, bounded: bool) -> Iterator[Seen]:
    tree = worlds.grown(fans)
    n, fixed = len(tree), tree.parents < 0
    least = np.where(tree.is_leaf, 0.0, -np.inf) if bounded else np.full(1, -np.inf)
    counts = worlds.poisson(tree) if bounded else None
    ends = least, np.full(1, np.inf)
    weights = sum_network.share_noise(
        laws.LAPLACE, np.full(1, scale), ends, fixed, n, counts=counts
    )
    tables = exact.fill_envelopes(sum_network.compile(sum_network.of_tree(tree), weights))
    yield Seen(BEYOND, tables.rare)
    doubts = list[float]()
    accepted = Acceptance.accepted

    def doubted(
        self: Acceptance, values: IntArray, doubt: FloatArray, rare: Rare, rng: Randomness
    ) -> BoolArray:
        doubts.append(2.0 * (float(doubt.max()) + lacking_of_weights(tables)))
        return accepted(self, values, np.ones_like(doubt), rare, rng)

    with mock.patch.object(Acceptance, "accepted", doubted):
        began = time.process_time()
        exact.sample(tables, 1, cg.secure())
        took = time.process_time() - began
    yield Seen(OPEN, doubts[0])
    yield Seen(FORCED, took)
