"""Messages of a sum network: windows from the top down, tables from the bottom up.

A network is a list of classes in topological order, each a function on a window of integers:

* ``UNARY``: a tilted unary weight;
* ``MERGE``: the convolution of two classes, the law of the sum of two subtrees;
* ``PRODUCT``: a variable's own weight (left) times the law of the sum below it (right), read at
  ``sign * u``.

Tables are scaled by powers of two, which costs no accuracy, to a largest entry between 1/2 and 1;
logarithms of the factors are kept beside them.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.compiling import njit
from congenial.kernels.spans import joint_rate
from congenial.kernels.weights import fill_unary

UNARY = 0
MERGE = 1
PRODUCT = 2


# Unsigned indices are never counted from the end, so that the compiler uses vectors.
_U0, _U1, _U2 = np.uint64(0), np.uint64(1), np.uint64(2)
_U3, _U4 = np.uint64(3), np.uint64(4)
_U5, _U6, _U7 = np.uint64(5), np.uint64(6), np.uint64(7)
# How far the first guess of a sum lies above the few terms that it is made of.
_ABOVE = 2.0**12


@njit(inline="always", inner=True, fused=True)
def _eight_terms(out, place, work, begin, stop, at, a0, a1, a2, a3, a4, a5, a6, a7):
    """Add a0 wide[at + k] + ... + a7 wide[at - 7 + k] to out[place + k], what rounds off to low[k].

    They are lines 3 and 0 of `work`, k goes from `begin` up to `stop`. Entries of `out` are larger
    than either half of the terms, so that a sum of two needs three operations to have its rounding
    as well (Dekker 1971).
    """
    first = np.uint64(at) - _U7
    for k in range(np.uint64(begin), np.uint64(stop)):
        i = first + k
        t = (a0 * work[3, i + _U7] + a1 * work[3, i + _U6]) + (
            a2 * work[3, i + _U5] + a3 * work[3, i + _U4]
        )
        u = (a4 * work[3, i + _U3] + a5 * work[3, i + _U2]) + (
            a6 * work[3, i + _U1] + a7 * work[3, i]
        )
        old = out[place + k]
        new = old + t
        last = new + u
        work[0, k] += (t - (new - old)) + (u - (last - new))
        out[place + k] = last


@njit(inner=True)
def _add_rows(work, n, w0, w1, w2, w3, i0, i1, i2, i3):
    """Add four rows of line 3 to line 1 of `work`."""
    for k in range(np.uint64(n)):
        work[1, k] += (w0 * work[3, i0 + k] + w1 * work[3, i1 + k]) + (
            w2 * work[3, i2 + k] + w3 * work[3, i3 + k]
        )


@njit(inner=True, fused=True)
def _convolve(of_a, place_a, size_a, of_b, place_b, size_b, first, of_out, place, n, work):
    """Do what `convolve` does with entries of three arrays that begin at places and have sizes.

    A view of an array takes longer to make than a short sum, as references are counted.
    """
    a, b, at_a, at_b = of_a, of_b, np.uint64(place_a), np.uint64(place_b)
    na, nb, at = size_a, size_b, np.uint64(place)
    if na > nb:
        a, b, at_a, at_b, na, nb = b, a, at_b, at_a, nb, na
    rows = (na + 7) // 8 * 8
    # lines of `work`: what rounds off, the anchor, the rows, and the other factor
    for i in range(np.uint64(na)):
        work[2, i] = a[at_a + i]
    for i in range(na, rows):
        work[2, i] = 0.0
    # b[t - rows + first] at t, zero outside, so that every run of eight terms is whole
    size, begin = n + rows + 7, rows - first
    to, of = np.uint64(max(begin, 0)), at_b + np.uint64(max(-begin, 0))
    stop = np.uint64(max(0, min(nb + begin, size) - max(begin, 0)))
    for j in range(min(to, np.uint64(size))):
        work[3, j] = 0.0
    for j in range(stop):
        work[3, to + j] = b[of + j]
    for j in range(to + stop, np.uint64(size)):
        work[3, j] = 0.0
    # eight rows make the anchor, the first and the last among them; none counts twice
    for j in range(np.uint64(n)):
        work[1, j] = 0.0
    top, last = np.uint64(rows), na - 1
    for q in range(0, 8, 4):
        i0, i1 = q * last // 7, (q + 1) * last // 7
        i2, i3 = (q + 2) * last // 7, (q + 3) * last // 7
        _add_rows(
            work,
            n,
            _ABOVE * work[2, i0] if q == 0 or i0 > (q - 1) * last // 7 else 0.0,
            _ABOVE * work[2, i1] if i1 > i0 else 0.0,
            _ABOVE * work[2, i2] if i2 > i1 else 0.0,
            _ABOVE * work[2, i3] if i3 > i2 else 0.0,
            top - np.uint64(i0),
            top - np.uint64(i1),
            top - np.uint64(i2),
            top - np.uint64(i3),
        )
    out = of_out
    above = False
    while not above:
        for j in range(np.uint64(n)):
            work[0, j], out[at + j] = 0.0, work[1, j]
        for i in range(0, rows, 8):
            begin, end = max(0, i - first), min(n, i + 7 + nb - first)
            if end <= begin:
                continue
            r = np.uint64(i)
            _eight_terms(
                out,
                at,
                work,
                begin,
                end,
                rows - i,
                work[2, r],
                work[2, r + _U1],
                work[2, r + _U2],
                work[2, r + _U3],
                work[2, r + _U4],
                work[2, r + _U5],
                work[2, r + _U6],
                work[2, r + _U7],
            )
        above = True
        for j in range(np.uint64(n)):
            out[at + j] = (out[at + j] - work[1, j]) + work[0, j]
            above &= not 2.0 * out[at + j] > work[1, j]
        if not above:
            for j in range(np.uint64(n)):
                work[1, j] = max(work[1, j], 4.0 * out[at + j])


@njit()
def convolve(a, b, first, out, work):
    """Write (a * b)[first + i] to out[i]; indices start at zero in `a` and `b`.

    Terms are added four at a time and then with compensation (Neumaier 1974), so that the relative
    error is 4 units of 2^-53 and 2^-8 of one for fewer than 2^18 terms: one for each product, two
    for adding four of them, one and what compensation leaves for the rest. All terms are
    nonnegative: nothing cancels. Sums begin at an anchor, a number between them and 2^12 times
    them; where it proves to lie below twice a sum, they are taken again from a higher one.

    `work` has four lines, each 16 longer than twice the longest of the arrays.
    """
    _convolve(a, 0, a.size, b, 0, b.size, first, out, 0, out.size, work)


@njit(inner=True)
def largest(x):
    """Return the largest of nonnegative numbers; four comparisons need not wait for one another."""
    p = q = r = s = 0.0
    fours = _U4 * np.uint64(x.size // 4)
    for i in range(_U0, fours, _U4):
        p = max(p, x[i])
        q = max(q, x[i + _U1])
        r = max(r, x[i + _U2])
        s = max(s, x[i + _U3])
    for i in range(fours, np.uint64(x.size)):
        p = max(p, x[i])
    return max(p, q, r, s)


@njit(inner=True)
def power_above(x):
    """Return the least power of two that is at least x, 1 where x is not positive.

    It is at least 2^-1000, so that its inverse is finite.
    """
    if x <= 0.0:
        return 1.0
    if x < 2.0**-1000:
        return 2.0**-1000
    mantissa, exponent = math.frexp(x)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


@njit(inner=True)
def combine(c, ctype, left, right, sign, lo, hi, offset, table, out, work):
    """Write the table of a merge or a product to `out`; return the power of two it is divided by.

    `work` is that of `convolve`.
    """
    a, b = left[c], right[c]
    if ctype[c] == PRODUCT:
        at_a = offset[a] + lo[c] - lo[a]
        for i in range(out.size):
            below = sign[c] * (lo[c] + i)
            out[i] = table[at_a + i] * table[offset[b] + below - lo[b]]
    else:
        first, wa, wb = lo[c] - lo[a] - lo[b], hi[a] - lo[a] + 1, hi[b] - lo[b] + 1
        _convolve(table, offset[a], wa, table, offset[b], wb, first, out, 0, out.size, work)
    top = power_above(largest(out))
    scale = 1.0 / top
    for i in range(out.size):
        out[i] *= scale
    return top


@njit(inner=True)
def working_lines(begin, end, ctype, left, right, lo, hi):
    """Return lines for `convolve`, shape (4, .), long enough for classes begin..end-1."""
    most = 0
    for c in range(begin, end):
        most = max(most, hi[c] - lo[c] + 1)
        if ctype[c] != UNARY:
            a, b = left[c], right[c]
            most = max(most, hi[a] - lo[a] + 1, hi[b] - lo[b] + 1)
    return np.empty((4, 2 * most + 16))


@njit()
def fill(
    begin,
    end,
    ctype,
    left,
    right,
    sign,
    kind,
    inverse,
    center,
    tilt,
    lo,
    hi,
    offset,
    table,
    factor,
    log_scale,
):
    """Fill the tables of classes begin..end-1 and their scale factors.

    ``factor`` is the power of two that a table was divided by; ``log_scale`` is the
    logarithm of all factors taken out of a table. Classes without a window are passed over.
    """
    work = working_lines(begin, end, ctype, left, right, lo, hi)
    for c in range(begin, end):
        if lo[c] > hi[c]:
            continue
        width = hi[c] - lo[c] + 1
        out = table[offset[c] : offset[c] + width]
        if ctype[c] == UNARY:
            log_scale[c] = fill_unary(kind[c], inverse[c], center[c], tilt[c], lo[c], out)
            continue
        top = combine(c, ctype, left, right, sign, lo, hi, offset, table, out, work)
        factor[c] = top
        log_scale[c] = log_scale[left[c]] + log_scale[right[c]] + np.log(top)


@njit()
def propagate(ctype, left, right, sign, mean, var, support_lo, support_hi, rate_lo, rate_hi, nats):
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
            down, on = (rate_lo[b], rate_hi[b]) if up else (rate_hi[b], rate_lo[b])
            rate_lo[c] = joint_rate(var[a], rate_lo[a], var[b], down, nats)
            rate_hi[c] = joint_rate(var[a], rate_hi[a], var[b], on, nats)
            below = sign[c] * mean[b]
            if var[a] <= 0.0 or var[b] <= 0.0:
                mean[c] = mean[a] if var[a] <= 0.0 else below
                var[c] = 0.0
            else:
                precision = 1.0 / var[a] + 1.0 / var[b]
                mean[c] = (mean[a] / var[a] + below / var[b]) / precision
                var[c] = 1.0 / precision


@njit()
def surround(
    ctype,
    left,
    right,
    sign,
    mean,
    var,
    rate_lo,
    rate_hi,
    nats,
    mid_lo,
    mid_hi,
    out_var,
    out_lo,
    out_hi,
):
    """Spread, from the top down, how the rest of the network holds each class.

    `out_var`, `out_lo` and `out_hi` are the variance and the decay rates of the message from
    outside, `mid_lo` and `mid_hi` the least and the largest conditional mean where a class is used
    several times, all as if messages were Gaussian. On entry they hold those of the top classes,
    and -1 for `out_var`, inf or -inf elsewhere.
    """
    for c in range(ctype.size - 1, -1, -1):
        if out_var[c] < 0.0 or ctype[c] == UNARY:
            continue
        a, b = left[c], right[c]
        if ctype[c] == MERGE:
            for side in range(2):
                i, j = (a, b) if side == 0 else (b, a)
                out_var[i] = max(out_var[i], out_var[c] + var[j])
                out_hi[i] = min(out_hi[i], out_hi[c], rate_lo[j])
                out_lo[i] = min(out_lo[i], out_lo[c], rate_hi[j])
                share = var[i] / var[c] if var[c] > 0.0 else 0.0
                mid_lo[i] = min(mid_lo[i], mean[i] + share * (mid_lo[c] - mean[c]))
                mid_hi[i] = max(mid_hi[i], mean[i] + share * (mid_hi[c] - mean[c]))
        else:
            own = 1.0 / (1.0 / max(out_var[c], 1e-9) + 1.0 / max(var[a], 1e-9))
            rest_lo = joint_rate(var[a], rate_lo[a], out_var[c], out_lo[c], nats)
            rest_hi = joint_rate(var[a], rate_hi[a], out_var[c], out_hi[c], nats)
            out_var[b] = max(out_var[b], own)
            out_lo[b] = min(out_lo[b], rest_lo if sign[c] > 0 else rest_hi)
            out_hi[b] = min(out_hi[b], rest_hi if sign[c] > 0 else rest_lo)
            below = 1.0 / (1.0 / max(out_var[c], 1e-9) + 1.0 / max(var[b], 1e-9))
            out_var[a] = max(out_var[a], below)
            down, on = (rate_lo[b], rate_hi[b]) if sign[c] > 0 else (rate_hi[b], rate_lo[b])
            out_lo[a] = min(out_lo[a], joint_rate(var[b], down, out_var[c], out_lo[c], nats))
            out_hi[a] = min(out_hi[a], joint_rate(var[b], on, out_var[c], out_hi[c], nats))
            mid_lo[a], mid_hi[a] = min(mid_lo[a], mid_lo[c]), max(mid_hi[a], mid_hi[c])
            low, high = (mid_lo[c], mid_hi[c]) if sign[c] > 0 else (-mid_hi[c], -mid_lo[c])
            mid_lo[b], mid_hi[b] = min(mid_lo[b], low), max(mid_hi[b], high)


@njit()
def cover(ctype, left, right, sign, support_lo, support_hi, lo, hi):
    """Make every window reachable: parts of a product cover it, merges fit within their parts."""
    for c in range(ctype.size - 1, -1, -1):
        if ctype[c] == PRODUCT:
            a, b = left[c], right[c]
            lo[a], hi[a] = min(lo[a], lo[c]), max(hi[a], hi[c])
            low, high = (lo[c], hi[c]) if sign[c] > 0 else (-hi[c], -lo[c])
            lo[b], hi[b] = min(lo[b], low), max(hi[b], high)
        elif ctype[c] == MERGE:
            a, b = left[c], right[c]
            # each part takes half of what is missing, or what the other's support leaves
            short = lo[a] + lo[b] - lo[c]
            if short > 0.0:
                rest = max(np.ceil(short / 2), short - (lo[b] - support_lo[b]))
                lo[a] = max(lo[a] - rest, support_lo[a])
                lo[b] = min(lo[b], lo[c] - lo[a])
            short = hi[c] - hi[a] - hi[b]
            if short > 0.0:
                rest = max(np.ceil(short / 2), short - (support_hi[b] - hi[b]))
                hi[a] = min(hi[a] + rest, support_hi[a])
                hi[b] = max(hi[b], hi[c] - hi[a])
