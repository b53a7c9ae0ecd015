"""Messages of weights whose support ends inside their windows: `messages.fill`, then zeros."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.lacking import CLEAR, FAINT, extent, lacking
from congenial.kernels.network.messages import PRODUCT, UNARY, multiply, parts, scale_down, widest
from congenial.kernels.network.weights import fill_unary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_closely


@njit()
def fill(classes, law, least, most, windows, table, lost):
    """Fill all tables, with largest entries of about 1.

    ``least`` and ``most`` (c,) are the ends of the weight of each UNARY class, int64. Scales are
    not kept, because laws need only ratios within a table. ``lost`` (c,) is filled with a bound on
    the error of entries from subnormal numbers.
    """
    ctype, left, right, _ = classes
    kind, inverse, center, tilt = law
    lo, hi, offset = windows
    work = np.empty((4, 2 * widest(0, ctype.size, classes, windows) + 16))
    for c in range(ctype.size):
        if lo[c] > hi[c]:
            continue
        out = table[offset[c] : offset[c] + hi[c] - lo[c] + 1]
        if ctype[c] != UNARY:
            a, b = left[c], right[c]
            of_a = table[offset[a] : offset[a] + hi[a] - lo[a] + 1]
            of_b = table[offset[b] : offset[b] + hi[b] - lo[b] + 1]
            extent_a, extent_b = extent(of_a), extent(of_b)
            terms = min(of_a.size, of_b.size)
            short = lacking(*extent_a, lost[a], *extent_b, lost[b], terms)
            if ctype[c] == PRODUCT:
                multiply(c, classes, windows, table, out)
            else:
                convolve_closely(*parts(c, classes, windows, table), out, 0, out.size, work)
            lost[c] = short / scale_down(out)
            continue
        first, last = max(lo[c], least[c]), min(hi[c], most[c])
        out[:] = 0.0
        lost[c] = 0.0
        if first <= last:
            inside = out[first - lo[c] : last - lo[c] + 1]
            fill_unary(kind[c], inverse[c], center[c], tilt[c], first, inside)
            if min(inside[0], inside[-1]) < CLEAR:
                lost[c] = FAINT
