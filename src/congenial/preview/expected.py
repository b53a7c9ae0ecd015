"""Expected errors of a release, by simulated releases of counts that are no secret."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.accounting.mechanism import Mechanism
from congenial.errors import NumericalError, UnsupportedError
from congenial.randomness import seeded
from congenial.types import FloatArray, IntArray

# Simulated releases, and the largest number of values drawn for them.
DRAWS = 200
VALUES = 2_000_000


@dataclass(frozen=True)
class NotSimulated:
    """Why releases of some counts could not be simulated."""

    why: str


def expected_errors(
    mechanism: Mechanism, counts: IntArray, *, seed: int
) -> FloatArray | NotSimulated:
    """Mean absolute error of each released count, were these the true counts.

    Returns
    -------
    ndarray of float64, shape (n,), or NotSimulated
        In counts; a mean over `draws_for` seeded draws.
    """
    try:
        drawn = mechanism.sample(counts, size=draws_for(counts.size), rng=seeded(seed))
    except MemoryError:
        return NotSimulated("this takes more memory than there is")
    except (NumericalError, UnsupportedError) as error:  # hard counts, and no fault of the plan
        return NotSimulated(str(error).removesuffix("."))
    found: FloatArray = np.abs(drawn - counts).mean(axis=0)
    return found


def draws_for(nodes: int) -> int:
    """Number of releases to simulate for a number of counts."""
    return max(1, min(DRAWS, VALUES // nodes))
