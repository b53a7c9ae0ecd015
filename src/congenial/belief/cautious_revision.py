"""Revision that may refuse its input: screened and credibility-limited revision.

Both are extensions: Two Views names them, in its conclusion, as work to come. Both start from
`revise`, which accepts every possible input. The categorical beliefs of a `Belief` are the events
of probability 1, so its set of worlds that are held possible is its support.
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
        Beliefs to fall back on, the next best first, where the event has probability 0.

    Returns
    -------
    Belief

    Raises
    ------
    ArgumentError
        If no belief holds the event possible.

    Notes
    -----
    A belief and its reserve are a lexicographic probability system; a world ranks by the first
    belief that holds it possible. The support of the result is the set of worlds of the event of
    the best rank, so that revision meets all postulates of belief revision, success among them.

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
        `belief` itself where event and core share no world; else the belief revised by what they
        share, so that the core is kept.

    Raises
    ------
    ArgumentError
        If `belief` doubts its core, or no belief holds possible what event and core share.

    Notes
    -----
    Meets relative success, vacuity, success monotonicity and trichotomy; gives up
    success.

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
    """Revise where the input is credible, and else keep the belief.

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
        If a credible event is held possible by no belief.

    Notes
    -----
    Whatever is credible, relative success is met and success is given up. Success
    monotonicity is met where all that a credible event implies is credible. Vacuity and trichotomy
    need more, see `likely`.

    References
    ----------
    Hansson, Ferme, Cantwell and Falappa (2001), Credibility limited revision.
    """
    worlds = frozenset(event)
    return revise(belief, worlds, reserve=reserve) if credible(worlds) else belief


def likely(belief: Belief, threshold: Probability) -> Credible:
    """Credibility of events by their prior probability.

    Parameters
    ----------
    belief : Belief
    threshold : number
        Above 0, at most 1; events of at least this probability are credible.

    Returns
    -------
    callable
        For `credibility_limited`.

    Raises
    ------
    ArgumentError
        If the threshold is out of range.

    Notes
    -----
    Revision so limited meets relative success and success monotonicity. It gives up
    vacuity, as an unlikely input is refused though it contradicts nothing, and trichotomy, as two
    incredible events may have a credible union.
    """
    if not 0 < threshold <= 1:
        raise ArgumentError(f"threshold is {threshold!r}; give a probability above 0, at most 1.")
    return lambda event: belief.probability(event) >= threshold
