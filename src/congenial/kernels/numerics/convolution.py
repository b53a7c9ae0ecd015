"""Convolutions of two tables of nonnegative numbers, with compensation or without.

Benchmark rows: `everywhere`, `bounded`.

Both write (a * b)[first + i] to out[place + i] for i below n, where indices start at zero in both
factors. A factor is given by its start in an array and its size, because making a view takes longer
than a short sum. All terms are nonnegative, so nothing cancels. `work` has four rows; their length
is twice the longest table plus 16.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# With unsigned indices numba does not check for negative ones, so loops vectorise.
_U1, _U2, _U3, _U4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_U5, _U6, _U7 = np.uint64(5), np.uint64(6), np.uint64(7)
# The first guess of a sum is this factor times the few terms that it is estimated from.
_ABOVE = 2.0**12


@njit(inline="always", inner=True, fused=True)
def _eight_terms(out, place, work, begin, stop, at, row):
    """Add a0 wide[at + k] + ... + a7 wide[at - 7 + k] to out[place + k], its rounding to low[k].

    a0 is at `row` in line 2 of `work`, the others follow; `wide` and `low` are lines 3 and 0, and k
    goes from `begin` up to `stop`. Entries of `out` are larger than each half of the terms, so that
    a sum and its rounding error take three operations (Dekker 1971).
    """
    r = np.uint64(row)
    a0, a1, a2, a3 = work[2, r], work[2, r + _U1], work[2, r + _U2], work[2, r + _U3]
    a4, a5, a6, a7 = work[2, r + _U4], work[2, r + _U5], work[2, r + _U6], work[2, r + _U7]
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


@njit(inner=True, fused=True)
def _eight_plainly(out, place, work, begin, stop, at, row):
    """Add the same terms as `_eight_terms`, without their rounding errors."""
    r = np.uint64(row)
    a0, a1, a2, a3 = work[2, r], work[2, r + _U1], work[2, r + _U2], work[2, r + _U3]
    a4, a5, a6, a7 = work[2, r + _U4], work[2, r + _U5], work[2, r + _U6], work[2, r + _U7]
    first = np.uint64(at) - _U7
    for k in range(np.uint64(begin), np.uint64(stop)):
        i = first + k
        t = (a0 * work[3, i + _U7] + a1 * work[3, i + _U6]) + (
            a2 * work[3, i + _U5] + a3 * work[3, i + _U4]
        )
        u = (a4 * work[3, i + _U3] + a5 * work[3, i + _U2]) + (
            a6 * work[3, i + _U1] + a7 * work[3, i]
        )
        out[place + k] += t + u


@njit(inner=True)
def _add_rows(work, n, w0, w1, w2, w3, i0, i1, i2, i3):
    """Add four rows of line 3 to line 1 of `work`."""
    for k in range(np.uint64(n)):
        work[1, k] += (w0 * work[3, i0 + k] + w1 * work[3, i1 + k]) + (
            w2 * work[3, i2 + k] + w3 * work[3, i3 + k]
        )


@njit(inner=True)
def _lay_out(a, at_a, na, b, at_b, nb, first, n, work):
    """Write the shorter factor to line 2 of `work`, the longer one to line 3; return rows of eight.

    Entry t of line 3 is b[t - rows + first], zero outside, so that every group of eight terms is
    complete.
    """
    rows = (na + 7) // 8 * 8
    for i in range(np.uint64(na)):
        work[2, i] = a[at_a + i]
    for i in range(na, rows):
        work[2, i] = 0.0
    size, begin = n + rows + 7, rows - first
    to, of = np.uint64(max(begin, 0)), at_b + np.uint64(max(-begin, 0))
    stop = np.uint64(max(0, min(nb + begin, size) - max(begin, 0)))
    for j in range(min(to, np.uint64(size))):
        work[3, j] = 0.0
    for j in range(stop):
        work[3, to + j] = b[of + j]
    for j in range(to + stop, np.uint64(size)):
        work[3, j] = 0.0
    return rows


@njit(inner=True, fused=True)
def convolve_plainly(of_a, place_a, size_a, of_b, place_b, size_b, first, out, place, n, work):
    """Add terms eight at a time without compensation, in about half the time.

    The relative error is 4 + 2^-8 units of 2^-53 for the first eight entries of the shorter
    factor, and one unit more for each further eight: one unit for each product, three for adding
    eight products, and one for each addition to the sum.
    """
    a, b, at_a, at_b = of_a, of_b, np.uint64(place_a), np.uint64(place_b)
    na, nb, at = size_a, size_b, np.uint64(place)
    if na > nb:
        a, b, at_a, at_b, na, nb = b, a, at_b, at_a, nb, na
    rows = _lay_out(a, at_a, na, b, at_b, nb, first, n, work)
    for j in range(np.uint64(n)):
        out[at + j] = 0.0
    for i in range(0, rows, 8):
        begin, end = max(0, i - first), min(n, i + 7 + nb - first)
        _eight_plainly(out, at, work, begin, max(begin, end), rows - i, i)


@njit(inner=True, fused=True)
def convolve_closely(of_a, place_a, size_a, of_b, place_b, size_b, first, of_out, place, n, work):
    """Add terms four at a time and then with compensation (Neumaier 1974).

    The relative error is 4 + 2^-8 units of 2^-53 for fewer than 2^18 terms: one unit for each
    product, two for adding four products, and one plus the error of compensation for the rest. Sums
    begin at an anchor, a number between the sum and 2^12 times the sum. If the anchor turns out to
    be below twice a sum, the sums are computed again from a higher anchor.
    """
    a, b, at_a, at_b = of_a, of_b, np.uint64(place_a), np.uint64(place_b)
    na, nb, at = size_a, size_b, np.uint64(place)
    if na > nb:
        a, b, at_a, at_b, na, nb = b, a, at_b, at_a, nb, na
    # lines of `work`: rounding errors, the anchor, the rows, and the longer factor
    rows = _lay_out(a, at_a, na, b, at_b, nb, first, n, work)
    # the anchor is a sum of eight different rows, the first and the last included
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
            _eight_terms(out, at, work, begin, end, rows - i, i)
        above = True
        for j in range(np.uint64(n)):
            out[at + j] = (out[at + j] - work[1, j]) + work[0, j]
            above &= not 2.0 * out[at + j] > work[1, j]
        if not above:
            for j in range(np.uint64(n)):
                work[1, j] = max(work[1, j], 4.0 * out[at + j])


@njit(inner=True, fused=True)
def _add_eight(out, wide, at, a0, a1, a2, a3, a4, a5, a6, a7):
    """Add a0 wide[at + k] + ... + a7 wide[at + 7 + k] to out[k]."""
    first = np.uint64(at)
    for k in range(np.uint64(out.size)):
        i = first + k
        t = (a0 * wide[i] + a1 * wide[i + _U1]) + (a2 * wide[i + _U2] + a3 * wide[i + _U3])
        u = (a4 * wide[i + _U4] + a5 * wide[i + _U5]) + (a6 * wide[i + _U6] + a7 * wide[i + _U7])
        out[k] += t + u


@njit(inner=True)
def correlate(around, first, other, lo_other, out, lo_out, wide):
    """Write sum over s of around[s] * other[s - l] to out[l]; arrays begin at the given values.

    `wide` is scratch, at least ``out.size + other.size + 16`` long.
    """
    # wide[l + j] is around[l + j + by], padded, so that eight rows need no check of the ends
    by = lo_out + lo_other - first
    rows = (other.size + 7) // 8 * 8
    stop = out.size + rows
    begin = min(max(0, -by), stop)
    end = max(begin, min(stop, around.size - by))
    for t in range(np.uint64(begin)):
        wide[t] = 0.0
    to, of = np.uint64(begin), np.uint64(max(begin + by, 0))
    for t in range(np.uint64(end - begin)):
        wide[to + t] = around[of + t]
    for t in range(np.uint64(end), np.uint64(stop)):
        wide[t] = 0.0
    for l in range(out.size):
        out[l] = 0.0
    size = other.size
    for j in range(0, rows, 8):
        begin, stop = max(0, -by - j - 7), min(out.size, around.size - by - j)
        if stop <= begin:
            continue
        whole = j + 7 < size
        _add_eight(
            out[begin:stop],
            wide,
            j + begin,
            other[j],
            other[j + 1] if whole or j + 1 < size else 0.0,
            other[j + 2] if whole or j + 2 < size else 0.0,
            other[j + 3] if whole or j + 3 < size else 0.0,
            other[j + 4] if whole or j + 4 < size else 0.0,
            other[j + 5] if whole or j + 5 < size else 0.0,
            other[j + 6] if whole or j + 6 < size else 0.0,
            other[j + 7] if whole else 0.0,
        )
