"""Expected errors of a release, by simulated releases of counts that are no secret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.mechanism import Mechanism
from congenial.errors import CongenialError, InvariantError, NumericalError, UnsupportedError
from congenial.preview.comparison.methods import Unconstrained
from congenial.preview.comparison.outcome import LevelError, SizeError
from congenial.preview.comparison.tally import Tally
from congenial.randomness import seeded
from congenial.releases.model import Model
from congenial.types import IntArray

# Most simulated releases, and most values drawn for them.
DRAWS = 200
VALUES = 2_000_000
# Most values where margins cross, since such a release takes far longer than plain noise.
CROSSING_VALUES = 20_000
# Errors of a draw that are no fault of the plan.
UNLUCKY = (InvariantError, NumericalError, UnsupportedError)
# Most values of best tables, each of which fits a prior, and most products of all their passes.
FITTED_VALUES, FITTED_WORK = 100_000, 2e9


@dataclass(frozen=True)
class NotSimulated:
    """Why releases of some counts could not be simulated."""

    why: str


@dataclass(frozen=True, eq=False)
class SimulatedErrors:
    """Errors of simulated releases."""

    draws: int
    totals: IntArray  # shape (n,): Sum of the absolute errors of each count, or of each level.


@dataclass(frozen=True)
class Forecast:
    """Errors of simulated releases, by level and by size of the true count."""

    draws: int
    levels: tuple[LevelError, ...]
    sizes: tuple[SizeError, ...]


def forecast(
    model: Model, mechanism: Mechanism | Unconstrained, counts: IntArray, *, seed: int
) -> Forecast | NotSimulated:
    """Sum up the errors of `draws_of` seeded releases of `counts`."""
    drawn = _drawn(mechanism, counts, seed, draws_of(model))
    if isinstance(drawn, NotSimulated):
        return drawn
    tally = Tally(model, counts)
    tally.add(drawn)
    return Forecast(len(drawn), tally.levels(), tally.sizes())


def simulated_errors(
    mechanism: Mechanism, counts: IntArray, *, seed: int, draws: int
) -> SimulatedErrors | NotSimulated:
    """Add up the errors of each released count over seeded releases."""
    drawn = _drawn(mechanism, counts, seed, draws)
    if isinstance(drawn, NotSimulated):
        return drawn
    return SimulatedErrors(len(drawn), np.abs(drawn - counts).sum(axis=0))


def _drawn(
    mechanism: Mechanism | Unconstrained, counts: IntArray, seed: int, draws: int
) -> IntArray | NotSimulated:
    """Draw releases, shape (draws, n), or say why they cannot be drawn."""
    try:
        drawn = mechanism.sample(counts, size=draws, rng=seeded(seed))
    except MemoryError:
        return NotSimulated("this takes more memory than there is")
    except UNLUCKY as error:
        return not_simulated(error)
    return np.asarray(drawn, dtype=np.int64)


def not_simulated(error: CongenialError) -> NotSimulated:
    """Return why releases could not be simulated, given one of the errors `UNLUCKY`."""
    return NotSimulated(str(error).removesuffix("."))


def work_of_fit(model: Model) -> float:
    """Return the number of products in a pass of a plan's posterior; 0 for the other methods."""
    if model.plan.method.name != "posterior":
        return 0.0
    from congenial.inference.best_table import most_work

    return most_work(model.mechanism)


def draws_of(model: Model) -> int:
    """Number of releases of a plan to simulate, so that this takes little longer than a release."""
    work, nodes = work_of_fit(model), len(model.domain)
    if work > 0.0:
        return max(1, min(DRAWS, FITTED_VALUES // nodes, int(FITTED_WORK / work)))
    return draws_for(nodes, CROSSING_VALUES if model.plan.crossing else VALUES)


def draws_for(nodes: int, values: int = VALUES) -> int:
    """Number of releases to simulate, each of some counts, with at most some values in all."""
    return max(1, min(DRAWS, values // nodes))
