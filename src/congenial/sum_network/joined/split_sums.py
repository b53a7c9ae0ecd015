"""The sums of a tree that is cut at a level, filled and drawn part by part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from congenial.domain.tree import Tree, TreeSplit
from congenial.randomness import Randomness
from congenial.sum_network.exact.exact_draws import sample
from congenial.sum_network.forest import of_tree
from congenial.sum_network.joined.part_messages import attempt_part, message_of
from congenial.sum_network.joined.part_tables import PartSums
from congenial.sum_network.joined.top_tables import Joined, join
from congenial.sum_network.weights import SharedUnary
from congenial.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class SplitSums:
    """The sums of a tree that is cut at a level.

    The tables of each part are filled twice, for its message and for its draws.

    Attributes
    ----------
    split : TreeSplit
    weights_of : callable
        Given nodes of the whole tree, shape (k,), and these nodes as a tree, returns their weights.
    """

    split: TreeSplit
    weights_of: Callable[[IntArray, Tree], SharedUnary]

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
        )

    def part(self, number: int) -> PartSums:
        """Return the sums and weights of one part."""
        part = self.split.part(number)
        weights = self.weights_of(part.nodes, part.tree)
        return PartSums(of_tree(part.tree), weights, 1.0 / self.split.roots.size)

    def draw(self, rows: int, rng: Randomness) -> IntArray:
        """Draw the values of all nodes, independently; int64, shape (rows, n).

        Raises NumericalError if the weights of a part are no longer those of its message.
        """
        out, left = np.empty((rows, len(self.split.tree)), dtype=np.int64), np.arange(rows)
        while left.size:
            left = left[~self._attempt(out, left, rng)]
        return out

    def _attempt(self, out: IntArray, rows: IntArray, rng: Randomness) -> BoolArray:
        """Try once to draw some rows of `out`; return which of them are accepted.

        A row that any part refuses is drawn anew from the top: else values that the messages of
        parts overstate would be too likely.
        """
        split, joined = self.split, self.joined
        accepted = np.ones(rows.size, dtype=np.bool_)
        above = sample(joined.tables, rows.size, rng, first=len(split.top))
        out[rows[:, None], split.nodes] = above
        received = zip(split.roots.tolist(), joined.messages, joined.outsides, strict=True)
        for number, (root, sent, outside) in enumerate(received):
            given = np.ascontiguousarray(above[accepted, root])
            nodes = split.part(number).nodes
            kept, values = attempt_part(self.part(number), sent, outside, given, rng)
            accepted[accepted] = kept
            if not accepted.any():
                break
            out[rows[accepted][:, None], nodes] = values
        return accepted
