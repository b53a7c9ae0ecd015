"""M_MH, the tree Metropolis–Hastings chain of Two Views, Algorithm 1.

All leaves are proposed at once from a normal law around the current state; the levels above
follow by adding up; the whole is accepted or not by the ratio of the unconstrained densities, and
never outside the bounds.
"""

from __future__ import annotations

import numba
import numpy as np

from benchmarks.peers.target import Chains, Target, log_density, start
from benchmarks.timing import clock
from congenial.types import FloatArray

CHAINS = 4
# The acceptance rate at which a random walk of many dimensions moves fastest.
WANTED = 0.234


@numba.njit(cache=True)
def walk(rng, u, x, bounded, above, leaves, rate, spread, steps, every, out):
    """Move `u` on by `steps`, write each `every`-th state to `out`; return the share accepted."""
    sums = np.empty(above.size)
    proposed = np.empty_like(u)
    current = log_density(u, above, leaves, rate, sums)
    accepted = 0
    for step in range(steps):
        inside = True
        for i in range(u.size):
            proposed[i] = u[i] + spread * rng.standard_normal()
            inside &= not bounded or x[i] + proposed[i] >= 0.0
        if inside:
            value = log_density(proposed, above, leaves, rate, sums)
            if rng.random() < np.exp(min(0.0, value - current)):
                u[:] = proposed
                current = value
                accepted += 1
        if (step + 1) % every == 0:
            out[(step + 1) // every - 1] = u
    return accepted / steps


def run(law: Target, *, seconds: float, kept: int = 2_000, every: int | None = None) -> Chains:
    """Run the chain for about so many seconds of processor time.

    Parameters
    ----------
    law : Target
    seconds : float
        For all chains together, after tuning.
    kept : int
        States kept a chain.
    every : int, optional
        Steps between them, instead of what the seconds allow.
    """
    rng = np.random.default_rng(11)
    states = [start(law, rng) for _ in range(CHAINS)]
    spread, pilot = law.scale / np.sqrt(law.x.size), np.empty((1, law.x.size))

    def move(u: FloatArray, steps: int, every: int, out: FloatArray) -> float:
        shape = law.x, law.nonnegative, law.above, law.leaves, 1.0 / law.scale
        return float(walk(rng, u, *shape, spread, steps, every, out))

    move(states[0].copy(), 1, 1, pilot)
    for _ in range(30):
        share = np.mean([move(u, 500, 500, pilot) for u in states])
        spread *= float(np.exp(np.clip(share - WANTED, -0.5, 0.5)))
    if every is None:
        begin = clock()
        for u in states:
            move(u, 2_000, 2_000, pilot)
        rate = 2_000 * CHAINS / max(clock() - begin, 1e-9)
        every = max(1, int(rate * seconds / CHAINS / kept))
    for u in states:  # a quarter of the run is left out as warm-up
        move(u, every * (kept // 4), every * (kept // 4), pilot)
    draws = np.empty((CHAINS, kept, law.x.size))
    begin = clock()
    shares = [move(u, every * kept, every, out) for u, out in zip(states, draws, strict=True)]
    spent = clock() - begin
    return Chains(
        draws,
        spent,
        f"{CHAINS} chains of {every * kept:,} steps, {np.mean(shares):.0%} accepted",
    )
