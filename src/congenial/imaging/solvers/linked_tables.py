"""Tables of one geography, one after the other: counts of a later one reach those of an earlier.

"As many people as homes in use" links a count of people to one of homes in every area of a level.
Homes are fitted first, within the most people that an area may have; then people, with the homes
released as lower bounds. Both steps use released numbers and public bounds alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.domain.table import Table
from congenial.domain.workload import Workload
from congenial.errors import UnsupportedError
from congenial.imaging.solvers.areas import Geography
from congenial.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TableLinks:
    """Rows of one table that are nowhere below rows of a table before it, area by area."""

    more: int  # Position of the table with the larger counts.
    fewer: int  # Position of the table with the smaller counts, which comes before.
    # shape (k,) each: Node and row of the larger and of the smaller counts.
    larger: tuple[IntArray, IntArray]
    smaller: tuple[IntArray, IntArray]

    def floor(self, tables: Sequence[Geography], rows: FloatArray) -> FloatArray:
        """Lower bounds of the table with the larger counts, shape (N, Q), from the other's rows."""
        out = np.full(tables[self.more].ids.shape, -np.inf)
        np.maximum.at(out, self.larger, rows[self.smaller])
        return out

    def ceiling(
        self, tables: Sequence[Geography], limits: tuple[FloatArray, FloatArray]
    ) -> FloatArray:
        """Upper bounds of the table with the smaller counts, from the limits of the other.

        The sums of an area's smaller counts may not exceed those of its larger counts either.
        """
        more, fewer = tables[self.more], tables[self.fewer]
        _, most = more.within(*limits)
        out = np.full(fewer.ids.shape, np.inf)
        (at, row), (other, column) = self.larger, self.smaller
        while at.size:
            np.minimum.at(out, (other, column), most[at, row])
            pairs = np.stack((more.parent[at], row, fewer.parent[other], column))
            pairs = np.unique(pairs[:, (pairs[0] >= 0) & (pairs[2] >= 0)], axis=1)
            at, row, other, column = pairs
        return out


def order_of(workload: Workload, pairs: IntArray) -> list[Table]:
    """Order the tables of a workload so that smaller counts come before larger ones.

    Raises UnsupportedError if a pair is of one table, or tables are linked in a circle.
    """
    owner = _owners(workload)
    edges = np.unique(owner[pairs], axis=0).tolist()
    waiting, out = list(range(len(workload.tables))), []
    while waiting:
        ready = [t for t in waiting if not any(a == t and b in waiting for a, b in edges)]
        if not ready:
            raise UnsupportedError(
                "rules that counts are at least as large as others (as_many in a plan) compare "
                "counts of one table, or of tables in a circle, which cannot be fitted one after "
                "the other; leave rules out until tables are compared in one direction, or use "
                "project() in Python."
            )
        out.append(ready[0])
        waiting.remove(ready[0])
    return [workload.tables[t] for t in out]


def links_of(tables: Sequence[Geography], pairs: IntArray, n: int) -> tuple[TableLinks, ...]:
    """Sort pairs of entries by their tables; those of earlier smaller counts come first."""
    where = np.zeros((3, n), dtype=np.int64)  # table, node and row of each entry
    for at, geography in enumerate(tables):
        node, row = np.nonzero(geography.ids >= 0)
        where[:, geography.ids[node, row]] = np.stack((np.full(node.size, at), node, row))
    more, larger_node, larger_row = where[:, pairs[:, 0]]
    fewer, smaller_node, smaller_row = where[:, pairs[:, 1]]
    out = []
    for one, other in np.unique(np.stack((fewer, more), axis=1), axis=0).tolist():
        here = (fewer == one) & (more == other)
        larger = larger_node[here], larger_row[here]
        out.append(TableLinks(other, one, larger, (smaller_node[here], smaller_row[here])))
    return tuple(out)


def _owners(workload: Workload) -> IntArray:
    """Position of the table of each entry, shape (n,)."""
    owner = np.zeros(len(workload), dtype=np.int64)
    for block in workload.blocks:
        owner[block.entries] = workload.tables.index(block.table)
    return owner
