"""The datasets that a guarantee compares: small ones enumerated, hard ones at the real size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.accounting.mechanism import Mechanism
from congenial.accounting.neighbours.counting import Counted, Counting, counting
from congenial.accounting.neighbours.joint_moves import forced_moves
from congenial.accounting.neighbours.single_moves import worst_move
from congenial.auditing.finding import Pair
from congenial.conditioning.grid import OnGrid
from congenial.conditioning.mixtures import Mixture
from congenial.conditioning.unions import ConditionedMixture
from congenial.invariants.resolved import ResolvedInvariant, hull
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.noise.additive import Additive
from congenial.types import IntArray, Values

# Number of records in a crowded leaf.
CROWD = 10_000
# Most count vectors that are tried if fixed sums allow few datasets, and most in memory at once.
CANDIDATES, BLOCK = 200_000, 20_000


@dataclass(frozen=True, eq=False)
class Space:
    """The queries, and the invariant that every dataset and release satisfies."""

    mechanism: Additive
    # The invariant's alternatives, one unless it is a union.
    alternatives: tuple[ResolvedInvariant, ...]

    @property
    def counted(self) -> Counted:
        """The tree or workload, which says in which queries a record counts."""
        return self.mechanism.counted or self.alternatives[0].counted

    @cached_property
    def counting(self) -> Counting:
        """The cells that records lie in, and the queries that count them."""
        return counting(self.mechanism.n, self.counted)

    @property
    def entries(self) -> IntArray:
        """The finest entries, in which single records lie."""
        return self.counting.cells

    @cached_property
    def incidence(self) -> IntArray:
        """Which queries count a record of each entry, shape (k, n)."""
        return np.asarray(self.counting.dense().T.astype(np.int64))

    @cached_property
    def interchangeable(self) -> IntArray:
        """Number the cells; cells whose records add the same to all fixed sums get one number."""
        return self.counting.alike(replace(self.alternatives[0], pinned=self.determined))

    @cached_property
    def hull(self) -> ResolvedInvariant:
        """The bounds and pins that all alternatives imply."""
        return hull(self.alternatives)

    @property
    def determined(self) -> npt.NDArray[np.bool_]:
        """Whether each entry is the same in all neighbouring datasets that agree on the pins."""
        return self.hull.determined

    def queries(self, counts: npt.ArrayLike) -> IntArray:
        """Values of all queries, shape (..., n), of counts of the entries, shape (..., k)."""
        array = np.asarray(counts, dtype=np.int64)
        if array.ndim > 1:
            return np.asarray(array @ self.incidence)
        # large trees have single vectors only, and an incidence matrix too large for memory
        out = np.zeros(self.mechanism.n, dtype=np.int64)
        for entries in self.counting.chain:
            np.add.at(out, entries[entries >= 0], array[entries >= 0])
        return out

    def allows(self, x: Values) -> bool:
        """Whether a dataset satisfies an alternative of the invariant."""
        return bool(self.satisfied(x[None], x)[0])

    def satisfied(self, z: Values, x: Values) -> npt.NDArray[np.bool_]:
        """Whether each release, shape (size, n), satisfies the invariant at `x`, shape (n,)."""
        return np.asarray(
            np.logical_or.reduce([resolved.satisfied_by(z, x) for resolved in self.alternatives])
        )

    def datasets(self, total: int) -> Iterator[IntArray]:
        """Yield every count vector of at most `total` records that the invariant allows."""
        k = self.entries.size
        for records in range(total + 1):
            places = itertools.combinations(range(records + k - 1), k - 1)
            while block := list(itertools.islice(places, BLOCK)):
                bars = np.array(block, dtype=np.int64).reshape(len(block), k - 1)
                ends = np.full((len(block), 1), records + k - 1)
                x = self.queries(np.diff(np.hstack((0 * ends - 1, bars, ends)), axis=1) - 1)
                yield from x[
                    np.logical_or.reduce([_held(resolved, x) for resolved in self.alternatives])
                ]

    def pairs(
        self, datasets: Sequence[Values], neighbours: Neighbours, records: int = 1
    ) -> list[tuple[int, int]]:
        """Positions of all pairs of neighbours that agree on the exact counts, each once.

        All datasets satisfy the invariant; at most `records` are replaced at once.
        """
        pinned = self.hull.pinned
        if records > 1:
            return [
                (i, j)
                for i, j in itertools.combinations(range(len(datasets)), 2)
                if self.replaced(datasets[i], datasets[j]) <= records
                and (datasets[i][pinned] == datasets[j][pinned]).all()
            ]
        index = {tuple(x[self.entries].tolist()): i for i, x in enumerate(datasets)}
        found = []
        for cells, i in index.items():
            for other in _moved(cells, neighbours):
                j = index.get(other, -1)
                if j >= 0 and (datasets[i][pinned] == datasets[j][pinned]).all():
                    found.append((i, j) if neighbours == "add-remove" or i < j else (j, i))
        return sorted(set(found))

    def replaced(self, one: Values, other: Values) -> float:
        """Return how many records two datasets differ in; inf if their totals differ."""
        change = (other - one)[self.entries]
        return float(np.abs(change).sum()) / 2.0 if change.sum() == 0 else math.inf

    def hard_pairs(self, neighbours: Neighbours) -> list[Pair]:
        """Pairs that make the costliest move among few records, beside a crowd, and among crowds.

        Raises EmptyNeighbourhoodError if the pins leave no neighbouring datasets; PrivacyError if
        fixed sums leave only moves of several records, and too many to search.
        """
        gains = self.dearest(neighbours)
        low = np.clip(self.alternatives[0].lo[self.entries], 0.0, None).astype(np.int64)
        crowd = low.copy()
        rest = np.flatnonzero(gains == 0)
        crowd[rest[:1] if rest.size else slice(0, 1)] += CROWD
        out: list[Pair] = []
        for base in (low, low + 1, crowd, low + CROWD):
            sides = [base + np.maximum(-gains, 0), base + np.maximum(gains, 0)]
            pair = self.queries(sides[0]), self.queries(sides[1])
            if gains.size and all(self.allows(x) for x in pair):
                out.append(pair)
        return out

    def dearest(self, neighbours: Neighbours) -> IntArray:
        """Return the gain of each entry by the costliest move, shape (k,)."""
        noise, scales = self.mechanism.noise, self.mechanism.scales
        power = 1 if noise.measure == "pure" else 2
        resolved = replace(self.alternatives[0], pinned=self.determined)
        cost = np.where(resolved.pinned, 0.0, scales**-power)
        joint = forced_moves(cost, resolved, self.counted, neighbours, power=power)
        if joint is not None:
            return joint.move
        move = worst_move(cost, resolved, self.counted, neighbours)
        at_origin = np.asarray(self.entries == move.origin, dtype=np.int64)
        if move.destination is None:
            return at_origin
        return np.asarray(self.entries == move.destination, dtype=np.int64) - at_origin

    def fits(self, total: int, most: int) -> bool:
        """Whether at most `most` datasets of at most `total` records are to be compared."""
        vectors = math.comb(total + self.entries.size, total)
        if vectors <= most:
            return True
        # fixed sums may allow only a few of them
        if vectors > CANDIDATES or not self.alternatives[0].equalities[1].size:
            return False
        return len(list(itertools.islice(self.datasets(total), most + 1))) <= most


def moved_at_once(guarantee: Guarantee) -> int:
    """Return the largest number of records replaced together between neighbours."""
    return guarantee.records if guarantee.at_once else 1


def space_of(mechanism: Mechanism) -> Space | None:
    """Find the space of a mechanism; None where its queries are unknown."""
    if isinstance(mechanism, OnGrid):
        inner, whole = space_of(mechanism.inner), mechanism.mechanism
        first = whole.parts[0] if isinstance(whole, Mixture) else whole
        if inner is not None:
            unit = 1.0 / mechanism.granularity
            alternatives = tuple(one.in_units(unit) for one in inner.alternatives)
            inner = Space(first if isinstance(first, Additive) else inner.mechanism, alternatives)
        return inner
    if isinstance(mechanism, ConditionedMixture):
        return Space(mechanism.parts[0].mechanism, mechanism.alternatives)
    if isinstance(mechanism, Mixture):
        first = mechanism.parts[0]
        if isinstance(first, Additive):
            return Space(first, (resolve_invariant(Invariant(()), first.n, first.domain),))
        return space_of(first)
    asked, resolved = getattr(mechanism, "mechanism", None), getattr(mechanism, "resolved", None)
    if isinstance(asked, Additive) and isinstance(resolved, ResolvedInvariant):
        return Space(asked, (resolved,))
    return None


def _moved(cells: tuple[int, ...], neighbours: Neighbours) -> Iterator[tuple[int, ...]]:
    for j in range(len(cells)):
        more = (*cells[:j], cells[j] + 1, *cells[j + 1 :])
        if neighbours == "add-remove":
            yield more
            continue
        for i in range(len(cells)):
            if i != j and cells[i] > 0:
                yield (*more[:i], more[i] - 1, *more[i + 1 :])


def _held(resolved: ResolvedInvariant, x: IntArray) -> npt.NDArray[np.bool_]:
    """Whether each dataset, shape (size, n), satisfies an invariant with its own exact values."""
    open_ = replace(resolved, pinned=np.zeros(resolved.n, dtype=np.bool_))
    return open_.satisfied_by(x, x[0])
