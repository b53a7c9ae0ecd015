"""Messages of a sum network: windows from the top down, tables from the bottom up.

A network is a list of classes in topological order, each a function on a window of integers:

* ``UNARY``: a tilted unary weight;
* ``MERGE``: the convolution of two classes, the law of the sum of two subtrees;
* ``PRODUCT``: a variable's own weight (left) times the law of the sum below it (right), read at
  ``sign * u``.

Tables are scaled by powers of two, which is exact, so that the largest entry is between 1/2 and 1.
The logarithms of the factors are stored beside the tables.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.spans import joint_rate
from congenial.kernels.network.weights import fill_unary
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_closely, convolve_plainly

UNARY = 0
MERGE = 1
PRODUCT = 2


# Entries beyond those that are read, at each end of a window: they show how tails decay.
_SPARE = 32.0


@njit(inner=True)
def largest(x):
    """Return the largest of nonnegative numbers."""
    top = 0.0
    for i in range(np.uint64(x.size)):
        top = max(top, x[i])
    return top


@njit(inner=True)
def power_above(x):
    """Return the least power of two that is at least x; 1 if x is not positive.

    It is at least 2^-1000, so that its inverse is finite.
    """
    if x <= 0.0:
        return 1.0
    if x < 2.0**-1000:
        return 2.0**-1000
    mantissa, exponent = math.frexp(x)
    return math.ldexp(1.0, exponent - 1 if mantissa == 0.5 else exponent)


@njit(inner=True)
def multiply(c, classes, windows, table, out):
    """Write the table of a product to `out`."""
    _, left, right, sign = classes
    lo, _, offset = windows
    a, b = left[c], right[c]
    at_a = offset[a] + lo[c] - lo[a]
    for i in range(out.size):
        below = sign[c] * (lo[c] + i)
        out[i] = table[at_a + i] * table[offset[b] + below - lo[b]]


@njit(inner=True)
def parts(c, classes, windows, table):
    """Return the factors of a merge and the index of its first sum, as `convolution` takes them."""
    _, left, right, _ = classes
    lo, hi, offset = windows
    a, b = left[c], right[c]
    size_a, size_b, first = hi[a] - lo[a] + 1, hi[b] - lo[b] + 1, lo[c] - lo[a] - lo[b]
    return table, offset[a], size_a, table, offset[b], size_b, first


@njit(inner=True)
def scale_down(out):
    """Divide a table by the power of two that makes its largest entry at most 1; return it."""
    top = power_above(largest(out))
    scale = 1.0 / top
    for i in range(out.size):
        out[i] *= scale
    return top


@njit(inner=True)
def widest(begin, end, classes, windows):
    """Return the number of entries of the longest table of classes begin..end-1 and their parts."""
    ctype, left, right, _ = classes
    lo, hi, _ = windows
    most = 0
    for c in range(begin, end):
        most = max(most, hi[c] - lo[c] + 1)
        if ctype[c] != UNARY:
            a, b = left[c], right[c]
            most = max(most, hi[a] - lo[a] + 1, hi[b] - lo[b] + 1)
    return most


@njit()
def fill(begin, end, classes, law, windows, table, factor, log_scale, plain):
    """Fill the tables of classes begin..end-1 and their scale factors.

    Sums of classes that are ``plain`` (c,) are not compensated, see `convolution`. ``factor`` is
    the power of two that a table was divided by; ``log_scale`` is the logarithm of all factors
    by which a table was divided. Classes without a window are skipped.
    """
    ctype, left, right, _ = classes
    kind, inverse, center, tilt = law
    lo, hi, offset = windows
    work = np.empty((4, 2 * widest(begin, end, classes, windows) + 16))
    for c in range(begin, end):
        if lo[c] > hi[c]:
            continue
        width = hi[c] - lo[c] + 1
        out = table[offset[c] : offset[c] + width]
        if ctype[c] == UNARY:
            log_scale[c] = fill_unary(kind[c], inverse[c], center[c], tilt[c], lo[c], out)
            continue
        if ctype[c] == PRODUCT:
            multiply(c, classes, windows, table, out)
        elif plain[c]:
            convolve_plainly(*parts(c, classes, windows, table), out, 0, width, work)
        else:
            convolve_closely(*parts(c, classes, windows, table), out, 0, width, work)
        factor[c] = scale_down(out)
        log_scale[c] = log_scale[left[c]] + log_scale[right[c]] + elementary.log(factor[c])


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
def surround(classes, moments, nats, mid_lo, mid_hi, out_var, out_lo, out_hi):
    """Compute from the top down, for each class, the message from the rest of the network.

    `out_var`, `out_lo` and `out_hi` are the variance and the decay rates of the message from
    outside. `mid_lo` and `mid_hi` are the least and largest conditional means over all uses of a
    class. All treat messages as Gaussian. On entry, they have the values of the top classes; other
    classes have -1 in `out_var`, and inf or -inf in the others.
    """
    ctype, left, right, sign = classes
    mean, var, rate_lo, rate_hi = moments
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
def cover(ctype, left, right, sign, support_lo, support_hi, needed, lo, hi):
    """Make every window reachable, and hardly larger than its readers use.

    Parts of a product cover its window, and merges fit within their parts. No entry of a product's
    part is read beyond the product's window. No entry of a merge's part is read if the other part's
    support leaves no sum in the window. `needed` (c, 2) has the ends of the range that is read of
    each class: on entry -inf and inf for top classes, and inf and -inf for the others.
    """
    for c in range(ctype.size - 1, -1, -1):
        if needed[c, 0] <= needed[c, 1]:
            lo[c] = max(lo[c], needed[c, 0] - _SPARE)
            hi[c] = min(hi[c], needed[c, 1] + _SPARE)
        if ctype[c] == PRODUCT:
            a, b = left[c], right[c]
            lo[a], hi[a] = min(lo[a], lo[c]), max(hi[a], hi[c])
            low, high = (lo[c], hi[c]) if sign[c] > 0 else (-hi[c], -lo[c])
            lo[b], hi[b] = min(lo[b], low), max(hi[b], high)
            needed[a, 0], needed[a, 1] = min(needed[a, 0], lo[c]), max(needed[a, 1], hi[c])
            needed[b, 0], needed[b, 1] = min(needed[b, 0], low), max(needed[b, 1], high)
        elif ctype[c] == MERGE:
            a, b = left[c], right[c]
            for side in range(2):
                i, j = (a, b) if side == 0 else (b, a)
                needed[i, 0] = min(needed[i, 0], lo[c] - support_hi[j])
                needed[i, 1] = max(needed[i, 1], hi[c] - support_lo[j])
            # each part gets half of the missing width, or the rest if the other's support ends
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
