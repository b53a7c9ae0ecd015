"""The vacuous lower probability, which describes a suppressed release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from congenial.belief.worlds import Belief, Event, Probability, World, members_of
from congenial.errors import ArgumentError

# Pairs of a dataset and an output.
Focal = frozenset[tuple[World, World]]


@dataclass(frozen=True)
class Vacuous:
    """Lower and upper probabilities of an output whose law is unknown.

    It stands for the set of all probabilities on the worlds: the procedure M_0 that releases
    nothing.

    Parameters
    ----------
    worlds : tuple of hashable
        All outputs, each once.

    References
    ----------
    Gong and Meng (2020), Definition 1.4, section 5.3 and equation 5.2.
    """

    worlds: tuple[World, ...]

    def __post_init__(self) -> None:
        if not self.worlds or len(set(self.worlds)) < len(self.worlds):
            raise ArgumentError(
                f"the {len(self.worlds)} worlds are {len(set(self.worlds))} different ones; name "
                "at least one, and each once."
            )

    def lower(self, event: Event) -> int:
        """Lower probability: 1 for all worlds together, else 0; raises as `Belief.probability`."""
        return int(len(members_of(event, self.worlds)) == len(self.worlds))

    def upper(self, event: Event) -> int:
        """Upper probability: 0 for the empty event, else 1 (equation 5.2); raises as `lower`."""
        return int(bool(members_of(event, self.worlds)))

    def condition(self, event: Event) -> Vacuous:
        """Condition on an event: the law is unknown on the event's worlds, too.

        Raises
        ------
        ArgumentError
            If the event is empty.
        """
        members = members_of(event, self.worlds)
        if not members:
            raise ArgumentError("the event is empty; condition on at least one world.")
        return Vacuous(tuple(world for world in self.worlds if world in members))

    def posterior(self, prior: Belief, event: Event) -> Belief:
        """Return the belief about the data after a report about the output: the prior.

        Parameters
        ----------
        prior : Belief
            About the data.
        event : set of outputs, or callable

        Raises
        ------
        ArgumentError
            If the event is empty.

        Notes
        -----
        By Dempster's rule, the mass of a dataset lies on the set of its pairs with all outputs. A
        report shrinks this set and never empties it, so every dataset keeps its mass. The prior is
        also the posterior under every law of the output that does not depend on the data. If each
        dataset may have another unknown law, the posterior is vacuous; see `dilation`.
        """
        reported = frozenset(product(prior.worlds, self.condition(event).worlds))
        masses: dict[Focal, Probability] = {
            frozenset(product((dataset,), self.worlds)): prior[dataset] for dataset in prior.worlds
        }
        after = _dempster(masses, reported)
        return Belief.from_weights({next(iter(focal))[0]: mass for focal, mass in after.items()})


def _dempster(masses: dict[Focal, Probability], event: Focal) -> dict[Focal, Probability]:
    """Intersect every focal set with the event, and drop empty sets (Dempster, 1967)."""
    cut: dict[Focal, Probability] = {}
    for focal, mass in masses.items():
        if left := focal & event:
            cut[left] = mass + cut.get(left, Fraction(0))
    return cut


def dilation(
    prior: Belief, outputs: tuple[World, ...], event: Event, *, same: bool
) -> dict[World, tuple[Probability, Probability]]:
    """Bounds of the posterior over all laws of the output.

    The result maps each dataset to its smallest and largest posterior probability, over the laws
    that make the report possible.

    Notes
    -----
    A posterior is a ratio of two functions that are linear in the law. It therefore takes its
    bounds at extreme laws, which map each dataset to one output with certainty.
    """
    inside = Vacuous(outputs).condition(event).worlds
    bounds: dict[World, tuple[Probability, Probability]] = {}
    for posterior in _extremes(prior, outputs, frozenset(inside), same=same):
        for dataset in prior.worlds:
            low, high = bounds.get(dataset, (posterior[dataset], posterior[dataset]))
            bounds[dataset] = min(low, posterior[dataset]), max(high, posterior[dataset])
    return bounds


def _extremes(
    prior: Belief, outputs: tuple[World, ...], inside: frozenset[World], *, same: bool
) -> Iterator[Belief]:
    count = len(prior.worlds)
    chosen = ((out,) * count for out in outputs) if same else product(outputs, repeat=count)
    for leads in chosen:
        kept = {d for d, out in zip(prior.worlds, leads, strict=True) if out in inside}
        if prior.probability(kept):
            yield prior.condition(kept)
