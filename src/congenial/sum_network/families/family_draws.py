"""Draws from the tables of families, with a correction for the errors of transforms."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from congenial.errors import NumericalError
from congenial.kernels.network import compositions, family_draws
from congenial.kernels.network import family_sums as kernels
from congenial.randomness import Bits, Randomness
from congenial.sum_network import convolve_directly
from congenial.sum_network.families.family_sums import FamilySums
from congenial.types import FloatArray, IntArray

# Batches of draws in a row of which all are rejected. One draw in some 10^6 to 10^9 should be.
_VAIN = 50
# Words that are fetched at a time, and most values of one batch of draws.
_WORDS, _VALUES = 1 << 18, 1 << 22
_UNIT = 2.0**-53
# Share of a table's largest entry below which its ends do not matter.
_NOTHING = math.exp(-80.0)


def sample(sums: FamilySums, rows: int, rng: Randomness, *, first: int | None = None) -> IntArray:
    """Draw the variables `rows` times, independently; see `sum_network.draws.sample`.

    Returns ndarray of int64, shape (rows, first), or (rows, n) by default.
    """
    size = sums.n if first is None else first
    out = np.empty((rows, size), dtype=np.int64)
    done, most, vain = 0, max(1, _VALUES // sums.n), 0
    while done < rows:
        values = _accepted(sums, min(most, rows - done), rng)[:size].T
        out[done : done + len(values)] = values
        done += len(values)
        vain = 0 if len(values) else vain + 1
        if vain == _VAIN:
            raise NumericalError(
                f"{_VAIN} batches of draws in a row were rejected, because the tables of their "
                "sums are not accurate enough; use noise scales that differ less, or fewer bounds."
            )
    return out


def _accepted(sums: FamilySums, columns: int, rng: Randomness) -> IntArray:
    """Draw `columns` times; return those that are accepted, nearly always all."""
    values = np.zeros((sums.n + sums.order.size, columns), dtype=np.int64)
    doubts = np.zeros(columns)
    _choose(sums, values, doubts, rng)
    # exact if accepted with the true weight over that of the tables, which is 1 - doubt at least
    coins = _coins(rng, columns)
    kept = coins < 1.0 - doubts
    for column in np.flatnonzero(~kept & np.isfinite(doubts)):
        kept[column] = coins[column] < true_share(sums, values[:, column])
    _compose(sums, values, rng)
    if sums.freed is not None:
        sums.freed.add_up(values)
    return values if kept.all() else values[:, kept]


def _coins(rng: Randomness, size: int) -> FloatArray:
    return np.asarray((rng.bits(size) >> np.uint64(11)).astype(np.float64) * _UNIT)


def _choose(sums: FamilySums, values: IntArray, doubts: FloatArray, rng: Randomness) -> None:
    """Draw all choices; the totals that are to be composed come after the variables.

    A doubt of more than 1/2 is settled before a sum is split, which might take forever.
    """
    state = np.zeros(4, dtype=np.int64)
    of = sums.families
    most = max(_WORDS, 2 * int(np.diff(of.start).max()) + 2, values.shape[1])
    tilts = sums.base_tilt, sums.retilt
    of_all = sums.families, sums.tables, sums.leaves, sums.binomials, tilts, sums.doubt
    words = rng.bits(most)
    while True:
        read = family_draws.draw(sums.order, *of_all, state, words, values, doubts)
        if state[0] == sums.order.size:
            return
        words = words[read:]
        if state[2] == 1:
            f, column = int(sums.order[state[0]]), int(state[1])
            state[2] = 2
            if not _coins(rng, 1)[0] < _share(sums, f, values[:, column]):
                doubts[column] = np.inf
        else:
            words = np.concatenate((words, rng.bits(most)))
            words.setflags(write=False)


def _compose(sums: FamilySums, values: IntArray, rng: Randomness) -> None:
    """Split the rest of every family of leaves among them, uniformly."""
    of, n = sums.families, sums.n
    number = np.flatnonzero(of.of_leaves).astype(np.int32)
    if not number.size:
        return
    size = np.diff(of.start).astype(np.int32)[number]
    none = np.full(number.size, -1, dtype=np.int32)
    program = number + np.int32(n), none, of.start[number], size, of.member
    tape: Bits = rng.bits(compositions.count_words(*program[:2], size, values, 0, values.shape[1]))
    before = values[of.member]
    while True:
        read = compositions.compose(*program, tape, values, 0, values.shape[1])
        if read <= tape.size:
            return
        values[of.member] = before
        tape = np.concatenate((tape, rng.bits(tape.size // 8 + 64)))
        tape.setflags(write=False)


def true_share(sums: FamilySums, values: IntArray) -> float:
    """Return the true weight of a draw over that of the tables, where doubts are not settled yet.

    The sums are added up term by term, which takes half a minute for three million values. The
    relative error is in `FamilySums.error`.
    """
    of, out = sums.families, 1.0
    for f in np.flatnonzero(of.owner >= 0):
        v = of.owner[f]
        if 0.0 < family_draws.doubt_of(v, values[v], sums.doubt, sums.tables) <= 0.5:
            out *= _share(sums, int(f), values)
    return out


def _share(sums: FamilySums, f: int, values: IntArray) -> float:
    """Return the true weight of a family's sum over its entry."""
    of, doubt, tables = sums.families, sums.doubt, sums.tables
    v = int(of.owner[f])
    x = int(values[v])
    # exact up to one rounding, since the terms are large and nearly cancel
    log = Fraction(doubt.slope[v]) * x - Fraction(doubt.decay[v]) * abs(x) - Fraction(doubt.top[v])
    weight = doubt.unit[v] * math.exp(log)
    entry = tables.table[tables.place[v] + x - tables.first[v]]
    law = _sum_of_leaves if of.of_leaves[f] else _sum_of_tables
    return min(float(weight * law(sums, f, x)) / float(entry), 1.0)


