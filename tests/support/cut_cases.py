"""Sums with a cut set that opens their cycles, and the weight of every value."""

from __future__ import annotations

import itertools

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network.cutset.boxes import place_box
from congenial.sum_network.cutset.systems import cycle_closers
from congenial.sum_network.weights import Unary


def log_weights(unary, u):
    """Return the log weights of values, shape (k, n), added up along each row."""
    away = np.abs(u - unary.center) / unary.scale
    each = np.where(unary.kind == laws.LAPLACE, -away, 0.0)
    return np.where(unary.kind == laws.GAUSSIAN, -0.5 * away**2, each).sum(axis=1)


def cut_case(seed):
    """Return rows, weights within narrow bounds, their box, a cut set, and all solutions."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    rows = []
    for _ in range(int(rng.integers(2, 5))):
        entries = rng.choice(n, int(rng.integers(2, n)), replace=False).tolist()
        rows.append({v: int(rng.choice([-1, 1])) for v in entries})
    kind = rng.choice([laws.LAPLACE, laws.GAUSSIAN, laws.LAPLACE, laws.FLAT], n)
    lo = -rng.integers(0, 3, n).astype(float)
    unary = Unary(kind, rng.choice([0.4, 1.0, 3.0], n), np.zeros(n), lo, lo + 3.0)
    box = place_box(tuple(rows), unary, np.zeros(n, dtype=bool), 60.0)
    cut = tuple(cycle_closers(rows, list(range(n))))
    u = np.array(list(itertools.product(*(np.arange(a, a + 4) for a in lo.astype(int)))))
    matrix = np.zeros((len(rows), n), dtype=int)
    for k, row in enumerate(rows):
        matrix[k, list(row)] = list(row.values())
    return rows, unary, box, cut, u[(u @ matrix.T == 0).all(axis=1)]


def listed(unary, box, cut):
    """Return every value of a cut set, shape (b, cut), and the logs of their own weights."""
    ranges = (np.arange(box.lo[v], box.hi[v] + 1) for v in cut)
    every = list(itertools.product(*ranges))
    values = np.array(every, dtype=np.int64).reshape(len(every), len(cut))
    return np.ascontiguousarray(values), log_weights(unary.at(np.array(cut, dtype=int)), values)
