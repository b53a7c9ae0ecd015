"""Convolutions of two tables of nonnegative numbers, with compensation or without.

Benchmark rows: `everywhere`, `bounded`.

Both write (a * b)[first + i] to out[place + i] for i below n, where indices start at zero in both
factors. A factor is given by its start in an array and its size, because making a view takes longer
than a short sum. All terms are nonnegative, so nothing cancels. `work` has four rows; their length
is twice the longest table plus 16.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import fused, njit

# With unsigned indices numba does not check for negative ones, so loops vectorise.
_U1, _U2, _U3, _U4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_U5, _U6, _U7 = np.uint64(5), np.uint64(6), np.uint64(7)
# The first guess of a sum is this factor times the few terms that it is estimated from.
_ABOVE = 2.0**12


@njit(inner=True)
def _eight_products(x, i, a0, a1, a2, a3, a4, a5, a6, a7):
    """Return the sums of four products each, a0 x[i + 7] + ... and a4 x[i + 3] + ... + a7 x[i]."""
    one = fused(a0, x[i + _U7], a1 * x[i + _U6]) + fused(a2, x[i + _U5], a3 * x[i + _U4])
    return one, fused(a4, x[i + _U3], a5 * x[i + _U2]) + fused(a6, x[i + _U1], a7 * x[i])


@njit(inner=True)
def _add_eight_closely(rows, row, wide, at, out, place, begin, stop, low):
    """Do what `add_eight` does, and add its rounding errors to low[k].

    Entries of `out` are larger than each half of the terms, so that a sum and its rounding error
    take three operations (Dekker 1971).
    """
    r = np.uint64(row)
    a0, a1, a2, a3 = rows[r], rows[r + _U1], rows[r + _U2], rows[r + _U3]
    a4, a5, a6, a7 = rows[r + _U4], rows[r + _U5], rows[r + _U6], rows[r + _U7]
    first = np.uint64(at) - _U7
    for k in range(np.uint64(begin), np.uint64(max(begin, stop))):
        t, u = _eight_products(wide, first + k, a0, a1, a2, a3, a4, a5, a6, a7)
        old = out[place + k]
        new = old + t
        last = new + u
        low[k] += (t - (new - old)) + (u - (last - new))
        out[place + k] = last


@njit(inner=True)
def add_eight(rows, row, wide, at, out, place, begin, stop):
    """Add rows[row] wide[at + k] + ... + rows[row + 7] wide[at + k - 7] to out[place + k].

    k goes from `begin` up to `stop`; `place` is unsigned.
    """
    r = np.uint64(row)
    a0, a1, a2, a3 = rows[r], rows[r + _U1], rows[r + _U2], rows[r + _U3]
    a4, a5, a6, a7 = rows[r + _U4], rows[r + _U5], rows[r + _U6], rows[r + _U7]
    first = np.uint64(at) - _U7
    for k in range(np.uint64(begin), np.uint64(max(begin, stop))):
        t, u = _eight_products(wide, first + k, a0, a1, a2, a3, a4, a5, a6, a7)
        out[place + k] += t + u


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
    head = min(max(begin, 0), size)
    to, of = np.uint64(head), at_b + np.uint64(max(-begin, 0))
    stop = np.uint64(max(0, min(nb + begin, size) - head))
    for j in range(to):
        work[3, j] = 0.0
    for j in range(stop):
        work[3, to + j] = b[of + j]
    for j in range(to + stop, np.uint64(size)):
        work[3, j] = 0.0
    return rows


@njit(inner=True)
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
    row, wide = work[2], work[3]
    for j in range(np.uint64(n)):
        out[at + j] = 0.0
    for i in range(0, rows, 8):
        begin, end = max(0, i - first), min(n, i + 7 + nb - first)
        add_eight(row, i, wide, rows - i, out, at, begin, end)


@njit(inner=True)
def convolve_closely(of_a, place_a, size_a, of_b, place_b, size_b, first, out, place, n, work):
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
    rows = _lay_out(a, at_a, na, b, at_b, nb, first, n, work)
    low, anchor, row, wide = work[0], work[1], work[2], work[3]
    # the anchor is a sum of eight different rows, the first and the last included
    for j in range(np.uint64(n)):
        anchor[j] = 0.0
    before = -1
    for q in range(8):
        i = q * (na - 1) // 7
        if i > before:
            w, to = _ABOVE * row[i], np.uint64(rows - i)
            for j in range(np.uint64(n)):
                anchor[j] += w * wide[to + j]
        before = i
    above = False
    while not above:
        for j in range(np.uint64(n)):
            low[j], out[at + j] = 0.0, anchor[j]
        for i in range(0, rows, 8):
            begin, end = max(0, i - first), min(n, i + 7 + nb - first)
            _add_eight_closely(row, i, wide, rows - i, out, at, begin, end, low)
        above = True
        for j in range(np.uint64(n)):
            out[at + j] = (out[at + j] - anchor[j]) + low[j]
            above &= not 2.0 * out[at + j] > anchor[j]
        if not above:
            for j in range(np.uint64(n)):
                anchor[j] = max(anchor[j], 4.0 * out[at + j])


@njit(inner=True)
def correlate(around, first, other, lo_other, out, lo_out, work):
    """Write sum over s of around[s] * other[s - l] to out[l]; arrays begin at the given values.

    `work` is that of a convolution, which has room for ``out.size + other.size`` entries as well.
    """
    size, mirrored = other.size, work[0]
    for j in range(size):
        mirrored[j] = other[size - 1 - j]
    begin = lo_out + lo_other - first + size - 1
    convolve_plainly(around, 0, around.size, mirrored, 0, size, begin, out, 0, out.size, work)
