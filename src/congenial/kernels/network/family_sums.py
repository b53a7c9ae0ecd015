"""Laws of the sums of families of leaves: where they lie, and their tables.

A leaf with Laplace noise of inverse scale i and mode 0 that is at least -c is -c + J + G, with
independent J and G: G is geometric with ratio q = exp(-i), and J, its *lift*, lies in 0..c with
weights q^c at 0 and (1 - q^2) q^(c - j) at j. So the sum of k leaves is that of their lifts, which
are short, and of k geometric variables, a negative binomial one (`proofs/family-draws.md`). All
laws here are tilted by exp(tilt * value), which changes no conditional law.

Benchmark row: `bounded`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.weights import exponent, fill_unary
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.convolution import convolve_plainly
from congenial.kernels.numerics.doubled import doubled_exp, two_product
from congenial.kernels.numerics.laws import GEOMETRIC_SUM, LAPLACE

# Nats by which bounds on tails are raised, since doubles compute them.
MARGIN = 1e-6
# Nats below the largest entry of a table at which its ends are cut.
_CUT = 41.0
# Nats by which a bound beyond a table is raised, so that it need not fall as slowly as its entries,
# until it falls at the first share of the known rate; the second share is the least.
_ROOMS, _STEEP, _SLOW = (2.0, 5.0, 8.0), 0.7, 0.01
# Least log of a bound on a sum, such that doubles hold the bound.
_LEAST = -600.0
# For a bound beyond a table, only the largest of several entries is looked at: of as many as their
# distance from the table over `_SHARE`. And most such groups, beyond any table's size.
_SHARE, _LEVELS = 8, 256
# Most weight beyond one end of a table, and the largest sum of its entries.
LARGEST_TAIL, _WHOLE = 2.0**30, 2.0**62 * (1.0 - 2.0**-30)
# Nats by which a lift's weights differ below which they count as equal.
_EVEN = 1e-4
# Points on each side of the mode of a weighted normal law, the nearest one as a share of the least
# width, and the farthest one in deviations.
_POINTS, _NEAR, _REACH = 20, 0.05, 7.0
# Deviations from which on a continued fraction gives a normal law's tail, its terms, and deviations
# from which on the first terms of a series in 1 / x^2 give the tail's moments.
_FAR, _FRACTIONS, _FARTHEST = 2.5, 12, 100.0
# Squared deviations above which hardly anything of a normal law lies on the other side of 0.
_WHOLE_LAW = 400.0
# Most steps of a tilt, and the squared distance from the wanted mean at which they stop, in
# variances.
_STEPS, _CLOSE = 50, 0.01
# Units of rounding of an entry of a lift's table, of a sum (`convolution`), of a negative binomial
# weight (`weights`), and of a table's entry beside its sum. A sum adds one unit for as many terms.
_LIFT, _SUM, _NEGATIVE_BINOMIAL, ENTRY = 4.0, 4.0 + 2.0**-8, 2.0, 12.0
_TERMS = 8.0
_UNIT = 2.0**-53


@njit(inner=True)
def _cumulant(gaps, counts, begin, stop, size, inverse, tilt):
    """Return the log of the summed weights of a family's sum above its least value."""
    out = -size * elementary.log(-elementary.expm1(tilt - inverse))
    rate = -(tilt + inverse)
    most, near, away = -elementary.expm1(-2.0 * inverse), -elementary.expm1(-abs(rate)), abs(rate)
    for i in range(begin, stop):
        # times exp(tilt * gap) at the top of a lift, or 1 at its bottom
        gap = float(gaps[i])
        whole = -elementary.expm1(-away * gap)
        body = whole / near if away > 0.0 else gap
        if rate > 0.0:
            log = elementary.log1p(most * (1.0 - near) * body) - inverse * gap
        else:
            log = elementary.log(most * body + (1.0 - whole)) + tilt * gap
        out += counts[i] * log
    return out


