"""The queries in which a record counts, for trees, workloads and plain vectors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.neighbours.whole_sums import WholeArray, alike_columns, whole_sums
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray, IntArray

# The domain that says where a record counts; None for a plain vector, one entry for each record.
Counted = Tree | Workload | None


@dataclass(frozen=True, eq=False)
class Counting:
    """The cells that records lie in, and the entries that count them."""

    n: int  # Number of entries.
    cells: IntArray  # shape (k,): The entry of each cell, ascending.
    chain: IntArray  # shape (d, k): Entries that count a record in each cell; padded with -1.

    def summed(self, cost: FloatArray) -> FloatArray:
        """Cost of a record in each cell: that of all entries that count it, shape (k,)."""
        return np.asarray(self.on_cells(cost[None, :])[0])

    def on_cells(self, rows: WholeArray) -> WholeArray:
        """Contribution of a record in each cell to sums of entries, shape (m, k), for (m, n)."""
        out = np.zeros((rows.shape[0], self.cells.size), dtype=rows.dtype)
        for entries in self.chain:
            out += np.where(entries >= 0, rows.take(entries, axis=1), 0)
        return out

    def dense(self) -> FloatArray:
        """Contribution of a record in each cell to each entry, shape (n, k)."""
        out = np.zeros((self.n + 1, self.cells.size))
        for entries in self.chain:
            out[entries, np.arange(self.cells.size)] = 1.0
        return out[:-1]

    def alike(self, resolved: ResolvedInvariant) -> IntArray:
        """Number the cells, shape (k,); cells that add the same to all fixed sums get one number.

        Raises PrivacyError if rounding leaves it in doubt which sums are equal.
        """
        group = np.zeros(self.cells.size, dtype=np.int64)
        if resolved.equalities[1].size:
            group = alike_columns(whole_sums(resolved.equalities[0], self.on_cells))
        for entries in self.chain:
            fixed = (entries >= 0) & resolved.pinned[entries]
            if fixed.any():
                # in each row, cells that count in the same pinned entry stay alike
                both = group * (self.n + 1) + np.where(fixed, entries, -1) + 1
                group = np.unique(both, return_inverse=True)[1].astype(np.int64).ravel()
        return group


def counting(n: int, counted: Counted) -> Counting:
    """Lay out in which of n entries a record counts."""
    if isinstance(counted, Workload):
        return Counting(n, counted.cells, counted.chain)
    if counted is None:
        cells = np.arange(n)
        return Counting(n, cells, cells[None, :])
    return Counting(n, counted.leaves, counted.chain)


def counting_all(n: int, counted: Counted) -> IntArray:
    """Return the entries that count every record."""
    if not isinstance(counted, Tree):
        chain = counting(n, counted).chain
        first = chain[:, 0]
        return np.asarray(first[(chain == first[:, None]).all(axis=1) & (first >= 0)])
    found, below = list[int](), counted.roots
    while below.size == 1:
        found.append(int(below[0]))
        below = np.flatnonzero(counted.parents == below[0])
    return np.array(found, dtype=np.int64)
