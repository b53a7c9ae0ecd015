"""Laws of the sums of families whose members have tables: where they lie, and their spectra.

Tables of integers are tilted by exp(tilt * place), which changes no conditional law, and scaled to
probabilities. Equal members are one row with a number of times.

Benchmark row: `bounded`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network.family_sums import weigh_one
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.doubled import two_sum
from congenial.kernels.numerics.laws import LAPLACE
from congenial.kernels.numerics.spectra import products

# Size below which a product of factors that are at most 1 is left.
TINY = 1e-20
# Error of a product of complex numbers, as a share of its size.
PRODUCT = 2.3 * 2.0**-53
# Most steps of a tilt, and the squared distance from the wanted mean, in variances, at which the
# first and later steps stop.
_STEPS, _NEAR, _NEARER = 50, 0.1, 0.01
# Least variance of a sum.
_LEAST = 1e-2
# Largest exponents of a bound on a tail and of a weight, and the largest share of the rate at which
# a tail falls that tilts may take.
_NATS, _LARGEST, _STEEPEST = 600.0, 700.0, 0.9


@njit(inner=True)
def fill_factors(tilt, out):
    """Fill `out` with exp(tilt * i), times a constant such that the largest is 1."""
    last = out.size - 1 if tilt > 0.0 else 0
    for i in range(out.size):
        out[i] = elementary.exp(tilt * (i - last)) if tilt != 0.0 else 1.0


@njit(inner=True)
def _moments(table, begin, size, factors):
    """Return (sum, mean and variance of places) of a table's entries times `factors`."""
    total = first = second = 0.0
    for i in range(size):
        w = float(table[begin + i]) * factors[i]
        total += w
        first += w * i
        second += w * (float(i) * i)
    first /= total
    return total, first, second / total - first * first


@njit(inner=True)
def _spread(table, place, size, times, factors, own):
    """Fill `own` (rows, 2) with sums and means; return mean and variance of the sum of all."""
    mean = variance = 0.0
    for r in range(place.size):
        own[r, 0], own[r, 1], var = _moments(table, place[r], size[r], factors)
        mean += times[r] * own[r, 1]
        variance += times[r] * var
    return mean, max(variance, _LEAST)


@njit(inner=True)
def _known_spread(moments, rows, times, own):
    """Return the same as `_spread` for tables that are not tilted, from their `moments`."""
    mean = variance = 0.0
    for r in range(rows.size):
        own[r, 0], own[r, 1], var = moments[0, rows[r]], moments[1, rows[r]], moments[2, rows[r]]
        mean += times[r] * own[r, 1]
        variance += times[r] * var
    return mean, max(variance, _LEAST)


@njit()
def moments_of_tables(place, size, table, moments):
    """Fill `moments` (3, tables): sums of tables of integers, means and variances of places."""
    for r in range(place.size):
        total = away = square = 0.0
        for i in range(size[r]):
            own = float(table[place[r] + i])
            total += own
            away += own * i
            square += own * (float(i) * i)
        away /= total
        moments[0, r], moments[1, r] = total, away
        moments[2, r] = max(square / total - away * away, 0.0)


@njit()
def beyond(tails, t, size, tilt, shift):
    """Return the weight beyond table t, tilted by exp(tilt * place - shift); inf if unbounded."""
    out = 0.0
    for side in range(2):
        bound, fall = tails[2 * side, t], tails[2 * side + 1, t]
        if bound > 0.0:
            fall += tilt if side == 0 else -tilt
            if fall <= 0.0:
                return np.inf
            log = tilt * (-1.0 if side == 0 else float(size)) - shift
            if log > _LARGEST:
                return np.inf
            out += bound * elementary.exp(log) / -elementary.expm1(-fall)
    return out


