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
from congenial.kernels.numerics import trees
from congenial.kernels.numerics.trees import compact
from congenial.types import BoolArray, Indices, IntArray

Signs = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class SumForest:
    """Variables 0..n-1 and constraints 0..m-1."""

    above: Indices  # shape (n,): The constraint that each variable is a summand of, -1 for none.
    # shape (m,): The variable that each constraint's sum equals up to `sign`; -1 if it is fixed.
    owner: Indices
    sign: Signs  # shape (m,): +1 or -1.
    orientation: Signs  # shape (n,): The forest sums ``orientation * value``; +1 for a tree.
    depth: Indices  # shape (m,): Number of constraints above each constraint.

    @staticmethod
    def without_sums(n: int) -> SumForest:
        """Return a forest of n variables that no sum joins."""
        return of_rows([], n)

    @cached_property
    def order(self) -> Indices:
        """Variables v as v and constraints k as n + k, each after all below it; shape (n + m,)."""
        return self._bottom_up(np.arange(self.n, dtype=np.int32))

    @cached_property
    def path(self) -> Indices:
        """As `order`, without variables that own no sum."""
        return self._bottom_up(np.unique(self.owner[self.owner >= 0]))

    @cached_property
    def turned(self) -> bool:
        """Whether the orientation of any variable is -1."""
        return bool((compact(self.orientation) < 0).any())

    def repeated(self, times: int) -> SumForest:
        """Return copies of the forest beside each other; copy i has variable v as i n + v."""

        def shifted(places: Indices, by: int) -> Indices:
            copies = [np.where(places < 0, places, places + i * by) for i in range(times)]
            return np.concatenate(copies).astype(np.int32)

        return SumForest(
            above=shifted(self.above, self.m),
            owner=shifted(self.owner, self.n),
            sign=np.tile(self.sign, times),
            orientation=np.tile(self.orientation, times),
            depth=np.tile(self.depth, times),
        )

    def _bottom_up(self, variables: Indices) -> Indices:
        depth_above = np.append(self.depth, np.int32(-1))[self.above[variables]]
        # the summands, then their sum, then its owner among the summands of the next
        rank = np.concatenate((-2 * depth_above - 1, -2 * self.depth))
        if rank.min(initial=0) >= -(2**15):
            rank = rank.astype(np.int16)  # sorted in linear time
        sums = np.arange(self.n, self.n + self.m, dtype=np.int32)
        return np.concatenate((variables, sums))[np.argsort(rank, kind="stable")]

    @property
    def is_leaf(self) -> BoolArray:
        """Whether each variable owns no sum, shape (n,)."""
        leaf = np.ones(self.n, dtype=np.bool_)
        leaf[self.owner[self.owner >= 0]] = False
        return leaf

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
    """Arrange sparse rows (indices, signs), each a sum that must keep its value."""
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
    seen = np.zeros(m, dtype=np.bool_)
    for start in range(m):
        stack = [] if seen[start] else [start]
        seen[start] = True
        while stack:
            k = stack.pop()
            for v, a in zip(*(column.tolist() for column in rows[k]), strict=True):
                if v == owner[k]:
                    continue
                below = [j for j in touching[v] if j != k]
                if above[v] >= 0 or any(seen[j] for j in below):
                    raise UnsupportedError(
                        f"the sums form a cycle through entry {v}; exact sampling needs sums that "
                        "form a forest, so drop or merge one of them."
                    )
                above[v], orientation[v] = k, a
                for j in below:
                    own = int(rows[j][1][list(rows[j][0]).index(v)])
                    seen[j], owner[j], sign[j], depth[j] = True, v, -own * a, depth[k] + 1
                stack += below
    return SumForest(above, owner, sign, orientation, depth)
