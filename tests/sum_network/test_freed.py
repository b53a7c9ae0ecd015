"""Networks without sums that constrain nothing, against the complete networks."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial import sum_network
from congenial.sum_network.forest import of_rows, of_tree
from congenial.sum_network.freed import free_sums
from support.seeds import for_each_seed


def weights_of(forest, scales, lo=-np.inf, kind=1):
    n = forest.n
    ends = np.broadcast_to(np.float64(lo), (n,)), np.full(n, np.inf)
    return sum_network.share_noise(kind, scales, ends, np.zeros(n, dtype=np.bool_), n)


def random_network(rng):
    """Sums without a cycle, some of whose variables have no weight; always a proper law."""
    while True:
        n = int(rng.integers(2, 10))
        fresh, rows, seen = rng.permutation(n).tolist(), [], []
        while fresh:
            part = [fresh.pop() for _ in range(int(rng.integers(1, 4))) if fresh]
            part += [int(rng.choice(seen))] if seen and rng.random() < 0.8 else []
            seen += part[:3]
            if len(part) > 1:
                rows.append((np.array(part), rng.choice([-1, 1], len(part))))
        scales = np.where(rng.random(n) < 0.4, np.inf, rng.uniform(0.3, 2.0, n))
        forest = of_rows(rows, n)
        lo = np.where(rng.random(n) < 0.2, -2.0, -np.inf)
        weights = weights_of(forest, scales, lo, kind=int(rng.integers(1, 3)))
        if sum_network.is_proper(forest, weights):
            return forest, weights


@for_each_seed(150)
def test_the_other_variables_keep_their_laws_and_the_sums_hold(seed):
    forest, weights = random_network(np.random.default_rng(seed))
    whole = sum_network.fill(sum_network.compile(forest, weights))
    light = sum_network.fill(sum_network.compile(forest, weights, whole=False))
    assert (light.freed is None) == (free_sums(forest, weights) is None)
    # tables of so few variables with scales below 2 are rounded by some units at most
    assert light.log_sum() == pytest.approx(whole.log_sum(), abs=1e-9)
    for v in range(forest.n):
        if light.freed is not None and light.freed.follows[v]:
            continue
        laws = [dict(zip(*sum_network.marginal(t, v), strict=True)) for t in (whole, light)]
        for value in laws[0].keys() | laws[1].keys():
            assert laws[0].get(value, 0.0) == pytest.approx(laws[1].get(value, 0.0), abs=1e-9)
    drawn = sum_network.sample(light, 20, cg.seeded(seed))
    for k in range(forest.m):
        left = drawn[:, forest.above == k].sum(axis=1)
        v = forest.owner[k]
        assert (left == (forest.sign[k] * drawn[:, v] if v >= 0 else 0)).all()


def test_variables_that_follow_from_others_are_added_up_in_order():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    forest = of_tree(tree)
    scales = np.where(tree.is_leaf, 2.0, np.inf)
    light = sum_network.compile(forest, weights_of(forest, scales), whole=False)
    assert light.forest.m == 0 and light.freed.follows.tolist() == [True] * 3 + [False] * 4
    drawn = sum_network.sample(sum_network.fill(light), 50, cg.seeded(1))
    assert tree.are_consistent(drawn).all() and (drawn[:, 0] != 0).any()


def test_a_sum_with_bounds_weights_or_further_sums_is_kept():
    forest = of_tree(cg.Tree.from_parents([-1, 0, 0, 1, 1]))
    for scales, lo in (
        ([np.inf, 2.0, 2.0, 2.0, 2.0], [0.0, *[-np.inf] * 4]),
        ([2.0, np.inf, 2.0, 2.0, 2.0], -np.inf),
        ([2.0] * 5, -np.inf),
    ):
        assert free_sums(forest, weights_of(forest, np.array(scales), lo)) is None


@pytest.mark.parametrize("bound", [-np.inf, 0.0])
def test_wide_noise_under_an_unmeasured_root_takes_tables_of_its_own_width(bound):
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    forest = of_tree(tree)
    weights = weights_of(forest, np.array([np.inf, 1e4, 1e4, 1e4]), [-np.inf, *[bound] * 3])
    light = sum_network.fill(sum_network.compile(forest, weights, whole=False))
    whole = sum_network.fill(sum_network.compile(forest, weights))
    assert 3 * light.table.size < whole.table.size


def test_the_law_of_a_freed_variable_is_still_known():
    tree = cg.Tree.from_parents([-1, 0, 0])
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace([np.inf, 1.0, 1.0]), tree),
        cg.consistent(tree) & cg.nonnegative(),
    )
    values, found = conditioned.marginal(0, [2, 0, 2])
    _, first = conditioned.marginal(1, [2, 0, 2])
    _, second = conditioned.marginal(2, [2, 0, 2])
    assert found == pytest.approx(np.convolve(first, second)[: found.size], abs=1e-9)
    assert values[0] == 0
