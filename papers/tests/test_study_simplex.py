"""Variances under one sum: formulas against quadrature, enumeration, simulation and proof."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from papers.studies import simplex
from papers.studies.simplex_laws import (
    finite_errors,
    geometric_conditioned,
    geometric_imaged,
    laplace_conditioned,
    laplace_imaged,
    simplex_points,
)

STUDENT = stats.t(5)


def mixed(u):
    return 0.7 * stats.norm.pdf(u, scale=0.4) + 0.3 * stats.norm.pdf(u, scale=2.5)


MIXTURES = {
    "laplace": (stats.laplace.pdf, 2.0),
    "logistic": (stats.logistic.pdf, math.pi**2 / 3),
    "student": (STUDENT.pdf, STUDENT.var()),
    "two normals": (mixed, 0.7 * 0.16 + 0.3 * 6.25),
}
UNIFORM = (lambda u: 0.5 * (np.abs(u) <= 1), 1 / 3)


def on_a_line(pdf, direction):
    """Variance of t for noise t * direction, that is under n - 1 independent equalities."""
    t = np.sinh(np.linspace(-9, 9, 40_001))  # heavy tails are far
    step = np.cosh(np.linspace(-9, 9, 40_001))
    law = np.prod([pdf(t * w) for w in direction], axis=0) * step
    return float((law * t**2).sum() / law.sum())


def best_image(variance, direction):
    """Variance of t after the projection weighted by one over the variances."""
    return variance / (direction @ direction)


@pytest.mark.parametrize("name", MIXTURES)
def test_conditioning_varies_less_than_every_image_for_scale_mixtures(name):
    pdf, variance = MIXTURES[name]
    rng = np.random.default_rng(8)
    for n in (2, 3, 5):
        for _ in range(10):
            direction = rng.normal(size=n) * rng.exponential(size=n)
            direction /= np.abs(direction).max()
            assert on_a_line(pdf, direction) < best_image(variance, direction)


@pytest.mark.parametrize("parents", [(-1, 0, 0), (-1, 0, 0, 1, 1), (-1, 0, 0, 0)])
def test_conditioning_on_a_tree_varies_less_than_its_image_at_every_node(parents):
    # Laplace noise at every node, as the limit of a fine grid; the image is best unbiased
    tree = cg.Tree.from_parents(parents)
    n = len(tree)
    scales = np.array([2.0, 0.7, 1.0, 0.5, 1.5])[:n]
    noise = cg.DiscreteLaplace(scales, granularity=2.0**-5)
    given = cg.condition(cg.Additive(noise, tree), cg.consistent(tree))
    design = np.array([tree.roll_up(row) for row in np.eye(tree.leaves.size)]).T
    precision = np.diag(0.5 / scales**2)
    best = design @ np.linalg.inv(design.T @ precision @ design) @ design.T
    for node in range(n):
        values, probabilities = given.marginal(node, np.zeros(n))
        assert probabilities @ values**2 < best[node, node] * 0.999


def test_normal_noise_has_the_variance_of_its_image():
    direction = np.array([1.0, -0.4, 0.2])
    found = on_a_line(lambda u: stats.norm.pdf(u, scale=1.3), direction)
    assert found == pytest.approx(best_image(1.69, direction))


def test_uniform_noise_varies_more():
    direction = np.array([1.0, -1.0])
    pdf, variance = UNIFORM
    assert on_a_line(pdf, direction) == pytest.approx(2 * best_image(variance, direction), rel=1e-2)


@pytest.mark.parametrize("n", [2, 3, 4, 7, 30, 400])
def test_laplace_formulas_are_the_integrals(n):
    # densities at 0 and moments from characteristic functions, t = tan(angle)
    nodes, weights = np.polynomial.legendre.leggauss(250)
    t = np.tan(0.25 * np.pi * (nodes + 1))
    measure = weights * (1 + t**2)
    phi = 1 / (1 + t**2)
    minus_second = (2 - 6 * t**2) * phi**3
    variance = (measure * minus_second * phi ** (n - 1)).sum() / (measure * phi**n).sum()
    assert laplace_conditioned(n).variance == pytest.approx(variance, rel=1e-9)
    assert laplace_conditioned(n, 3.0).variance == pytest.approx(9 * variance, rel=1e-9)
    assert laplace_imaged(n).variance == pytest.approx(2 * (1 - 1 / n))


def test_laplace_formulas_are_those_of_the_paper_for_two_and_three():
    assert laplace_conditioned(2).variance == 0.5
    assert laplace_conditioned(3).variance == pytest.approx(5 / 6)
    # its density of one cell of three, (1 + |u|) exp(-2 |u|) / 1.5
    u = np.linspace(0, 30, 300_001)
    law = 2 * (1 + u) * np.exp(-2 * u) / 1.5 * (u[1] - u[0])
    assert (law * u**2).sum() == pytest.approx(5 / 6, rel=1e-6)
    assert (law * u).sum() == pytest.approx(laplace_conditioned(3).absolute, rel=1e-6)


@pytest.mark.parametrize("n", [2, 3, 10])
def test_laplace_formulas_are_the_limit_of_noise_on_a_fine_grid(n):
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, granularity=2.0**-7), n)
    given = cg.condition(mechanism, cg.linear(np.ones((1, n)), [0]))
    values, probabilities = given.marginal(0, np.zeros(n))
    assert probabilities @ values**2 == pytest.approx(laplace_conditioned(n).variance, rel=1e-3)
    assert probabilities @ np.abs(values) == pytest.approx(
        laplace_conditioned(n).absolute, rel=1e-3
    )


def test_laplace_formulas_agree_with_simulation():
    rng = np.random.default_rng(9)
    n, draws = 4, 200_000
    u = rng.laplace(size=(draws, n))
    moved = u[:, 0] - u.mean(axis=1)
    kept = np.abs(u.sum(axis=1)) < 0.1
    # five standard errors, and what the window of the sum can add
    for values, wanted in ((moved, laplace_imaged(n)), (u[kept, 0], laplace_conditioned(n))):
        slack = 5 / math.sqrt(values.size)
        assert (values**2).mean() == pytest.approx(
            wanted.variance, abs=slack * (values**2).std() + 0.01
        )
        assert np.abs(values).mean() == pytest.approx(
            wanted.absolute, abs=slack * np.abs(values).std() + 0.01
        )


@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("scale", [0.3, 0.5, 1.0, 3.0])
def test_double_geometric_formulas_are_the_sums(n, scale):
    reach = int(35 * scale) + 8
    u = np.arange(-reach, reach + 1)
    pmf = np.exp(-np.abs(u) / scale)
    given, moved = finite_errors(pmf / pmf.sum(), n)
    found = geometric_conditioned(n, scale)
    assert found.variance == pytest.approx(given.variance, rel=1e-9)
    assert found.absolute == pytest.approx(given.absolute, rel=1e-9)
    found = geometric_imaged(n, scale)
    assert found.variance == pytest.approx(moved.variance, rel=1e-9)
    assert found.absolute == pytest.approx(moved.absolute, rel=1e-9)


def test_sums_by_convolution_are_those_over_all_vectors():
    pmf = np.array([0.1, 0.25, 0.3, 0.25, 0.1])
    given, moved = finite_errors(pmf, 3)
    cells = np.array(list(itertools.product(range(-2, 3), repeat=3)))
    weight = pmf[cells + 2].prod(axis=1)
    left = cells[:, 0] - cells.mean(axis=1)
    assert moved.variance == pytest.approx(weight @ left**2)
    assert moved.absolute == pytest.approx(weight @ np.abs(left))
    weight = np.where(cells.sum(axis=1) == 0, weight, 0.0)
    weight /= weight.sum()
    assert given.variance == pytest.approx(weight @ cells[:, 0] ** 2)
    assert given.absolute == pytest.approx(weight @ np.abs(cells[:, 0]))


@pytest.mark.parametrize("n", [2, 17, 1000])
@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_double_geometric_formulas_are_the_librarys_exact_marginals(n, scale):
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), n)
    given = cg.condition(mechanism, cg.linear(np.ones((1, n)), [0]))
    values, probabilities = given.marginal(0, np.zeros(n, dtype=np.int64))
    found = geometric_conditioned(n, scale)
    assert probabilities @ values**2 == pytest.approx(found.variance, rel=1e-9)
    assert probabilities @ np.abs(values) == pytest.approx(found.absolute, rel=1e-9)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 5.0, 50.0])
def test_the_bounds_of_the_proof_hold_for_every_size(scale):
    for n in [*range(2, 40), 100, 500, 1000]:
        given, moved = geometric_conditioned(n, scale), geometric_imaged(n, scale)
        assert given.variance < moved.variance * n / (n + 1)
        a = math.exp(-1 / scale)
        assert given.absolute < (1 - 1 / n) * 2 * a / (1 - a * a) < moved.absolute * (1 + 1e-12)
        given, moved = laplace_conditioned(n), laplace_imaged(n)
        assert given.variance / moved.variance == pytest.approx((2 * n - 1) / (2 * n + 2))
        assert given.absolute < moved.absolute


@pytest.mark.parametrize("n", [2, 4, 8])
def test_signs_are_a_counterexample(n):
    given, moved = finite_errors(np.array([0.5, 0.0, 0.5]), n)
    assert given.variance == pytest.approx(1.0)
    assert moved.variance == pytest.approx(1 - 1 / n)


def test_nonnegative_points_are_those_of_project():
    rng = np.random.default_rng(10)
    y = rng.normal(2, 4, size=(40, 3))
    invariant = cg.linear(np.ones((1, 3)), [6]) & cg.nonnegative()
    points = simplex_points(y, 6.0)
    for row, point in zip(y, points, strict=True):
        assert point == pytest.approx(cg.project(row, invariant), abs=1e-9)


def test_the_study_says_what_its_tables_show():
    found = simplex.run(1, 0.01)
    exact = found.tables[0]
    assert max(exact.column("ratio of variances")) < 1
    assert max(exact.column("ratio of errors")) < 1
    assert exact.rows[0][2] == pytest.approx(0.5)
    others = {row[:2]: row[4] for row in found.tables[2].rows}
    assert others["signs, +1 or -1", 2] == pytest.approx(2.0)
    assert others["uniform on -10..10", 2] == pytest.approx(2.0)
    assert "conjecture is true" in found.findings[0]
    for row in found.tables[1].rows:
        assert row[3] == pytest.approx(row[2], rel=1e-9)
    again = simplex.run(1, 0.01)
    assert [t.rows for t in again.tables] == [t.rows for t in found.tables]
