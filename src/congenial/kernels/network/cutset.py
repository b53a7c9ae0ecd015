"""Sums of weights over the forests that remain given the values of a cut set.

Benchmark row: `crossing`.

A *branch* program is a list of tables, each a function on a window of integers, parts before
wholes:

* ``UNARY``: the weight of one variable, filled in advance;
* ``POINT``: 1 at zero, the empty sum;
* ``MERGE``: the convolution of two tables;
* ``READ``: a variable's table (left) times the law of the sum below it (right), read at
  ``sign * u - shift``, where the shift is the contribution of the cut variables to that sum.

One sum that crosses the forest may be a *tally*: tables below its entries are over pairs of a value
and the entries' contribution to the tally (`congenial.kernels.network.tallies`):

* ``ENTER``: a variable's value times `sign` is added to the tally;
* ``SUM``: the tally alone, summed over the values;
* ``CLOSE``: the value alone, where the tally and that of the right table make minus the shift.

From one assignment to the next, only tables that depend on a changed shift are recomputed. All
terms are nonnegative, so errors stay relative; tables are divided by powers of two. An entry,
rounded up, is nowhere below the sum of the products that it stands for, so that a draw can be
accepted by its weight over the probability of its choices. Proof: `proofs/cut-sets.md`.
"""

from __future__ import annotations

import math

import numpy as np

from congenial.kernels.network import tallies
from congenial.kernels.network.messages import power_above
from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit

UNARY = 0
POINT = 1
MERGE = 2
READ = 3
ENTER = 4
SUM = 5
CLOSE = 6

_LOG_2 = 0.6931471805599453
# Unit of doubles that are rounded, twice.
_ROUNDED = 2.0**-52


@njit(inner=True)
def _raised(terms):
    """Return a factor above the rounding of a sum of `terms` products."""
    return 1.0 + (terms + 8.0) * _ROUNDED


@njit(inner=True)
def _tallied(a, b, tally_lo, tally_hi):
    """Whether one of two tables is over pairs of a value and a tally."""
    return tally_lo[a] != 0 or tally_hi[a] != 0 or tally_lo[b] != 0 or tally_hi[b] != 0


@njit(inner=True)
def _grid(t, lo, hi, tally_lo, tally_hi, offset, table):
    """Return table t as a view with a row for each value and a column for each tally."""
    rows, columns = hi[t] - lo[t] + 1, tally_hi[t] - tally_lo[t] + 1
    return table[offset[t] : offset[t] + rows * columns].reshape(rows, columns)


@njit(inner=True)
def _refill_flat(t, op, left, right, sign, lo, hi, offset, shift, table, start, stop):
    """Compute a MERGE or READ without tallies."""
    out = table[offset[t] : offset[t] + hi[t] - lo[t] + 1]
    out[:] = 0.0
    a, b = left[t], right[t]
    for i in range(start[a], stop[a]):
        if op[t] == MERGE:
            w = table[offset[a] + i]
            # index in the output of the sum of index i of a and index 0 of b
            base = lo[a] + i + lo[b] - lo[t]
            j0, j1 = max(start[b], -base), min(stop[b], out.size - base)
            for j in range(j0, j1):
                out[base + j] += w * table[offset[b] + j]
        else:
            # a READ has the window of its own variable's table
            at = sign[t] * (lo[t] + i) - shift - lo[b]
            if start[b] <= at < stop[b]:
                out[i] = table[offset[a] + i] * table[offset[b] + at]


