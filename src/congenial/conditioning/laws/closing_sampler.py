"""Exact draws for sums with cycles, by rejection of the values that close them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.cutset_sampler import CutConditioned, cut_conditioned
from congenial.conditioning.laws.cycles import WithCycles
from congenial.conditioning.laws.forest_sampler import Attempts, data_free_weights
from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.sum_network import closing
from congenial.sum_network.closing import Closing, ClosingDraws
from congenial.sum_network.cutset import SumSystem, too_costly
from congenial.types import FloatArray, IntArray
from congenial.wording import many

# Most values that attempts at one draw may take on average, if no bound is reached.
_MOST = 2.0**29


@dataclass(frozen=True, eq=False)
class ClosingConditioned(WithCycles):
    """A mechanism conditioned on sums with cycles, drawn exactly by rejection.

    Made by `congenial.condition`, where noise is wide. The questions are those of `Conditioned`.
    Those about the law are answered by a cut set, or refused. The forest has the sums that remain
    without the values that close cycles.
    """

    closings: tuple[Closing, ...] = field(kw_only=True)
    # About the share of attempts that are accepted, without bounds: the least of all closings.
    accepted: float = field(kw_only=True)
    values: float = field(kw_only=True)  # About how many values one draw takes, without bounds.

    def draws_within(self, work: float) -> int:
        """Estimate how many draws some work allows; see `WithCycles.draws_within`."""
        return int(work / self.values)

    def _noise(self, counts: IntArray, rows: int, rng: Randomness) -> IntArray:
        return closing.sample(self._draws(counts), self.system.size, rows, rng)

    def attempts(self, x: npt.ArrayLike) -> Attempts:
        """Return attempts at draws; see `Conditioned.attempts`."""
        draws = self._free_draws if self.data_free else self._draws(self._checked(x))
        return self._attempts(
            closing.mass(draws), partial(closing.attempt, draws, self.system.size)
        )

    def marginals(
        self, nodes: Sequence[int], x: npt.ArrayLike
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the law of each of several released values; see `Conditioned.marginals`."""
        return self._law.marginals(nodes, x)

    def law_of_noise(self, v: int, counts: IntArray) -> tuple[IntArray, FloatArray]:
        """Law of the noise of one variable; see `Conditioned.law_of_noise`."""
        return self._law.law_of_noise(v, counts)

    def _log_mass(self, counts: IntArray) -> float:
        law = self._law
        return law.log_mass if self.data_free else law.log_normalizer(counts)

    @cached_property
    def by_cut(self) -> CutConditioned | None:
        """The same law by a cut set; None if that costs too much."""
        return cut_conditioned(self.mechanism, self.resolved, self.system)

    @property
    def _law(self) -> CutConditioned:
        if self.by_cut is None:
            raise too_costly()
        return self.by_cut

    @property
    def _tally(self) -> int | None:
        return None if self.by_cut is None else self.by_cut.cost.tally

    @property
    def sums_text(self) -> str:
        """How many sums form cycles, and what closes them."""
        closers = np.concatenate([one.closers for one in self.closings]).tolist()
        apart = sum(bool(one.trees) for one in self.closings)
        return (
            f"{len(self.system.rows)} sums form cycles, closed by {many(len(closers), 'value')} "
            f"({self._names(closers)}), which follow from the others"
            + (f"; {apart} sets of sums are drawn apart" if apart > 1 else "")
        )

    def explain(self) -> str:
        """Say which sampler draws, why, and at what cost."""
        bounds = "" if self.data_free else " without bounds; with them, that depends on the counts"
        return (
            f"exact sampler by rejection: {self.sums_text}. About {self.accepted:.2g} of all "
            f"attempts are accepted{bounds}. {self._law_text} Each draw is independent. Its law is "
            f"exactly the stated one.{self._untried}"
        )

    @cached_property
    def _free_draws(self) -> list[ClosingDraws]:
        return self._filled(np.zeros(self.mechanism.n, dtype=np.int64))

    def _draws(self, counts: IntArray) -> list[ClosingDraws]:
        return self._free_draws if self.data_free else self._filled(counts)

    def _filled(self, counts: IntArray) -> list[ClosingDraws]:
        return closing.prepare(self.closings, self._shared_weights(counts, None))


def closing_conditioned(
    mechanism: Additive, resolved: ResolvedInvariant, system: SumSystem
) -> ClosingConditioned | None:
    """Condition on a system with cycles by rejection; return None if no such way is affordable.

    The cost is estimated from the sums and the noise, not from confidential counts.
    """
    found = closing.find_closings(system)
    if found is None or not _covers(resolved, system, found):
        return None
    weights = data_free_weights(mechanism, resolved, system.fixed, system.size)
    try:
        draws = closing.prepare(found, weights)
    except (InfeasibleError, NumericalError, UnsupportedError):
        return None
    shares = [closing.share_accepted(one) for one in draws]
    if min(shares) <= 0.0:
        return None
    values = sum(one.variables.size / share for one, share in zip(draws, shares, strict=True))
    if values > _MOST:
        return None
    return ClosingConditioned(
        mechanism,
        resolved,
        closing.forest_of(found, system.size),
        system.fixed,
        system=system,
        closings=found,
        accepted=min(shares),
        values=values,
    )


def _covers(resolved: ResolvedInvariant, system: SumSystem, found: tuple[Closing, ...]) -> bool:
    """Whether bounds leave about as many attempts accepted as there are without them.

    Bounds press all counts in one direction. So closers must be tilted, or each sum be that of
    counts alone, which hold each other.
    """
    if not resolved.has_inequalities:
        return True
    counts_alone = system.size == system.n  # neither slacks nor block sums
    alike = counts_alone and all(len(set(row.values())) == 1 for row in system.rows)
    pressed = [one for one in found if one.trees]
    tilted = all(one.owns_sums and one.nested for one in pressed)
    return not system.slacks and (alike or tilted)
