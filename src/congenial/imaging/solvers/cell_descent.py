"""TopDown of tables whose margins cross, set up once for many vectors."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from congenial.domain.workload import Workload
from congenial.errors import InfeasibleError
from congenial.imaging.solvers.areas import Geography, lay_out
from congenial.imaging.solvers.family import Family, settle
from congenial.imaging.solvers.linked_tables import TableLinks, links_of, order_of
from congenial.imaging.solvers.problem import checked_values
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.projection.crossing import Areas, descend_families
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray, Words

log = logging.getLogger("congenial.imaging")
# Largest violation of bounds, in counts, and of gradients, in weighted counts, relative to the
# largest measurement.
TOLERANCE = 1e-9
_MOST_STEPS = 100
# Distance to an integer at which a value counts as one.
_SLACK = 2.0**-20
# Lower and upper bounds of all rows of a table, shape (N, Q) each.
Limits = tuple[FloatArray, FloatArray]
# Families that a thread takes at once.
_SHARE = 64
# Largest ratio of two weights, which double precision resolves.
_RATIO = 1e6


class NoTableBelowError(InfeasibleError):
    """The descent chose cells that leave no table below them."""


@dataclass(frozen=True, eq=False)
class CellDescent:
    """Every family of every table fitted under its parent's cells, parents first."""

    workload: Workload
    resolved: ResolvedInvariant
    weight: FloatArray  # shape (n,): One over the variance; 0 for an entry that is not measured.
    integer: bool
    # Whether cells that leave no table below them, and those above, change as little as possible.
    repairs: bool = False

    @cached_property
    def tables(self) -> tuple[Geography, ...]:
        """The tables as the kernel reads them."""
        resolved = self.resolved
        bounded = resolved.pinned | np.isfinite(resolved.hi) | (resolved.lo > 0.0)
        bounded[resolved.pairs] = True
        out = []
        for table in order_of(self.workload, resolved.linked):
            blocks = [block for block in self.workload.blocks if block.table is table]
            out.append(lay_out(table, blocks, [b for b in blocks if bounded[b.entries].any()]))
        return tuple(out)

    @cached_property
    def links(self) -> tuple[TableLinks, ...]:
        """Counts of a table that are at least as large as counts of a table before it."""
        return links_of(self.tables, self.resolved.linked, self.resolved.n)

    def apply(
        self, y: npt.ArrayLike, source: Randomness, limits: list[Limits] | None = None
    ) -> FloatArray | IntArray:
        """Return a vector that keeps the invariant, shape (n,): int64 where `integer`.

        `limits` are those of vectors with the same counts published exactly.

        Raises ArgumentError if `y` has the wrong shape, or a number is not finite or beyond 2^53;
        InfeasibleError if nothing satisfies the invariant; NoTableBelowError if the descent finds
        no table; NumericalError if a family's program was not solved.
        """
        values = self._checked(y)
        return self._moved(values, self.limits(values) if limits is None else limits, source)

    def _checked(self, y: npt.ArrayLike) -> FloatArray:
        needed = self.resolved.pinned | (self.weight > 0.0)
        return checked_values(y, self.resolved.n, needed, self.workload)

    def limits(self, given: npt.ArrayLike) -> list[Limits]:
        """Bounds of all rows of each table, under the counts published exactly among those given.

        Raises InfeasibleError if they leave no table.
        """
        values = np.asarray(given, dtype=np.float64)
        resolved = self.resolved.with_pins(values)
        found = [self.bounds(geography, resolved, values) for geography in self.tables]
        for link in reversed(self.links):
            low, high = found[link.fewer]
            ceiling = link.ceiling(self.tables, found[link.more])
            found[link.fewer] = self._carried(link.fewer, low, np.minimum(high, ceiling), values)
        return found

    def _carried(self, at: int, low: FloatArray, high: FloatArray, values: FloatArray) -> Limits:
        """Carry bounds of a table up; refuses bounds that cannot hold."""
        slack = 0.0 if self.integer else TOLERANCE * max(1.0, float(np.abs(values).max()))
        low, high, wrong = self.tables[at].carried(low, high, slack)
        if wrong >= 0:
            raise _no_table(self.tables[at], self.workload, wrong)
        return low, high

    def _raised(
        self, at: int, limits: list[Limits], values: FloatArray, rows: list[FloatArray]
    ) -> Limits:
        """Bounds of a table under the rows of the tables before it."""
        low, high = limits[at]
        linked = [link for link in self.links if link.more == at]
        for link in linked:
            low = np.maximum(low, link.floor(self.tables, rows[link.fewer]))
        return self._carried(at, low, high, values) if linked else (low, high)

    def _moved(
        self, values: FloatArray, limits: list[Limits], source: Randomness
    ) -> FloatArray | IntArray:
        out, pinned = np.zeros(self.resolved.n), self.resolved.pinned
        rows: list[FloatArray] = []
        for at, geography in enumerate(self.tables):
            entries = geography.ids >= 0
            within = self._raised(at, limits, values, rows)
            rows.append(geography.summed(self._fill(geography, within, values, source)))
            out[geography.ids[entries]] = rows[-1][entries]
        out[pinned] = values[pinned]
        return np.rint(out).astype(np.int64) if self.integer else out

    def follows(self, y: npt.ArrayLike, released: IntArray) -> bool:
        """Whether every area's cells are the fit to measurements, each rounded down or up.

        The fit of an area's parts is that under the area's released cells.
        """
        values = np.asarray(y, dtype=np.float64)
        limits, none = self.limits(values), one_kind()
        rows = [geography.summed(geography.read(released)) for geography in self.tables]
        with ThreadPoolExecutor(max(1, int(numba.config.NUMBA_NUM_THREADS))) as pool:
            for at, geography in enumerate(self.tables):
                within = self._raised(at, limits, values, rows)
                areas, given = self.areas(geography, within, values), geography.read(released)
                for begin, end in geography.stages:
                    x = given.copy()
                    if _failed(pool, areas, begin, end, none, x):
                        return False
                    if (np.abs(x - given) >= 1.0 + _SLACK).any():
                        return False
        return True

    def _fill(
        self,
        geography: Geography,
        within: Limits,
        values: FloatArray,
        source: Randomness,
    ) -> FloatArray:
        """Cells of all nodes of one table, shape (N, K)."""
        areas = self.areas(geography, within, values)
        words = one_kind()
        shape = (geography.parent.size, geography.cells)
        if self.integer:
            words = source.bits(shape[0] * shape[1]).reshape(shape)
        x = np.zeros(shape)
        repaired = 0
        with ThreadPoolExecutor(max(1, int(numba.config.NUMBA_NUM_THREADS))) as pool:
            for begin, end in geography.stages:
                for f in _failed(pool, areas, begin, end, words, x):
                    repaired += self._settle(geography, areas, f, x)
        if repaired:
            log.warning(
                "rounding changed cells of %d areas, and with them those above, because within the "
                "bounds and the counts published exactly no table of their parts adds up to them",
                repaired,
            )
            low, high = areas.low, areas.high
            rows = geography.summed(x)
            slack = 0.0 if self.integer else 1e-6 * max(1.0, float(np.abs(x).max()))
            wrong = np.argwhere((rows < low - slack) | (rows > high + slack))
            if wrong.size:
                raise _stuck(geography, self.workload, int(wrong[0, 0]))
        return x

    def _settle(self, geography: Geography, areas: Areas, f: int, x: FloatArray) -> bool:
        """Settle a family by general solvers; whether its parent's cells had to change."""
        head = int(areas.head[f])
        fit, missed = x.copy(), np.full(areas.head.size, np.inf)
        descend_families(areas, f, f + 1, TOLERANCE, _MOST_STEPS, one_kind(), fit, missed)
        at = areas.members[areas.first[f] : areas.first[f + 1]]
        try:
            found = settle(
                Family(
                    areas.of,
                    x[head] if head >= 0 else None,
                    areas.weight[at],
                    areas.target[at],
                    areas.low[at],
                    areas.high[at],
                    areas.counted[at],
                ),
                fit[at] if missed[f] <= TOLERANCE else None,
                integer=self.integer,
            )
        except InfeasibleError:
            if head < 0:
                raise _no_table(geography, self.workload, int(at[0])) from None
            raise _stuck(geography, self.workload, head) from None
        x[at] = found
        if head < 0:
            return False
        change = found.sum(axis=0) - x[head]
        if self.integer and not change.any():
            return False
        if np.abs(change).max() <= 1e-6 * max(1.0, float(np.abs(found).max())):
            return False
        if not self.repairs:
            raise _stuck(geography, self.workload, head)
        while head >= 0:
            x[head] += change
            head = int(geography.parent[head])
        return True

    def areas(self, geography: Geography, within: Limits, values: FloatArray) -> Areas:
        """Everything that the kernel needs of one table."""
        low, high = within
        weight, target = self.measured(geography, values)
        counted = geography.ids >= 0
        counted[:, : geography.cells] = True
        first, members, head = geography.families
        above = np.zeros_like(members)
        return Areas(first, members, above, head, geography.of, weight, target, low, high, counted)

    def bounds(
        self,
        geography: Geography,
        resolved: ResolvedInvariant,
        values: FloatArray,
        *,
        carry: bool = True,
    ) -> Limits:
        """Bounds of all rows, tightened by those of the nodes below if `carry`.

        Refuses bounds that cannot hold.
        """
        entries = geography.ids >= 0
        at = geography.ids[entries]
        low, high = np.full(entries.shape, -np.inf), np.full(entries.shape, np.inf)
        low[entries] = np.where(resolved.pinned, values, resolved.lo)[at]
        high[entries] = np.where(resolved.pinned, values, resolved.hi)[at]
        if self.integer:
            low, high = np.ceil(low), np.floor(high)
        none = ~geography.possible
        low[none], high[none] = np.maximum(low[none], 0.0), np.minimum(high[none], 0.0)
        slack = 0.0 if self.integer else TOLERANCE * max(1.0, float(np.abs(values).max()))
        carried_low, carried_high, wrong = geography.carried(low, high, slack)
        if wrong >= 0:
            raise _no_table(geography, self.workload, wrong)
        return (carried_low, carried_high) if carry else geography.loosened(low, high)

    def measured(
        self, geography: Geography, values: FloatArray, *, below: bool = True
    ) -> tuple[FloatArray, FloatArray]:
        """Weights and measurements of all rows.

        With `below`, rows that are not measured take the sums of those below them.
        """
        entries = geography.ids >= 0
        at, cells = geography.ids[entries], slice(0, geography.cells)
        variance, target = np.full(entries.shape, np.inf), np.zeros(entries.shape)
        with np.errstate(divide="ignore"):
            each = np.where(self.resolved.pinned, 0.0, 1.0 / self.weight)
        variance[entries], target[entries] = each[at], values[at]
        variance[:, cells][~geography.possible[:, cells]] = 0.0
        for level in range(geography.levels.size - 3, -1, -1):
            here = geography.at(level)
            open_ = np.isinf(variance[here])
            if below and open_.any():
                for part in (variance, target):
                    part[here] = np.where(open_, geography.rolled_up(part, level), part[here])
        least = variance[variance > 0.0].min(initial=np.inf)
        with np.errstate(divide="ignore"):
            weight = 1.0 / np.clip(variance, least, least * _RATIO)
        weight[np.isinf(variance) | (variance == 0.0)] = 0.0
        return weight, target


