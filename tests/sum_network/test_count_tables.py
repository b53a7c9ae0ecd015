"""Messages of trees whose leaves have priors, against enumeration; weights are listed once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

import congenial as cg
from congenial.domain.tree import Tree
from congenial.errors import UnsupportedError
from congenial.kernels.numerics import laws
from congenial.sum_network import count_tables
from congenial.sum_network.count_tables import fill_priors, prior_tilts, share_priors
from congenial.sum_network.forest import of_tree
from congenial.sum_network.marginals import marginal
from congenial.sum_network.weights import Unary
from support.seeds import for_each_seed

INF = np.inf
TREE = Tree.from_parents([-1, 0, 0, 2, 2])
MOST = 40  # counts of a leaf that are enumerated


def random_weights(rng):
    """Weights of all nodes, the leaves with priors, counted from a tree of counts."""
    n, leaf = len(TREE), TREE.is_leaf
    center = TREE.roll_up(rng.integers(0, 5, TREE.leaves.size)).astype(float)
    kind = np.full(n, rng.choice([laws.LAPLACE, laws.GAUSSIAN]))
    scale, mode = rng.uniform(0.5, 2.0, n), rng.integers(-2, 3, n).astype(float)
    lo = np.where(leaf, -center, -INF)
    a = np.where(leaf, rng.uniform(0.3, 3.0, n), -1.0)
    b = np.where(leaf, rng.choice([0.0, 0.4], n), 0.0)
    zero = np.where(leaf, rng.choice([0.0, 2.0], n), 0.0)
    return Unary(kind, scale, mode, lo, np.full(n, INF)), a, b, center, zero


def log_weight(unary, a, b, center, zero, u):
    """Log weights of trees `u`, shape (k,)."""
    away = np.abs(u - unary.center) / unary.scale
    out = -np.where(unary.kind == laws.GAUSSIAN, 0.5 * away**2, away).sum(axis=1)
    for v in TREE.leaves:
        k = u[:, v] + center[v]
        r = a[v] / b[v] if b[v] else 0.0
        law = gammaln(k + r) - gammaln(r) + k * np.log(b[v]) if b[v] else k * np.log(a[v])
        out += law - gammaln(k + 1.0) + zero[v] * (k == 0)
    return out


@for_each_seed(6)
def test_marginals_are_those_of_enumeration(seed):
    given = random_weights(np.random.default_rng([105, seed]))
    unary, a, b, center, zero = given
    weights = share_priors(unary, a, b, center, zero)
    forest = of_tree(TREE)
    tables = fill_priors(forest, weights, prior_tilts(forest, weights))
    leaves = np.array(list(itertools.product(range(MOST), repeat=TREE.leaves.size)))
    u = TREE.roll_up(leaves) - center
    log = log_weight(*given, u)
    p = np.exp(log - log.max())
    p /= p.sum()
    for v in range(len(TREE)):
        values, found = marginal(tables, v)
        wanted = np.bincount((u[:, v] - u[:, v].min()).astype(int), weights=p)
        at = values - int(u[:, v].min())
        held = (at >= 0) & (at < wanted.size)
        # what windows leave out is checked to be less than this
        np.testing.assert_allclose(found[held], wanted[at[held]], atol=2e-8)
        assert wanted[at[held]].sum() > 1.0 - 2e-8


@for_each_seed(50)
def test_equal_weights_are_listed_once(seed):
    rng = np.random.default_rng([106, seed])
    n = int(rng.integers(1, 30))
    few = rng.integers(0, 2, (9, n)).astype(float)
    columns = [*few[:5], 2.0 * few[5] - 1.0, *few[6:]]
    kind, scale, mode, lo, hi, a, b, base, zero = columns
    found = share_priors(Unary(kind, scale, mode, lo, hi), a, b, base, zero)
    own = (getattr(found.unary, name) for name in ("kind", "scale", "center", "lo", "hi"))
    listed = np.column_stack([*own, found.prior])
    # where there is no prior nothing is counted from the base
    columns[7] = np.where(a >= 0.0, base, 0.0)
    np.testing.assert_array_equal(listed[found.code], np.column_stack(columns))
    assert len(np.unique(listed, axis=0)) == len(listed)


def test_a_leaf_that_is_either_empty_or_far_from_it_is_refused():
    unary, a, b, center, zero = random_weights(np.random.default_rng(1))
    zero[TREE.leaves[0]] = 21.0
    with pytest.raises(UnsupportedError, match="by 21, and the limit is"):
        prior_tilts(of_tree(TREE), share_priors(unary, a, b, center, zero))


def test_tables_beyond_the_limit_are_refused_with_the_limits(monkeypatch):
    monkeypatch.setattr(count_tables, "_MEMORY_LIMIT", 1 << 4)
    noise = cg.Additive(cg.DiscreteLaplace(2.0), TREE)
    law = cg.posterior([9, 4, 5, 2, 3], noise, cg.consistent(TREE), "poisson")
    with pytest.raises(UnsupportedError, match=r"and the limits are 0\.0 GiB and 3e\+11; use"):
        law.sample()
