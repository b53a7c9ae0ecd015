"""Expected errors of a release, worked out from its plan and its released nodes alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from congenial.model import Model
from congenial.randomness import seeded

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

# Draws behind the expected errors, and the largest number of values drawn for them.
DRAWS = 200
VALUES = 2_000_000
_SEED = 20_230_301


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
