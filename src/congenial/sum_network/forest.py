"""Sums without a cycle: variables and sum constraints arranged as a rooted forest.

Every variable is a summand of at most one constraint above it and may equal, up to sign, the sum
of several constraints below it. Equality constraints with entries -1, 0, 1 whose bipartite graph
with the variables has no cycle can be arranged so; a tree of counts always can.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.numerics import trees
from congenial.types import Indices, IntArray

Signs = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class SumForest:
    """Variables 0..n-1 and constraints 0..m-1.

    Attributes
    ----------
    above : ndarray of int32, shape (n,)
        The constraint that each variable is a summand of, -1 for none.
    owner : ndarray of int32, shape (m,)
        The variable that each constraint's sum equals up to `sign`; -1 where the sum is fixed.
    sign : ndarray of int8, shape (m,)
        +1 or -1.
    orientation : ndarray of int8, shape (n,)
        The forest speaks of ``orientation * value``; +1 everywhere for a tree.
    depth : ndarray of int32, shape (m,)
        Number of constraints above each constraint.
    """

    above: Indices
    owner: Indices
    sign: Signs
    orientation: Signs
    depth: Indices

    @cached_property
    def order(self) -> Indices:
        """Variables v as v and constraints k as n + k, each after all that lie below it.

        Shape (n + m,).
        """
        return self._bottom_up(np.arange(self.n, dtype=np.int32))

    @cached_property
    def path(self) -> Indices:
        """As `order`, with only those variables that own a sum."""
        return self._bottom_up(np.unique(self.owner[self.owner >= 0]))

    def _bottom_up(self, variables: Indices) -> Indices:
        held = np.append(self.depth, np.int32(-1))[self.above[variables]]
        # the summands, then their sum, then its owner among the summands of the next
        rank = np.concatenate((-2 * held - 1, -2 * self.depth))
        if rank.min(initial=0) >= -(2**15):
            rank = rank.astype(np.int16)  # sorted in linear time
        sums = np.arange(self.n, self.n + self.m, dtype=np.int32)
        return np.concatenate((variables, sums))[np.argsort(rank, kind="stable")]

    @property
    def n(self) -> int:
        """Number of variables."""
        return int(self.above.size)

    @property
    def m(self) -> int:
        """Number of constraints."""
        return int(self.owner.size)


def of_tree(tree: Tree) -> SumForest:
    """Arrange a tree: one constraint an inner node, owned by that node."""
    n = len(tree)
    inner = np.flatnonzero(~tree.is_leaf)
    number, above = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    number[inner] = np.arange(inner.size)
    trees.numbers_above(trees.read_only(tree.parents), number, above)
    return SumForest(
        above=above,
        owner=inner.astype(np.int32),
        sign=np.ones(inner.size, dtype=np.int8),
        orientation=np.broadcast_to(np.int8(1), (n,)),
        depth=tree.short_level[inner].astype(np.int32),
    )


def of_rows(rows: list[tuple[IntArray, IntArray]], n: int) -> SumForest:
    """Arrange sparse rows (indices, signs), each a sum that must keep its value.

    Raises
    ------
    UnsupportedError
        If the rows and variables contain a cycle.
    """
    touching: list[list[int]] = [[] for _ in range(n)]
    for k, (indices, _) in enumerate(rows):
        for v in indices:
            touching[int(v)].append(k)
    m = len(rows)
    above = np.full(n, -1, dtype=np.int32)
    owner = np.full(m, -1, dtype=np.int32)
    sign = np.ones(m, dtype=np.int8)
    orientation = np.ones(n, dtype=np.int8)
    depth = np.zeros(m, dtype=np.int32)
    seen_row = np.zeros(m, dtype=np.bool_)
    seen = np.zeros(n, dtype=np.bool_)
    for start in range(m):
        if seen_row[start]:
            continue
        seen_row[start] = True
        stack = [start]
        while stack:
            k = stack.pop()
            indices, signs = rows[k]
            for v, a in zip(indices.tolist(), signs.tolist(), strict=True):
                if v == owner[k]:
                    continue
                if seen[v]:
                    raise UnsupportedError(
                        f"the sums form a cycle through entry {v}; exact sampling needs sums that "
                        "form a forest, so drop or merge one of them."
                    )
                seen[v] = True
                above[v] = k
                orientation[v] = a
                for below in touching[v]:
                    if below == k:
                        continue
                    if seen_row[below]:
                        raise UnsupportedError(
                            f"the sums form a cycle through entry {v}; exact sampling needs sums "
                            "that form a forest, so drop or merge one of them."
                        )
                    seen_row[below] = True
                    owner[below] = v
                    own = int(rows[below][1][list(rows[below][0]).index(v)])
                    sign[below] = -own * a
                    depth[below] = depth[k] + 1
                    stack.append(below)
    return SumForest(above, owner, sign, orientation, depth)


def sparse_rows(matrix: npt.NDArray[np.float64]) -> list[tuple[IntArray, IntArray]]:
    """Return the rows of a dense matrix as (indices, signs), rows of zeros left out.

    Raises
    ------
    UnsupportedError
        If an entry is not -1, 0 or 1.
    """
    if not np.isin(matrix, (-1.0, 0.0, 1.0)).all():
        raise UnsupportedError(
            "a linear condition has an entry other than -1, 0 and 1; exact sampling covers sums "
            "and differences only."
        )
    rows = []
    for row in matrix:
        indices = np.flatnonzero(row)
        if indices.size:
            rows.append((indices.astype(np.int64), row[indices].astype(np.int64)))
    return rows


def structure_rows(resolved: ResolvedInvariant) -> list[tuple[IntArray, IntArray]]:
    """Return the sums of the tree or the workload as rows, each a total less its parts."""
    sums = resolved.sums
    if sums is None:
        return []
    rows = []
    for total, start, stop in zip(sums.totals, sums.starts[:-1], sums.starts[1:], strict=True):
        signs = np.full(1 + stop - start, -1, dtype=np.int64)
        signs[0] = 1
        rows.append((np.append(total, sums.parts[start:stop]), signs))
    return rows


def invariant_rows(resolved: ResolvedInvariant) -> list[tuple[IntArray, IntArray]]:
    """Return every equality of an invariant as a sparse row (indices, signs).

    Raises
    ------
    UnsupportedError
        If an entry is not -1, 0 or 1.
    """
    return sparse_rows(resolved.equalities[0]) + structure_rows(resolved)


def fixed_entries(
    rows: list[tuple[IntArray, IntArray]], pinned: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return which entries keep the value of the data.

    They are those pinned, and those that a sum determines because all its others are fixed.
    """
    fixed = pinned.copy()
    while True:
        alone = [i[~fixed[i]][0] for i, _ in rows if np.count_nonzero(~fixed[i]) == 1]
        if not alone:
            return fixed
        fixed[alone] = True


def arrange(resolved: ResolvedInvariant) -> tuple[SumForest, npt.NDArray[np.bool_]]:
    """Arrange all the equalities of an invariant as they are given.

    Returns
    -------
    forest : SumForest
    fixed : ndarray of bool, shape (n,)
        See `fixed_entries`.

    Raises
    ------
    UnsupportedError
        If the sums contain a cycle, or an entry other than -1, 0, 1.
    """
    if not resolved.equalities[0].shape[0] and resolved.tree is not None:
        return of_tree(resolved.tree), resolved.pinned
    rows = invariant_rows(resolved)
    fixed = fixed_entries(rows, resolved.pinned)
    free = [(i[~fixed[i]], a[~fixed[i]]) for i, a in rows if not fixed[i].all()]
    return of_rows(free, resolved.n), fixed
