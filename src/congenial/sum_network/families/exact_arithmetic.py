"""Decisions of draws by families that doubles leave open, in decimals of growing precision.

A decision is whether a uniform number is below a probability. A function of a level, 0, 1, 2, ...,
encloses the probability between two decimals, more closely at each level. Decimals have `_GUARD`
digits more than they are trusted to: each operation errs by one unit, an exponential by its
exponent times as much, and all numbers that are added are positive. Proof: `proofs/family-draws.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from congenial.kernels.network import family_draws as kernels
from congenial.randomness import Bits, Randomness
from congenial.types import IntArray

if TYPE_CHECKING:
    from congenial.sum_network.families.family_sums import FamilySums

Enclosure = tuple[Decimal, Decimal]
Probability = Callable[[int], Enclosure]

# Digits for the roundings of 10^15 operations and for exponents of 10^15.
_GUARD = 32
# Trusted digits at level 0, and how many more each level has.
_FIRST, _MORE = 40, 20
_WORD, _CHOICE = 64, 62
# Values of a tail that a level takes from its bound, times the level; bits of their weights.
_LONGER, _BITS = 500, 128


def is_below(word: int, p: Probability, rng: Randomness) -> bool:
    """Return whether a uniform number, whose first 64 bits are `word`, is below p.

    Further bits are drawn until they decide, which has probability 1.
    """
    known, bits, level = word, _WORD, 0
    while True:
        low, high = p(level)
        with _precision(level, ROUND_FLOOR):
            low *= 1 << bits
        with _precision(level, ROUND_CEILING):
            high *= 1 << bits
        if known + 1 <= low:
            return True
        if known >= high:
            return False
        known, bits, level = known << _WORD | int(rng.bits(1)[0]), bits + _WORD, level + 1


def product(parts: Iterable[Probability]) -> Probability:
    """Return the product of probabilities."""
    every = list(parts)

    def probability(level: int) -> Enclosure:
        with _precision(level):
            found = [p(level) for p in every]
            low, high = (math.prod(ends, start=Decimal(1)) for ends in zip(*found, strict=True))
            return _around(low, level)[0], _around(high, level)[1]

    return probability


def settle_root(sums: FamilySums, v: int, word: int, rng: Randomness) -> int | None:
    """Return the value of a root whose word chooses none of its table; None if it is in vain."""
    tables = sums.tables
    begin, size = int(tables.place[v]), int(tables.size[v])
    beyond = (word >> (_WORD - _CHOICE)) - int(tables.table[begin : begin + size].sum())
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
    sizes = tables.size[members]
    begins = np.cumsum(sizes) - sizes
    rows, shares = np.empty(int(sizes.sum()), dtype=np.int64), np.empty(int(sizes.sum()))
    laid = np.empty((len(members), 2))
    law = tables, sums.tails, of.member, begin, stop, tilt, rows, shares, laid
    last, most, *_ = kernels.lay_out(*law)
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
            x, p = i + int(tables.first[v]), _weight(sums, v, i, tilt, laid[j], weight)
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
    place = left - int(tables.first[v])
    parts.append(_weight(sums, v, place, tilt, laid[last - begin], int(most)))
    return is_below(int(words[used]), product(parts), rng)


def try_leaves(
    sums: FamilySums, f: int, words: Bits, values: IntArray, rng: Randomness
) -> bool:
    """Repeat an attempt of a family of leaves, of any sum; return whether it is accepted.

    `values` (n + m,) is filled with those of the members before the rest, and with the rest, which
    comes after the variables.
    """
    of, law = sums.families, sums.leaves
    members = of.member[of.start[f] : of.start[f + 1]].tolist()
    gaps = of.gap[members].tolist()
    inverse, tilt, widest = float(law.inverse[f]), float(law.tilt[f]), max(gaps)
    powers, shares = np.empty((2, widest + 2))
    weights = np.empty(widest + 2, dtype=np.int64)
    unit, top = kernels.cumulate_lifts(inverse, tilt, widest, powers, weights, shares)
    whole = int(values[of.owner[f]] if of.owner[f] >= 0 else 0) - int(law.base[f])
    left, used, lifts = whole, 0, []
    for v, gap in zip(members, gaps, strict=True):
        lift = 0
        if gap:
            end = int(float(powers[gap] if top else 1.0) * unit * kernels.ABOVE) + 1
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
        with _precision(level):
            rate, most = _rate_of_lifts(inverse, tilt)
            out = Decimal(kernels.BELOW_ONE)
            for lifted, power, weight in lifts:
                own = (-rate * power).exp() * Decimal(unit) / weight
                out *= most * own if lifted else own
            fall = (Decimal(inverse) - Decimal(tilt)) * (left - best)
            return _around(out * _choices(left, best, len(members)) * (-fall).exp(), level)

    return is_below(int(words[used]), probability, rng)


def share(sums: FamilySums, v: int, f: int, x: int) -> Probability:
    """Return the true weight of variable v at x over that of its table; f is its family, or -1."""
    doubt = sums.doubt
    outside = f >= 0 and not sums.limits[0, f] <= x <= sums.limits[1, f]

    def probability(level: int) -> Enclosure:
        if outside:
            return Decimal(0), Decimal(0)
        with _precision(level):
            log = Decimal(float(doubt.slope[v])) * x - Decimal(float(doubt.decay[v])) * abs(x)
            # the terms are large and nearly cancel, which costs some of the guard's digits
            own = (log - Decimal(float(doubt.top[v]))).exp() * Decimal(float(doubt.unit[v]))
            own /= _entry(sums, v, x - int(sums.tables.first[v]))
            low = high = Decimal(1)
            if f >= 0 and sums.families.of_leaves[f]:
                low = high = _sum_of_leaves(sums, f, x)
            elif f >= 0:
                low, high = _sum_of_tables(sums, f, x, level)
            return _around(own * low, level)[0], _around(own * high, level)[1]

    return probability


@contextmanager
def _precision(level: int, rounding: str | None = None) -> Iterator[None]:
    """Compute with the digits of a level, and the guard's."""
    with localcontext(prec=_FIRST + _MORE * level + _GUARD) as context:
        if rounding:
            context.rounding = rounding
        yield


