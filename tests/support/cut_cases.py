"""Sums with a cut set that opens their cycles, and the weight of every value."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network.cutset.assignments import choose_cut, enumerate_cut, evaluated
from congenial.sum_network.cutset.boxes import place_box
from congenial.sum_network.cutset.branches import compile_branches
from congenial.sum_network.cutset.systems import SumSystem, cycle_closers
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


@dataclass(frozen=True)
class OpenCase:
    """Sums with cycles of few variables, some of them without bounds."""

    system: SumSystem
    unary: Unary

    @cached_property
    def solutions(self):
        """All solutions of at most 13 in size, shape (k, n)."""
        u = np.array(list(itertools.product(range(-13, 14), repeat=self.system.n)))
        u = u[((u >= self.unary.lo) & (u <= self.unary.hi)).all(axis=1)]
        held = [sum(a * u[:, v] for v, a in row.items()) == 0 for row in self.system.rows]
        return np.ascontiguousarray(u[np.all(held, axis=0)])

    def scaled(self, factor):
        return replace(self.unary, scale=self.unary.scale * factor)


def open_case(seed):
    """Return random sums with a cycle, of three or four variables; some may be unmeasured."""
    rng = np.random.default_rng([71, seed])
    while True:
        n = int(rng.integers(3, 5))
        rows = []
        for _ in range(2):
            entries = rng.choice(n, int(rng.integers(2, n + 1)), replace=False).tolist()
            rows.append({v: int(rng.choice([-1, 1])) for v in entries})
        free, flat = np.zeros(n, dtype=bool), rng.random(n) < 0.15
        kind = np.where(flat, laws.FLAT, rng.choice([laws.LAPLACE, laws.LAPLACE, laws.GAUSSIAN], n))
        lo = np.where(flat | (rng.random(n) < 0.4), -rng.integers(0, 4, n).astype(float), -np.inf)
        hi = np.where(flat | (rng.random(n) < 0.3), rng.integers(0, 4, n).astype(float), np.inf)
        unary = Unary(kind, rng.choice([0.4, 0.7, 1.0], n), np.zeros(n), lo, hi)
        if cycle_closers(rows, range(n)):
            return OpenCase(SumSystem(n, 0, n, tuple(rows), free, None), unary)


def narrowly_weighed(case, budget, *, tally=False):
    """Weigh assignments within the windows of a budget, without a look at what lies beyond."""
    system, row = case.system, 0 if tally else None
    box = place_box(system.rows, case.unary, system.every_fixed, budget)
    cut = choose_cut(system, box, tally=row)
    values, log_own = enumerate_cut(system, box, cut, 1 << 16)
    branches = compile_branches(system.rows, box, system.free, cut, tally=row)
    return evaluated(box, branches, values, log_own, system.rows)
