"""Invariants on the margins of a workload, resolved to its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from congenial.domain.blocks import Block
from congenial.domain.table import Margin, margin_names
from congenial.domain.workload import MarginLike, Workload
from congenial.errors import InvariantError
from congenial.types import FloatArray, IntArray

Level = str | int | None
# A margin (all its cells), or values for some of its axes and None for every value of an axis.
Side = MarginLike | Mapping[str, str | None]


@dataclass(frozen=True)
class ExactMargins:
    """Every entry of the margins at a level equals its confidential value."""

    margins: tuple[Margin, ...]
    level: Level
    table: str | None

    def entries(self, workload: Workload) -> IntArray:
        """Return the entries of the margins, except entries that cannot count a record."""
        blocks = [workload.block(margin, self.level, self.table) for margin in self.margins]
        return np.concatenate([np.arange(b.start, b.stop) for b in blocks])


@dataclass(frozen=True, eq=False)
class MarginBounds:
    """Every entry of a margin at a level lies between `lo` and `hi`."""

    margin: Margin
    lo: FloatArray
    hi: FloatArray
    level: Level
    table: str | None

    def limits(self, workload: Workload) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of all entries, infinite elsewhere, shape (n,) each.

        Raises InvariantError if a bound is an array of another shape than the margin's.
        """
        block = workload.block(self.margin, self.level, self.table)
        # the given array has the layout of a released one; its numbers map it back to entries
        order = workload.array(np.arange(len(workload)), self.margin, self.level, self.table)
        inside = workload.array(np.ones(len(workload)), self.margin, self.level, self.table) > 0
        out = []
        for given, empty in ((self.lo, -np.inf), (self.hi, np.inf)):
            try:
                values = np.broadcast_to(given, order.shape)
            except ValueError:
                raise InvariantError(
                    f"bounds of {block.text} have shape {given.shape}; give a number, or an array "
                    f"of shape {order.shape}."
                ) from None
            limit = np.full(len(workload), empty)
            limit[order[inside]] = values[inside]
            out.append(limit)
        return out[0], out[1]


@dataclass(frozen=True, eq=False)
class AtLeastAsMany:
    """Entry by entry, one margin is at least as large as another, of any table."""

    more: tuple[str | None, Side]
    fewer: tuple[str | None, Side]
    level: Level

    def pairs(self, workload: Workload) -> IntArray:
        """Return the larger and the smaller entry of each pair, -1 for one that holds no record.

        Raises InvariantError if the sides have different numbers of entries.
        """
        (one, large), (other, small) = (
            self._ids(workload, side) for side in (self.more, self.fewer)
        )
        if large.shape != small.shape:
            raise InvariantError(
                f"at_least_as_many() compares {large.size} entries of {one.text} with {small.size} "
                f"of {other.text}; give sides with the same areas and as many values."
            )
        return np.stack((large.ravel(), small.ravel()), axis=1)

    def _ids(self, workload: Workload, side: tuple[str | None, Side]) -> tuple[Block, IntArray]:
        name, asked = side
        chosen: Mapping[str, str | None] = (
            asked if isinstance(asked, Mapping) else dict.fromkeys(margin_names(asked))
        )
        block = workload.block(tuple(chosen), self.level, name)
        labels = block.table.labels(block.margin)
        ids = block.ids.reshape(-1, *map(len, labels))
        at: list[slice | int] = [slice(None)]
        for axis, values in zip(block.margin, labels, strict=True):
            value = chosen[axis]
            if value is not None and value not in values:
                raise InvariantError(
                    f"{value!r} is no value of {axis!r}; give one of {', '.join(values)}."
                )
            at.append(slice(None) if value is None else values.index(value))
        kept = [axis for axis in chosen if chosen[axis] is None]
        order = [1 + [a for a in block.margin if chosen[a] is None].index(axis) for axis in kept]
        return block, ids[tuple(at)].transpose(0, *order)


OnMargins = ExactMargins | MarginBounds | AtLeastAsMany
Resolved = tuple[IntArray, FloatArray, FloatArray, IntArray]


def on_entries(part: OnMargins, workload: Workload | None) -> Resolved:
    """Resolve an invariant on margins.

    Returns the entries that equal their confidential values; lower and upper bounds, shapes (n,)
    or (); and pairs of a larger and a smaller entry, shape (k, 2).
    """
    if workload is None:
        raise InvariantError(
            "the invariant names margins, and neither the mechanism nor consistent() has a "
            "workload; give Additive(noise, workload)."
        )
    none, free = np.zeros(0, dtype=np.int64), np.asarray(np.inf)
    if isinstance(part, ExactMargins):
        return part.entries(workload), -free, free, none.reshape(0, 2)
    if isinstance(part, MarginBounds):
        return none, *part.limits(workload), none.reshape(0, 2)
    pairs = part.pairs(workload)
    more, fewer = pairs.T
    # if one side cannot count a record, the other side is bounded by 0
    lo, hi = np.full(len(workload), -np.inf), np.full(len(workload), np.inf)
    lo[more[(more >= 0) & (fewer < 0)]] = 0.0
    hi[fewer[(fewer >= 0) & (more < 0)]] = 0.0
    return none, lo, hi, pairs[(pairs >= 0).all(axis=1)]
