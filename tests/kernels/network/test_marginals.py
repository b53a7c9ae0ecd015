"""Summaries of laws: one against every interval, those of thousands of trees by convolutions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import digamma

import congenial as cg
from congenial.kernels.network.marginals import (
    HIGH,
    LOW,
    MEAN,
    MEDIAN,
    REACH,
    SUMMARIES,
    VARIANCE,
    rise,
    summarise,
)
from congenial.kernels.numerics import laws
from congenial.sum_network import marginals
from congenial.sum_network.forest import of_tree
from congenial.sum_network.weights import SharedUnary, Unary
from support.seeds import for_each_seed
from support.sum_networks import tables_of

pytestmark = pytest.mark.kernels

INF = np.inf
# Shares of a law: passed over at either end of a sum's, and taken for equal.
CUT, TIE = 1e-12, 1e-9
# Values are told from -WIDE to WIDE: all sums of bounded leaves, and 40 scales of others.
WIDE = 80
VALUES = np.arange(-WIDE, WIDE + 1)


@for_each_seed(300)
def test_a_law_is_summarised(seed):
    rng = np.random.default_rng(seed)
    # whole numbers, so that equal shares are equal
    p = rng.integers(0, 20, rng.integers(1, 25)).astype(float)
    p[rng.integers(p.size)] += 1.0
    lo, alpha = int(rng.integers(-20, 10)), float(rng.choice([0.05, 0.1, 0.5]))
    values, share = lo + np.arange(p.size), p / p.sum()
    out = np.empty(SUMMARIES)
    assert summarise(p, float(lo), alpha, out) == p.sum()
    mean = values @ share
    assert out[MEAN] == pytest.approx(mean, abs=1e-12)
    assert out[VARIANCE] == pytest.approx(share @ (values - mean) ** 2, abs=1e-10)
    assert out[MEDIAN] == values[np.flatnonzero(np.cumsum(share) >= 0.5 - 1e-9)[0]]
    intervals = [
        (j - i, -round(p[i : j + 1].sum()), i)
        for i in range(p.size)
        for j in range(i, p.size)
        if share[i : j + 1].sum() >= 1.0 - alpha - 1e-9
    ]
    length, _, low = min(intervals)
    assert (out[LOW], out[HIGH]) == (lo + low, lo + low + length)
    reaches = [r for r in range(60) if share[np.abs(values) <= r].sum() >= 1.0 - alpha + 1e-9]
    assert out[REACH] == (reaches[0] if reaches else np.abs(values[[0, -1]]).max())


def test_the_reach_of_a_law_far_from_zero_takes_no_search():
    out = np.empty(SUMMARIES)
    for way, lo in ((1, 10**15), (-1, -(10**15) - 2)):  # days, one by one
        summarise(np.array([1.0, 2.0, 1.0][::way]), float(lo), 0.3, out)
        assert out[REACH] == 10**15 + 1


@for_each_seed(100)
def test_a_rise_is_a_mean_of_digamma(seed):
    rng = np.random.default_rng(seed)
    p, lo = rng.exponential(size=rng.integers(1, 30)), int(rng.integers(-5, 40))
    p[: max(-lo, 0)] = 0.0
    if p.sum() == 0.0:
        return
    r = float(rng.choice([0.05, 1.0, 60.0]))
    k = np.maximum(lo + np.arange(p.size), 0)
    wanted = p @ (digamma(k + r) - digamma(r)) / p.sum()
    assert rise(p, float(lo), r) == pytest.approx(wanted, rel=1e-10, abs=1e-11)


def random_tree(seed):
    """A tree of up to four levels with mixed laws, its leaves bounded on one side or both."""
    rng = np.random.default_rng([80, seed])
    parents, row = [-1], [0]
    for _ in range(rng.integers(1, 4)):
        grown = [v for v in row if rng.random() < 0.8] or row[:1]
        below = [v for v in grown for _ in range(rng.integers(1, 4))][:5]
        row = list(range(len(parents), len(parents) + len(below)))
        parents += below
    tree = cg.Tree.from_parents(parents)
    n, leaf = len(tree), tree.is_leaf
    base = np.where(leaf, rng.integers(0, 7, n), 0)
    lo = np.where(leaf, -base, -INF).astype(float)
    hi = np.where(leaf, rng.integers(1, 7, n), INF).astype(float)
    scale = 10.0 ** rng.uniform(-0.5, 0.7, n)
    if rng.random() < 0.3:  # nothing bounds the values from above
        scale, hi = 10.0 ** rng.uniform(-0.5, 0.0, n), np.full(n, INF)
    if rng.random() < 0.3:
        lo[0] = hi[0] = 0.0
    kind = np.full(n, rng.choice([laws.LAPLACE, laws.GAUSSIAN]))
    center = np.where(rng.random(n) < 0.3, rng.integers(-2, 3, n), 0).astype(float)
    return tree, Unary(kind, scale, center, lo, hi), base


def dense_laws(tree, unary):
    """The marginal law of every node on `VALUES`, by messages up and down."""
    n, parents = len(tree), tree.parents
    own = []
    for v in range(n):
        u = (VALUES - unary.center[v]) / unary.scale[v]
        weight = np.exp(-np.abs(u) if unary.kind[v] == laws.LAPLACE else -0.5 * u**2)
        own.append(weight * ((unary.lo[v] <= VALUES) & (unary.hi[v] >= VALUES)))
    families = [np.flatnonzero(parents == v) for v in range(n)]
    up, only = list(own), np.where(VALUES == 0, 1.0, 0.0)
    for v in range(n - 1, -1, -1):
        if families[v].size:
            total = only
            for child in families[v]:
                total = np.convolve(total, up[child])[WIDE:-WIDE]
            up[v] = own[v] * total
            up[v] = up[v] / up[v].max()
    around = [np.ones(VALUES.size)] * n
    for v in range(n):
        for child in families[v]:
            rest = only
            for other in families[v]:
                if other != child:
                    rest = np.convolve(rest, up[other])[WIDE:-WIDE]
            around[child] = np.convolve(around[v] * own[v], rest[::-1])[WIDE:-WIDE]
            around[child] = around[child] / around[child].max()
    found = [a * b for a, b in zip(around, up, strict=True)]
    return np.array([p / p.sum() for p in found])


def shortest_of(p, need, slack):
    """Length of the shortest interval that has more than enough, and what all as long have."""
    ends = np.concatenate(([0.0], np.cumsum(p)))
    for length in range(1, p.size + 1):
        inside = ends[length:] - ends[:-length]
        if (inside >= need - TIE + slack).any():
            return length, inside
    raise AssertionError


def check(p, alpha, found, slack):
    """Compare summaries of one law with the law; a share `slack` of it may be elsewhere."""
    mean, variance, median, low, high, reach = found
    wanted, need = p @ VALUES, 1.0 - alpha
    span = np.ptp(VALUES[p > 0])
    assert abs(mean - wanted) <= slack * span
    assert abs(variance - p @ (VALUES - wanted) ** 2) <= slack * span**2
    below = np.cumsum(p)
    assert below[median + WIDE] >= 0.5 - TIE - slack
    assert below[median + WIDE] - p[median + WIDE] < 0.5 - TIE + slack
    length, inside = shortest_of(p, need, slack)
    at = low + WIDE
    own = p[at : high + WIDE + 1].sum()
    assert own >= need - TIE - slack
    assert high - low + 1 <= length
    if high - low + 1 == length:
        assert own >= inside.max() - TIE - slack
        lower = inside[:at]
        assert (lower[lower >= need - TIE + slack] < own - slack).all()
    assert p[np.abs(VALUES) <= reach].sum() >= need + TIE - slack
    assert p[np.abs(VALUES) < reach].sum() < need + TIE + slack


def test_summaries_of_thousands_of_trees_are_those_of_dense_laws():
    tails = np.array([0.01, 0.1, 0.25])
    for seed in range(2000):
        tree, unary, base = random_tree(seed)
        n = len(tree)
        tables = tables_of(of_tree(tree), SharedUnary(unary, np.arange(n, dtype=np.int32)))
        dense = dense_laws(tree, unary)
        alpha = (0.05, 0.1, 0.3)[seed % 3]
        dispersion = np.where(tree.is_leaf, 0.4 + seed % 5, 0.0)
        made = marginals.summaries(tables, tree.is_leaf, alpha, center=base, dispersion=dispersion)
        sided = marginals.one_sided(
            tables, tables.table, np.zeros(tables.lo.size), tree.is_leaf, tails
        )
        depth = tree.level.max()
        # what windows lost, what is passed over at either end of each sum, and rounding of sums
        slack = tables.error + 2.0 * CUT * depth + 2.0**-52 * VALUES.size * n
        for v in range(n):
            p = dense[v]
            whole = [made.median[v], made.lower[v], made.upper[v]] - base[v]
            check(
                p, alpha, (made.mean[v] - base[v], made.variance[v], *whole, made.reach[v]), slack
            )
            below = np.cumsum(p)
            for t, tail in enumerate(tails - TIE):
                low, high = sided.below[v, t] + WIDE, sided.above[v, t] + WIDE
                assert below[low] - p[low] <= tail + slack
                assert below[low] > tail - slack
                assert 1.0 - below[high] <= tail + slack
                assert 1.0 - below[high] + p[high] > tail - slack
            if tree.is_leaf[v]:
                counts, r = np.maximum(VALUES + base[v], 0), dispersion[v]
                rises = p @ (digamma(counts + r) - digamma(r))
                assert abs(made.rise[v] - rises) <= slack * 10.0
                assert abs(made.empty[v] - p[WIDE - base[v]]) <= slack
