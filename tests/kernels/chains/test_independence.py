"""Chains over proposals, against loops; and coupling from the past, against every start."""

from __future__ import annotations

import numpy as np

from congenial.kernels.chains.independence import couple, scan


def chain(log_weights, log_uniforms, here):
    """Return the proposal that a chain is at after each step, -1 for its start."""
    at, out = -1, []
    for t, (w, u) in enumerate(zip(log_weights, log_uniforms, strict=True)):
        if u <= w - here:
            here, at = w, t
        out.append(at)
    return out, here


def test_each_chain_accepts_or_stays():
    rng = np.random.default_rng(1)
    weights, uniforms = rng.normal(0, 2, (6, 50)), np.log(rng.random((6, 50)))
    start = rng.normal(0, 2, 6)
    current, at = start.copy(), np.empty((6, 50), dtype=np.int64)
    scan(weights, uniforms, current, at)
    for r in range(6):
        wanted, last = chain(weights[r], uniforms[r], start[r])
        assert at[r].tolist() == wanted
        assert current[r] == last


def test_chains_from_all_starts_agree_at_the_end_of_a_coupled_draw():
    rng = np.random.default_rng(2)
    weights, uniforms = -rng.exponential(1.0, 400), np.log(rng.random(400))
    chosen = np.empty(400, dtype=np.int64)
    draws, begin = couple(weights, uniforms, chosen)
    assert draws > 50
    first = 0
    for k in range(draws):
        # the latest proposal comes first; from its past on, every start ends at one proposal
        past = next(i for i in range(first, 400) if uniforms[i] <= weights[i])
        order = list(range(past, first - 1, -1))
        ends = set()
        for start in (0.0, -0.7, -9.0):
            path, _ = chain(weights[order], uniforms[order], start)
            ends.add(order[path[-1]])
        assert ends == {chosen[k]}
        first = past + 1
    assert begin == first
