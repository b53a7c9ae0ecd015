"""Convolution of wide messages by fast Fourier transforms, with a bound on relative error.

Benchmark row: `wide`.

The error of a transform is absolute. An exponential tilt raises one range of the result near its
largest entry, where an absolute error is a small relative error. Several tilts together cover the
window.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from congenial.kernels.network.messages import MERGE, UNARY, fill
from congenial.kernels.network.records import Classes, TiltedWeights, Windows
from congenial.kernels.numerics import elementwise, spectra
from congenial.types import FloatArray

# Number of multiplications above which transforms are faster.
DIRECT_LIMIT = 1 << 28
# Relative error accepted for every entry; near the largest ones it is far smaller.
TOLERANCE = 1e-11
# Most multiplications term by term; they take some minutes.
_LONG = 1 << 38
# Relative error of scaling and of undoing it, two roundings.
_SCALING = 2.0**-51
# Most entries of the narrower support for which a convolution is done term by term.
_SHORT = 1024
# Losses below this multiple of the largest one are raised to it; rounding in transforms is larger.
_FAINT = 2.0**-80
# A loss from which on products of losses might overflow; it says as little as an infinite one.
_NO_BOUND = 1e140
# Relative error of a convolution term by term (`tables.SUM_UNITS`) and of its scaling, rounded up.
_DIRECT = 2.0**-49
# Most tilts on each side, and the least part of the window that another tilt must add.
_MOST_TILTS = 48
_LEAST_GAIN = 1 / 1024


def convolve_wide(
    a: FloatArray, b: FloatArray, first: int, width: int, *, tolerance: float = TOLERANCE
) -> tuple[FloatArray, FloatArray, float]:
    """Return ``(a * b)[first:first + width]`` for log-concave nonnegative `a`, `b`.

    It takes a third less time if both are one array. Returns the convolution divided by its largest
    entry, bounds on the errors of these entries, and the largest entry. The bounds are at most
    `tolerance` times the entry, or ten times that if less would take `_LONG` multiplications.

    Notes
    -----
    The relative error of a radix-2 transform is at most ``7 * log2(size) * 2^-53`` in norm (Higham
    2002, theorem 24.2). An entry is a sum of all others times roots of unity, so its error is at
    most that factor times the sum of their sizes. An entry of a product thus has an error of at
    most the factor times ``2 * norm(a) * norm(b)`` from the two forward transforms, plus the factor
    times the smaller of ``norm(a * b)`` and the mean size of its spectrum from the inverse one.
    Entries that no tilt resolves, at sharp ends of a support, are added up term by term.
    """
    begin, own_a, own_b, low, high = _supports(a, b, first, width)
    if low < high and (own_a.size < a.size or own_b.size < b.size):
        table, off_by, top = convolve_wide(own_a, own_b, low, high - low, tolerance=tolerance)
        edges = (low - begin, begin + width - high)
        return np.pad(table, edges), np.pad(off_by, edges), top
    if min(a.size, b.size) <= _SHORT:
        table = _term_by_term(a, b, first, width)
        top = float(table.max())
        table /= top
        return table, _DIRECT * table, top
    transform = _Transform(a, b, first, width)
    plain, plain_error = transform.product(a, b)
    relative = plain_error / np.maximum(plain, 1e-300)
    done = relative < tolerance - _SCALING
    plain_done = done.copy()
    with np.errstate(divide="ignore", invalid="ignore"):
        log_out = np.where(done, elementwise.log(plain), -np.inf)
        log_a = elementwise.log(a)
        log_b = log_a if b is a else elementwise.log(b)
    s = np.arange(first, first + width, dtype=np.float64)
    for end in (0, -1):
        for _ in range(_MOST_TILTS):
            if done[end] or not done.any():
                break
            tilt = -_slope(log_out, done, end)
            tilted_a, top_a = _tilted(log_a, tilt)
            tilted_b, top_b = (tilted_a, top_a) if b is a else _tilted(log_b, tilt)
            got, error = transform.product(tilted_a, tilted_b)
            bound = error / np.maximum(got, 1e-300)
            # logarithms and exponentials have an error of their size in units of rounding
            bound += 2.0**-53 * (4.0 * abs(tilt) * (a.size + b.size) + 2000.0)
            fresh = (bound < tolerance - _SCALING) & ~done
            if fresh.sum() < _LEAST_GAIN * width:
                break
            log_out[fresh] = elementwise.log(got[fresh]) - tilt * s[fresh] + top_a + top_b
            relative[fresh] = bound[fresh]
            done |= fresh
    # the bound of a transform grows with the root of its size: with 1e5 counts it is near the limit
    if int((~done).sum()) * min(a.size, b.size) > _LONG and tolerance == TOLERANCE:
        return convolve_wide(a, b, first, width, tolerance=10.0 * TOLERANCE)
    for begin, end in _runs(~done):
        with np.errstate(divide="ignore"):
            log_out[begin:end] = elementwise.log(_term_by_term(a, b, first + begin, end - begin))
        relative[begin:end] = tolerance - _SCALING
    log_top = float(log_out.max())
    top = float(elementwise.exp(log_top))
    table = np.where(plain_done, plain / top, elementwise.exp(log_out - log_top))
    return table, (relative + _SCALING) * table, top


def convolve_directly(
    a: FloatArray, b: FloatArray, first: int, size: int, *, plain: bool = False
) -> FloatArray:
    """Return ``(a * b)[first:first + size]`` without a transform.

    The kernel of all messages merges two classes that have `a` and `b` as tables. Sums are not
    compensated if `plain`, see `congenial.kernels.numerics.convolution`.
    """
    ends = np.array([a.size - 1, b.size - 1, first + size - 1])
    begins, offset = np.array([0, 0, first]), np.array([0, a.size, a.size + b.size])
    table = np.concatenate((a, b, np.empty(size)))
    kind = np.array([UNARY, UNARY, MERGE], dtype=np.int8)
    left, right = np.array([-1, -1, 0], dtype=np.int32), np.array([-1, -1, 1], dtype=np.int32)
    sign, law = np.ones(3, dtype=np.int8), np.zeros(3, dtype=np.int64)
    none, factor, log_scale = np.zeros(3), np.ones(3), np.zeros(3)
    classes, weights = Classes(kind, left, right, sign), TiltedWeights(law, none, none, none)
    windows = Windows(begins, ends, offset)
    fill(2, 3, classes, weights, windows, table, factor, log_scale, np.full(3, plain))
    return np.asarray(table[offset[2] :] * factor[2])


def _supports(
    a: FloatArray, b: FloatArray, first: int, width: int, least: float = 0.0
) -> tuple[int, FloatArray, FloatArray, int, int]:
    """Return the parts of `a` and `b` between entries above `least` times their largest ones.

    The wanted range begins at `begin` in the convolution of these parts; that convolution has the
    entries from `low` to `high` of the range. Returns (begin, part of a, part of b, low, high).
    """
    begin, parts = first, []
    for x in (a, b) if b is not a else (a,):
        kept = x > least * x.max()
        start, stop = int(kept.argmax()), x.size - int(kept[::-1].argmax())
        begin -= start if b is not a else 2 * start
        parts.append(x[start:stop])
    low, high = max(begin, 0), min(begin + width, parts[0].size + parts[-1].size - 1)
    return begin, parts[0], parts[-1], low, high


def _term_by_term(a: FloatArray, b: FloatArray, first: int, width: int) -> FloatArray:
    """Return ``(a * b)[first:first + width]``, piece by piece, so that an interrupt is seen."""
    piece = max(1, (1 << 31) // min(a.size, b.size))
    starts = range(first, first + width, piece)
    ends = (min(piece, first + width - start) for start in starts)
    return np.concatenate([convolve_directly(a, b, *of) for of in zip(starts, ends, strict=True)])


class _Transform:
    """Products of transforms of one size."""

    def __init__(self, a: FloatArray, b: FloatArray, first: int, width: int) -> None:
        # aliased entries of the cyclic product lie outside the wanted range
        least = max(a.size + b.size - first, first + width, a.size, b.size)
        self.size = int(elementwise.power_of_two_above(least))
        self.wanted = slice(first, first + width)

    def product(self, a: FloatArray, b: FloatArray) -> tuple[FloatArray, float]:
        """Return the wanted range of a * b and the bound on the error of its entries."""
        of_a = np.fft.rfft(a, self.size)
        of_b = of_a if b is a else np.fft.rfft(b, self.size)
        sizes = spectra.multiply(of_a.view(np.float64), of_b.view(np.float64))
        out = np.fft.irfft(of_a, self.size)
        unit = 7.0 * elementwise.log2(self.size) * 2.0**-53
        norm_a, norm_b, back = (math.sqrt(elementwise.dot(x, x)) for x in (a, b, out))
        norms = 2.0 * norm_a * norm_b + min(back, 2.0 * sizes / self.size)
        return out[self.wanted], 1.001 * unit * float(norms)


def _tilted(log_table: FloatArray, tilt: float) -> tuple[FloatArray, float]:
    """Return a table tilted, divided by its largest entry, and the logarithm of that."""
    tilted = log_table + tilt * np.arange(log_table.size)
    top = tilted.max()
    return elementwise.exp(tilted - top), top


def _slope(log_out: FloatArray, done: npt.NDArray[np.bool_], end: int) -> float:
    """Slope of the logarithms at the outermost entry done towards one end."""
    found = np.flatnonzero(done)
    edge, inner = int(found[end]), 1 if end == 0 else -1
    reach = 1
    while (
        reach < 16 and 0 <= edge + 2 * inner * reach < done.size and done[edge + 2 * inner * reach]
    ):
        reach *= 2
    other = edge + inner * reach
    if not (0 <= other < done.size and done[other]):
        return 0.0
    return float(inner * (log_out[other] - log_out[edge]) / reach)


def _runs(mask: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return (start, stop) of every run of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], mask.astype(np.int8), [0]))))
    return [(int(i), int(j)) for i, j in edges.reshape(-1, 2)]


def cross_wide(
    a: FloatArray, b: FloatArray, lost_a: FloatArray, lost_b: FloatArray, first: int, width: int
) -> FloatArray:
    """Bound ``(lost_a * (b + lost_b) + a * lost_b)[first:first + width]`` from above."""
    if not ((lost_a < _NO_BOUND).all() and (lost_b < _NO_BOUND).all()):
        return np.full(width, np.inf)
    out = np.zeros(width)
    # of a table and itself, both products are one
    alike = b is a and lost_b is lost_a
    pairs = [(lost_a, 2.0 * a + lost_a)] if alike else [(lost_a, b + lost_b), (a, lost_b)]
    for x, y in pairs:
        begin, own_x, own_y, low, high = _supports(x, y, first, width, _FAINT)
        out += _FAINT * (x.max() * y.sum() + y.max() * x.sum())
        if low >= high:
            continue
        if min(own_x.size, own_y.size) <= _SHORT:
            product = (1.0 + _DIRECT) * _term_by_term(own_x, own_y, low, high - low)
        else:
            product, error = _Transform(own_x, own_y, low, high - low).product(own_x, own_y)
            product = np.maximum(product, 0.0) + error
        out[low - begin : high - begin] += product
    return out
