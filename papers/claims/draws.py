"""Random finite cases: beliefs, events, mechanisms, all small and exact."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

from congenial.belief.finite_mechanism import FiniteMechanism
from congenial.belief.worlds import Belief
from congenial.randomness import Randomness

T = TypeVar("T")

# Two neighbouring datasets.
PAIR = (("x", "y"),)


class Draws:
    """Random cases from a source of words.

    Parameters
    ----------
    rng : Randomness
    """

    def __init__(self, rng: Randomness) -> None:
        self._words = _words(rng)

    def integer(self, low: int, high: int) -> int:
        """Integer from `low` to `high`, both included."""
        return low + next(self._words) % (high - low + 1)

    def choice(self, items: Sequence[T]) -> T:
        """One of several."""
        return items[self.integer(0, len(items) - 1)]

    def fraction(self) -> Fraction:
        """A fraction strictly between 0 and 1."""
        under = self.integer(2, 6)
        return Fraction(self.integer(1, under - 1), under)

    def factor(self) -> Fraction:
        """A fraction of at least 1, in the role of exp(epsilon)."""
        return 1 + Fraction(self.integer(0, 4), self.integer(1, 4))

    def belief(self, worlds: Iterable[Hashable], *, zeros: bool = True, most: int = 4) -> Belief:
        """Law of weights up to `most`; without `zeros` every world is possible."""
        worlds = tuple(worlds)
        while True:
            weights = [self.integer(0 if zeros else 1, most) for _ in worlds]
            if any(weights):
                return Belief.from_weights(dict(zip(worlds, weights, strict=True)))

    def event(self, worlds: Sequence[int], *, proper: bool = False) -> frozenset[int]:
        """Event that is not empty; if `proper`, nor everything."""
        most = len(worlds) - proper
        while True:
            event = frozenset(world for world in worlds if self.integer(0, 1))
            if 0 < len(event) <= most:
                return event

    def disjoint(self, worlds: Sequence[int]) -> tuple[frozenset[int], frozenset[int]]:
        """Two events without a common world, neither empty."""
        first = self.event(worlds, proper=True)
        return first, self.event([world for world in worlds if world not in first])

    def overlapping(self, worlds: Sequence[int]) -> tuple[frozenset[int], frozenset[int]]:
        """Two events with a common world, neither holding the other."""
        while True:
            first, second = self.event(worlds), self.event(worlds)
            if first & second and first - second and second - first:
                return first, second

    def possible(
        self, worlds: Sequence[int], *events: frozenset[int], zeros: bool = True
    ) -> Belief:
        """Law under which each of several events is possible."""
        while True:
            belief = self.belief(worlds, zeros=zeros)
            if all(belief.probability(event) for event in events):
                return belief

    def mechanism(
        self, outputs: Sequence[int], *events: frozenset[int], zeros: bool = False
    ) -> FiniteMechanism:
        """Mechanism for the datasets of `PAIR` under which each of several events is possible."""
        return FiniteMechanism(
            {dataset: self.possible(outputs, *events, zeros=zeros) for dataset in PAIR[0]}
        )

    def function(self, domain: Iterable[int], goals: Sequence[int]) -> dict[int, int]:
        """Function from a domain to goals."""
        return {world: self.choice(goals) for world in domain}

    def permutation(self, worlds: Sequence[int]) -> dict[int, int]:
        """Function that is one to one."""
        left, out = list(worlds), {}
        for world in worlds:
            out[world] = left.pop(self.integer(0, len(left) - 1))
        return out

    def closest(self, worlds: Iterable[int], event: frozenset[int]) -> dict[int, int]:
        """Some choice of a closest world: any function into the event that keeps its worlds."""
        goals = sorted(event)
        return {w: w if w in event else self.choice(goals) for w in worlds}


def nearest(worlds: Iterable[int], event: frozenset[int]) -> dict[int, int]:
    """Nearest integer of an event, the smaller one of two."""
    return {w: min(event, key=lambda v: (abs(v - w), v)) for w in worlds}


def _words(rng: Randomness) -> Iterator[int]:
    while True:
        # the lowest bits of a word are as random as the others
        yield from map(int, rng.bits(1024))
