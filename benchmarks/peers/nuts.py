"""NUTS (blackjax) on the leaves, with the bound mapped away."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks.peers.target import Chains, Target, start
from benchmarks.timing import clock
from congenial.types import FloatArray

CHAINS = 4
CHUNK = 20
# Of 0.6 and the usual 0.8, the faster on this law: its kinks cost more than longer steps.
ACCEPTED = 0.6


def run(law: Target, *, seconds: float, warmup: int = 500) -> Chains:
    """Adapt each chain, then draw for about so many seconds of processor time.

    A bounded leaf is scale · softplus(v / scale) with v free, which is nearly v itself where the
    bound is far away.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import blackjax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    sums = np.zeros((law.above.size, law.x.size))
    for column, leaf in enumerate(law.leaves):
        v = int(leaf)
        while v >= 0:
            sums[v, column] = 1.0
            v = int(law.above[v])
    inner = jnp.asarray(np.delete(sums, law.leaves, axis=0))
    x = jnp.asarray(law.x)

    def noise(v: Any) -> Any:
        return law.scale * jax.nn.softplus(v / law.scale) - x if law.nonnegative else v

    def log_density(v: Any) -> Any:
        u = noise(v)
        size = jnp.abs(u).sum() + jnp.abs(inner @ u).sum()
        jacobian = jax.nn.log_sigmoid(v / law.scale).sum() if law.nonnegative else 0.0
        return jacobian - size / law.scale

    @jax.jit
    def adapt(key: Any, begin: Any) -> Any:
        window = blackjax.window_adaptation(
            blackjax.nuts, log_density, target_acceptance_rate=ACCEPTED
        )
        (state, parameters), _ = window.run(key, begin, num_steps=warmup)
        return state, parameters

    @jax.jit
    def chunk(key: Any, state: Any, parameters: Any) -> Any:
        kernel = blackjax.nuts(log_density, **parameters)

        def step(at: Any, one: Any) -> Any:
            after, told = kernel.step(one, at)
            return after, (noise(after.position), told.num_integration_steps, told.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(key, CHUNK))

    rng, key = np.random.default_rng(12), jax.random.key(12)
    states: list[Any] = []
    tuned: list[Any] = []
    for _ in range(CHAINS):
        key, one = jax.random.split(key)
        u = start(law, rng)
        state, parameters = adapt(one, jnp.asarray(law.x + u if law.nonnegative else u))
        state, _ = chunk(one, state, parameters)  # compiles, and warms up a little more
        states.append(jax.block_until_ready(state))
        tuned.append(parameters)
    drawn: list[FloatArray] = []
    spent, leaps, broken = 0.0, [], 0
    while spent < seconds or len(drawn) < 2:  # as many chunks of every chain
        parts = []
        for i in range(CHAINS):
            key, one = jax.random.split(key)
            begin = clock()
            states[i], told = jax.block_until_ready(chunk(one, states[i], tuned[i]))
            spent += clock() - begin
            parts.append(np.asarray(told[0]))
            leaps.append(float(np.mean(told[1])))
            broken += int(np.sum(told[2]))
        drawn.append(np.array(parts))
    return Chains(
        np.concatenate(drawn, axis=1),
        spent,
        f"{CHAINS} chains of {CHUNK * len(drawn):,} draws after {warmup} of warm-up, "
        f"{np.mean(leaps):.0f} leapfrog steps a draw, {broken} divergent",
    )
