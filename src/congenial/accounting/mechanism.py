"""A mechanism draws releases and states what one costs: conditioned, imaged or mixed noise."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.randomness import Randomness
from congenial.types import Values


class Mechanism(Protocol):
    """Draws releases, and states the privacy guarantee of one."""

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw releases of shape (n,) or (size, n) at confidential counts `x`, shape (n,)."""

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw."""

    def explain(self) -> str:
        """Say how a release is drawn, and why so."""


class Certified(Mechanism, Protocol):
    """A mechanism whose draws have a known numerical error, as every release needs."""

    @property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law, for every dataset."""


class Measuring(Certified, Protocol):
    """Draws a release in two steps, noisy measurements first: an image."""

    def measure(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> npt.NDArray[np.int64]:
        """Draw measurements of shape (n,) at confidential counts `x`; exact where published so."""

    def apply(self, noisy: npt.ArrayLike, rng: Randomness) -> npt.NDArray[np.int64]:
        """Make a release of measurements."""
