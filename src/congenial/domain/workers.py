"""Who works on the parts of a tree: this process, one part after another, or others.

A step of the work is a function of a part's number and of some arguments. It reads values of the
part that are kept, and may keep others. Steps are small records of what all parts have in common,
so that they can be sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from congenial.randomness import Randomness

Result = TypeVar("Result")
# Arguments of a step, by the number of the part.
Arguments = Mapping[int, tuple[Any, ...]]


class Workers(Protocol):
    """Workers on the parts of a tree."""

    def run(self, doing: str, step: Callable[..., Result], given: Arguments) -> list[Result]:
        """Do a step for each part that it is given; `doing` names it for whoever waits.

        The step takes the number of a part and its arguments.
        """

    def source(self, rng: Randomness) -> Randomness:
        """Return a source of random words for one part; in a step it can be used once."""


@dataclass(frozen=True)
class Here:
    """The process itself, which works on one part after another."""

    notify: Callable[[str], None] = lambda _: None

    def run(self, doing: str, step: Callable[..., Result], given: Arguments) -> list[Result]:
        """Do a step for one part after another."""
        out = []
        for done, (number, one) in enumerate(given.items(), start=1):
            self.notify(f"{doing} part {done:,} of {len(given):,}")
            out.append(step(number, *one))
        return out

    def source(self, rng: Randomness) -> Randomness:
        """Return the source itself: the parts take their words in order."""
        return rng


HERE = Here()
