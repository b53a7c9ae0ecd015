"""Steps of the random walk on a tree, against the same steps in Python."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.kernels.chains.tree_mh import walk
from congenial.kernels.numerics import laws
from congenial.kernels.numerics.trees import read_only
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels

STEPS = 40


def stepped(words, tree, cost, spread, inside, state, whole):
    """Return all states of a Metropolis chain and how many proposals it accepted."""
    leaves, here, out, accepted = tree.leaves, state, [], 0
    for row in words:
        first = (row[:-1:2] >> np.uint64(11)).astype(float) + 1.0
        angle = (row[1:-1:2] >> np.uint64(11)).astype(float) * 2.0**-53 * 2.0 * np.pi
        radius = np.sqrt(-2.0 * np.log(first * 2.0**-53))
        normal = np.column_stack((radius * np.cos(angle), radius * np.sin(angle))).ravel()
        move = normal[: leaves.size] * spread
        proposed = tree.roll_up(here[leaves] + (np.rint(move) if whole else move))
        uniform = (float(row[-1]) + 1.0) * 2.0**-64
        if inside(proposed) and np.log(uniform) <= cost(here) - cost(proposed):
            here = proposed
            accepted += 1
        out.append(here)
    return np.array(out), accepted


@for_each_seed(150)
def test_a_walk_takes_the_steps_of_metropolis(seed):
    rng = np.random.default_rng([101, seed])
    n = int(rng.integers(2, 8))
    tree = Tree.from_parents([-1, *(int(rng.integers(0, v)) for v in range(1, n))])
    kind, whole = int(rng.choice([laws.LAPLACE, laws.GAUSSIAN])), bool(rng.integers(2))
    scales = np.where(rng.random(n) < 0.2, np.inf, rng.uniform(0.5, 3.0, n))
    lo, hi = rng.choice([-np.inf, -2.0], n), rng.choice([np.inf, 3.0], n)
    matrix, least = rng.choice([-1.0, 0.0, 1.0], (2, n)), np.array([-2.0, -5.0])
    leaves, thin = tree.leaves, int(rng.integers(1, 4))
    spread = rng.uniform(0.3, 2.0, leaves.size)
    words = rng.integers(0, 2**64, (STEPS, 2 * ((leaves.size + 1) // 2) + 1), dtype=np.uint64)

    def cost(u):
        away = np.abs(u) / scales
        return float((away if kind == laws.LAPLACE else 0.5 * away**2).sum())

    def inside(u):
        return ((u >= lo) & (u <= hi)).all() and (matrix @ u >= least).all()

    state, out = np.zeros(n), np.full((STEPS // thin, n), np.nan)
    shape = tuple(read_only(array) for array in (tree.parents, tree.bottom_up, leaves))
    # in two calls, as long chains are
    law, limits, half = (kind, scales), (lo, hi, least), STEPS // 3
    accepted = walk(words[:half], shape, law, spread, limits, matrix, whole, thin, 0, state, out)
    accepted += walk(
        words[half:], shape, law, spread, limits, matrix, whole, thin, half, state, out
    )
    wanted, times = stepped(words, tree, cost, spread, inside, np.zeros(n), whole)
    assert accepted == times
    np.testing.assert_allclose(out, wanted[thin - 1 :: thin], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(state, wanted[-1], rtol=1e-12, atol=1e-12)
