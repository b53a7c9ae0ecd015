"""What draws a release, whatever obeys the mandates."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.randomness import Randomness


class Engine(Protocol):
    """What draws a release: a conditioned or an imaged mechanism."""

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> npt.NDArray[np.int64]:
        """Draw releases of shape (n,) or (size, n) at confidential counts `x`, shape (n,)."""

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw."""

    def explain(self) -> str:
        """Say how a release is drawn, and why so."""


class Measuring(Protocol):
    """What makes a release of noisy measurements: an image."""

    def measure(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> npt.NDArray[np.int64]:
        """Draw measurements of shape (n,) at confidential counts `x`; exact where published so."""

    def apply(self, noisy: npt.ArrayLike, rng: Randomness) -> npt.NDArray[np.int64]:
        """Make a release of measurements."""
