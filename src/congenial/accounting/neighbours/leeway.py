"""Entries and sums that bounds keep equal between neighbouring datasets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from congenial.accounting.neighbours.counting import Counted
from congenial.domain.nesting import Sums
from congenial.errors import EmptyNeighbourhoodError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.sparse_rows import sums_of_others
from congenial.types import FloatArray

Span = tuple[FloatArray, FloatArray]

# Integers up to this, their sums and their rounded quotients are exact in doubles.
_EXACT = 2.0**53
# Most rounds of interval propagation; each round carries intervals across one more sum.
_ROUNDS = 64


@dataclass(frozen=True, eq=False)
class _Row:
    """A weighted sum of entries between two numbers, in steps of the grid."""

    at: npt.NDArray[np.intp]
    weights: FloatArray
    low: float
    high: float
    equality: bool  # Whether the invariant states it as an equality.


def with_implied(
    resolved: ResolvedInvariant, counted: Counted, *, grid: float = 1.0, change: float = 1.0
) -> ResolvedInvariant:
    """Return an invariant with the pins and sums on which neighbouring datasets agree.

    The result pins the `determined` entries. It also fixes every entry or `at_least` sum whose
    bounds, after propagation along the sums, are closer together than one record's change.

    After any number of rounds, every dataset within the bounds lies in the intervals. So no entry
    is pinned that could differ between two neighbouring datasets.
    """
    sums = resolved.equalities[1].size or resolved.n_inequalities
    free = not resolved.has_inequalities or not (
        sums or bool(np.isfinite(resolved.lo).any() and np.isfinite(resolved.hi).any())
    )
    given, resolved = resolved, replace(resolved, pinned=resolved.determined)
    if free:
        return resolved
    unit = grid or 1.0
    span, rows = _spans(given, counted, grid)
    if (span[0] > span[1]).any():
        raise EmptyNeighbourhoodError(
            "the bounds leave no dataset, so a guarantee would say nothing; relax some of them."
        )
    step = change / unit
    # neighbours change entries and whole sums of them by multiples of a step
    kept = [r for r in rows if not r.equality and r.at.size > 1 and r.high - r.low < step]
    more = np.zeros((len(kept), resolved.n))
    for out, row in zip(more, kept, strict=True):
        out[row.at] = row.weights
    pinned = resolved.pinned | (span[1] - span[0] < step)
    if not kept and (pinned == resolved.pinned).all():
        return resolved
    matrix, values = resolved.equalities
    limits = np.array([row.low * unit for row in kept])
    resolved = replace(
        resolved,
        pinned=pinned,
        equalities=(np.vstack((matrix, more)), np.concatenate((values, limits))),
    )
    return replace(resolved, pinned=resolved.determined)


def may_cross(
    alternatives: Sequence[ResolvedInvariant],
    counted: Counted,
    *,
    grid: float = 1.0,
    change: float = 1.0,
) -> bool:
    """Whether neighbouring datasets may satisfy different alternatives of a union.

    They cannot if every two alternatives are more than one record's change apart in some entry.
    """
    step = change / (grid or 1.0)
    found = [_spans(resolved, counted, grid)[0] for resolved in alternatives]
    spans = [span for span in found if (span[0] <= span[1]).all()]
    return any(
        bool((np.maximum(one[0] - other[1], other[0] - one[1]) <= step).all())
        for i, one in enumerate(spans)
        for other in spans[:i]
    )


def _spans(resolved: ResolvedInvariant, counted: Counted, grid: float) -> tuple[Span, list[_Row]]:
    """Bounds of entries in steps of the grid, carried along the sums, and the linear conditions."""
    span = _rounded(resolved, grid)
    # without a grid, intervals are carried across exact sums only
    if not grid and any((end[np.isfinite(end)] % 1.0).any() for end in span):
        return span, []
    rows = _rows(resolved, grid or 1.0, whole=bool(grid))
    sums = resolved.sums if counted is None else counted.sums
    return _carried(span, rows, sums, whole=bool(grid)), rows


def _rounded(resolved: ResolvedInvariant, grid: float) -> Span:
    """Round bounds inward to the grid, in its steps; those too large for exact sums are dropped."""
    low, high = resolved.lo.copy(), resolved.hi.copy()
    if grid:
        low, high = np.ceil(low / grid), np.floor(high / grid)
    low[~(np.abs(low) < _EXACT)] = -np.inf
    high[~(np.abs(high) < _EXACT)] = np.inf
    return low, high


def _rows(resolved: ResolvedInvariant, unit: float, *, whole: bool) -> list[_Row]:
    """Sums of entries with integer weights, each once, with all its bounds and values."""
    found: dict[tuple[bytes, bytes], _Row] = {}
    for (matrix, values), equal in ((resolved.equalities, True), (resolved.inequalities, False)):
        for coefficients, bound in zip(matrix, values / unit, strict=True):
            at = np.flatnonzero(coefficients)
            weights = coefficients[at]
            exact = (np.abs(weights) < _EXACT).all() and abs(bound) < _EXACT
            if not at.size or not exact or (weights % 1.0).any() or bound % 1.0:
                continue
            shared = math.gcd(*(int(w) for w in weights))
            low, high = bound / shared, bound / shared if equal else math.inf
            if whole:  # sums with integer weights are integers
                low, high = math.ceil(low), high if high == math.inf else math.floor(high)
            weights = weights / shared
            if weights[0] < 0:
                weights, low, high = -weights, -high, -low
            key = at.tobytes(), weights.tobytes()
            row = _Row(at, weights, low, high, equal)
            if key in found:
                old = found[key]
                low, high = max(low, old.low), min(high, old.high)
                row = _Row(at, weights, low, high, equal or old.equality)
            found[key] = row
    return list(found.values())


def _carried(span: Span, rows: list[_Row], sums: Sums | None, *, whole: bool) -> Span:
    """Carry intervals along all sums until nothing changes, or `_ROUNDS` times."""
    for _ in range(_ROUNDS):
        low, high = before = span
        if sums is not None and sums.totals.size:
            low, high = _along(low, high, sums)
            # upper ends are the lower ends of negated values
            high, low = (-end for end in _along(-high, -low, sums))
        for row in rows:
            # without a grid a quotient might round
            if whole or (np.abs(row.weights) == 1.0).all():
                low, high = _across(low, high, row, whole=whole)
        span = low, high
        if (low > high).any() or all(map(np.array_equal, before, span)):
            break
    return span


def _along(low: FloatArray, high: FloatArray, sums: Sums) -> Span:
    """Carry the lower ends of parts to the totals, and to the upper ends of the other parts."""
    low, high = low.copy(), high.copy()
    of_part, parts, totals = sums.sum_of_part, sums.parts, sums.totals
    ends = low[parts]
    finite = np.isfinite(ends)
    ends = np.where(finite, ends, 0.0)
    least = np.bincount(of_part, ends, totals.size)
    missing = np.bincount(of_part[~finite], minlength=totals.size)
    # sums that might round are skipped, as if two of their parts had no bound
    missing += 2 * (np.bincount(of_part, np.abs(ends), totals.size) >= _EXACT)
    np.maximum.at(low, totals, np.where(missing > 0, -np.inf, least))
    others = missing[of_part] - ~finite
    rest = high[totals][of_part] - (least[of_part] - ends)
    np.minimum.at(high, parts, np.where(others > 0, np.inf, rest))
    return low, high


def _across(low: FloatArray, high: FloatArray, row: _Row, *, whole: bool) -> Span:
    """Carry intervals across one sum of entries."""
    low, high = low.copy(), high.copy()
    at, weights = row.at, row.weights
    up = weights > 0
    least = weights * np.where(up, low[at], high[at])
    most = weights * np.where(up, high[at], low[at])
    top, bottom = row.high - _others(least), row.low + _others(-most)
    first, last = np.where(up, bottom, top) / weights, np.where(up, top, bottom) / weights
    low[at] = np.maximum(low[at], np.ceil(first) if whole else first)
    high[at] = np.minimum(high[at], np.floor(last) if whole else last)
    return low, high


def _others(least: FloatArray) -> FloatArray:
    """Sum of all numbers except each one in turn; -inf if others are -inf or might round."""
    if np.abs(least[np.isfinite(least)]).sum() >= _EXACT:
        return np.full(least.size, -np.inf)
    return sums_of_others(least)