@njit(inner=True)
def moments_of_family(gaps, counts, begin, stop, size, inverse, tilt):
    """Return mean and variance of a family's sum above its least value; nan without a law."""
    room = -elementary.expm1(tilt - inverse)
    if not room > 0.0:
        return np.nan, np.nan
    mean = size * (1.0 - room) / room
    variance = mean / room
    rate = tilt + inverse
    away, most, near = abs(rate), 0.0, 0.0
    for i in range(begin, stop):
        # a lift is 0, or has a geometric law that is cut off, on 1 .. gap, from its likelier end on
        c = float(gaps[i])
        if c == 0.0:
            continue
        if most == 0.0:
            most, near = -elementary.expm1(-2.0 * inverse), -elementary.expm1(-away)
        whole = -elementary.expm1(-away * c)
        far = 1.0 - whole
        if away * c < _EVEN:
            body, first, second = c, 0.5 * (c + 1.0), (c * c - 1.0) / 12.0
        else:
            body, cut = whole / near, c * far / whole
            first = 1.0 / near - cut
            second = (1.0 - near) / (near * near) - cut * c / whole
        # the likelier end is the top for a positive rate
        if rate >= 0.0:
            share = most * body / (most * body + far)
            first = c + 1.0 - first
        else:
            share = most * body * (1.0 - near)
            share /= share + 1.0
        mean += counts[i] * share * first
        variance += counts[i] * share * (second + (1.0 - share) * first * first)
    return mean, max(variance, 1.0)


@njit()
def place_leaves(number, begins, gaps, counts, size, inverse, tilt, depth, placed):
    """Fill rows `number` of `placed` (m, 4): ends, and tilts of the ends, of each sum.

    Distinct gaps of family f are at begins[f] .. begins[f + 1] - 1, with their numbers in `counts`.
    Beyond each end, the law has at most exp(-depth) of the probability (Chernoff), also if it is
    tilted outwards by less than the tilt of the end. Ends are nan if the law does not exist.
    """
    for f in number:
        law = gaps, counts, begins[f], begins[f + 1], size[f], inverse[f]
        room = inverse[f] - tilt[f]
        _, variance = moments_of_family(*law, tilt[f])
        placed[f, 0] = placed[f, 1] = np.nan
        if not variance > 0.0:
            continue
        here, own = _cumulant(*law, tilt[f]), math.sqrt(2.0 * depth / variance)
        least, most = 0.0, np.inf
        placed[f, 2] = placed[f, 3] = own
        for share in (1.0, 0.6, 1.6):
            by = own * share
            end = (here - _cumulant(*law, tilt[f] - by) - depth) / by
            if end > least:
                least, placed[f, 2] = end, by
        for share in (1.2, 0.9, 0.6, 0.3):
            for by in (min(own * share, 0.9 * room), room * min(share, 0.9)):
                end = (_cumulant(*law, tilt[f] + by) - here + depth) / by
                if end < most:
                    most, placed[f, 3] = end, by
        placed[f, 0], placed[f, 1] = math.floor(least), math.ceil(most) + 1.0


@njit()
def match_leaves(number, families, size, owners, grid):
    """Move the tilts of families `number`, by multiples of `grid`, to what their owners want.

    That is such that the mean of a sum comes near the mean of its owner, roughly.
    """
    begins, gaps, counts, base, inverse, tilt = families
    kind, own_inverse, center, above, lo, hi = owners
    for f in number:
        if not lo[f] < hi[f]:
            continue
        law = gaps, counts, begins[f], begins[f + 1], size[f], inverse[f]
        decay = own_inverse[f] if kind[f] == LAPLACE else 0.0
        lower = above[f] - decay if hi[f] == np.inf else -np.inf
        upper = min(above[f] + decay if lo[f] == -np.inf else np.inf, inverse[f])
        new = min(max(lower, tilt[f]), upper)
        if new == inverse[f]:
            new = 0.5 * (max(lower, tilt[f]) + upper)
        for _ in range(_STEPS):
            tilt[f] = math.floor(new / grid) * grid
            mean, variance = moments_of_family(*law, tilt[f])
            weight = decay, above[f] - tilt[f], lo[f] - center[f], hi[f] - center[f]
            own = base[f] + mean - center[f]
            off = weigh_one(own, variance, *weight)[0] - own
            if off * off <= _CLOSE * variance or new == (upper if off > 0.0 else lower):
                break
            if off > 0.0:
                lower = new
            else:
                upper = new
            new += off / max(variance, abs(off) * math.sqrt(variance))
            if not lower < new < upper:
                new = 0.5 * (lower + upper)


