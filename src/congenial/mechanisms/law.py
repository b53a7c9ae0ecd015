"""What every noise law offers; each law is one file beside this one."""

from __future__ import annotations

from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError

FloatArray = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Measure = Literal["pure", "zcdp"]


class NoiseLaw(Protocol):
    """A symmetric, unimodal, log-concave noise law with one scale an entry."""

    @property
    def name(self) -> str:
        """The law's name in sentences and plans."""

    @property
    def kind(self) -> int:
        """The law's code in the kernels."""

    @property
    def discrete(self) -> bool:
        """Whether the noise is an integer."""

    @property
    def measure(self) -> Measure:
        """Whether its privacy loss is stated as pure epsilon or as zCDP rho."""

    @property
    def spread(self) -> FloatArray:
        """The scale parameter, a scalar or one an entry; inf where nothing is measured."""

    @property
    def words_per_entry(self) -> int:
        """How many uniform words one draw of one entry takes."""

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log probability (or density) of each noise value; 0 where nothing is measured."""

    def draw(self, words: Words, scales: FloatArray) -> npt.NDArray[np.int64 | np.float64]:
        """Noise of shape (rows, n) from words of shape (rows, n * words_per_entry)."""

    def sampling_error(self, scales: FloatArray) -> float:
        """Bound on the total variation between `draw` and the law, summed over entries."""


def checked_scale(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return a scale parameter as an array; entries positive, inf allowed.

    Raises
    ------
    ArgumentError
        If an entry is NaN, zero or negative, or the array has more than one dimension.
    """
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 1 or np.isnan(array).any() or (array <= 0).any():
        raise ArgumentError(
            f"{name} is {value!r}; give a positive number, or one for each query "
            "(inf where a query is not measured)."
        )
    return array


def per_entry(spread: FloatArray, n: int) -> FloatArray:
    """Broadcast a scale parameter to n entries.

    Raises
    ------
    ArgumentError
        If it is neither a scalar nor of length n.
    """
    if spread.shape not in ((), (1,), (n,)):
        raise ArgumentError(f"the noise has {spread.size} scales; give one, or {n}.")
    return np.ascontiguousarray(np.broadcast_to(spread, (n,)), dtype=np.float64)
