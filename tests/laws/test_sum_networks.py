"""Random networks of sums against enumeration: laws, joint laws and draws."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.errors import UnsupportedError
from support.conditioning_cases import open_cases
from support.enumeration import assert_same_law
from support.goodness_of_fit import FAILS, fit
from support.joint_laws import assert_same_joint
from support.sum_networks import networks, scaled, table_case

pytestmark = pytest.mark.kernels

QUICK = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@QUICK
@given(networks())
def test_any_network_has_its_law(case):
    assert_same_law(case.condition(), case.law(), case.x, most=200)


@settings(QUICK, max_examples=40)
@given(networks(unmeasured=True))
def test_an_unmeasured_entry_is_determined_or_refused(case):
    if case.proper:
        assert_same_law(case.condition(), case.law(), case.x, most=200)
    else:
        with pytest.raises(UnsupportedError, match="not measured"):
            case.condition().log_normalizer(case.x)


def test_networks_have_cycles_often_enough():
    seen = []

    @QUICK
    @given(networks())
    def look(case):
        seen.append(isinstance(case.condition(), CutConditioned))

    look()
    assert 5 <= sum(seen) <= len(seen) - 5


@settings(QUICK, max_examples=25)
@given(networks(), st.data())
def test_draws_of_any_network_satisfy_it_and_follow_its_law(case, data):
    conditioned = case.condition()
    draws = conditioned.sample(case.x, size=2000, rng=cg.seeded(data.draw(st.integers(0, 9))))
    assert (draws @ case.all_rows.T == case.all_rows @ case.x).all()
    assert fit(draws, case.law(), range(case.n)) > FAILS


@settings(QUICK, max_examples=40)
@given(st.one_of(networks(), open_cases(most=6)), st.data())
def test_joint_laws_of_any_network(case, data):
    if case.n < 2:
        return
    nodes = data.draw(st.lists(st.integers(0, case.n - 1), min_size=2, max_size=3, unique=True))
    assert_same_joint(case.condition(), case.law(), case.x, nodes)


@pytest.mark.parametrize("off", [0.7, 1.3])
def test_the_comparison_sees_a_wrong_scale(off):
    case = table_case((3, 3), 0.3, [1, 2, 0, 0, 3, 1, 2, 2, 1])
    with pytest.raises(AssertionError):
        assert_same_law(case.condition(), scaled(case, off), case.x, most=200)
    with pytest.raises(AssertionError):
        assert_same_joint(case.condition(), scaled(case, off), case.x, (0, 1))
