"""Releases simulated by default, and those simulated on request."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.plan.plan import parse_plan
from congenial.preview.comparison.expected import FITTED_VALUES
from congenial.preview.comparison.trial_counts import made_up
from congenial.preview.trial_releases import simulated
from congenial.releases.model import build_model, choose_method
from support.city import plan_text


def model_of(method, fans):
    """Return the model of a plan whose tree has so many children at each level."""
    parents = [np.array([-1])]
    for fan in fans:
        start = sum(level.size for level in parents[:-1])
        parents.append(np.repeat(start + np.arange(parents[-1].size), fan))
    whole = np.concatenate(parents)
    tree = cg.Tree.from_parents(whole, [str(v) for v in range(whole.size)])
    plan = parse_plan(
        plan_text(
            hierarchy='root = "0"\nlevels = ["state", "place"]\ndomain = "lookup"',
            privacy='neighbours = "substitute"\nepsilon = 1.0',
            method=f'name = "{method}"',
        )
    )
    return build_model(plan, tree)


def test_slow_conditioning_is_simulated_on_request_only():
    model = model_of("conditioning", (100, 1000))
    basis = made_up(model.tree, seed=1)
    found = simulated(model, choose_method(model), basis, asked=False)
    assert found.own is None and found.refused == ""
    assert "simulating 100,101 counts under bounds may take minutes" in found.text
    # the default would take minutes too
    assert found.beside is None and found.default == ""


@pytest.mark.simulated
def test_the_default_method_is_simulated_beside_another():
    model = model_of("conditioning", (20, 100))
    basis = made_up(model.tree, seed=1)
    found = simulated(model, choose_method(model), basis, asked=False)
    assert found.default == "posterior" and found.beside.levels[2].l1 < found.own.levels[2].l1
    assert 1 < found.beside.draws <= FITTED_VALUES // 2021 < found.own.draws == 200


def test_a_best_table_of_many_counts_is_simulated_on_request_only():
    model = model_of("posterior", (100, 1000))
    found = simulated(model, None, made_up(model.tree, seed=1), asked=False)
    assert found.own is None and "may take minutes" in found.text


def test_requested_counts_are_tried_and_a_refusal_is_reported():
    model = model_of("conditioning", (100, 1000))

    class Refusing:
        def sample(self, *_, **__):
            raise cg.errors.UnsupportedError("3.6 GiB of tables; use less.")

    basis = made_up(model.tree, seed=1, total=5000)
    found = simulated(model, Refusing(), basis, asked=True)
    assert found.own is None
    assert found.refused == "5,000 records: 3.6 GiB of tables; use less"


def test_imaging_is_simulated_however_many_counts_there_are():
    model = model_of("imaging", (100, 2000))
    found = simulated(model, choose_method(model), made_up(model.tree, seed=1), asked=False)
    assert found.own is not None and found.beside is None and found.default == ""
    empty = next(s for s in found.own.sizes if (s.level, s.high) == ("place", 0))
    assert 0.1 < empty.bias < 4.0
