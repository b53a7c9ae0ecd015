"""Exact draws for sums with a few cycles, by a cut set (`sum_network.cutset.assignments`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.forest_sampler import Attempts, Conditioned, data_free_weights
from congenial.invariants.resolved import ResolvedInvariant, checked_draws, named
from congenial.noise.additive import Additive, checked_size
from congenial.randomness import Randomness, resolve
from congenial.sum_network import cutset, least_ceiling, sum_rows
from congenial.sum_network.cutset import (
    Assignments,
    CutCost,
    CutDraws,
    SumSystem,
    cut_cost,
    forest_left,
    prepare,
    sample,
    summable,
    weigh,
)
from congenial.types import BoolArray, FloatArray, IntArray
from congenial.wording import many


@dataclass(frozen=True, eq=False)
class CutConditioned(Conditioned):
    """A mechanism conditioned on sums with a few cycles, drawn exactly by a cut set.

    Made by `congenial.condition`. The questions and their answers are those of `Conditioned`; the
    forest has the sums that remain when the cut set is fixed.
    """

    system: SumSystem = field(kw_only=True)
    cost: CutCost = field(kw_only=True)

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw releases, each independent, with exactly the law."""
        counts = self._checked(x)
        rows = checked_size(size)
        source = resolve(rng)
        noise = sample(self._draws(counts), rows, source)
        out = checked_draws(self.resolved, counts + noise[:, : self.mechanism.n], counts)
        return out[0] if size is None else out

    def _log_mass(self, counts: IntArray) -> float:
        return self._weighed(counts).log_total + self.log_mode

    def log_ceiling(self, x: npt.ArrayLike, *, thorough: bool = False) -> float:
        """Bound `log_normalizer` from above; inf unless `thorough`. See `Conditioned`."""
        counts, sums = self._checked(x), self.sums
        if not thorough:
            return np.inf
        return least_ceiling(sum_rows(sums.rows, sums.size), self._weights(counts)) + self.log_mode

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Law of one released value; see `Conditioned.marginal`."""
        (values,), probabilities = self.joint([node], x)
        return values, probabilities

    @property
    def sums(self) -> SumSystem:
        """The sums as rows."""
        return self.system

    @property
    def _tally(self) -> int | None:
        return self.cost.tally

    @property
    def sums_text(self) -> str:
        """How many sums form cycles, and what opens them."""
        system, cost = self.sums, self.cost
        domain = self.mechanism.domain or self.resolved.counted
        first = [system.name(v) if v >= system.n else named(domain, v) for v in cost.cut[:4]]
        more = f" and {len(cost.cut) - 4} more" if len(cost.cut) > 4 else ""
        listed = f"enumerating {many(len(cost.cut), 'value')} ({'; '.join(first)}{more})"
        held = listed if first else ""
        carried = "" if cost.tally is None else "one sum that is carried along with the others"
        opened = " and ".join(filter(None, (held, carried)))
        return f"{len(system.rows)} sums form cycles, opened by {opened}"

    def explain(self) -> str:
        """Say which sampler draws, why, and at what cost."""
        ignored = " This estimate ignores bounds and uses no confidential counts."
        estimate = "" if self.data_free else ignored
        return (
            f"exact sampler by a cut set: {self.sums_text}. {self.cost}{estimate} {self._law_text} "
            f"Each draw is independent. Its law is exactly the stated one.{self._untried}"
        )

    def attempts(self, x: npt.ArrayLike) -> Attempts:
        """Return attempts at draws; see `Conditioned.attempts`."""
        draws, n = self._draws(self._checked(x)), self.mechanism.n

        def attempt(rows: int, rng: Randomness) -> tuple[BoolArray, IntArray]:
            accepted, noise = cutset.attempt(draws, rows, rng)
            return accepted, noise[:, :n]

        return Attempts(cutset.mass(draws), attempt)

    @cached_property
    def _free_draws(self) -> CutDraws:
        return prepare(self._free_weighed)

    def _draws(self, counts: IntArray) -> CutDraws:
        return self._free_draws if self.data_free else prepare(self._weigh(counts))

    @cached_property
    def _free_weighed(self) -> Assignments:
        return self._weigh(np.zeros(self.mechanism.n, dtype=np.int64))

    def _weighed(self, counts: IntArray) -> Assignments:
        return self._free_weighed if self.data_free else self._weigh(counts)

    def _weigh(self, counts: IntArray) -> Assignments:
        return weigh(self.sums, self._weights(counts), tally=self._tally)


def cut_conditioned(
    mechanism: Additive, resolved: ResolvedInvariant, system: SumSystem
) -> CutConditioned | None:
    """Condition on a system with cycles; return None if that costs too much.

    The cost is estimated from the sums and the noise, not from confidential counts.
    """
    unary = data_free_weights(mechanism, resolved, system.fixed, system.size).each
    cost = cut_cost(system, unary) if summable(unary, system.every_fixed) else None
    if cost is None:
        return None
    forest = forest_left(system, cost)
    return CutConditioned(mechanism, resolved, forest, system.fixed, system=system, cost=cost)
