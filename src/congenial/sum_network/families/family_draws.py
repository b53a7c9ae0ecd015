"""Draws from the tables of families, with a correction for the errors of their entries."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from congenial.errors import NumericalError
from congenial.kernels.network import compositions, family_draws, member_sums
from congenial.kernels.network import family_sums as kernels
from congenial.kernels.numerics import elementwise
from congenial.randomness import Bits, Randomness, is_below, product
from congenial.sum_network import convolve_directly
from congenial.sum_network.families import exact_arithmetic as exact
from congenial.sum_network.families.family_records import FamilySums
from congenial.types import BoolArray, FloatArray, IntArray

# Batches of draws in a row of which all are rejected. One draw in some 10^6 to 10^9 should be.
_VAIN = 50
# Words that are fetched at a time, and most values of one batch of draws.
_WORDS, _VALUES = 1 << 18, 1 << 22
_UNIT = 2.0**-53
# Factor of a sum of doubts, which doubles add up; and the error of a word as a double.
_DOUBTS, _OFF = 1.0 + 2.0**-20, 2.0**-51
# Doubt above which a sum is settled before it is split (kernels.family_draws).
_SURE = 0.5
# Relative error of a share from which on doubles are left.
_ROUGH = 0.01
# Share of a table's largest entry below which its ends do not matter.
_NOTHING = 1.8e-35


def sample(sums: FamilySums, rows: int, rng: Randomness, *, first: int | None = None) -> IntArray:
    """Draw the variables `rows` times, independently; see `sum_network.draws.sample`.

    Returns ndarray of int64, shape (rows, first), or (rows, variables) by default.
    """
    size = sums.variables if first is None else first
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


def attempt_below(sums: FamilySums, roots: IntArray, rng: Randomness) -> tuple[BoolArray, IntArray]:
    """Try once to draw the variables given those of variable 0, shape (rows,).

    Returns which attempts are accepted, shape (rows,), and the variables of these.
    """
    most, accepted = max(1, _VALUES // sums.n), np.zeros(roots.size, dtype=np.bool_)
    found = [np.empty((0, sums.variables), dtype=np.int64)]
    for begin in range(0, roots.size, most):
        given = roots[begin : begin + most]
        values = np.zeros((sums.rows, given.size), dtype=np.int64)
        values[0] = given
        kept = _attempted(sums, values, rng)
        accepted[begin : begin + most] = kept
        found.append(values[: sums.variables, kept].T)
    return accepted, np.concatenate(found)


def _accepted(sums: FamilySums, columns: int, rng: Randomness) -> IntArray:
    """Draw `columns` times; return those that are accepted, nearly always all."""
    values = np.zeros((sums.rows, columns), dtype=np.int64)
    kept = _attempted(sums, values, rng)
    return values if kept.all() else values[:, kept]


def _attempted(sums: FamilySums, values: IntArray, rng: Randomness) -> BoolArray:
    """Fill `values`, one draw in each column; return which draws are accepted."""
    columns = values.shape[1]
    doubts = np.zeros(columns)
    _choose(sums, values, doubts, rng)
    # exact if accepted with the true weight over that of the tables, which is 1 - doubt at least
    words = rng.bits(columns)
    kept = words * 2.0**-64 < 1.0 - _DOUBTS * doubts - _OFF
    for column in np.flatnonzero(~kept & np.isfinite(doubts)).tolist():
        unsettled = list(_unsettled(sums, values[:, column]))
        kept[column] = _is_kept(sums, int(words[column]), unsettled, rng)
    _compose(sums, values, rng)
    if sums.freed is not None:
        sums.freed.add_up(values)
    return np.asarray(kept)


def _choose(sums: FamilySums, values: IntArray, doubts: FloatArray, rng: Randomness) -> None:
    """Draw all choices; the totals that are to be composed come after the variables.

    A doubt of more than 1/2 is settled before a sum is split, which might take forever.
    """
    state, turned = np.zeros(5, dtype=np.int64), np.zeros(1)
    of = sums.families
    most = max(_WORDS, 2 * int(np.diff(of.start).max()) + 2, values.shape[1])
    tilts = sums.base_tilt, sums.retilt
    of_all = of, sums.tables, sums.leaves, sums.binomials, tilts, sums.doubt
    words = rng.bits(most)
    while True:
        read = family_draws.draw(sums.order, *of_all, state, turned, words, values, doubts)
        if state[0] == sums.order.size:
            return
        words = words[read:]
        waiting, f, column = int(state[2]), int(sums.order[state[0]]), int(state[1])
        mine, v = values[:, column], int(of.owner[f])
        if waiting == family_draws.ROOT:
            state[2] = family_draws.CHOSEN
            found = exact.settle_root(sums, v, int(words[0]), rng)
            mine[v] = sums.tables.values(v)[0] if found is None else found
            doubts[column] = np.inf if found is None else 0.0
        elif waiting == family_draws.DOUBTFUL:
            state[2] = family_draws.COUNTED
            if not _is_kept(sums, int(rng.bits(1)[0]), [(v, f, int(mine[v]))], rng):
                doubts[column] = np.inf
        elif waiting == family_draws.UNDECIDED:
            attempt = exact.try_leaves if of.of_leaves[f] else exact.try_tables
            accepted = attempt(sums, f, float(turned[0]), words, mine, rng)
            state[2] = family_draws.ACCEPTED if accepted else family_draws.REFUSED
        else:
            words = np.concatenate((words, rng.bits(most)))
            words.setflags(write=False)


def _unsettled(sums: FamilySums, values: IntArray) -> Iterator[tuple[int, int, int]]:
    """Yield variables whose doubts are not settled yet, with their families and values."""
    of, doubt = sums.families, partial(family_draws.doubt_of, doubt=sums.doubt, tables=sums.tables)
    for f in np.flatnonzero(of.owner >= 0).tolist():
        v = int(of.owner[f])
        if 0.0 < doubt(v, values[v]) <= _SURE:
            yield v, f, int(values[v])
    for v in np.flatnonzero(of.lone).tolist():
        yield v, -1, int(values[v])


def _is_kept(sums: FamilySums, word: int, of: list[tuple[int, int, int]], rng: Randomness) -> bool:
    """Return whether a uniform number lies below the product of the shares of some variables.

    The sums are added up term by term, which takes half a minute for three million values.
    """
    found, share, units = dict[tuple[int, int], tuple[float, float]](), 1.0, 0.0
    for v, f, x in of:
        key = int(sums.tables.of[v]), x
        if key not in found:
            found[key] = _share(sums, v, f, x)
        share *= found[key][0]
        units += found[key][1] + 2.0
    at, off = word * 2.0**-64, 2.0 * _UNIT * (units + 8.0)
    if off < _ROUGH and at < share * (1.0 - off) - _OFF:
        return True
    if off < _ROUGH and at > share * (1.0 + off) + _OFF:
        return False
    return is_below(word, product([exact.share(sums, *each) for each in of]), rng)


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


def _share(sums: FamilySums, v: int, f: int, x: int) -> tuple[float, float]:
    """Return the true weight of variable v at x over its entry, and its units of rounding."""
    doubt, t = sums.doubt, sums.tables.of[v]
    if x not in sums.tables.values(v):
        return 1.0, math.inf
    # exact up to one rounding, since the terms are large and nearly cancel
    away = abs(x - Fraction(doubt.center[t]))
    log = Fraction(doubt.slope[t]) * x - Fraction(doubt.decay[t]) * away - Fraction(doubt.top[t])
    entry = float(sums.tables.entries(v)[x - sums.tables.values(v)[0]])
    weight = float(doubt.unit[t]) * elementwise.exp(log) / entry
    units = abs(float(log)) + 8.0
    if f < 0:
        return weight, units
    law = _sum_of_leaves if sums.families.of_leaves[f] else _sum_of_tables
    total, more = law(sums, f, x)
    return weight * total, units + more


def _sum_of_leaves(sums: FamilySums, f: int, x: int) -> tuple[float, float]:
    """Return the weight of a sum of leaves, as their table has it, and its units of rounding."""
    law, directly = sums.leaves, bool(sums.directly[f])
    tilt = float(sums.base_tilt[f] if directly else law.tilt[f])
    inverse, y = float(law.inverse[f]), x - int(law.base[f])
    lifts, units = np.ones(1), 40.0
    for i in range(law.begins[f], law.begins[f + 1]):
        lift = np.empty(int(law.gaps[i]) + 1)
        kernels.fill_lift(inverse, tilt, lift)
        if not directly:
            lift /= math.fsum(lift)
        for _ in range(law.counts[i] if lift.size > 1 else 0):
            lifts, units = _convolved(lifts, lift), units + 16.0
    last, whole = min(lifts.size - 1, y), 1.0
    if directly:
        at = int(sums.binomials.offset[sums.binomials.of[f]])
        rest = sums.binomials.table[at : at + y + 1]
        if y >= sums.binomials.length[sums.binomials.of[f]]:
            return 1.0, math.inf
    else:
        size = float(np.diff(sums.families.start)[f])
        # far beyond its mode, a negative binomial weight falls by at least half its last rate
        reach = 4.0 * size / -elementwise.expm1(tilt - inverse) + 100.0 / (inverse - tilt)
        rest = np.empty(max(y, int(reach)) + 1)
        kernels.fill_binomial(inverse, size, tilt, rest)
        whole = math.fsum(rest)
    low = max(0, y - rest.size + 1)
    found = math.fsum(lifts[low : last + 1] * rest[y - last : y - low + 1][::-1])
    return found / whole, units


def _sum_of_tables(sums: FamilySums, f: int, x: int) -> tuple[float, float]:
    """Return the probability that members add up to x, by their tables, and units of rounding."""
    of, tables = sums.families, sums.tables
    members, parts = of.member[of.start[f] : of.start[f + 1]], []
    tilt, lost = float(sums.retilt[f]), 0.0
    for v in members:
        part = tables.entries(v)
        table = np.empty(part.size)
        kernels.fill_tilted(part, tilt, table)
        whole = math.fsum(table)
        shift = max(tilt * (table.size - 1.0), 0.0)
        lost += member_sums.beyond(tables.tails, tables.of[v], table.size, tilt, shift) / whole
        parts.append(table / whole)
    y, units = x - int(tables.first[tables.of[members]].sum()), 16.0 * members.size + 16.0
    if len(parts) == 1:
        return (float(parts[0][y]), units) if 0 <= y < parts[0].size else (1.0, math.inf)
    parts.sort(key=lambda part: part.size)
    first = [0] * len(parts)
    while len(parts) > 2:  # neighbours in size, whose ends are cut where nothing is lost
        one, other, *parts = parts
        begin, begun, *first = first
        joined = _convolved(one, other)
        kept = np.flatnonzero(joined > _NOTHING * joined.max())
        lost += joined.size * _NOTHING
        parts.append(joined[kept[0] : kept[-1] + 1])
        first.append(begin + begun + int(kept[0]))
    y -= sum(first)
    one, other = parts
    low, high = max(0, y - other.size + 1), min(one.size - 1, y)
    found = math.fsum(one[low : high + 1] * other[y - high : y - low + 1][::-1])
    # values that are cut, and members beyond their tables, as shares of the weight that is found
    cut = 4.0 * lost
    return found, units + (cut / (found * _UNIT) if found > 0.0 else math.inf)


def _convolved(one: FloatArray, other: FloatArray) -> FloatArray:
    return convolve_directly(one, other, 0, one.size + other.size - 1)
