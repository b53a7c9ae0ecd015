"""A statement of the papers, a way of trying it on a random case, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from congenial.belief.finite_mechanism import FiniteMechanism
from congenial.belief.worlds import Belief
from congenial.randomness import seeded
from papers.claims.draws import Draws

# Tries a statement on one random case; a counterexample in words, or None where it holds.
Case = Callable[[Draws], str | None]


# Who says so. A paper read otherwise is a statement in words of the paper that can be read in
# several ways, taken in another than the one that the paper's own proof or use needs.
Source = Literal[
    "the paper",
    "the paper, read otherwise",
    "the paper denies it",
    "ours: corrected",
    "ours: stronger",
    "ours",
]


@dataclass(frozen=True)
class Claim:
    """A statement, and how to try it.

    Attributes
    ----------
    item : str
        Where the papers make it.
    statement : str
        In our words.
    says : str
        Who says so: a paper, a paper under another reading than its own, or we; or a paper says
        that it need not be so.
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
    says: Source
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
