"""Rejection sampling: exact draws, after a random number of proposals.

A candidate from q is accepted with probability p / (R q), where R is the largest p/q. If the
proposal is at least as wide as the noise, R is the value of p/q at noise 0.

References
----------
Gong and Meng (2020), Section 2.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.proposing import ProposalSampler, Proposing, pick
from congenial.randomness import Randomness
from congenial.types import FloatArray, Values


@dataclass(frozen=True, eq=False)
class Rejection(Proposing):
    """A conditional mechanism drawn by rejection; made by ``condition(..., "rejection")``.

    From a seed, candidates are drawn until enough are accepted. Their number reveals something
    about the draw, so a release always makes `steps` proposals and returns the first accepted one.
    `error_bound` includes the probability that none is accepted, which is equal for all data.
    """

    name = "rejection"

    def acceptance(self, x: npt.ArrayLike) -> float:
        """Exact probability that a candidate is accepted; see `log_ratio`."""
        return float(np.exp(-self.log_ratio(x)))

    def explain(self) -> str:
        """Explain how draws are made, and whether they may be released."""
        return (
            f"rejection sampler: {self._text()} A candidate is accepted with probability p/(R q), "
            "where R is the largest p/q, its value without noise; draws are exact and independent, "
            f"after a random number of proposals. {self._release_text()}"
        )

    def _for_study(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        out = np.empty((rows, self.mechanism.n))
        failed = "rejection sampling accepted too few candidates"
        batches, filled = self.attempts(counts, rows, source, failed), 0
        while filled < rows:
            batch = next(batches)
            found = np.flatnonzero(batch.log_uniforms[0] <= batch.log_weights[0])[: rows - filled]
            out[filled : filled + found.size] = batch.noise[0, found]
            filled += found.size
        return out

    def _fixed_work(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        out = np.empty((rows, self.mechanism.n))
        for group, lengths in self.blocks(rows, self.steps):
            count = group.stop - group.start
            states = np.zeros((count, self.mechanism.n))
            done = np.zeros(count, dtype=np.bool_)
            for length in lengths:
                batch = self.batch(counts, count, length, source)
                accepted = batch.log_uniforms <= batch.log_weights
                any_of = accepted.any(axis=1)
                first = np.where(any_of, accepted.argmax(axis=1), length - 1)
                # until a candidate is accepted, keep the last one: it satisfies the equalities too
                states = np.where(done[:, None], states, pick(states, batch, first))
                done |= any_of
            out[group] = states
        return out


SAMPLER = ProposalSampler(way=Rejection)
