"""Counts of parts that are kept in memory, compressed, so that their rows are read less often."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

import numpy as np

from congenial.domain.tree import Path, Tree
from congenial.types import IntArray

# Most bytes of all parts together; the rows of any others are read again.
_ROOM = 1 << 28
# Fast, and most numbers are equal or near each other.
_LEVEL = 1


@dataclass(eq=False)
class KeptCounts:
    """Trees without names, and their counts, by the path of the node that a part is below."""

    parts: dict[Path, tuple[bytes, bytes, str]] = field(default_factory=dict, repr=False)
    size: int = field(default=0, repr=False)  # Bytes of all parts.

    def keep(self, path: Path, tree: Tree, counts: IntArray) -> None:
        """Keep the counts of a part, shape (nodes,), if there is room for them."""
        steps = np.diff(tree.parents, prepend=0).astype(np.int32)
        kind = np.min_scalar_type(int(counts.max(initial=0)))  # no count is negative
        shape, values = (
            zlib.compress(part.tobytes(), _LEVEL) for part in (steps, counts.astype(kind))
        )
        if self.size + len(shape) + len(values) <= _ROOM:
            self.parts[path] = shape, values, kind.str
            self.size += len(shape) + len(values)

    def __contains__(self, path: Path) -> bool:
        """Whether the counts of a part are kept."""
        return path in self.parts

    def of(self, path: Path) -> tuple[Tree, IntArray] | None:
        """Return the tree and the counts of a part, if they are kept."""
        if path not in self:
            return None
        shape, values, kind = self.parts[path]
        steps = np.frombuffer(zlib.decompress(shape), dtype=np.int32)
        counts = np.frombuffer(zlib.decompress(values), dtype=kind)
        return Tree.from_parents(np.cumsum(steps, dtype=np.int64)), counts.astype(np.int64)
