"""The records of a run: what is measured, against which target, and what was seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Measure:
    """One number that a case yields.

    Attributes
    ----------
    name : str
    unit : str
    target : float or None
        None where the number is only reported.
    better : {"lower", "higher"}
        Which side of the target meets it.
    """

    name: str
    unit: str
    target: float | None = None
    better: Literal["lower", "higher"] = "lower"

    def met(self, value: float | None) -> bool | None:
        """Whether a value meets the target; None where there is none, False without a value."""
        if self.target is None:
            return None
        if value is None:
            return False
        return value <= self.target if self.better == "lower" else value >= self.target


@dataclass(frozen=True)
class Seen:
    """One number as measured.

    Attributes
    ----------
    measure : str
        Name of the case's measure.
    value : float
    low, high : float or None
        Smallest and largest over the repetitions.
    detail : dict
        Further numbers behind it, by name, with the unit in the name.
    note : str
    """

    measure: str
    value: float
    low: float | None = None
    high: float | None = None
    detail: dict[str, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Case:
    """One piece of work of a row, run in a process of its own.

    Attributes
    ----------
    row, name : str
    measures : tuple of Measure
    limit : float
        Seconds of processor time after which it is stopped.
    run : callable
        Yields what it sees, as soon as it is known.
    environment : mapping of str to str
        Variables that its process is given besides.
    """

    row: str
    name: str
    measures: tuple[Measure, ...]
    limit: float
    run: Callable[[], Iterator[Seen]]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Line:
    """One line of the results: a measure of a case, with what was seen or why nothing was."""

    row: str
    case: str
    measure: str
    unit: str
    target: float | None
    better: str
    value: float | None
    low: float | None
    high: float | None
    met: bool | None
    detail: dict[str, float]
    note: str


def line(case: Case, measure: Measure, seen: Seen | None, why: str) -> Line:
    """Return the line of a measure; `why` says what happened where nothing was seen."""
    value = None if seen is None else seen.value
    return Line(
        row=case.row,
        case=case.name,
        measure=measure.name,
        unit=measure.unit,
        target=measure.target,
        better=measure.better,
        value=value,
        low=None if seen is None else seen.low,
        high=None if seen is None else seen.high,
        met=measure.met(value),
        detail={} if seen is None else seen.detail,
        note=why if seen is None else seen.note,
    )
