"""The sums of a tree that is cut at a level, filled and drawn part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from congenial.domain.tree import Tree, TreeSplit
from congenial.randomness import Randomness
from congenial.sum_network.draws import sample
from congenial.sum_network.forest import of_tree
from congenial.sum_network.joined.part_messages import draw_part, message_of
from congenial.sum_network.joined.part_tables import PartSums
from congenial.sum_network.joined.top_tables import Joined, join
from congenial.sum_network.weights import SharedUnary
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class SplitSums:
    """The sums of a tree that is cut at a level.

    The tables of each part are filled twice, for its message and for its draws.

    Attributes
    ----------
    split : TreeSplit
    weights_of : callable
        Given nodes of the whole tree, shape (k,), and these nodes as a tree, returns their weights.
    limit : float
        Total variation that a draw of the whole tree may cost.
    """

    split: TreeSplit
    weights_of: Callable[[IntArray, Tree], SharedUnary]
    limit: float

    @cached_property
    def joined(self) -> Joined:
        """The tables of the top, filled from the messages of all parts.

        Raises UnsupportedError or NumericalError, as `join`.
        """
        split = self.split
        return join(
            of_tree(split.top),
            self.weights_of(split.nodes, split.top),
            split.roots,
            lambda outsides: [
                message_of(self.part(number), outside) for number, outside in enumerate(outsides)
            ],
            self.limit,
        )

    def part(self, number: int) -> PartSums:
        """Return the sums and weights of one part."""
        part = self.split.part(number)
        per_count = self.limit / len(self.split.tree)
        weights = self.weights_of(part.nodes, part.tree)
        return PartSums(of_tree(part.tree), weights, per_count * len(part.tree))

    def draw(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the values of all nodes, independently; int64, shape (rows, n).

        Raises NumericalError if the weights of a part are no longer those of its message.
        """
        split, joined = self.split, self.joined
        out = np.empty((rows, len(split.tree)), dtype=np.int64)
        above = sample(joined.tables, rows, rng, first=len(split.top))
        out[:, split.nodes] = above
        received = zip(split.roots.tolist(), joined.messages, joined.outsides, strict=True)
        for number, (root, sent, outside) in enumerate(received):
            roots = np.ascontiguousarray(above[:, root])
            nodes = split.part(number).nodes
            out[:, nodes] = draw_part(self.part(number), sent, outside, roots, rng)
        return out
