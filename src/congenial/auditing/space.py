"""The datasets that a guarantee compares: small ones enumerated, hard ones at the real size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.accounting.counting import Counted, Counting, counting
from congenial.accounting.guarantee import Neighbours
from congenial.accounting.neighbours import worst_move
from congenial.auditing.finding import Auditable, Pair, Values
from congenial.conditioning.grid import OnGrid
from congenial.conditioning.mixed import ConditionedMixture
from congenial.invariants import Invariant, Requirements, determined, requirements
from congenial.mechanisms.additive import Additive
from congenial.mixtures import Mixture

IntArray = npt.NDArray[np.int64]

# Records in one leaf of the hard datasets that have a crowded one.
CROWD = 10_000
# Agreement asked of sums of real numbers, relative to their size.
ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Space:
    """Queries and what every dataset and every release must satisfy.

    Attributes
    ----------
    mechanism : Additive
    needs : tuple of Requirements
        The invariant's alternatives, one unless it is a union.
    """

    mechanism: Additive
    needs: tuple[Requirements, ...]

    @property
    def counted(self) -> Counted:
        """What says in which queries a record counts."""
        return self.mechanism.counted or self.needs[0].counted

    @cached_property
    def counting(self) -> Counting:
        """The cells that records lie in, and the queries that count them."""
        return counting(self.mechanism.n, self.counted)

    @property
    def entries(self) -> IntArray:
        """Entries that single records are in."""
        return self.counting.cells

    @cached_property
    def incidence(self) -> IntArray:
        """Which queries count a record of each entry, shape (k, n)."""
        return np.asarray(self.counting.dense().T.astype(np.int64))

    def queries(self, counts: npt.ArrayLike) -> IntArray:
        """Values of all queries, shape (..., n), of counts of the entries, shape (..., k)."""
        array = np.asarray(counts, dtype=np.int64)
        if array.ndim > 1:
            return np.asarray(array @ self.incidence)
        out = np.zeros(self.mechanism.n, dtype=np.int64)  # a table of large trees has no room
        for entries in self.counting.chain:
            np.add.at(out, entries[entries >= 0], array[entries >= 0])
        return out

    def allows(self, x: Values) -> bool:
        """Whether a dataset satisfies an alternative of the invariant."""
        return bool(self.satisfied(x[None], x)[0])

    def satisfied(self, z: Values, x: Values) -> npt.NDArray[np.bool_]:
        """Whether each release, shape (size, n), satisfies the invariant at `x`, shape (n,)."""
        return np.asarray(np.logical_or.reduce([_satisfied(need, z, x) for need in self.needs]))

    def datasets(self, total: int) -> Iterator[IntArray]:
        """Yield every count vector of at most `total` records that the invariant allows."""
        k = self.entries.size
        for records in range(total + 1):
            for bars in itertools.combinations(range(records + k - 1), k - 1):
                cells = np.diff(np.array((-1, *bars, records + k - 1))) - 1
                x = self.queries(cells)
                if self.allows(x):
                    yield x

    def pairs(self, datasets: Sequence[Values], neighbours: Neighbours) -> list[tuple[int, int]]:
        """Positions of all pairs of neighbours, each once, that agree on what is published."""
        pinned = np.logical_and.reduce([need.pinned for need in self.needs])
        index = {tuple(x[self.entries].tolist()): i for i, x in enumerate(datasets)}
        found = []
        for cells, i in index.items():
            for other in _moved(cells, neighbours):
                j = index.get(other, -1)
                if j >= 0 and (datasets[i][pinned] == datasets[j][pinned]).all():
                    found.append((i, j) if neighbours == "add-remove" or i < j else (j, i))
        return sorted(set(found))

    def hard_pairs(self, neighbours: Neighbours) -> list[Pair]:
        """Pairs that make the costliest move between few records, many, and beside a crowd.

        Raises
        ------
        EmptyNeighbourhoodError
            If the pins leave no neighbouring datasets.
        """
        noise, scales = self.mechanism.noise, self.mechanism.scales
        cost = 1.0 / scales if noise.measure == "pure" else 1.0 / scales**2
        need = replace(self.needs[0], pinned=determined(_whole(self.needs)))
        move = worst_move(np.where(need.pinned, 0.0, cost), need, self.counted, neighbours)
        k = self.entries.size
        low = np.clip(need.lo[self.entries], 0.0, None).astype(np.int64)
        crowd = low.copy()
        ends = [v for v in (move.origin, move.destination) if v is not None]
        rest = np.flatnonzero(~np.isin(self.entries, ends))
        crowd[rest[:1] if rest.size else slice(0, 1)] += CROWD
        out: list[Pair] = []
        for base in (low, low + 1, crowd):
            sides = [base + (self.entries == end) for end in ends]
            one, other = sides if len(sides) == 2 else (base, sides[0])
            pair = self.queries(one), self.queries(other)
            if k and all(self.allows(x) for x in pair):
                out.append(pair)
        return out

    def count(self, total: int) -> int:
        """Return the number of count vectors of at most `total` records, bounds apart."""
        return math.comb(total + self.entries.size, total)


def space_of(mechanism: Auditable) -> Space | None:
    """Find the space of a mechanism; None where it does not tell."""
    if isinstance(mechanism, OnGrid):
        inner = space_of(mechanism.inner)
        return None if inner is None else _off_units(inner, mechanism)
    if isinstance(mechanism, ConditionedMixture):
        return Space(mechanism.parts[0].mechanism, mechanism.needs)
    if isinstance(mechanism, Mixture):
        first = mechanism.parts[0]
        if isinstance(first, Additive):
            return Space(first, (requirements(Invariant(()), first.n, first.domain),))
        return space_of(first)  # type: ignore[arg-type]
    queries, need = getattr(mechanism, "mechanism", None), getattr(mechanism, "requirements", None)
    if isinstance(queries, Additive) and isinstance(need, Requirements):
        return Space(queries, (need,))
    return None


def _off_units(inner: Space, grid: OnGrid) -> Space:
    step, whole = grid.granularity, grid.mechanism
    first = whole.parts[0] if isinstance(whole, Mixture) else whole
    needs = tuple(
        replace(
            need,
            lo=need.lo * step,
            hi=need.hi * step,
            equalities=(need.equalities[0], need.equalities[1] * step),
            inequalities=(need.inequalities[0], need.inequalities[1] * step),
        )
        for need in inner.needs
    )
    return Space(first if isinstance(first, Additive) else inner.mechanism, needs)


def _whole(needs: tuple[Requirements, ...]) -> Requirements:
    low = np.minimum.reduce([need.lo for need in needs])
    high = np.maximum.reduce([need.hi for need in needs])
    return replace(needs[0], lo=low, hi=high)


def _moved(cells: tuple[int, ...], neighbours: Neighbours) -> Iterator[tuple[int, ...]]:
    for j in range(len(cells)):
        more = (*cells[:j], cells[j] + 1, *cells[j + 1 :])
        if neighbours == "add-remove":
            yield more
            continue
        for i in range(len(cells)):
            if i != j and cells[i] > 0:
                yield (*more[:i], more[i] - 1, *more[i + 1 :])


def _satisfied(need: Requirements, z: Values, x: Values) -> npt.NDArray[np.bool_]:
    need = need.settled(x)
    near = 0.0 if z.dtype.kind == "i" else ROUNDING * (1.0 + float(np.abs(x).max(initial=0.0)))
    ok = (np.abs(z[:, need.pinned] - x[need.pinned]) <= near).all(axis=1)
    free = ~need.pinned
    ok &= ((z >= need.lo - near) & (z <= need.hi + near))[:, free].all(axis=1)
    if need.sums is not None:
        ok &= (np.abs(need.sums.gaps(z)) <= near).all(axis=1)
    for (matrix, value), equal in ((need.equalities, True), (need.inequalities, False)):
        gap = z @ matrix.T - value
        ok &= ((np.abs(gap) if equal else -gap) <= ROUNDING * (1 + np.abs(value))).all(axis=1)
    return np.asarray(ok)
