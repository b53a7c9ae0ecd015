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

import numpy as np

from congenial.errors import InfeasibleError, NumericalError
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_tables import Outside
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
_SHARE, _LESS = 0.15, 0.01
# Change of the tilt of a part, times the deviation of its sum, below which places are settled.
_STILL = 0.3

MessagesOf = Callable[[Sequence[Outside]], Sequence[PartMessage]]


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
) -> Joined:
    """Ask for the messages of all parts, and fill the tables of the top from them.

    `messages_of` returns the message of each part, see `message_of`, given what is outside each.
    `cut` has the variable of the top that is the root of each part; it has no sum below it there.
    `limit` is the total variation that a draw of the whole tree may cost.

    Raises
    ------
    UnsupportedError
        If a part or the top alone has no law, or takes too much memory.
    NumericalError
        If the error would exceed the limit.
    """
    given = forest, weights, cut, messages_of, limit
    first = _placed(*given[:4])
    if first.theta is not None:
        try:
            return _joined(*given, first)
        except (InfeasibleError, NumericalError):  # then what is outside is guessed from tables
            first = _Placed([_unknown(place_only=False)] * cut.size)
    return _joined(*given, first)


def _joined(
    forest: SumForest,
    weights: SharedUnary,
    cut: IntArray,
    messages_of: MessagesOf,
    limit: float,
    first: _Placed,
) -> Joined:
    """Compute messages again, in wider windows, until the tables of the top reach their bound."""
    outsides, messages, settled = first.outsides, first.messages, first.theta
    last = (_ROUNDS if settled is None else _SETTLED) - 1
    for attempt in range(last + 1):
        messages = messages or messages_of(outsides)
        top = Top.of(forest, weights, cut, messages)
        theta = tilts(top.forest, top.near) if settled is None else settled
        try:
            return Joined(_filled(top, theta, limit), tuple(messages), tuple(outsides))
        except (InfeasibleError, NumericalError):
            if attempt == last or not messages:
                raise
            share = _SHARE * _LESS ** (attempt + 1)
            if settled is None:
                outsides = top.outsides(theta, share)
            else:  # windows are wider, and stay where they are
                outsides = [replace(one, share=share) for one in outsides]
            messages = ()
    raise AssertionError("the last round returns or raises")


@dataclass(frozen=True, eq=False)
class _Placed:
    """What is outside each part before the first tables of the top are filled."""

    outsides: Sequence[Outside]
    messages: Sequence[PartMessage] = ()  # None where parts told their places only.
    theta: FloatArray | None = None  # Multipliers of the top's sums that have settled.


def _placed(
    forest: SumForest, weights: SharedUnary, cut: IntArray, messages_of: MessagesOf
) -> _Placed:
    """Ask for the places of messages until the tilts of parts under wide noise have settled.

    A message of any other part is a guess of what is outside it, from the first round on.
    """
    outsides = [_unknown(place_only=True)] * cut.size
    last = np.full(cut.size, np.nan)
    for _ in range(_PLACINGS):
        messages = messages_of(outsides)
        if all(one.table.size for one in messages):
            return _Placed(outsides, messages)
        top = Top.of(forest, weights, cut, messages)
        found = top.settled()
        outsides = [replace(one, place_only=True) for one in top.around(found, _SHARE)]
        tilt = top.tilts_of(found.tilt)
        spread = np.sqrt([one.place[1] for one in messages])
        if (np.abs(tilt - last) * spread < _STILL).all():
            break
        last = tilt
    return _Placed([replace(one, place_only=False) for one in outsides], theta=found.tilt)


def _unknown(*, place_only: bool) -> Outside:
    """Return an outside of which nothing is known yet."""
    return Outside(0.0, np.nan, _SHARE, place_only)


def _filled(top: Top, theta: FloatArray, limit: float) -> Tables:
    """Fill the tables; raises NumericalError or InfeasibleError where messages do not reach."""
    forest, count = top.forest, top.cut.size
    # messages are tilted already
    of_top = theta[: theta.size - count]
    tilted = np.concatenate((of_top, [one.theta for one in top.messages]))

    def receiving(network: Network) -> Network:
        """Note the class of each variable that has a message as its weight."""
        at = network.slot_class[forest.n - count : forest.n].tolist()
        return replace(network, received=dict(zip(at, top.messages, strict=True)))

    return fill_noise(forest, top.weights, tilted, limit, drawn=True, adapt=receiving)
