"""The content of the page about a release, without its layout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """One fact about the guarantee or the release: its name and its lines of text."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class LevelRow:
    """The accuracy of one level."""

    name: str
    nodes: int
    exact: int  # Number of its counts that are published exactly or follow from exact counts.
    noise: str
    # Expected absolute error, averaged over the level, in counts; None if it is unknown.
    expected: float | None
    margin: str  # The error margin of its other counts, as text.
    # The largest error margin that the plan accepts; None if the plan names none.
    required: float | None = None
    # Whether the level's error margin is at most `required`; None if that is unknown.
    met: bool | None = None


@dataclass(frozen=True)
class Counts:
    """The counts, one entry each, parents before children; `parent` is the parent's position.

    `lower` and `upper` are the ends of an interval, None if there is none. `exact` distinguishes a
    count without noise from a count whose noise is most often zero.
    """

    level: tuple[int, ...]
    parent: tuple[int, ...]
    name: tuple[str, ...]
    value: tuple[int, ...]
    lower: tuple[int | None, ...]
    upper: tuple[int | None, ...]
    exact: tuple[bool, ...]
    # Noisy measurements, None at counts without one; None if the release publishes none.
    measured: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class Page:
    """The content of a page, as plain text."""

    title: str
    stamp: str | None  # Text at the top and bottom of the page if the release is a simulation.
    lead: tuple[str, ...]  # The release in a few sentences.
    protected: tuple[str, ...]
    unprotected: tuple[str, ...]
    sentence: str  # The guarantee as the certificate states it.
    details: tuple[Fact, ...]
    accuracy: tuple[str, ...]  # Meaning and limits of error margins and expected errors.
    levels: tuple[LevelRow, ...]  # One row for each level, coarse to fine.
    margin_label: str  # Heading of the column of error margins.
    # Whether bounds make errors depend on the counts, so that counts have intervals but no error
    # margin.
    bent: bool
    counts: Counts
    cite: tuple[str, ...]
    reuse: tuple[str, ...]
    checks: tuple[Fact, ...]
