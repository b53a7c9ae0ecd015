"""Simulated releases of the same counts, and the distribution of their errors."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import UnsupportedError
from congenial.plan.plan import Plan
from congenial.preview.comparison.expected import work_of_fit
from congenial.preview.comparison.methods import build
from congenial.preview.comparison.outcome import Contender, Result, Seconds
from congenial.preview.comparison.tally import Tally
from congenial.randomness import Randomness
from congenial.types import IntArray

Drawn = Callable[[int], None]

# Most released values in memory at once, and fewest batches of releases.
VALUES, STEPS = 8_000_000, 10
# Most products of a pass over the tree, by the posterior, for all replicates: some minutes.
MOST_FITTED_WORK = 2e10
# Most nodes for which a separate draw loads the kernels first, to exclude loading from times.
WARMED = 20_000


def simulate(
    plan: Plan,
    tree: Tree,
    contender: Contender,
    counts: IntArray,
    *,
    replicates: int,
    source: Randomness,
    delta: float | None = None,
    drawn: Drawn = lambda _: None,
) -> Result:
    """Draw releases of one contender and sum up their errors."""
    model, found, engine = build(plan, tree, contender, delta=delta)
    products = work_of_fit(model) * replicates
    if products > MOST_FITTED_WORK:
        raise UnsupportedError(
            f"{replicates:,} tables of least expected error, of {len(tree):,} counts with this "
            f"noise, take about {products:.2g} products in each pass, and at most "
            f"{MOST_FITTED_WORK:.2g} are taken; simulate fewer releases, or give a larger epsilon."
        )
    if len(tree) <= WARMED:
        engine.sample(counts, rng=source)
    began = time.perf_counter()
    build(plan, tree, contender, delta=delta)[2].sample(counts, rng=source)
    first = time.perf_counter() - began
    tally = Tally(model, counts)
    spent, left = 0.0, replicates
    chunk = min(replicates, max(1, VALUES // len(tree)))
    if contender.method != "conditioning":  # whose draws of one call share their tables
        chunk = min(chunk, -(-replicates // STEPS))
    while left:
        size = min(chunk, left)
        began = time.perf_counter()
        released = engine.sample(counts, size=size, rng=source)
        spent += time.perf_counter() - began
        tally.add(np.asarray(released))
        left -= size
        drawn(replicates - left)
    return Result(
        contender,
        found.epsilon,
        found.delta,
        found.sentence,
        tally.satisfied,
        tally.levels(),
        tally.sizes(),
        Seconds(first, spent / replicates),
    )
