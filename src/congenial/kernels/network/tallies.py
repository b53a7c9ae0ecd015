"""Tables over pairs of a value and a tally, a second sum along a forest.

Benchmark row: `crossing`.

A table holds value u and tally s at ``(u - lo) * (tally_hi - tally_lo + 1) + s - tally_lo``. All
terms are nonnegative, so errors stay relative. Entries below `LEAST` times the largest are left
out, so that products are not subnormal, which processors compute slowly.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.tape import scaled

LEAST = 1e-150


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
            if w < LEAST:
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
            if w < LEAST:
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


@njit()
def pick(weights, word):
    """Return an index with probability proportional to `weights`, up to size * 2^-61 in all.

    The rounding remainder goes to the largest weight. Every index is visited for every outcome.
    """
    total = 0.0
    for k in range(weights.size):
        total += weights[k]
    unit = math.ldexp(1.0, 61 - math.frexp(total)[1])
    target, _ = scaled(word, np.int64(total * unit))
    below = np.int64(0)
    passed, best = 0, 0
    for k in range(weights.size):
        if weights[k] > weights[best]:
            best = k
        below += np.int64(weights[k] * unit)
        passed += int(below <= target)
    return passed if passed < weights.size else best


@njit(inner=True)
def pick_merge(a, b, i, s, word):
    """Return indices (u, s) in `a` given the summed indices of both tables."""
    weights = np.zeros(a.size)
    for u in range(max(0, i - b.shape[0] + 1), min(a.shape[0], i + 1)):
        for k in range(max(0, s - b.shape[1] + 1), min(a.shape[1], s + 1)):
            weights[u * a.shape[1] + k] = a[u, k] * b[i - u, s - k]
    chosen = pick(weights, word)
    return chosen // a.shape[1], chosen % a.shape[1]
