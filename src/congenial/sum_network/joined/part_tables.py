"""Tables of a part of a tree of sums, the message that it sends, and draws below its root.

Why the error bound of the whole holds, see `top_tables`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from congenial.errors import NumericalError, UnsupportedError
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.sum_network import families
from congenial.sum_network.ceiling import forest_rows, interior_tilts
from congenial.sum_network.draws import sample
from congenial.sum_network.forest import SumForest
from congenial.sum_network.network import Network
from congenial.sum_network.tables import Tables, fill_noise
from congenial.sum_network.weights import PartMessage, SharedUnary, Unary
from congenial.sum_network.windows import check_feasible_sums, is_proper, tilts
from congenial.types import FloatArray, IntArray

CHANGED = "the counts of a part changed between its message and its draw."
_IMPROPER = (
    "the measurements and bounds of a part do not determine one of its counts that is not "
    "measured, so the part has no law of its own; measure more counts, publish some exactly or "
    "bound them, or draw the whole tree at once."
)


@dataclass(frozen=True, eq=False)
class PartSums:
    """The sums of one part, a tree whose root is variable 0, and all weights, the root's too."""

    forest: SumForest
    weights: SharedUnary
    # Total variation that the draws of the part may cost, of the limit for the whole tree.
    limit: float


@dataclass(frozen=True)
class Outside:
    """A Gaussian law that stands for the message to a part's root from the rest of the tree.

    It affects only where the windows of the part are placed.
    """

    mean: float
    variance: float  # Infinite if there is nothing outside; nan if nothing is known about it yet.
    share: float  # Of the error that is left besides rounding: what windows may lose.
    # Whether a part that can tell the place of its message without tables is asked for it alone.
    place_only: bool = False


def fill_part(part: PartSums, outside: Outside) -> Tables:
    """Fill the tables of a part; the message that it sends comes with them."""
    forest, weights, wide = _surrounded(part, outside)
    theta = families.settled(forest, weights).tilt if wide else tilts(forest, weights)
    limit = part.limit

    def sending(network: Network) -> Network:
        of_sum = network.right[network.slot_class[:1]]
        return replace(network, sent=of_sum, share=outside.share)

    try:
        tables = fill_noise(forest, weights, theta, limit, drawn=True, adapt=sending)
    except NumericalError:
        rows = forest_rows(forest)  # as `filling.fill`
        if rows is None:
            raise
        *_, theta = interior_tilts(rows, weights.each)
        tables = fill_noise(forest, weights, theta, limit, drawn=True, adapt=sending)
    if tables.message is None:
        raise AssertionError("a part sends a message")
    tilt = float(theta[_of_root(part)])
    return replace(tables, message=replace(tables.message, theta=tilt))


def message_of(part: PartSums, outside: Outside) -> PartMessage:
    """Return the message of the sum below the root of a part, or only its place."""
    if outside.place_only:
        forest, weights, wide = _surrounded(part, outside)
        if wide:
            return _placed(part, forest, weights)
    message = fill_part(part, outside).message
    if message is None:
        raise AssertionError("a part sends a message")
    return message


def draw_part(
    part: PartSums, sent: PartMessage, outside: Outside, roots: IntArray, rng: Randomness
) -> IntArray:
    """Draw the values of a part given those of its root; int64, shape (rows, variables).

    `roots`, shape (rows,), comes from the top that has received the message `sent`. Raises
    NumericalError if the part's counts are no longer those of the message.
    """
    tables = fill_part(part, outside)
    if tables.message is None or not tables.message.same_as(sent):
        raise NumericalError(CHANGED)
    return sample(tables, roots.size, rng, first=part.forest.n, roots=roots)


def _surrounded(part: PartSums, outside: Outside) -> tuple[SumForest, SharedUnary, bool]:
    """Check a part; return it and what is outside it, and whether its noise is wide."""
    forest, weights = part.forest, part.weights
    if not is_proper(forest, weights):
        raise UnsupportedError(_IMPROPER)
    check_feasible_sums(forest, weights)
    wide = families.have_wide_noise(forest, weights)
    if wide and np.isnan(outside.variance):
        outside = _guessed(part, outside)
    if np.isfinite(outside.variance):
        forest, weights = _within(forest, weights, outside)
    return forest, weights, wide


def _placed(part: PartSums, forest: SumForest, weights: SharedUnary) -> PartMessage:
    """Return a message without a table, whose moments are those of settled tilts."""
    found, at = families.settled(forest, weights), _of_root(part)
    mean, variance = (float(moment[at]) for moment in found.of_sum)
    leaf = np.ones(part.forest.n, dtype=np.bool_)
    leaf[part.forest.owner] = False
    least = float(part.weights.unary.lo[part.weights.code[leaf]].sum())
    place = np.array([mean, variance, least, np.inf, np.inf, np.inf])
    return PartMessage(0, np.empty(0), np.empty(0), 0.0, float(found.tilt[at]), place, 0.0)


def _of_root(part: PartSums) -> int:
    """Return the number of the sum below the root."""
    return int(np.flatnonzero(part.forest.owner == 0)[0])


def _guessed(part: PartSums, outside: Outside) -> Outside:
    """Return an outside such that the root's noise is about as large as if it were alone.

    Without it, the noise of many counts near their bounds would carry the root far away.
    """
    root = part.weights.unary.at(part.weights.code[:1])
    if root.kind[0] == laws.FLAT or root.lo[0] == root.hi[0]:
        return outside
    mean, variance = float(root.center[0]), 16.0 * float(root.scale[0]) ** 2
    return replace(outside, mean=mean, variance=variance)


def _within(
    forest: SumForest, weights: SharedUnary, outside: Outside
) -> tuple[SumForest, SharedUnary]:
    """Return the part and one more variable, the outside, which has the value of the root.

    The two add up to zero, so the sign of the outside is turned.
    """
    above = np.append(forest.above, np.int32(forest.m))
    above[0] = forest.m
    joined = SumForest(
        above=above,
        owner=np.append(forest.owner, np.int32(-1)),
        sign=np.append(forest.sign, np.int8(1)),
        orientation=np.ones(forest.n + 1, dtype=np.int8),
        depth=np.append(forest.depth + np.int32(1), np.int32(0)),
    )
    unary = weights.unary

    def more(values: FloatArray, value: float) -> FloatArray:
        return np.append(values, value)

    every = Unary(
        np.append(unary.kind, laws.GAUSSIAN),
        more(unary.scale, np.sqrt(outside.variance)),
        more(unary.center, -float(np.rint(outside.mean))),
        more(unary.lo, -np.inf),
        more(unary.hi, np.inf),
    )
    return joined, SharedUnary(every, np.append(weights.code, np.int32(unary.kind.size)))
