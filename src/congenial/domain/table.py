"""The domain of records with several attributes, at every leaf of a geography, without counts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.domain.given import check_values, leaves_of, places_of
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, StructureError
from congenial.types import BoolArray, IntArray
from congenial.wording import html_table, many, nearest

Margin = tuple[str, ...]
Groups = Mapping[str, tuple[str, Mapping[str, Sequence[str]]]]
Condition = Mapping[str, str | Sequence[str]]
Impossible = npt.NDArray[np.bool_] | Sequence[Any] | Condition

# The name of a table that was given none.
UNNAMED = "table"
# The level of a table without a geography.
WHOLE = "whole"


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named axes with their values; a record lies in one cell, at one leaf of the geography.

    Counts are a plain array of shape ``table.shape``: the leaves of the geography, in its order,
    then one axis an attribute; without a geography the attributes alone.

    Attributes
    ----------
    axes : mapping of str to sequence of str
        The attributes and their values, in the order of the array's axes.
    groups : mapping of str to (str, mapping of str to sequence of str)
        Coarser versions of an axis: a name, the axis, and the values of the axis in each group.
        Every value belongs to one group. A margin can name a group instead of its axis.
    geography : Tree, optional
        Its leaves all lie at one depth.
    levels : sequence of str, optional
        Names of the levels of the geography from the coarsest; "level 0" and so on if not given.
    impossible : array_like of bool, mapping, or sequence of mappings, optional
        Cells that cannot hold a record (structural zeros). Either a mask with the shape of the
        counts, or of the axes alone if it is the same at all leaves; or conditions, each a mapping
        from axes or groups to values that exclude a record.
    name : str
        Distinguishes the tables of one workload.

    Raises
    ------
    StructureError
        If there is no axis, a value is given twice, a group does not divide its axis, a name is
        used twice, the leaves lie at different depths, or no cell is possible.

    Examples
    --------
    >>> import congenial as cg
    >>> ages = {"minor": ["0-17"], "adult": ["18-64", "65+"]}
    >>> table = cg.Table(
    ...     {"sex": ("F", "M"), "age": ("0-17", "18-64", "65+")},
    ...     groups={"voting_age": ("age", ages)},
    ...     geography=cg.Tree.from_paths([("north", "a"), ("north", "b"), ("south", "c")]),
    ... )
    >>> table.shape
    (3, 2, 3)
    """

    axes: Mapping[str, Sequence[str]]
    groups: Groups = field(default_factory=dict)
    geography: Tree | None = None
    levels: Sequence[str] | None = None
    impossible: Impossible | None = None
    name: str = UNNAMED

    def __post_init__(self) -> None:
        """Check everything that was given."""
        if not isinstance(self.axes, Mapping) or not self.axes:
            raise StructureError("a table was given no axis; give at least one, with its values.")
        if not isinstance(self.groups, Mapping):
            raise StructureError(f"groups is {self.groups!r}; give names with a pair each.")
        if not isinstance(self.geography, Tree | None):
            raise StructureError(f"geography is {self.geography!r}; give a Tree, or leave it out.")
        for name, values in self.axes.items():
            check_values(f"axis {name!r}", values)
        for name, group in self.groups.items():
            if not isinstance(group, tuple | list) or len(group) != 2:
                raise StructureError(
                    f"group {name!r} is {group!r}; give a pair of an axis and a mapping of names "
                    "to lists of its values."
                )
            self._check_group(name, *group)
        if self.geography is not None:
            tree = self.geography
            if (tree.level[tree.leaves] != tree.depth - 1).any():
                raise StructureError(
                    "the geography has leaves at different depths; give every area all the levels."
                )
        names = [*self.axes, *self.groups, *self.level_names]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise StructureError(
                f"the name {min(twice)!r} stands for two of the table's axes, groups and levels; "
                "give each a name of its own."
            )
        if not self.possible.any():
            raise StructureError(
                "every cell is impossible; leave at least one cell that is possible."
            )

    def __repr__(self) -> str:
        axes = " × ".join(f"{name} ({len(values)})" for name, values in self.axes.items())
        return f"Table({self.name!r}: {axes}{self._where_counted})"

    @property
    def _where_counted(self) -> str:
        """The number of places with cells of their own; empty without a geography."""
        return "" if self.geography is None else f" at {many(self.areas, 'place')}"

    def _repr_html_(self) -> str:
        rows = [("axis", name, ", ".join(map(str, values))) for name, values in self.axes.items()]
        rows += [
            (f"group of {axis}", name, ", ".join(map(str, parts)))
            for name, (axis, parts) in self.groups.items()
        ]
        cells = int(self.possible.sum())
        left = self.possible.size - cells
        note = f"{many(cells, 'cell')}{self._where_counted}"
        note += f"; {many(left, 'more cell')} cannot hold a record." if left else "."
        return html_table(f"Table {self.name!r}", ("", "name", "values"), rows, len(rows), (note,))

    def _check_group(self, name: str, axis: str, parts: Mapping[str, Sequence[str]]) -> None:
        if axis not in self.axes:
            raise StructureError(
                f"group {name!r} is of axis {axis!r}; give one of {', '.join(self.axes)}."
            )
        if not isinstance(parts, Mapping) or any(isinstance(p, str) for p in parts.values()):
            raise StructureError(f"group {name!r} is no mapping of names to lists of values.")
        listed = [str(value) for part in parts.values() for value in part]
        check_values(f"group {name!r}", listed)
        known = {str(value) for value in self.axes[axis]}
        for value in [v for v in listed if v not in known] + sorted(known - set(listed)):
            raise StructureError(
                f"group {name!r} and axis {axis!r} do not both have the value {value!r}; put every "
                "value of the axis into one group."
            )

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, coarse to fine; one without a geography."""
        depth = 1 if self.geography is None else self.geography.depth
        if self.levels is None:
            return (WHOLE,) if self.geography is None else tuple(f"level {d}" for d in range(depth))
        names = tuple(map(str, self.levels))
        if isinstance(self.levels, str) or len(names) != depth:
            raise StructureError(f"levels names {len(names)} levels; give {depth} names.")
        return names

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of values of each axis."""
        return tuple(len(values) for values in self.axes.values())

    @property
    def areas(self) -> int:
        """Number of leaves of the geography; 1 without one."""
        return 1 if self.geography is None else int(self.geography.leaves.size)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the counts."""
        return self.sizes if self.geography is None else (self.areas, *self.sizes)

    @cached_property
    def possible(self) -> BoolArray:
        """Which cells may hold records, shape (areas, cells); the cells in C order."""
        cells = int(np.prod(self.sizes))
        return np.broadcast_to(~self._mask().reshape(-1, cells), (self.areas, cells))

    def _mask(self) -> BoolArray:
        """Which cells are impossible, of `shape`, or of `sizes` if all areas are alike."""
        given = [] if self.impossible is None else self.impossible
        given = [given] if isinstance(given, Mapping) else given
        if isinstance(given, Sequence) and all(isinstance(one, Mapping) for one in given):
            met = [self._where(condition) for condition in given]
            none = np.zeros(self.sizes, dtype=np.bool_)
            return np.asarray(np.logical_or.reduce([none, *met]))
        mask = np.asarray(given)
        if mask.dtype != np.bool_ or mask.shape not in (self.shape, self.sizes):
            raise StructureError(
                f"impossible has shape {mask.shape} and dtype {mask.dtype}; give conditions, or "
                f"booleans of shape {self.sizes} or {self.shape}."
            )
        return mask

    def _where(self, condition: Condition) -> BoolArray:
        """Cells that meet a condition."""
        met = np.ones(self.sizes, dtype=np.bool_)
        for name, values in condition.items():
            labels, of_value, axis = self.reading(name)
            if not isinstance(values, str | Collection):
                raise StructureError(
                    f"impossible gives {name!r} as {values!r}; give one of its values, or a list."
                )
            wanted = {values} if isinstance(values, str) else set(map(str, values))
            if not wanted <= set(labels):
                raise StructureError(
                    f"impossible names the value {min(wanted - set(labels))!r} of {name!r}; give "
                    f"one of {', '.join(labels)}."
                )
            met &= self._along(axis, np.array([label in wanted for label in labels])[of_value])
        return met

    def _along(self, axis: int, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reshape a vector over the values of an axis, to be broadcast over all cells."""
        return values.reshape([-1 if i == axis else 1 for i in range(len(self.axes))])

    def reading(self, name: str) -> tuple[tuple[str, ...], IntArray, int]:
        """Return the labels by which an axis or a group distinguishes records.

        Returns
        -------
        labels : tuple of str
        of_value : ndarray of int64
            Index of the label of each value of the axis.
        axis : int
            Position of the axis.

        Raises
        ------
        ArgumentError
            If there is no such axis or group.
        """
        axes = list(self.axes)
        if name in self.axes:
            labels = tuple(map(str, self.axes[name]))
            return labels, np.arange(len(labels)), axes.index(name)
        if name not in self.groups:
            raise ArgumentError(
                f"{name!r} is no axis or group of {self.name!r}; give one of "
                f"{', '.join([*axes, *self.groups])}{nearest(name, [*axes, *self.groups])}."
            )
        axis, parts = self.groups[name]
        place = {str(v): i for i, part in enumerate(parts.values()) for v in part}
        of_value = np.array([place[str(v)] for v in self.axes[axis]], dtype=np.int64)
        return tuple(map(str, parts)), of_value, axes.index(axis)

    def tally(
        self, columns: Mapping[str, npt.ArrayLike], areas: npt.ArrayLike | None = None
    ) -> IntArray:
        """Count records.

        Parameters
        ----------
        columns : mapping of str to array_like, shape (records,)
            The value of each axis for every record, as text or as a value that str() turns into it.
        areas : array_like of str, shape (records,), optional
            The leaf of each record: its name, if that occurs once, or its path as a/b/c. Needed if
            there is a geography.

        Returns
        -------
        ndarray of int64, of `shape`

        Raises
        ------
        ArgumentError
            If an axis is missing, the lengths differ, or a record has a value or an area that the
            table lacks. The message does not show the record.

        Examples
        --------
        >>> table = Table({"sex": ("F", "M"), "age": ("0-17", "18+")})
        >>> table.tally({"sex": ["F", "F", "M"], "age": ["18+", "18+", "0-17"]}).tolist()
        [[0, 2], [1, 0]]
        """
        named = isinstance(columns, Mapping)
        if not named or set(columns) != set(self.axes):
            text = ", ".join(map(str, columns)) if named else "no mapping"
            raise ArgumentError(
                f"tally() was given {text}; give one column for each of {', '.join(self.axes)}."
            )
        if (areas is None) != (self.geography is None):
            raise ArgumentError(
                f"{self.name!r} has {'no' if areas is not None else 'a'} geography; give areas "
                "where there is one, and only there."
            )
        places = [places_of(columns[axis], map(str, self.axes[axis]), axis) for axis in self.axes]
        if self.geography is not None and areas is not None:
            places.insert(0, leaves_of(areas, self.geography))
        if len({place.size for place in places}) > 1:
            raise ArgumentError(
                "tally() was given columns of different lengths; give columns of one length."
            )
        flat = np.ravel_multi_index(tuple(places), self.shape)
        return np.bincount(flat, minlength=int(np.prod(self.shape))).reshape(self.shape)

    def margin(self, given: str | Sequence[str]) -> Margin:
        """Return a margin as a tuple of names in the order of the axes, checked.

        Raises
        ------
        ArgumentError
            If a name is unknown, or two names are of one axis.
        """
        names = margin_names(given)
        axes = {self.reading(name)[2]: name for name in names}
        if len(axes) < len(names):
            raise ArgumentError(
                f"margin {names!r} names an axis twice; give each axis, or one group of it, once."
            )
        return tuple(axes[axis] for axis in sorted(axes))

    def labels(self, margin: Margin) -> tuple[tuple[str, ...], ...]:
        """Labels along each axis of a margin."""
        return tuple(self.reading(name)[0] for name in margin)

    def classes(self, margin: Margin) -> IntArray:
        """Class of every cell under a margin, counted in C order, shape (cells,)."""
        out = np.zeros(self.sizes, dtype=np.int64)
        for name in margin:
            labels, of_value, axis = self.reading(name)
            out = out * len(labels) + self._along(axis, of_value)
        return out.ravel()

    def level(self, given: str | int | None) -> int:
        """Return the depth of a level given by name or depth; the coarsest for None.

        Raises
        ------
        ArgumentError
            If there is no such level.
        """
        names = self.level_names
        if given is None:
            return 0
        if isinstance(given, str) and given in names:
            return names.index(given)
        if (
            isinstance(given, int | np.integer)
            and not isinstance(given, bool)
            and 0 <= given < len(names)
        ):
            return int(given)
        raise ArgumentError(
            f"{given!r} is no level of {self.name!r}; give one of {', '.join(names)}, or a depth."
        )

    def nodes(self, level: int) -> IntArray:
        """Nodes of the geography at a depth, ascending; one, 0, without a geography."""
        if self.geography is None:
            return np.zeros(1, dtype=np.int64)
        return np.flatnonzero(self.geography.level == level)

    def holders(self, level: int) -> IntArray:
        """The node at a depth above each leaf, counted from 0, shape (areas,)."""
        tree = self.geography
        if tree is None:
            return np.zeros(1, dtype=np.int64)
        at = tree.leaves
        for _ in range(tree.depth - 1 - level):
            at = tree.parents[at]
        return np.searchsorted(self.nodes(level), at).astype(np.int64)


def margin_names(given: object) -> Margin:
    """Return the names of a margin in the order given, not yet looked up."""
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise ArgumentError(f"{given!r} is no margin; give a tuple of axes or groups.")
    return tuple(given)
