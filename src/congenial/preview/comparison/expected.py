"""Expected errors of a release, by simulated releases of counts that are no secret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.mechanism import Mechanism
from congenial.errors import NumericalError, UnsupportedError
from congenial.preview.comparison.outcome import LevelError, SizeError
from congenial.preview.comparison.tally import Tally
from congenial.randomness import seeded
from congenial.releases.model import Model
from congenial.types import FloatArray, IntArray

# Simulated releases, and the largest number of values drawn for them.
DRAWS = 200
VALUES = 2_000_000


@dataclass(frozen=True)
class NotSimulated:
    """Why releases of some counts could not be simulated."""

    why: str


@dataclass(frozen=True)
class Forecast:
    """Errors of simulated releases, by level and by size of the true count."""

    levels: tuple[LevelError, ...]
    sizes: tuple[SizeError, ...]


def forecast(
    model: Model, mechanism: Mechanism, counts: IntArray, *, seed: int
) -> Forecast | NotSimulated:
    """Sum up the errors of `draws_for` seeded releases, were these the true counts."""
    drawn = _drawn(mechanism, counts, seed)
    if isinstance(drawn, NotSimulated):
        return drawn
    tally = Tally(model, counts)
    tally.add(drawn)
    return Forecast(tally.levels(), tally.sizes())


def expected_errors(
    mechanism: Mechanism, counts: IntArray, *, seed: int
) -> FloatArray | NotSimulated:
    """Mean absolute error of each released count, were these the true counts.

    Returns ndarray of float64, shape (n,), or NotSimulated: in counts; a mean over `draws_for`
    seeded draws.
    """
    drawn = _drawn(mechanism, counts, seed)
    if isinstance(drawn, NotSimulated):
        return drawn
    found: FloatArray = np.abs(drawn - counts).mean(axis=0)
    return found


def _drawn(mechanism: Mechanism, counts: IntArray, seed: int) -> IntArray | NotSimulated:
    """Draw releases, shape (`draws_for`, n), or say why they cannot be drawn."""
    try:
        drawn = mechanism.sample(counts, size=draws_for(counts.size), rng=seeded(seed))
    except MemoryError:
        return NotSimulated("this takes more memory than there is")
    except (NumericalError, UnsupportedError) as error:  # hard counts, and no fault of the plan
        return NotSimulated(str(error).removesuffix("."))
    return np.asarray(drawn, dtype=np.int64)


def draws_for(nodes: int) -> int:
    """Number of releases to simulate for a number of counts."""
    return max(1, min(DRAWS, VALUES // nodes))
