"""Hit-and-run (hopsy) on the leaves: a random line, a normal step on it, accepted or not."""

from __future__ import annotations

import warnings

import numpy as np

from benchmarks.peers.target import Chains, Target, log_density, start
from benchmarks.timing import clock
from congenial.types import FloatArray

CHAINS = 4
# hopsy draws in a polytope; without bounds on the leaves a box that is never reached.
FAR = 1e6


class _Model:
    """What hopsy asks for; the density itself is compiled."""

    def __init__(self, law: Target) -> None:
        self.law = law
        self.sums = np.empty(law.above.size)

    def log_density(self, u: FloatArray) -> float:
        """Log density up to a constant."""
        law = self.law
        return float(log_density(u, law.above, law.leaves, 1.0 / law.scale, self.sums))


def run(law: Target, *, seconds: float, kept: int = 2_000) -> Chains:
    """Choose a step size, then draw for about so many seconds of processor time."""
    with warnings.catch_warnings():
        # of a library that it loads, about that one's future
        warnings.simplefilter("ignore", FutureWarning)
        import hopsy

    k = law.x.size
    box = np.vstack([np.eye(k), -np.eye(k)])
    below = law.x if law.nonnegative else np.full(k, FAR)
    problem = hopsy.Problem(box, np.concatenate([np.full(k, FAR), below]), _Model(law))
    rng = np.random.default_rng(13)
    starts = [start(law, rng) for _ in range(CHAINS)]
    sources = [hopsy.RandomNumberGenerator(13, i) for i in range(CHAINS)]

    def chains(step: float, points: list[FloatArray]) -> list[object]:
        made = []
        for point in points:
            chain = hopsy.MarkovChain(
                problem, proposal=hopsy.GaussianHitAndRunProposal, starting_point=point
            )
            chain.proposal.stepsize = step
            made.append(chain)
        return made

    begin = clock()
    tried = 200
    # the step size whose chain moves farthest in square
    moved = {}
    for step in law.scale * 2.0 ** np.arange(-3, 7):
        _, states = hopsy.sample(chains(step, starts[:1])[0], sources[0], tried)
        moved[float(step)] = float((np.diff(states[0], axis=0) ** 2).sum())
    step = max(moved, key=lambda size: moved[size])
    rate = tried * len(moved) / max(clock() - begin, 1e-9)
    every = max(1, int(rate * seconds / CHAINS / kept))
    ready = chains(step, starts)
    hopsy.sample(ready, sources, max(1, kept // 4), thinning=every)  # warm-up, left out
    begin = clock()
    shares, draws = hopsy.sample(ready, sources, kept, thinning=every)
    spent = clock() - begin
    return Chains(
        np.asarray(draws),
        spent,
        f"{CHAINS} chains of {every * kept:,} steps of size {step:g}, "
        f"{np.mean(shares):.0%} accepted",
    )