def one_kind() -> Words:
    """Return no random words, read-only like others, so that kernels are compiled once."""
    none: Words = np.zeros((0, 0), dtype=np.uint64)
    none.setflags(write=False)
    return none


def _failed(
    pool: ThreadPoolExecutor, areas: Areas, begin: int, end: int, words: Words, x: FloatArray
) -> list[int]:
    """Fill families begin to end, whose parents are filled; return those without a solution."""
    missed = np.zeros(areas.head.size)

    def part(start: int) -> None:
        stop = min(start + _SHARE, end)
        descend_families(areas, start, stop, TOLERANCE, _MOST_STEPS, words, x, missed)

    list(pool.map(part, range(begin, end, _SHARE)))
    return (begin + np.flatnonzero(~(missed[begin:end] <= TOLERANCE))).tolist()


def _no_table(geography: Geography, workload: Workload, node: int) -> InfeasibleError:
    """Return the error for a node whose bounds leave no table."""
    return InfeasibleError(
        "the bounds and the counts published exactly leave no table where "
        f"{_where(geography, workload, node)!r} is counted and below; relax bounds, or publish "
        "fewer counts exactly there."
    )


def _stuck(geography: Geography, workload: Workload, node: int) -> NoTableBelowError:
    """Return the error for a node whose cells, chosen already, leave no table below."""
    return NoTableBelowError(
        "going down from the root, no table of integers was found within the bounds where "
        f"{_where(geography, workload, node)!r} is counted and below; relax bounds there."
    )


def _where(geography: Geography, workload: Workload, node: int) -> str:
    known = geography.ids[node][geography.ids[node] >= 0]
    return workload.name(int(known[0])) if known.size else "an area"
