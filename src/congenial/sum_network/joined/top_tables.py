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
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_tables import Outside
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.tables import Tables, fill_noise
from congenial.sum_network.weights import PartMessage, SharedUnary, Unary
from congenial.sum_network.windows import (
    check_proper,
    place_classes,
    surroundings,
    tilts,
)
from congenial.types import FloatArray, IntArray

# Most times that all messages are computed: after the first, in windows placed by the top.
_ROUNDS = 12
# Share of the error, besides rounding, that the windows of parts aim at: in the first round, and in
# proportion to the round before.
_SHARE, _LESS = 0.15, 0.01
# Least and largest variance of what stands for the outside of a part.
_NARROW, _WIDE = 0.25, 1e24


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
    messages_of: Callable[[Sequence[Outside]], Sequence[PartMessage]],
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
    outsides = [Outside(0.0, np.nan, _SHARE)] * cut.size
    for attempt in range(_ROUNDS):
        messages = messages_of(outsides)
        top = _Top.of(forest, weights, cut, messages)
        try:
            return Joined(top.filled(limit), tuple(messages), tuple(outsides))
        except (InfeasibleError, NumericalError):
            if attempt == _ROUNDS - 1 or not messages:
                raise
            outsides = top.outsides(_SHARE * _LESS ** (attempt + 1))
    raise AssertionError("the last round returns or raises")


@dataclass(frozen=True, eq=False)
class _Top:
    """The top with one more variable below each cut variable, whose weight is a message."""

    forest: SumForest
    weights: SharedUnary
    near: SharedUnary  # The weights with Gaussian laws for the messages.
    theta: FloatArray  # Multipliers for these.
    cut: IntArray
    messages: Sequence[PartMessage]

    @staticmethod
    def of(
        forest: SumForest, weights: SharedUnary, cut: IntArray, messages: Sequence[PartMessage]
    ) -> _Top:
        """Add the variables, and tilt all sums but those below cut variables."""
        n, m, k = forest.n, forest.m, cut.size
        depth = np.append(forest.depth, np.int32(-1))[forest.above[cut]] + np.int32(1)
        whole = SumForest(
            above=np.append(forest.above, np.arange(m, m + k, dtype=np.int32)),
            owner=np.append(forest.owner, cut.astype(np.int32)),
            sign=np.append(forest.sign, np.ones(k, dtype=np.int8)),
            orientation=np.ones(n + k, dtype=np.int8),
            depth=np.append(forest.depth, depth.astype(np.int32)),
        )
        place = np.array([one.place for one in messages]).reshape(k, 6)
        given = np.array([one.theta for one in messages])
        scale = np.sqrt(np.maximum(place[:, 1], _NARROW))
        # these have the moments of the messages once tilted
        middle = np.rint(place[:, 0] - given * place[:, 1])
        near = _with_tables(weights, laws.GAUSSIAN, scale, middle, place)
        check_proper(whole, near)
        numbers = np.arange(k, dtype=np.float64)  # each message is a weight of its own
        tabled = _with_tables(weights, laws.TABLE, scale, numbers, place)
        return _Top(whole, tabled, near, tilts(whole, near), cut, messages)

    def _receiving(self, network: Network) -> Network:
        """Note the class of each variable that has a message as its weight."""
        at = network.slot_class[self.forest.n - self.cut.size : self.forest.n].tolist()
        return replace(network, received=dict(zip(at, self.messages, strict=True)))

    def filled(self, limit: float) -> Tables:
        """Fill the tables; raises NumericalError or InfeasibleError where messages do not reach."""
        theta = self.theta.copy()
        theta[theta.size - self.cut.size :] = [one.theta for one in self.messages]
        given = self.forest, self.weights, theta, limit
        return fill_noise(*given, drawn=True, adapt=self._receiving)

    def outsides(self, share: float) -> list[Outside]:
        """Return what stands for the rest of the tree at each cut variable."""
        network = compile_network(self.forest, self.near, self.theta)
        place = place_classes(network)
        mid, _, variance, *_ = surroundings(network, place)
        out = []
        for v in self.cut.tolist():
            c = network.slot_class[v]
            own, beyond = max(float(place.var[c]), 1e-9), float(variance[c])
            if not beyond < _WIDE:  # there is nothing outside
                out.append(Outside(0.0, np.inf, share))
                continue
            beyond = max(beyond, _NARROW)
            mean = float(mid[c] + (mid[c] - place.mean[c]) * beyond / own)
            above = self.forest.above[v]
            tilt = float(self.theta[above]) if above >= 0 else 0.0
            # the multiplier above has tilted both sides
            out.append(Outside(mean + tilt * beyond, beyond, share))
        return out


def _with_tables(
    weights: SharedUnary, kind: int, scale: FloatArray, center: FloatArray, place: FloatArray
) -> SharedUnary:
    """Append a weight for each message."""
    unary, k = weights.unary, scale.size
    every = Unary(
        np.append(unary.kind, np.full(k, kind)),
        np.append(unary.scale, scale),
        np.append(unary.center, center),
        np.append(unary.lo, place[:, 2]),
        np.append(unary.hi, place[:, 3]),
    )
    more = np.arange(unary.kind.size, unary.kind.size + k, dtype=np.int32)
    return SharedUnary(every, np.append(weights.code, more))
