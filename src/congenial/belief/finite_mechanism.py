"""Randomized mechanisms with finite, known laws: their privacy loss is a finite maximum."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from congenial.belief.worlds import Belief, Closest, Event, Probability, World, mixture, total
from congenial.errors import ArgumentError, EmptyNeighbourhoodError

Dataset = Hashable
Pair = tuple[Any, Any]


@dataclass(frozen=True, init=False, eq=False)
class FiniteMechanism:
    """A law of the output for each of finitely many datasets.

    Parameters
    ----------
    laws : mapping of hashable to Belief
        From dataset to the law of the output.

    Attributes
    ----------
    datasets : tuple of hashable
    laws : tuple of Belief
        In the order of `datasets`.

    Raises
    ------
    ArgumentError
        If there is no dataset.

    Notes
    -----
    Neighbours are given as pairs of datasets; each pair is compared both ways. Laws whose
    probabilities are fractions have exact ratios, so comparing the ratios needs no tolerance.
    """

    datasets: tuple[Dataset, ...]
    laws: tuple[Belief, ...]

    def __init__(self, laws: Mapping[Any, Belief]) -> None:
        if not laws:
            raise ArgumentError("there are no datasets; give the law of the output for at least 1.")
        object.__setattr__(self, "datasets", tuple(laws))
        object.__setattr__(self, "laws", tuple(laws.values()))

    @cached_property
    def _table(self) -> dict[Dataset, Belief]:
        return dict(zip(self.datasets, self.laws, strict=True))

    def __getitem__(self, dataset: Dataset) -> Belief:
        """Law of the output for a dataset."""
        if dataset not in self._table:
            raise ArgumentError(
                f"dataset {dataset!r} is not one of the {len(self.datasets)} of the mechanism; "
                "name one of those."
            )
        return self._table[dataset]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMechanism):
            return NotImplemented
        return self._table == other._table

    def __hash__(self) -> int:
        return hash(frozenset(self._table.items()))

    def ratio(self, pairs: Iterable[Pair]) -> Probability:
        """Largest ratio of an output's probabilities between neighbours, ``exp(epsilon)``.

        Returns
        -------
        Fraction or float
            Exact for exact laws; ``inf`` if an output is possible for only one dataset of a pair.

        Raises
        ------
        ArgumentError
            If a pair names a dataset that is not one of the mechanism's.
        EmptyNeighbourhoodError
            If there are no pairs.
        """
        return max(largest_ratio(p, q) for p, q in self._compared(pairs))

    def epsilon(self, pairs: Iterable[Pair]) -> float:
        """Smallest epsilon at which the mechanism is purely differentially private.

        Raises as `ratio`.

        References
        ----------
        Two Views, Definition 2.4; Gong and Meng (2020), equation 1.1.
        """
        return math.log(self.ratio(pairs))

    def excess(self, factor: Probability, pairs: Iterable[Pair]) -> Probability:
        """Largest amount by which an event's probability exceeds a factor times the neighbour's.

        Raises as `ratio`.

        Parameters
        ----------
        factor : number
            ``exp(epsilon)``; a fraction keeps exact laws exact.
        pairs : iterable of pairs of datasets

        Returns
        -------
        Fraction or float
            The hockey-stick divergence of the worst pair.
        """
        return max(hockey_stick(factor, p, q) for p, q in self._compared(pairs))

    def delta(self, epsilon: float, pairs: Iterable[Pair]) -> float:
        """Smallest delta of (epsilon, delta)-differential privacy; raises as `ratio`."""
        return float(self.excess(math.exp(epsilon), pairs))

    def condition(self, event: Event) -> FiniteMechanism:
        """Revise the law of every dataset by conditioning (Two Views, Definition 3.2).

        Raises
        ------
        ArgumentError
            If some dataset gives the event probability 0.
        """
        return self._each(lambda law: law.condition(event))

    def image(self, event: Event, closest: Closest) -> FiniteMechanism:
        """Update the law of every dataset by imaging (Two Views, equation 6), as `Belief.image`."""
        return self._each(lambda law: law.image(event, closest))

    def then(self, function: Callable[[Any], World]) -> FiniteMechanism:
        """Return the mechanism that releases a function of the output."""
        return self._each(lambda law: law.then(function))

    def product(self, other: FiniteMechanism) -> FiniteMechanism:
        """Return the mechanism that releases both outputs, drawn independently, as a pair.

        Parameters
        ----------
        other : FiniteMechanism
            For the same datasets.

        Raises
        ------
        ArgumentError
            If `other` lacks a dataset.
        """
        return FiniteMechanism({d: independent(law, other[d]) for d, law in self._table.items()})

    @classmethod
    def mixture(
        cls, mechanisms: Sequence[FiniteMechanism], weights: Sequence[Probability]
    ) -> FiniteMechanism:
        """Return the mechanism that runs one of several, chosen at random with given weights.

        Parameters
        ----------
        mechanisms : sequence of FiniteMechanism
            For the same datasets.
        weights : sequence of number
            One for each mechanism; they add up to 1 and do not depend on the data.

        Raises
        ------
        ArgumentError
            If a mechanism lacks a dataset or the weights are not valid.
        """
        if not mechanisms:
            raise ArgumentError("there are no mechanisms to mix; give at least one.")
        return cls(
            {d: mixture([m[d] for m in mechanisms], weights) for d in mechanisms[0].datasets}
        )

    def _each(self, change: Callable[[Belief], Belief]) -> FiniteMechanism:
        return FiniteMechanism({dataset: change(law) for dataset, law in self._table.items()})

    def _compared(self, pairs: Iterable[Pair]) -> Iterator[tuple[Belief, Belief]]:
        pairs = list(pairs)
        if not pairs:
            raise EmptyNeighbourhoodError(
                "there are no neighbouring datasets, so a guarantee would say nothing; give at "
                "least one pair."
            )
        for first, second in pairs:
            yield self[first], self[second]
            yield self[second], self[first]


def independent(first: Belief, second: Belief) -> Belief:
    """Law of a pair of worlds drawn independently."""
    return Belief({(a, b): first[a] * second[b] for a in first.worlds for b in second.worlds})


def largest_ratio(p: Belief, q: Belief) -> Probability:
    """Largest ratio of a world's probabilities, ``inf`` if `q` excludes a world of `p`."""
    if not p.support <= q.support:
        return math.inf
    return max(p[world] / q[world] for world in p.support)


def hockey_stick(factor: Probability, p: Belief, q: Belief) -> Probability:
    """Hockey-stick divergence, sum of max(p - factor * q, 0)."""
    over = (p[world] - factor * q[world] for world in p.support)
    return total(max(value, Fraction(0)) for value in over)
