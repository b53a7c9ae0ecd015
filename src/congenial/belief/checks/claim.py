"""A statement of the papers, a way of trying it on a random case, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from congenial.belief.belief import Belief
from congenial.belief.checks.draws import Draws
from congenial.belief.mechanism import FiniteMechanism
from congenial.randomness import seeded

# Tries a statement on one random case; a counterexample in words, or None where it holds.
Case = Callable[[Draws], str | None]


@dataclass(frozen=True)
class Claim:
    """A statement, and how to try it.

    Attributes
    ----------
    item : str
        Where the papers make it.
    statement : str
        In our words.
    true : bool
        What is known of it; a test holds every verdict against this.
    case : callable
        From `Draws` to a counterexample in words, or to None where the statement holds.
    control : callable or None
        The same trial of something for which the statement is false. It must find a
        counterexample, or the trial could not fail.
    """

    item: str
    statement: str
    true: bool
    case: Case
    control: Case | None = None


@dataclass(frozen=True)
class Verdict:
    """What came of trying a claim.

    Attributes
    ----------
    holds : bool
        Whether no case broke it.
    cases, failures : int
        How many were tried, and how many broke it.
    counterexample : str
        The shortest; empty where there is none.
    """

    holds: bool
    cases: int
    failures: int
    counterexample: str


def decide(case: Case, *, cases: int, seed: int) -> Verdict:
    """Try a statement on random cases.

    Parameters
    ----------
    case : callable
    cases : int
        How many to try.
    seed : int

    Returns
    -------
    Verdict
    """
    draws = Draws(seeded(seed))
    found = [told for told in (case(draws) for _ in range(cases)) if told is not None]
    shortest = min(found, key=lambda told: (len(told), told), default="")
    return Verdict(not found, cases, len(found), shortest)


def told(law: Belief) -> str:
    """Law in words: the worlds of positive probability."""
    return ", ".join(f"{world}: {law[world]}" for world in law.worlds if law[world])


def told_laws(mechanism: FiniteMechanism) -> str:
    """Laws of a mechanism in words."""
    return "; ".join(f"M({d}) = ({told(mechanism[d])})" for d in mechanism.datasets)


def listed(event: frozenset[int]) -> str:
    """Event in words."""
    return "{" + ", ".join(map(str, sorted(event))) + "}"
