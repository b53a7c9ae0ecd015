"""Envelopes of a part of a tree of sums, and the message that it sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from congenial.errors import UnsupportedError
from congenial.kernels.numerics import laws
from congenial.sum_network import families
from congenial.sum_network.exact.envelopes import Envelopes, fill_tilted
from congenial.sum_network.forest import SumForest
from congenial.sum_network.network import Network
from congenial.sum_network.weights import PartMessage, SharedUnary, Unary
from congenial.sum_network.windows import check_feasible_sums, is_proper, tilts
from congenial.types import FloatArray

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
    share: float  # Of what windows of all parts leave to values beyond them: that of this part.


@dataclass(frozen=True)
class Outside:
    """A Gaussian law that stands for the message to a part's root from the rest of the tree.

    It affects only where the windows of the part are placed.
    """

    mean: float
    variance: float  # Infinite if there is nothing outside; nan if nothing is known about it yet.
    beyond: float  # Probability that windows of all parts aim to leave to values beyond them.
    # Whether a part that can tell the place of its message without tables is asked for it alone.
    place_only: bool = False
    # Whether the part fills the tables of all merges, whatever its noise.
    by_merges: bool = False


def fill_part(part: PartSums, outside: Outside, room: int | None = None) -> Envelopes:
    """Fill the envelopes of a part; the message that it sends comes with them.

    Raises UnsupportedError if they have more than `room` entries.
    """
    forest, weights, wide = surrounded(part, outside)
    theta = families.settled(forest, weights).tilt if wide else tilts(forest, weights)
    aim = outside.beyond * part.share
    return fill_tilted(forest, weights, theta, aim, sending(room))


def fill_by_families(part: PartSums, outside: Outside) -> families.PartOfFamilies | None:
    """Fill the tables of a part family by family; None if those of merges are needed, or faster."""
    if outside.by_merges:
        return None
    forest, weights, wide = surrounded(part, outside)
    return families.fill_sending(forest, weights, _least(part)) if wide else None


def sending(room: int | None = None) -> Callable[[Network], Network]:
    """Return what makes a network send the message of the sum below variable 0."""

    def adapt(network: Network) -> Network:
        of_sum = network.right[network.slot_class[:1]]
        return replace(network, sent=of_sum, room=room)

    return adapt


def surrounded(part: PartSums, outside: Outside) -> tuple[SumForest, SharedUnary, bool]:
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


def place_of(part: PartSums, outside: Outside) -> PartMessage | None:
    """Return a message without a table, whose moments are those of settled tilts.

    None for a part whose noise is not wide: its tables take little more time.
    """
    forest, weights, wide = surrounded(part, outside)
    if not wide:
        return None
    found, at = families.settled(forest, weights), int(np.flatnonzero(forest.owner == 0)[0])
    mean, variance = (float(moment[at]) for moment in found.of_sum)
    place = np.array([mean, variance, _least(part), np.inf, np.inf, np.inf])
    return PartMessage(0, np.empty(0), np.zeros(4), float(found.tilt[at]), place)


def _least(part: PartSums) -> float:
    """Return the least sum below the root of a part whose leaves have lower bounds."""
    return float(part.weights.unary.lo[part.weights.code[part.forest.is_leaf]].sum())


def _guessed(part: PartSums, outside: Outside) -> Outside:
    """Return an outside such that the root's noise is about as large as if it were alone.

    Without it, the noise of many counts near their bounds would carry the root far away.
    """
    root = part.weights.unary.at(part.weights.code[:1])
    if root.kind[0] == laws.FLAT or root.lo[0] == root.hi[0]:
        return outside
    mean, scale = float(root.center[0]), 4.0 * float(root.scale[0])
    return replace(outside, mean=mean, variance=scale * scale)


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
