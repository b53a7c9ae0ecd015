"""The queries of a release: margins of tables at levels of their geography."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.domain.blocks import Block, select
from congenial.domain.given import as_array, whole_counts
from congenial.domain.nesting import Sums, nested_parents, sums_by_refinement
from congenial.domain.table import Margin, Table, margin_names
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError
from congenial.types import BoolArray, FloatArray, IntArray
from congenial.wording import html_table, many

MarginLike = str | Sequence[str]
Asked = tuple[tuple[int, Margin], ...]


@dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """Margins of one or several tables, at levels of their geography; made by `of`, joined by +.

    The entries are in blocks, table by table, coarse levels first, and within a level small margins
    first. The cells at the finest level are always the last block of their table, even if they are
    not measured. Impossible cells are not entries, nor are margins of impossible cells only.

    Attributes
    ----------
    asked : tuple of (Table, tuple of (int, tuple of str))
        For each table the depths and margins of its blocks, in order.

    Examples
    --------
    >>> import congenial as cg
    >>> table = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18-64", "65+")})
    >>> workload = cg.Workload.of(table, [(), ("sex",)])
    >>> workload.answers([[1, 5, 2], [3, 4, 0]]).tolist()
    [15, 8, 7, 1, 5, 2, 3, 4, 0]
    >>> workload.tree is None  # any two entries are disjoint or nested, so they form a tree
    False
    """

    asked: tuple[tuple[Table, Asked], ...]

    @classmethod
    def of(
        cls,
        table: Table,
        margins: Sequence[MarginLike] | Mapping[str | int, Sequence[MarginLike]] = (),
    ) -> Workload:
        """Query margins of one table.

        Parameters
        ----------
        table : Table
        margins : sequence of margins, or mapping from levels to sequences of margins
            A margin is a tuple of axes or groups; ``()`` is the total. Levels are named or given
            by depth; a sequence is for every level.

        Raises
        ------
        ArgumentError
            If a level, an axis or a group is unknown.
        """
        if not isinstance(table, Table):
            raise ArgumentError(f"the table is a {type(table).__name__}; give a Table.")
        levels = range(len(table.level_names))
        if not isinstance(margins, Mapping):
            margins = dict.fromkeys(levels, margins)
        finest = (levels[-1], table.margin(tuple(table.axes)))
        found = {
            (table.level(level), table.margin(margin))
            for level, listed in margins.items()
            for margin in _listed(listed)
        }
        width = {one: len(np.unique(table.classes(one[1]))) for one in found}
        order = sorted(found - {finest}, key=lambda one: (one[0], width[one], one[1]))
        return cls(((table, (*order, finest)),))

    def __post_init__(self) -> None:
        """Check that tables have different names."""
        names = [table.name for table in self.tables]
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            raise ArgumentError(
                f"two tables are named {twice[0]!r}; give each Table a name of its own."
            )

    def __add__(self, other: Workload) -> Workload:
        """Query the tables of both."""
        if not isinstance(other, Workload):
            return NotImplemented
        return Workload(self.asked + other.asked)

    def __len__(self) -> int:
        """Return the number of entries."""
        return self.blocks[-1].stop

    def __repr__(self) -> str:
        names = ", ".join(table.name for table in self.tables)
        return f"Workload({many(len(self), 'query', 'queries')} of {names})"

    def _repr_html_(self) -> str:
        rows = [
            (
                block.table.name,
                block.table.level_names[block.level],
                " by ".join(block.margin) or "total",
                block.stop - block.start,
            )
            for block in self.blocks
        ]
        columns = ("table", "level", "margin", "queries")
        title = f"Workload of {many(len(self), 'query', 'queries')}"
        return html_table(title, columns, rows, len(rows))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The tables, in order."""
        return tuple(table for table, _ in self.asked)

    @cached_property
    def _layout(self) -> tuple[tuple[Block, ...], tuple[IntArray, ...]]:
        """Blocks, and for each table the entries that count each of its cells."""
        blocks: list[Block] = []
        chains = []
        start = 0
        for table, asked in self.asked:
            area, cell = np.nonzero(table.possible)
            rows = []
            for level, margin in asked:
                nodes, classes = table.holders(level), table.classes(margin)
                width = int(np.prod([len(one) for one in table.labels(margin)]))
                at = nodes[area] * width + classes[cell]
                present = np.zeros((table.nodes(level).size, width), dtype=np.bool_)
                present.ravel()[at] = True
                stop = start + int(present.sum())
                ids = np.full(present.shape, -1, dtype=np.int64)
                ids[present] = np.arange(start, stop)
                blocks.append(Block(table, level, margin, ids, start, stop))
                rows.append(ids.ravel()[at])
                start = stop
            chains.append(np.array(rows))
        return tuple(blocks), tuple(chains)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks, in the order of the entries."""
        return self._layout[0]

    @cached_property
    def chain(self) -> IntArray:
        """Entries that count a record in each cell, shape (d, cells), padded with -1.

        The cells are those of `cells`: the finest of every table, impossible ones left out.
        """
        chains = self._layout[1]
        depth = max(len(rows) for rows in chains)
        fill = [np.full((depth - len(rows), rows.shape[1]), -1) for rows in chains]
        return np.hstack([np.vstack(pair) for pair in zip(fill, chains, strict=True)])

    @property
    def cells(self) -> IntArray:
        """Entries of single cells, at which records are counted, ascending."""
        last: IntArray = self.chain[-1]
        return last

    @property
    def leaves(self) -> IntArray:
        """Entries of single cells, as a tree's leaves."""
        return self.cells

    @cached_property
    def is_leaf(self) -> BoolArray:
        """Whether an entry is a single cell at which records are counted, shape (n,)."""
        found = np.zeros(len(self), dtype=np.bool_)
        found[self.cells] = True
        return found

    @property
    def depth(self) -> int:
        """Number of blocks."""
        return len(self.blocks)

    @cached_property
    def level(self) -> IntArray:
        """The block of each entry, counted from 0, shape (n,)."""
        return np.repeat(np.arange(self.depth), [b.stop - b.start for b in self.blocks])

    def path(self, entry: int) -> tuple[str, ...]:
        """Return the names down to an entry: those of its place, and the values that it counts."""
        block, row, column = self._at(entry)
        return block.path(row, column)

    def _at(self, entry: int) -> tuple[Block, int, int]:
        """The block of an entry, and its row and column there."""
        block = self.blocks[int(self.level[entry])]
        return block, *block.place(entry)

    @property
    def paths(self) -> tuple[tuple[str, ...], ...]:
        """The paths of all entries, as `path` gives them."""
        return tuple(path for block in self.blocks for path in block.paths())

    def roll_up(self, cell_counts: npt.ArrayLike) -> IntArray:
        """Answer every query from the counts of `cells`, shape (..., cells), in that order."""
        counts = np.asarray(cell_counts, dtype=np.int64)
        out = np.zeros(
            (*counts.shape[:-1], len(self) + 1), dtype=np.int64
        )  # the last is of padding
        rows = out.reshape(-1, len(self) + 1)
        for row, own in zip(rows, counts.reshape(-1, counts.shape[-1]), strict=True):
            for entries in self.chain:
                np.add.at(row, entries, own)
        return np.ascontiguousarray(out[..., :-1])

    @cached_property
    def tree(self) -> Tree | None:
        """The entries as a tree in the same order, where all are nested or disjoint; else None."""
        parents = nested_parents(self.chain, len(self))
        return None if parents is None else Tree.from_parents(parents)

    @cached_property
    def sums(self) -> Sums:
        """The sums that hold for all data: every entry that is not a cell, as a sum of others."""
        found = []
        at = 0
        for rows in self._layout[1]:
            here = self.blocks[at : at + len(rows)]
            found.append(sums_by_refinement(rows, [block.entries for block in here]))
            at += len(rows)
        ends = np.concatenate([[0], *(np.diff(one.starts) for one in found)]).cumsum()
        return Sums(
            np.concatenate([one.totals for one in found]),
            ends.astype(np.int64),
            np.concatenate([one.parts for one in found]),
        )

    def answers(self, *counts: npt.ArrayLike) -> IntArray:
        """Answer every query.

        Parameters
        ----------
        *counts : array_like of int
            One array for each table, of the table's shape.

        Returns
        -------
        ndarray of int64, shape (n,)

        Raises
        ------
        ArgumentError
            If a shape differs, an entry is no integer from 0 on, an impossible cell is not empty,
            or there are 2^63 records or more.
        """
        if len(counts) != len(self.asked):
            raise ArgumentError(f"answers() was given {len(counts)} arrays; give one a table.")
        cells = []
        for table, given in zip(self.tables, counts, strict=True):
            flat = whole_counts(table.name, given, table.shape).reshape(table.possible.shape)
            if flat[~table.possible].any():
                raise ArgumentError(
                    f"the counts of {table.name!r} hold records in a cell that was declared "
                    "impossible; correct the records or the declaration."
                )
            cells.append(flat[table.possible])
        return self.roll_up(np.concatenate(cells))

    def consistent_with(self, values: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Whether every margin equals the sum of its cells, shape (...), for shape (..., n).

        Raises
        ------
        ArgumentError
            If a row has another length, or the values are no numbers.
        """
        return np.asarray((self.sums.gaps(self._rows(values)) == 0).all(axis=-1))

    def is_consistent(self, values: npt.ArrayLike) -> bool:
        """Whether every margin of every row equals the sum of its cells."""
        return bool(self.consistent_with(values).all())

    def same_as(self, other: Workload) -> bool:
        """Whether two workloads have the same entries in the same order."""
        return self is other or (
            len(self) == len(other) and np.array_equal(self.chain, other.chain)
        )

    def block(
        self, margin: MarginLike, level: str | int | None = None, table: str | Table | None = None
    ) -> Block:
        """Return the block of a margin.

        Parameters
        ----------
        margin : tuple of str
        level : str or int, optional
            The coarsest by default.
        table : str or Table, optional
            Needed where the workload has several.

        Raises
        ------
        ArgumentError
            If the workload does not count that margin there.
        """
        owner = self.table(table)
        names, depth = owner.margin(margin), owner.level(level)
        for block in self.blocks:
            if block.table is owner and block.level == depth and block.margin == names:
                return block
        raise ArgumentError(
            f"the workload does not count margin {names!r} of {owner.name!r} at level "
            f"{owner.level_names[depth]!r}; add it to Workload.of() (it need not be measured)."
        )

    def table(self, given: str | Table | None = None) -> Table:
        """Return a table by name; the only one for None.

        Raises
        ------
        ArgumentError
            If there is no such table, or several for None.
        """
        name = given.name if isinstance(given, Table) else given
        found = [table for table in self.tables if name in (None, table.name)]
        if len(found) != 1:
            raise ArgumentError(
                f"table is {name!r}; give one of {', '.join(t.name for t in self.tables)}."
            )
        return found[0]

    def array(
        self,
        values: npt.ArrayLike,
        margin: MarginLike,
        level: str | int | None = None,
        table: str | Table | None = None,
    ) -> npt.NDArray[Any]:
        """Return one block of a vector as an array with an axis for each name of a margin.

        Parameters
        ----------
        values : array_like, shape (..., n)
            For example a release, or scales.
        margin, level, table
            As for `block`; the axes come in the order of `margin`.

        Returns
        -------
        ndarray, shape (..., nodes, *margin)
            Without the axis of nodes where the table has no geography; 0 for impossible cells.
        """
        block = self.block(margin, level, table)
        vector = self._rows(values)
        inside = block.ids >= 0
        flat = np.zeros((*vector.shape[:-1], *block.ids.shape), dtype=vector.dtype)
        flat[..., inside] = vector[..., block.ids[inside]]
        sizes = tuple(len(one) for one in block.table.labels(block.margin))
        lead = flat.shape[:-1] if block.table.geography is not None else flat.shape[:-2]
        out = flat.reshape((*lead, *sizes))
        order = [len(lead) + block.margin.index(name) for name in margin_names(margin)]
        return out.transpose(*range(len(lead)), *order)

    def _rows(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        vector = as_array("values", values)
        if vector.ndim == 0 or vector.shape[-1] != len(self) or vector.dtype.kind not in "biuf":
            raise ArgumentError(
                f"values has shape {vector.shape} and dtype {vector.dtype}; give {len(self)} "
                "numbers, values a row."
            )
        return vector

    def find(
        self,
        values: Mapping[str, str] | None = None,
        at: int | str | Sequence[str] | None = None,
        table: str | Table | None = None,
    ) -> int:
        """Return one entry: the count of the given values in one area.

        Parameters
        ----------
        values : mapping of str to str, optional
            A label for each axis or group of the margin; the total by default.
        at : int, str or path, optional
            A node of the geography; not needed if the coarsest level has only one.
        table : str or Table, optional

        Raises
        ------
        ArgumentError
            If the workload has no such entry.
        """
        if values is not None and not isinstance(values, Mapping):
            raise ArgumentError(f"find() was given {values!r}; give axes with a value each.")
        owner, chosen = self.table(table), dict(values or {})
        level, row = 0, 0
        tree = owner.geography
        if tree is not None and (at is not None or tree.roots.size > 1):
            node = tree.find("" if at is None else at)
            level = int(tree.level[node])
            row = int(np.searchsorted(owner.nodes(level), node))
        block = self.block(tuple(chosen), level, owner)
        column = 0
        for name, labels in zip(block.margin, owner.labels(block.margin), strict=True):
            if chosen[name] not in labels:
                raise ArgumentError(
                    f"{chosen[name]!r} is no value of {name!r}; give one of {', '.join(labels)}."
                )
            column = column * len(labels) + labels.index(chosen[name])
        entry = int(block.ids[row, column])
        if entry < 0:
            raise ArgumentError(f"{chosen!r} was declared impossible there, so it is no entry.")
        return entry

    def name(self, entry: int) -> str:
        """Name an entry, such as "sex=F, age=0-17 in people at town/a".

        Raises
        ------
        ArgumentError
            If there is no such entry.
        """
        if not 0 <= entry < len(self):
            raise ArgumentError(f"entry is {entry}; give one from 0 to {len(self) - 1}.")
        block, row, column = self._at(entry)
        return block.name(row, column)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all entries, as `name` gives them."""
        return tuple(name for block in self.blocks for name in block.names())

    def scales(self, given: Mapping[Any, Any]) -> FloatArray:
        """Return a scale for every entry; inf where none is given.

        Parameters
        ----------
        given : mapping
            From a margin to a scale, at every level that counts it; or from a level, or the name
            of a table, to such a mapping.

        Returns
        -------
        ndarray of float64, shape (n,)

        Raises
        ------
        ArgumentError
            If a key finds no block, or a scale is no number.
        """
        out = np.full(len(self), np.inf)
        for block, scale in self.select(given):
            try:
                out[block.entries] = scale
            except (TypeError, ValueError):
                raise ArgumentError(
                    f"the scale of {block.text} is {scale!r}; give a number, or as many as it has "
                    "entries."
                ) from None
        return out

    def select(self, given: Mapping[Any, Any]) -> list[tuple[Block, Any]]:
        """Return the blocks that a mapping such as that of `scales` names, each with its value."""
        return select(list(self.blocks), given)


def _listed(margins: object) -> Sequence[MarginLike]:
    if isinstance(margins, str) or not isinstance(margins, Sequence):
        raise ArgumentError(f"margins is {margins!r}; give a list of margins, such as [('sex',)].")
    return margins
