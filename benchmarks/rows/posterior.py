"""Laws of all counts under a prior of splits fitted to noisy values, beside projections.

A county's census blocks and the taxi trips by zone, with discrete Laplace noise at every node, the
root exact and no count negative. "Ours" fits the prior, computes the law of every count, and finds
the table of least expected absolute error. Projections of the same noisy values are integers, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import congenial as cg
from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import ratio, repeated, rounds
from congenial.inference.best_table import BestTable, best_table
from congenial.invariants.written import Invariant
from congenial.types import IntArray
from papers.studies.sources import blocks

SCALE = 5.0
COUNTY = "53049"
LAWS = "prior fitted, laws of all counts"
# A projection is timed as the mean of so many calls.
_CALLS = 20


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case a tree."""
    measures = (
        Measure(LAWS, "ms/node"),
        *(Measure(over(peer), "×") for peer in ("L2", "L1", "TopDown")),
    )
    names = ("270 nodes",) if quick else ("270 nodes", "blocks of a county")
    return tuple(Case("posterior", name, measures, 60.0, partial(_run, name)) for name in names)


def over(peer: str) -> str:
    """Return the name of the measure beside a projection."""
    return f"prior, laws and table, over the projection by {peer}"


def noisy(name: str) -> tuple[BestTable, Invariant, IntArray]:
    """Return the mechanism of a case, its invariant and noisy values."""
    tree, x = blocks(COUNTY) if name == "blocks of a county" else worlds.taxi()
    invariant = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    mechanism = cg.Additive(cg.DiscreteLaplace(SCALE), tree)
    best = best_table(mechanism, invariant, "l1")
    return best, invariant, np.asarray(best.measure(x, rng=cg.seeded(worlds.SEED)))


def _run(name: str) -> Iterator[Seen]:
    best, invariant, y = noisy(name)
    source = cg.seeded(worlds.SEED)
    peers = {
        "L2": cg.image(best.mechanism, invariant, "l2", integer=True),
        "L1": cg.image(best.mechanism, invariant, "l1", integer=True),
        "TopDown": cg.imaging.topdown_image(best.mechanism, invariant),
    }
    steps: dict[str, Callable[[], object]] = {
        "laws": lambda: best.law(y).mean(),
        "ours": lambda: best.apply(y, source),
    }
    for peer, engine in peers.items():
        steps[peer] = repeated(partial(engine.apply, y, source), _CALLS)
    for step in steps.values():
        step()  # loads the kernels
    times = rounds(steps, repeats=5, budget=30.0)
    taken = 1e3 * times["laws"] / y.size
    yield Seen(LAWS, float(np.median(taken)), float(taken.min()), float(taken.max()))
    for peer in peers:
        yield ratio(over(peer), times["ours"], times[peer] / _CALLS)
