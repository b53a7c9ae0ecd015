"""Measurements and values of parts of a tree, which wait in files until they are moved together."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.imaging.noisy import precision
from congenial.imaging.solvers.part_curves import TreePiece
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


@dataclass(eq=False)
class _Step:
    """A step of the work on all parts, and what it has kept so far."""

    name: str = ""
    kept: dict[tuple[str, int], FloatArray] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class SteppedValues(PartValues):
    """Values of parts that change for readers once a step has been done for all parts.

    So if a step is repeated for a part, it reads what it read the first time.
    """

    step: _Step = field(default_factory=_Step)

    def begin(self, name: str) -> None:
        """Begin a step, which sees its own values and those of the steps before."""
        self.step.name = name
        self.step.kept.clear()

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a part, in a step."""
        known = np.array(values, dtype=np.float64)
        self.step.kept[kind, number] = known
        handle, name = tempfile.mkstemp(dir=self.place)
        with os.fdopen(handle, "wb") as file:
            file.write(known.tobytes())
        place = self._of(kind, number)
        Path(name).replace(place.with_name(f"{place.name}.{self.step.name}"))

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a part that are kept, as a vector."""
        own = self.step.kept.get((kind, number))
        return super().values(kind, number) if own is None else own.ravel().copy()

    def digest(self) -> str:
        """Return a digest of all values that this process has kept in the step."""
        hashed = hashlib.sha256()
        for (kind, number), values in sorted(self.step.kept.items(), key=lambda each: each[0]):
            hashed.update(f"{kind}-{number}-{values.size};".encode() + values.tobytes())
        return hashed.hexdigest()

    def end(self) -> None:
        """End the step, which has been done for all parts."""
        for path in self.place.glob(f"*.{self.step.name}"):
            path.replace(path.with_suffix(""))
        self.begin("")


class Keeps(Protocol):
    """Keeps values of parts, by their kind and the number of the part."""

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a part."""

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a part that are kept, as a vector."""


@dataclass(frozen=True, eq=False)
class Storing:
    """Keeps values of parts, shape (nodes,); their number is in `nodes`."""

    kept: Keeps
    kind: str

    def __call__(self, part: TreePiece, z: FloatArray) -> None:
        """Keep the values of a part."""
        self.kept.keep(self.kind, int(part.nodes[0]), z)


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
