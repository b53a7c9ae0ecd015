"""Composition, group privacy and zCDP against another library and against enumerated laws."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import rdp_privacy_accountant as rdp

import congenial as cg
from congenial.accounting.composition import compose, compose_parallel, group_privacy
from congenial.accounting.guarantee import ZCDP_DELTA, with_sampler_error
from congenial.accounting.loss.zero_concentrated import pure_rho, zcdp_delta, zcdp_epsilon
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError


def stated(scale: float = 2.0, relation: str = "add-remove", kind=cg.DiscreteLaplace):
    """Guarantee of noise on two cells, without invariants."""
    mechanism = cg.Additive(kind(scale), 2)
    total = cg.linear([1, 1], 5) if relation == "substitute" else cg.bounds(-np.inf, np.inf)
    return cg.condition(mechanism, total).guarantee(relation)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.05, 0.7, 4.0, 60.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 0.01])
def test_zcdp_is_as_tight_as_the_best_order(rho, delta):
    orders = 1.0 + np.exp(np.linspace(-12.0, 14.0, 6000))
    theirs = rdp.compute_epsilon(orders, orders * rho, delta)[0]
    ours = zcdp_epsilon(rho, delta)
    assert ours == pytest.approx(theirs, rel=2e-4, abs=1e-9)
    assert ours <= rho + 2.0 * math.sqrt(rho * math.log(1.0 / delta))
    if ours > 0.0:
        assert zcdp_delta(rho, ours) == pytest.approx(delta, rel=1e-6)
    # a claim a tenth smaller is not met by the Gaussian law that has this rho exactly
    exact = cg.accounting.gaussian_delta(
        epsilon=ours, sigma=1.0 / math.sqrt(2.0 * rho), sensitivity=1.0
    )
    assert exact <= delta * (1.0 + 1e-9)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: zcdp_epsilon(-1.0, 0.1), "rho"),
        (lambda: zcdp_epsilon(1.0, 0.0), "delta"),
        (lambda: zcdp_delta(1.0, math.nan), "epsilon"),
        (lambda: pure_rho(math.inf), "epsilon"),
        (lambda: compose([]), "at least one"),
        (lambda: group_privacy(stated(), 0), "records"),
    ],
)
def test_numbers_out_of_range_are_refused(call, match):
    with pytest.raises(ArgumentError, match=match):
        call()


def test_an_empty_composition_costs_nothing():
    assert zcdp_epsilon(0.0, 1e-6) == zcdp_delta(0.0, 1.0) == 0.0


@pytest.mark.parametrize("scales", [(2.0, 2.0), (0.7, 3.0, 5.0)])
def test_epsilons_add_up_and_the_sum_is_tight(scales):
    parts = [stated(scale) for scale in scales]
    joint = compose(parts)
    assert joint.epsilon == pytest.approx(sum(1.0 / s for s in scales))
    assert joint.delta == pytest.approx(sum(p.delta for p in parts))
    law = pld.from_discrete_laplace_mechanism(1.0 / scales[0], value_discretization_interval=1e-4)
    for scale in scales[1:]:
        law = law.compose(
            pld.from_discrete_laplace_mechanism(1.0 / scale, value_discretization_interval=1e-4)
        )
    assert law.get_delta_for_epsilon(joint.epsilon + 1e-3) <= 1e-12
    assert law.get_delta_for_epsilon(0.9 * joint.epsilon) > 1e-4


def test_gaussian_parameters_add_up():
    parts = [stated(scale, kind=cg.DiscreteGaussian) for scale in (3.0, 5.0, 8.0)]
    joint = compose(parts)
    assert joint.rho == pytest.approx(sum(0.5 / s**2 for s in (3.0, 5.0, 8.0)))
    assert joint.epsilon == pytest.approx(zcdp_epsilon(joint.rho, ZCDP_DELTA))
    assert joint.epsilon < sum(p.epsilon for p in parts)
    error = sum(p.sampler_error for p in parts)
    assert joint.delta == pytest.approx(with_sampler_error(joint.epsilon, ZCDP_DELTA, error))


def test_pure_and_gaussian_compose_by_zcdp_only_if_delta_is_the_sampler_error():
    pure, gaussian = stated(20.0), stated(3.0, kind=cg.DiscreteGaussian)
    joint = compose([pure, gaussian])
    assert joint.rho == pytest.approx(0.5 / 9.0 + 0.5 / 400.0)
    # a delta that is not the sampler's may be a failure of pure privacy, which has no rho
    failing = replace(pure, delta=pure.delta + 1e-3)
    assert compose([failing, gaussian]).rho is None
    assert compose([failing, gaussian]).delta >= 1e-3


def test_unprotected_facts_and_conditions_of_one_claim_apply_to_the_composition():
    one = stated(relation="substitute")
    other = replace(one, unprotected=("a",), covered="datasets that satisfy the bounds")
    joint = compose([one, other])
    assert set(joint.unprotected) == {*one.unprotected, "a"}
    assert one.covered in joint.covered and "satisfy the bounds" in joint.covered


def test_different_relations_do_not_compose():
    with pytest.raises(PrivacyError, match="do not compose"):
        compose([stated(), stated(relation="substitute")])
    with pytest.raises(PrivacyError, match="do not compose"):
        compose([stated(), group_privacy(stated(), 3)])


@pytest.mark.parametrize("wrong", [stated(), [1], [stated(), None], (), "two"])
def test_what_is_no_list_of_guarantees_is_refused(wrong):
    for joined in (compose, compose_parallel):
        with pytest.raises(ArgumentError, match="give"):
            joined(wrong)


def test_disjoint_parts_cost_the_largest_and_twice_that_when_substituted():
    parts = [stated(2.0), stated(0.5), stated(4.0)]
    assert compose_parallel(parts).epsilon == pytest.approx(2.0)
    moved = compose_parallel(parts, neighbours="substitute")
    assert moved.epsilon == pytest.approx(4.0)
    assert moved.neighbours == "substitute"
    # a record that moves within the part of scale 0.5 changes two of its cells: attained
    mechanism = cg.Additive(cg.DiscreteLaplace(0.5), 2)
    ratio = mechanism.log_prob([5, -5], [1, 0]) - mechanism.log_prob([5, -5], [0, 1])
    assert float(ratio) == pytest.approx(moved.epsilon)
    with pytest.raises(PrivacyError, match="add-remove"):
        compose_parallel([stated(relation="substitute")])


@pytest.mark.parametrize("records", [1, 2, 5])
def test_a_group_loses_its_size_and_delta_grows(records):
    one = replace(stated(), delta=1e-6)
    group = group_privacy(one, records)
    assert group.epsilon == pytest.approx(records * one.epsilon)
    series = sum(math.exp(i * one.epsilon) for i in range(records))
    assert group.delta == pytest.approx(1e-6 * series)
    assert group.records == records
    noise = cg.Additive(cg.DiscreteLaplace(2.0), 1)
    attained = float(noise.log_prob([9], [records]) - noise.log_prob([9], [0]))
    assert attained == pytest.approx(records / 2.0)


def test_the_larger_delta_of_a_group_is_necessary():
    # leaks with probability d for each record: two records, 2 d - d^2, more than one record's d
    d = 1e-3
    group = group_privacy(replace(stated(), epsilon=0.0, delta=d), 2)
    assert d < 2 * d - d * d <= group.delta


def test_gaussian_groups_grow_by_the_square_of_their_size():
    one = stated(30.0, kind=cg.DiscreteGaussian)
    group = group_privacy(one, 3)
    assert group.rho == pytest.approx(9.0 * one.rho)
    assert group.epsilon <= zcdp_epsilon(9.0 * one.rho, ZCDP_DELTA) * (1.0 + 1e-12)
    with pytest.raises(PrivacyError, match="3 records already"):
        group_privacy(group, 2)


def test_the_sentence_names_the_group():
    text = group_privacy(stated(), 3).sentence
    assert "adding or removing 3 records, one after another" in text
    assert "replacing 2 records, one after another, by others" in (
        group_privacy(stated(relation="substitute"), 2).sentence
    )


def test_disjoint_parts_that_do_not_cover_all_datasets_are_refused():
    narrow = replace(stated(), covered="all datasets that satisfy the bounds")
    with pytest.raises(PrivacyError, match="covers fewer"):
        compose_parallel([stated(), narrow])


def test_parts_of_a_mixture_share_neighbours():
    def bounded(low, high):
        return cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 1), cg.bounds(low, high))

    with pytest.raises(EmptyNeighbourhoodError):
        cg.mixture([bounded(0, 4), bounded(5, 9)], [0.5, 0.5]).guarantee("add-remove")
    assert cg.mixture([bounded(0, 4), bounded(3, 9)], [0.5, 0.5]).guarantee("add-remove")
