"""Mechanisms conditioned on sums with cycles, whose law is not that of a forest's tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Never

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.forest_sampler import Attempts, Conditioned
from congenial.invariants.resolved import checked_draws, named
from congenial.noise.additive import checked_size
from congenial.randomness import Probability, Randomness, resolve
from congenial.sum_network import least_ceiling, sum_rows
from congenial.sum_network.cutset import SumSystem
from congenial.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class WithCycles(Conditioned):
    """A mechanism conditioned on sums with cycles.

    The questions and their answers are those of `Conditioned`. The forest has the sums that remain
    once some variables are fixed, or left out.
    """

    system: SumSystem = field(kw_only=True)

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw releases, each independent, with exactly the law."""
        counts = self._checked(x)
        rows = checked_size(size)
        noise = self._noise(counts, rows, resolve(rng))
        out = checked_draws(self.resolved, counts + noise[:, : self.mechanism.n], counts)
        return out[0] if size is None else out

    def log_ceiling(self, x: npt.ArrayLike, *, thorough: bool = False) -> float:
        """Bound `log_normalizer` from above; inf unless `thorough`. See `Conditioned`."""
        counts, sums = self._checked(x), self.sums
        if not thorough:
            return np.inf
        return least_ceiling(sum_rows(sums.rows, sums.size), self._weights(counts)) + self.log_mode

    @property
    def sums(self) -> SumSystem:
        """The sums as rows."""
        return self.system

    def draws_within(self, work: float) -> int:
        """Estimate how many draws without bounds some work allows: values drawn, and products."""
        raise NotImplementedError

    def _noise(self, counts: IntArray, rows: int, rng: Randomness) -> IntArray:
        """Draw the noise of all variables, shape (rows, size)."""
        raise NotImplementedError

    def _attempts(
        self, mass: Probability, attempt: Callable[[int, Randomness], tuple[BoolArray, IntArray]]
    ) -> Attempts:
        """Return attempts of which only the noise of the queries is taken."""

        def noise_of_queries(rows: int, rng: Randomness) -> tuple[BoolArray, IntArray]:
            accepted, noise = attempt(rows, rng)
            return accepted, noise[:, : self.mechanism.n]

        return Attempts(mass, noise_of_queries)

    def _names(self, variables: Sequence[int]) -> str:
        """Name the first few variables."""
        system, domain = self.system, self.mechanism.domain or self.resolved.counted
        first = [system.name(v) if v >= system.n else named(domain, v) for v in variables[:4]]
        more = f" and {len(variables) - 4} more" if len(variables) > 4 else ""
        return f"{'; '.join(first)}{more}"

    def _compiled(self, *_: object, **__: object) -> Never:
        raise AssertionError("tables of the forest alone have another law")
