"""The nearest integers that still add up."""

from __future__ import annotations

import numpy as np

from congenial.imaging.solvers.problem import Task, check_optimal
from congenial.imaging.solvers.tree_l2 import run
from congenial.kernels.projection.forest import Costs
from congenial.types import FloatArray, Words


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
    b0 = np.floor(z + 0.5 * grid)
    share = np.rint((z - b0) / grid) * grid
    b1 = np.where(share > 0, b0 + 1.0, b0)
    costs = Costs(b0, b1, 1.0 - 2.0 * share, np.ones_like(z))
    whole = run(task, costs, b0 + share, words, quadratic=False)
    check_optimal(task, whole, costs, quadratic=False)
    return whole
