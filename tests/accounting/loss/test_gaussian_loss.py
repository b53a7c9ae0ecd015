"""Gaussian trade-offs against sums and integrals that do not use the package."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.accounting.loss.gaussian_loss import published_sigma
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon
from congenial.errors import ArgumentError, UnsupportedError

EPSILONS = (1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0)
DELTAS = (0.3, 1e-2, 1e-6, 1e-10, 1e-15)


def integrated(epsilon, sigma):
    """The mean of max(0, 1 - exp(epsilon - loss)) over normal noise, by quadrature."""
    edge = 0.5 - epsilon * sigma**2  # the loss (1 - 2 u) / (2 sigma**2) is epsilon there

    def excess(v):
        u = edge - v
        return stats.norm.pdf(u, scale=sigma) * -np.expm1(-v / sigma**2)

    # far out the law falls over sigma**2 / |edge|, and near its middle over sigma
    steep = sigma**2 / (abs(edge) + sigma)
    panels = np.union1d(steep * np.arange(61), np.linspace(0, max(edge, 0.0) + 42 * sigma, 300))
    nodes, weights = np.polynomial.legendre.leggauss(20)
    half = 0.5 * np.diff(panels)
    at = panels[:-1, None] + half[:, None] * (nodes + 1)
    return float((half[:, None] * weights * excess(at)).sum())


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 3.9, 4.1, 30.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 0.01, 0.3, 1.0, 4.0])
def test_delta_is_the_integral(epsilon, sigma):
    wanted = integrated(epsilon, sigma)
    found = cg.accounting.gaussian_delta(epsilon=epsilon, sigma=sigma, sensitivity=1.0)
    if wanted < 1e-250:
        assert found < 1e-240
    else:
        assert found == pytest.approx(wanted, rel=1e-8)


def test_delta_depends_on_the_ratio_of_sensitivity_and_sigma():
    one = cg.accounting.gaussian_delta(epsilon=0.7, sigma=2.0, sensitivity=1.0)
    assert cg.accounting.gaussian_delta(epsilon=0.7, sigma=6.0, sensitivity=3.0) == pytest.approx(
        one
    )


def test_both_forms_of_the_difference_agree_where_they_meet():
    # sigma = 4 is where the Mills ratios give way to their integral
    below, above = (
        cg.accounting.gaussian_delta(epsilon=0.5, sigma=s, sensitivity=1.0)
        for s in (4 - 1e-9, 4 + 1e-9)
    )
    assert below == pytest.approx(above, rel=1e-7)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_three_questions_invert_each_other(epsilon, delta):
    sigma = cg.accounting.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=2.0)
    reached = cg.accounting.gaussian_delta(epsilon=epsilon, sigma=sigma, sensitivity=2.0)
    assert reached <= delta
    assert reached == pytest.approx(delta, rel=1e-6)
    assert (
        cg.accounting.gaussian_delta(epsilon=epsilon, sigma=sigma * 0.999, sensitivity=2.0) > delta
    )
    back = cg.accounting.gaussian_epsilon(sigma=sigma, delta=delta, sensitivity=2.0)
    assert back == pytest.approx(epsilon, rel=1e-6)
    assert cg.accounting.gaussian_delta(epsilon=back, sigma=sigma, sensitivity=2.0) <= delta


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-12, 700.0, 1e6, 1e9])
@pytest.mark.parametrize("delta", [1e-280, 1e-12, 0.5, 0.999999])
def test_extreme_arguments_have_results(epsilon, delta):
    sigma = cg.accounting.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1e-3)
    if 1e-9 < sigma < 1e97:
        assert cg.accounting.gaussian_delta(epsilon=epsilon, sigma=sigma, sensitivity=1e-3) <= delta
    if epsilon >= 1e-12 and delta < 0.1:
        found = cg.accounting.gaussian_epsilon(sigma=sigma, delta=delta, sensitivity=1e-3)
        assert found == pytest.approx(epsilon, rel=1e-6)
    with pytest.raises(ArgumentError, match="sigma"):
        cg.accounting.gaussian_delta(epsilon=epsilon, sigma=1e-10, sensitivity=1.0)
    with pytest.raises(ArgumentError, match="sigma"):
        cg.accounting.gaussian_epsilon(sigma=1e120, delta=delta, sensitivity=1.0)


def test_epsilon_is_zero_if_delta_covers_the_whole_loss():
    assert cg.accounting.gaussian_epsilon(sigma=10.0, delta=0.5, sensitivity=1.0) == 0.0


def test_the_analytic_calibration_gives_the_least_sigma():
    for epsilon, delta in itertools.product((0.1, 0.5, 1.0), DELTAS[1:]):
        tight = cg.accounting.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
        rho = 0.5 / tight**2
        assert zcdp_epsilon(rho, delta) > epsilon
        assert tight < math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def test_the_published_calibration_holds_for_moderate_epsilon_and_delta():
    for epsilon, delta in itertools.product(np.linspace(0.01, 5.0, 40), (0.5, 0.1, 1e-2, 1e-4)):
        sigma = published_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
        assert cg.accounting.gaussian_delta(epsilon=epsilon, sigma=sigma, sensitivity=1.0) <= delta
        assert sigma >= cg.accounting.gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [
        (20.0, 0.5),
        (10.0, 1e-2),
        (8.0, 1e-3),
        (5.0, 1e-6),
        (1.0, 1e-12),
        (0.1, 1e-15),
        (1e-3, 1e-20),
    ],
)
def test_the_published_calibration_fails_for_large_epsilon_and_for_small_delta(epsilon, delta):
    sigma = published_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
    assert integrated(epsilon, sigma) > delta
    with pytest.raises(ArgumentError, match="analytic"):
        cg.accounting.gaussian_sigma(
            epsilon=epsilon, delta=delta, sensitivity=1.0, method="published"
        )


def test_the_published_formula():
    sigma = cg.accounting.gaussian_sigma(
        epsilon=0.5, delta=1e-5, sensitivity=3.0, method="published"
    )
    assert sigma == pytest.approx(3.0 * (1.0 + math.sqrt(1.0 + math.log(1e5))) / 0.5)


def test_calibrated_noise_is_private():
    # the probability of the worst event, z above a threshold, under two neighbouring counts
    sigma = cg.accounting.gaussian_sigma(epsilon=0.8, delta=1e-3, sensitivity=1.0)
    above = np.linspace(-5 * sigma, 8 * sigma, 4001)
    excess = stats.norm.sf(above, 1, sigma) - math.exp(0.8) * stats.norm.sf(above, 0, sigma)
    assert 0.999e-3 < excess.max() <= 1e-3
    less = 0.7 * sigma
    excess = stats.norm.sf(above, 1, less) - math.exp(0.8) * stats.norm.sf(above, 0, less)
    assert excess.max() > 1.5e-3


def enumerated(epsilon, sigma, change):
    """Delta of discrete Gaussian noise by a sum over all vectors of integers."""
    reach = int(12 * sigma) + 6
    u = np.arange(-reach, reach + 1)
    law = np.exp(-0.5 * (u / sigma) ** 2)
    law /= law.sum()
    grid = np.meshgrid(*[u] * len(change), indexing="ij")
    here = np.prod([law[g + reach] for g in grid], axis=0)
    ratio = np.exp(
        sum(c * c - 2 * c * g for c, g in zip(change, grid, strict=True)) / -2 / sigma**2
    )
    return float((here * np.maximum(0.0, 1.0 - math.exp(epsilon) * ratio)).sum())


@pytest.mark.parametrize("change", [(1,), (-1, 1), (2,), (1, -2), (1, -1, 0, 1)])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 1.7])
def test_discrete_delta_is_the_sum_over_all_noise(sigma, change):
    for epsilon in (0.0, 0.3, 1.0, 2.5):
        wanted = enumerated(epsilon, sigma, [c for c in change if c])
        found = cg.accounting.discrete_gaussian_delta(epsilon=epsilon, sigma=sigma, change=change)
        assert found == pytest.approx(wanted, rel=1e-9, abs=1e-30)


def test_wide_discrete_noise_is_like_continuous_noise():
    for epsilon, change in itertools.product((0.01, 0.1), ((1,), (1, -1))):
        continuous = cg.accounting.gaussian_delta(
            epsilon=epsilon, sigma=60.0, sensitivity=len(change) ** 0.5
        )
        discrete = cg.accounting.discrete_gaussian_delta(epsilon=epsilon, sigma=60.0, change=change)
        assert discrete == pytest.approx(continuous, rel=0.01)


def test_discrete_noise_may_lose_more_than_continuous_noise_of_its_sigma():
    discrete = cg.accounting.discrete_gaussian_delta(epsilon=1.0, sigma=1.0)
    assert discrete > 1.1 * cg.accounting.gaussian_delta(epsilon=1.0, sigma=1.0, sensitivity=1.0)


def test_wrong_arguments_are_refused():
    good = {"epsilon": 1.0, "delta": 1e-6, "sensitivity": 1.0}
    wrong = {
        "epsilon": (-1.0, 1e10, math.inf, math.nan, True, "1"),
        "delta": (0.0, 1e-290, 1.0, -0.1, math.nan, True, "x"),
        "sensitivity": (0.0, -1.0, math.inf, True, "1", None),
        "method": ("classic",),
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ArgumentError, match=name):
                cg.accounting.gaussian_sigma(**(good | {name: value}))
    with pytest.raises(ArgumentError, match="epsilon"):
        cg.accounting.gaussian_sigma(**(good | {"epsilon": 0.0, "method": "published"}))
    with pytest.raises(ArgumentError, match="sigma"):
        cg.accounting.gaussian_delta(epsilon=1.0, sigma=0.0, sensitivity=1.0)
    with pytest.raises(ArgumentError, match="delta"):
        cg.accounting.gaussian_epsilon(sigma=1.0, delta=0.0, sensitivity=1.0)
    for change in (0, (0, 0), 0.5, [[1]]):
        with pytest.raises(ArgumentError, match="change"):
            cg.accounting.discrete_gaussian_delta(epsilon=1.0, sigma=1.0, change=change)
    with pytest.raises(ArgumentError, match="sigma"):
        cg.accounting.discrete_gaussian_delta(epsilon=1.0, sigma=math.inf)
    with pytest.raises(ArgumentError, match="epsilon"):
        cg.accounting.discrete_gaussian_delta(epsilon=-1.0, sigma=1.0)
    with pytest.raises(UnsupportedError, match="gaussian_delta"):
        cg.accounting.discrete_gaussian_delta(epsilon=1.0, sigma=1e5, change=(1, 1, 1))


def test_a_computed_sensitivity_is_accepted():
    tree = cg.Tree.from_parents([-1, 0, 0])
    computed = cg.accounting.sensitivity(tree, neighbours="substitute", norm=2)
    assert cg.accounting.gaussian_sigma(
        epsilon=1.0, delta=1e-6, sensitivity=computed
    ) == pytest.approx(
        cg.accounting.gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=math.sqrt(2.0))
    )
