"""Decisions of draws by families that doubles leave open, in decimals of growing precision.

Proof: `proofs/family-draws.md`.
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from itertools import accumulate
from operator import mul

import numpy as np

from congenial.kernels.network import family_draws as kernels
from congenial.randomness import (
    FIRST,
    MORE,
    Bits,
    Enclosure,
    Probability,
    Randomness,
    around,
    is_below,
    precision,
    product,
)
from congenial.sum_network.families.family_records import FamilySums
from congenial.types import IntArray

# Probabilities of a value, from 0 on, and how often it occurs.
Part = tuple[list[Decimal], int]

_WORD, _CHOICE = 64, 62
# Nats by which the bound beyond a table falls along the values that are added up, times the level.
_LONGER = 50.0
# Digits for probabilities that are small beside those of likely values.
_SPARE = 20


def settle_root(sums: FamilySums, v: int, word: int, rng: Randomness) -> int | None:
    """Return the value of a root whose word chooses none of its table; None if it is in vain."""
    beyond = (word >> (_WORD - _CHOICE)) - int(sums.tables.entries(v).sum())
    found = _beyond(sums, v, beyond, 0.0, 0, Decimal(1), rng)
    if found is None or not is_below(int(rng.bits(1)[0]), found[1], rng):
        return None
    return found[0]


def try_tables(
    sums: FamilySums, f: int, tilt: float, words: Bits, values: IntArray, rng: Randomness
) -> bool:
    """Repeat an attempt of a family with tables, also beyond them; return whether it is accepted.

    `values` (n + m,) is filled with those of the members.
    """
    of, tables = sums.families, sums.tables
    begin, stop = int(of.start[f]), int(of.start[f + 1])
    members = of.member[begin:stop].tolist()
    sizes = tables.size[tables.of[members]]
    begins, laid = np.cumsum(sizes) - sizes, np.empty((len(members), 2))
    rows, shares = np.empty(int(sizes.sum()), dtype=np.int64), np.empty(int(sizes.sum()))
    last, most, *_ = kernels.lay_out(tables, of.member, begin, stop, tilt, rows, shares, laid)
    if not tilt:
        rows, begins = tables.running, tables.place[tables.of[members]]
    left, used, parts = int(values[of.owner[f]]) if of.owner[f] >= 0 else 0, 0, []
    for j, v in enumerate(members):
        if begin + j == last:
            continue
        own = rows[begins[j] : begins[j] + sizes[j]]
        target = int(words[used]) >> (_WORD - _CHOICE)
        used += 1
        if target < own[-1]:
            i = int(own.searchsorted(target, side="right"))
            weight = int(own[i] - (own[i - 1] if i else 0))
            x, p = i + tables.values(v)[0], _weight(sums, v, i, tilt, laid[j], weight)
        else:
            middle, scale = laid[j].tolist()
            beyond = target - int(own[-1])
            found = _beyond(sums, v, beyond, tilt, int(middle), Decimal(scale), rng)
            if found is None:
                return False
            x, p = found
        values[v] = x
        left -= x
        parts.append(p)
    v = int(of.member[last])
    values[v] = left
    place = left - tables.values(v)[0]
    parts.append(_weight(sums, v, place, tilt, laid[last - begin], int(most)))
    return is_below(int(words[used]), product(parts), rng)


def try_leaves(
    sums: FamilySums, f: int, tilt: float, words: Bits, values: IntArray, rng: Randomness
) -> bool:
    """Repeat an attempt of a family of leaves, of any sum; return whether it is accepted.

    `values` (n + m,) is filled with those of the members before the rest, and with the rest, which
    comes after the variables.
    """
    of, law = sums.families, sums.leaves
    members = of.member[of.start[f] : of.start[f + 1]].tolist()
    gaps = of.gap[members].tolist()
    inverse, widest = float(law.inverse[f]), max(gaps)
    powers, shares = np.empty((2, widest + 2))
    weights = np.empty(widest + 2, dtype=np.int64)
    unit, top, off = kernels.cumulate_lifts(inverse, tilt, widest, powers, weights, shares)
    whole = int(values[of.owner[f]] if of.owner[f] >= 0 else 0) - int(law.base[f])
    left, used, lifts = whole, 0, []
    for v, gap in zip(members, gaps, strict=True):
        lift = 0
        if gap:
            end = int(float(powers[gap] if top else 1.0) * unit * (1.0 + off)) + 1
            total = int(weights[gap]) + end
            target, low = divmod(int(words[used]) * total, 1 << _WORD)
            used += 1
            if low < (1 << _WORD) % total:
                return False
            power, weight = gap if top else 0, end
            if target < weights[gap]:
                h = int(weights[1 : gap + 1].searchsorted(target, side="right"))
                weight = int(weights[h + 1] - weights[h])
                power = h if top else h + 1
                lift = gap - h if top else h + 1
            lifts.append((lift > 0, power, weight))
        values[v] = of.least[v] + lift
        left -= lift
    if left < 0:
        return False
    values[sums.n + f] = left
    if not lifts:
        return True
    mode = kernels.mode_of(len(members), inverse, tilt)
    best = int(kernels.best_rest(mode, whole, sum(gaps)))

    def probability(level: int) -> Enclosure:
        with precision(level):
            rate, most = _rate_of_lifts(inverse, tilt)
            out = Decimal(kernels.BELOW_ONE)
            for lifted, power, weight in lifts:
                own = (-rate * power).exp() * Decimal(unit) / weight
                out *= most * own if lifted else own
            fall = (Decimal(inverse) - Decimal(tilt)) * (left - best)
            return around(out * _choices(left, best, len(members)) * (-fall).exp(), level)

    return is_below(int(words[used]), probability, rng)


def share(sums: FamilySums, v: int, f: int, x: int) -> Probability:
    """Return the true weight of variable v at x over that of its table; f is its family, or -1."""
    doubt, t = sums.doubt, sums.tables.of[v]
    least = sums.families.least[v] if f < 0 else sums.limits[0, f]
    outside = x < least or (f >= 0 and x > sums.limits[1, f])

    def probability(level: int) -> Enclosure:
        if outside:
            return Decimal(0), Decimal(0)
        with precision(level):
            away = abs(x - Decimal(float(doubt.center[t])))
            log = Decimal(float(doubt.slope[t])) * x - Decimal(float(doubt.decay[t])) * away
            # the terms are large and nearly cancel, which costs some of the guard's digits
            own = (log - Decimal(float(doubt.top[t]))).exp() * Decimal(float(doubt.unit[t]))
            own /= _entry(sums, v, x - sums.tables.values(v)[0])
            low = high = Decimal(1)
            if f >= 0 and sums.families.of_leaves[f]:
                low, high = _sum_of_leaves(sums, f, x, level)
            elif f >= 0:
                low, high = _sum_of_tables(sums, f, x, level)
            return around(own * low, level)[0], around(own * high, level)[1]

    return probability


def _weight(
    sums: FamilySums, v: int, place: int, tilt: float, laid: Iterable[float], over: int
) -> Probability:
    """Return the tilted weight of a table at a place, within it or beyond, over an integer.

    `laid` has the place where the tilt is 1, and a factor.
    """
    middle, scale = laid

    def probability(level: int) -> Enclosure:
        with precision(level):
            out = _entry(sums, v, place)
            if tilt:
                out *= (Decimal(tilt) * (place - int(middle))).exp() * Decimal(scale)
            return around(out / over, level)

    return probability


def _entry(sums: FamilySums, v: int, place: int) -> Decimal:
    """Return the weight of a table at a place, within it or beyond."""
    tables, t = sums.tables, sums.tables.of[v]
    size, at = int(tables.size[t]), tables.place[t] + place
    if 0 <= place < size:
        return Decimal(int(tables.running[at] - (tables.running[at - 1] if place else 0)))
    side, k = (0, -1 - place) if place < 0 else (2, place - size)
    bound, fall = tables.tails[side : side + 2, t].tolist()
    return Decimal(bound) * (-Decimal(fall) * k).exp()


def _beyond(
    sums: FamilySums,
    v: int,
    beyond: int,
    tilt: float,
    middle: int,
    scale: Decimal,
    rng: Randomness,
) -> tuple[int, Probability] | None:
    """Propose a value beyond the table of v, by a weight that exceeds those in it by `beyond`.

    Returns the value and the true weight over that of the proposal; None if no weight is chosen.
    """
    tables = sums.tables
    size, first = len(tables.values(v)), tables.values(v)[0]
    for side in (0, 2):
        bound, fall = tables.tails[side : side + 2, tables.of[v]].tolist()
        if not bound:
            continue
        place, sign = (size, 1) if side else (-1, -1)

        def ratio(level: int, fall: float = fall, sign: int = sign) -> Enclosure:
            with precision(level):
                return around((Decimal(tilt) * sign - Decimal(fall)).exp(), level)

        with precision(0):
            whole = Decimal(bound) * (Decimal(tilt) * (place - middle)).exp() * scale
            weight = int(whole / (1 - ratio(0)[1])) + 2
        if beyond >= weight:
            beyond -= weight
            continue
        k = 0
        while is_below(int(rng.bits(1)[0]), ratio, rng):
            k += 1

        # one factor for all values: both fall by the same ratio
        def probability(
            level: int, bound: float = bound, weight: int = weight, place: int = place
        ) -> Enclosure:
            low, high = ratio(level)
            with precision(level):
                whole = Decimal(bound) * (Decimal(tilt) * (place - middle)).exp() * scale
                found = whole / weight
                return around(found / (1 - low), level)[0], around(found / (1 - high), level)[1]

        return first + place + sign * k, probability
    return None


def _rate_of_lifts(inverse: float, tilt: float) -> tuple[Decimal, Decimal]:
    """Return the rate at which weights of a lift fall, and their common factor."""
    i = Decimal(inverse)
    return abs(i + Decimal(tilt)), 1 - (-2 * i).exp()


def _choices(k: int, other: int, n: int) -> Decimal:
    """Return C(k + n - 1, n - 1) / C(other + n - 1, n - 1)."""
    ratio = Fraction(math.comb(k + n - 1, n - 1), math.comb(other + n - 1, n - 1))
    return Decimal(ratio.numerator) / Decimal(ratio.denominator)


def _sum_of_leaves(sums: FamilySums, f: int, x: int, level: int) -> Enclosure:
    """Enclose the weight of a sum of leaves, as their table has it."""
    law, of = sums.leaves, sums.families
    directly, n = bool(sums.directly[f]), int(of.start[f + 1] - of.start[f])
    inverse = float(law.inverse[f])
    tilt = float(sums.base_tilt[f] if directly else law.tilt[f])
    (rate, most), top = _rate_of_lifts(inverse, tilt), inverse + tilt >= 0.0
    y, parts, whole = x - int(law.base[f]), list[Part](), Decimal(1)
    if y < 0:
        return Decimal(0), Decimal(0)
    for i in range(law.begins[f], law.begins[f + 1]):
        gap, times = int(law.gaps[i]), int(law.counts[i])
        powers = list(accumulate([(-rate).exp()] * gap, mul, initial=Decimal(1)))
        lift = [powers[gap] if top else Decimal(1)]
        lift += [most * powers[gap - j if top else j] for j in range(1, gap + 1)]
        total = sum(lift, start=Decimal(0))
        parts.append(([w / total for w in lift], times if gap else 0))
        whole *= total**times
    lifts, error = _law_of_sum(parts, y, level)
    g, mode = (Decimal(tilt) - Decimal(inverse)).exp(), 0
    if directly:
        binomials = sums.binomials
        at = int(binomials.offset[binomials.of[f]])
        own = binomials.table[at : at + int(binomials.length[binomials.of[f]])]
        mode = int(own.argmax())
    # weights of the rest, beside that of the mode
    rest, found, every = _choices(y, mode, n) * g ** (y - mode), Decimal(0), Decimal(0)
    for j, weight in enumerate(lifts):
        found, every = found + weight * rest, every + rest
        k = y - j
        if k:
            rest *= Decimal(k) / (Decimal(k + n - 1) * g)
    scale = (whole if directly else (1 - g) ** n) / _unit(level)
    return found * scale, (found + error * every) * scale


def _sum_of_tables(sums: FamilySums, f: int, x: int, level: int) -> Enclosure:
    """Enclose the weight of members that add up to x, where those in each table add up to 1.

    Above level 0 tables are longer by values beyond them. Combinations in which some member is
    beyond these have at most twice the sum of such weights of each member, which are small
    (`family_sums`).
    """
    of, tables = sums.families, sums.tables
    members = of.member[of.start[f] : of.start[f + 1]].tolist()
    tilt = float(sums.retilt[f])
    z = Decimal(tilt).exp()
    parts, lost, y = list[Part](), Decimal(0), x
    for v in members:
        part, by = list[Decimal](), Decimal(1)
        for entry in tables.entries(v).tolist():
            part.append(entry * by)
            by *= z
        total = sum(part, start=Decimal(0))
        ends = list[list[Decimal]]()
        for side, edge in ((0, 1 / z), (2, by)):
            bound, fall = tables.tails[side : side + 2, tables.of[v]].tolist()
            ratio, rate = (-Decimal(fall)).exp() * (z if side else 1 / z), fall - tilt * (side - 1)
            many = math.ceil(_LONGER * level / rate) if bound else 0
            ends.append([Decimal(bound) * edge * ratio**k for k in range(many)])
            if bound:
                lost += Decimal(bound) * edge * ratio**many / (1 - ratio) / total
        parts.append(([w / total for w in (*ends[0][::-1], *part, *ends[1])], 1))
        y += len(ends[0]) - tables.values(v)[0]
    if y < 0:
        return Decimal(0), 4 * lost
    law, error = _law_of_sum(parts, y, level)
    low = Decimal(law[y] if y < len(law) else 0) / _unit(level)
    return low, low + Decimal(error) / _unit(level) + 4 * lost


def _unit(level: int) -> int:
    """Return the number of units that add up to 1."""
    return int(10 ** (FIRST + MORE * level + _SPARE))


def _law_of_sum(parts: Iterable[Part], most: int, level: int) -> tuple[list[int], int]:
    """Return the law of a sum of independent values up to `most`, in units, and its error.

    A part has the probabilities of a value, from 0 on, and how often it occurs. They add up to 1,
    or hardly more. What is returned may be too small by the error, at each value.
    """
    unit, laws = _unit(level), list[tuple[list[int], int]]()
    for part, times in parts:
        own = [int(w * unit) for w in part[: most + 1]], 1
        for bit in reversed(f"{times:b}"):  # powers of two, of which the number consists
            if bit == "1":
                laws.append(own)
            own = _law_of_two(own, own, most, unit)
    laws.sort(key=lambda law: -len(law[0]))
    while len(laws) > 1:  # the shortest ones first
        insort(laws, _law_of_two(laws.pop(), laws.pop(), most, unit), key=lambda law: -len(law[0]))
    law, error = laws[0] if laws else ([unit], 0)
    return law, 2 * error


def _law_of_two(
    one: tuple[list[int], int], other: tuple[list[int], int], most: int, unit: int
) -> tuple[list[int], int]:
    """Return the law of the sum of two values, rounded down: by one product of large numbers."""
    width, size = 2 * len(str(unit)) + 2, len(one[0]) + len(other[0]) - 1
    with localcontext(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN):
        product = math.prod(
            (Decimal("".join(f"{c:0{width}d}" for c in reversed(law))) for law, _ in (one, other)),
            start=Decimal(1),
        )
        digits = f"{product:f}".zfill(width * size)
    ends = range(width * size, 0, -width)[: most + 1]
    return [int(digits[end - width : end]) // unit for end in ends], one[1] + other[1] + 1
