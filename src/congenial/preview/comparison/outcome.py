"""The methods that are compared, and the errors of their releases."""

from __future__ import annotations

from dataclasses import dataclass

from congenial.namespaces import renamed

# Quantiles of the absolute error in the tables.
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Contender:
    """One way to make a release."""

    name: str  # Its name in tables.
    method: str  # As in a plan; "noise" adds noise and does nothing more.
    noise: str
    norm: str = "l2"  # For imaging.


@dataclass(frozen=True)
class LevelError:
    """Errors of one level's counts, over all its nodes and all releases."""

    level: str
    nodes: int
    # Scale of the noise; sigma for Gaussian noise, None for a level without noise.
    scale: float | None
    l1: float  # Mean absolute error of a count.
    l1_error: float  # Standard error of `l1`, over releases; NaN for a single release.
    l2: float  # Root of the mean squared error.
    quantiles: tuple[float, ...]  # Of the absolute error, at `QUANTILES`.


@dataclass(frozen=True)
class SizeError:
    """Errors of the counts of one size at one level."""

    level: str
    # Smallest and largest true count of this size.
    low: int
    high: int
    nodes: int  # Nodes of that size that are not published exactly.
    l1: float  # Mean absolute error of a count.
    bias: float  # Mean of released less true count.
    standard_error: float  # Of the bias, over releases; NaN for a single release.


@dataclass(frozen=True)
class Seconds:
    """Elapsed time of releases on this machine, in seconds."""

    first: float  # Preparation and one release.
    further: float  # Each further release of the same counts.


@dataclass(frozen=True)
class Result:
    """The outcome of one contender's simulated releases."""

    contender: Contender
    # `epsilon` and `delta`: The final guarantee.
    epsilon: float
    delta: float
    guarantee: str  # In a sentence.
    satisfied: bool  # Whether every release satisfied the invariants of the plan.
    levels: tuple[LevelError, ...]  # Coarse to fine.
    sizes: tuple[SizeError, ...]
    seconds: Seconds
    obeys = renamed("obeys", "satisfied")


@dataclass(frozen=True)
class Refused:
    """A contender that does not fit the plan, and the reason."""

    contender: Contender
    reason: str
