"""Exact draws for sums with a few cycles, by a cut set (`sum_network.cutset.assignments`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.cycles import WithCycles
from congenial.conditioning.laws.forest_sampler import Attempts, data_free_weights
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.sum_network import cutset
from congenial.sum_network.cutset import (
    MOST_WORK,
    Assignments,
    CutCost,
    CutDraws,
    SumSystem,
    cut_cost,
    forest_left,
    joint_law,
    prepare,
    sample,
    summable,
    weigh,
)
from congenial.types import FloatArray, IntArray
from congenial.wording import many


@dataclass(frozen=True, eq=False)
class CutConditioned(WithCycles):
    """A mechanism conditioned on sums with a few cycles, drawn exactly by a cut set.

    Made by `congenial.condition`. The questions and their answers are those of `Conditioned`; the
    forest has the sums that remain when the cut set is fixed.
    """

    cost: CutCost = field(kw_only=True)

    def draws_within(self, work: float) -> int:
        """Estimate how many draws some work allows; see `WithCycles.draws_within`."""
        # tables are filled for each assignment when it is weighed, and when it is drawn from
        return max(int((work - 2.0 * self.cost.work) / self.system.size), 0)

    def _noise(self, counts: IntArray, rows: int, rng: Randomness) -> IntArray:
        return sample(self._draws(counts), rows, rng)

    def _log_mass(self, counts: IntArray) -> float:
        return self._weighed(counts).log_total + self.log_mode

    def marginals(
        self, nodes: Sequence[int], x: npt.ArrayLike
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the law of each of several released values; see `Conditioned.marginals`."""
        return (self.marginal(v, x) for v in nodes)

    def law_of_noise(self, v: int, counts: IntArray) -> tuple[IntArray, FloatArray]:
        """Law of the noise of one variable; see `Conditioned.law_of_noise`."""
        weights, zeros = self._weights(counts), np.zeros_like(counts)
        (noise,), probabilities = joint_law(self.sums, weights, zeros, [v], self._tally)
        return noise, probabilities

    @property
    def _tally(self) -> int | None:
        return self.cost.tally

    @property
    def sums_text(self) -> str:
        """How many sums form cycles, and what opens them."""
        system, cost = self.system, self.cost
        listed = f"enumerating {many(len(cost.cut), 'value')} ({self._names(cost.cut)})"
        held = listed if cost.cut else ""
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
        draws = self._free_draws if self.data_free else self._draws(self._checked(x))
        return self._attempts(cutset.mass(draws), partial(cutset.attempt, draws))

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
    mechanism: Additive,
    resolved: ResolvedInvariant,
    system: SumSystem,
    most: int = MOST_WORK,
) -> CutConditioned | None:
    """Condition on a system with cycles; return None if it takes too many multiplications.

    The cost is estimated from the sums and the noise, not from confidential counts.
    """
    unary = data_free_weights(mechanism, resolved, system.fixed, system.size).each
    cost = cut_cost(system, unary, most) if summable(unary, system.every_fixed) else None
    if cost is None:
        return None
    forest = forest_left(system, cost)
    return CutConditioned(mechanism, resolved, forest, system.fixed, system=system, cost=cost)
