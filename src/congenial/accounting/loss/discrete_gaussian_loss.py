"""The exact delta of discrete Gaussian noise, by summing its law."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from congenial.accounting.loss.gaussian_loss import checked_positive
from congenial.errors import ArgumentError, UnsupportedError
from congenial.types import FloatArray

# Sigmas at which the support is truncated; the mass beyond is below 1e-42.
_REACH = 14.0
# Largest number of products in one convolution.
_MOST = 2.0**33


def discrete_gaussian_delta(
    *, epsilon: float, sigma: float, change: int | npt.ArrayLike = 1
) -> float:
    """Return the least delta of discrete Gaussian noise between two datasets, in either order.

    Parameters
    ----------
    epsilon : float
        Nonnegative.
    sigma : float
        Parameter of `congenial.DiscreteGaussian`, the same at every query.
    change : int or array_like of int, shape (k,)
        Change of each query; (1, -1) where one record moves between two cells.

    Returns
    -------
    float
        With a relative error of at most 1e-9 if it is above 1e-30.

    Raises
    ------
    ArgumentError
        If an argument is out of range or nothing changes.
    UnsupportedError
        If sigma and the change are too large to sum over.

    Notes
    -----
    The privacy loss at noise u is ``(|c|**2 - 2 c.u) / (2 sigma**2)`` for the change c. delta is
    the mean of ``max(0, 1 - exp(epsilon - loss))`` over the law of c.u, a convolution of positive
    terms. It depends on the whole change and not, as for continuous noise, on its L2 norm alone.

    References
    ----------
    Canonne, Kamath and Steinke (2020), Theorem 7; Two Views, Definition 2.4, for the delta.

    Examples
    --------
    >>> round(discrete_gaussian_delta(epsilon=1.0, sigma=4.0, change=(1, -1)), 6)
    0.000387
    """
    number = isinstance(epsilon, int | float | np.number) and not isinstance(epsilon, bool)
    if not number or not (math.isfinite(epsilon) and epsilon >= 0):
        raise ArgumentError(f"epsilon is {epsilon!r}; give a nonnegative, finite number.")
    sigma = checked_positive("sigma", sigma)
    steps = np.asarray(change)
    if steps.ndim > 1 or steps.dtype.kind not in "iu" or not steps.any():
        raise ArgumentError(f"change is {change!r}; give integers, one a query, not all 0.")
    sizes = np.abs(steps[steps != 0]).astype(np.int64)  # the noise is symmetric
    values, law = _weighted_sum(sigma, [int(size) for size in sizes])
    loss = (float((sizes**2).sum()) - 2.0 * values) / (2.0 * sigma * sigma)
    worse = loss > epsilon
    return math.fsum(law[worse] * -np.expm1(epsilon - loss[worse]))


def _weighted_sum(sigma: float, sizes: list[int]) -> tuple[npt.NDArray[np.int64], FloatArray]:
    """Law of the sum of ``size * u`` over independent noise u."""
    reach = math.ceil(_REACH * sigma) + 1
    # products of each convolution: entries so far times entries of the noise
    work, total = 0.0, 1.0
    for size in sizes:
        work += total * (2.0 * reach + 1.0)
        total += 2.0 * size * reach
    if work > _MOST:
        raise UnsupportedError(
            f"sigma {sigma:g} and a change of {len(sizes)} queries take {work:.2g} products, and "
            f"the limit is {_MOST:.2g}; use gaussian_delta, which is close to it for so wide noise."
        )
    u = np.arange(-reach, reach + 1)
    with np.errstate(under="ignore"):
        one = np.exp(-0.5 * (u / sigma) ** 2)
        one /= one.sum()
        law = np.ones(1)
        for size in sizes:
            law = _spread_convolution(law, one, size)
    half = law.size // 2
    return np.arange(-half, half + 1, dtype=np.int64), law


def _spread_convolution(law: FloatArray, one: FloatArray, size: int) -> FloatArray:
    """Convolve with `one` placed on the multiples of `size`; positive terms only."""
    if size == 1:
        return np.convolve(law, one)
    out = np.zeros(law.size + size * (one.size - 1))
    for k, weight in enumerate(one):
        out[size * k : size * k + law.size] += weight * law
    return out
