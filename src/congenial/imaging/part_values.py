"""Measurements and values of parts of a tree, which wait in files until they are moved together."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.imaging.noisy import precision
from congenial.imaging.solvers.part_curves import Store, TreePiece
from congenial.imaging.solvers.problem import checked_weights
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.types import FloatArray, IntArray

_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True)
class PartValues:
    """Measurements and values of parts, in files of a directory.

    The files have no confidential count, except those that the plan publishes.
    """

    place: Path

    def keep_measured(self, number: int, tree: Tree, measured: IntArray) -> None:
        """Keep the measurements of a part, shape (nodes,), and its tree."""
        self._write("measured", number, np.stack([tree.parents, measured]))

    def measured(self, number: int) -> tuple[Tree, IntArray]:
        """Return the tree of a part, without names, and its measurements."""
        parents, measured = self._read("measured", number, np.int64).reshape(2, -1)
        return Tree.from_parents(parents), measured

    def storing(self, kind: str) -> Store:
        """Return what keeps values of parts, shape (nodes,); their number is in `nodes`."""

        def store(part: TreePiece, z: FloatArray) -> None:
            self.keep(kind, int(part.nodes[0]), z)

        return store

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a part."""
        self._write(kind, number, np.asarray(values, dtype=np.float64))

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a part that are kept, as a vector."""
        return self._read(kind, number, np.float64)

    # plain bytes: with thousands of small parts, files with a header take longer than the parts

    def _write(self, kind: str, number: int, values: npt.NDArray[Any]) -> None:
        self._of(kind, number).write_bytes(values.tobytes())

    def _read(self, kind: str, number: int, dtype: type[_Number]) -> npt.NDArray[_Number]:
        return np.frombuffer(bytearray(self._of(kind, number).read_bytes()), dtype)

    def _of(self, kind: str, number: int) -> Path:
        return self.place / f"{kind}-{number}"


def noisy_piece(
    tree: Tree,
    mechanism: Additive,
    resolved: ResolvedInvariant,
    measured: IntArray,
    most: float,
    nodes: IntArray,
) -> TreePiece:
    """Return the top or a part, with its measurements, as `solve_parts` takes it.

    `nodes` name it. `most` is the largest precision of all counts, to which weights are relative.
    """
    values = measured.astype(np.float64)
    own = np.where(resolved.pinned, 0.0, precision(mechanism))
    weight = checked_weights(np.append(own, most), own.size + 1)[:-1]
    return TreePiece(nodes, tree, resolved.with_pins(values), values, weight, whole=True)
