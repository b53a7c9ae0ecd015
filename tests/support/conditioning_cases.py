"""Hypothesis strategies of small conditioning problems that can be enumerated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from scipy.optimize import linprog

import congenial as cg
from support.enumeration import enumerate_law, rows_of

LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
INF = np.inf


@dataclass(frozen=True)
class Case:
    """A forest or a plain vector, with all that conditioning needs."""

    kind: str
    scales: np.ndarray
    x: np.ndarray
    pinned: tuple[int, ...] = ()
    lo: np.ndarray | float = -INF
    hi: np.ndarray | float = INF
    parents: tuple[int, ...] | None = None
    rows: tuple[tuple[int, ...], ...] = ()

    @property
    def n(self) -> int:
        return self.x.size

    @property
    def all_rows(self) -> np.ndarray:
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, self.n)
        return rows if self.parents is None else np.vstack((rows_of(self.parents), rows))

    def condition(self):
        tree = None if self.parents is None else cg.Tree.from_parents(self.parents)
        parts = [] if tree is None else [cg.consistent(tree)]
        if self.rows:
            matrix = np.array(self.rows)
            parts.append(cg.linear(matrix, matrix @ self.x))
        if self.pinned:
            parts.append(cg.exactly(list(self.pinned)))
        if np.isfinite(self.lo).any() or np.isfinite(self.hi).any() or not parts:
            parts.append(cg.bounds(self.lo, self.hi))
        whole = parts[0]
        for part in parts[1:]:
            whole = whole & part
        noise = LAWS[self.kind](self.scales)
        return cg.condition(cg.Additive(noise, self.n if tree is None else tree), whole)

    def law(self):
        finite = self.scales[np.isfinite(self.scales)]
        flat = int(np.ceil(42.0 * finite.sum())) + 60
        return enumerate_law(
            self.all_rows,
            self.kind,
            self.scales,
            self.x,
            self.pinned,
            self.lo,
            self.hi,
            flat=min(flat, 400),
        )

    @property
    def proper(self) -> bool:
        """Whether the law exists: no direction of the constraints leaves all weights alone."""
        lo, hi = (np.broadcast_to(b, (self.n,)) for b in (self.lo, self.hi))
        held = np.isfinite(self.scales)
        held[list(self.pinned)] = True
        box = [
            (0 if h or np.isfinite(a) else -1, 0 if h or np.isfinite(b) else 1)
            for h, a, b in zip(held, lo, hi, strict=True)
        ]
        rows = self.all_rows
        for i in range(self.n):
            for way in (1.0, -1.0):
                cost = np.zeros(self.n)
                cost[i] = way
                equal = {"A_eq": rows, "b_eq": np.zeros(len(rows))} if len(rows) else {}
                if linprog(cost, bounds=box, **equal).fun < -0.01:
                    return False
        return True


@st.composite
def forests(draw, most):
    """Parents of a forest in scrambled order, often of several levels, sometimes several roots."""
    n = draw(st.integers(1, most))
    parents = [-1]
    for i in range(1, n):
        lowest = -1 if draw(st.integers(0, 5)) == 0 else 0
        parents.append(draw(st.integers(lowest, i - 1)))
    order = draw(st.permutations(range(n)))
    place = {v: i for i, v in enumerate(order)}
    return tuple(-1 if parents[v] < 0 else place[parents[v]] for v in order)


@st.composite
def open_cases(draw, most=6, unmeasured=False):
    """Narrow laws, one-sided bounds at most; a few entries are not measured, if asked for."""
    parents = draw(forests(most))
    tree = cg.Tree.from_parents(parents)
    n, kind = len(parents), draw(st.sampled_from(sorted(LAWS)))
    widths = (0.1, 0.25, 0.4) if kind == "laplace" else (0.3, 0.8, 1.4)
    scales = np.array([draw(st.sampled_from(widths)) for _ in range(n)])
    if unmeasured:
        scales[[draw(st.integers(0, 3)) == 0 for _ in range(n)]] = INF
    x = tree.roll_up(np.array([draw(st.integers(-2, 4)) for _ in tree.leaves]))
    slack = st.sampled_from((0, 1, 3, INF, INF, INF))
    lo, hi = (np.array([draw(slack) for _ in range(n)]) for _ in range(2))
    one = draw(st.sampled_from(("none", "lo", "hi")))
    pinned = tuple(v for v in range(n) if draw(st.integers(0, 4)) == 0)
    return Case(
        kind,
        scales,
        x,
        pinned,
        x - lo if one == "lo" else -INF,
        x + hi if one == "hi" else INF,
        parents,
    )


@st.composite
def boxed_cases(draw, most=9):
    """Boxes around the leaves, and any scale."""
    parents = draw(forests(most))
    tree = cg.Tree.from_parents(parents)
    n, kind = len(parents), draw(st.sampled_from(sorted(LAWS)))
    widths = st.sampled_from((0.1, 0.5, 1.0, 3.0, 30.0, 1000.0, INF))
    scales = np.array([draw(widths) for _ in range(n)])
    x = tree.roll_up(np.array([draw(st.integers(-1, 3)) for _ in tree.leaves]))
    lo = x - np.array([draw(st.integers(0, 3)) for _ in range(n)], dtype=float)
    hi = x + np.array([draw(st.integers(0, 3)) for _ in range(n)], dtype=float)
    loose = ~tree.is_leaf & [draw(st.booleans()) for _ in range(n)]
    lo[loose] = -INF
    loose = ~tree.is_leaf & [draw(st.booleans()) for _ in range(n)]
    hi[loose] = INF
    pinned = tuple(v for v in range(n) if draw(st.integers(0, 5)) == 0)
    return Case(kind, scales, x, pinned, lo, hi, parents)


@st.composite
def row_cases(draw):
    """Sums and differences over a plain vector that form a forest."""
    n, kind = draw(st.integers(1, 6)), draw(st.sampled_from(sorted(LAWS)))
    widths = (0.1, 0.25, 0.4) if kind == "laplace" else (0.3, 0.8, 1.4)
    scales = np.array([draw(st.sampled_from(widths)) for _ in range(n)])
    order = draw(st.permutations(range(n)))
    rows, used = [], 0
    while used < n and len(rows) < 3:
        size = min(draw(st.integers(1, 4)), n - used)
        fresh = list(order[used : used + size])
        joined = [order[draw(st.integers(0, used - 1))]] if used and draw(st.booleans()) else []
        row = [0] * n
        for v in fresh + joined:
            row[v] = draw(st.sampled_from((-1, 1)))
        rows.append(tuple(row))
        used += size
    x = np.array([draw(st.integers(-2, 4)) for _ in range(n)])
    pinned = tuple(v for v in range(n) if draw(st.integers(0, 5)) == 0)
    bounded = draw(st.integers(0, 2)) == 0
    lo = x - np.array([draw(st.sampled_from((0, 2, INF))) for _ in range(n)]) if bounded else -INF
    return Case(kind, scales, x, pinned, lo, INF, None, tuple(rows))
