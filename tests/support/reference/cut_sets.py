"""Draws by a cut set (`congenial.sum_network.cutset`), see `proofs/cut-sets.md`.

Values beyond all windows are proposed in fractions by the product, and by it here, too.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from congenial.kernels.network import cutset, tallies
from congenial.kernels.numerics import laws
from congenial.sum_network.cutset import cut_draws, outside
from support.reference.numbers import Words, below, decimal, many_digits, picked


def draw(of, words: Words):
    """Draw all variables once; the same as `cut_draws.sample`."""
    with many_digits():
        while True:
            values = _attempt(of, words)
            if values is not None:
                return values


def _attempt(of, words):
    found, (word, last) = of.found, words.take(2).tolist()
    weights = np.diff(of.ends, prepend=0)
    at, _ = picked(weights, word)
    if at is None:
        return None
    p = Fraction(int(weights[at]), 1 << 62)
    if at == found.values.shape[0]:
        proposed = outside.propose(found.box, found.branches, found.rows, words)
        if proposed is None or cut_draws._inside(found, proposed[0]):
            return None
        values, chance = proposed
    else:
        made = _forest(found, found.values[at], words.take(found.branches.choices).tolist())
        if made is None:
            return None
        values, chance = made
    share = _weight(found.box, values) / _constant(of) / decimal(p * chance)
    return values if below(last, share, words) else None


def _constant(of):
    unit = Decimal(float(of.unit))
    return Decimal(float(of.log_top)).exp() * (1 << 62) / unit * (1 + Decimal(float(of.raised)))


def _weight(box, values):
    log = Decimal(0)
    for v in box.measured:
        u, width = abs(int(values[v])), Decimal(float(box.unary.scale[v]))
        log -= u * u / (2 * width * width) if box.unary.kind[v] == laws.GAUSSIAN else u / width
    return log.exp()


class _Tables:
    """Tables of a forest, filled for one assignment."""

    def __init__(self, branches, held):
        program = branches.program
        one, none = held[None].copy(), np.zeros(1, dtype=np.int64)
        belief, log_weight = np.zeros((0, 0)), np.zeros(1)
        of = one, np.zeros(1), branches.coefficients, branches.checks, program, branches.roots
        cutset.evaluate(*of, 0.0, none, belief, log_weight)
        self.links, self.windows, self.state = program.links, program.windows, program.state

    def grid(self, t):
        lo, hi, tally_lo, tally_hi, offset = (int(each[t]) for each in self.windows)
        rows, columns = hi - lo + 1, tally_hi - tally_lo + 1
        return self.state.table[offset : offset + rows * columns].reshape(rows, columns)

    def starts(self, t):
        return int(self.windows.lo[t]), int(self.windows.tally_lo[t])


def _forest(found, held, given):
    """Choose the values of all tables, and return those of the variables and their probability."""
    branches = found.branches
    made, chance = _Tables(branches, held), Fraction(1)
    op, size = branches.op.tolist(), branches.op.size
    value, tally = [0] * size, [0] * size
    if any(op[t] >= cutset.MERGE and not made.state.stop[t] for t in range(size)):
        return None
    for t in branches.roots.tolist():
        entries = made.grid(t)[:, 0]
        total = 0.0
        for entry in entries.tolist():
            total += entry
        found_at = _picked(entries, total * (1.0 + (entries.size + 8.0) * 2.0**-52), given.pop(0))
        if found_at is None:
            return None
        value[t] = made.starts(t)[0] + found_at[0]
        chance *= found_at[1]
    for t in reversed(range(size)):
        if op[t] >= cutset.MERGE:
            chance *= _chosen(made, t, op[t], value, tally, given)
            if not chance:
                return None
    values = np.zeros(found.box.lo.size, dtype=np.int64)
    for t in np.flatnonzero(branches.op == cutset.UNARY).tolist():
        values[branches.variable[t]] = value[t] * branches.orientation[t]
    values[list(branches.cut)] = held
    return values, chance


def _chosen(made, t, op, value, tally, given):
    """Choose the values and tallies below table t; return the probability, 0 if none is chosen."""
    a, b = int(made.links.left[t]), int(made.links.right[t])
    sign, shift = int(made.links.sign[t]), int(made.state.shifts[made.links.row[t]])
    (lo_a, first_a), (lo_b, first_b), (lo, first) = map(made.starts, (a, b, t))
    one, two = made.grid(a), made.grid(b)
    tallied = one.shape[1] > 1 or two.shape[1] > 1 or first_a != 0 or first_b != 0
    value[a] = value[t]
    if op == cutset.READ:
        value[b] = sign * value[t] - shift
    if op == cutset.READ and not tallied:
        return Fraction(1)
    if op == cutset.ENTER:
        tally[a] = tally[t] - sign * value[t]
        return Fraction(1)
    whole = -shift if op == cutset.CLOSE else tally[t]
    j = whole - first_a - first_b
    if op == cutset.MERGE:
        i, places = value[t] - lo_a - lo_b, list(np.ndindex(one.shape))
        products = [one[u, s] * _at(two, i - u, j - s) for u, s in places]
    elif op == cutset.SUM:
        places = [(u, whole - first_a) for u in range(one.shape[0])]
        products = [one[place] for place in places]
    else:
        value[b] = value[b] if op == cutset.READ else 0
        i, k = value[a] - lo_a, value[b] - lo_b
        places = [(i, s) for s in range(one.shape[1])]
        products = [one[i, s] * _at(two, k, j - s) for _, s in places]
    own = float(made.grid(t)[value[t] - lo, tally[t] - first])
    found = _picked(np.array(products), own * float(made.state.factor[t]), given.pop(0))
    if found is None:
        return Fraction(0)
    (u, s), chance = places[found[0]], found[1]
    value[a], tally[a] = lo_a + u, first_a + s
    if op != cutset.SUM:
        tally[b] = whole - tally[a]
    if op == cutset.MERGE:
        value[b] = value[t] - value[a]
    return chance


def _at(table, i, j):
    return table[i, j] if 0 <= i < table.shape[0] and 0 <= j < table.shape[1] else 0.0


def _picked(weights, total, word):
    integers = (weights * (tallies._WHOLE / total)).astype(np.int64) + (weights > 0.0)
    at, _ = picked(integers, word)
    return None if at is None else (at, Fraction(int(integers[at]), 1 << 62))