def _sum_of_leaves(sums: FamilySums, f: int, x: int) -> float:
    """Return the probability that the leaves of a family add up to x, by their tilt."""
    law = sums.leaves
    inverse, tilt, y = float(law.inverse[f]), float(law.tilt[f]), x - int(law.base[f])
    lifts = np.ones(1)
    for i in range(law.begins[f], law.begins[f + 1]):
        lift = np.empty(int(law.gaps[i]) + 1)
        kernels.fill_lift(inverse, tilt, lift)
        lift /= math.fsum(lift)
        for _ in range(law.counts[i] if lift.size > 1 else 0):
            lifts = _convolved(lifts, lift)
    size = float(np.diff(sums.families.start)[f])
    # far beyond its mode, a negative binomial weight falls by at least half its last rate
    reach = 4.0 * size / -math.expm1(tilt - inverse) + 100.0 / (inverse - tilt)
    rest = np.empty(max(y, int(reach)) + 1)
    kernels.fill_binomial(inverse, size, tilt, rest)
    low = max(0, y - rest.size + 1)
    last = min(lifts.size - 1, y)
    return math.fsum(lifts[low : last + 1] * rest[y - last : y - low + 1][::-1]) / math.fsum(rest)


def _sum_of_tables(sums: FamilySums, f: int, x: int) -> float:
    """Return the probability that the members of a family add up to x, by their tables."""
    of, tables = sums.families, sums.tables
    members, parts = of.member[of.start[f] : of.start[f + 1]], []
    for v in members:
        begin = tables.place[v]
        table = np.empty(int(tables.size[v]))
        part = tables.table[begin : begin + table.size]
        kernels.fill_tilted(part, float(sums.retilt[f]), table)
        parts.append(table / math.fsum(table))
    parts.sort(key=lambda part: part.size)
    first = [0] * len(parts)
    while len(parts) > 2:  # neighbours in size, whose ends are cut where nothing is lost
        one, other, *parts = parts
        begin, begun, *first = first
        joined = _convolved(one, other)
        kept = np.flatnonzero(joined > _NOTHING * joined.max())
        parts.append(joined[kept[0] : kept[-1] + 1])
        first.append(begin + begun + int(kept[0]))
    y = x - int(tables.first[members].sum()) - sum(first)
    one, other = parts
    low, high = max(0, y - other.size + 1), min(one.size - 1, y)
    return math.fsum(one[low : high + 1] * other[y - high : y - low + 1][::-1])


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    return convolve_directly(one, other, 0, one.size + other.size - 1)
