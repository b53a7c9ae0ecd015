"""Entries determined by pinned entries if sums cross: those in the row space of the pinned sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from congenial.types import BoolArray, FloatArray, IntArray

# Integers up to this are multiplied and subtracted in 64 bits; doubles are exact up to 2^53.
LARGEST = 2**30
EXACT = 2**53
# Largest number of arithmetic steps in an elimination; beyond it nothing further is derived.
MOST_STEPS = 2**28


def implied(cells: IntArray, chain: IntArray, known: BoolArray, matrix: FloatArray) -> BoolArray:
    """Entries whose values follow from known entries and fixed sums taken together.

    Returns ndarray of bool, shape (n,): `known` and the entries that follow, in exact arithmetic.
    If integers grow beyond 2^30, or the elimination beyond 2^28 steps, some entries that follow may
    be missing.

    Notes
    -----
    An entry follows if its row over the cells is a rational combination of the rows of the fixed
    sums. Cells that enter all fixed sums alike form one column, called a group. An entry that
    counts only some cells of a group does not follow.
    """
    chain = chain[:, ~known[cells]]
    out: BoolArray = known | (np.bincount(chain[chain >= 0], minlength=known.size) == 0)
    if not chain.shape[1]:
        return out
    found = _columns(chain, known, _whole(matrix))
    if found is None:
        return out
    rows, group = found
    m, n = rows.shape
    reduced = _reduced(rows)
    if reduced is None or not reduced[1].size:
        return out
    rows, pivots = reduced
    entry, column = _counted(chain, group, ~out)
    # a single group follows if some row has this group only
    one = np.bincount(entry, minlength=out.size)[entry] == 1
    alone = pivots[(rows != 0).sum(axis=1) == 1]
    out[entry[one & np.isin(column, alone)]] = True
    at, place = np.unique(entry[~one], return_inverse=True)
    lead = rows[np.arange(pivots.size), pivots]
    common = math.lcm(*lead.tolist())
    if at.size * rows.size > MOST_STEPS or common * np.abs(rows).max() > EXACT // (m + 1):
        return out
    inside = np.zeros((at.size, n))
    inside[place.ravel(), column[~one]] = 1.0
    # the entry's row, less the combination of rows that equals it at the pivots
    rest = common * inside - inside[:, pivots] @ (rows * (common // lead)[:, None]).astype(float)
    out[at[~rest.any(axis=1)]] = True
    return out


def _columns(chain: IntArray, known: BoolArray, sums: IntArray) -> tuple[IntArray, IntArray] | None:
    """Contribution of each group of cells to each fixed sum, and the group of each cell.

    None if the elimination would take too many steps.
    """
    held = np.where((chain >= 0) & known[chain], chain, -1)
    added = np.zeros((sums.shape[0], chain.shape[1]), dtype=np.int64)
    for entries in chain:
        added += np.where(entries >= 0, sums[:, entries], 0)
    group = np.zeros(chain.shape[1], dtype=np.int64)
    for label in (*held, *added):
        number = np.unique(label, return_inverse=True)[1].ravel()
        group = np.unique(group * chain.shape[1] + number, return_inverse=True)[1].ravel()
    first = np.unique(group, return_index=True)[1]
    fixed = np.unique(held[held >= 0])
    m, n = fixed.size + sums.shape[0], first.size
    if m * min(m, n) * n > MOST_STEPS:
        return None
    rows = np.zeros((fixed.size + 1, n), dtype=np.int64)  # the last for no entry
    for entries in held[:, first]:
        place = np.where(entries >= 0, np.searchsorted(fixed, entries), fixed.size)
        rows[place, np.arange(n)] = 1
    return np.vstack((rows[:-1], added[:, first])), group


def _counted(chain: IntArray, group: IntArray, asked: BoolArray) -> tuple[IntArray, IntArray]:
    """Pairs of an entry and a group that it counts, for entries that split no group."""
    size = np.bincount(group)
    found, columns = [], []
    for entries in chain:
        here = np.flatnonzero((entries >= 0) & asked[entries])
        pair, count = np.unique(entries[here] * size.size + group[here], return_counts=True)
        entry, column = pair // size.size, pair % size.size
        keep = ~np.isin(entry, entry[count < size[column]])
        found.append(entry[keep])
        columns.append(column[keep])
    return np.concatenate(found), np.concatenate(columns)


def _whole(matrix: FloatArray) -> IntArray:
    """The sums multiplied to small integers; sums for which that is impossible are left out."""
    kept = []
    for row in matrix:
        terms = [Fraction(repr(float(value))) for value in row[row != 0]]
        common = math.lcm(*(value.denominator for value in terms))
        values = [int(value * common) for value in terms]
        if sum(map(abs, values)) <= LARGEST:
            whole = np.zeros(row.size, dtype=np.int64)
            whole[row != 0] = values
            kept.append(whole)
    return np.array(kept, dtype=np.int64).reshape(-1, matrix.shape[1])


def _reduced(rows: IntArray) -> tuple[IntArray, IntArray] | None:
    """Reduced echelon form in integers and its pivots; None if the integers grow too large.

    Each row is a positive multiple of the row of the usual form.
    """
    rows = rows.copy()
    pivots: list[int] = []
    if np.abs(rows).max(initial=0) > LARGEST:
        return None
    for column in range(rows.shape[1]):
        at = len(pivots)
        if at == rows.shape[0]:
            break
        below = at + np.flatnonzero(rows[at:, column])
        if not below.size:
            continue
        rows[[at, below[0]]] = rows[[below[0], at]]
        if rows[at, column] < 0:
            rows[at] *= -1
        others = np.flatnonzero(rows[:, column])
        others = others[others != at]
        lead, values = rows[at, column], rows[others, column]
        shared = np.gcd(lead, values)
        changed = rows[others] * (lead // shared)[:, None]
        changed -= np.outer(values // shared, rows[at])
        if np.abs(changed).max(initial=0) > 1:
            changed //= np.maximum(np.gcd.reduce(changed, axis=1), 1)[:, None]
        if np.abs(changed).max(initial=0) > LARGEST:
            return None
        rows[others] = changed
        pivots.append(column)
    return rows[: len(pivots)], np.array(pivots, dtype=np.int64)
