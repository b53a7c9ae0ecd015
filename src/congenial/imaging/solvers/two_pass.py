"""Points of a forest of least summed cost, with any pins and bounds: L2, L1 and roundings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from congenial.errors import UnsupportedError
from congenial.imaging.solvers.problem import NO_WORDS, TOLERANCE, Task, check_optimal, residual
from congenial.kernels.projection import two_pass
from congenial.kernels.projection.check import refine
from congenial.kernels.projection.forest import NO_CURVES, Costs, Curves
from congenial.types import FloatArray, Words

# Most points of the curves, 32 bytes each; a tree needs about its nodes times its depth.
MOST_POINTS = 2**27
# Size of a bound, relative to the largest number, beyond which it is first left out.
FAR = 1e3
# Grid of the slopes in L1, so that their sums are exact and equal costs tie exactly.
GRID = 2.0**-40


def solve_l2(task: Task) -> FloatArray:
    """Minimise ``sum(weight * (z - y)**2)`` over z that add up and stay within [lo, hi].

    Notes
    -----
    One pass over piecewise linear derivatives finds exactly which bounds bind, in O(n depth log n)
    steps. A two-pass solve with these bounds as equalities (Hay, Rastogi, Miklau and Suciu 2010)
    then removes its rounding errors. If entries without a measurement leave a choice, they move by
    equal amounts.
    """
    costs, z = task.squares, task.y
    for candidate in (near(task), task):
        z = _run(candidate, costs, task.prefer, NO_WORDS, quadratic=True)
        refine(task.links.forest, task.y, task.weight, task.lo, task.hi, z)
        if residual(task, z, costs, quadratic=True) <= TOLERANCE:
            return z
    check_optimal(task, z, costs, quadratic=True)
    return z


def near(task: Task) -> Task:
    """Return the task without the bounds that are far from every value.

    They seldom bind, and their large prices would cost the others digits.
    """
    far = FAR * task.size
    lo, hi = task.lo, task.hi
    return replace(task, lo=np.where(lo < -far, -np.inf, lo), hi=np.where(hi > far, np.inf, hi))


def solve_l1(task: Task, words: Words = NO_WORDS) -> FloatArray:
    """Minimise ``sum(weight * abs(z - y))`` over z that add up and stay within [lo, hi].

    Notes
    -----
    L1 images are not unique. At each parent this takes the closest point whose children all move by
    the same amount: two bins share a surplus equally. A slope-trick dynamic programme,
    O(n depth log n).
    """
    weight = np.maximum(np.rint(task.weight / GRID), task.weight > 0) * GRID
    if words.size:
        b0, b1 = np.floor(task.y), np.ceil(task.y)
        mid = np.rint(weight * (1.0 - 2.0 * (task.y - b0)) / GRID) * GRID
    else:
        b0 = b1 = task.y
        mid = np.zeros_like(b0)
    return least_cost(task, Costs(b0, b1, mid, weight), task.prefer, words)


def tie_grid(z: FloatArray) -> float:
    """Differences below this power of two count as ties: 2^-20, or more for large numbers."""
    exponent = int(np.ceil(np.log2(max(1.0, float(np.abs(z).max())))))
    return float(2.0 ** max(-20, exponent - 46))


def round_whole(task: Task, z: FloatArray, words: Words) -> FloatArray:
    """Round a point of the forest to the integers with the least summed change.

    Notes
    -----
    Minimises ``sum(abs(rounded - z))`` over all nodes, unweighted, among integers that add up and
    keep bounds and pins. Sums on a forest are totally unimodular, so a dynamic programme with costs
    linear between integers is exact. Roundings whose changes differ by less than `tie_grid` are
    tied; the children that then get a unit are chosen uniformly at random, never by position.
    """
    grid = tie_grid(z)
    y = np.rint(z / grid) * grid
    return least_cost(task, changes(y, np.ones_like(y)), y, words)


def changes(y: FloatArray, weight: FloatArray) -> Costs:
    """Return the costs ``weight * abs(z - y)`` of integers z, linear between integers."""
    b0 = np.floor(y)
    part = y - b0
    return Costs(b0, np.where(part > 0, b0 + 1.0, b0), (1.0 - 2.0 * part) * weight, weight)


def least_cost(task: Task, costs: Costs, prefer: FloatArray, words: Words) -> FloatArray:
    """The point of least cost, linear in pieces, checked to be optimal."""
    z = _run(task, costs, prefer, words, quadratic=False)
    check_optimal(task, z, costs, quadratic=False)
    return z


def _run(
    task: Task, costs: Costs, prefer: FloatArray, words: Words, *, quadratic: bool
) -> FloatArray:
    return least_point(task, rise(task, costs, quadratic=quadratic), prefer, words)


def rise(
    task: Task, costs: Costs, given: Curves = NO_CURVES, *, quadratic: bool
) -> tuple[Curves, Curves]:
    """Return the curves of all nodes and those of their children; see `two_pass.rise`."""
    status, curves, sums = two_pass.rise(
        task.links.forest, quadratic, costs, task.lo, task.hi, given, MOST_POINTS
    )
    if status == two_pass.TOO_LARGE:
        raise UnsupportedError(
            "the projection onto bounds needs more memory than the limit, "
            f"{MOST_POINTS * 32 / 2**30:.1f} GiB; use fewer levels, or bound the leaves only."
        )
    return curves, sums


def least_point(
    task: Task, curves: tuple[Curves, Curves], prefer: FloatArray, words: Words
) -> FloatArray:
    """Return the point of least cost, given the curves of `rise`."""
    z = np.zeros_like(task.y)
    two_pass.fall(task.links.forest, *curves, prefer, words, z)
    return z
