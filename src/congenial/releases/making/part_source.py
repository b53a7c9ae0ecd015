"""The rows of a release in parts, wherever they are counted and the parts are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from congenial.data.counts import JointSource, RowSource
from congenial.domain.tree import Tree
from congenial.domain.workers import Workers
from congenial.releases.making.part_draws import DrawnRows
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.part_models import PartFacts, PartShape
from congenial.types import IntArray

if TYPE_CHECKING:
    from congenial.imaging.part_values import PartValues
    from congenial.releases.making.measured_parts import MeasuredParts
    from congenial.sum_network.joined import Outside, PartMessage


class PartSource(Protocol):
    """The rows of a release in parts."""

    @property
    def keyed(self) -> bool:
        """Whether the random words of a part follow from a key."""

    def opened(self) -> AbstractContextManager[RowSource | JointSource]:
        """Open the rows, counted down to the cut."""

    def children(self, top: Tree) -> IntArray:
        """Return the number of children of each cut node of the top."""

    def shapes(self, nodes: Sequence[CutNode]) -> list[PartShape]:
        """Return the shape of the part below each node."""

    def messages(
        self, law: PartLaw, nodes: Sequence[CutNode], outsides: Sequence[Outside]
    ) -> list[PartMessage]:
        """Return the message of each part, below some nodes, given what is outside each."""

    def workers(self, place: Path) -> tuple[PartValues, Workers]:
        """Return who moves the measurements of all parts, and their files in a directory."""

    def measure(self, parts: MeasuredParts, nodes: Sequence[CutNode]) -> int:
        """Measure all parts, below some nodes; return their `number_of_categories`."""

    def write(
        self, law: PartLaw, top: DrawnRows, nodes: Sequence[CutNode], given: Sequence[FromTop]
    ) -> list[PartFacts] | None:
        """Draw the parts below some nodes, given the top's draw, and write all tables.

        None if a part refuses the top's draw, see `PartMethod`.
        """
