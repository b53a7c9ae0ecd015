"""Laplace noise: its draws follow its density, and would not at a scale 30% off."""

from __future__ import annotations

from scipy import stats

from congenial.noise.laplace import Laplace
from support.continuous_laws import check_density, check_draws, check_no_bound


def test_draws_follow_the_density_and_fail_at_a_scale_30_percent_off():
    check_draws(Laplace, stats.laplace)


def test_the_density_is_normalised_and_has_the_stated_variance():
    check_density(Laplace)


def test_floating_point_draws_have_no_useful_bound():
    check_no_bound(Laplace)
