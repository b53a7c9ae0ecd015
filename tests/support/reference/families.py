"""Draws family by family (`congenial.sum_network.families`), see `proofs/family-draws.md`.

Tilts of proposals may be any numbers, and are found as the product finds them.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from congenial.kernels.network import compositions
from congenial.kernels.network import family_draws as kernels
from support.kernel_entries import entry
from support.reference.numbers import Words, below, decimal, many_digits, picked

_TAPE = 1 << 18
# Doubt above which a sum is settled before it is split.
_SETTLED = 0.5
# How far weights beyond a table are followed: to 1e-52 of the first.
_NATS = 120.0


@dataclass
class Attempt:
    """One attempt at a draw: its values, its doubts, and the words of its choices."""

    values: list
    tape: np.ndarray
    words: Words
    doubt: float = 0.0
    at: int = 0

    def next(self):
        self.at += 1
        return int(self.tape[self.at - 1])


def draw(sums, words: Words, noted=None, *, closely=False):
    """Draw all variables once; the same as `family_draws.sample`.

    `noted` counts decisions. If not `closely`, draws are accepted where bounds on doubts suffice.
    """
    noted = Counter() if noted is None else noted
    accepted = False
    while not accepted:
        with many_digits():
            values, accepted = _attempted(sums, words, noted, closely)
        _compose(sums, values, words)
    values = np.array(values, dtype=np.int64)[:, None]
    if sums.freed is not None:
        sums.freed.add_up(values)
    return values[: sums.variables, 0]


def _attempted(sums, words, noted, closely):
    """Make all choices of one draw; return its values and whether it is accepted."""
    widest = int(np.diff(sums.families.start).max())
    made = Attempt([0] * sums.rows, words.take(max(_TAPE, 2 * widest + 2)), words)
    refused = False
    for f in sums.order.tolist():
        if sums.families.root[f]:
            word = made.next()
            refused = refused or not _root(sums, int(sums.families.owner[f]), word, made)
        refused = refused or not _family(sums, f, made, noted)
    word = words.word()
    if refused:
        return made.values, False
    # bounds on doubts are compared with true shares elsewhere (test_family_sums)
    if not closely and word < (1.0 - 2.0 * made.doubt - 2.0**-40) * 2.0**64:
        return made.values, True
    noted["worked out"] += 1
    return made.values, below(word, _shares(sums, made.values), words)


def _shares(sums, values):
    """The product of all shares that were not decided before."""
    of, p = sums.families, Decimal(1)
    for f in np.flatnonzero(of.owner >= 0).tolist():
        v = int(of.owner[f])
        if 0.0 < _doubt(sums, v, values) <= _SETTLED:
            p *= _share(sums, v, f, values[v])
    for v in np.flatnonzero(of.lone).tolist():
        p *= _share(sums, v, -1, values[v])
    return p


def _doubt(sums, v, values):
    return kernels.doubt_of(v, values[v], sums.doubt, sums.tables)


def _root(sums, v, word, made):
    """Draw the value of a variable in no sum; return whether there is one."""
    at, beyond = picked(sums.tables.entries(v), word)
    if at is None:
        found = _beyond(sums, v, beyond, 0.0, 0, 1.0, made.words)
        if found is None or not below(made.words.word(), found[1], made.words):
            made.values[v] = sums.tables.values(v)[0]
            return False
        made.values[v] = found[0]
    else:
        made.values[v] = sums.tables.values(v)[at]
    return True


def _family(sums, f, made, noted):
    """Draw the members of a family; return whether its sum is not refused."""
    of, v = sums.families, int(sums.families.owner[f])
    doubt = _doubt(sums, v, made.values) if v >= 0 else 0.0
    if doubt > _SETTLED:
        noted["settled"] += 1
        if not below(made.words.word(), _share(sums, v, f, made.values[v]), made.words):
            return False
    else:
        made.doubt += doubt
    members = of.member[of.start[f] : of.start[f + 1]].tolist()
    _members(sums, f, members, made, noted)
    made.doubt += sum(_doubt(sums, u, made.values) for u in members if of.lone[u])
    return True


def _members(sums, f, members, made, noted):
    of, law = sums.families, sums.leaves
    whole = made.values[of.owner[f]] if of.owner[f] >= 0 else 0
    if not of.of_leaves[f]:
        tilt = _tilt(sums, f, members, whole)
        while not _tables(sums, members, whole, tilt, made, noted):
            pass
        return
    if not any(of.gap[u] for u in members):
        for u in members:
            made.values[u] = int(of.least[u])
        made.values[sums.n + f] = whole - int(law.base[f])
        return
    tilt, failed = float(law.tilt[f]), 0
    while not _leaves(sums, f, members, whole, tilt, made, noted):
        failed += 1
        if failed == kernels.FAILED:
            above = float(whole - law.base[f])
            tilt = float(entry("network.family_draws._towards")(f, len(members), law, above))


def _leaves(sums, f, members, whole, tilt, made, noted):
    """Try to draw lifts of leaves that leave a likely rest."""
    of, law, n = sums.families, sums.leaves, len(members)
    inverse, gaps = float(law.inverse[f]), [int(of.gap[u]) for u in members]
    widest, above = max(gaps), whole - int(law.base[f])
    powers, shares = np.empty((2, widest + 2))
    running = np.empty(widest + 2, dtype=np.int64)
    unit, top, off = kernels.cumulate_lifts(inverse, tilt, widest, powers, running, shares)
    *given, last = [made.next() for _ in range(sum(gap > 0 for gap in gaps) + 1)]
    p, left = Decimal(kernels.BELOW_ONE), above
    for u, gap in zip(members, gaps, strict=True):
        lift = 0
        if gap:
            # all lifts but 0 share running weights: the likeliest comes first
            places = [*(range(gap, 0, -1) if top else range(1, gap + 1)), 0]
            none = int(float(powers[gap] if top else 1.0) * unit * (1.0 + off)) + 1
            integers = [*np.diff(running[: gap + 1]).tolist(), none]
            target, rest = divmod(given.pop(0) * sum(integers), 1 << 64)
            if rest < (1 << 64) % sum(integers):
                return False
            at = int(np.searchsorted(np.cumsum(integers), target, side="right"))
            lift = places[at]
            own = _weight_of_lift(Decimal(inverse), Decimal(tilt), gap, lift)
            p *= own * Decimal(float(unit)) / integers[at]
        made.values[u] = int(of.least[u]) + lift
        left -= lift
    if left < 0:
        return False
    made.values[sums.n + f] = left
    best = int(kernels.best_rest(kernels.mode_of(n, inverse, tilt), above, sum(gaps)))
    ways = Fraction(math.comb(left + n - 1, n - 1), math.comb(best + n - 1, n - 1))
    p *= decimal(ways) * ((Decimal(tilt) - Decimal(inverse)) * (left - best)).exp()
    noted["leaves"] += 1
    return below(last, p, made.words)


def _weight_of_lift(i, t, gap, lift):
    """The tilted weight of a lift, over that of the likelier end."""
    most = 1 - (-2 * i).exp() if lift else Decimal(1)
    return most * ((i + t) * lift - max((i + t) * gap, Decimal(0))).exp()


def _laid_out(sums, members, tilt):
    """Integer weights of every member with a tilt, and what `lay_out` says of them."""
    tables = sums.tables
    sizes = [len(tables.values(u)) for u in members]
    rows, shares = np.empty(sum(sizes), dtype=np.int64), np.empty(sum(sizes))
    laid = np.empty((len(members), 2))
    numbers = np.array(members, dtype=sums.families.member.dtype)
    said = kernels.lay_out(tables, numbers, 0, len(members), tilt, rows, shares, laid)
    ends = np.cumsum(sizes)
    if tilt:
        integers = [np.diff(row, prepend=0) for row in np.split(rows, ends[:-1])]
    else:
        integers = [tables.entries(u) for u in members]
    return integers, laid, said


def _tilt(sums, f, members, whole):
    """Return the tilt at which proposals are near a sum."""
    tilt, laid = 0.0, _laid_out(sums, members, 0.0)
    widest = max(len(sums.tables.values(u)) for u in members)
    upper = max(kernels._MOST_NATS / widest, abs(float(sums.retilt[f])))
    lower = -upper
    for turn in range(kernels._TURNS if len(members) > 1 else 0):
        *_, mean, variance, _ = laid[2]
        off = float(whole) - mean
        if off * off <= (kernels._NEAR if turn == 0 else 1.0) * variance:
            break
        before = tilt
        lower, upper = (max(lower, tilt), upper) if off > 0.0 else (lower, min(upper, tilt))
        if turn == 0 and sums.retilt[f] != 0.0:
            tilt = float(sums.retilt[f])
        else:
            tilt += off / max(variance, abs(off) * math.sqrt(variance))
            if not lower < tilt < upper:
                tilt = 0.5 * (lower + upper)
        laid = _laid_out(sums, members, tilt)
        if not laid[2][-1]:
            return before
    return tilt


def _tables(sums, members, whole, tilt, made, noted):
    """Try to draw members with tables, of which the last one gets the rest."""
    tables = sums.tables
    integers, laid, said = _laid_out(sums, members, tilt)
    last, most = int(said[0]), int(said[1])
    given = [made.next() for _ in members]
    accept, rest = given.pop(), list(given)
    left = whole - sum(tables.values(u)[0] for u in members)
    if len(members) == 1:
        made.values[members[0]] = whole
        return True
    beyond = False
    for j in range(len(members)):
        if j == last:
            continue
        at, over = picked(integers[j], rest.pop(0))
        if at is None:
            beyond = True
            break
        left -= at
        if left < 0 and not any(tables.tails[0, tables.of[u]] for u in members):
            return False
    noted["beyond"] += beyond
    p, left = Decimal(1), whole
    for j, u in enumerate(members):
        if j == last:
            continue
        at, over = picked(integers[j], given.pop(0))
        middle, scale = laid[j].tolist()
        if at is None:
            found = _beyond(sums, u, over, tilt, int(middle), scale, made.words)
            if found is None:
                return False
            x, share = found
        else:
            x = tables.values(u)[at]
            share = _tilted(sums, u, at, tilt, int(middle), scale) / int(integers[j][at])
        made.values[u], left, p = x, left - x, p * share
    u, (middle, scale) = members[last], laid[last].tolist()
    made.values[u] = left
    p *= _tilted(sums, u, left - tables.values(u)[0], tilt, int(middle), scale) / most
    noted["tables"] += 1
    return below(accept, p, made.words)


def _tilted(sums, v, place, tilt, middle, scale):
    """The weight of a table at a place, within it or beyond, with a tilt."""
    by = (Decimal(tilt) * (place - middle)).exp() * Decimal(scale) if tilt else Decimal(1)
    return _entry(sums, v, place) * by


def _entry(sums, v, place):
    tables, size = sums.tables, len(sums.tables.values(v))
    if 0 <= place < size:
        return Decimal(int(tables.entries(v)[place]))
    side, k = (0, -1 - place) if place < 0 else (2, place - size)
    bound, fall = tables.tails[side : side + 2, tables.of[v]].tolist()
    return Decimal(bound) * (-Decimal(fall) * k).exp()


def _beyond(sums, v, over, tilt, middle, scale, words):
    """Propose a value beyond a table; return it, and its weight over that of the proposal."""
    values = sums.tables.values(v)
    for side, place, step in ((0, -1, -1), (2, len(values), 1)):
        bound, fall = sums.tables.tails[side : side + 2, sums.tables.of[v]].tolist()
        if not bound:
            continue
        ratio = (Decimal(tilt) * step - Decimal(fall)).exp()
        edge = Decimal(bound) * (Decimal(tilt) * (place - middle)).exp() * Decimal(scale)
        weight = math.floor(edge / (1 - ratio)) + 2
        if over >= weight:
            over -= weight
            continue
        k = 0
        while below(words.word(), ratio, words):
            k += 1
        return values[0] + place + step * k, edge / (1 - ratio) / weight
    return None


def _share(sums, v, f, x):
    """The true weight of variable v at x over that of its table; f is its family, or -1."""
    of, doubt, t = sums.families, sums.doubt, sums.tables.of[v]
    least = of.least[v] if f < 0 else sums.limits[0, f]
    if x < least or (f >= 0 and x > sums.limits[1, f]):
        return Decimal(0)
    slope, decay, center, top, unit = (
        Decimal(float(each[t]))
        for each in (doubt.slope, doubt.decay, doubt.center, doubt.top, doubt.unit)
    )
    own = (slope * x - decay * abs(x - center) - top).exp() * unit
    own /= _entry(sums, v, x - sums.tables.values(v)[0])
    if f < 0:
        return own
    return own * (_of_leaves(sums, f, x) if of.of_leaves[f] else _of_tables(sums, f, x))


def _of_leaves(sums, f, x):
    """The weight of leaves that add up to x, as their table has it: lifts, and a rest of all."""
    law, of = sums.leaves, sums.families
    members = of.member[of.start[f] : of.start[f + 1]].tolist()
    i, directly, n = Decimal(float(law.inverse[f])), bool(sums.directly[f]), len(members)
    t = Decimal(float(sums.base_tilt[f] if directly else law.tilt[f]))
    sum_of_lifts = [Decimal(1)]
    for u in members:
        gap = int(of.gap[u])
        lift = [_weight_of_lift(i, t, gap, j) for j in range(gap + 1)]
        if not directly:
            lift = [w / sum(lift) for w in lift]
        sum_of_lifts = _convolved(sum_of_lifts, lift)
    y, g, mode = x - int(law.base[f]), (t - i).exp(), 0
    if directly:
        at, length = (int(each[sums.binomials.of[f]]) for each in sums.binomials[1:3])
        mode = int(sums.binomials.table[at : at + length].argmax())
    ways = math.comb(mode + n - 1, n - 1)
    found = sum(
        w * math.comb(y - j + n - 1, n - 1) * g ** (y - j - mode)
        for j, w in enumerate(sum_of_lifts)
        if j <= y
    )
    # one by one, weights of the rest are relative to their mode; else they add up to 1
    return found / ways if directly else found * (1 - g) ** n * g**mode


def _of_tables(sums, f, x):
    """The weight of members that add up to x, of which those in each table add up to 1."""
    of, tables = sums.families, sums.tables
    tilt, law, first = Decimal(float(sums.retilt[f])), [Decimal(1)], 0
    for v in of.member[of.start[f] : of.start[f + 1]].tolist():
        size, ends, entries = len(tables.values(v)), [], tables.entries(v).tolist()
        for side, sign in ((0, -1), (2, 1)):
            bound, fall = tables.tails[side : side + 2, tables.of[v]].tolist()
            many = math.ceil(_NATS / (fall - sign * float(tilt))) if bound else 0
            ratio = (sign * tilt - Decimal(fall)).exp()
            edge = Decimal(bound) * (tilt * (size if side else -1)).exp()
            ends.append([edge * ratio**k for k in range(many)])
        within = [entry * (tilt * place).exp() for place, entry in enumerate(entries)]
        weights, inside = [*ends[0][::-1], *within, *ends[1]], sum(within)
        law = _convolved(law, [w / inside for w in weights])
        first += tables.values(v)[0] - len(ends[0])
    return law[x - first] if 0 <= x - first < len(law) else Decimal(0)


def _convolved(one, other):
    out = [Decimal(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            out[i + j] += a * b
    return out


def _compose(sums, values, words):
    """Split the rest of every family of leaves among them, as the product does."""
    of = sums.families
    number = np.flatnonzero(of.of_leaves).astype(np.int32)
    if not number.size:
        return
    size = np.diff(of.start).astype(np.int32)[number]
    none = np.full(number.size, -1, dtype=np.int32)
    program = number + np.int32(sums.n), none, of.start[number], size, of.member
    column = np.array(values, dtype=np.int64)[:, None]
    tape = words.take(int(compositions.count_words(*program[:2], size, column, 0, 1)))
    while True:
        tape.setflags(write=False)
        tried = column.copy()
        if compositions.compose(*program, tape, tried, 0, 1) <= tape.size:
            values[:] = tried[:, 0].tolist()
            return
        tape = np.append(tape, words.take(tape.size // 8 + 64))
