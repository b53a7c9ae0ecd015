"""A method by which a release in parts is drawn, and what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.domain.tree import Tree
from congenial.plan.cut import Cut
from congenial.plan.fields import refuse
from congenial.randomness import Randomness
from congenial.releases.making.order import Order
from congenial.releases.making.part_draws import DrawnRows
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.making.part_source import PartSource
from congenial.releases.model import Model
from congenial.releases.specification import WorstNeighbours, worst_neighbours
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class CountedTop:
    """The counts down to the cut, and what is claimed of the noise, before anything is spent."""

    cut: Cut
    stand_in: Model  # A small tree from which the claims follow.
    guarantee: Guarantee
    model: Model = field(repr=False)  # The counts down to the cut.
    counts: IntArray = field(repr=False)
    nodes: Sequence[CutNode] = field(repr=False)
    source: PartSource

    @property
    def tree(self) -> Tree:
        """The nodes down to the cut."""
        return cast(Tree, self.model.domain)


@dataclass(frozen=True)
class Claims:
    """Statements about the draws of a method."""

    guarantee: Guarantee
    worst: WorstNeighbours


@dataclass(frozen=True, eq=False)
class TopOrder:
    """Everything from which the counts down to the cut are drawn."""

    law: PartLaw
    top: CountedTop
    order: Order
    aside: Path  # A directory for files that the draws need.

    @property
    def roots(self) -> IntArray:
        """The nodes of the cut, in the tree down to it."""
        return np.flatnonzero(self.top.tree.level == self.law.depth)


class PartMethod(Protocol):
    """A method that draws the top, and then one part after another: a module, see `method_of`."""

    def claims(self, top: CountedTop) -> Claims:
        """Return the claims; refuse what parts cannot cover."""

    def draw_top(self, asked: TopOrder) -> tuple[DrawnRows, list[FromTop]]:
        """Draw the counts down to the cut; return them and what they give to each part."""

    def draw_below(
        self,
        law: PartLaw,
        domain: Tree,
        counts: IntArray,
        node: CutNode,
        given: FromTop,
        rng: Randomness,
    ) -> DrawnRows | None:
        """Draw the counts below a cut node, which add up to its released count.

        `domain` has the path down to the node and all below it, `counts` their confidential counts.
        The node comes first in what is drawn. None if the part refuses the top's draw, so that all
        counts are to be drawn anew.
        """


def measured_claims(top: CountedTop) -> Claims:
    """Return the claims of a method that moves noisy counts; refuse noise with an error."""
    model = top.stand_in
    if model.mechanism.noise.sampling_error(model.mechanism.scales) > 0.0:
        refuse(
            "privacy.epsilon",
            f"is {model.plan.privacy.epsilon:g}, which takes noise so wide that its draws have a "
            "numerical error, and parts do not add these up",
            "give a larger epsilon, or leave parts out",
        )
    return Claims(top.guarantee, worst_neighbours(model, top.guarantee))
