"""Expected errors of a release, by simulated releases of counts that are no secret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.mechanism import Mechanism
from congenial.errors import InvariantError, NumericalError, UnsupportedError
from congenial.preview.comparison.outcome import LevelError, SizeError
from congenial.preview.comparison.tally import Tally
from congenial.randomness import seeded
from congenial.releases.model import Model
from congenial.types import FloatArray, IntArray

# Simulated releases, and the largest number of values drawn for them.
DRAWS = 200
VALUES = 2_000_000
# The same of best tables, for each of which a prior is fitted, and the products of all passes.
FITTED_VALUES, FITTED_WORK = 100_000, 2e9


@dataclass(frozen=True)
class NotSimulated:
    """Why releases of some counts could not be simulated."""

    why: str


@dataclass(frozen=True)
class Forecast:
    """Errors of simulated releases, by level and by size of the true count."""

    draws: int
    levels: tuple[LevelError, ...]
    sizes: tuple[SizeError, ...]


def forecast(
    model: Model, mechanism: Mechanism, counts: IntArray, *, seed: int
) -> Forecast | NotSimulated:
    """Sum up the errors of `draws_for` seeded releases, were these the true counts."""
    drawn = _drawn(mechanism, counts, seed, work_of_fit(model))
    if isinstance(drawn, NotSimulated):
        return drawn
    tally = Tally(model, counts)
    tally.add(drawn)
    return Forecast(len(drawn), tally.levels(), tally.sizes())


def expected_errors(
    mechanism: Mechanism, counts: IntArray, *, seed: int, work: float = 0.0
) -> FloatArray | NotSimulated:
    """Mean absolute error of each released count, were these the true counts.

    Returns ndarray of float64, shape (n,), or NotSimulated: in counts; a mean over `draws_for`
    seeded draws.
    """
    drawn = _drawn(mechanism, counts, seed, work)
    if isinstance(drawn, NotSimulated):
        return drawn
    found: FloatArray = np.abs(drawn - counts).mean(axis=0)
    return found


def _drawn(
    mechanism: Mechanism, counts: IntArray, seed: int, work: float
) -> IntArray | NotSimulated:
    """Draw releases, shape (`draws_for`, n), or say why they cannot be drawn."""
    try:
        draws = draws_for(counts.size, work)
        drawn = mechanism.sample(counts, size=draws, rng=seeded(seed))
    except MemoryError:
        return NotSimulated("this takes more memory than there is")
    except (InvariantError, NumericalError, UnsupportedError) as error:  # no fault of the plan
        return NotSimulated(str(error).removesuffix("."))
    return np.asarray(drawn, dtype=np.int64)


def work_of_fit(model: Model) -> float:
    """Return the products of one pass of a plan's posterior; 0 for the other methods."""
    if model.plan.method.name != "posterior":
        return 0.0
    from congenial.inference.best_table import work

    return work(model.mechanism)


def draws_for(nodes: int, work: float = 0.0) -> int:
    """Number of releases to simulate for a number of counts, and the `work_of_fit` of each."""
    if work == 0.0:
        return max(1, min(DRAWS, VALUES // nodes))
    return max(1, min(DRAWS, FITTED_VALUES // nodes, int(FITTED_WORK / work)))
