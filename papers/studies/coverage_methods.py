"""The methods that the study of coverage compares: their estimates and their intervals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from congenial.conditioning.choice import condition
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.domain.tree import Tree
from congenial.errors import NumericalError, UnsupportedError
from congenial.imaging.closest import project
from congenial.imaging.top_down import topdown
from congenial.inference.error_law import error_margins
from congenial.inference.inversion import inverted_intervals
from congenial.inference.posteriors import posterior
from congenial.invariants.written import consistent, nonnegative
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray

# What a method starts from.
Given = Literal["measurements", "adds up", "not negative"]
# Estimates, and the lower and upper ends of intervals, of all nodes.
Answer = tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]

ALPHA = 0.1
INVERSION = "conditioning, ≥ 0, inversion"
# The normal law's 95% point.
_NORMAL = 1.6448536269514722
# Simulated noise that the spread of L2 images is taken from.
_SIMULATED = 1_000


@dataclass(frozen=True, eq=False)
class Method:
    """How counts are estimated.

    Attributes
    ----------
    answer : callable
        Estimates and intervals from what it is given.
    given : str
        Noisy measurements, or releases that were conditioned.
    """

    answer: Callable[[IntArray, Randomness], Answer]
    given: Given = "measurements"


@dataclass(frozen=True, eq=False)
class Methods:
    """Mechanisms that draw what is given to methods, and the methods by their names.

    Attributes
    ----------
    draws : dict
        What draws measurements or releases, by name.
    by_name : dict of Method
    """

    draws: dict[Given, Additive | Conditioned]
    by_name: dict[str, Method]


def methods(tree: Tree, scale: float, source: Randomness, *, inverted: bool) -> Methods:
    """Return the methods, and what draws that which they are given.

    Intervals by inversion are among them if `inverted`.
    """
    noisy = Additive(DiscreteLaplace(scale), tree)
    whole, bounded = consistent(tree), consistent(tree) & nonnegative()
    free = cast(Conditioned, condition(noisy, whole))
    kept = cast(Conditioned, condition(noisy, bounded))
    margin = error_margins(free, ALPHA)
    # a draw of noise: half a unit more than the quantile makes it discrete
    a = np.exp(-1.0 / scale)
    raw = int(np.ceil(np.log(ALPHA * (1.0 + a) / 2.0) / np.log(a))) - 1
    spread = _spread(noisy, tree, source)

    def within(y: IntArray, _: Randomness, *, margin: npt.NDArray[np.int64] | int) -> Answer:
        return y, y - margin, y + margin

    def imaged(y: IntArray, _: Randomness, *, least: bool) -> Answer:
        z = project(y, bounded if least else whole)
        return z, z - _NORMAL * spread, z + _NORMAL * spread

    def down(y: IntArray, source: Randomness) -> Answer:
        z = topdown(y, tree, bounded, source)
        return z, z - raw, z + raw

    def after(y: IntArray, _: Randomness, *, prior: Literal["flat", "negative-binomial"]) -> Answer:
        found = posterior(y, noisy, bounded, prior).summary(ALPHA)
        return found.mean, found.lower, found.upper

    def proved(z: IntArray, _: Randomness) -> Answer:
        try:
            return z, *inverted_intervals(kept, z, ALPHA)
        except (NumericalError, UnsupportedError):
            # what is known of a count without any interval
            return z, np.zeros(z.size), np.full(z.size, np.inf)

    last = {INVERSION: Method(proved, "not negative")} if inverted else {}
    fitted = partial(after, prior="negative-binomial")
    return Methods(
        {"measurements": noisy, "adds up": free, "not negative": kept},
        {
            "conditioning, adds up": Method(partial(within, margin=margin), "adds up"),
            "conditioning, ≥ 0 too": Method(partial(within, margin=margin), "not negative"),
            "measurements": Method(partial(within, margin=raw)),
            "L2, normal": Method(partial(imaged, least=False)),
            "L2 ≥ 0, normal": Method(partial(imaged, least=True)),
            "TopDown, raw noise": Method(down),
            "posterior, flat": Method(partial(after, prior="flat")),
            "posterior, fitted": Method(fitted),
            # exact for the prior times the normaliser of conditioning (congenial.releases.reading)
            "conditioning, ≥ 0, posterior": Method(fitted, "not negative"),
            **last,
        },
    )


def _spread(noisy: Additive, tree: Tree, source: Randomness) -> FloatArray:
    """Standard deviation of the L2 image of every node, whatever the counts."""
    total = np.zeros(len(tree))
    nothing = np.zeros(len(tree), dtype=np.int64)
    for _ in range(_SIMULATED):
        z = project(noisy.sample(nothing, rng=source), consistent(tree))
        total += np.asarray(z, dtype=np.float64) ** 2
    return np.asarray(np.sqrt(total / _SIMULATED))
