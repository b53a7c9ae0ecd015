"""Envelopes of messages: tables, with geometric tails, that are nowhere below the message.

Benchmark rows: `everywhere`, `wide`.

An envelope U of a class is a function of all integers: its table inside the window, and
``edge * ratio^k`` at k steps beyond each end. Beyond the support it is 0. Envelopes are made from
those of the parts, so that at every integer s

* a weight is at most U(s);
* a product of two envelopes is at most ``factor * U(s)``;
* the convolution of two envelopes is at most ``factor * U(s)`` for a merge.

Proof: `proofs/forest-draws.md`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.certify import add_tail
from congenial.kernels.network.messages import (
    PRODUCT,
    UNARY,
    multiply,
    parts,
    scale_down,
    widest,
)
from congenial.kernels.network.weights import fill_unary
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_plainly
from congenial.kernels.numerics.laws import GAUSSIAN, GEOMETRIC_SUM, LAPLACE

# Entries are at least this, so that none is lost where doubles are too small.
FLOOR = 2.0**-860
# Least factor of a merge, so that products with it stay above the least double; and of a product,
# so that an entry too small for doubles is below FLOOR.
LEAST_FACTOR, LEAST_OF_PRODUCTS = 2.0**-100, 2.0**-200
# Part by which envelopes exceed computed weights and products, which err by a few 2^-53.
ABOVE = 2.0**-46
# Part by which a weight may be off for each nat below its mode: its scale was rounded.
NAT = 2.0**-52
# Part by which ratios and edges exceed what was computed.
_TAIL = 1.0 + 2.0**-40
_FAR = 1.0 + 1e-9
# Entries of tables are at most this.
_TOP = 1.001
# Part of the nats of a part's decay that a merge's tail keeps, if its table does not fall faster;
# and the factor of the ratio of a part that rises.
_KEPT, _RISING = 0.9, 1.02
# Multiple of the last entry of a merge above which another ratio is tried for its tail.
_LOOSE = 8.0
# Powers of the ratio far beyond a product's window that its own tail may have.
_TRIED = (1.0, 1.0, 0.5, 0.25, 0.125)
# Least ratio of any tail, so that no product of two is 0; of a merge's tail; and the entries at the
# end of a table that have no ratio.
_STEEPEST, _LEAST, _NONE = 2.0**-500, 2.0**-100, 2.0**-600
# Parts of the last entries of a merge, and of its mean entry, that values beyond the windows of its
# parts may add evenly to all entries.
_EVEN, _SELDOM = 2.0**-4, 2.0**-38
# Deviations from the mean at which the part that was added is looked at.
_LOOKED = (-4.0, -2.0, 0.0, 2.0, 4.0)
# Zeros before and after the array to which `add_tail` adds a tail.
_PAD = 8
# Steps over which the decay at the end of a table is measured.
_BACK = 8


@njit(inner=True)
def _weight_ratio(kind, inverse, center, tilt, end, step):
    """Return the most by which a weight changes from one value beyond `end` to the next."""
    away = step * (end - center)
    if kind == GAUSSIAN:
        rise = step * tilt - inverse * (2.0 * away + 1.0)
    elif kind == LAPLACE:
        rise = step * tilt - (inverse if away >= 0.0 else -inverse)
    elif kind == GEOMETRIC_SUM:
        # `center` is the number of variables
        k = abs(end)
        if step * end >= 0.0:
            rise = elementary.log((k + center) / (k + 1.0)) - inverse + step * tilt
        else:
            rise = elementary.log(k / (k + center - 1.0)) + inverse + step * tilt
    else:
        rise = step * tilt
    return max(elementary.exp(rise), _STEEPEST) * _TAIL


@njit(inner=True)
def _bound_weight(c, law, windows, support_lo, support_hi, table, tails):
    """Raise a table of weights above the exact weights, and bound those beyond it.

    Returns the largest part by which an entry was raised.
    """
    kind, inverse, center, tilt = law
    lo, hi, offset = windows
    at, n = offset[c], hi[c] - lo[c] + 1
    most = 0.0
    for i in range(n):
        nats = 0.0
        if kind[c] == LAPLACE:
            nats = inverse[c] * abs(lo[c] + i - center[c])
        elif kind[c] == GAUSSIAN:
            nats = inverse[c] * (lo[c] + i - center[c]) ** 2
        elif kind[c] == GEOMETRIC_SUM:
            nats = inverse[c] * abs(lo[c] + i) + 4.0
        more = ABOVE + NAT * nats
        most = max(most, more)
        table[at + i] = table[at + i] * (1.0 + more) + FLOOR
    own = kind[c], inverse[c], center[c], tilt[c]
    for j in range(4):
        tails[c, j] = 0.0
    if lo[c] > support_lo[c]:
        tails[c, 0], tails[c, 1] = table[at] * _TAIL, _weight_ratio(*own, float(lo[c]), -1.0)
    if hi[c] < support_hi[c]:
        tails[c, 2] = table[at + n - 1] * _TAIL
        tails[c, 3] = _weight_ratio(*own, float(hi[c]), 1.0)
    return most


@njit(inner=True)
def _end_ratio(table, at, n, step):
    """Return the mean ratio of the last entries of a table, from one to the next by `step`."""
    back = min(_BACK, max((n - 1) // 4, 1), n - 1)
    end = at + (n - 1 if step > 0 else 0)
    inner = table[end - step * back]
    if back == 0 or not inner > 0.0:
        return 1.0
    return elementary.power(table[end] / inner, 1.0 / back)


@njit(inner=True)
def _log_value(c, x, windows, table, tails):
    """Return the logarithm of the envelope of class c at x, which doubles may be too small for."""
    lo, hi, offset = windows
    if lo[c] <= x <= hi[c]:
        return elementary.log(table[offset[c] + x - lo[c]])
    i, steps = (0, lo[c] - x) if x < lo[c] else (2, x - hi[c])
    if not tails[c, i] > 0.0:
        return -np.inf
    return elementary.log(tails[c, i]) + steps * elementary.log(tails[c, i + 1])


@njit(inner=True)
def _bound_product(c, classes, windows, table, factor, tails):
    """Bound a product of two envelopes beyond the window of class c."""
    _, left, right, sign = classes
    lo, hi, offset = windows
    a, b, s = left[c], right[c], sign[c]
    n = hi[c] - lo[c] + 1
    for side in range(2):
        step = 1 if side == 1 else -1
        end = hi[c] if side == 1 else lo[c]
        i, j = 2 * side, 2 * side if s > 0 else 2 - 2 * side
        # steps beyond the window within which some part has a table
        own = hi[a] - end if side == 1 else end - lo[a]
        # the right part is read upwards or downwards
        below = end * s
        other = hi[b] - below if step * s > 0 else below - lo[b]
        most = max(own, other, 0)
        if tails[a, i] <= 0.0:
            most = own
        if tails[b, j] <= 0.0:
            most = min(most, other) if tails[a, i] <= 0.0 else other
        open_ended = tails[a, i] > 0.0 and tails[b, j] > 0.0
        last = tails[a, i + 1] * tails[b, j + 1] if open_ended else 0.0
        tails[c, i] = tails[c, i + 1] = 0.0
        if not open_ended and most <= 0:
            continue
        # the first one is about that of the table, which may have a jump at its end
        end_ratio = _end_ratio(table, offset[c], n, step)
        bends = np.empty(len(_TRIED) + 2)
        for t in range(len(_TRIED)):
            ratio = max(last, end_ratio)
            if last < 1.0 and (t > 0 or ratio >= 1.0):
                ratio = elementary.power(max(last, _LEAST), _TRIED[t])
            bends[t] = elementary.log(max(ratio, _LEAST))
        # one part may be flat for long, while the other one's tail falls
        bends[-2] = elementary.log(max(tails[a, i + 1], last, _LEAST))
        bends[-1] = elementary.log(max(tails[b, j + 1], last, _LEAST))
        tops = np.full(bends.size, elementary.log(table[offset[c] + (n - 1 if side == 1 else 0)]))
        for k in range(1, most + 2):
            x = end + step * k
            log = _log_value(a, x, windows, table, tails) - elementary.log(factor[c])
            log += _log_value(b, s * x, windows, table, tails)
            for t in range(bends.size):
                tops[t] = max(tops[t], log - k * bends[t])
        best, lowest = 0, np.inf
        for t in range(bends.size):
            ratio = elementary.exp(bends[t])
            mass = tops[t] + bends[t] - elementary.log(1.0 - ratio) if ratio < 1.0 else np.inf
            if mass < lowest:
                best, lowest = t, mass
        tails[c, i], tails[c, i + 1] = (
            elementary.exp(tops[best]) * _FAR,
            elementary.exp(bends[best]) * _TAIL,
        )


@njit(inner=True)
def _sum_and_top(c, d, side, windows, table, tails):
    """Return sum and maximum of U(x) d^k, where x is k steps inside of the end of class c.

    The end is the upper one if `side` is 1. The tail beyond the other end is left out. Infinite if
    the tail beyond the end does not fall fast enough.
    """
    lo, hi, offset = windows
    n = hi[c] - lo[c] + 1
    at, step = offset[c] + (n - 1 if side == 1 else 0), -1 if side == 1 else 1
    d2, d4 = d * d, d * d * d * d
    total, top, p, j = 0.0, 0.0, 1.0, 0
    while j + 8 <= n:
        i = at + step * j
        x0, x1 = table[i], table[i + step] * d
        x2, x3 = table[i + 2 * step], table[i + 3 * step] * d
        x4, x5 = table[i + 4 * step], table[i + 5 * step] * d
        x6, x7 = table[i + 6 * step], table[i + 7 * step] * d
        total += p * (((x0 + x1) + d2 * (x2 + x3)) + d4 * ((x4 + x5) + d2 * (x6 + x7)))
        high = d4 * max(x4, x5, d2 * max(x6, x7))
        top = max(top, p * max(x0, x1, d2 * max(x2, x3), high))
        p *= d4 * d4
        j += 8
    while j < n:
        here = p * table[at + step * j]
        total += here
        top = max(top, here)
        p *= d
        j += 1
    i = 2 * side
    if tails[c, i] > 0.0:
        ratio = tails[c, i + 1] / d
        total += tails[c, i] * ratio / (1.0 - ratio) if ratio < 1.0 else np.inf
        top = max(top, tails[c, i] * ratio) if ratio <= 1.0 else np.inf
    return total, top


@njit(inner=True)
def _beyond_both(wide, narrow, d, side, inside, windows, table, tails):
    """Bound a convolution one step beyond an end over d; it changes by d from step to step.

    The end is ``inside`` steps inside of the sum of the ends of both parts.
    """
    total, _ = _sum_and_top(narrow, d, side, windows, table, tails)
    _, top = _sum_and_top(wide, d, side, windows, table, tails)
    return elementary.exp(elementary.log(total) + elementary.log(top) - inside * elementary.log(d))


@njit(inner=True)
def _bound_crossing(e, f, c, d, side, windows, tails):
    """Bound, one step beyond the end of class c over d, sums of e beyond its other end and f.

    From one step to the next, this bound changes by d, which is at least the ratio of f's tail.
    """
    lo, hi, _ = windows
    i, j = 2 * side, 2 - 2 * side
    if not tails[e, j] > 0.0:
        return 0.0
    # steps from the end of f to the value of f next to it
    beyond = hi[c] - lo[e] - hi[f] if side == 1 else lo[f] + hi[e] - lo[c]
    out = 0.0
    if tails[f, i] > 0.0:
        joint = tails[e, j + 1] * tails[f, i + 1]
        if not joint < 1.0:
            return np.inf
        first = max(beyond, 0)
        out = (
            tails[e, j]
            * tails[f, i]
            * elementary.power(tails[f, i + 1], first)
            * joint
            / (1.0 - joint)
        )
    if beyond < 0:
        r = tails[e, j + 1]
        mass = tails[e, j] * r / (1.0 - r) if r < 1.0 else np.inf
        out = (out + mass * _highest(f, tails)) * max(1.0, elementary.power(d, beyond))
    return out


@njit(inner=True)
def _bound_merge(c, falls, classes, windows, table, factor, tails, support_lo, support_hi):
    """Bound a convolution of two envelopes beyond the window of class c.

    For every d > 0, a convolution at s is at most the maximum of one factor, multiplied by d^-x,
    times the sum of the other one, times d^s. ``falls`` has the ratios of the last entries. What
    lies beyond the other end of a part is bounded apart.
    """
    _, left, right, _ = classes
    lo, hi, offset = windows
    a, b = left[c], right[c]
    for side in range(2):
        i = 2 * side
        tails[c, i] = tails[c, i + 1] = 0.0
        if (side == 1 and hi[c] >= support_hi[c]) or (side == 0 and lo[c] <= support_lo[c]):
            continue
        ra = tails[a, i + 1] if tails[a, i] > 0.0 else 0.0
        rb = tails[b, i + 1] if tails[b, i] > 0.0 else 0.0
        # the maximum is that of the wider part, or of one that still rises
        first = hi[a] - lo[a] >= hi[b] - lo[b] if max(ra, rb) < 1.0 else ra >= rb
        wide, narrow = (a, b) if first else (b, a)
        r, rest = (ra, rb) if first else (rb, ra)
        least = max(_LEAST, r, elementary.power(rest, _KEPT) if rest < 1.0 else rest * _RISING)
        d, inside = max(falls[side], least), lo[c] - lo[a] - lo[b]
        if side == 1:
            inside = hi[a] + hi[b] - hi[c]
        bound = _beyond_both(wide, narrow, d, side, inside, windows, table, tails)
        end = table[offset[c] + (hi[c] - lo[c] if side == 1 else 0)]
        if max(ra, rb) > 0.0 and least < 1.0 and (d >= 1.0 or bound > _LOOSE * end * factor[c]):
            # the table may have a jump at its end, or end before its mode
            for t in range(2):
                other = math.sqrt(least) if t == 0 else elementary.exp(-2.0 / (inside + 2.0))
                other = max(other, least)
                found = _beyond_both(wide, narrow, other, side, inside, windows, table, tails)
                if d >= 1.0 or found * other * (1.0 - d) < bound * d * (1.0 - other):
                    d, bound = other, found
        bound += _bound_crossing(a, b, c, d, side, windows, tails)
        bound += _bound_crossing(b, a, c, d, side, windows, tails)
        tails[c, i], tails[c, i + 1] = max(bound / factor[c] * _FAR, FLOOR), d * _TAIL


@njit(inner=True)
def _mass_beyond(c, tails):
    """Return the sum of both tails of an envelope; inf if one does not fall."""
    out = 0.0
    for i in (0, 2):
        if tails[c, i] > 0.0:
            r = tails[c, i + 1]
            out += tails[c, i] * r / (1.0 - r) if r < 1.0 else np.inf
    return out


@njit(inner=True)
def _highest(c, tails):
    """Return a bound on all values of an envelope, whose tails fall."""
    return max(_TOP, tails[c, 0], tails[c, 2])


@njit(inner=True)
def _add_beyond(c, classes, windows, supports, table, tails, body):
    """Add to a merge what values beyond the windows of its parts contribute, or more.

    The table is not yet scaled.
    """
    _, left, right, _ = classes
    lo, hi, offset = windows
    support_lo, support_hi = supports
    a, b = left[c], right[c]
    at, n = offset[c], hi[c] - lo[c] + 1
    if not (tails[a, 0] > 0.0 or tails[a, 2] > 0.0 or tails[b, 0] > 0.0 or tails[b, 2] > 0.0):
        return
    small = 0.0
    for i in range(n):
        small += table[at + i]
    small *= _SELDOM / n
    if lo[c] > support_lo[c]:
        small = min(small, _EVEN * table[at])
    if hi[c] < support_hi[c]:
        small = min(small, _EVEN * table[at + n - 1])
    even = _mass_beyond(a, tails) * _highest(b, tails) + _mass_beyond(b, tails) * _highest(a, tails)
    if not even <= small:
        even = 0.0
        first = lo[c] - lo[a] - lo[b]
        wa, wb = hi[a] - lo[a] + 1, hi[b] - lo[b] + 1
        for part in range(2):
            one, other, size = (a, b, wb) if part == 0 else (b, a, wa)
            for i in range(_PAD):
                body[i] = body[_PAD + size + i] = 0.0
            for i in range(size):
                body[_PAD + i] = table[offset[other] + i]
            for side in range(2):
                down = side == 0
                i, j = (0, 2) if down else (2, 0)
                begins = wa + wb - 1 - first - n if down else first
                begins -= (wa if part == 0 else wb) - 1
                # pairs beyond both windows belong to the first part
                far = tails[other, j] if part == 0 else 0.0
                to = table, at, n, begins, down
                of = tails[one, i] * _FAR, tails[one, i + 1], body, size, far, tails[other, j + 1]
                even += add_tail(*to, *of, small)
    for i in range(n):
        table[at + i] += even * _FAR


@njit(inner=True)
def _looked(c, windows, middle, spread, j):
    """Return where the entry of class c lies that is looked at."""
    lo, hi, offset = windows
    x = np.int64(np.rint(middle[c] + _LOOKED[j] * spread[c]))
    return offset[c] + min(max(x, lo[c]), hi[c]) - lo[c]


@njit(inner=True)
def _finish(c, terms, classes, windows, supports, posterior, table, factor, tails, rise, body):
    """Make a computed convolution an envelope."""
    _, left, right, _ = classes
    lo, hi, offset = windows
    at, n = offset[c], hi[c] - lo[c] + 1
    a, b = left[c], right[c]
    row = min(hi[a] - lo[a], hi[b] - lo[b]) + 1
    falls = (
        _end_ratio(table, at, n, -1) if table[at] > _NONE else _LEAST,
        _end_ratio(table, at, n, 1) if table[at + n - 1] > _NONE else _LEAST,
    )
    middle, spread, outside = posterior
    before = np.empty(len(_LOOKED))
    for j in range(len(_LOOKED)):
        before[j] = table[_looked(c, windows, middle, spread, j)]
    _add_beyond(c, classes, windows, supports, table, tails, body)
    # the mean may lie far beyond the window
    least = np.inf
    for j in range(len(_LOOKED)):
        x = _looked(c, windows, middle, spread, j)
        least = min(least, (x - offset[c] + lo[c] - middle[c]) ** 2)
    added = total = 0.0
    for j in range(len(_LOOKED)):
        x = _looked(c, windows, middle, spread, j)
        more = (x - offset[c] + lo[c] - middle[c]) ** 2 - least
        weight = elementary.exp(-0.5 * more / max(outside[c], 1e-9))
        added += weight * (table[x] - before[j])
        total += weight * table[x]
    rise[c] = added / total
    top = scale_down(table[at : at + n])
    factor[c] *= top
    # errors of the sums, and integers of a row of choices that are rounded up
    more = 1.0 + ABOVE + (terms // 8 + 16) * 2.0**-52 + row * 2.0**-60
    for i in range(n):
        table[at + i] = table[at + i] * more + FLOOR
    _bound_merge(c, falls, classes, windows, table, factor, tails, *supports)


@njit()
def fill_envelopes(begin, end, classes, law, supports, posterior, windows, filled, enveloped):
    """Fill the envelopes of classes begin..end-1.

    ``raised`` (2,) becomes the largest part by which a weight was raised, if that is more: of a
    sum of geometric variables, and of all others.

    ``posterior`` has about the mean and the deviation of each class given all others, and the
    variance of what all others say of it; shapes (c,).
    ``tails`` (c, 4) has the edge and the ratio of each tail, below and above. ``rise`` (c,) is the
    part of a merge that comes from beyond the windows of its parts, near that mean. ``log_scale``
    is filled for weights alone: the logarithm by which they were divided. Classes without a window
    are skipped.
    """
    ctype = classes.ctype
    kind, inverse, center, tilt = law
    lo, hi, offset = windows
    table, factor, log_scale = filled
    tails, rise, raised = enveloped
    work = np.empty((4, 2 * widest(begin, end, classes, windows) + 16))
    body = np.empty(widest(begin, end, classes, windows) + 16)
    for c in range(begin, end):
        rise[c], factor[c] = 0.0, 1.0
        if lo[c] > hi[c]:
            continue
        at, n = offset[c], hi[c] - lo[c] + 1
        if ctype[c] == UNARY:
            out = table[at : at + n]
            log_scale[c] = fill_unary(kind[c], inverse[c], center[c], tilt[c], lo[c], out)
            own = _bound_weight(c, law, windows, *supports, table, tails)
            other = 0 if kind[c] == GEOMETRIC_SUM else 1
            raised[other] = max(raised[other], own)
        elif ctype[c] == PRODUCT:
            out = table[at : at + n]
            multiply(c, classes, windows, table, out)
            factor[c] = scale_down(out)
            for i in range(n):
                table[at + i] = table[at + i] * (1.0 + ABOVE) + FLOOR
            _bound_product(c, classes, windows, table, factor, tails)
        else:
            given = parts(c, classes, windows, table)
            convolve_plainly(*given, table, at, n, work)
            terms = min(given[2], given[5])
            to = table, factor, tails, rise, body
            _finish(c, terms, classes, windows, supports, posterior, *to)


@njit()
def finish_envelope(c, classes, supports, posterior, windows, filled, enveloped):
    """Make an envelope of a merge whose table is at least the convolution, filled by transforms."""
    body = np.empty(widest(c, c + 1, classes, windows) + 16)
    table, factor, _ = filled
    tails, rise, _ = enveloped
    rise[c] = 0.0
    _finish(c, 0, classes, windows, supports, posterior, table, factor, tails, rise, body)
