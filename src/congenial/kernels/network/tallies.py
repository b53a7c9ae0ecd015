"""Tables over pairs of a value and a tally, a second sum along a forest.

Benchmark row: `crossing`.

A table holds value u and tally s at ``(u - lo) * (tally_hi - tally_lo + 1) + s - tally_lo``. All
terms are nonnegative, so errors stay relative. Possible entries are at least `FLOOR`, so that
products of two are not subnormal, and no possible value is lost. Proof: `proofs/cut-sets.md`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

# Least positive entry of a table: 2^62 over a product of two is still a double.
FLOOR = 2.0**-480
# Integer weights of a choice add up to at most 2^CHOICE; words have further bits.
CHOICE, UNUSED = 62, np.uint64(2)
# Sum of the weights of a choice before they are rounded up, each by one unit, for up to 2^26.
_WHOLE = (1.0 - 2.0**-35) * 2.0**CHOICE


@njit(inner=True)
def _add(w, b, out):
    """Add w * b to `out`."""
    for k in range(out.size):
        out[k] += w * b[k]


@njit()
def merge(a, b, first, first_tally, out):
    """Write the convolution of a (u, s) and b (u, s) to `out`, for the entries of `out` only.

    Entry (i, j) of `out` is for the sum ``first + i`` of indices of values and ``first_tally + j``
    of tallies.
    """
    out[:] = 0.0
    for i in range(a.shape[0]):
        low, high = max(0, first - i), min(b.shape[0], out.shape[0] + first - i)
        for s in range(a.shape[1]):
            w = a[i, s]
            if w == 0.0:
                continue
            at = s - first_tally
            begin, stop = max(0, -at), min(b.shape[1], out.shape[1] - at)
            if stop <= begin:
                continue
            for j in range(low, high):
                _add(w, b[j, begin:stop], out[i + j - first, at + begin : at + stop])


@njit()
def read(own, below, sign, shift, lo, lo_below, first_tally, out):
    """Write own[u] * below[sign * u - shift] to out[u], a convolution in the tallies."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        at = sign * (lo + i) - shift - lo_below
        if at < 0 or at >= below.shape[0]:
            continue
        for s in range(own.shape[1]):
            w = own[i, s]
            if w == 0.0:
                continue
            k0 = s - first_tally
            for k in range(max(0, -k0), min(below.shape[1], out.shape[1] - k0)):
                out[i, k0 + k] += w * below[at, k]


@njit()
def enter(own, sign, lo, lo_tally, lo_out, out):
    """Write own[u, s - sign * u] to out[u, s]: the value enters its own tally."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        by = lo_tally + sign * (lo + i) - lo_out
        for s in range(max(0, -by), min(own.shape[1], out.shape[1] - by)):
            out[i, by + s] = own[i, s]


@njit()
def close(own, rest, total, lo_tally, lo_rest, out):
    """Write the sum over s of own[u, s] * rest[total - s] to out[u]."""
    out[:] = 0.0
    for i in range(out.size):
        for s in range(own.shape[1]):
            at = total - (lo_tally + s) - lo_rest
            if 0 <= at < rest.size:
                out[i] += own[i, s] * rest[at]


@njit(inner=True)
def rounded(weight, unit):
    """Return a weight as an integer, rounded up; 0 if it is 0."""
    return np.int64(weight * unit) + int(weight > 0.0)


@njit()
def pick(weights, total, word):
    """Return an index, drawn with a probability of its integer weight over 2^62, and that weight.

    `total` is at least the sum of the weights, and an index has at least its share of it, less
    2^-34. Returns ``weights.size`` and 0 for the words that are left over. Every index is visited
    for every outcome.
    """
    unit = _WHOLE / total
    target = np.int64(word >> UNUSED)
    below = np.int64(0)
    passed = 0
    for k in range(weights.size):
        below += rounded(weights[k], unit)
        passed += int(below <= target)
    if passed == weights.size:
        return passed, np.int64(0)
    return passed, rounded(weights[passed], unit)


@njit(inner=True)
def pick_merge(a, b, i, s, total, word):
    """Return indices (u, s) in `a` given the summed indices of both tables, and their weight.

    The weight is 0 if the word chooses nothing.
    """
    weights = np.zeros(a.size)
    for u in range(max(0, i - b.shape[0] + 1), min(a.shape[0], i + 1)):
        for k in range(max(0, s - b.shape[1] + 1), min(a.shape[1], s + 1)):
            weights[u * a.shape[1] + k] = a[u, k] * b[i - u, s - k]
    chosen, weight = pick(weights, total, word)
    return chosen // a.shape[1], chosen % a.shape[1], weight
