"""Coupling from the past of independence chains: exact draws, without knowing the normaliser.

All chains that use the same proposals and uniform variables agree once the one in the state of
greatest p/q moves, since then every other moves as well. Where the proposal is no narrower than the
noise that state is known: no noise.

References
----------
Corcoran and Tweedie (2002), "Perfect sampling from independent Metropolis-Hastings chains", Journal
of Statistical Planning and Inference 104(2).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from congenial.conditioning.proposing import ProposalSampler, Proposing
from congenial.conditioning.samplers.independence import last_states
from congenial.kernels.chains import independence
from congenial.randomness import Randomness
from congenial.types import FloatArray, Values


@dataclass(frozen=True, eq=False)
class Perfect(Proposing):
    """A conditional mechanism drawn by coupled chains; made by ``condition(..., "perfect")``.

    From a seed, each draw goes back in time until all chains agree. How far reveals something of
    the draw, so a release, from the operating system's entropy, goes back `steps` proposals
    whatever happens: it is the state at time 0 of the chain that starts there from a point that
    does not depend on the data, and that is the exact draw wherever the chains agree by then.
    """

    name = "perfect"

    def explain(self) -> str:
        """Say how draws are made, and whether they may be released."""
        return (
            f"perfect sampler: {self._text()} Chains of these proposals are coupled from the past "
            "until the one without noise moves, where p/q is largest, and so all others; draws are "
            "exact and independent. The proposals a draw takes have the law of those that "
            f"rejection takes, so nothing is saved by it. {self._release_text()}"
        )

    def _fixed_work(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        return last_states(self, counts, rows, source)

    def _for_study(self, counts: Values, rows: int, source: Randomness) -> FloatArray:
        out = np.empty((rows, self.mechanism.n))
        kept = self.batch(counts, 1, 0, source)  # proposals of an unfinished draw
        failed = "chains coupled from the past did not come to agree"
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


@dataclass(frozen=True, eq=False)
class PerfectSampler(ProposalSampler):
    """Draws by chains coupled from the past: exact, after a random number of proposals."""

    name: ClassVar[str] = "perfect"
    way: ClassVar[type[Proposing]] = Perfect


SAMPLER = PerfectSampler()
