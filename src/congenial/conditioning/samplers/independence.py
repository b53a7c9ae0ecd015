"""Metropolised independence sampling: chains of proposals that do not depend on the state.

References
----------
Gong and Meng (2020), Algorithm 1; Liu (1996); Mengersen and Tweedie (1996), Theorem 2.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from congenial.conditioning.chains import (
    CHAINS,
    Draw,
    Info,
    check_lengths,
    check_steps,
    sample_in_turn,
    study_source,
)
from congenial.conditioning.proposal import checked_start, feasible_start
from congenial.conditioning.proposing import ProposalSampler, Proposing, pick
from congenial.errors import NumericalError, PrivacyError, UnsupportedError
from congenial.kernels.chains import independence
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, Values

WARMUP = 200


@dataclass(frozen=True, eq=False)
class Independence(Proposing):
    """A conditional mechanism drawn by chains; made by ``condition(..., "independence")``."""

    name = "independence"
    needs_widened = False

    def run(
        self,
        x: npt.ArrayLike,
        draws: int = 1000,
        chains: int = CHAINS,
        rng: Randomness | None = None,
        *,
        start: npt.ArrayLike | None = None,
        warmup: int = WARMUP,
        thin: int = 1,
    ) -> tuple[Draw, Info]:
        """Run chains for a study; return their draws and diagnostics.

        Parameters
        ----------
        x : array_like, shape (n,)
            Values of all queries, which satisfy the invariant.
        draws, chains : int
            Number of dependent draws of each chain, and number of chains.
        rng : Randomness
            `congenial.seeded(n)`; PrivacyError without it.
        start : array_like, shape (n,), optional
            Start of all chains; by default a point found from the invariant alone.
        warmup, thin : int
            First steps of each chain that are discarded, and steps for each draw that is kept.

        Returns
        -------
        draw : Draw
            The chains' states.
        info : Info
            `tv_bound` is ``(1 - 1/R) ** t`` after all t steps, R = sup p*/q; None if R is infinite
            or unknown.
        """
        source = study_source(
            rng, "its draws depend on each other", "release with sample(), where that is certified"
        )
        check_steps(draws, chains, warmup, thin)
        counts = self._checked(x)
        states, current = _starts(self, counts, chains, start)
        values = np.empty((chains, draws, self.mechanism.n))
        accepted, t = np.zeros(chains), -warmup
        for group, lengths in self.blocks(chains, warmup + thin * draws):
            here, weights, t = states[group], current[group], -warmup
            for length in lengths:
                batch = self.batch(counts, here.shape[0], length, source)
                at = np.empty(batch.log_weights.shape, dtype=np.int64)
                independence.scan(batch.log_weights, batch.log_uniforms, weights, at)
                steps = np.arange(t, t + length)
                accepted[group] += ((at == np.arange(length)) & (steps >= 0)).sum(axis=1)
                kept = np.flatnonzero((steps >= 0) & ((steps + 1) % thin == 0))
                values[group, steps[kept] // thin] = pick(here, batch, at[:, kept])
                here = pick(here, batch, at[:, -1])
                t += length
        bound, unbounded = self._bound(counts, warmup + thin * draws)
        info = Info(warmup, thin, values, accepted / (thin * draws), bound, unbounded)
        return Draw(self.released(counts, values)), info

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw releases.

        If a release can be made, each draw is the state of its own chain after `steps` steps from a
        start that does not depend on the data. Otherwise draws are dependent, for studies: the
        states of the chains of `run` in turn. For parameters and errors see `Proposing.sample`.
        """
        source = resolve(rng)
        if source.private or not self._not_released:
            return super().sample(x, size, source)
        return sample_in_turn(partial(self.run, rng=source), x, size)

    def _fixed_work(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        return last_states(self, counts, rows, source)

    def acceptance(
        self, x: npt.ArrayLike, size: int = 10_000, rng: Randomness | None = None
    ) -> float:
        """Part of the candidates that a stationary chain accepts, estimated without a chain.

        Each of `size` exact draws is compared with each of `size` candidates. `rng` is
        `congenial.seeded(n)`. Raises PrivacyError without it, UnsupportedError if no exact sampler
        covers the case.
        """
        source = resolve(rng)
        if source.private:
            raise PrivacyError(
                "the acceptance is estimated from confidential values: give "
                "rng=congenial.seeded(n) for a study."
            )
        if self.exact is None:
            raise UnsupportedError(
                "the acceptance of a stationary chain needs exact draws, and no exact sampler "
                "covers the case; use the acceptance in run()'s info."
            )
        check_lengths({"size": size})
        counts, placed = self._checked(x), self.placed
        noise = (self.exact.sample(counts, size, source) - counts).astype(np.float64)
        states = self.log_weights(noise[:, placed.index], noise[:, placed.rest])
        # a candidate of smaller weight than the state is accepted with the ratio of the weights
        lengths = (length for _, lengths in self.blocks(1, size) for length in lengths)
        batches = [self.batch(counts, 1, length, source).log_weights[0] for length in lengths]
        below = np.sort(np.concatenate(batches))
        rank = np.searchsorted(below, states)
        summed = np.concatenate(([-np.inf], np.logaddexp.accumulate(below)))
        return float(np.mean(np.exp(summed[rank] - states) + (size - rank)) / size)

    def explain(self) -> str:
        """Explain how draws are made, which bound holds, and whether they may be released."""
        if not self.widened:
            bound = "No bound on the distance from the law is known without bounds on all entries."
        elif self.exact is None:
            bound = "R = sup p*/q is finite but unknown, so the distance has no known bound."
        else:
            bound = (
                "After t steps from any start the total variation from the law is at most "
                "(1 - 1/R)^t, where the exact sampler knows R = sup p*/q."
            )
        return (
            f"independence sampler: {self._text()} A chain moves to a candidate with probability "
            f"min(1, the ratio of the weights p/q), else it stays. {bound} {self._release_text()}"
        )

    def _bound(self, counts: Values, steps: int) -> tuple[float | None, str]:
        try:
            log_ratio = self.log_ratio(counts)
        except (UnsupportedError, NumericalError):
            return None, "no exact sampler covers the case, so sup p*/q is not known"
        if math.isinf(log_ratio):
            return None, "the proposal is narrower than the noise, so sup p*/q is infinite"
        return bound_after(log_ratio, steps), ""


def last_states(sampler: Proposing, counts: Values, rows: int, source: Randomness) -> FloatArray:
    """Return the noise of independent chains after `steps` steps, shape (rows, n)."""
    noise, weights = _starts(sampler, counts, rows, None)
    for group, lengths in sampler.blocks(rows, sampler.steps):
        here, current = noise[group], weights[group]
        for length in lengths:
            batch = sampler.batch(counts, here.shape[0], length, source)
            at = np.empty(batch.log_weights.shape, dtype=np.int64)
            independence.scan(batch.log_weights, batch.log_uniforms, current, at)
            here = pick(here, batch, at[:, -1])
        noise[group] = here
    return noise


def _starts(
    sampler: Proposing, counts: Values, rows: int, start: npt.ArrayLike | None
) -> tuple[FloatArray, FloatArray]:
    """Return the noise at the start, (rows, n), and its log weights, (rows,)."""
    whole, placed = sampler.mechanism.noise.discrete, sampler.placed
    if start is None:
        z = feasible_start(sampler.resolved, placed, counts, whole=whole)
    else:
        z = checked_start(sampler.resolved, counts, start, whole=whole)
    noise = z - counts
    log_weight = sampler.log_weights(noise[None, placed.index], noise[None, placed.rest])
    return np.tile(noise, (rows, 1)), np.full(rows, log_weight[0])


def bound_after(log_ratio: float, steps: int) -> float:
    """Bound on the total variation after `steps` steps, ``(1 - 1/R) ** steps``."""
    chance = math.exp(-log_ratio)
    return 0.0 if chance >= 1.0 else math.exp(steps * math.log1p(-chance))


SAMPLER = ProposalSampler(way=Independence)
