"""Revision that may refuse its input: screened and credibility-limited revision.

Two Views names both as future work in its conclusion. Both start from `revise`, which accepts every
possible input. A `Belief` is certain of the events of probability 1, and holds the worlds of its
support possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence

from congenial.belief.worlds import Belief, Probability, World
from congenial.errors import ArgumentError

Worlds = Collection[World]
Credible = Callable[[frozenset[Hashable]], bool]


def revise(belief: Belief, event: Worlds, *, reserve: Sequence[Belief] = ()) -> Belief:
    """Condition the first of several beliefs that holds the event possible.

    Parameters
    ----------
    belief : Belief
    event : set of hashable
        Worlds of the belief.
    reserve : sequence of Belief
        Beliefs to use, in this order, if the event has probability 0 in `belief`.

    Returns
    -------
    Belief

    Raises
    ------
    ArgumentError
        If no belief holds the event possible.

    Notes
    -----
    A belief and its reserve are a lexicographic probability system: the rank of a world is the
    place of the first belief that holds it possible. The support of the result is the event's
    worlds of the best rank. Revision therefore satisfies all postulates of belief revision, success
    included.

    References
    ----------
    Blume, Brandenburger and Dekel (1991); Grove (1988).
    """
    for held in (belief, *reserve):
        worlds = frozenset(event).intersection(held.worlds)
        if held.probability(worlds):
            return held.condition(worlds)
    raise ArgumentError(
        f"the event has probability 0 in the belief and in its reserve of {len(reserve)}; add a "
        "belief to the reserve that holds it possible."
    )


def screened(
    belief: Belief, event: Worlds, *, core: Worlds, reserve: Sequence[Belief] = ()
) -> Belief:
    """Revise unless the input contradicts a core of beliefs that no input can change.

    Parameters
    ----------
    belief : Belief
        Gives the core probability 1.
    event : set of hashable
    core : set of hashable
        Worlds that the core beliefs allow.
    reserve : sequence of Belief

    Returns
    -------
    Belief
        `belief` itself if event and core share no world, else the belief revised by the worlds
        that they share.

    Raises
    ------
    ArgumentError
        If `belief` gives a world outside the core a positive probability, or if no belief holds a
        world possible that event and core share.

    Notes
    -----
    Screened revision satisfies relative success, vacuity, success monotonicity and trichotomy. It
    violates success.

    References
    ----------
    Makinson (1997), Screened revision.
    """
    if belief.support - frozenset(core):
        raise ArgumentError(
            "the belief gives worlds outside the core a positive probability; condition it on the "
            "core first."
        )
    shared = frozenset(event).intersection(core)
    return revise(belief, shared, reserve=reserve) if shared else belief


def credibility_limited(
    belief: Belief, event: Worlds, *, credible: Credible, reserve: Sequence[Belief] = ()
) -> Belief:
    """Revise if the input is credible, else keep the belief.

    Parameters
    ----------
    belief : Belief
    event : set of hashable
    credible : callable
        Whether an event, a frozenset of worlds, is credible; see `likely`.
    reserve : sequence of Belief

    Returns
    -------
    Belief

    Raises
    ------
    ArgumentError
        If the event is credible and no belief holds it possible.

    Notes
    -----
    For every choice of `credible`, revision satisfies relative success and may violate success. It
    satisfies success monotonicity if every event that a credible event implies is credible. Vacuity
    and trichotomy need more; see `likely`.

    References
    ----------
    Hansson, Ferme, Cantwell and Falappa (2001), Credibility limited revision.
    """
    worlds = frozenset(event)
    return revise(belief, worlds, reserve=reserve) if credible(worlds) else belief


def likely(belief: Belief, threshold: Probability) -> Credible:
    """Call an event credible if its prior probability reaches a threshold.

    Parameters
    ----------
    belief : Belief
    threshold : number
        Smallest probability of a credible event; above 0, at most 1.

    Returns
    -------
    callable
        The argument `credible` of `credibility_limited`.

    Raises
    ------
    ArgumentError
        If the threshold is out of range.

    Notes
    -----
    With this limit, revision satisfies relative success and success monotonicity. It violates
    vacuity, because it refuses an unlikely input that contradicts nothing. It violates trichotomy,
    because the union of two events that are not credible may be credible.
    """
    if not 0 < threshold <= 1:
        raise ArgumentError(f"threshold is {threshold!r}; give a probability above 0, at most 1.")
    return lambda event: belief.probability(event) >= threshold
