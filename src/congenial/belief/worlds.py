"""Probabilities of finitely many named worlds, changed by conditioning or by imaging."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Rational, Real
from typing import Any

from congenial.errors import ArgumentError

World = Hashable
Event = Collection[World] | Callable[[Any], bool]
Closest = Mapping[Any, World] | Callable[[Any], World]
Probability = Fraction | float

# Largest difference from 1 of the sum of floating-point probabilities: rounding only.
TOLERANCE = 1e-9


@dataclass(frozen=True, init=False, eq=False)
class Belief:
    """A probability for each of finitely many worlds.

    Parameters
    ----------
    probabilities : mapping of hashable to number
        From world to probability, adding up to 1; a world may have probability 0.

    Attributes
    ----------
    worlds : tuple of hashable
    probabilities : tuple of Fraction, or of float
        In the order of `worlds`.

    Raises
    ------
    ArgumentError
        If there is no world, or the numbers are not probabilities.

    Notes
    -----
    If every given probability is an integer or a `fractions.Fraction`, all arithmetic is exact. One
    float turns all of them into floats. Two beliefs are equal if they give every world the same
    probability; a world that a belief does not name has probability 0.

    Examples
    --------
    >>> box = Belief({"apple": Fraction(7, 10), "banana": Fraction(3, 10), "empty": 0})
    >>> box.condition({"banana", "empty"})["banana"]
    Fraction(1, 1)
    >>> gone = {"apple": "empty", "banana": "banana", "empty": "empty"}
    >>> box.image({"banana", "empty"}, gone)["empty"]
    Fraction(7, 10)
    """

    worlds: tuple[World, ...]
    probabilities: tuple[Probability, ...]

    def __init__(self, probabilities: Mapping[Any, Probability]) -> None:
        values = _numbers(probabilities)
        whole = total(values)
        off = abs(float(whole - 1))
        if off > (0.0 if isinstance(whole, Fraction) else TOLERANCE):
            raise ArgumentError(
                f"the probabilities add up to {whole}; give probabilities that add up to 1, or "
                "weights to Belief.from_weights."
            )
        object.__setattr__(self, "worlds", tuple(probabilities))
        object.__setattr__(self, "probabilities", values)

    @classmethod
    def from_weights(cls, weights: Mapping[Any, Probability]) -> Belief:
        """Belief proportional to weights.

        Parameters
        ----------
        weights : mapping of hashable to number
            Nonnegative, not all 0.

        Raises
        ------
        ArgumentError
            If the weights are negative, not finite or all 0.
        """
        values = _numbers(weights)
        whole = total(values)
        if not whole:
            raise ArgumentError("all weights are 0; give at least one world a positive weight.")
        return cls({w: value / whole for w, value in zip(weights, values, strict=True)})

    @cached_property
    def _table(self) -> dict[World, Probability]:
        return dict(zip(self.worlds, self.probabilities, strict=True))

    @cached_property
    def support(self) -> frozenset[World]:
        """The worlds of positive probability."""
        return frozenset(world for world, p in self._table.items() if p)

    @property
    def exact(self) -> bool:
        """Whether the probabilities are fractions."""
        return isinstance(self.probabilities[0], Fraction)

    def __getitem__(self, world: World) -> Probability:
        """Probability of one world; 0 if the belief does not name the world."""
        return self._table.get(world, Fraction(0) if self.exact else 0.0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Belief):
            return NotImplemented
        return all(self[world] == other[world] for world in self.support | other.support)

    def __hash__(self) -> int:
        return hash(frozenset((world, self[world]) for world in self.support))

    def probability(self, event: Event) -> Probability:
        """Probability of an event.

        Parameters
        ----------
        event : set of hashable, or callable
            Worlds, or a test of a world.

        Raises
        ------
        ArgumentError
            If the event names a world that the belief does not.
        """
        members = members_of(event, self.worlds)
        return total(tuple(self[world] for world in self.worlds if world in members))

    def condition(self, event: Event) -> Belief:
        """Revise the belief: one learns that the event was true all along.

        Worlds outside the event get probability 0, the others keep their relative probabilities.

        Returns
        -------
        Belief
            Over the same worlds.

        Raises
        ------
        ArgumentError
            If the event has probability 0 or names a world that the belief does not.

        References
        ----------
        Two Views, section 2, Propositions 2.1 and 2.2.
        """
        members = members_of(event, self.worlds)
        whole = self.probability(members)
        if not whole:
            raise ArgumentError(
                "the event has probability 0, so conditioning on it is not defined; condition on "
                "an event of positive probability, use image, or revise with a reserve."
            )
        zero = whole - whole
        return Belief({w: p / whole if w in members else zero for w, p in self._table.items()})

    def image(self, event: Event, closest: Closest) -> Belief:
        """Update the belief: the world changes, as little as possible, so that the event is true.

        Parameters
        ----------
        event : set of hashable, or callable
            May contain worlds that the belief does not name.
        closest : mapping or callable
            Maps a world to the closest world of the event, and a world of the event to itself.

        Returns
        -------
        Belief
            Over the same worlds and the values of `closest`.

        Raises
        ------
        ArgumentError
            If a value of `closest` is not in the event, or `closest` moves a world of the event.

        References
        ----------
        Two Views, equations 1 and 2.
        """
        lead = closest.__getitem__ if isinstance(closest, Mapping) else closest
        inside: Callable[[Any], bool] = event if callable(event) else frozenset(event).__contains__
        for world in self.worlds:
            goal = lead(world)
            if not inside(goal):
                raise ArgumentError(
                    f"the closest world of {world!r} is {goal!r}, which is not in the event; give "
                    "a closest whose values are worlds of the event."
                )
            if inside(world) and goal != world:
                raise ArgumentError(
                    f"world {world!r} is in the event and closest moves it to {goal!r}; let "
                    "closest leave worlds of the event where they are."
                )
        return self._moved(lead, self.worlds)

    def then(self, function: Callable[[Any], World]) -> Belief:
        """Return the law of a function of the world, over the values of the function."""
        return self._moved(function, ())

    def _moved(self, lead: Callable[[Any], World], kept: tuple[World, ...]) -> Belief:
        zero = self.probabilities[0] - self.probabilities[0]
        moved: dict[World, list[Probability]] = {world: [zero] for world in kept}
        for world, p in self._table.items():
            moved.setdefault(lead(world), []).append(p)
        return Belief({world: total(parts) for world, parts in moved.items()})


def members_of(event: Event, worlds: Sequence[World]) -> frozenset[World]:
    """Return the worlds of an event, which is a set of worlds or a test of one world."""
    if callable(event):
        return frozenset(world for world in worlds if event(world))
    members = frozenset(event)
    unknown = members.difference(worlds)
    if unknown:
        raise ArgumentError(
            f"the event names {min(map(repr, unknown))}, which is not one of the {len(worlds)} "
            "worlds; name worlds of the belief, or give a test of a world."
        )
    return members


def mixture(beliefs: Sequence[Belief], weights: Sequence[Probability]) -> Belief:
    """Mix several beliefs with given weights.

    Parameters
    ----------
    beliefs : sequence of Belief
    weights : sequence of number
        One for each belief; they add up to 1.

    Returns
    -------
    Belief
        Over the worlds of all beliefs.

    Raises
    ------
    ArgumentError
        If there is not one weight for each belief, or the weights are not probabilities.
    """
    if len(beliefs) != len(weights):
        raise ArgumentError(
            f"there are {len(beliefs)} beliefs and {len(weights)} weights; give one weight each."
        )
    shares = Belief(dict(enumerate(weights))).probabilities
    worlds = dict.fromkeys(world for belief in beliefs for world in belief.worlds)
    return Belief(
        {
            world: total(tuple(s * b[world] for s, b in zip(shares, beliefs, strict=True)))
            for world in worlds
        }
    )


def kullback_leibler(p: Belief, q: Belief) -> float:
    """Kullback-Leibler divergence of `p` from `q`, sum of p log(p / q), in nats.

    Parameters
    ----------
    p, q : Belief

    Returns
    -------
    float
        ``inf`` if `p` gives positive probability to a world of probability 0 under `q`.

    Notes
    -----
    Two Views writes I(q, p), with the prior first.
    """
    if not p.support <= q.support:
        return math.inf
    terms = (float(p[w]) * math.log(p[w] / q[w]) for w in p.worlds if p[w])
    return max(0.0, math.fsum(terms))


def total_variation(p: Belief, q: Belief) -> Probability:
    """Largest difference between the two probabilities of an event.

    Parameters
    ----------
    p, q : Belief

    Returns
    -------
    Fraction or float
        Exact if both beliefs are exact.
    """
    worlds = p.support | q.support
    return total(max(p[world] - q[world], q[world] - p[world]) for world in worlds) / 2


def total(values: Iterable[Probability]) -> Probability:
    """Sum, exact for fractions and correctly rounded for floats."""
    values = tuple(values)
    exact = [value for value in values if isinstance(value, Fraction)]
    return sum(exact, Fraction(0)) if len(exact) == len(values) else math.fsum(values)


def _numbers(given: Mapping[Any, Probability]) -> tuple[Probability, ...]:
    """Check nonnegative numbers, and make all of them fractions or all of them floats."""
    if not given:
        raise ArgumentError("there are no worlds; name at least one.")
    for world, value in given.items():
        if not isinstance(value, Real) or not 0 <= value < math.inf:
            raise ArgumentError(
                f"the probability of {world!r} is {value!r}; give a number that is not negative."
            )
    ratios = [value for value in given.values() if isinstance(value, Rational)]
    if len(ratios) == len(given):
        return tuple(Fraction(int(r.numerator), int(r.denominator)) for r in ratios)
    return tuple(float(value) for value in given.values())
