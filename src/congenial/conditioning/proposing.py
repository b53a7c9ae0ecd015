"""Common parts of the samplers by independent proposals: candidates, weights, bounds, refusals."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours, conditioned_guarantee
from congenial.conditioning.laws.delegate import Delegate, same_law
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.normal import ConditionedGaussian
from congenial.conditioning.laws.subspace import subspace
from congenial.conditioning.proposal import ByProposals, Placed, largest_noise, place
from congenial.errors import ArgumentError, NumericalError, PrivacyError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.kernels.numerics import elementwise, laws
from congenial.noise.additive import Additive, checked_size
from congenial.noise.law import check_kernels
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray, Values

# Total variation between a release and its law, apart from rounding.
SHORTFALL = 2.0**-40
# Most proposals for one release.
_MOST_PROPOSALS = 1 << 22
# Most proposals of a study for one draw, on average over the draws of a call.
_ATTEMPTS = 2_000_000
# Most numbers in memory at once.
_BLOCK = 1 << 21


class Batch(NamedTuple):
    """Candidates: noise (r, t, n), log weights (r, t) and log uniform variables (r, t)."""

    noise: FloatArray
    log_weights: FloatArray
    log_uniforms: FloatArray


@dataclass(frozen=True, eq=False)
class Proposing(Delegate):
    """A mechanism conditioned on an invariant, sampled from proposals on an index set.

    The weight of a candidate is p / q, the density of the noise over that of the proposal, relative
    to its value at noise 0. It is 0 outside the inequalities.
    """

    placed: Placed
    name: ClassVar[str]
    needs_widened: ClassVar[bool] = True

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw independent releases; arguments and result are those of `Additive.sample`.

        Raises PrivacyError without a seed if no release can be made: under inequalities, for
        continuous noise, or if no bound on the error is known. Raises UnsupportedError if one
        release takes too many proposals, NumericalError if a study makes too many attempts.
        """
        rows = checked_size(size)
        source = resolve(rng)
        if source.private and (reason := self._not_released):
            raise PrivacyError(
                f"draws of sampler {self.name!r} cannot be released: {reason}; give "
                "rng=congenial.seeded(n) for a study, or use sampler='exact' where it applies."
            )
        draw = self._fixed_work if source.private else self._for_study
        counts = self._checked(x)
        out = self.released(counts, draw(counts, rows, source))
        return out[0] if size is None else out

    def _fixed_work(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        """Return noise of `rows` releases, shape (rows, n); the work is equal for all datasets."""
        raise NotImplementedError

    def _for_study(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        """Return noise of `rows` draws, whose work may depend on the data."""
        return self._fixed_work(counts, rows, source)

    @property
    def data_free(self) -> bool:
        """Whether the law of the noise is the same for every dataset (equalities only)."""
        return not self.resolved.has_inequalities

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw; delta includes its distance from the law."""
        if reason := self._not_released:
            raise PrivacyError(
                f"no guarantee ({neighbours!r} or other) can be given for sampler {self.name!r}: "
                f"{reason}; use sampler='exact' where it applies, or image with congenial.image."
            )
        return conditioned_guarantee(
            self.mechanism, self.resolved, neighbours, sampler_error=self.error_bound
        )

    @cached_property
    def error_bound(self) -> float:
        """Bound on the total variation between a release and its law; 1 if none can be made.

        Notes
        -----
        After t independent proposals it is ``(1 - 1/R) ** t`` with R = sup p*/q, whether the first
        one accepted is taken or the chain's state (Mengersen and Tweedie 1996, Theorem 2.1). The
        rounding error is counted for every proposal, see `_rounding`.
        """
        if self._not_released:
            return 1.0
        return min(1.0, SHORTFALL + self.steps * self._rounding)

    @cached_property
    def steps(self) -> int:
        """Proposals for one release, equal for all datasets; UnsupportedError if too many."""
        # minus the possible rounding error
        chance = elementwise.exp(-self.log_ratio_free) * (1.0 - 1e-6)
        needed = (
            elementwise.log(SHORTFALL) / elementwise.log1p(-chance) if chance > 0.0 else math.inf
        )
        if not needed <= _MOST_PROPOSALS:
            raise UnsupportedError(
                f"one release would take {needed:.1e} proposals, more than {_MOST_PROPOSALS}; use "
                "sampler='exact'."
            )
        return math.ceil(needed)

    @cached_property
    def log_ratio_free(self) -> float:
        """Log of R = sup p*/q under equalities alone, equal for all data; inf if none."""
        if isinstance(self.exact, Conditioned):
            return self._ratio(self.exact.log_mass, 0.0 if self.widened else math.inf)
        return math.inf

    def log_ratio(self, x: npt.ArrayLike) -> float:
        """Log of R = sup p*/q, the conditional law over the proposal's; inf if p/q is unbounded.

        A candidate is accepted by rejection with probability 1 / R, and t steps of an independence
        chain are within ``(1 - 1/R) ** t`` of the law. It is an upper bound if the proposal is
        narrower than the noise and bounds leave finitely many values. Raises UnsupportedError if no
        exact sampler knows the normaliser.
        """
        counts = self._checked(x)
        exact = self.exact
        if exact is None:
            raise UnsupportedError(
                "the ratio of the law to the proposal needs the law's normaliser, which is known "
                "only if an exact sampler covers the case; estimate the acceptance from draws."
            )
        log_mass = exact.log_normalizer(counts)
        if isinstance(exact, ConditionedGaussian):
            # from volume on the solutions to volume of the proposed entries
            solve = self.placed.solve
            log_mass -= 0.5 * float(np.linalg.slogdet(np.eye(solve.shape[1]) + solve.T @ solve)[1])
        return self._ratio(log_mass, self._excess(counts))

    def _ratio(self, log_mass: float, excess: float) -> float:
        noise, placed = self.mechanism.noise, self.placed
        own = noise.log_pmf(np.zeros(self.mechanism.n), self.mechanism.scales).sum()
        other = noise.log_pmf(np.zeros(placed.index.size), placed.scales).sum()
        return max(0.0, float(own - other) - log_mass + excess)

    @cached_property
    def widened(self) -> bool:
        """Whether the proposal is no narrower than the noise, so that the weight is bounded."""
        return bool((self.placed.scales >= self.mechanism.scales[self.placed.index]).all())

    def _excess(self, counts: Values) -> float:
        """Bound on the largest log weight; inf if it is unbounded."""
        if self.widened:
            return 0.0
        reach = largest_noise(self.resolved, *self._limits(counts))[self.placed.index]
        rate = np.maximum(self._rates[0], 0.0)
        used = rate > 0.0
        powered = reach**2 if self._normal else reach
        return float((rate[used] * powered[used]).sum())

    def _limits(self, counts: Values) -> tuple[FloatArray, FloatArray]:
        resolved = self.resolved
        lo, hi = resolved.lo - counts, resolved.hi - counts
        return np.where(resolved.pinned, 0.0, lo), np.where(resolved.pinned, 0.0, hi)

    @property
    def _normal(self) -> bool:
        return self.mechanism.noise.kind == laws.GAUSSIAN

    @cached_property
    def _rates(self) -> tuple[FloatArray, FloatArray]:
        """Change of the log weight per unit of (squared) noise, for proposed entries and others."""
        placed, scales = self.placed, self.mechanism.scales
        proposed, own, rest = placed.scales, scales[placed.index], scales[placed.rest]
        if self._normal:
            return 0.5 / proposed**2 - 0.5 / own**2, -0.5 / rest**2
        return 1.0 / proposed - 1.0 / own, -1.0 / rest

    def log_weights(self, proposed: FloatArray, rest: FloatArray) -> FloatArray:
        """Log of p/q of noise, without the inequalities; 0 if there is no noise."""
        first, second = self._rates
        size = np.square if self._normal else np.abs
        return np.asarray(
            (size(proposed) * first).sum(axis=-1) + (size(rest) * second).sum(axis=-1)
        )

    def batch(self, counts: Values, rows: int, steps: int, source: Randomness) -> Batch:
        """Draw candidates; the work is the same for all data."""
        noise, placed, resolved = self.mechanism.noise, self.placed, self.resolved
        k = placed.index.size
        width = k * noise.words_per_entry
        words = source.bits(rows * steps * (width + 1)).reshape(rows * steps, width + 1)
        drawn = noise.draw(words[:, :width], placed.scales, source.bits)
        proposed = np.asarray(drawn, dtype=np.float64)
        rest = self._follow(proposed)
        out = np.empty((rows * steps, self.mechanism.n))
        out[:, placed.index], out[:, placed.rest] = proposed, rest
        log_weights = self.log_weights(proposed, rest)
        inside = np.ones(rows * steps, dtype=np.bool_)
        if placed.rows.size:
            inside &= (out @ placed.rows.T == 0.0).all(axis=1)
        if resolved.has_inequalities:
            lo, hi = self._limits(counts)
            used = np.flatnonzero(np.isfinite(lo) | np.isfinite(hi))
            inside &= ((out[:, used] >= lo[used]) & (out[:, used] <= hi[used])).all(axis=1)
            matrix, value = resolved.inequalities
            inside &= (out @ matrix.T >= value - matrix @ counts).all(axis=1)
        uniform = (words[:, width].astype(np.float64) + 1.0) * 2.0**-64
        shape = rows, steps
        return Batch(
            out.reshape(*shape, self.mechanism.n),
            np.where(inside, log_weights, -np.inf).reshape(shape),
            elementwise.log(uniform).reshape(shape),
        )

    def _follow(self, proposed: FloatArray) -> FloatArray:
        solve = self.placed.solve
        if self.mechanism.noise.discrete and solve.size:
            reach = float(np.abs(proposed).max(initial=0.0)) * float(np.abs(solve).sum(1).max())
            if reach > 2.0**52:  # beyond exact sums
                raise UnsupportedError(
                    "the noise is too wide for exact sums of proposals; use less noise, or "
                    "sampler='exact'."
                )
        return np.asarray(proposed @ solve.T)

    @property
    def _most_at_once(self) -> int:
        """Most candidates in memory at once."""
        return max(64, _BLOCK // self.mechanism.n)

    def attempts(
        self, counts: Values, rows: int, source: Randomness, failed: str
    ) -> Iterator[Batch]:
        """Yield ever longer batches for a study of `rows` draws; NumericalError after too many."""
        tried, length = 0, min(self._most_at_once, max(64, 4 * rows))
        while tried < _ATTEMPTS * rows:
            yield self.batch(counts, 1, length, source)
            tried += length
            length = min(self._most_at_once, 2 * length)
        raise NumericalError(f"{failed}; use sampler='exact', or 'independence' for a study.")

    def released(self, counts: Values, noise: FloatArray) -> Values:
        """Return the released values from counts and noise."""
        drawn: Values = counts.astype(np.float64) + noise
        if self.mechanism.noise.discrete:
            drawn = counts.astype(np.int64) + noise.astype(np.int64)
        return checked_draws(self.resolved, drawn, counts)

    def blocks(self, rows: int, steps: int) -> Iterator[tuple[slice, list[int]]]:
        """Split `rows` times `steps` candidates into blocks: rows, and lengths of steps."""
        each = self._most_at_once
        length = min(steps, each)
        group = max(1, each // length)
        lengths = [min(length, steps - t) for t in range(0, steps, length)]
        for r in range(0, rows, group):
            yield slice(r, min(r + group, rows)), lengths

    @cached_property
    def _rounding(self) -> float:
        """Bound on the total variation that rounding adds, for each proposal.

        A log weight L, a sum of one product for each entry, is within c L of its value. The
        probability min(1, exp(L' - L)) of a move from L to L' (both below 0) is then wrong by at
        most c (2 |L| + 1), and exact if |L'| < |L| / 2. Because P(|L'| >= |L| / 2) <= 2 m / |L|
        with m = E |L'|, it is wrong by at most c (4 m + 1) on average from any state.
        """
        noise, placed = self.mechanism.noise, self.placed
        own = noise.variances(placed.scales)
        squares = np.concatenate((own, placed.solve**2 @ own))
        # E |u| is at most the root of the variance
        rates = np.abs(np.concatenate(self._rates))
        mean = float((rates * (squares if self._normal else np.sqrt(squares))).sum())
        c = (rates.size + 8) * 2.0**-52
        return noise.sampling_error(placed.scales) + c * (4.0 * mean + 1.0) + 2.0**-51

    @cached_property
    def _not_released(self) -> str:
        """Why no release can be made; empty if one can."""
        if not self.mechanism.noise.discrete:
            return "floating-point noise is for studies only"
        if not self.data_free:
            return "under inequalities its run time or its error would depend on confidential data"
        if not self.widened:
            return "its proposal is narrower than the noise, so that no bound on its error is known"
        if self.exact is None:
            return "no exact sampler covers the case, so its acceptance probability is not known"
        if self.placed.rows.size:
            return "a proposal of all entries may miss the equalities every time"
        return ""

    def _text(self) -> str:
        """Text about the proposed entries and the bound on their weights."""
        placed, n = self.placed, self.mechanism.n
        text = (
            f"all {n} entries are proposed, and satisfy the equalities only by chance."
            if placed.rows.size
            else f"{placed.index.size} of {n} entries are proposed, and {placed.rest.size} follow "
            "from the equalities."
        )
        if self.widened:
            return text
        return (
            f"{text} The proposal is narrower than the noise, so that the weight p/q is unbounded "
            "unless bounds leave finitely many values."
        )

    def _release_text(self) -> str:
        better = (
            "The exact sampler (sampler='exact') draws the same law at a lower cost."
            if self.exact is not None
            else "No exact sampler covers this case."
        )
        if reason := self._not_released:
            return f"For studies, not for releases: {reason}. {better}"
        try:
            steps = self.steps
        except UnsupportedError:
            return f"For studies: a release would take too many proposals. {better}"
        return (
            f"A release takes {steps} proposals for every dataset. Its total variation from the "
            f"law is at most {self.error_bound:.1e}, charged to delta. {better}"
        )


def pick(states: FloatArray, batch: Batch, at: IntArray) -> FloatArray:
    """Return states of chains after steps of a batch, shape (r, n) or (r, k, n)."""
    which = at if at.ndim == 2 else at[:, None]
    rows = np.arange(at.shape[0])[:, None]
    taken = np.where(
        (which >= 0)[:, :, None], batch.noise[rows, np.maximum(which, 0)], states[:, None]
    )
    return taken if at.ndim == 2 else taken[:, 0]


@dataclass(frozen=True, eq=False)
class ProposalSampler(ByProposals):
    """A sampler whose mechanisms are `Proposing`, of the class `way`."""

    way: type[Proposing] = Proposing

    @property
    def name(self) -> str:
        """The name by which `congenial.condition` finds it."""
        return self.way.name

    def condition(self, mechanism: Additive, resolved: ResolvedInvariant) -> Proposing:
        """Return the mechanism drawn from proposals.

        Raises ArgumentError if the proposal fits neither the equalities nor the sampler;
        UnsupportedError if the sampler does not cover the invariant, no index set is found, or the
        law does not exist.
        """
        self.check_covers(resolved)
        check_kernels(mechanism.noise)
        exact = same_law(mechanism, resolved)
        made = self.way(mechanism, resolved, exact, place(mechanism, resolved, self.proposal))
        if made.needs_widened and not made.widened:
            raise ArgumentError(
                f"sampler {made.name!r} needs the largest p/q, and a proposal narrower than the "
                "noise has none; give Proposal(scale=...) at least as wide as the noise."
            )
        if made.name != "rejection" and made.placed.rows.size:
            raise ArgumentError(
                f"sampler {made.name!r} was given an index of all entries, which meet equalities "
                "by chance only; use 'rejection', or leave some entries out."
            )
        if np.isinf(mechanism.scales).any() and not resolved.has_inequalities:
            subspace(resolved).check(np.isfinite(mechanism.scales))
        return made
