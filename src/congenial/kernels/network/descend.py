"""Draws from a sum network: choices from the roots down, each in integer arithmetic.

A choice of the left part l of a sum s has weights a[l] * b[s - l]. A power of two turns them into
integers. Where tables are envelopes, the entry of the sum does so: these integers are rounded up,
and are out of 2^62. They are compared with a uniform integer exactly. A *row* has the cumulative
weights of the outcomes near the mean, at every eighth outcome. The row gives the eight outcomes
among which the choice lies; their weights are computed again. Outcomes far from the mean are
visited only if the uniform integer exceeds the row. A row that is likely to be needed again is
cached. If the integer exceeds all weights, the choice is left open.

The time of a choice therefore does not depend on its outcome, with two exceptions: rare outcomes
far from the mean, and sums that repeat (in like families, or many draws), whose row is cached.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.tape import scaled

ROOT = 0
LINK = 1
SPLIT = 2
COMPOSE = 3
DIFFERENCE = 4

BLOCK = 8

_U1, _U2, _U3, _U4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_U5, _U6, _U7, _U8 = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


# Weights of envelopes are out of this, and a little less: rounding must not make their sum larger.
WHOLE = 2.0**62
BELOW = WHOLE * (1.0 - 2.0**-49)
# Bits of a word that a choice leaves unused.
UNUSED = np.uint64(2)
# Entries below this are so small that a choice of one is doubtful, see `draw`.
_SMALL = 2.0**-700


@njit(inner=True)
def _unit(total):
    """Return the power of two that brings `total` between 2^61 and 2^62."""
    exponent = int((np.float64(total).view(np.int64) >> 52) & 0x7FF) - 1022
    # totals below 2^-900 have a negligible probability
    return np.int64((1085 - max(exponent, -900)) << 52).view(np.float64)


@njit(inner=True)
def _cumulate(a, at_a, b, at_b, size, unit, weights, rows, at):
    """Write cumulated weights a[at_a + k] * b[at_b - k] of every eight k < size to rows[at], ...

    Unsigned indices are never counted from the end, so that the compiler uses vectors.
    """
    n, i, j = np.uint64(size), np.uint64(at_a), np.uint64(at_b)
    for k in range(n):
        weights[k] = np.int64(a[i + k] * b[j - k] * unit) + 1
    blocks = (n + _U7) // _U8
    for k in range(n, _U8 * blocks):
        weights[k] = 0
    below = np.int64(0)
    for q in range(blocks):
        w = _U8 * q
        below += ((weights[w] + weights[w + _U1]) + (weights[w + _U2] + weights[w + _U3])) + (
            (weights[w + _U4] + weights[w + _U5]) + (weights[w + _U6] + weights[w + _U7])
        )
        rows[np.uint64(at) + q] = below


@njit(inner=True)
def _passed(rows, at, size, target):
    """Return the number of ascending entries rows[at : at + size] that are at most `target`."""
    base, left = np.uint64(at), np.uint64(size)
    while left > _U1:
        half = left >> _U1
        if rows[base + half - _U1] <= target:
            base += half
        left -= half
    return np.int64(base) - at + np.int64(rows[base] <= target)


@njit(inner=True)
def _chosen(a, at_a, b, at_b, size, unit, rows, at, target):
    """Return the k at which the weights cumulated in rows[at], ... exceed `target`, else `size`."""
    blocks = (size + BLOCK - 1) // BLOCK
    q = _passed(rows, at, blocks, target)
    exceeds = q < blocks
    q = min(q, blocks - 1)
    below = rows[max(at + q - 1, at)] * np.int64(q > 0)
    first = BLOCK * q
    passed = first
    i, j = np.uint64(at_a + first), np.uint64(at_b - first)
    left = np.uint64(size - first)
    for k in range(_U8):
        inside = k if k < left else left - _U1
        weight = np.int64(a[i + inside] * b[j - inside] * unit) + 1
        below += weight if k < left else np.int64(0)
        passed += np.int64(below <= target)
    return passed if exceeds else size


@njit(inner=True)
def _far(a, at_a, b, at_b, size, unit, first, stop, below, target):
    """Return the k outside first..stop-1 at which the cumulated weights exceed `target`, else -1.

    The cumulated weights begin at `below`, the sum of the weights of first..stop-1.
    """
    for k in range(size):
        if first <= k < stop:
            continue
        below += np.int64(a[at_a + k] * b[at_b - k] * unit) + 1
        if below > target:
            return k
    return -1


@njit(inner=True)
def _largest(a, at_a, b, at_b, size):
    """Return the k < size with the largest product a[at_a + k] * b[at_b - k]."""
    best = 0
    for k in range(size):
        if a[at_a + k] * b[at_b - k] > a[at_a + best] * b[at_b - best]:
            best = k
    return best


@njit(inner=True)
def _target(word, total, enveloped):
    """Return a uniform integer: below `total`, up to 2^-64 for each, or exactly below 2^62."""
    return np.int64(word >> UNUSED) if enveloped else scaled(word, total)[0]


@njit()
def draw(
    program,
    left,
    right,
    windows,
    tables,
    near_sums,
    kept_rows,
    open_choices,
    words,
    values,
    begin,
    end,
):
    """Fill `values` (slots, draws) in columns begin..end-1 by the choices of a network's program.

    The program's operations are ROOT (slot `first` from class `cls`), LINK (slot `first` is
    `third` times slot `second`), SPLIT (slot `first` into slots `second` and `third`, a merge of
    class `cls`), and then DIFFERENCE and COMPOSE, which other kernels do (`differences`,
    `compositions`). `words` is uint64, a row for each ROOT or SPLIT, a column for each draw.
    Tables are those of `envelopes` if ``lacking`` is not empty: it has what a root's table lacks,
    shape (c,).

    The row of sum s of class c is cached if ``kept[c] >= 0``. `rows` is a ring buffer whose length
    is a power of two. ``given[0]`` counts all entries ever assigned, starting at that length;
    ``place[kept[c] + s - lo[c]]`` is the count at which the row begins, or 0.

    The place of `open_choices` becomes the first operation whose choice is left open, if that is
    less. Its outcome is then some value, and later choices may be left without a window. To the
    doubt each choice adds the part by which its weight was rounded up, at most.
    """
    op, first, second, third, cls = program
    lo, hi, offset = windows
    table, factor, lacking = tables
    enveloped, (open_at, doubt) = lacking.size > 0, open_choices
    middle, share, reach = near_sums
    kept, place, given, rows, weights = kept_rows
    draws = values.shape[1]
    values, words = values.ravel(), words.ravel()
    turn = rows.size - weights.size // BLOCK
    used = 0
    for i in range(op.size):
        whole = first[i] * draws
        c = cls[i]
        if op[i] >= COMPOSE:
            break
        if op[i] == LINK:
            source = second[i] * draws
            for r in range(begin, end):
                values[whole + r] = third[i] * values[source + r]
            continue
        word = used * draws
        used += 1
        if op[i] == ROOT:
            size = hi[c] - lo[c] + 1
            row = np.empty(size, dtype=np.int64)
            own = table[offset[c] : offset[c] + size]
            every = _cumulate_root(own, lacking[c] if enveloped else 0.0, enveloped, row)
            for r in range(begin, end):
                target = _target(words[word + r], every, enveloped)
                k = _passed(row, np.int64(0), size, target)
                if k == size:
                    open_at[r] = min(open_at[r], i)
                    k = 0
                values[whole + r] = lo[c] + k
                doubt[r] += 1.0 / (row[k] - (row[k - 1] if k > 0 else 0))
            continue
        a, b = left[c], right[c]
        lo_a, hi_a, lo_b, hi_b = lo[a], hi[a], lo[b], hi[b]
        zero_a, zero_b, zero_c = offset[a] - lo_a, offset[b] - lo_b, offset[c] - lo[c]
        power, is_kept, zero_kept = factor[c], kept[c] >= 0, kept[c] - lo[c]
        one, other = second[i] * draws, third[i] * draws
        for r in range(begin, end):
            s = values[whole + r]
            low, high = max(lo_a, s - hi_b), min(hi_a, s - lo_b)
            if s < lo[c] or s > hi[c] or low > high:
                open_at[r] = min(open_at[r], i)
                values[one + r], values[other + r] = lo_a, s - lo_a
                continue
            near = np.int64(np.rint(middle[c] + share[c] * s))
            near = min(max(near, low), high)
            first_near = max(low, near - reach[c])
            size = min(high, near + reach[c]) - first_near + 1
            blocks = (size + BLOCK - 1) // BLOCK
            total = table[zero_c + s] * power
            unit = BELOW / total if enveloped else _unit(total)
            at, known = turn, False
            if is_kept:
                count = place[zero_kept + s]
                known = given[0] - count < turn
                if not known:
                    count = given[0]
                    if (count & (turn - 1)) + blocks > turn:
                        count = (count | (turn - 1)) + 1
                    place[zero_kept + s] = count
                    given[0] = count + blocks
                at = count & (turn - 1)
            at_a, at_b = zero_a + first_near, zero_b + s - first_near
            if not known:
                _cumulate(table, at_a, table, at_b, size, unit, weights, rows, at)
            target = _target(words[word + r], np.int64(total * unit), enveloped)
            l = first_near + _chosen(table, at_a, table, at_b, size, unit, rows, at, target)
            if l == first_near + size:
                begin_near, below = first_near - low, rows[at + blocks - 1]
                whole_row = table, zero_a + low, table, zero_b + s - low, high - low + 1
                k = _far(*whole_row, unit, begin_near, begin_near + size, below, target)
                if k < 0:
                    open_at[r] = min(open_at[r], i)
                    k = _largest(*whole_row)
                l = low + k
            x, y = table[zero_a + l], table[zero_b + s - l]
            doubt[r] += 1.0 / (np.int64(x * y * unit) + 1)
            if x < _SMALL or y < _SMALL:
                doubt[r] += 1.0
            values[one + r] = l
            values[other + r] = s - l


@njit(inner=True)
def _cumulate_root(t, beyond, enveloped, row):
    """Fill `row` with cumulated integer weights in proportion to t; return their total.

    Envelopes have weights out of a little less than 2^62; what lies beyond them has the rest.
    """
    total = beyond
    for k in range(t.size):
        total += t[k]
    # error of the sum, and of the weights that are rounded up
    unit = WHOLE / (total * (1.0 + (t.size + 16.0) * 2.0**-52)) if enveloped else _unit(total)
    below = np.int64(0)
    for k in range(t.size):
        below += np.int64(t[k] * unit) + 1
        row[k] = below
    return below