@njit(inner=True)
def _refill(t, shift, branches):
    """Compute table t; `start` and `stop` are the first and one past the last positive entry."""
    _, op, left, right, sign, terms = branches.links
    lo, hi, tally_lo, tally_hi, offset = branches.windows
    table, start, stop, factor, log_scale, _ = branches.state
    a, b = left[t], right[t]
    if op[t] <= READ and not _tallied(a, b, tally_lo, tally_hi):
        _refill_flat(t, op, left, right, sign, lo, hi, offset, shift, table, start, stop)
    else:
        out = _grid(t, lo, hi, tally_lo, tally_hi, offset, table)
        one = _grid(a, lo, hi, tally_lo, tally_hi, offset, table)
        two = _grid(b, lo, hi, tally_lo, tally_hi, offset, table)
        if op[t] == MERGE:
            first_tally = tally_lo[t] - tally_lo[a] - tally_lo[b]
            if two.shape[1] == 1:
                one, two = two, one
            tallies.merge(one, two, lo[t] - lo[a] - lo[b], first_tally, out)
        elif op[t] == READ:
            first_tally = tally_lo[t] - tally_lo[a] - tally_lo[b]
            tallies.read(one, two, sign[t], shift, lo[t], lo[b], first_tally, out)
        elif op[t] == ENTER:
            tallies.enter(one, sign[t], lo[t], tally_lo[a], tally_lo[t], out)
        elif op[t] == SUM:
            for s in range(out.shape[1]):
                out[0, s] = one[:, s].sum()
        else:
            tallies.close(one, two[0], -shift, tally_lo[a], tally_lo[b], out[:, 0])
    size = (hi[t] - lo[t] + 1) * (tally_hi[t] - tally_lo[t] + 1)
    out = table[offset[t] : offset[t] + size]
    first, last = size, 0
    top = 0.0
    for i in range(size):
        if out[i] > 0.0:
            first = min(first, i)
            last = i + 1
            top = max(top, out[i])
    start[t], stop[t] = first, last
    if last == 0:
        return
    top = power_above(top)
    factor[t] = top
    # integer logarithms to base 2: no rounding
    log_scale[t] = log_scale[a] + math.frexp(top)[1] - 1
    if op[t] != ENTER and op[t] != SUM:
        log_scale[t] += log_scale[b]
    raised = _raised(terms[t])
    for i in range(first, last):
        if out[i] > 0.0:
            out[i] = max(out[i] / top * raised, tallies.FLOOR)


@njit(inner=True)
def _advance(held, coefficients, dirty, branches):
    """Update all tables to the values of the cut variables; return False if a table is empty.

    `shifts` has the shift of each present table; the largest integer marks tables never filled.
    """
    row, op, left, right, _, _ = branches.links
    _, _, stop, _, _, shifts = branches.state
    for k in range(coefficients.shape[0]):
        s = 0
        for j in range(held.size):
            s += coefficients[k, j] * held[j]
        dirty[op.size + k] = s != shifts[k]
        shifts[k] = s
    whole = True
    for t in range(op.size):
        dirty[t] = False
        if op[t] < MERGE:
            continue
        dirty[t] = dirty[left[t]] or dirty[right[t]]
        shift = 0
        if op[t] == READ or op[t] == CLOSE:
            dirty[t] = dirty[t] or dirty[op.size + row[t]]
            shift = shifts[row[t]]
        if dirty[t]:
            _refill(t, shift, branches)
        whole = whole and stop[t] > 0
    return whole


@njit()
def fill_once(branches):
    """Fill all merges and reads at shifts of zero, from which `evaluate` continues."""
    row, op, _, _, _, _ = branches.links
    _, _, _, _, _, shifts = branches.state
    for t in range(op.size):
        if op[t] >= MERGE:
            shift = shifts[row[t]] if op[t] == READ or op[t] == CLOSE else 0
            _refill(t, shift, branches)


@njit(inner=True)
def _mass(entries):
    """Return the sum of the entries of a root, rounded up."""
    total = 0.0
    for w in entries:
        total += w
    return total * _raised(entries.size)


@njit()
def evaluate(
    assignments,
    log_own,
    coefficients,
    checks,
    branches,
    roots,
    reference,
    group,
    belief,
    log_weight,
):
    """Fill `log_weight` (b,): log of each assignment's own weight times that of its forest.

    If `belief` (g, width) has rows, the assignment's row `group` gets, for each value of the last
    root, the weights divided by exp(reference).
    """
    _, op, _, _, _, _ = branches.links
    _, _, _, _, offset = branches.windows
    table, start, stop, _, log_scale, _ = branches.state
    dirty = np.zeros(op.size + coefficients.shape[0], dtype=np.bool_)
    last = roots[roots.size - 1] if roots.size else 0
    for b in range(assignments.shape[0]):
        held = assignments[b]
        log_weight[b] = -np.inf
        holds = True
        for k in range(checks.shape[0]):
            s = 0
            for j in range(held.size):
                s += checks[k, j] * held[j]
            holds = holds and s == 0
        if not holds:
            continue
        if not _advance(held, coefficients, dirty, branches):
            continue
        total = log_own[b]
        rest = total
        for r in roots:
            mass = _mass(table[offset[r] + start[r] : offset[r] + stop[r]])
            rest = total + log_scale[r] * _LOG_2
            total += elementary.log(mass) + log_scale[r] * _LOG_2
        log_weight[b] = total
        if belief.shape[0]:
            scale = elementary.exp(rest - reference)
            for i in range(start[last], stop[last]):
                belief[group[b], i] += scale * table[offset[last] + i]


