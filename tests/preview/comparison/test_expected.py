"""Errors that a release is expected to have, against the noise's own."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from congenial.data.counts import build_domain
from congenial.errors import NumericalError
from congenial.plan.plan import read_plan
from congenial.preview.comparison import expected
from congenial.preview.comparison.expected import (
    NotSimulated,
    draws_for,
    draws_of,
    simulated_errors,
)
from congenial.releases.model import build_model
from support.city import make_city

AGES = [str(age) for age in range(60)]
SECTIONS = {
    "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
    "invariants": "nonnegative = true",
}


def test_errors_are_those_of_the_noise():
    mechanism = cg.Additive(cg.DiscreteLaplace([1.0, 5.0]), 2)
    found = simulated_errors(mechanism, np.array([10, 20]), seed=3, draws=draws_for(2))
    wanted = 1 / np.sinh(1 / np.array([1.0, 5.0]))
    draws = draws_for(2)
    assert found.draws == draws
    assert np.abs(found.totals / draws - wanted).max() < 5 * 7.2 / np.sqrt(draws)
    again = simulated_errors(mechanism, np.array([10, 20]), seed=3, draws=draws_for(2))
    assert (again.totals == found.totals).all()


def test_fewer_releases_of_many_counts_are_simulated():
    assert draws_for(10) >= draws_for(10**6) >= 1


def test_simulations_of_crossing_margins_take_little_longer_than_a_release(tmp_path):
    found = []
    attributes = f'attributes = {{ sex = ["F", "M"], age = {json.dumps(AGES)} }}'
    for table in ({}, {"table": f'{attributes}\nmargins = ["sex", "age"]'}):
        plan = read_plan(make_city(tmp_path, method='name = "topdown"', **SECTIONS, **table))
        model = build_model(plan, build_domain(plan, base=tmp_path))
        assert model.plan.crossing == bool(table)
        found.append((draws_of(model), len(model.domain)))
    assert found[0][0] == expected.DRAWS
    assert found[1][0] == 20_000 // found[1][1] < expected.DRAWS


@pytest.mark.parametrize("error", [NumericalError("too hard."), MemoryError()])
def test_plans_that_cannot_be_simulated_have_a_reason(error):
    def sample(*_, **__):
        raise error

    found = simulated_errors(SimpleNamespace(sample=sample), np.array([1]), seed=1, draws=2)
    assert isinstance(found, NotSimulated)
    assert found.why
