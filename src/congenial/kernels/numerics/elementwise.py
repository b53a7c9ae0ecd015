"""Elementary functions of arrays, with the bits of `elementary`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit


@njit()
def _exp(x, out):
    for i in range(x.size):
        out[i] = elementary.exp(x[i])


@njit()
def _expm1(x, out):
    for i in range(x.size):
        out[i] = elementary.expm1(x[i])


@njit()
def _log(x, out):
    for i in range(x.size):
        out[i] = elementary.log(x[i])


@njit()
def _log1p(x, out):
    for i in range(x.size):
        out[i] = elementary.log1p(x[i])


@njit()
def _cos_sin(x, out):
    for i in range(x.size):
        out[0, i], out[1, i] = elementary.cos_sin(x[i])


def _each(kernel: Callable[..., None], x: Any) -> Any:
    x = np.asarray(x, dtype=np.float64)
    out = np.empty(x.size)
    kernel(x.ravel(), out)
    return out.reshape(x.shape)[()]


def exp(x: Any) -> Any:
    """Return exp(x) of numbers or arrays, as float64 of their shape."""
    return _each(_exp, x)


def expm1(x: Any) -> Any:
    """Return exp(x) - 1 of numbers or arrays, as float64 of their shape."""
    return _each(_expm1, x)


def log(x: Any) -> Any:
    """Return the natural logarithms, as float64 of the shape of x; -inf at 0 and nan below."""
    return _each(_log, x)


def log1p(x: Any) -> Any:
    """Return log(1 + x) of numbers or arrays, as float64 of their shape; -inf at -1, nan below."""
    return _each(_log1p, x)


def log2(x: Any) -> Any:
    """Return logarithms to base 2, with a relative error of a few units."""
    return log(x) / log(2.0)


def log10(x: Any) -> Any:
    """Return logarithms to base 10, with a relative error of a few units."""
    return log(x) / log(10.0)


def log_sum(x: Any, axis: int | None = None) -> Any:
    """Return log of the sum of exp(x), over an axis or all entries; -inf if all entries are."""
    x = np.asarray(x, dtype=np.float64)
    top = np.max(x, axis=axis, keepdims=True)
    with np.errstate(invalid="ignore"):
        total = np.where(np.isinf(top), x == top, exp(x - top)).sum(axis=axis)
    return log(total) + top.reshape(total.shape)[()]


def log_add(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)), as float64 of their common shape."""
    high, low = np.maximum(x, y), np.minimum(x, y)
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(high), high, high + log1p(exp(low - high)))


def dot(x: Any, y: Any) -> float:
    """Return the sum of the products of two arrays' entries, added in a fixed order."""
    return float(np.multiply(x, y, dtype=np.float64).sum())


def power(x: Any, y: Any) -> Any:
    """Return x^y for x >= 0; the relative error grows with the size of its logarithm."""
    y = np.asarray(y, dtype=np.float64)
    return exp(y * np.where(y == 0.0, 0.0, log(x)))


def cos_sin(x: Any) -> Any:
    """Return the cosines and sines of n angles, as float64 (2, n)."""
    x = np.asarray(x, dtype=np.float64)
    out = np.empty((2, x.size))
    _cos_sin(x, out)
    return out


def power_of_two_above(x: Any) -> Any:
    """Return the least powers of two that are at least x > 0, as float64 of its shape."""
    x = np.asarray(x, dtype=np.float64)
    part, exponent = np.frexp(x)
    return np.where(np.isinf(x), x, np.ldexp(1.0, exponent - (part == 0.5)))[()]
