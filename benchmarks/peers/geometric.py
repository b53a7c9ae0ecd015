"""Unconstrained noise: the difference of two geometric variables a leaf, drawn by numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt


def noise(leaves: int, scale: float) -> Callable[[], npt.NDArray[np.int64]]:
    """Return a function that draws discrete Laplace noise for as many leaves.

    Parameters
    ----------
    leaves : int
    scale : float
        The pmf falls by exp(-1 / scale) a step.
    """
    rng = np.random.default_rng(7)
    success = -np.expm1(-1.0 / scale)

    def draw() -> npt.NDArray[np.int64]:
        return rng.geometric(success, leaves) - rng.geometric(success, leaves)

    return draw
