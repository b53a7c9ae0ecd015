"""Small families of areas with crossing margins: measurements, bounds, and the kernel's arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.imaging.solvers.cell_descent import one_kind
from congenial.kernels.projection.crossing import Areas, descend_families
from congenial.randomness import seeded


@dataclass(frozen=True, eq=False)
class Example:
    """One parent, node 0, and its children, with tables of first x second values."""

    areas: Areas
    parent: np.ndarray  # shape (K,)
    truth: np.ndarray  # shape (C, K)

    @property
    def sums(self):
        """What a cell adds to each row, shape (Q, K)."""
        of = self.areas.of
        out = np.zeros((self.areas.low.shape[1], len(of)))
        for margin in of.T:
            out[margin, np.arange(len(of))] = 1.0
        return out

    def solved(self, seed=None):
        """Cells of the children by the kernel, rounded with a seed, and what it misses."""
        x = np.zeros((len(self.areas.low), len(self.areas.of)))
        x[0], missed = self.parent, np.zeros(1)
        words = one_kind() if seed is None else seeded(seed).bits(x.size).reshape(x.shape)
        descend_families(self.areas, 0, 1, 1e-9, 100, words, x, missed)
        return x[1:], missed[0]

    def distance(self, x):
        """Weighted squares of the changes of all rows."""
        off = x @ self.sums.T - self.areas.target[1:]
        return float((self.areas.weight[1:] * off**2).sum())


def example(rng, *, children=(1, 12), first=(1, 5), second=(1, 4), bounded=True):
    """A random family: margins total, first and second cross; some bounds, zeros and fixed rows."""
    count, a, b = (int(rng.integers(*ends)) for ends in (children, first, second))
    cells, noise = a * b, float(rng.choice([0.5, 3.0, 20.0, 200.0]))
    of = np.array([[k, cells, cells + 1 + k // b, cells + 1 + a + k % b] for k in range(cells)])
    rows = cells + 1 + a + b
    mean = float(rng.choice([0.3, 2.0, 30.0, 3000.0]))
    possible = rng.random((count, cells)) < (0.85 if rng.random() < 0.5 else 2.0)
    truth = possible * rng.poisson(mean * rng.dirichlet(np.full(cells, 0.5), size=count))
    sums = np.zeros((rows, cells))
    for margin in of.T:
        sums[margin, np.arange(cells)] = 1.0
    every = np.vstack((truth.sum(axis=0), truth)) @ sums.T
    weight = np.repeat(rng.choice([0.0, 0.1, 1.0, 3.0], size=4), [cells, 1, a, b]) / noise**2
    weight[:cells] = rng.choice([0.05, 1.0]) / noise**2
    target = np.rint(every + noise * rng.normal(size=every.shape))
    low, high = np.full(every.shape, -np.inf), np.full(every.shape, np.inf)
    low[:, :cells] = 0.0
    high[1:, :cells][~possible] = 0.0
    if bounded and rng.random() < 0.5:
        high[1:, cells] = every[1:, cells] + rng.integers(0, 3, size=count)
    if bounded and rng.random() < 0.4:
        fixed = slice(cells + 1, cells + 1 + a)
        low[1:, fixed] = high[1:, fixed] = every[1:, fixed]
    shape = (count + 1, rows)
    areas = Areas(
        np.array([0, count]),
        np.arange(1, count + 1),
        np.zeros(count, dtype=np.int64),
        np.array([0]),
        of,
        np.broadcast_to(weight, shape).copy(),
        target,
        low,
        high,
        np.ones(shape, dtype=np.bool_),
    )
    return Example(areas, every[0, :cells].copy(), truth)
