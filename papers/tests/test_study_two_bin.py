"""Example 4.1: laws, variances, losses and slips against quadrature and enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import congenial as cg
from papers.studies import two_bin
from papers.studies import two_bin_laws as laws
from papers.studies.two_bin_slips import BETA, EPSILON, slip_table

TOTAL = cg.linear([[1, 1]], [12])
X = np.array([3, 9])


def convolved(u, epsilon, beta):
    """Density of beta u_1 + (1 - beta) u_2 by quadrature over u_2, 0 < beta < 1."""
    scale = 2 / epsilon
    nodes, weights = np.polynomial.legendre.leggauss(24)
    out = []
    for v in np.atleast_1d(u):
        bends = np.unique([-70 * scale, 0.0, v / (1 - beta), 70 * scale])
        edges = np.concatenate([np.linspace(a, b, 50) for a, b in itertools.pairwise(bends)])
        half = 0.5 * np.diff(edges)
        second = edges[:-1, None] + half[:, None] * (nodes + 1)
        first = (v - (1 - beta) * second) / beta
        law = np.exp(-(np.abs(first) + np.abs(second)) / scale) / (4 * scale**2 * beta)
        out.append((half[:, None] * weights * law).sum())
    return np.array(out)


POINTS = np.array([-9.0, -2.5, -0.3, 0.0, 0.1, 1.0, 4.0, 12.0])


@pytest.mark.parametrize("beta", [0.05, 0.3, 0.4999, 0.5, 0.500001, 0.6, 0.9])
@pytest.mark.parametrize("epsilon", [0.4, 1.0, 3.0])
def test_the_density_of_an_image(beta, epsilon):
    u = POINTS / epsilon
    found = np.exp(laws.log_imaged_density(u, epsilon, beta))
    assert found == pytest.approx(convolved(u, epsilon, beta), rel=1e-6)
    if abs(beta - 0.5) > 0.01:  # A.1 as printed
        printed = (
            beta * np.exp(-epsilon * np.abs(u) / (2 * beta))
            - (1 - beta) * np.exp(-epsilon * np.abs(u) / (2 * (1 - beta)))
        ) * (epsilon / (4 * (2 * beta - 1)))
        assert found == pytest.approx(printed, rel=1e-9)


def test_the_density_of_the_ends_is_one_laplace_law():
    for beta in (0.0, 1.0):
        found = np.exp(laws.log_imaged_density(POINTS, 1.5, beta))
        assert found == pytest.approx(1.5 / 4 * np.exp(-0.75 * np.abs(POINTS)))


def test_half_is_the_mixture_of_the_paper():
    found = np.exp(laws.log_imaged_density(POINTS, 1.7, 0.5))
    assert found == pytest.approx(laws.mixture_density(POINTS, 1.7))
    assert found == pytest.approx(
        1.7 / 4 * (1 + 1.7 * np.abs(POINTS)) * np.exp(-1.7 * np.abs(POINTS))
    )


def test_conditioning_is_the_density_where_the_noises_cancel():
    epsilon = 1.3
    both = np.exp(-0.5 * epsilon * (np.abs(POINTS) + np.abs(-POINTS)))
    found = laws.conditioned_density(POINTS, epsilon)
    assert found / found[3] == pytest.approx(both / both[3])
    u = np.linspace(0, 40, 400_001)
    assert 2 * laws.conditioned_density(u, epsilon).sum() * 1e-4 == pytest.approx(1, rel=1e-3)


@pytest.mark.parametrize("beta", [0.0, 0.2, 0.5, 0.7, 1.0])
def test_the_variance_of_an_image(beta):
    u = np.linspace(-80, 80, 1_600_001)
    law = np.exp(laws.log_imaged_density(u, 1.6, beta))
    assert law.sum() * 1e-4 == pytest.approx(1.0, rel=1e-6)
    assert (law * u**2).sum() * 1e-4 == pytest.approx(laws.imaged_variance(1.6, beta), rel=1e-6)


@pytest.mark.parametrize("beta", [0.0, 0.1, 0.45, 0.5, 0.55, 0.8, 1.0])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_promised_loss_is_attained_and_not_exceeded(beta, epsilon):
    promised = laws.promised_loss(epsilon, beta)
    found = laws.attained_loss(epsilon, beta)
    assert found <= promised * (1 + 1e-8)  # rounding of logarithms near 1e6
    assert found > promised * (1 - 1e-5)


def test_the_loss_of_an_image_is_what_the_library_states():
    for beta in (0.0, 0.3, 0.5, 0.75, 1.0):
        imaged = cg.image(cg.Additive(cg.Laplace(2.0), 2), TOTAL, norm="l1", beta=beta)
        assert imaged.guarantee("substitute").epsilon == pytest.approx(
            laws.promised_loss(1.0, beta)
        )


@pytest.mark.parametrize("eighths", [0, 3, 4, 5, 8])
def test_the_law_with_integer_noise_is_that_of_the_librarys_image(eighths):
    law, middle = laws.integer_law(2.0, eighths)
    seen = np.zeros_like(law)
    for u in itertools.product(range(-6, 7), repeat=2):
        z = cg.project(X + np.array(u), TOTAL, norm="l1", beta=eighths / 8)
        at = 8 * (z[0] - 3)
        assert at == round(at)
        seen[middle + round(at)] += math.exp(-abs(u[0]) - abs(u[1]))
    # the rest of the noise weighs at most what is beyond 6 in either bin
    beyond = 4 * math.exp(-7) / (1 - math.exp(-1)) / math.tanh(0.5)
    assert np.abs(law - seen).sum() == pytest.approx(law.sum() - seen.sum())
    assert 0 <= law.sum() - seen.sum() < beyond


def test_the_rounded_law_is_the_law_of_the_librarys_image():
    law, middle = laws.rounded_law(1.0)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 2)
    draws = cg.image(mechanism, TOTAL, integer=True).sample(X, 4000, cg.seeded(12))[:, 0] - 3
    edge = 6
    share = law / law.sum()
    u = np.clip(np.arange(law.size) - middle, -edge, edge) + edge
    wanted = np.bincount(u, weights=share) * draws.size
    seen = np.bincount(np.clip(draws, -edge, edge) + edge, minlength=2 * edge + 1)
    # 12 degrees of freedom: beyond 54 at one in a million
    assert ((seen - wanted) ** 2 / wanted).sum() < 54
    mean, variance = laws.rounded_moments(1.0)
    assert mean == pytest.approx(0.0, abs=1e-12)
    plain = laws.integer_variance(1.0, 4)
    whole, at = laws.integer_law(1.0, 4)
    odd = whole[at % 8 + 4 :: 8].sum() / whole.sum()
    assert variance == pytest.approx(plain + odd / 4)


def test_conditioning_integer_noise_is_the_double_geometric_law_of_twice_the_rate():
    given = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), 2), TOTAL)
    values, probabilities = given.marginal(0, X)
    a = math.exp(-1.0)
    wanted = (1 - a) / (1 + a) * a ** np.abs(values - 3)
    assert probabilities == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_integer_noise_loses_more_than_promised_for_real_noise(epsilon):
    for eighths in (5, 6, 7):
        found = laws.integer_loss(epsilon, eighths)
        assert laws.promised_loss(epsilon, eighths / 8) * 1.1 < found <= epsilon + 1e-9
    assert laws.integer_loss(epsilon, 8) == pytest.approx(epsilon / 2)
    assert laws.rounded_loss(epsilon) <= epsilon + 1e-9


def test_the_theorem_needs_both_conditions():
    rng = np.random.default_rng(13)
    points = rng.uniform(-6, 6, size=(2000, 3, 3))
    excess = {"good": [], "steep": [], "rising": []}
    for _ in range(50):
        excess["good"].append(laws.theorem_excess(rng.uniform(0, 0.8, 5), 0.8, points))
        excess["steep"].append(laws.theorem_excess(rng.uniform(0, 1.6, 5), 0.8, points))
        excess["rising"].append(laws.theorem_excess(rng.uniform(-1.6, 0.8, 5), 0.8, points))
    assert max(excess["good"]) <= 1e-12
    assert max(excess["steep"]) > 0.1
    assert max(excess["rising"]) > 0.1


def test_radial_functions_are_continuous_and_fall_by_their_slopes():
    slopes = np.array([0.5, 2.0, 1.0])
    size = np.array([0.0, 1.0, 1.5, 2.0, 4.0])
    assert laws.log_radial(size, slopes) == pytest.approx([0.0, -0.5, -1.5, -2.5, -4.5])


def test_the_slips_are_slips():
    rows = {str(r[0]).split(":")[0]: r[2:] for r in slip_table().rows}
    assert all(printed != right for printed, right in rows.values())
    assert rows["below (4.7)"] == (4.0, 6.0)
    assert rows["Section 5.1"] == (-0.5, 0.0)
    assert rows["Appendix B"] == (2.0, 1.0)
    found = [r for r in slip_table().rows if str(r[0]).startswith("Appendix A")]
    # the derivative and the rate, from the formulas as corrected
    c, u = 1.0, 1.0
    w, prime = 2 * c * BETA - 1, 2 * (1 - c)
    right = (
        EPSILON**2
        / (8 * (2 * BETA - 1))
        * (
            w * math.exp(w / (2 * BETA) * EPSILON * u)
            + (w + prime) * math.exp(-(w + prime) / (2 * (1 - BETA)) * EPSILON * u)
        )
    )
    assert found[0][3] == pytest.approx(right, rel=1e-6)
    assert found[1][3] == pytest.approx(EPSILON * (2 * BETA - 1) / (2 * BETA * (1 - BETA)))


def test_signed_gamma_is_no_sum_of_two_laplace_variables():
    rng = np.random.default_rng(14)
    both = rng.laplace(size=(2, 100_000)).sum(axis=0)
    gamma = rng.gamma(2.0, size=100_000) * rng.choice([-1, 1], size=100_000)
    assert both.var() == pytest.approx(4.0, rel=0.05)
    assert gamma.var() == pytest.approx(6.0, rel=0.05)


def test_the_study_says_what_its_tables_show():
    found = two_bin.run(1, 0.05)
    tables = {t.name: t for t in found.tables}
    two = {r[0]: r for r in tables["table-2"].rows}
    assert two["conditioning"][4] == pytest.approx(2.0)
    assert two["L2"][4] == pytest.approx(4.0)
    assert two["L1, beta 1"][4] == pytest.approx(8.0)
    assert two["L2"][1] == 6.0
    for row in tables["table-2"].rows:
        assert row[2] == pytest.approx(3.0)
    for row in tables["loss"].rows:
        if row[2] is not None:
            assert row[3] == pytest.approx(row[2], rel=1e-5)
        if row[4] is not None:
            assert row[4] == pytest.approx(row[2])
        assert row[5] <= row[6] + 1e-9
    theorem = tables["theorem"].rows
    assert theorem[0][2] == 0 and theorem[1][2] > 0 and theorem[2][2] > 0
    held = {(r[0], r[1]): r[6] for r in tables["calibration"].rows}
    assert held[1.0, "1e-06"] == "yes" and held[1.0, "1e-12"] == "no"
    assert [t.rows for t in two_bin.run(1, 0.05).tables] == [t.rows for t in found.tables]
