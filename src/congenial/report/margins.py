"""Margins of error of a release, worked out from its plan and its released nodes alone."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.conditioning.conditioned import Conditioned
from congenial.inference.intervals import error_margins
from congenial.model import Model
from congenial.randomness import seeded
from congenial.requirements import determined
from congenial.sections import GAUSSIAN

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# A margin holds with this probability, for each count by itself.
SHARE = 0.9
# Stated for a node whose margin is not known.
UNKNOWN = -1
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


def margins(model: Model) -> Margins:
    """Work out the margin of error of each released count.

    Parameters
    ----------
    model : Model

    Notes
    -----
    Under equalities alone the noise given the mandates has the same law for every dataset, which
    gives exact intervals.
    """
    law = model.engine
    if isinstance(law, Conditioned) and law.data_free:
        return Margins("exact", error_margins(law, 1.0 - SHARE))
    found = np.full(len(model.tree), UNKNOWN, dtype=np.int64)
    scales = model.mechanism.scales
    for scale in np.unique(scales[np.isfinite(scales)]):
        found[scales == scale] = noise_margin(float(scale), model.mechanism.noise.name)
    found[determined(model.need)] = 0
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