def _around(x: Decimal, level: int) -> Enclosure:
    """Return ends that enclose a number of which the digits of a level are trusted."""
    off = x * Decimal(10) ** -(_FIRST + _MORE * level)
    return x - off, x + off


def _weight(
    sums: FamilySums, v: int, place: int, tilt: float, laid: Iterable[float], over: int
) -> Probability:
    """Return the tilted weight of a table at a place, within it or beyond, over an integer.

    `laid` has the place where the tilt is 1, and a factor.
    """
    middle, scale = laid

    def probability(level: int) -> Enclosure:
        with _precision(level):
            out = _entry(sums, v, place)
            if tilt:
                out *= (Decimal(tilt) * (place - int(middle))).exp() * Decimal(scale)
            return _around(out / over, level)

    return probability


def _entry(sums: FamilySums, v: int, place: int) -> Decimal:
    """Return the weight of a table at a place, within it or beyond."""
    tables = sums.tables
    size = int(tables.size[v])
    if 0 <= place < size:
        return Decimal(int(tables.table[tables.place[v] + place]))
    side, k = (0, -1 - place) if place < 0 else (2, place - size)
    bound, fall = sums.tails[side : side + 2, v].tolist()
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
    size, first = int(tables.size[v]), int(tables.first[v])
    for side in (0, 2):
        bound, fall = sums.tails[side : side + 2, v].tolist()
        if not bound:
            continue
        place, sign = (size, 1) if side else (-1, -1)

        def ratio(level: int, fall: float = fall, sign: int = sign) -> Enclosure:
            with _precision(level):
                return _around((Decimal(tilt) * sign - Decimal(fall)).exp(), level)

        with _precision(0):
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
            with _precision(level):
                whole = Decimal(bound) * (Decimal(tilt) * (place - middle)).exp() * scale
                found = whole / weight
                return _around(found / (1 - low), level)[0], _around(found / (1 - high), level)[1]

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


