"""Coupling from the past of independence chains: exact draws without the normaliser.

Chains from all states use the same proposals and uniform variables. When the chain in the state of
largest p/q moves, every other chain moves to the same candidate, so all chains agree from then on.
If the proposal is at least as wide as the noise, the state of largest p/q is the one without noise.

References
----------
Corcoran and Tweedie (2002), "Perfect sampling from independent Metropolis-Hastings chains", Journal
of Statistical Planning and Inference 104(2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.conditioning.proposing import ProposalSampler, Proposing
from congenial.conditioning.samplers.independence import last_states
from congenial.kernels.chains import independence
from congenial.randomness import Randomness
from congenial.types import FloatArray, Values


@dataclass(frozen=True, eq=False)
class Perfect(Proposing):
    """A conditional mechanism drawn by coupled chains; made by ``condition(..., "perfect")``.

    From a seed, each draw goes back in time until all chains agree. How far it goes reveals
    something about the draw, so a release always goes back `steps` proposals. It starts one chain
    there, at a point that does not depend on the data, and returns its state at time 0. If all
    chains agree by then, this is the exact draw.
    """

    name = "perfect"

    def explain(self) -> str:
        """Explain how draws are made, and whether they may be released."""
        return (
            f"perfect sampler: {self._text()} Chains of these proposals are coupled from the past "
            "until the chain without noise, where p/q is largest, moves; then all others have "
            "moved too. Draws are exact and independent. A draw takes as many proposals as with "
            f"rejection, in law, so nothing is saved. {self._release_text()}"
        )

    def _fixed_work(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        return last_states(self, counts, rows, source)

    def _for_study(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        out = np.empty((rows, self.mechanism.n))
        kept = self.batch(counts, 1, 0, source)  # proposals of an unfinished draw
        failed = "chains coupled from the past did not meet"
        batches, filled = self.attempts(counts, rows, source, failed), 0
        while filled < rows:
            pairs = zip(kept, next(batches), strict=True)
            stream = [np.concatenate(pair, axis=1) for pair in pairs]
            chosen = np.empty(rows - filled, dtype=np.int64)
            found, begin = independence.couple(stream[1][0], stream[2][0], chosen)
            out[filled : filled + found] = stream[0][0, chosen[:found]]
            kept = type(kept)(*(part[:, begin:] for part in stream))
            filled += found
        return out


SAMPLER = ProposalSampler(way=Perfect)
