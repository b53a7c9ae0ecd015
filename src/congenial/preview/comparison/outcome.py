"""The methods that are compared, and the errors of their releases."""

from __future__ import annotations

from dataclasses import dataclass

# Quantiles of the absolute error in the tables.
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True)
class Contender:
    """One way to make a release.

    Attributes
    ----------
    name : str
        Its name in tables.
    method : {"conditioning", "imaging", "topdown", "posterior", "noise"}
        As in a plan; "noise" adds noise and does nothing more.
    noise : {"discrete-laplace", "discrete-gaussian"}
    norm : {"l2", "l1"}
        For imaging.
    """

    name: str
    method: str
    noise: str
    norm: str = "l2"


@dataclass(frozen=True)
class LevelError:
    """Errors of one level's counts, over all its nodes and all releases.

    Attributes
    ----------
    scale : float or None
        Scale of the noise; sigma for Gaussian noise, None for a level without noise.
    l1 : float
        Mean absolute error of a count.
    l1_error : float
        Its standard error, from release to release; NaN of a single release.
    l2 : float
        Root of the mean squared error.
    quantiles : tuple of float
        Of the absolute error, at `QUANTILES`.
    """

    level: str
    nodes: int
    scale: float | None
    l1: float
    l1_error: float
    l2: float
    quantiles: tuple[float, ...]


@dataclass(frozen=True)
class SizeError:
    """Errors of the counts of one size at one level.

    Attributes
    ----------
    low, high : int
        The true counts are from `low` to `high`, both included.
    nodes : int
        Nodes of that size, those published exactly left out.
    l1 : float
        Mean absolute error of a count.
    bias : float
        Mean of released less true count.
    standard_error : float
        That of the bias, from release to release; NaN of a single release.
    """

    level: str
    low: int
    high: int
    nodes: int
    l1: float
    bias: float
    standard_error: float


@dataclass(frozen=True)
class Seconds:
    """Elapsed time of releases on this machine, in seconds.

    Attributes
    ----------
    first : float
        Preparation and one release.
    further : float
        Each further release of the same counts.
    """

    first: float
    further: float


@dataclass(frozen=True)
class Result:
    """The outcome of one contender's simulated releases.

    Attributes
    ----------
    epsilon, delta : float
        The final guarantee.
    guarantee : str
        In a sentence.
    obeys : bool
        Whether every release satisfied the invariants of the plan.
    levels : tuple of LevelError
        Coarse to fine.
    """

    contender: Contender
    epsilon: float
    delta: float
    guarantee: str
    obeys: bool
    levels: tuple[LevelError, ...]
    sizes: tuple[SizeError, ...]
    seconds: Seconds


@dataclass(frozen=True)
class Refused:
    """A contender that does not fit the plan, and the reason."""

    contender: Contender
    reason: str
