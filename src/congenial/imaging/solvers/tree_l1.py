"""The closest point of a forest in weighted L1, real or integer."""

from __future__ import annotations

import numpy as np

from congenial.imaging.solvers.problem import NO_WORDS, Task, check_optimal
from congenial.imaging.solvers.tree_l2 import run
from congenial.kernels.projection.forest import Costs
from congenial.types import FloatArray, Words

# Slopes are multiples of this, so that their sums are exact and equal costs tie exactly.
GRID = 2.0**-40


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
    costs = Costs(b0, b1, mid, weight)
    z = run(task, costs, task.prefer, words, quadratic=False)
    check_optimal(task, z, costs, quadratic=False)
    return z
