"""NUTS (blackjax) on the leaves, with the bound mapped away."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from benchmarks.peers.target import Chains, Target, start
from benchmarks.timing import clock

CHAINS = 4
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

    @partial(jax.jit, static_argnums=3)
    def chain(key: Any, state: Any, parameters: Any, count: int) -> Any:
        kernel = blackjax.nuts(log_density, **parameters)

        def step(at: Any, one: Any) -> Any:
            after, told = kernel.step(one, at)
            return after, (noise(after.position), told.num_integration_steps, told.is_divergent)

        return jax.lax.scan(step, state, jax.random.split(key, count))

    rng, key = np.random.default_rng(12), jax.random.key(12)
    adapted = []
    for _ in range(CHAINS):
        key, one = jax.random.split(key)
        u = start(law, rng)
        begin = jnp.asarray(law.x + u if law.nonnegative else u)
        adapt = blackjax.window_adaptation(
            blackjax.nuts, log_density, target_acceptance_rate=ACCEPTED
        )
        (state, parameters), _ = adapt.run(one, begin, num_steps=warmup)
        adapted.append((state, parameters))
    pilot = 50
    jax.block_until_ready(chain(key, *adapted[0], pilot))
    begin_at = clock()
    jax.block_until_ready(chain(key, *adapted[0], pilot))
    rate = pilot / max(clock() - begin_at, 1e-9)
    count = int(np.clip(rate * seconds / CHAINS, 20, 20_000))
    jax.block_until_ready(chain(key, *adapted[0], count))  # compiles for this length
    spent, draws, leaps, broken = 0.0, [], [], 0
    for state, parameters in adapted:
        key, one = jax.random.split(key)
        begin_at = clock()
        _, (positions, steps, divergent) = jax.block_until_ready(
            chain(one, state, parameters, count)
        )
        spent += clock() - begin_at
        draws.append(np.asarray(positions))
        leaps.append(float(np.mean(steps)))
        broken += int(np.sum(divergent))
    return Chains(
        np.array(draws),
        spent,
        f"{CHAINS} chains of {count:,} draws after {warmup} of warm-up, {np.mean(leaps):.0f} "
        f"leapfrog steps a draw, {broken} divergent",
    )
