"""Like siblings drawn as compositions: weights, uniformity, and the law that comes out."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, getcontext
from math import comb

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.kernels.network import descend
from congenial.kernels.numerics import laws
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

LEAST = 1e-6
UNIT = 2.0**-53
doubled_exp = entry("numerics.doubled.doubled_exp")
fill_unary = entry("network.weights.fill_unary")


@pytest.fixture(autouse=True)
def fifty_digits():
    getcontext().prec = 50


def test_exponentials_are_right_to_95_bits():
    numbers = np.random.default_rng(0)
    for _ in range(300):
        x = -numbers.random() * 10 ** numbers.uniform(-3, 2.8)
        low = x * 1e-17 * numbers.normal()
        high, rest = doubled_exp(x, low)
        truth = (Decimal(x) + Decimal(low)).exp()
        assert abs((Decimal(high) + Decimal(rest)) / truth - 1) < Decimal(2) ** -95


@pytest.mark.parametrize(("n", "scale", "tilt"), [(5, 0.3, 0.1), (20, 2.0, 0.01), (400, 50.0, 0.0)])
@pytest.mark.parametrize("side", [1, -1])
def test_sums_of_geometric_variables_are_within_two_units(n, scale, tilt, side):
    first, width = max(0, int(n * scale * 0.6)), 40 + 4 * n
    out = np.empty(width)
    at = first if side > 0 else -(first + width - 1)
    fill_unary(laws.GEOMETRIC_SUM, 1.0 / scale, float(n), tilt, at, out)
    got = out if side > 0 else out[::-1]
    mode = int(np.argmax(got))
    assert got[mode] == 1.0
    rate = side * Decimal(tilt) - Decimal(1.0 / scale)
    for i in (0, mode // 2, (mode + width) // 2, width - 1):
        k, m = first + i, first + mode
        ratio = Decimal(comb(k + n - 1, k)) / Decimal(comb(m + n - 1, m))
        truth = ratio * (rate * (k - m)).exp()
        assert abs(Decimal(float(got[i])) / truth - 1) < Decimal(2.0 * UNIT)


def chisquare(draws, values, probabilities):
    expected = probabilities * draws.size
    kept = expected > 20
    observed = np.array([(draws == v).sum() for v in values[kept]])
    rest = draws.size - observed.sum(), draws.size - expected[kept].sum()
    terms = (observed - expected[kept]) ** 2 / expected[kept]
    statistic = terms.sum() + (rest[0] - rest[1]) ** 2 / max(rest[1], 1e-9)
    return stats.chi2.sf(statistic, kept.sum())


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("odd", [None, 9.0])
def test_composed_families_have_the_law_of_merged_ones(pinned, odd):
    tree = cg.Tree.from_parents([-1] + [0] * 7)
    x = tree.roll_up([3, 1, 4, 1, 5, 9, 2])
    scales = np.full(8, 1.5)
    scales[0] = np.inf if pinned else 1.0
    if odd is not None:
        scales[-1] = odd
    invariant = cg.consistent(tree) & cg.exactly(0) if pinned else cg.consistent(tree)
    draws_of, law_of = (
        cg.condition(cg.Additive(cg.DiscreteLaplace(scales * s), tree), invariant) for s in (1, 1.0)
    )
    draws = draws_of.sample(x, 60_000, cg.seeded(5))
    assert (draws[:, 1:].sum(axis=1) == draws[:, 0]).all()
    wrong = [
        cg.condition(cg.Additive(cg.DiscreteLaplace(scales * s), tree), invariant)
        for s in (0.7, 1.3)
    ]
    for node in (1, 7):
        assert chisquare(draws[:, node], *law_of.marginal(node, x)) > LEAST
        for other in wrong:
            assert chisquare(draws[:, node], *other.marginal(node, x)) < LEAST
    if pinned and odd is None:
        spread = np.cov(draws[:, 1:].T)
        # under one fixed sum every pair is as correlated as any other
        shared = spread[~np.eye(7, dtype=bool)]
        assert shared.mean() == pytest.approx(-spread.diagonal().mean() / 6, rel=1e-9)
        assert shared.std() < 0.1


def test_two_like_siblings_have_their_joint_law():
    tree = cg.Tree.from_parents([-1, 0, 0, 0, 0])
    x = np.zeros(5, dtype=np.int64)
    released = cg.condition(
        cg.Additive(cg.DiscreteLaplace([np.inf, 1.0, 1.0, 1.0, 1.0]), tree),
        cg.consistent(tree) & cg.exactly(0),
    )
    draws = released.sample(x, 60_000, cg.seeded(6))[:, 1:]
    reach = np.arange(-3, 4)
    grid = np.array(np.meshgrid(reach, reach, reach, indexing="ij")).reshape(3, -1).T
    whole = np.column_stack((np.zeros(len(grid), dtype=np.int64), grid, -grid.sum(axis=1)))
    probability = np.exp(released.log_prob(whole, x))
    seen = Counter(map(tuple, draws[:, :3]))
    observed = np.array([seen[tuple(row)] for row in grid])
    expected = probability * len(draws)
    kept = expected > 10
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum()) > LEAST


def test_compositions_run_last():
    # siblings of a leaf that is composed have leaves of their own, at every depth
    tree = cg.Tree.from_parents([-1, *[0] * 7, *[1] * 6, *[2] * 5, *[8] * 4])
    noise = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    op = cg.condition(noise, cg.consistent(tree))._draw_tables.network.op
    late = np.flatnonzero(op == descend.COMPOSE)
    assert late.size == 4
    assert late[0] == op.size - late.size
