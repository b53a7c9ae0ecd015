"""Cases that break samplers quietly: many cells, wide noise, totals of 0, one count among zeros."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import chi2, nbinom

import congenial as cg
from congenial.errors import InfeasibleError
from support.conditioning_cases import INF
from support.enumeration import enumerate_law
from support.flat_sums import FlatSum

FAILS = 1e-6
CELLS = 65_536


def log_mode(scale):
    return float(np.log(np.tanh(0.5 / scale)))


def flat(x, scale, *, nonnegative=True):
    """Cells under their total, which is published exactly; and the data."""
    tree = cg.Tree.from_parents(np.concatenate(([-1], np.zeros(len(x), dtype=int))))
    invariant = cg.consistent(tree) & cg.exactly(0)
    if nonnegative:
        invariant = invariant & cg.nonnegative()
    scales = np.concatenate(([INF], np.full(len(x), float(scale))))
    mechanism = cg.Additive(cg.DiscreteLaplace(scales), tree)
    return cg.condition(mechanism, invariant), tree.roll_up(np.asarray(x))


def p_value(drawn, values, mass):
    """Chi-square of drawn values under a law, in cells of at least 20 expected."""
    below = np.concatenate(([0.0], np.cumsum(mass)))
    cuts = np.unique(
        np.searchsorted(below, np.linspace(0, below[-1], min(40, drawn.size // 20) + 1)[1:-1])
    )
    expected = np.diff(below[np.concatenate(([0], cuts, [mass.size]))])
    expected = expected / expected.sum() * drawn.size
    cell = np.searchsorted(values[np.minimum(cuts, mass.size - 1)], drawn, side="right")
    observed = np.bincount(cell, minlength=expected.size)
    kept = expected >= 5
    expected = np.append(expected[kept], expected[~kept].sum() + 1e-300)
    observed = np.append(observed[kept], observed[~kept].sum())
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), max(kept.sum() - 1, 1)))


@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_reference_is_enumeration_where_there_is_one(nonnegative):
    x = np.array([3, 0, 1, 0])
    known = FlatSum(x, 0.5, nonnegative)
    law = enumerate_law(np.ones((1, 4)), "laplace", 0.5, x, lo=0 if nonnegative else -INF)
    assert known.log_normalizer == pytest.approx(law.log_total, abs=1e-12)
    for v in (0, 1):
        values = np.arange(-3, 9)
        want = [law.marginal(v).get(int(z), 0.0) for z in values]
        np.testing.assert_allclose(known.marginal(x[v], values), want, atol=1e-13)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_the_reference_is_the_convolution_of_its_cells(nonnegative):
    x, u = np.resize([3, 0, 1, 0], 24), np.arange(-400, 401)
    total = np.ones(1)
    for count in x:
        weight = np.where(u >= (-count if nonnegative else -INF), np.exp(-np.abs(u) / 4.0), 0.0)
        total = np.convolve(total, weight)
        middle = total.size // 2
        total = total[max(0, middle - 400) : middle + 401]
    want = np.log(total[400]) + 24 * log_mode(4.0)
    assert FlatSum(x, 4.0, nonnegative).log_normalizer == pytest.approx(want, abs=1e-10)


@pytest.mark.parametrize("nonnegative", [True, False])
def test_sixty_five_thousand_cells_under_one_total(nonnegative):
    """Poisson(3) cells at epsilon 1: a record moved changes two cells, so the scale is 2."""
    x = np.random.default_rng(2022).poisson(3, CELLS)
    known, full = flat(x, 2.0, nonnegative=nonnegative)
    truth = FlatSum(x, 2.0, nonnegative)
    assert known.guarantee("substitute").epsilon == pytest.approx(
        np.log(2.0 * np.e - 1.0) if nonnegative else 1.0
    )
    assert known.log_normalizer(full) == pytest.approx(truth.log_normalizer, abs=1e-8)
    for count in (0, 3, int(x.max())):
        node = 1 + int(np.flatnonzero(x == count)[0])
        values, probabilities = known.marginal(node, full)
        np.testing.assert_allclose(probabilities, truth.marginal(count, values), atol=1e-12)
        assert probabilities.sum() == pytest.approx(1.0)
    draws = known.sample(full, 2, cg.seeded(7))
    assert (draws[:, 0] == full[0]).all()
    assert (draws[:, 1:].sum(axis=1) == full[0]).all()
    assert not nonnegative or draws.min() == 0
    # cells of one count are all but independent under the total
    values = np.arange(-90, 120)
    for off in (1.0, 0.7, 1.3):
        wrong = FlatSum(x, 2.0 * off, nonnegative)
        got = [
            p_value(z[1:][x == count], values, wrong.marginal(count, values))
            for z in draws
            for count in (0, 3)
        ]
        assert (min(got) > FAILS) == (off == 1.0), (off, got)


def test_three_cells_of_any_scale_have_their_closed_form():
    """|u| + |v| + |u + v| is twice the largest: m on a hexagon of 6 m points of the lattice."""
    for scale in (0.5, 3.0, 20.0, 400.0):
        known, full = flat([5, 1, 2], scale, nonnegative=False)
        q = np.exp(-2 / scale)
        m = np.arange(1, int(40 * scale) + 40)
        total = 1 + (6 * m * q**m).sum()
        got = known.log_normalizer(full)
        assert got == pytest.approx(np.log(total) + 3 * log_mode(scale), abs=1e-9)
        values, p = known.marginal(1, full)
        variance = (q**m * (10 / 3 * m**3 + 2 / 3 * m)).sum() / total
        assert (p * (values - 5.0) ** 2).sum() == pytest.approx(variance, rel=1e-8)
    # in the limit of wide noise, that of the continuous law
    assert variance / scale**2 == pytest.approx(5 / 6, rel=1e-5)


def test_a_scale_of_ten_thousand_and_many_cells():
    x = np.resize([0, 7, 40_000], 256)
    known, full = flat(x, 1e4, nonnegative=False)
    draws = known.sample(full, 40, cg.seeded(3))
    assert (draws[:, 1:].sum(axis=1) == full[0]).all()
    values = np.arange(-400_000, 400_001, 50)
    for off in (1.0, 0.7, 1.3):
        mass = FlatSum(x, 1e4 * off, nonnegative=False).marginal(0, values)
        noise = (draws - full)[:, 1::8].ravel()  # an eighth of the cells are all but independent
        assert (p_value(noise, values, mass) > FAILS) == (off == 1.0)


@pytest.mark.parametrize("n", [1, 2, 1000, CELLS])
def test_a_total_of_zero_leaves_nothing_else(n):
    known, full = flat(np.zeros(n, dtype=int), 2.0)
    assert (known.sample(full, 3, cg.seeded(1)) == 0).all()
    assert known.log_normalizer(full) == pytest.approx(n * log_mode(2.0), rel=1e-12)
    assert known.log_prob(full, full) == pytest.approx(0.0, abs=1e-9)
    values, p = known.marginal(n, full)
    assert values.tolist() == [0]
    assert p.tolist() == [1.0]


def test_a_total_of_zero_with_counts_of_both_signs():
    """The total binds, not the cells."""
    x = np.array([2, -3, 1])
    known, full = flat(x, 0.8, nonnegative=False)
    law = enumerate_law(np.ones((1, 3)), "laplace", 0.8, x)
    assert full[0] == 0
    assert known.log_normalizer(full) == pytest.approx(law.log_total, abs=1e-12)


def test_no_total_of_zero_below_positive_bounds():
    tree = cg.Tree.from_parents([-1, 0, 0])
    known = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree) & cg.bounds(lo=[-INF, 1, 1])
    )
    with pytest.raises(cg.CongenialError):
        known.sample([0, 0, 0], rng=cg.seeded(1))
    with pytest.raises(InfeasibleError):
        cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 2), cg.bounds(lo=1, hi=0))


@pytest.mark.parametrize("n", [1, 3, 500, CELLS])
@pytest.mark.parametrize(("root", "scale"), [(2.0, 2.0), (30.0, 0.5), (0.3, 9.0)])
def test_all_counts_zero_under_a_noisy_total(n, root, scale):
    """The total given the bounds is negative binomial: r^T C(n + T - 1, T), r of both noises."""
    tree = cg.Tree.from_parents(np.concatenate(([-1], np.zeros(n, dtype=int))))
    scales = np.concatenate(([root], np.full(n, scale)))
    known = cg.condition(
        cg.Additive(cg.DiscreteLaplace(scales), tree), cg.consistent(tree) & cg.nonnegative()
    )
    zero = np.zeros(n + 1, dtype=int)
    r = np.exp(-1 / root - 1 / scale)
    want = log_mode(root) + n * (log_mode(scale) - np.log1p(-r))
    assert known.log_normalizer(zero) == pytest.approx(want, abs=1e-9, rel=1e-11)
    values, p = known.marginal(0, zero)
    np.testing.assert_allclose(p, nbinom(n, 1 - r).pmf(values), atol=1e-10)
    values, p = known.marginal(1, zero)
    np.testing.assert_allclose(p, (1 - r) * r**values, atol=1e-10)
    draw = known.sample(zero, rng=cg.seeded(4))
    assert draw.min() >= 0
    assert draw[0] == draw[1:].sum()
    if n == CELLS:
        cells = np.arange(400)
        for off in (1.0, 0.7, 1.3):
            turned = r ** (1 / off)
            fits = p_value(draw[1:], cells, (1 - turned) * turned**cells) > FAILS
            assert fits == (off == 1.0)


@pytest.mark.parametrize("huge", [2**20, 2**45])
@pytest.mark.parametrize(("n", "scale"), [(2, 0.4), (2, 300.0), (400, 0.4), (400, 5.0)])
def test_one_huge_leaf_among_empty_ones(n, huge, scale):
    """Each other cell is geometric with the squared base, whatever the huge one gives up."""
    x = np.zeros(n, dtype=np.int64)
    x[n // 2] = huge
    known, full = flat(x, scale)
    q = np.exp(-2 / scale)
    want = n * log_mode(scale) - (n - 1) * np.log1p(-q)
    assert known.log_normalizer(full) == pytest.approx(want, rel=1e-11, abs=1e-9)
    values, p = known.marginal(1, full)
    np.testing.assert_allclose(p, (1 - q) * q**values, atol=1e-11)
    values, p = known.marginal(1 + n // 2, full)
    np.testing.assert_allclose(p, nbinom(n - 1, 1 - q).pmf(huge - values), atol=1e-11)
    draws = known.sample(full, 400, cg.seeded(6))
    assert draws.min() >= 0
    assert (draws[:, 1:].sum(axis=1) == huge).all()
    given_up = huge - draws[:, 1 + n // 2]
    cells = np.arange(int(nbinom(n - 1, 1 - q).isf(1e-15)) + 1)
    assert p_value(given_up, cells, nbinom(n - 1, 1 - q).pmf(cells)) > FAILS


def test_one_huge_leaf_deep_in_a_tree_of_empty_ones():
    """Families of 30 under 20 nodes: each level has noise, and the counts are one path."""
    parents = np.concatenate(([-1], np.zeros(20, dtype=int), np.repeat(np.arange(1, 21), 30)))
    tree = cg.Tree.from_parents(parents)
    x = np.zeros(tree.leaves.size, dtype=np.int64)
    x[77] = 2**44
    full = tree.roll_up(x)
    known = cg.condition(
        cg.Additive(cg.DiscreteLaplace(3.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    draws = known.sample(full, 50, cg.seeded(2))
    assert draws.min() >= 0
    assert (tree.roll_up(draws[:, tree.leaves]) == draws).all()
    assert np.abs(draws - full).max() < 400
    empty = np.flatnonzero((tree.level == 1) & (full == 0))
    # an empty family: its total is r^T C(T + 29, T) times what the root lets through
    values, p = known.marginal(int(empty[0]), full)
    law = nbinom(30, 1 - np.exp(-2 / 3.0)).pmf(values) * _let_through(values)
    np.testing.assert_allclose(p, law / law.sum(), atol=1e-9)


def _let_through(total):
    """Weight of a family's noise `total`, summed over the rest of the tree and the root's noise."""
    reach = 3000
    u = np.arange(-reach, reach + 1)
    noise = np.exp(-np.abs(u) / 3.0)
    t = np.arange(reach + 1)
    counted = np.exp(gammaln(t + 30) - gammaln(t + 1) - gammaln(30) - 2 * t / 3.0)
    family = np.concatenate((np.zeros(reach), counted))
    geometric = np.where(u >= 0, np.exp(-np.abs(u) / 3.0), 0.0)
    # the family of the huge leaf: its leaf is free, its 29 others not negative, its node noisy
    inner = noise
    for _ in range(29):
        inner = np.convolve(inner, geometric)[reach:-reach]
    rest = noise * inner
    for _ in range(18):
        rest = np.convolve(rest, family)[reach:-reach]
        rest /= rest.max()
    through = np.convolve(rest, noise)[reach:-reach]  # the root's noise is minus the sum
    return through[reach - total]
