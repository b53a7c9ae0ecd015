"""The closest point of a forest in weighted L2, with any pins and bounds (Two Views, eq. 5)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from congenial.errors import UnsupportedError
from congenial.imaging.solvers.problem import NO_WORDS, TOLERANCE, Task, check_optimal, residual
from congenial.kernels.projection import two_pass as project_tree
from congenial.kernels.projection.check import refine
from congenial.kernels.projection.forest import Costs
from congenial.types import FloatArray, Words

# Most points of the curves, 32 bytes each; a tree needs about its nodes times its depth.
MOST_POINTS = 2**27
FAR = 1e3


def solve_l2(task: Task) -> FloatArray:
    """Minimise ``sum(weight * (z - y)**2)`` over z that add up and stay within [lo, hi].

    Notes
    -----
    One pass over piecewise linear derivatives finds exactly which bounds bind, in O(n depth log n)
    steps. A two-pass solve with these bounds as equalities (Hay, Rastogi, Miklau and Suciu 2010)
    then removes its rounding errors. If entries without a measurement leave a choice, they move by
    equal amounts.
    """
    zeros = np.zeros_like(task.y)
    costs = Costs(task.y, task.y, zeros, task.weight)
    # bounds far from every value seldom bind, and their large prices would cost the others digits
    far = FAR * task.size
    near = replace(
        task,
        lo=np.where(task.lo < -far, -np.inf, task.lo),
        hi=np.where(task.hi > far, np.inf, task.hi),
    )
    links = task.links
    z = task.y
    for candidate in (near, task):
        z = run(candidate, costs, task.prefer, NO_WORDS, quadratic=True)
        refine(links.forest, task.y, task.weight, task.lo, task.hi, z)
        if residual(task, z, costs, quadratic=True) <= TOLERANCE:
            return z
    check_optimal(task, z, costs, quadratic=True)
    return z


def run(
    task: Task, costs: Costs, prefer: FloatArray, words: Words, *, quadratic: bool
) -> FloatArray:
    """Run the tree kernel."""
    links = task.links
    z = np.zeros_like(task.y)
    status = project_tree.solve(
        links.forest, quadratic, costs, task.lo, task.hi, prefer, words, MOST_POINTS, z
    )
    if status == project_tree.TOO_LARGE:
        raise UnsupportedError(
            f"a tree of {z.size} nodes and {links.tree.depth} levels needs too much memory to "
            "project with bounds; use fewer levels, or bound the leaves only."
        )
    return z
