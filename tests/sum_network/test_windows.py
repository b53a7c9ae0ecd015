"""Windows of a sum network, against the tails of the laws."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import InfeasibleError, UnsupportedError
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import of_tree
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import SharedUnary, Unary, composable
from congenial.sum_network.windows import (
    check_feasible_sums,
    check_proper,
    is_proper,
    place_classes,
    tilts,
    windows,
)
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels
INF = np.inf


def star(seed):
    """A root and its children, each with noise, and the law of each variable given the sum."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 7))
    forest = of_tree(Tree.from_parents([-1] + [0] * k))
    kind = np.full(k + 1, rng.choice([laws.LAPLACE, laws.GAUSSIAN]))
    lo = np.where(rng.random(k + 1) < 0.3, -rng.integers(0, 6, k + 1), -INF)
    lo[0] = -INF
    each = Unary(kind, rng.choice([0.7, 2.0, 6.0], k + 1), np.zeros(k + 1), lo, np.full(k + 1, INF))
    u = np.arange(-400, 401)
    parts = []
    for v in range(k + 1):
        away = np.abs(u) / each.scale[v]
        p = np.where(u >= lo[v], np.exp(-away if kind[v] == laws.LAPLACE else -0.5 * away**2), 0.0)
        parts.append(p / p.sum())
    marginals = []
    for v in range(k + 1):
        rest = np.zeros(u.size)
        rest[400] = 1.0
        for w in range(1, k + 1):
            if w != v:
                rest = np.convolve(rest, parts[w], mode="same")
        # of a child: the root less the other children
        around = rest if v == 0 else np.convolve(parts[0], rest[::-1], mode="same")
        law = parts[v] * around
        marginals.append(law / law.sum())
    return forest, SharedUnary(each, np.arange(k + 1, dtype=np.int32)), u, marginals


@for_each_seed(120)
def test_each_variable_leaves_its_window_with_at_most_the_cut(seed):
    forest, weights, u, marginals = star(seed)
    theta = tilts(forest, weights)
    network = compile_network(forest, weights, theta, composable(weights.unary) * np.int8(0))
    lo, hi = windows(network, place_classes(network), cut=1e-8, generous=1.04)
    for v, law in enumerate(marginals):
        c = network.slot_class[v]
        outside = (u < lo[c]) | (u > hi[c])
        assert law[outside].sum() <= 1e-8
        held = u[law > 1e-40]
        assert lo[c] >= held[0] - 40
        assert hi[c] <= held[-1] + 40


def test_undetermined_entries_have_no_law():
    forest = of_tree(Tree.from_parents([-1, 0, 0]))
    flat = Unary(
        np.full(1, laws.FLAT), np.full(1, INF), np.zeros(1), -np.full(1, INF), np.full(1, INF)
    )
    weights = SharedUnary(flat, np.zeros(3, dtype=np.int32))
    assert not is_proper(forest, weights)
    with pytest.raises(UnsupportedError, match="conditional law does not exist"):
        check_proper(forest, weights)


def test_bounds_that_no_sum_satisfies_are_refused():
    forest = of_tree(Tree.from_parents([-1, 0, 0]))
    one = np.ones(3)
    each = Unary(
        np.full(3, laws.LAPLACE), one, 0 * one, np.array([5.0, 0, 0]), np.array([9.0, 2, 3])
    )
    check_feasible_sums(forest, SharedUnary(each, np.arange(3, dtype=np.int32)))
    with pytest.raises(InfeasibleError, match="within the bounds"):
        each.hi[2] = 2.0
        check_feasible_sums(forest, SharedUnary(each, np.arange(3, dtype=np.int32)))
