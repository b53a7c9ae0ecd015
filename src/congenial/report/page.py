"""The content of the page about a release, apart from its layout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """A part of the guarantee or of the release: its name, and its lines of text."""

    name: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class LevelRow:
    """The accuracy of one level.

    Attributes
    ----------
    exact : int
        How many of them are published exactly, or follow from counts that are.
    expected : float or None
        Expected absolute error, averaged over the level, in counts; None where it is not known.
    margin : str
        How far the others may be off.
    required : float or None
        The largest margin that the plan accepts; None where it names none.
    met : bool or None
        Whether the level keeps to it; None where that is not known.
    """

    name: str
    nodes: int
    exact: int
    noise: str
    expected: float | None
    margin: str
    required: float | None = None
    met: bool | None = None


@dataclass(frozen=True)
class Counts:
    """The counts, an entry each, parents before their children; `parent` is the place of one.

    `lower` and `upper` are the ends of an interval, None where there is none; `exact`
    distinguishes a count published exactly from one whose noise is most often zero.
    """

    level: tuple[int, ...]
    parent: tuple[int, ...]
    name: tuple[str, ...]
    value: tuple[int, ...]
    lower: tuple[int | None, ...]
    upper: tuple[int | None, ...]
    exact: tuple[bool, ...]


@dataclass(frozen=True)
class Page:
    """Everything that a page says, as plain text.

    Attributes
    ----------
    stamp : str or None
        Said first and last where the release is a simulation.
    lead : tuple of str
        The release in a few sentences.
    sentence : str
        The guarantee as the certificate states it.
    accuracy : tuple of str
        Meaning and limits of error margins and expected errors.
    levels : tuple of LevelRow
        Coarse to fine.
    margin_label : str
        Heading of the margins.
    bent : bool
        Whether bounds bend the error, so that a count has an interval and no margin.
    """

    title: str
    stamp: str | None
    lead: tuple[str, ...]
    protected: tuple[str, ...]
    unprotected: tuple[str, ...]
    sentence: str
    details: tuple[Fact, ...]
    accuracy: tuple[str, ...]
    levels: tuple[LevelRow, ...]
    margin_label: str
    bent: bool
    counts: Counts
    cite: tuple[str, ...]
    reuse: tuple[str, ...]
    checks: tuple[Fact, ...]
