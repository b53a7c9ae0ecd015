"""Tables that are filled one after another, and the variables that have them."""

from __future__ import annotations

import numpy as np

from congenial.kernels.network import family_draws
from congenial.kernels.network.member_sums import moments_of_tables
from congenial.sum_network.families.family_records import Doubt, TablesOfOwners
from congenial.types import FloatArray, Indices, IntArray

# Tables for which there is room at first, and entries for each variable, which are seldom fewer
# than are used. Pages that are not used take no memory.
_TABLES, _ENTRIES = 1 << 10, 32
_TAILS, _DOUBTS, _MOMENTS = 4, len(Doubt._fields), 3


class GrowingTables:
    """Tables so far. Variables that are equal have one table.

    `table` has the entries of all tables, of which the first `used` are in use.
    """

    def __init__(self, variables: int) -> None:
        self.of: Indices = np.full(variables, -1, dtype=np.int32)
        self.table, self.used, self._count = np.empty(_ENTRIES * variables, dtype=np.int64), 0, 0
        self._places = np.zeros((3, _TABLES), dtype=np.int64)
        self._bounds = np.zeros((_TAILS + _DOUBTS + _MOMENTS, _TABLES))

    @property
    def place(self) -> IntArray:
        """Where each table begins, shape (tables,)."""
        return self._places[0, : self._count]

    @property
    def first(self) -> IntArray:
        """First value of each table, shape (tables,)."""
        return self._places[1, : self._count]

    @property
    def size(self) -> IntArray:
        """Number of entries of each table, shape (tables,)."""
        return self._places[2, : self._count]

    @property
    def tails(self) -> FloatArray:
        """Bounds on what lies beyond each table, shape (4, tables); see `TablesOfOwners`."""
        return self._bounds[:_TAILS, : self._count]

    @property
    def doubt(self) -> Doubt:
        """Doubts of the entries of each table, shapes (tables,)."""
        return Doubt(*self._bounds[_TAILS:-_MOMENTS, : self._count])

    @property
    def moments(self) -> FloatArray:
        """Sum of each table, mean and variance of its places, shape (3, tables)."""
        return self._bounds[-_MOMENTS:, : self._count]

    @property
    def entries(self) -> IntArray:
        """Entries of all tables, shape (used,)."""
        return self.table[: self.used]

    def append(self, table: IntArray) -> int:
        """Append entries, and return where they begin."""
        self.reserve(table.size)
        begin, self.used = self.used, self.used + table.size
        self.table[begin : self.used] = table
        return begin

    def reserve(self, entries: int) -> None:
        """Make room for further entries.

        Compiled loops do not: numpy asks for large pages, so that each is fetched 500 times less.
        """
        end = self.used + entries
        if end > self.table.size:
            longer = np.empty(max(end, 2 * self.table.size), dtype=np.int64)
            longer[: self.used] = self.entries
            self.table = longer

    def add(
        self, variables: IntArray, *, places: FloatArray, tails: FloatArray, doubt: Doubt
    ) -> None:
        """Give each variable a new table, whose entries are there.

        `places` (3, variables) has where a table begins, its first value and its size.
        """
        begin, end = self._count, self._count + variables.size
        if end > self._places.shape[1]:
            room = ((0, 0), (0, max(end, 2 * begin) - begin))
            self._places = np.pad(self._places[:, :begin], room)
            self._bounds = np.pad(self._bounds[:, :begin], room)
        self._count, self.of[variables] = end, np.arange(begin, end)
        self._places[:, begin:end], self._bounds[:_TAILS, begin:end] = places, tails
        for row, column in zip(self._bounds[_TAILS:-_MOMENTS, begin:end], doubt, strict=True):
            row[:] = column
        place, _, size = self._places[:, begin:end]
        moments_of_tables(place, size, self.entries, self._bounds[-_MOMENTS:, begin:end])

    def share(self, variables: IntArray, owners: IntArray) -> None:
        """Give variables the tables of other ones."""
        self.of[variables] = self.of[owners]

    def finished(self) -> tuple[TablesOfOwners, Doubt]:
        """Return the tables as draws take them; entries become running sums in their place."""
        doubt, tails = self.doubt, self.tails
        # without tails, the only entry of a table is a constant
        only = (self.size == 1) & (tails[0] == 0.0) & (tails[2] == 0.0)
        doubt.factor[only] = doubt.rounding[only] = 0.0
        # numbers of one table that draws need lie side by side in memory
        place, first, size, largest, total = np.empty((self._count, 5), dtype=np.int64).T
        place[:], first[:], size[:] = self._places[:, : self._count]
        moments = np.asfortranarray(self.moments[1:])
        guide = np.empty((self._count, family_draws.PARTS), dtype=np.int32)
        family_draws.cumulate(place, size, self.entries, largest, total, guide)
        laid = place, first, size, self.entries, np.asfortranarray(tails)
        return TablesOfOwners(self.of, *laid, largest, total, moments, guide), doubt
