"""Postulates of revision, each decided by going through all events of a few worlds.

A rule of revision is given as its results for every event that is not empty. Each function returns
the events that break its postulate, or None where the postulate holds. They are the postulates of
propositional credibility-limited revision (Booth, Ferme, Konieczny and Pino Perez, 2012), about
the worlds held possible, and success, which such revision gives up. Consistency needs no check: a
`Belief` always holds some world possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from congenial.belief.worlds import Belief, World

Worlds = frozenset[World]
Breach = tuple[Worlds, ...] | None
Postulate = Callable[[Belief, Mapping[Worlds, Belief]], Breach]


def events(worlds: Sequence[World]) -> Iterator[Worlds]:
    """Yield every event that is not empty, small ones first."""
    for size in range(1, len(worlds) + 1):
        yield from map(frozenset, combinations(worlds, size))


def success(prior: Belief, revised: Mapping[Worlds, Belief]) -> Breach:
    """The input is believed afterwards."""
    del prior
    return next(((e,) for e, after in revised.items() if not after.support <= e), None)


def relative_success(prior: Belief, revised: Mapping[Worlds, Belief]) -> Breach:
    """The input is believed afterwards, or nothing has changed."""
    return next(
        ((e,) for e, after in revised.items() if not after.support <= e and after != prior), None
    )


def vacuity(prior: Belief, revised: Mapping[Worlds, Belief]) -> Breach:
    """An input that contradicts nothing is added, and nothing else changes."""
    return next(
        (
            (e,)
            for e, after in revised.items()
            if prior.support & e and after.support != prior.support & e
        ),
        None,
    )


def success_monotonicity(prior: Belief, revised: Mapping[Worlds, Belief]) -> Breach:
    """All that a successful input implies would be accepted as an input."""
    del prior
    for e, after in revised.items():
        if after.support <= e:
            for wider, other in revised.items():
                if e <= wider and not other.support <= wider:
                    return e, wider
    return None


def trichotomy(prior: Belief, revised: Mapping[Worlds, Belief]) -> Breach:
    """A disjunction is revised as one part, as the other, or so that both results are possible."""
    del prior
    for e, first in revised.items():
        for f, second in revised.items():
            allowed = (first.support, second.support, first.support | second.support)
            if revised[e | f].support not in allowed:
                return e, f
    return None


POSTULATES: dict[str, Postulate] = {
    "success": success,
    "relative success": relative_success,
    "vacuity": vacuity,
    "success monotonicity": success_monotonicity,
    "trichotomy": trichotomy,
}


def broken(prior: Belief, rule: Callable[[Worlds], Belief]) -> dict[str, tuple[Worlds, ...]]:
    """Postulates that a rule of revision breaks, with the first events that break them.

    Returns
    -------
    dict
        From the postulate's name to one or two events.
    """
    revised = {event: rule(event) for event in events(prior.worlds)}
    found = {name: postulate(prior, revised) for name, postulate in POSTULATES.items()}
    return {name: breach for name, breach in found.items() if breach is not None}
