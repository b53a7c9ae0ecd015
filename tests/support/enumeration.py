"""Conditional laws by brute force: every integer vector that satisfies the constraints.

It shares no code with the package. The noise u = z - x satisfies ``rows @ u == 0``, lies within
bounds and is zero where pinned; its weight is the product of the laws of the measured entries.
Vectors whose weight is below exp(-REACH) of that of u = 0 are left out; u = 0 is always kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

REACH = 42.0
MOST = 3_000_000


@dataclass(frozen=True)
class Law:
    """States (k, n), their probabilities (k,), and the log of the sum of their weights."""

    states: np.ndarray
    probabilities: np.ndarray
    log_total: float

    def marginal(self, node: int) -> dict[int, float]:
        values, at = np.unique(self.states[:, node], return_inverse=True)
        sums = np.bincount(at, weights=self.probabilities)
        return dict(zip(values.tolist(), sums.tolist(), strict=True))


def rows_of(parents) -> np.ndarray:
    """One row an inner node: the node less its children."""
    parents = np.asarray(parents)
    rows = []
    for v in range(parents.size):
        children = np.flatnonzero(parents == v)
        if children.size:
            row = np.zeros(parents.size, dtype=np.int64)
            row[v], row[children] = 1, -1
            rows.append(row)
    return np.array(rows, dtype=np.int64).reshape(-1, parents.size)


def log_mode(kind: str, scale: float) -> float:
    """Log probability of noise 0."""
    if kind == "laplace":
        a = np.exp(-1.0 / scale)
        return float(np.log1p(-a) - np.log1p(a))
    reach = int(40 * scale) + 5
    u = np.arange(-reach, reach + 1)
    return -float(np.log(np.exp(-0.5 * (u / scale) ** 2).sum()))


def _log_weight(kind, scale, u):
    if np.isinf(scale):
        return np.zeros(u.size)
    return -np.abs(u) / scale if kind == "laplace" else -0.5 * (u / scale) ** 2


def _reach(kind, scale, flat):
    if np.isinf(scale):
        return flat
    return int(np.ceil(REACH * scale if kind == "laplace" else np.sqrt(2 * REACH) * scale))


def _settled(rows, done, v):
    """Return a row that determines entry v from entries already assigned, or None."""
    for row in rows:
        if row[v] and not (row.astype(bool) & ~done)[np.arange(done.size) != v].any():
            return row
    return None


def enumerate_law(rows, kind, scales, x, pinned=(), lo=-np.inf, hi=np.inf, *, flat=0) -> Law:
    """Enumerate the law of z given the constraints.

    `kind` is "laplace" or "gaussian"; `flat` bounds the size of noise that is not measured, where
    nothing else does.
    """
    x = np.asarray(x, dtype=np.int64)
    n = x.size
    rows = np.asarray(rows, dtype=np.int64).reshape(-1, n)
    scales = np.broadcast_to(np.asarray(scales, dtype=float), (n,))
    low = np.ceil(np.broadcast_to(lo, (n,))) - x
    high = np.floor(np.broadcast_to(hi, (n,))) - x
    low[list(pinned)] = high[list(pinned)] = 0
    done = np.zeros(n, dtype=bool)
    states = np.zeros((1, n), dtype=np.int64)
    log_w = np.zeros(1)
    left = _order(rows, scales)
    while left:
        found = [(v, _settled(rows, done, v)) for v in left]
        known = [(v, row) for v, row in found if row is not None]
        v, row = known[0] if known else (left[0], None)
        if row is not None:
            others = row.copy()
            others[v] = 0
            u = -row[v] * (states @ others)
        else:
            reach = _reach(kind, scales[v], flat)
            choices = np.arange(max(-reach, low[v]), min(reach, high[v]) + 1)
            if states.shape[0] * choices.size > 20 * MOST:
                raise MemoryError("too many states; take a smaller case")
            u = np.tile(choices.astype(np.int64), states.shape[0])
            states = np.repeat(states, choices.size, axis=0)
            log_w = np.repeat(log_w, choices.size)
        log_w = log_w + _log_weight(kind, scales[v], u)
        keep = (u >= low[v]) & (u <= high[v]) & (log_w > -REACH)
        states, log_w = states[keep], log_w[keep]
        states[:, v] = u[keep]
        done[v] = True
        left.remove(v)
        for other in rows:  # those that are complete must hold
            if other[v] and done[other != 0].all():
                keep = states @ other == 0
                states, log_w = states[keep], log_w[keep]
        if states.shape[0] > MOST:
            raise MemoryError("too many states; take a smaller case")
    total = np.exp(log_w).sum()
    modes = sum(log_mode(kind, s) for s in scales if np.isfinite(s))
    return Law(states + x, np.exp(log_w) / total, float(np.log(total)) + modes)


def _order(rows, scales):
    """Entries with few rows and narrow laws first, so that rows complete early."""
    n = scales.size
    touching = (rows != 0).sum(axis=0) if rows.size else np.zeros(n, dtype=int)
    order: list[int] = []
    for row in sorted(rows, key=lambda r: touching[r != 0].sum()):
        entries = np.flatnonzero(row)
        order += [
            v for v in entries[np.lexsort((scales[entries], touching[entries]))] if v not in order
        ]
    return order + [v for v in range(n) if v not in order]


def assert_same_law(conditioned, law: Law, x, *, most=2000) -> None:
    """Compare log_prob, every marginal and log_normalizer with a law to 1e-10."""
    assert abs(conditioned.log_normalizer(x) - law.log_total) < 1e-10
    heavy = np.argsort(-law.probabilities, kind="stable")
    taken = np.concatenate((heavy[:most], heavy[-50:]))
    got = conditioned.log_prob(law.states[taken], x)
    # compared through the mass, because truncation is absolute
    np.testing.assert_allclose(got, np.log(law.probabilities[taken]), rtol=0, atol=2e-10)
    for node in range(law.states.shape[1]):
        values, probabilities = conditioned.marginal(node, x)
        assert (np.diff(values) == 1).all()
        want = law.marginal(node)
        table = dict(zip(values.tolist(), probabilities.tolist(), strict=True))
        assert abs(sum(table.values()) - 1) < 1e-10
        for value in want.keys() | table.keys():
            assert abs(want.get(value, 0.0) - table.get(value, 0.0)) < 1e-10, (node, value)


def merged(law: Law, nodes, *, least: float) -> tuple[dict[tuple[int, ...], int], np.ndarray]:
    """Cells of the joint law of `nodes`: key -> cell, and the cells' probabilities.

    Cells with a probability below `least` are merged into cell 0.
    """
    keys, at = np.unique(law.states[:, list(nodes)], axis=0, return_inverse=True)
    mass = np.bincount(at.ravel(), weights=law.probabilities)
    big = np.flatnonzero(mass >= least)
    cells = {tuple(keys[i].tolist()): c + 1 for c, i in enumerate(big)}
    return cells, np.concatenate(([max(1 - mass[big].sum(), 0.0)], mass[big]))