@njit(inner=True)
def _lower_ends(most, more, level, rate, step):
    """Replace bounds that are mostly `more` by those of one end, where these are smaller.

    From the first entry on, or by a `step` of -1 from the last one on, they are exp(level + rate i)
    at most; nothing is known if the rate is 0.
    """
    if not rate > 0.0:
        return
    number = (elementary.log(4.0 * more) - level) / rate
    at, known = 0 if step > 0 else most.size - 1, elementary.exp(max(level, _LEAST))
    # its rounding errors are far below MARGIN, by which levels are raised
    rise = elementary.exp(rate)
    for _ in range(np.int64(min(max(math.ceil(number), 0.0), float(most.size)))):
        if most[at] < 4.0 * more:
            most[at] = min(most[at], known)
        known = min(known * rise, 1.0)
        at += step


@njit(inner=True)
def _most_of(own, a, b, side, cut, levels):
    """Fill `levels` for the `cut` entries outside own[a:b] on one side; return their number.

    They are outermost entries, counted outwards from 0, and logs of the largest entry from the last
    one on: of one entry each at first, then of ever more, so that a bound which falls outwards at
    the outermost entry of each level falls little faster than one that holds at all entries.
    """
    k = number = 0
    while k < cut:
        last, most = min(k + k // _SHARE, cut - 1), 0.0
        for j in range(k, last + 1):
            most = max(most, own[a - 1 - j] if side == 0 else own[b + j])
        levels[0, number] = last
        levels[1, number] = elementary.log(most) if most > 0.0 else -np.inf
        k, number = last + 1, number + 1
    return number


@njit(inner=True)
def weigh(sums, more, units, ends, first, size, law, own, out, begin, tail):
    """Write a table of the weights at first, ... times bounds on sums[0], ... to out[begin], ...

    A sum is at most sums[i] + more, up to `units` of rounding. `ends` has a rate and a level for
    each end: at i it is at most exp(level + rate * i) below and exp(level - rate * i) above, also
    beyond the `size` sums; where the rate is 0, there is nothing beyond. `law` has kind, inverse
    scale, mode, tilt and ends of the weight, which is at most 1. Entries are integers, rounded up,
    that add up to less than 2^62. Unlikely ends are left out. `tail` (4,) is filled with bounds on
    them and on what lies beyond, see `Tails`. Returns (first value and size of the table; sum of
    all products; the entry of a product of 1; log by which weights were divided; share of entries
    that are mostly a bound). The size is 0 if no product is positive, or the weight rises faster,
    at an end, than the sum is known to fall there. `own` is scratch, and `sums` change.
    """
    kind, inverse, center, tilt, lo, hi = law
    tail[:] = 0.0
    low = np.int64(min(max(lo - first, 0.0), float(size)))
    high = np.int64(max(min(hi - first + 1.0, float(size)), 0.0))
    if low >= high:
        return first, 0, 0.0, 0.0, 0.0, 0.0
    width = high - low
    log_top = fill_unary(kind, inverse, center, tilt, first + low, own[:width])
    total, top, faint, levels = 0.0, 0.0, 0.0, np.empty((2, _LEVELS))
    above, lowest, highest = 1.0 + (units + ENTRY) * _UNIT, ends[1] + MARGIN, ends[3] + MARGIN
    most = sums[low:high]
    for i in range(width):
        most[i] = max(most[i], 0.0) + more
        faint += own[i] * more if most[i] < 2.0 * more else 0.0
    if more > 0.0:
        _lower_ends(most, more, lowest + ends[0] * low, ends[0], 1)
        _lower_ends(most, more, highest - ends[2] * (high - 1.0), ends[2], -1)
    for i in range(width):
        own[i] *= most[i] * above
        total += own[i]
        top = max(top, own[i])
    if not top > 0.0:
        return first, 0, 0.0, 0.0, 0.0, 0.0
    # ends are cut where something may lie beyond, so that a bound is needed anyway
    open_low, open_high = ends[0] > 0.0 and lo < first, ends[2] > 0.0 and hi >= first + size
    least, a, b = top * elementary.exp(-_CUT), 0, width
    while open_low and own[a] < least:
        total -= own[a]
        a += 1
    while open_high and own[b - 1] < least:
        b -= 1
        total -= own[b]
    scale = (_WHOLE - 2.0 * (b - a)) / total
    decay = inverse if kind == LAPLACE else 0.0
    for side in range(2):
        if not (open_low if side == 0 else open_high):
            continue
        end, rate = float(first - 1 if side == 0 else first + size), ends[2 * side]
        # rise of the weight, outwards
        away = (end - center) * (2 * side - 1) > 0.0
        rise = (-tilt if side == 0 else tilt) + (-decay if away else decay)
        fall, cut = rate - rise, a if side == 0 else width - b
        bound = lowest - rate if side == 0 else highest - rate * size
        h, l = exponent(kind, inverse, center, tilt, end)
        outside = bound + ((h - log_top) + l)
        if not fall > 0.0:
            return first, 0, 0.0, 0.0, 0.0, 0.0
        number = _most_of(own, a, b, side, cut, levels)
        levels[0, number], levels[1, number] = cut, outside
        # a rate at which bounds fall beyond the table, not much slower than what is known if the
        # bound at the first value there has some room
        slow = 0.0
        for room in _ROOMS:
            if slow < _STEEP * fall:
                slow, edge = fall, elementary.log(least) + room
                for k in range(number + 1):
                    if levels[0, k] > 0.0:
                        slow = min(slow, (edge - levels[1, k]) / levels[0, k])
        fall, edge = max(slow, _SLOW * fall), -np.inf
        for k in range(number + 1):
            edge = max(edge, levels[1, k] + fall * levels[0, k])
        tail[2 * side], tail[2 * side + 1] = elementary.exp(edge + MARGIN) * scale, fall
        if not tail[2 * side] < LARGEST_TAIL * -elementary.expm1(-fall):
            return first, 0, 0.0, 0.0, 0.0, 0.0
    # at least 1, also where doubles are too small for a weight: each value is possible
    for i in range(b - a):
        out[begin + i] = np.int64(own[a + i] * scale) + 1
    return first + low + a, b - a, total, scale, log_top, faint / total


@njit()
def weigh_all(number, sums, parts, errors, first, ends, laws, tilts, found, tails, table, used):
    """Fill tables of the owners of families from the laws of their sums, rows of `sums`.

    A row is periodic. `parts` has where it is read from, where the sum is `first`, and the number
    of entries. For `ends` (rows, 4) see `weigh`. Tables are appended to the first `used` entries of
    `table`; returns how many are in use then. `found` (rows, 6) is filled with the place of each
    table, its first value, its size, the entry of a product of 1, the log by which weights were
    divided and the share of entries that are mostly a bound, `tails` (rows, 4) as in `weigh`.
    """
    kind, inverse, center, tilt, lo, hi = laws
    begins, sizes = parts
    n = sums.shape[1]
    row, own = np.empty(n), np.empty(n)
    for i in range(number.size):
        f = number[i]
        size, before = sizes[i], min(n - begins[i], sizes[i])
        for j in range(before):
            row[j] = sums[i, begins[i] + j]
        for j in range(before, size):
            row[j] = sums[i, j - before]
        law = kind[f], inverse[f], center[f], tilt[f] - tilts[f], lo[f], hi[f]
        out = weigh(row, errors[i], 0.0, ends[i], first[i], size, law, own, table, used, tails[i])
        found[i, 0], found[i, 1], found[i, 2] = used, out[0], out[1]
        found[i, 3], found[i, 4], found[i, 5] = out[3], out[4], out[5]
        used += out[1]
    return used


@njit(inner=True)
def fill_powers(inverse, tilt, out):
    """Fill `out` with the weights of a lift's values from its likelier end on; return which.

    They fall by exp(-abs(inverse + tilt)) each. True if the likelier end is the top, or neither.
    """
    top = tilt + inverse >= 0.0
    fill_unary(LAPLACE, inverse if top else -inverse, 0.0, -tilt if top else tilt, 0, out)
    return top


@njit()
def fill_directly(
    number, families, binomials, laws, base_tilt, placed, depth, found, tails, table, used
):
    """Fill the tables of the owners of families, whose sums are added up term by term.

    For `table`, `used` and `tails` see `weigh_all`. `found` (families, 6) has each owner's place,
    first value, size, the entry of a product of 1, the log by which weights were divided, and units
    of rounding. The size is 0 as in `weigh`.
    """
    begins, gaps, counts, base, inverse, tilt = families
    kind, own_inverse, center, own_tilt, lo, hi = laws
    of, offset, _, binomial = binomials
    room, widest = np.int64(64), np.int64(1)
    for i in range(number.size):
        f = number[i]
        room = max(room, np.int64(placed[f, 1]) + 1)
        for r in range(begins[f], begins[f + 1]):
            widest = gaps[r] + 1 if gaps[r] >= widest else widest
    sums, own, lifts, lift = np.empty(room), np.empty(room), np.empty((2, room)), np.empty(room)
    work, powers = np.empty((4, 2 * room + 16)), np.empty(widest)
    last_inverse, top, ends = -1.0, True, np.zeros(4)
    for i in range(number.size):
        f = number[i]
        if inverse[f] != last_inverse:
            last_inverse = inverse[f]
            top = fill_powers(last_inverse, base_tilt, powers)
        n = np.int64(placed[f, 1]) + 1
        most = -elementary.expm1(-2.0 * inverse[f])
        units, side, width = 0.0, 0, 1
        lifts[0, 0] = 1.0
        for r in range(begins[f], begins[f + 1]):
            gap = gaps[r]
            if gap == 0:
                continue
            last = min(gap, n - 1)
            for j in range(1, last + 1):
                lift[j] = most * powers[gap - j if top else j]
            lift[0] = powers[gap] if top else 1.0
            for _ in range(counts[r]):
                wide = min(width + last, n)
                one, other = lifts[side], lifts[1 - side]
                convolve_plainly(one, 0, width, lift, 0, last + 1, 0, other, 0, wide, work)
                units += _LIFT + _SUM + np.minimum(width, last + 1) / _TERMS
                side, width = 1 - side, wide
        at, one = offset[of[f]], lifts[side]
        if width == 1:
            for y in range(n):
                sums[y] = one[0] * binomial[at + y]
            units += 1.0 + _NEGATIVE_BINOMIAL
        else:
            convolve_plainly(one, 0, width, binomial, at, n, 0, sums, 0, n, work)
            units += _SUM + np.minimum(width, n) / _TERMS + _NEGATIVE_BINOMIAL
        # by the family's own tilt, the sum beyond its end has at most exp(-depth) of all
        by, whole = elementary.exp(tilt[f] - base_tilt), 0.0
        for y in range(n - 1, -1, -1):
            whole = whole * by + sums[y]
        ends[2] = placed[f, 3] + (tilt[f] - base_tilt)
        ends[3] = elementary.log(whole) - depth + placed[f, 3] * placed[f, 1]
        law = kind[f], own_inverse[f], center[f], own_tilt[f] - base_tilt, lo[f], hi[f]
        first, size, _, scale, log_top, _ = weigh(
            sums, 0.0, units, ends, base[f], n, law, own, table, used, tails[i]
        )
        found[i, 0], found[i, 1], found[i, 2] = used, first, size
        found[i, 3], found[i, 4], found[i, 5] = scale, log_top, units
        used += size
    return used


@njit()
def fill_binomial(inverse, size, tilt, out):
    """Fill `out` with the weights of a sum of `size` geometric variables, from 0 on."""
    fill_unary(GEOMETRIC_SUM, inverse, size, tilt, 0, out)


@njit()
def fill_leaf(inverse, center, tilt, low, least, own, out, tail):
    """Fill `out` with the integer weights of a leaf, from `low` on, rounded up; `own` is scratch.

    The leaf is at least `least`, and so is its mode `center`. `tail` (4,) is filled as in `weigh`.
    Returns the log by which weights were divided, and the entry of a weight of 1.
    """
    log_top = fill_unary(LAPLACE, inverse, center, tilt, low, own)
    total, above = 0.0, 1.0 + ENTRY * _UNIT
    for i in range(own.size):
        own[i] *= above
        total += own[i]
    scale = (_WHOLE - 2.0 * own.size) / total
    for i in range(own.size):
        out[i] = np.int64(own[i] * scale) + 1
    tail[0], tail[1], tail[3] = 0.0, 1.0, inverse - tilt
    if low > least:
        tail[0], tail[1] = own[0] * scale, inverse + tilt
    tail[2] = own[-1] * scale
    return log_top, scale


@njit()
def fill_lift(inverse, tilt, out):
    """Fill `out` with the weights of a lift, for a gap of out.size - 1, as `fill_directly` does."""
    gap = out.size - 1
    powers, most = np.empty(gap + 1), -elementary.expm1(-2.0 * inverse)
    top = fill_powers(inverse, tilt, powers)
    for j in range(1, gap + 1):
        out[j] = most * powers[gap - j if top else j]
    out[0] = powers[gap] if top else 1.0


@njit()
def fill_tilted(table, tilt, out):
    """Fill `out` with integers times exp(tilt * i), each rounded once; the largest factor is 1."""
    for i in range(table.size):
        away = float(i if tilt <= 0.0 else i - (table.size - 1))
        h, low = doubled_exp(*two_product(tilt, away))
        out[i] = float(table[i]) * (h + low)


@njit(inner=True)
def _mills(x):
    """Return the Mills ratio of a standard normal law at x >= 0, up to 1e-5 of it."""
    if x > _FAR:
        out, last = x, 1.0
        for k in range(_FRACTIONS, 0, -1):
            out, last = x * out + k * last, out
        return last / out
    # Abramowitz and Stegun (1964), 7.1.26
    t = 1.0 / (1.0 + 0.3275911 * x * math.sqrt(0.5))
    poly = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    return math.sqrt(0.5 * math.pi) * t * (0.254829592 + t * (-0.284496736 + t * poly))


@njit(inner=True)
def _above_zero(ratio):
    """Return what lies above 0 of a normal law of variance 1 and mean `ratio`.

    That is its share, divided by the density at 0, and its mean and variance.
    """
    if ratio < -_FARTHEST:
        square = ratio * ratio
        return -1.0 / ratio, -(1.0 - 2.0 / square) / ratio, (1.0 - 6.0 / square) / square
    share = _mills(min(abs(ratio), _FARTHEST))
    if ratio > 0.0:
        share = (
            math.sqrt(2.0 * math.pi) * elementary.exp(0.5 * min(ratio * ratio, _WHOLE_LAW)) - share
        )
    off = ratio + 1.0 / share
    return share, off, max(1.0 - off / share, 0.0)


@njit(inner=True)
def weigh_one(mean, variance, decay, tilt, lo, hi):
    """Return mean and variance of a weighted normal law, roughly.

    The weight is exp(tilt * x - decay * abs(x)) from `lo` to `hi`.
    """
    deviation = math.sqrt(variance)
    right = mean + variance * (tilt - decay)
    left = mean + variance * (tilt + decay)
    if lo == -np.inf and hi == np.inf:
        # two pieces of normal laws, of which at most one has its mode on its own side of 0
        up, down = _above_zero(right / deviation), _above_zero(-left / deviation)
        share = up[0] / (up[0] + down[0])
        middle = share * up[1] - (1.0 - share) * down[1]
        apart = share * (1.0 - share) * (up[1] + down[1]) ** 2
        own = share * up[2] + (1.0 - share) * down[2] + apart
        return middle * deviation, own * variance
    mode = right if right > 0.0 else min(left, 0.0)
    mode = min(max(mode, lo), hi)
    # points at distances that grow by one factor, on both sides of the mode
    least = _NEAR * min(deviation, 1.0 / decay if decay > 0.0 else deviation)
    grow = elementary.power(_REACH * deviation / least, 1.0 / (_POINTS - 1))
    total = first = second = 0.0
    for side in (1.0, -1.0):
        away = least
        for _ in range(_POINTS):
            x = mode + side * away
            if lo <= x <= hi:
                log = tilt * (x - mode) - decay * (abs(x) - abs(mode))
                a, b = x - mean, mode - mean
                log -= 0.5 * (a * a - b * b) / variance
                weight = elementary.exp(log) * away
                total += weight
                first += weight * (x - mode)
                second += weight * (x - mode) * (x - mode)
            away *= grow
    if not total > 0.0:
        return mode, 0.0
    return mode + first / total, max(second / total - (first / total) ** 2, 0.0)
