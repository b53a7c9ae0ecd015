"""Small networks of sums, with and without cycles, that can be enumerated."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from congenial import sum_network
from support.conditioning_cases import INF, LAWS, Case
from support.enumeration import enumerate_law


def margins(rows: int, columns: int) -> np.ndarray:
    """Row sums and column sums of a table, row by row."""
    cells = np.arange(rows * columns).reshape(rows, columns)
    sums = [np.isin(cells, line).ravel() for line in (*cells, *cells.T)]
    return np.array(sums, dtype=np.int64)


def table_case(shape, scale, x, *, lo=-INF, kind="laplace"):
    """A table of counts with fixed row and column sums."""
    scales = np.broadcast_to(np.asarray(scale, dtype=float), (len(x),)).copy()
    rows = tuple(tuple(row) for row in margins(*shape).tolist())
    return Case(kind, scales, np.array(x), lo=lo, rows=rows)


@st.composite
def networks(draw, unmeasured=False):
    """Rows over up to 7 entries, drawn without regard to cycles."""
    n, kind = draw(st.integers(3, 7)), draw(st.sampled_from(sorted(LAWS)))
    widths = (0.1, 0.2, 0.3) if kind == "laplace" else (0.3, 0.6, 0.9)
    scales = np.array([draw(st.sampled_from(widths)) for _ in range(n)])
    if unmeasured:
        scales[draw(st.integers(0, n - 1))] = INF
    rows = []
    for _ in range(draw(st.integers(2, 4))):
        row = [draw(st.sampled_from((0, 0, 1, 1, -1))) for _ in range(n)]
        if any(row):
            rows.append(tuple(row))
    if not rows:
        rows = [(1,) * n]
    x = np.array([draw(st.integers(-2, 4)) for _ in range(n)])
    pinned = tuple(v for v in range(n) if draw(st.integers(0, 6)) == 0)
    slack = st.sampled_from((0, 1, 2, INF))
    bounded = draw(st.integers(0, 2)) == 0
    lo = x - np.array([draw(slack) for _ in range(n)]) if bounded else -INF
    hi = x + np.array([draw(slack) for _ in range(n)]) if draw(st.integers(0, 3)) == 0 else INF
    return Case(kind, scales, x, pinned, lo, hi, None, tuple(rows))


def scaled(case: Case, factor: float):
    """The law of a case with all scales off by a factor."""
    return enumerate_law(
        case.all_rows, case.kind, case.scales * factor, case.x, case.pinned, case.lo, case.hi
    )


def tables_of(forest, weights, **more):
    """Return the tables of a sum network."""
    return sum_network.fill(sum_network.compile(forest, weights), **more)
