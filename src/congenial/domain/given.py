"""Checks of the arguments of tables and workloads; no message holds a count or a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, StructureError
from congenial.types import FloatArray, IntArray
from congenial.wording import show


def as_array(what: str, given: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return an array."""
    try:
        return np.asarray(given)
    except ValueError:
        raise ArgumentError(f"{what} have rows of different lengths; give one array.") from None


def several(nodes: Sequence[int | str]) -> Sequence[int | str]:
    """Return the nodes that an argument lists, one at least; a text alone is no list."""
    if isinstance(nodes, str | bytes) or not isinstance(nodes, Sequence | np.ndarray):
        raise ArgumentError(f"nodes is {show(nodes)}; give a list of nodes.")
    if not len(nodes):
        raise ArgumentError("no node is named; give at least one.")
    return nodes


def limits(call: str, lo: npt.ArrayLike, hi: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return bounds as arrays of float64; `call` is the function that was given them."""
    sides = []
    for side, given, none in (("lo", lo, -np.inf), ("hi", hi, np.inf)):
        try:
            array = np.array(given, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise ArgumentError(
                f"{call}() was given {side}={show(given)}; give a number or an array of them."
            ) from None
        wrong = array[np.isnan(array) | (array == -none)]
        if wrong.size:
            raise ArgumentError(
                f"{call}() was given {side}={wrong[0]}; give numbers, or {none} for no bound."
            )
        sides.append(array)
    return sides[0], sides[1]


def whole_counts(table: str, given: npt.ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """Return the counts of a table."""
    array = as_array(f"the counts of {table!r}", given)
    if array.shape != shape or array.dtype.kind not in "iu":
        raise ArgumentError(
            f"the counts of {table!r} have shape {array.shape} and dtype {array.dtype}; give "
            f"integers of shape {shape}."
        )
    negative = bool((array < 0).any())
    # in two halves, whose sums stay far below 2^64 for any array that fits in memory
    words = array.astype(np.uint64)
    high, low = int((words >> np.uint64(32)).sum()), int((words & np.uint64(2**32 - 1)).sum())
    if negative or (high << 32) + low >= 2**63:
        fault = "hold one below 0" if negative else "add up to 2^63 or more"
        raise ArgumentError(
            f"the counts of {table!r} {fault}; give the number of records in each cell."
        )
    return array.astype(np.int64)


def places_of(column: npt.ArrayLike, known: Iterable[str], what: str) -> IntArray:
    """Place of each entry of a column among known values."""
    index = {value: i for i, value in enumerate(known)}
    entries = as_array(f"the entries of {what!r}", column)
    if entries.ndim != 1:
        raise ArgumentError(
            f"the column {what!r} has shape {entries.shape}; give one entry for each record."
        )
    try:
        text = entries.astype(np.str_)
    except UnicodeDecodeError:  # numpy's message would show the bytes of a record
        raise ArgumentError(
            f"the column {what!r} holds bytes that are not ASCII; decode them to text."
        ) from None
    values, inverse = np.unique(text, return_inverse=True)
    found = np.array([index.get(str(value), -1) for value in values], dtype=np.int64)
    if (found < 0).any():
        raise ArgumentError(
            f"a record has a value of {what!r} that the table lacks; add it to the table, or leave "
            "the record out."
        )
    return found[inverse.ravel()]


def leaves_of(areas: npt.ArrayLike, tree: Tree) -> IntArray:
    """Place of each area, given by name or path, among the leaves."""
    paths = ["/".join(tree.path(int(v))) for v in tree.leaves]
    names = [tree.names[int(v)] for v in tree.leaves]
    known = {path: i for i, path in enumerate(paths)}
    once = Counter(names)
    known |= {name: i for i, name in enumerate(names) if once[name] == 1}
    order = sorted(known, key=known.__getitem__)
    place = np.array([known[name] for name in order], dtype=np.int64)
    return place[places_of(areas, order, "areas")]


def check_values(what: str, values: Sequence[str]) -> None:
    """Check values of an axis or a group."""
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or not len(values):
        raise StructureError(f"{what} has no list of values; give at least one value.")
    listed = list(map(str, values))
    twice = {value for value in listed if listed.count(value) > 1}
    if twice:
        raise StructureError(f"{what} has the value {min(twice)!r} twice; give each value once.")
