"""Whether a release follows from noisy measurements, for any breaking of ties."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from congenial.imaging.solvers.cell_descent import CellDescent
from congenial.imaging.solvers.descent import Descent
from congenial.imaging.solvers.two_pass import tie_grid
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray


def follows(
    engine: Imaged | TopDown, noisy: npt.ArrayLike, released: IntArray, rng: Randomness
) -> bool:
    """Decide whether a release of integers could have been made of measurements.

    Returns True if it is as close to the measurements as the engine's own result. Two results
    can differ in random ties, which have equal cost. Tables that are rounded area by area have
    results of unequal cost; each area's cells are compared instead.
    """
    if isinstance(engine, TopDown):
        values = np.asarray(noisy, dtype=np.float64)
        if _follows_topdown(engine, values, released, rng):
            return True
        # the descent may have found no table, depending on how ties were broken
        crossing = isinstance(engine.descent, CellDescent)
        return crossing and follows(engine.projection, noisy, released, rng)
    weight = engine.projector.weight
    if engine.norm == "l1":
        made = engine.apply(noisy, rng)
        given = np.where(weight > 0, np.asarray(noisy, dtype=np.float64), released)
        return _as_close(weight / weight.max(initial=1e-300), given, made, released)
    nearest, rounding = engine.projector.rounding(noisy)
    if rounding is not None:
        return rounding.follows(nearest, released)
    made = engine.apply(noisy, rng)
    return _as_close(np.ones(weight.size), nearest, made, released)


def _follows_topdown(
    engine: TopDown, noisy: FloatArray, released: IntArray, rng: Randomness
) -> bool:
    """Compare level by level, given the released levels above."""
    values, resolved = engine.summed(noisy), engine.resolved
    if isinstance(engine.descent, CellDescent):
        return engine.descent.follows(values, released)
    tree = engine.descent.tree
    for depth in range(tree.depth):
        above, here = tree.level < depth, tree.level == depth
        given = np.where(above, released, values)
        known = replace(resolved, pinned=resolved.pinned | above)
        nearest, made = (
            Descent(tree, known, integer=whole).apply(given, rng)[here] for whole in (False, True)
        )
        if not _as_close(np.ones(nearest.size), nearest, made, released[here]):
            return False
    return True


def _as_close(
    weight: FloatArray, target: FloatArray, one: npt.ArrayLike, other: npt.ArrayLike
) -> bool:
    cost = [float((weight * np.abs(np.asarray(z) - target)).sum()) for z in (one, other)]
    return equal_costs(cost[0], cost[1], target.size, float(np.abs(target).max(initial=0.0)))


def equal_costs(one: float, other: float, counts: int, largest: float) -> bool:
    """Whether two results, whose distances from the closest point are given, differ by ties only.

    `largest` is the largest number of the closest point. Differences below `tie_grid` are ties.
    """
    return abs(one - other) <= 2.0 * counts * tie_grid(np.array([largest]))
