"""Our side: conditioning from scratch, and further draws, timed beside unconstrained noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, cast

import numpy as np
import numpy.typing as npt

import congenial as cg
from benchmarks import worlds
from benchmarks.peers import geometric
from benchmarks.record import Measure, Seen
from benchmarks.timing import ratio, rounds
from congenial import sum_network
from congenial.invariants.written import Invariant
from congenial.sum_network import SharedUnary
from congenial.types import IntArray, Values

FIRST = "first draw, upward pass included"
FURTHER = "each further draw"
UPWARD = "upward pass alone"
UNIT = "× noise"
# Further draws are told from the first by a call that makes as many more.
MORE = 10


class Sampler(Protocol):
    """What draws releases."""

    def sample(self, x: npt.ArrayLike, size: int | None = None) -> IntArray:
        """Draw one release, or `size` of them."""


def measures(first: float, further: float | None = None) -> tuple[Measure, ...]:
    """Return the three measures of a draw, with their targets as multiples of plain noise."""
    return Measure(FIRST, UNIT, first), Measure(UPWARD, UNIT), Measure(FURTHER, UNIT, further)


def tree_invariant(tree: cg.Tree, *, pinned: bool, bounded: bool) -> Invariant:
    """Return consistency, with the root pinned and every count nonnegative where asked."""
    invariant = cg.consistent(tree)
    if pinned:
        invariant &= cg.exactly([0])
    return invariant & cg.nonnegative() if bounded else invariant


def condition(mechanism: cg.Additive, invariant: Invariant) -> Sampler:
    """Condition by exact draws, and by nothing else."""
    return cast("Sampler", cg.condition(mechanism, invariant, sampler="exact"))


def first_draw(mechanism: cg.Additive, invariant: Invariant, x: IntArray) -> IntArray:
    """Condition anew and draw once: upward pass and downward pass."""
    return condition(mechanism, invariant).sample(x)


def warm(*, bounded: bool) -> None:
    """Load the compiled kernels, so that no later timing has it in it."""
    small = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    # large enough for tables of families
    large = worlds.grown((4, 500))
    for tree, scale in ((small, 2.0), (large, 50.0)):
        x = worlds.poisson(tree)
        mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
        conditioned = condition(mechanism, tree_invariant(tree, pinned=True, bounded=bounded))
        conditioned.sample(x)
        conditioned.sample(x, 3)


def beside_noise(
    tree: cg.Tree,
    x: IntArray,
    scale: float,
    *,
    bounded: bool,
    repeats: int = 7,
    budget: float = 30.0,
) -> Iterator[Seen]:
    """Time draws under a pinned root beside plain noise for as many leaves.

    Words come from the operating system, as in a release. Further draws of a conditioned
    mechanism whose law depends on the data are measured within one call, which shares the
    upward pass.
    """
    warm(bounded=bounded)
    warm(bounded=not bounded)
    leaves = int(tree.leaves.size)
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    invariant = tree_invariant(tree, pinned=True, bounded=bounded)
    kept: list[Sampler] = []

    def first() -> None:
        kept[:] = [condition(mechanism, invariant)]
        kept[0].sample(x)

    def again() -> None:
        kept[0].sample(x)

    def several() -> None:
        condition(mechanism, invariant).sample(x, 1 + MORE)

    steps = {"first": first, "noise": geometric.noise(leaves, scale)}
    steps["more"] = several if bounded else again
    times = rounds(steps, repeats=repeats, budget=budget)
    further = np.maximum(times["more"] - times["first"], 0.0) / MORE if bounded else times["more"]
    yield ratio(FIRST, times["first"], times["noise"])
    yield ratio(UPWARD, times["first"] - further, times["noise"])
    yield ratio(FURTHER, further, times["noise"])


def bounded_noise(tree: cg.Tree, counts: Values, scale: float, *, exact: bool) -> SharedUnary:
    """Return the weights of noise on counts of at least 0; if `exact`, the root has none."""
    n, fixed = len(tree), np.zeros(len(tree), dtype=np.bool_)
    fixed[0] = exact
    bounds = np.broadcast_to(0.0, n), np.broadcast_to(np.inf, n)
    scales, follow = np.broadcast_to(scale, n), ~tree.is_leaf
    return sum_network.share_noise(
        1, scales, bounds, fixed, n, counts=counts.astype(np.int64), dropped=follow
    )
