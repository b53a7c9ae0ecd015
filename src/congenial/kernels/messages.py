"""Messages of a sum network: windows from the top down, tables from the bottom up.

A network is a list of classes in topological order, each a function on a window of integers:

* ``UNARY``: a tilted unary weight;
* ``MERGE``: the convolution of two classes, the law of the sum of two subtrees;
* ``PRODUCT``: a variable's own weight (left) times the law of the sum below it (right), read at
  ``sign * u``.

Tables are scaled to a largest entry of 1; logarithms of the factors are kept beside them.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from congenial.kernels.laws import GAUSSIAN, LAPLACE

UNARY = 0
MERGE = 1
PRODUCT = 2


@njit(cache=True)
def request_windows(
    ctype, left, right, sign, mean, var, support_lo, support_hi, rate_lo, rate_hi, lo, hi, gauss, expo
):
    """Widen the windows `lo`, `hi` (float64, per class) to what every class above asks for.

    Given that the sum of a merge lies at an end of its window, each part lies around its share of
    the sum; `gauss` standard deviations and `expo` decay lengths are added on either side.
    """
    for c in range(ctype.size - 1, -1, -1):
        if lo[c] > hi[c] or ctype[c] == UNARY:
            continue
        if ctype[c] == PRODUCT:
            a, b = left[c], right[c]
            lo[a], hi[a] = min(lo[a], lo[c]), max(hi[a], hi[c])
            below_lo, below_hi = (lo[c], hi[c]) if sign[c] > 0 else (-hi[c], -lo[c])
            lo[b], hi[b] = min(lo[b], below_lo), max(hi[b], below_hi)
            continue
        total = var[left[c]] + var[right[c]]
        middle = mean[left[c]] + mean[right[c]]
        for side in range(2):
            a = left[c] if side == 0 else right[c]
            b = right[c] if side == 0 else left[c]
            share = var[a] / total if total > 0.0 else 0.0
            sd = np.sqrt(share * var[b])
            above = gauss * sd + expo / max(rate_hi[a] + rate_lo[b], 1e-12) + 2.0
            below = gauss * sd + expo / max(rate_lo[a] + rate_hi[b], 1e-12) + 2.0
            first = max(support_lo[a], lo[c] - support_hi[b])
            last = min(support_hi[a], hi[c] - support_lo[b])
            want_lo = np.floor(mean[a] + share * (lo[c] - middle) - below)
            want_hi = np.ceil(mean[a] + share * (hi[c] - middle) + above)
            want_lo = min(max(want_lo, first), last)
            want_hi = max(min(want_hi, last), first)
            lo[a], hi[a] = min(lo[a], want_lo), max(hi[a], want_hi)


@njit(cache=True)
def _split(x: float) -> tuple[float, float]:
    c = 134217729.0 * x
    high = c - (c - x)
    return high, x - high


@njit(cache=True)
def _two_product(x: float, y: float) -> tuple[float, float]:
    """Return x * y as an unevaluated sum of two doubles (Dekker 1971)."""
    p = x * y
    xh, xl = _split(x)
    yh, yl = _split(y)
    return p, ((xh * yh - p) + xh * yl + xl * yh) + xl * yl


@njit(cache=True)
def tilted_weight(kind: int, inverse: float, center: float, tilt: float, u: float, shift: float) -> float:
    """Return weight(u) * exp(tilt * u - shift) to within three units of the last place.

    `inverse` is 1 / scale for Laplace and 1 / (2 sigma^2) for Gaussian weights. The exponent is
    summed in doubled precision, so large and cancelling parts cost nothing.
    """
    p, pe = _two_product(tilt, u)
    d = abs(u - center)
    if kind == GAUSSIAN:
        q, qe = _two_product(inverse, d * d)
    elif kind == LAPLACE:
        q, qe = _two_product(inverse, d)
    else:
        q, qe = 0.0, 0.0
    s = p - q
    t = s - p
    se = (p - (s - t)) + (-q - t)
    r = s - shift
    t = r - s
    re = (s - (r - t)) + (-shift - t)
    return np.exp(r) * (1.0 + (pe - qe + se + re))


@njit(cache=True)
def _log_weight(kind: int, inverse: float, center: float, tilt: float, u: float) -> float:
    d = abs(u - center)
    if kind == GAUSSIAN:
        return tilt * u - inverse * d * d
    if kind == LAPLACE:
        return tilt * u - inverse * d
    return tilt * u


@njit(cache=True)
def convolve(a, b, first, out):
    """Write (a * b)[first + i] to out[i]; indices start at zero in `a` and `b`.

    Terms are added in blocks of about the square root of their number, so that the relative error
    is below (2 * sqrt(terms) + 3) * 2^-53. All terms are nonnegative: nothing cancels.
    """
    if a.size > b.size:
        a, b = b, a
    out[:] = 0.0
    block = int(np.sqrt(a.size)) + 1
    part = np.empty(out.size)
    for start in range(0, a.size, block):
        stop = min(start + block, a.size)
        lo = max(0, start - first)
        hi = min(out.size, stop + b.size - 1 - first)
        if hi <= lo:
            continue
        part[lo:hi] = 0.0
        for i in range(start, stop):
            w = a[i]
            j0 = max(0, i - first)
            j1 = min(out.size, i + b.size - first)
            offset = first - i
            for j in range(j0, j1):
                part[j] += w * b[j + offset]
        for j in range(lo, hi):
            out[j] += part[j]


@njit(cache=True)
def fill(
    begin, end, ctype, left, right, sign, kind, inverse, center, tilt, lo, hi, offset, table, factor, log_scale
):
    """Fill the tables of classes begin..end-1 and their scale factors.

    For a merge, ``factor`` is the number that its table was divided by; ``log_scale`` is the
    logarithm of all factors taken out of a table. Classes without a window are passed over.
    """
    for c in range(begin, end):
        if lo[c] > hi[c]:
            continue
        width = hi[c] - lo[c] + 1
        out = table[offset[c] : offset[c] + width]
        if ctype[c] == UNARY:
            top = -np.inf
            for i in range(width):
                top = max(top, _log_weight(kind[c], inverse[c], center[c], tilt[c], float(lo[c] + i)))
            for i in range(width):
                out[i] = tilted_weight(
                    kind[c], inverse[c], center[c], tilt[c], float(lo[c] + i), top
                )
            log_scale[c] = top
            continue
        a, b = left[c], right[c]
        if ctype[c] == PRODUCT:
            at_a = offset[a] + lo[c] - lo[a]
            for i in range(width):
                below = sign[c] * (lo[c] + i)
                out[i] = table[at_a + i] * table[offset[b] + below - lo[b]]
        else:
            wide_a = table[offset[a] : offset[a] + hi[a] - lo[a] + 1]
            wide_b = table[offset[b] : offset[b] + hi[b] - lo[b] + 1]
            convolve(wide_a, wide_b, lo[c] - lo[a] - lo[b], out)
        top = out.max()
        factor[c] = top
        log_scale[c] = log_scale[a] + log_scale[b] + (np.log(top) if top > 0.0 else -np.inf)
        if top > 0.0:
            for i in range(width):
                out[i] /= top


@njit(cache=True)
def _tail(edge: float, inner: float) -> float:
    """Bound the sum beyond an edge of a log-concave sequence by a geometric series."""
    if edge <= 0.0:
        return 0.0
    if edge >= inner:
        return np.inf
    return edge * edge / (inner - edge)


@njit(cache=True)
def _weight(a, lo_a, b, lo_b, s, l):
    i, j = l - lo_a, s - l - lo_b
    if i < 0 or j < 0 or i >= a.size or j >= b.size:
        return 0.0
    return a[i] * b[j]


@njit(cache=True)
def merge_tail(a, lo_a, support_a, b, lo_b, support_b, s, total, upper):
    """Bound, relative to `total`, the mass that windows cut from one end of a split at sum s.

    With `upper`, parts beyond the upper ends of both windows; otherwise beyond the lower ends.
    `support_*` holds the two ends of the true supports, beyond which nothing is cut.
    """
    hi_a, hi_b = lo_a + a.size - 1, lo_b + b.size - 1
    cut = 0.0
    if upper:
        edge = min(hi_a, s - lo_b)
        if edge < support_a[1] and s - edge > support_b[0]:
            cut += _tail(
                _weight(a, lo_a, b, lo_b, s, edge), _weight(a, lo_a, b, lo_b, s, edge - 1)
            )
        edge = max(lo_a, s - hi_b)
        if edge > support_a[0] and s - edge < support_b[1]:
            cut += _tail(
                _weight(a, lo_a, b, lo_b, s, edge), _weight(a, lo_a, b, lo_b, s, edge + 1)
            )
    else:
        edge = max(lo_a, s - hi_b)
        if edge > support_a[0] and s - edge < support_b[1]:
            cut += _tail(
                _weight(a, lo_a, b, lo_b, s, edge), _weight(a, lo_a, b, lo_b, s, edge + 1)
            )
        edge = min(hi_a, s - lo_b)
        if edge < support_a[1] and s - edge > support_b[0]:
            cut += _tail(
                _weight(a, lo_a, b, lo_b, s, edge), _weight(a, lo_a, b, lo_b, s, edge - 1)
            )
    return cut / total if total > 0.0 else np.inf


@njit(cache=True)
def check_merges(ctype, left, right, lo, hi, support_lo, support_hi, offset, table, factor, cut):
    """Fill `cut` (per class) with the relative mass lost at the worse end of each merge's window.

    For log-concave parts the split given the sum increases with the sum (Efron 1965), so the ends
    of the window bound every sum inside it.
    """
    for c in range(ctype.size):
        cut[c] = 0.0
        if ctype[c] != MERGE or lo[c] > hi[c]:
            continue
        a, b = left[c], right[c]
        ta = table[offset[a] : offset[a] + hi[a] - lo[a] + 1]
        tb = table[offset[b] : offset[b] + hi[b] - lo[b] + 1]
        sa = (support_lo[a], support_hi[a])
        sb = (support_lo[b], support_hi[b])
        low = table[offset[c]] * factor[c]
        high = table[offset[c] + hi[c] - lo[c]] * factor[c]
        at_low = merge_tail(ta, lo[a], sa, tb, lo[b], sb, lo[c], low, False)
        at_high = merge_tail(ta, lo[a], sa, tb, lo[b], sb, hi[c], high, True)
        cut[c] = 2.0 * (at_low + at_high)


@njit(cache=True)
def propagate(ctype, left, right, sign, mean, var, support_lo, support_hi, rate_lo, rate_hi):
    """Fill moments, supports and decay rates of merges and products from their parts."""
    for c in range(ctype.size):
        a, b = left[c], right[c]
        if ctype[c] == MERGE:
            mean[c] = mean[a] + mean[b]
            var[c] = var[a] + var[b]
            support_lo[c] = support_lo[a] + support_lo[b]
            support_hi[c] = support_hi[a] + support_hi[b]
            rate_lo[c] = min(rate_lo[a], rate_lo[b])
            rate_hi[c] = min(rate_hi[a], rate_hi[b])
        elif ctype[c] == PRODUCT:
            up = sign[c] > 0
            below_lo = support_lo[b] if up else -support_hi[b]
            below_hi = support_hi[b] if up else -support_lo[b]
            support_lo[c] = max(support_lo[a], below_lo)
            support_hi[c] = min(support_hi[a], below_hi)
            rate_lo[c] = rate_lo[a] + (rate_lo[b] if up else rate_hi[b])
            rate_hi[c] = rate_hi[a] + (rate_hi[b] if up else rate_lo[b])
            below = sign[c] * mean[b]
            if var[a] <= 0.0 or var[b] <= 0.0:
                mean[c] = mean[a] if var[a] <= 0.0 else below
                var[c] = 0.0
            else:
                precision = 1.0 / var[a] + 1.0 / var[b]
                mean[c] = (mean[a] / var[a] + below / var[b]) / precision
                var[c] = 1.0 / precision
