"""Margins of error of a release, worked out from its plan and its released nodes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.conditioning.conditioned import Conditioned
from congenial.model import Model
from congenial.randomness import seeded
from congenial.requirements import determined
from congenial.sections import GAUSSIAN
from congenial.tree import Tree

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# A margin holds with this probability, for each count by itself.
SHARE = 0.9
# Stated for a node whose margin is not known.
UNKNOWN = -1
# Nodes of different position whose laws are worked out; beyond, coarser levels alone have margins.
MOST_LAWS = 2_000
# Draws behind the expected errors, and the largest number of values drawn for them.
DRAWS = 200
VALUES = 2_000_000
_SEED = 20_230_301
_WIDEST = 10_000.0


@dataclass(frozen=True, eq=False)
class Margins:
    """How far the released counts may be from the true ones.

    Attributes
    ----------
    kind : {"exact", "noise"}
        "exact" where a margin is that of the released count itself; "noise" where it is that of the
        noise before the mandates, because the law of the released count depends on the true ones.
    margin : ndarray of int64, shape (n,)
        In counts; 0 where a count is published exactly, `UNKNOWN` where there is none.
    """

    kind: Literal["exact", "noise"]
    margin: IntArray


def margins(model: Model, *, most_laws: int = MOST_LAWS) -> Margins:
    """Work out the margin of error of each released count.

    Parameters
    ----------
    model : Model
    most_laws : int
        How many different laws are worked out, level by level from the root.

    Notes
    -----
    Under equalities alone the noise given the mandates has the same law for every dataset, which
    gives exact intervals. Nodes that a relabelling of the tree exchanges have the same law, so one
    is worked out for each position.
    """
    tree = model.tree
    settled = determined(model.need)
    law = model.engine
    if isinstance(law, Conditioned) and law.data_free:
        return Margins("exact", _intervals(law, tree, _positions(model, settled), most_laws))
    found = np.full(len(tree), UNKNOWN, dtype=np.int64)
    scales = model.mechanism.scales
    for scale in np.unique(scales[np.isfinite(scales)]):
        found[scales == scale] = noise_margin(float(scale), model.mechanism.noise.name)
    found[settled] = 0
    return Margins("noise", found)


def noise_margin(scale: float, noise: str, share: float = SHARE) -> int:
    """Least m such that the noise is at most m in absolute value with probability `share`.

    Parameters
    ----------
    scale : float
        Positive; in counts. Sigma for discrete Gaussian noise.
    noise : {"discrete-laplace", "discrete-gaussian"}
    share : float
        Between 0 and 1.

    Notes
    -----
    With the pmf ``(1 - a) / (1 + a) * a ** abs(u)`` the probability beyond m is
    ``2 a ** (m + 1) / (1 + a)``. A discrete Gaussian of a sigma above 10,000 is told by the normal
    quantile, rounded up.
    """
    if noise != GAUSSIAN:
        a = math.exp(-1.0 / scale)
        tail = 0.5 * (1.0 - share) * (1.0 + a)
        return max(0, math.ceil(-math.log(tail) * scale - 1.0 - 1e-9))
    if scale > _WIDEST:
        return math.ceil(NormalDist().inv_cdf(0.5 + 0.5 * share) * scale)
    size = np.arange(math.ceil(10.0 * scale) + 2, dtype=np.float64)
    with np.errstate(under="ignore"):
        weights = np.exp(-0.5 * (size / scale) ** 2)
    weights[1:] *= 2.0
    return int(np.searchsorted(np.cumsum(weights) / weights.sum(), share))


def expected_errors(model: Model, value: IntArray) -> FloatArray:
    """Mean absolute error of each count, were the true counts those that were released.

    Parameters
    ----------
    model : Model
    value : ndarray of int64, shape (n,)
        The released counts; nothing else is known here, so this costs no privacy.

    Returns
    -------
    ndarray of float64, shape (n,)
        A mean over a fixed number of seeded draws.
    """
    draws = draws_for(len(model.tree))
    drawn = model.engine.sample(value, size=draws, rng=seeded(_SEED))
    error: FloatArray = np.abs(drawn - value).mean(axis=0)
    return error


def draws_for(nodes: int) -> int:
    """How many simulated releases the expected errors of so many counts rest on."""
    return max(1, min(DRAWS, VALUES // nodes))


def _intervals(law: Conditioned, tree: Tree, position: IntArray, most_laws: int) -> IntArray:
    found = np.full(len(tree), UNKNOWN, dtype=np.int64)
    worked = 0
    for depth in range(tree.depth):
        here = np.flatnonzero(tree.level == depth)
        kinds, first, which = np.unique(position[here], return_index=True, return_inverse=True)
        worked += kinds.size
        if worked > most_laws:
            break
        reach = [law.interval(int(here[at]), 1.0 - SHARE)[1] for at in first]
        found[here] = np.array(reach, dtype=np.int64)[which]
    return found


def _positions(model: Model, settled: npt.NDArray[np.bool_]) -> IntArray:
    """Number nodes so that two have the same number if a relabelling of the tree exchanges them.

    Two nodes are alike if what is below them is, and their parents are alike; what is above a count
    that is fixed does not matter below it.
    """
    tree, scales = model.tree, model.mechanism.scales
    order = np.argsort(tree.level, kind="stable")
    below: list[list[int]] = [[] for _ in range(len(tree))]
    shape = np.zeros(len(tree), dtype=np.int64)
    shapes: dict[tuple[object, ...], int] = {}
    for v in map(int, order[::-1]):
        key = (float(scales[v]), bool(settled[v]), tuple(sorted(below[v])))
        shape[v] = shapes.setdefault(key, len(shapes))
        if tree.parents[v] >= 0:
            below[int(tree.parents[v])].append(int(shape[v]))
    place = np.zeros(len(tree), dtype=np.int64)
    places: dict[tuple[int, int], int] = {}
    for v in map(int, order):
        parent = int(tree.parents[v])
        above = -1 if parent < 0 or settled[v] else int(place[parent])
        place[v] = places.setdefault((above, int(shape[v])), len(places))
    return place
