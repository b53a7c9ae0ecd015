"""Continuous noise under equalities: closed forms, dense references, imaging, draws, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, kstest

import congenial as cg
from congenial.errors import (
    ArgumentError,
    CongenialError,
    EmptyNeighbourhoodError,
    InvariantError,
    UnsupportedError,
)
from support.continuous_cases import build, compare, equalities, reference

FAILS = 1e-6
INF = np.inf
STAR = cg.Tree.from_parents([-1, 0, 0, 0])
BINARY = cg.Tree.from_parents([-1, 0, 0, 1, 1])


@st.composite
def systems(draw):
    """Trees with pins, plain vectors, crossing sums; some entries not measured."""
    n = draw(st.integers(1, 9))
    tree = None
    if draw(st.booleans()):
        tree = cg.Tree.from_parents([-1, *(draw(st.integers(-1, i)) for i in range(n - 1))])
    pinned = tuple(v for v in range(n) if draw(st.integers(0, 5)) == 0)
    entry = st.sampled_from((-1, 0, 1)) if draw(st.booleans()) else st.integers(-3, 3)
    rows = [[draw(entry) for _ in range(n)] for _ in range(draw(st.integers(0, 2)))]
    widths = st.sampled_from((0.02, 0.5, 1.0, 1.7, 40.0, INF))
    sigma = np.array([draw(widths) for _ in range(n)])
    return n, sigma, tree, pinned, rows


@settings(max_examples=150, deadline=None, derandomize=True)
@given(systems())
def test_the_law_is_that_of_the_dense_reference(system):
    n, sigma, tree, pinned, rows = system
    mechanism, invariant = build(n, sigma, tree, pinned, rows)
    all_rows = equalities(n, tree, pinned, rows)
    if reference(all_rows, sigma) is None:
        with pytest.raises(UnsupportedError, match="not measured"):
            cg.condition(mechanism, invariant)
        return
    compare(cg.condition(mechanism, invariant), all_rows, sigma)


@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_one_sum_has_its_closed_form(n):
    tree = cg.Tree.from_parents([-1] + [0] * n)
    mechanism = cg.Additive(cg.Gaussian([INF] + [3.0] * n), tree)
    made = cg.condition(mechanism, cg.consistent(tree) & cg.exactly(0))
    sd = made.marginal(1, np.zeros(n + 1)).sd
    assert sd**2 == pytest.approx(9.0 * (1 - 1 / n), abs=1e-12)
    assert made.marginal(0, np.zeros(n + 1)).sd == 0
    # the density of the noise on its simplex: a normal law of n - 1 dimensions
    z = np.concatenate(([0.0], np.linspace(-1, 1, n) if n > 1 else [0.0]))
    want = -0.5 * (z**2).sum() / 9 - (n - 1) * np.log(3 * np.sqrt(2 * np.pi))
    assert made.log_prob(z, np.zeros(n + 1)) == pytest.approx(want, abs=1e-9)


@pytest.mark.parametrize("sigma", [2.0, [1.0, 2.0, 0.3, 0.7, 5.0]])
@pytest.mark.parametrize("pinned", [(), (0,), (3,)])
def test_it_equals_the_l2_image_draw_by_draw(sigma, pinned):
    """Two Views: revision and L2 update agree for Gaussian noise in the metric of its precision."""
    x = BINARY.roll_up([4.5, 1.0, 2.25])
    mechanism, invariant = build(5, np.broadcast_to(sigma, 5), BINARY, pinned)
    kept = cg.condition(mechanism, invariant).sample(x, 50, cg.seeded(7))
    moved = cg.image(mechanism, invariant).sample(x, 50, cg.seeded(7))
    np.testing.assert_allclose(kept, moved, atol=1e-9)
    off = cg.image(mechanism, invariant).sample(x, 50, cg.seeded(8))
    assert np.abs(kept - off).max() > 0.1


@pytest.mark.parametrize("sigma", [[1.0, 0.4, 2.0, 1.0, 0.7], [1.0, INF, 2.0, 1.0, 0.7]])
def test_draws_follow_the_law_and_fail_at_a_wrong_scale(sigma):
    """Mahalanobis lengths are chi-square, marginals normal; neither at 0.7 or 1.3 of the scale."""
    sigma = np.array(sigma)
    made = cg.condition(*build(5, sigma, BINARY))
    x = BINARY.roll_up([1.0, 2.0, 3.0])
    draws = made.sample(x, 4000, cg.seeded(2022))
    np.testing.assert_allclose(BINARY.roll_up(draws[:, BINARY.leaves]), draws, atol=1e-12)
    noise = draws - x
    known = np.isfinite(sigma)
    length = (noise[:, known] ** 2 / sigma[known] ** 2).sum(axis=1)
    for scale in (1.0, 0.7, 1.3):
        assert (kstest(length / scale**2, chi2(3).cdf, method="asymp").pvalue > FAILS) == (
            scale == 1.0
        )
        for v in range(5):
            sd = made.marginal(v, x).sd
            assert (kstest(noise[:, v] / (scale * sd), "norm", method="asymp").pvalue > FAILS) == (
                scale == 1.0
            )
    inside = np.abs(noise[:, 1]) <= made.interval(1, 0.2)[1]
    assert abs(inside.mean() - 0.8) < 5 * np.sqrt(0.16 / 4000)


def test_a_fine_grid_has_the_same_law():
    """Probabilities over cell volumes tend to the density; log volumes by det of the tree."""
    sigma, step = np.array([1.0, 0.8, 1.2, 0.9, 1.1]), 0.125
    made = cg.condition(*build(5, sigma, BINARY))
    grid = cg.condition(
        cg.Additive(cg.DiscreteGaussian(sigma, step), BINARY), cg.consistent(BINARY)
    )
    below = BINARY.roll_up(np.eye(3)).T  # nodes by leaves
    cell = 3 * np.log(step) + 0.5 * np.linalg.slogdet(below.T @ below)[1]
    x = np.zeros(5)
    z = BINARY.roll_up(np.array([[0.5, 1.0, -0.25], [0.0, 0.0, 0.0], [2.0, -1.0, 0.125]]))
    np.testing.assert_allclose(grid.log_prob(z, x) - cell, made.log_prob(z, x), atol=1e-7)
    values, p = grid.marginal(1, x)
    assert (p * values**2).sum() == pytest.approx(made.marginal(1, x).sd ** 2, rel=1e-8)


def test_the_gaussian_has_its_other_methods():
    made = cg.condition(*build(5, np.full(5, 2.0), BINARY, (0,)))
    x = BINARY.roll_up([1.0, 2.0, 3.0])
    assert made.sample(x).dtype == np.float64
    assert made.sample(x, 0).shape == (0, 5)
    assert made.sample(x, 3)[:, 0].tolist() == [6.0] * 3
    assert made.log_prob(x + np.eye(5)[1], x) == -INF
    assert made.log_prob(x + np.array([1, 1, 0, 1, 0]), x) == -INF  # off the pin
    assert made.log_prob(np.stack((x, x)), x).shape == (2,)
    assert made.marginal("3", x).mean == x[3]
    mean, covariance = made.joint(["1", 2], x)
    assert mean.tolist() == [5.0, 1.0]
    assert covariance[0, 1] == pytest.approx(-covariance[0, 0])  # the two add up to the root
    told = made.guarantee("substitute")
    # two leaves and one inner node under the root change by one
    assert told.rho == pytest.approx(3 * 0.5 / 4)
    assert told.gamma == 0
    assert told.ideal_only
    assert "studies" in told.sentence
    assert "closed form" in made.explain()
    with pytest.raises(EmptyNeighbourhoodError):
        made.guarantee("add-remove")
    with pytest.raises(UnsupportedError, match="closed form"):
        cg.condition(made.mechanism, cg.consistent(BINARY), sampler="gibbs")


def test_wide_trees_and_scales_far_apart():
    tree = cg.Tree.from_parents([-1] + [0] * 300 + list(np.repeat(np.arange(1, 301), 300)))
    sigma = np.where(tree.level == 0, 1e-6, np.where(tree.level == 1, 1.0, 1e6))
    made = cg.condition(cg.Additive(cg.Gaussian(sigma), tree), cg.consistent(tree))
    x = tree.roll_up(np.full(90_000, 1000.0))
    z = made.sample(x, rng=cg.seeded(1))
    again = tree.roll_up(z[tree.leaves])
    assert np.abs(again - z).max() < 1e-6 * 1e3
    assert made.marginal(0, x).sd == pytest.approx(1e-6, rel=1e-6)
    assert made.marginal(1, x).sd == pytest.approx(np.sqrt(1 - 1 / 300), rel=1e-6)


LAWS = [cg.Gaussian(1.0), cg.Laplace(1.0)]


@pytest.mark.parametrize("noise", LAWS)
def test_unsupported_cases_are_refused(noise):
    mechanism = cg.Additive(noise, STAR)
    with pytest.raises(UnsupportedError, match="inequalities is not covered"):
        cg.condition(mechanism, cg.consistent(STAR) & cg.nonnegative())
    with pytest.raises(UnsupportedError, match="inequalities is not covered"):
        cg.condition(mechanism, cg.at_least([1, 0, 0, 0], 2))
    open_law = type(noise)(np.array([INF, INF, 1.0, 1.0]))
    with pytest.raises(UnsupportedError, match="not measured"):
        cg.condition(cg.Additive(open_law, STAR), cg.consistent(STAR))
    with pytest.raises(UnsupportedError):
        cg.condition(mechanism, (cg.exactly(0) & cg.bounds(lo=1)) | cg.bounds(hi=0))
    with pytest.raises(UnsupportedError):
        cg.condition(cg.mixture([mechanism], [1.0]), cg.consistent(STAR))
    made = cg.condition(mechanism, cg.consistent(STAR) & cg.linear([0, 1, 0, 0], 2.0))
    for x, error in (
        ([777.0, 1.0, 2.0, 3.0], ArgumentError),
        ([777.0, 1.0, 775.0, 1.0], InvariantError),
        ([np.nan] * 4, ArgumentError),
        ([1.0], ArgumentError),
        (None, ArgumentError),
        ("abcd", ArgumentError),
    ):
        with pytest.raises(error) as told:
            made.sample(x, rng=cg.seeded(1))
        assert isinstance(told.value, CongenialError)
        assert "777" not in str(told.value)
        assert "\n" not in str(told.value)


@pytest.mark.parametrize("alpha", [0, 1, -1, np.nan, "a", None])
def test_an_invalid_alpha_is_refused(alpha):
    made = cg.condition(cg.Additive(cg.Gaussian(1.0), 3), cg.linear([1, 1, 1], 0.0))
    with pytest.raises(ArgumentError, match="alpha is"):
        made.interval(0, alpha)
    for node in (3, -1, None, "a", 1.0, True):
        with pytest.raises(ArgumentError, match="node is"):
            made.marginal(node, np.zeros(3))
    for z in (np.zeros(4), np.zeros((2, 2)), "a", None, [[1], [1, 2]]):
        with pytest.raises(ArgumentError, match=r"^z "):
            made.log_prob(z, np.zeros(3))
