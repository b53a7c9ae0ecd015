"""Noise on margins that ends in a given epsilon."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import conditioned_guarantee, imaged_guarantee
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon, zcdp_rho
from congenial.errors import (
    ArgumentError,
    PrivacyError,
)
from congenial.invariants.written import resolve_invariant
from support.table_cases import AGES, PAIR, TWO

AXES = {"sex": ("F", "M"), "age": ("0", "1", "2")}


GROUPS = {"grown": ("age", AGES)}


CHILD_MOTHERS = [{"age": "0", "mother": "yes"}, {"sex": "M", "mother": ["yes"]}]


def people(geography=TWO, **more):
    return cg.Table(AXES, GROUPS, geography, **{"name": "people", **more})


def mothers():
    axes = {"sex": ("F", "M"), "mother": ("yes", "no"), "age": ("0", "1", "2")}
    return cg.Table(axes, GROUPS, PAIR, impossible=CHILD_MOTHERS)


HOMES = cg.Table({"occupied": ("yes", "no")}, geography=TWO, name="homes")


WORKLOADS = {
    "total": cg.Workload.of(cg.Table(AXES), [()]),
    "cells alone": cg.Workload.of(cg.Table(AXES)),
    "groups": cg.Workload.of(people(None), [("sex", "grown"), ("grown",)]),
    "crossing": cg.Workload.of(people(None), [("sex",), ("age",)]),
    "levels": cg.Workload.of(people(), {0: [("sex",)], 1: [("sex", "grown")]}),
    "every level": cg.Workload.of(people(), [(), ("sex",), ("age", "sex")]),
    "impossible": cg.Workload.of(mothers(), [("mother",), ("mother", "grown")]),
    "two tables": cg.Workload.of(people(), {0: [()]}) + cg.Workload.of(HOMES, {1: [()]}),
}


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_calibrated_noise_on_margins_gives_the_requested_epsilon(method, epsilon):
    def reached(workload, invariant, split):
        asked = {"epsilon": epsilon, "neighbours": "substitute", "method": method}
        noise = cg.calibrate(workload, invariant, split=split, **asked)
        make = cg.condition if method == "conditioning" else cg.image
        mechanism = cg.Additive(noise, workload)
        return make(mechanism, invariant).guarantee("substitute").epsilon, noise.spread

    table = people(levels=("region", "place"))
    workload = cg.Workload.of(table, {"region": [("sex",)], "place": [("sex", "grown")]})
    exact = cg.exactly(margins=["sex"], level="region")
    shares = {("sex", "grown"): 0.25, ("sex", "age"): 0.75}
    for invariant in (cg.consistent(workload) & exact, cg.consistent(workload) & cg.nonnegative()):
        found, scales = reached(workload, invariant, shares)
        assert epsilon * (1 - 1e-9) <= found <= epsilon
        assert scales[4] == pytest.approx(3 * scales[-1])
        # equal shares of the margins that can change: not of what is published exactly
        found, scales = reached(workload, invariant, None)
        assert epsilon * (1 - 1e-9) <= found <= epsilon
        assert np.isinf(scales[:4]).all() == (invariant.parts[-1] in exact.parts)
    # a record counts in one of two tables, so each has the whole of epsilon
    both = WORKLOADS["two tables"]
    shares = {"people": {("sex", "age"): 1.0}, "homes": {"occupied": 1.0}}
    found, scales = reached(both, cg.consistent(both), shares)
    assert found == pytest.approx(epsilon)
    assert np.unique(scales[np.isfinite(scales)]) == pytest.approx(2 / epsilon)


def test_impossible_shares_are_refused_with_a_message():
    workload = WORKLOADS["levels"]
    invariant = cg.consistent(workload) & cg.exactly(margins=["sex"])
    asked = {"epsilon": 1.0, "neighbours": "substitute"}
    for error, split, told in (
        (PrivacyError, {"sex": 0.5, ("sex", "age"): 0.5}, "sex in people at level .* exactly"),
        (ArgumentError, {("sex", "age"): 0.5}, "adds up to 0.5 over the margins of 'people'"),
        (ArgumentError, {("sex", "age"): 2}, "gives 2 to sex by age"),
        (ArgumentError, {"age": 1.0}, "'age' names no block"),
    ):
        with pytest.raises(error, match=told):
            cg.calibrate(workload, invariant, split=split, **asked)
    with pytest.raises(ArgumentError, match="goal is for trees"):
        cg.calibrate(workload, invariant, goal={0: 1.0}, **asked)


@pytest.mark.parametrize("method", ["conditioning", "imaging"])
@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_gaussian_noise_on_margins_gives_the_requested_epsilon_at_delta(name, method):
    workload, delta = WORKLOADS[name], 1e-5
    bounded = method == "imaging" or name not in ("crossing", "every level", "impossible")
    invariant = cg.consistent(workload)
    if bounded:  # for conditioning where margins cross, no bound is proved, and it is refused
        invariant &= cg.nonnegative()
    asked = {"neighbours": "substitute", "method": method}
    noise = cg.calibrate(workload, invariant, epsilon=1.0, delta=delta, **asked)
    assert isinstance(noise, cg.DiscreteGaussian)
    state = conditioned_guarantee if method == "conditioning" else imaged_guarantee
    resolved = resolve_invariant(invariant, len(workload), workload)
    mechanism = cg.Additive(noise, workload)
    rho = state(mechanism, resolved, "substitute", sampler_error=0.0).rho
    whole = method == "conditioning" and bounded  # under bounds only whole orders are proved
    assert zcdp_epsilon(rho, delta, whole_orders=whole) == pytest.approx(1.0, rel=1e-6)
    assert zcdp_epsilon(rho, delta, whole_orders=whole) <= 1.0
    narrower = cg.calibrate(workload, invariant, epsilon=2.0, delta=delta, **asked)
    assert narrower.spread[np.isfinite(narrower.spread)].max() < noise.spread.max()


def test_shares_of_margins_under_gaussian_noise_are_of_rho():
    workload, epsilon, delta = WORKLOADS["crossing"], 1.0, 1e-6
    share = {"sex": 0.15, "age": 0.25, ("sex", "age"): 0.6}
    asked = {"epsilon": epsilon, "delta": delta, "neighbours": "add-remove", "split": share}
    sigmas = cg.calibrate(workload, cg.consistent(workload), **asked).spread
    rho = zcdp_rho(epsilon, delta)
    for block, part in workload.select(share):
        # adding a record changes one entry of the margin by one
        assert 0.5 / sigmas[block.entries] ** 2 == pytest.approx(part * rho, rel=1e-9)


def test_gaussian_noise_on_a_tree_has_the_requested_epsilon_at_delta():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2])
    invariant = cg.consistent(tree) & cg.nonnegative()
    asked = {"epsilon": 1.0, "neighbours": "substitute", "method": "imaging", "delta": 1e-6}
    for more in ({}, {"split": {1: 0.5, 2: 0.5}}, {"goal": {1: 1.0, 2: 3.0}}):
        noise = cg.calibrate(tree, invariant, **asked, **more)
        found = cg.image(cg.Additive(noise, tree), invariant).guarantee("substitute")
        assert zcdp_epsilon(found.rho, 1e-6) == pytest.approx(1.0, rel=1e-6)
    for delta in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(ArgumentError, match="delta is"):
            cg.calibrate(tree, invariant, **asked | {"delta": delta})
