"""Envelopes of the top of a tree of sums, whose cut variables receive the messages of parts.

Every envelope of the whole tree is either that of a part or one of the top, and the sum below a cut
variable is one of both: the part sends its envelope, tilted by its own multiplier. The top takes it
as the weight of one more variable below the cut variable, and tilts the weights of all its own
variables. The top is drawn and accepted, then each part given the value of its root; a draw of the
whole is accepted if all of them are. A part's tables are filled twice, with the same operations, so
the tables that are drawn from are those that sent the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from congenial.errors import InfeasibleError, NumericalError
from congenial.kernels.numerics import elementwise
from congenial.sum_network.exact.envelopes import (
    Adapt,
    Envelopes,
    fill_in_windows,
    in_steps,
    unchanged,
)
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_tables import Outside
from congenial.sum_network.joined.top_network import Top
from congenial.sum_network.network import Network
from congenial.sum_network.weights import PartMessage, SharedUnary
from congenial.sum_network.windows import tilts
from congenial.types import FloatArray, IntArray

# Most times that all messages are computed: where outsides are guessed from tables, and where their
# places have settled; and most times that places are asked for.
_ROUNDS, _SETTLED, _PLACINGS = 12, 3, 24
# Probability that windows aim to leave to values beyond them, and what those of parts aim at in
# proportion to the round before.
BEYOND, _LESS = 1e-5, 0.01
# Change of the tilt of a part, times the deviation of its sum, below which places are settled; and
# below which they are once changes hardly fall: parts state their own moments roughly.
_STILL, _ROUGH = 0.3, 1.0

MessagesOf = Callable[[Sequence[Outside]], Sequence[PartMessage]]


@dataclass(frozen=True, eq=False)
class Joined:
    """The tables of the top, and the messages from which they were filled."""

    tables: Envelopes
    messages: tuple[PartMessage, ...]
    outsides: tuple[Outside, ...]  # From which the windows of each part were placed.


def join(
    forest: SumForest,
    weights: SharedUnary,
    cut: IntArray,
    messages_of: MessagesOf,
    aim: float = BEYOND,
    beyond: float = BEYOND,
    adapt: Adapt = unchanged,
) -> Joined:
    """Ask for the messages of all parts, and fill the tables of the top from them.

    `messages_of` returns the message of each part, see `message_of`, given what is outside each.
    `cut` has the variable of the top that is the root of each part; it has no sum below it there.
    Windows of the top aim to leave a probability of `aim` to values beyond them, and those of all
    parts `beyond` at first. `adapt` changes the network of the top.

    Raises
    ------
    UnsupportedError
        If a part or the top alone has no law, or takes too much memory.
    NumericalError
        If no windows of parts hold nearly all noise.
    """
    whole = _Whole(forest, weights, cut, messages_of, aim, beyond, adapt)
    first = whole.placed()
    if first.theta is not None:
        try:
            return whole.joined(first)
        except (InfeasibleError, NumericalError):  # then what is outside is guessed from tables
            first = _Placed([Outside(0.0, np.nan, beyond, by_merges=True)] * cut.size)
    return whole.joined(first)


@dataclass(frozen=True, eq=False)
class _Placed:
    """Outsides of all parts before the first tables of the top are filled."""

    outsides: Sequence[Outside]
    messages: Sequence[PartMessage] = ()  # Empty where parts gave their places only.
    theta: FloatArray | None = None  # Multipliers from which they follow, if these have settled.


class _Whole(NamedTuple):
    """A whole tree, cut into a top and parts, as `join` takes it."""

    forest: SumForest
    weights: SharedUnary
    cut: IntArray
    messages_of: MessagesOf
    aim: float
    beyond: float
    adapt: Adapt

    def placed(self) -> _Placed:
        """Ask for the places of messages until the tilts of parts under wide noise have settled.

        A message of any other part is a guess of what is outside it, from the first round on.
        """
        cut, beyond = self.cut, self.beyond
        outsides = [Outside(0.0, np.nan, beyond, place_only=True)] * cut.size
        last, before = np.zeros(cut.size), np.inf
        for placing in range(_PLACINGS):
            messages = self.messages_of(outsides)
            if all(one.table.size for one in messages):
                return _Placed(outsides, messages)
            top = self._top(messages)
            found = top.settled()
            outsides = [replace(one, place_only=True) for one in top.around(found, beyond)]
            tilt = top.tilts_of(found.settled.tilt)
            spread = np.sqrt([one.place[1] for one in messages])
            moved = float((np.abs(tilt - last) * spread).max(initial=0.0)) if placing else np.inf
            if moved < _STILL or 0.5 * before < moved < _ROUGH:
                break
            last, before = tilt, moved
        return _Placed(
            [replace(one, place_only=False) for one in outsides], theta=found.settled.tilt
        )

    def joined(self, first: _Placed) -> Joined:
        """Compute messages in ever wider windows, until they hold nearly all noise."""
        outsides, messages, settled = first.outsides, first.messages, first.theta
        last = (_ROUNDS if settled is None else _SETTLED) - 1
        for attempt in range(last + 1):
            messages = messages or self.messages_of(outsides)
            top = self._top(messages)
            balanced = None if settled is None else top.balanced(settled) or top.settled()
            theta = tilts(top.forest, top.near) if balanced is None else balanced.settled.tilt
            try:
                return Joined(self._filled(top, theta), tuple(messages), tuple(outsides))
            except (InfeasibleError, NumericalError):
                if attempt == last or not messages:
                    raise
                beyond = self.beyond * float(elementwise.power(_LESS, attempt + 1.0))
                if balanced is None:
                    guessed = top.outsides(theta, beyond)
                    outsides = [replace(one, by_merges=True) for one in guessed]
                else:
                    outsides, settled = top.around(balanced, beyond), balanced.settled.tilt
                messages = ()
        raise AssertionError("the last round returns or raises")

    def _top(self, messages: Sequence[PartMessage]) -> Top:
        return Top.of(self.forest, self.weights, self.cut, messages)

    def _filled(self, top: Top, theta: FloatArray) -> Envelopes:
        """Fill the tables; raises NumericalError or InfeasibleError where messages do not reach."""
        forest, count = top.forest, top.cut.size
        # messages are tilted already
        own, sent = theta[: forest.m - count], np.array([one.theta for one in top.messages])
        theta = np.append(in_steps(own), sent)
        _check_exact(forest, theta)

        def receiving(network: Network) -> Network:
            """Note the class of each variable that has a message as its weight."""
            network = self.adapt(network)
            at = network.slot_class[forest.n - count : forest.n].tolist()
            return replace(network, received=dict(zip(at, top.messages, strict=True)))

        return fill_in_windows(forest, top.weights, theta, self.aim, receiving)


def _check_exact(forest: SumForest, theta: FloatArray) -> None:
    """Refuse multipliers whose differences at the owners of sums are not exact."""
    at = np.flatnonzero(forest.owner >= 0)
    above = np.append(theta, 0.0)[forest.above[forest.owner[at]]]
    below = forest.sign[at] * theta[at]
    tilt = above - below
    if ((above - tilt != below) | (tilt + below != above)).any():
        raise NumericalError(
            "the noise of a part is far narrower than one count, or than that of another part; use "
            "noise scales that differ less."
        )
