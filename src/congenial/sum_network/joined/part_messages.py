"""The message that a part sends, and draws below its root.

A part whose tables are too large is cut below its root, and drawn in parts itself: what is below a
child of the root is a part of its own, and the part's message follows from theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.randomness import Randomness
from congenial.sum_network.exact.envelopes import Envelopes
from congenial.sum_network.exact.exact_draws import attempt
from congenial.sum_network.families import PartOfFamilies
from congenial.sum_network.forest import SumForest
from congenial.sum_network.joined.part_tables import (
    Outside,
    PartSums,
    fill_by_families,
    fill_part,
    place_of,
    sending,
    surrounded,
)
from congenial.sum_network.joined.top_tables import Joined, join
from congenial.sum_network.weights import PartMessage, SharedUnary
from congenial.types import BoolArray, IntArray

CHANGED = "the counts of a part changed between its message and its draw."
# Most entries of the tables of a part that are filled at once, at 10 bytes.
_ROOM = 1 << 25
# Share of what the windows of a part leave to values beyond them: that of the parts below it.
_BELOW = 0.1


def message_of(part: PartSums, outside: Outside) -> PartMessage:
    """Return the message of the sum below the root of a part, or only its place."""
    place = place_of(part, outside) if outside.place_only else None
    return _filled(part, outside).message if place is None else place


def attempt_part(
    part: PartSums, sent: PartMessage, outside: Outside, roots: IntArray, rng: Randomness
) -> tuple[BoolArray, IntArray]:
    """Try once to draw the values of a part given those of its root, see `exact.attempt`.

    `roots`, shape (rows,), comes from the top that has received the message `sent`. If an attempt
    is refused, the draw of the top is void.

    Returns which attempts are accepted, shape (rows,), and the values of these. Raises
    NumericalError if the part's counts are no longer those of the message.
    """
    filled = _filled(part, outside)
    if not filled.message.same_as(sent):
        raise NumericalError(CHANGED)
    top = filled.top
    accepted, values = filled.attempt(roots, rng)
    if not filled.below:
        return accepted, values
    out = np.empty((values.shape[0], part.forest.n), dtype=np.int64)
    out[:, top] = values
    for below, message, around in filled.below:
        given = np.ascontiguousarray(out[:, below.variables[0]])
        kept, values = attempt_part(below.sums, message, around, given, rng)
        accepted[accepted], out = kept, out[kept]
        out[:, below.variables] = values
    return accepted, out


@dataclass(frozen=True, eq=False)
class _Below:
    """A part below a child of the root of another one."""

    sums: PartSums
    variables: IntArray  # In the larger part, the child first.


@dataclass(frozen=True, eq=False)
class _Filled:
    """The tables of a part, or those of its top and what the parts below it have sent."""

    tables: Envelopes | PartOfFamilies
    message: PartMessage
    top: IntArray  # The variables that are drawn from the tables, the root first.
    below: Sequence[tuple[_Below, PartMessage, Outside]] = ()

    def attempt(self, roots: IntArray, rng: Randomness) -> tuple[BoolArray, IntArray]:
        """Try once to draw the variables `top`, given those of the root."""
        if isinstance(self.tables, PartOfFamilies):
            accepted, values = self.tables.attempt(roots, rng)
            return accepted, values[:, : self.top.size]
        return attempt(self.tables, roots.size, rng, first=self.top.size, roots=roots)


def _filled(part: PartSums, outside: Outside) -> _Filled:
    """Fill the tables of a part; in parts, if they are large and their messages reach."""
    every = np.arange(part.forest.n)
    of_families = fill_by_families(part, outside)
    if of_families is not None:
        return _Filled(of_families, of_families.message, every)
    try:
        tables = fill_part(part, outside, _ROOM)
    except UnsupportedError:
        below = _parts_below(part)
        if below:
            with suppress(InfeasibleError, NumericalError, UnsupportedError):
                return _joined(part, outside, below)
        tables = fill_part(part, outside)
    return _Filled(tables, _sent(tables), every)


def _joined(part: PartSums, outside: Outside, below: Sequence[_Below]) -> _Filled:
    """Fill the tables of the root, its children and what is outside, from messages of parts."""
    forest, weights, _ = surrounded(part, outside)
    within = forest.owner < 0
    within[forest.owner == 0] = True
    variables = np.flatnonzero((forest.above < 0) | within[forest.above])
    top = _taken(forest, weights, variables, np.flatnonzero(within))
    cut = np.searchsorted(variables, [one.variables[0] for one in below])

    def messages_of(outsides: Sequence[Outside]) -> list[PartMessage]:
        return [message_of(one.sums, at) for one, at in zip(below, outsides, strict=True)]

    aim = outside.beyond * part.share
    found: Joined = join(*top, cut, messages_of, aim, _BELOW * outside.beyond, sending())
    return _Filled(
        found.tables,
        _sent(found.tables),
        variables[variables < part.forest.n],
        list(zip(below, found.messages, found.outsides, strict=True)),
    )


def _sent(tables: Envelopes) -> PartMessage:
    """Return the message of tables that send one."""
    if tables.message is None:
        raise AssertionError("a part sends a message")
    return tables.message


def _parts_below(part: PartSums) -> list[_Below]:
    """Return the parts below the children of the root that own sums."""
    forest, weights = part.forest, part.weights
    child = np.full(forest.n, -1)
    depth = np.append(forest.depth, -1)[forest.above]
    for d in range(int(depth.max(initial=-1)) + 1):
        at = np.flatnonzero(depth == d)
        owner = forest.owner[forest.above[at]]
        child[at] = np.where(owner == 0, at, child[owner])
    own = np.zeros(forest.n, dtype=np.bool_)
    own[forest.owner] = True
    order = np.argsort(child, kind="stable")
    begins = np.flatnonzero(np.diff(child[order], prepend=-2))
    taken = list[tuple[IntArray, tuple[SumForest, SharedUnary]]]()
    for at in np.split(order, begins[1:]):
        c = int(child[at[0]])
        if c < 0 or not own[c]:
            continue
        variables = np.append(c, at[at != c])
        sums = np.flatnonzero(np.isin(forest.owner, at))
        taken.append((variables, _taken(forest, weights, variables, sums)))
    share = part.share / max(len(taken), 1)
    return [_Below(PartSums(*sums, share), variables) for variables, sums in taken]


def _taken(
    forest: SumForest, weights: SharedUnary, variables: IntArray, sums: IntArray
) -> tuple[SumForest, SharedUnary]:
    """Return some variables and sums of a forest, and the weights."""
    # the last place stands for none, -1
    place, number = np.full(forest.n + 1, -1), np.full(forest.m + 1, -1)
    place[variables], number[sums] = np.arange(variables.size), np.arange(sums.size)
    taken = SumForest(
        above=number[forest.above[variables]].astype(np.int32),
        owner=place[forest.owner[sums]].astype(np.int32),
        sign=forest.sign[sums],
        orientation=np.ones(variables.size, dtype=np.int8),
        depth=(forest.depth[sums] - forest.depth[sums].min()).astype(np.int32),
    )
    return taken, weights.at(variables)