@njit()
def draw(assignments, coefficients, branches, roots, words, values, whole, doubt, weights):
    """Fill `values` (r, tables) for assignments (r, cut), with words (r, choices).

    Sorted assignments are fastest. The value of a table is that of a variable (UNARY and READ) or
    of a sum (MERGE). `whole` (r,) marks the rows in which a draw was possible, and no word was left
    over; other rows are undefined. `doubt` (r,) adds up one over the integer weight of each choice,
    and 1 for each entry at the floor. `weights` (r, choices), or without rows, gets these weights,
    and 2^62 where nothing is chosen.
    """
    row, op, left, right, sign, _ = branches.links
    lo, hi, tally_lo, tally_hi, offset = branches.windows
    table, _, _, factor, _, shifts = branches.state
    dirty = np.zeros(op.size + coefficients.shape[0], dtype=np.bool_)
    tally = np.zeros(op.size, dtype=np.int64)
    for r in range(assignments.shape[0]):
        whole[r] = _advance(assignments[r], coefficients, dirty, branches)
        doubt[r] = 0.0
        if weights.shape[0]:
            weights[r] = np.int64(1) << tallies.CHOICE
        value = values[r]
        used = 0
        tally[:] = 0
        for t in roots:
            if not whole[r]:
                break
            top = table[offset[t] : offset[t] + hi[t] - lo[t] + 1]
            i, weight = tallies.pick(top, _mass(top), words[r, used])
            value[t] = lo[t] + i
            whole[r] = _note(weight, r, used, doubt, weights)
            used += 1
        for t in range(op.size - 1, -1, -1):
            a, b = left[t], right[t]
            if op[t] < MERGE or not whole[r]:
                continue
            if op[t] == READ and not _tallied(a, b, tally_lo, tally_hi):
                value[a] = value[t]
                value[b] = sign[t] * value[t] - shifts[row[t]]
            elif op[t] == ENTER:
                value[a] = value[t]
                tally[a] = tally[t] - sign[t] * value[t]
            else:
                one = _grid(a, lo, hi, tally_lo, tally_hi, offset, table)
                two = _grid(b, lo, hi, tally_lo, tally_hi, offset, table)
                own = _grid(t, lo, hi, tally_lo, tally_hi, offset, table)
                total = own[value[t] - lo[t], tally[t] - tally_lo[t]] * factor[t]
                if op[t] == MERGE:
                    i, j = value[t] - lo[a] - lo[b], tally[t] - tally_lo[a] - tally_lo[b]
                    u, s, weight = tallies.pick_merge(one, two, i, j, total, words[r, used])
                    value[a], tally[a] = lo[a] + u, tally_lo[a] + s
                    value[b], tally[b] = value[t] - value[a], tally[t] - tally[a]
                elif op[t] == SUM:
                    column = one[:, tally[t] - tally_lo[a]]
                    i, weight = tallies.pick(column, total, words[r, used])
                    value[a] = lo[a] + i
                    tally[a] = tally[t]
                else:
                    whole_tally = -shifts[row[t]] if op[t] == CLOSE else tally[t]
                    value[a] = value[t]
                    value[b] = sign[t] * value[t] - shifts[row[t]] if op[t] == READ else 0
                    j = whole_tally - tally_lo[a] - tally_lo[b]
                    i, k = value[a] - lo[a], value[b] - lo[b]
                    rows = one[i : i + 1], two[k : k + 1]
                    _, s, weight = tallies.pick_merge(*rows, 0, j, total, words[r, used])
                    tally[a] = tally_lo[a] + s
                    tally[b] = whole_tally - tally[a]
                whole[r] = _note(weight, r, used, doubt, weights)
                used += 1
        if whole[r]:
            for t in range(op.size):
                at = (value[t] - lo[t]) * (tally_hi[t] - tally_lo[t] + 1) + tally[t] - tally_lo[t]
                doubt[r] += int(table[offset[t] + at] <= tallies.FLOOR)


@njit(inner=True)
def _note(weight, r, used, doubt, weights):
    """Note the weight of a choice; return whether something was chosen."""
    if weight == 0:
        return False
    doubt[r] += 1.0 / weight
    if weights.shape[0]:
        weights[r, used] = weight
    return True
