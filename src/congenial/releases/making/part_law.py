"""The law that all parts have in common, and records from which the draw of one part starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from congenial.plan.plan import Plan
from congenial.releases.specification import WorstNeighbours
from congenial.sum_network.joined import Outside, PartMessage

CHANGED = (
    "the rows changed while they were counted in parts; release a copy of them that nobody changes."
)


@dataclass(frozen=True)
class PartLaw:
    """All that the draws of all parts have in common; it has no count."""

    plan: Plan
    depth: int  # Of the level below whose nodes the parts lie.
    scale: tuple[float, ...]  # Scale of the noise of each level from the cut on; inf without noise.
    share: float  # One over the number of parts, see `PartSums`.
    worst: WorstNeighbours
    with_truth: bool  # Whether the confidential counts are written, too; in simulations only.
    stamped: bool  # Whether the release is a simulation.


class CutNode(msgspec.Struct, frozen=True):
    """A node of the level below which the parts lie."""

    path: tuple[str, ...]  # Names below the root down to the node.
    records: int  # Its confidential count.
    exact: bool  # Whether its count is published exactly, or follows from exact counts.
    # Bounds of its count that the plan gives, or infinite.
    least: float
    most: float

    def __repr__(self) -> str:
        """Show no count."""
        return f"CutNode(path={self.path!r})"


class Sent(NamedTuple):
    """The message that a part sent to the top, which is confidential."""

    message: PartMessage
    outside: Outside  # From which the windows of the part were placed.


@dataclass(frozen=True, eq=False)
class FromTop:
    """The result of the top's draw for one part."""

    total: int  # The released count of its node.
    # Under conditioning: the message that the top received.
    sent: Sent | None = field(default=None, repr=False)
    # Under imaging and the posterior: the directory with the values of all parts, and the number of
    # this one.
    moved: tuple[str, int] | None = None