def _sum_of_leaves(sums: FamilySums, f: int, x: int) -> Decimal:
    """Return the weight of a sum of leaves, as their table has it."""
    law, of = sums.leaves, sums.families
    directly, n = bool(sums.directly[f]), int(of.start[f + 1] - of.start[f])
    inverse = float(law.inverse[f])
    tilt = float(sums.base_tilt[f] if directly else law.tilt[f])
    (rate, most), top = _rate_of_lifts(inverse, tilt), inverse + tilt >= 0.0
    y, lifts, whole = x - int(law.base[f]), [Decimal(1)], Decimal(1)
    if y < 0:
        return Decimal(0)
    for i in range(law.begins[f], law.begins[f + 1]):
        gap = int(law.gaps[i])
        powers = [(-rate * k).exp() for k in range(gap + 1)]
        lift = [powers[gap] if top else Decimal(1)]
        lift += [most * powers[gap - j if top else j] for j in range(1, gap + 1)]
        for _ in range(law.counts[i] if gap else 0):
            lifts = _convolved(lifts, lift, y + 1)
            whole *= sum(lift)
    g, mode = (Decimal(tilt) - Decimal(inverse)).exp(), 0
    if directly:
        binomials = sums.binomials
        at = int(binomials.offset[binomials.of[f]])
        own = binomials.table[at : at + int(binomials.length[binomials.of[f]])]
        mode = int(own.argmax())
    # weights of the rest, beside that of the mode
    rest, total = _choices(y, mode, n) * g ** (y - mode), Decimal(0)
    for j, lift in enumerate(lifts):
        total += lift * rest
        k = y - j
        rest *= Decimal(k) / (Decimal(k + n - 1) * g)
    return total if directly else total * (1 - g) ** n / whole


def _sum_of_tables(sums: FamilySums, f: int, x: int, level: int) -> Enclosure:
    """Enclose the weight of members that add up to x, where those in each table add up to 1.

    Above level 0 tables are longer by values beyond them. Combinations in which some member is
    beyond these have at most twice the sum of such weights of each member, which are small
    (`family_sums`).
    """
    of, tables = sums.families, sums.tables
    members = of.member[of.start[f] : of.start[f + 1]].tolist()
    z, longer = Decimal(float(sums.retilt[f])).exp(), _LONGER * level
    parts, whole, lost, y = list[tuple[list[int], list[int]]](), Decimal(1), Decimal(0), x
    for v in members:
        begin, size = int(tables.place[v]), int(tables.size[v])
        entries = tables.table[begin : begin + size].tolist()
        total = Decimal(0)
        for entry in reversed(entries):
            total = total * z + entry
        ends = list[list[int]]()
        for side, edge in ((0, 1 / z), (2, z**size)):
            bound, fall = sums.tails[side : side + 2, v].tolist()
            ratio, many = (-Decimal(fall)).exp(), longer if bound else 0
            ends.append([int(Decimal(bound) * ratio**k * 2**_BITS) for k in range(many)])
            tilted = ratio * (z if side else 1 / z)
            if bound:
                lost += Decimal(bound) * edge * tilted**many / (1 - tilted) / total
        inner = [entry << _BITS for entry in entries]
        # at least and at most
        one, other = ([[max(w + by, 0) for w in end] for end in ends] for by in (-1, 2))
        parts.append((one[0][::-1] + inner + one[1], other[0][::-1] + inner + other[1]))
        # sums count places of tables, whose tilt is 1 at the first
        y += len(ends[0]) - int(tables.first[v])
        whole *= total * z ** len(ends[0]) * 2**_BITS
    if y < 0:
        return Decimal(0), 4 * lost
    low, high = (_coefficient([part[side] for part in parts], y) * z**y / whole for side in (0, 1))
    return low, high + 4 * lost


def _coefficient(parts: list[list[int]], y: int) -> int:
    """Return coefficient y of a product of polynomials, as one product of integers (Kronecker)."""
    slot = sum(sum(part).bit_length() for part in parts) // 8 + 1
    packed = 1
    for part in parts:
        packed *= int.from_bytes(b"".join(c.to_bytes(slot, "little") for c in part), "little")
    return packed >> (8 * slot * y) & ((1 << 8 * slot) - 1)


def _convolved(one: list[Decimal], other: list[Decimal], most: int) -> list[Decimal]:
    """Return the first entries of a convolution, at most so many."""
    out = [Decimal(0)] * min(len(one) + len(other) - 1, most)
    for i, a in enumerate(one):
        for j, b in enumerate(other[: len(out) - i]):
            out[i + j] += a * b
    return out