@njit()
def place_members(number, begins, rows, times, tables, base, owners, theta, grid, depth, found):
    """Tilt the members of families `number`, and place their sums; fill `found` (families, 10).

    Rows begins[i] .. begins[i + 1] - 1 have the members of number[i]: `times` members with the same
    one of the tables, whose places, sizes, entries, tails and moments are in `tables`. `base` is
    the least sum of places. The columns of `found`: a tilt, a multiple of `grid`, by which the mean
    comes near the one that the owner's weight wants; ends beyond which the tilted sum, counted from
    `base`, hardly lies; for each of the two ends, a rate and a level (`weigh`), where a sum counts
    from the first end (Chernoff); the longest table; the summed weights beyond tables, as shares of
    those in them; how far the mean is from the wanted one, in deviations. A rate is 0 where nothing
    lies beyond, and nan if no bound is known. If the tilt that the owner's weight needs is not
    possible with these tables, all columns but the tilt are nan.
    """
    kind, inverse, center, above, lo, hi = owners
    places, sizes, table, tails, moments = tables
    many = 1
    for i in range(number.size):
        many = max(many, begins[i + 1] - begins[i])
    own, rates, reach = np.empty((many, 2)), np.empty(2), np.empty(2)
    for i in range(number.size):
        f, a, b = number[i], begins[i], begins[i + 1]
        longest, least, largest = np.int64(0), -np.inf, np.inf
        place, size = places[rows[a:b]], sizes[rows[a:b]]
        for t in rows[a:b]:
            longest = max(longest, sizes[t])
            if tails[0, t] > 0.0:
                least = max(least, -tails[1, t])
            if tails[2, t] > 0.0:
                largest = min(largest, tails[3, t])
        decay = inverse[f] if kind[f] == LAPLACE else 0.0
        lower, upper = _STEEPEST * least, _STEEPEST * largest
        # no weight of the owner may rise outwards faster than without noise
        low, high = -np.inf, np.inf
        if lo[f] < hi[f]:
            low = above[f] - decay - theta[f] if hi[f] == np.inf else low
            high = above[f] + decay - theta[f] if lo[f] == -np.inf else high
        lower, upper = max(lower, low), min(upper, high)
        if not lower <= upper:
            found[i] = np.nan
            found[i, 0] = math.floor((high if lower > high else low) / grid) * grid
            continue
        factors, grown = np.empty(longest), np.empty((2, longest))
        of = table, place, size, times[a:b]
        tilt = math.floor(min(max(lower, 0.0), upper) / grid) * grid
        fill_factors(tilt, factors)
        if tilt == 0.0:
            mean, variance = _known_spread(moments, rows[a:b], times[a:b], own)
        else:
            mean, variance = _spread(*of, factors, own)
        aim = lo[f] - base[i]
        for _ in range(_STEPS):
            if lo[f] < hi[f]:
                # far from its mean a sum is not normal, so the mean of the product moves too
                c = center[f]
                weight = decay, above[f] - theta[f] - tilt, lo[f] - c, hi[f] - c
                aim = weigh_one(base[i] + mean - c, variance, *weight)[0] + c - base[i]
            off = aim - mean
            if off * off <= (_NEAR if tilt == 0.0 else _NEARER) * variance:
                break
            if tilt == (upper if off > 0.0 else lower):
                break
            if off > 0.0:
                lower = tilt
            else:
                upper = tilt
            # by one deviation at most, since the variance changes, and between tilts known to be
            # too low and too high
            new = tilt + off / max(variance, abs(off) * math.sqrt(variance))
            if not lower < new < upper:
                new = 0.5 * (lower + upper)
            tilt = math.floor(new / grid) * grid
            fill_factors(tilt, factors)
            mean, variance = _spread(*of, factors, own)
        found[i, 0], found[i, 7] = tilt, longest
        found[i, 9] = (aim - mean) / math.sqrt(variance)
        shift, lost = tilt * (longest - 1.0) if tilt > 0.0 else 0.0, 0.0
        for r in range(a, b):
            lost += times[r] * beyond(tails, rows[r], size[r - a], tilt, shift) / own[r - a, 0]
        found[i, 8] = lost
        for side in range(2):
            by = 0.9 * math.sqrt(2.0 * depth / variance)
            by = min(by, _STEEPEST * (tilt - least if side == 0 else largest - tilt))
            # such that exponentials are finite
            rates[side] = by = min(by, _NATS / longest)
            # powers lose at most two units each, far less than the margin of a level
            step, power = elementary.exp(by if side else -by), 1.0
            for j in range(longest):
                grown[side, j] = factors[j] * power
                power *= step
        most, reach[:] = 0.0, 0.0
        for r in range(a, b):
            begin = place[r - a]
            # both sides at once, since additions wait for each other
            below = over = 0.0
            for j in range(size[r - a]):
                entry = float(table[begin + j])
                below += entry * grown[0, j]
                over += entry * grown[1, j]
            most += times[r] * (size[r - a] - 1)
            for side in range(2):
                by = rates[side] if side else -rates[side]
                total = over if side else below
                total += beyond(tails, rows[r], size[r - a], tilt + by, shift)
                log = elementary.log(total / own[r - a, 0])
                reach[side] += times[r] * (log - by * own[r - a, 1])
        for side in range(2):
            sign, by, known = 2.0 * side - 1.0, rates[side], tails_of(tails, rows[a:b], side)
            # the sum x lies beyond mean + sign * y with at most exp(reach - by * y)
            y = (reach[side] + depth) / by
            end = math.floor(mean - y) if side == 0 else math.floor(mean + y) + 1.0
            if not known:
                end = max(end, 0.0) if side == 0 else min(end, most)
            found[i, 1 + side] = end
            outside = known or (end > 0.0 if side == 0 else end < most)
            found[i, 3 + 2 * side] = by if outside else 0.0
            found[i, 4 + 2 * side] = reach[side] + sign * by * mean
            if not reach[side] < np.inf:
                found[i, 3 + 2 * side] = np.nan
        # levels count from the first end
        found[i, 4] += found[i, 3] * found[i, 1]
        found[i, 6] -= found[i, 5] * found[i, 1]


