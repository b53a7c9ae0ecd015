"""A tree whose tables are too large to be held at once, drawn in parts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.sum_network.draws import sample
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_messages import FilledPart, filled_part
from congenial.sum_network.joined.part_tables import Outside, PartSums, place_of
from congenial.sum_network.joined.top_tables import Joined, join
from congenial.sum_network.weights import PartMessage, SharedUnary
from congenial.types import IntArray

# Fewest variables for which parts are tried, and the largest scale. Tables of smaller trees, or of
# wider noise, are refused at once: parts would take hours before they are refused too.
_FEWEST, _WIDEST = 1 << 17, 256.0


@dataclass(frozen=True, eq=False)
class TreeInParts:
    """A tree whose root alone is the top; all below it is one part, which is cut again."""

    part: FilledPart
    joined: Joined

    def sample(self, rows: int, rng: Randomness, *, first: int | None = None) -> IntArray:
        """Draw the variables `rows` times, independently; see `sum_network.draws.sample`."""
        roots = np.ascontiguousarray(sample(self.joined.tables, rows, rng, first=1)[:, 0])
        return self.part.draw(roots, rng)[:, :first]


def fill_tree(forest: SumForest, weights: SharedUnary, limit: float) -> TreeInParts | None:
    """Fill the tables of a large tree's top; None where parts do not apply or do not reach.

    `limit` is the total variation that a draw may cost.
    """
    if forest.n < _FEWEST or not _is_tree(forest) or not _is_narrow(weights):
        return None
    part = PartSums(forest, weights, limit * (1.0 - 1.0 / forest.n))
    top = SumForest.without_sums(1)
    root = SharedUnary(weights.unary, weights.code[:1])
    cut = np.zeros(1, dtype=np.int64)
    last: list[FilledPart] = []  # The tables of the last message.

    def messages_of(outsides: Sequence[Outside]) -> list[PartMessage]:
        place = place_of(part, outsides[0]) if outsides[0].place_only else None
        if place is not None:
            return [place]
        last[:] = [filled_part(part, outsides[0])]
        return [last[0].message]

    with suppress(InfeasibleError, NumericalError, UnsupportedError):
        found = join(top, root, cut, messages_of, limit)
        return TreeInParts(last[0], found)
    return None


def _is_tree(forest: SumForest) -> bool:
    """Whether all sums are those of one tree, whose root comes first."""
    roots = np.flatnonzero(forest.above < 0)
    single = roots.size == 1 and roots[0] == 0 and bool((forest.owner >= 0).all())
    plain = not forest.turned and bool((forest.sign > 0).all())
    return single and plain and np.unique(forest.owner).size == forest.m


def _is_narrow(weights: SharedUnary) -> bool:
    """Whether no scale is so large that tables of parts are too."""
    unary = weights.unary
    return bool((unary.scale[unary.kind != laws.FLAT] <= _WIDEST).all())
