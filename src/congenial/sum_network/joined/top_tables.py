"""Tables of the top of a tree of sums, whose cut variables receive the messages of parts.

Every table of the whole tree is either a table of a part or one of the top, and the sum below a cut
variable is one of both: the part sends its table, tilted by its own multiplier, with a bound on the
mass missing from every entry. The top takes it as the weight of one more variable below the cut
variable, and tilts the weights of all its own variables. So the top continues the certificate of
the whole tree (`truncation`), and the error of a draw is that of tables held together: truncation
as the top bounds it, and the rounding of all parts and of the top. A part's tables are filled
twice, with the same operations, so the tables that are drawn from are those that sent the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from congenial.errors import InfeasibleError, NumericalError
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_tables import Outside, tilted
from congenial.sum_network.joined.top_network import Top
from congenial.sum_network.network import Network
from congenial.sum_network.tables import Tables, fill_noise
from congenial.sum_network.weights import PartMessage, SharedUnary
from congenial.sum_network.windows import tilts
from congenial.types import FloatArray, IntArray

# Most times that all messages are computed: where outsides are guessed from tables, and where their
# places have settled; and most times that places are asked for.
_ROUNDS, _SETTLED, _PLACINGS = 12, 3, 24
# Share of the error, besides rounding, that the windows of parts aim at: in the first round, and in
# proportion to the round before.
SHARE, _LESS = 0.15, 0.01
# Change of the tilt of a part, times the deviation of its sum, below which places are settled.
_STILL = 0.3

MessagesOf = Callable[[Sequence[Outside]], Sequence[PartMessage]]
Adapt = Callable[[Network], Network]


@dataclass(frozen=True, eq=False)
class Joined:
    """The tables of the top, and the messages from which they were filled."""

    tables: Tables
    messages: tuple[PartMessage, ...]
    outsides: tuple[Outside, ...]  # From which the windows of each part were placed.

    @property
    def error(self) -> float:
        """Bound on the total variation between a draw of the whole tree and its law."""
        return self.tables.error


def join(
    forest: SumForest,
    weights: SharedUnary,
    cut: IntArray,
    messages_of: MessagesOf,
    limit: float,
    adapt: Adapt = lambda network: network,
    share: float = SHARE,
) -> Joined:
    """Ask for the messages of all parts, and fill the tables of the top from them.

    `messages_of` returns the message of each part, see `message_of`, given what is outside each.
    `cut` has the variable of the top that is the root of each part; it has no sum below it there.
    `limit` is the total variation that a draw of the whole tree may cost. `adapt` changes the
    network of the top, and the windows of parts aim at the share `share` of the limit at first.

    Raises
    ------
    UnsupportedError
        If a part or the top alone has no law, or takes too much memory.
    NumericalError
        If the error would exceed the limit.
    """
    whole = _Whole(forest, weights, cut, messages_of, limit, adapt, share)
    first = whole.placed()
    if first.theta is not None:
        try:
            return whole.joined(first)
        except (InfeasibleError, NumericalError):  # then what is outside is guessed from tables
            first = _Placed([Outside(0.0, np.nan, share)] * cut.size)
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
    limit: float
    adapt: Adapt
    share: float

    def placed(self) -> _Placed:
        """Ask for the places of messages until the tilts of parts under wide noise have settled.

        A message of any other part is a guess of what is outside it, from the first round on.
        """
        cut, share = self.cut, self.share
        outsides = [Outside(0.0, np.nan, share, place_only=True)] * cut.size
        last = np.full(cut.size, np.nan)
        for _ in range(_PLACINGS):
            messages = self.messages_of(outsides)
            if all(one.table.size for one in messages):
                return _Placed(outsides, messages)
            top = self._top(messages)
            found = top.settled()
            outsides = [replace(one, place_only=True) for one in top.around(found, share)]
            tilt = top.tilts_of(found.settled.tilt)
            spread = np.sqrt([one.place[1] for one in messages])
            if (np.abs(tilt - last) * spread < _STILL).all():
                break
            last = tilt
        return _Placed(
            [replace(one, place_only=False) for one in outsides], theta=found.settled.tilt
        )

    def joined(self, first: _Placed) -> Joined:
        """Compute messages in ever wider windows, until the tables of the top reach their bound."""
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
                share = self.share * _LESS ** (attempt + 1)
                if balanced is None:
                    outsides = top.outsides(theta, share)
                else:
                    outsides, settled = top.around(balanced, share), balanced.settled.tilt
                messages = ()
        raise AssertionError("the last round returns or raises")

    def _top(self, messages: Sequence[PartMessage]) -> Top:
        return Top.of(self.forest, self.weights, self.cut, messages)

    def _filled(self, top: Top, theta: FloatArray) -> Tables:
        """Fill the tables; raises NumericalError or InfeasibleError where messages do not reach."""
        forest, count = top.forest, top.cut.size
        # messages are tilted already
        theta = np.concatenate((theta[: forest.m - count], [one.theta for one in top.messages]))

        def receiving(network: Network) -> Network:
            """Note the class of each variable that has a message as its weight."""
            network = self.adapt(network)
            at = network.slot_class[forest.n - count : forest.n].tolist()
            return replace(network, received=dict(zip(at, top.messages, strict=True)))

        given = forest, top.weights, theta, self.limit
        return tilted(fill_noise(*given, drawn=True, adapt=receiving), forest, theta)