@njit(inner=True)
def tails_of(tails, numbers, side):
    """Return whether anything may lie beyond any of some tables on one side."""
    known = False
    for t in numbers:
        known |= tails[2 * side, t] > 0.0
    return known


@njit()
def lay_out(place, size, tilt, longest, table, rows):
    """Fill `rows` (r, n) with the tilted laws of members, and zeros."""
    factors, last = np.empty(0), np.nan
    for r in range(place.size):
        if tilt[r] != last or factors.size != longest[r]:
            factors, last = np.empty(np.int64(longest[r])), tilt[r]
            fill_factors(last, factors)
        total = low = 0.0
        if tilt[r] == 0.0:
            whole = np.int64(0)
            for i in range(size[r]):
                whole += table[place[r] + i]
                rows[r, i] = float(table[place[r] + i])
            total = float(whole)
        else:
            for i in range(size[r]):
                rows[r, i] = float(table[place[r] + i]) * factors[i]
                total, by = two_sum(total, rows[r, i])
                low += by
            total += low
        for i in range(size[r]):
            rows[r, i] /= total
        for i in range(size[r], rows.shape[1]):
            rows[r, i] = 0.0


@njit()
def multiply(spectra, which, family, times, product, live):
    """Multiply the products of families by rows of spectra, whose entries are at most about 1.

    `spectra` (rows, 2 * frequencies) and `product` (families, 2 * frequencies) have real and
    imaginary parts in turn. Row which[i] is a factor of the product of family[i], times[i] times.
    `live` (families,) is -1 before the first factor. Then all products from there on are below
    `TINY`, and are left as they are.
    """
    own = np.empty(product.shape[1])
    for c in range(times.size):
        f, left = family[c], times[c]
        out, factor = product[f], spectra[which[c]]
        if live[f] < 0:
            out[:], live[f], left = factor, out.size // 2, left - 1
        while left > 0:
            if left & 1:
                products(out, factor, live[f], out)
            left >>= 1
            if left > 0:
                products(factor, factor, live[f], own)
                factor = own
        while live[f] > 0 and _square(out, live[f] - 1) < TINY * TINY:
            live[f] -= 1


@njit(inner=True)
def _square(values, k):
    """Return the squared size of complex number k."""
    return values[2 * k] * values[2 * k] + values[2 * k + 1] * values[2 * k + 1]


@njit()
def finish(product, live, sizes):
    """Set products that are left as they are to 0; fill `sizes` with roots of mean squares.

    Means are over the whole period.
    """
    for f in range(sizes.size):
        out, last = product[f], product.shape[1] // 2 - 1
        out[2 * live[f] :] = 0.0
        total = 0.5 * (_square(out, 0) + _square(out, last))
        a = b = 0.0
        # two sums, so that additions do not wait for each other
        for k in range(1, min(live[f], last)):
            a += out[2 * k] * out[2 * k]
            b += out[2 * k + 1] * out[2 * k + 1]
        sizes[f] = math.sqrt((total + a + b) / last)
