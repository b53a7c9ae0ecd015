"""Exact draws for sums with a few cycles: explanations, refusals, seeds."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import (
    InvariantError,
    UnsupportedError,
)
from support.sum_networks import margins, table_case

SQUARE = [1, 2, 0, 0, 3, 1, 2, 2, 1]


TABLES = {
    "narrow": table_case((3, 3), 0.6, SQUARE),
    "nonnegative": table_case((3, 3), 0.8, SQUARE, lo=0),
    "unequal": table_case((3, 3), np.linspace(0.4, 0.7, 9), SQUARE),
    "gaussian": table_case((3, 3), 0.8, SQUARE, kind="gaussian"),
    "gaussian, nonnegative": table_case((3, 3), 1.0, SQUARE, lo=0, kind="gaussian"),
    "three by four": table_case((3, 4), 0.6, [*SQUARE, 0, 1, 2], lo=0),
}


def test_seeds_repeat_and_size_none_is_one_vector():
    case = TABLES["nonnegative"]
    conditioned = case.condition()
    one = conditioned.sample(case.x, size=40, rng=cg.seeded(4))
    np.testing.assert_array_equal(one, conditioned.sample(case.x, size=40, rng=cg.seeded(4)))
    assert conditioned.sample(case.x).shape == (9,)
    assert one.dtype == np.int64
    assert conditioned.sample(case.x, size=0).shape == (0, 9)


def test_a_tree_with_a_crossing_sum():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    x = tree.roll_up(np.array([3, 1, 2, 2]))
    crossing = np.array([[0, 0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 1, 1, 0]])
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(0.4), tree),
        cg.consistent(tree) & cg.linear(crossing, crossing @ x) & cg.exactly(0),
    )
    assert isinstance(conditioned, CutConditioned)
    draws = conditioned.sample(x, size=500, rng=cg.seeded(1))
    assert (tree.roll_up(draws[:, tree.leaves]) == draws).all()
    assert (draws @ crossing.T == crossing @ x).all()
    assert "3" not in conditioned.explain().split("(")[0]


def test_the_cost_is_stated_and_does_not_depend_on_the_data():
    case = TABLES["nonnegative"]
    text = case.condition().explain()
    for told in (
        "cut set",
        "entry",
        "assignments",
        "multiplications",
        "limits",
        "uses no confidential counts",
    ):
        assert told in text
    other = table_case((3, 3), 0.8, np.array(SQUARE) * 1000 + 5, lo=0)
    assert other.condition().explain() == text
    free = TABLES["narrow"].condition()
    assert "one law for every dataset" in free.explain()
    weighed = free._free_weighed
    assert weighed.values.shape[0] <= free.cost.assignments


def test_with_too_many_cycles_exact_refuses_and_auto_uses_chains():
    rows = margins(20, 20)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 400)
    invariant = cg.linear(rows, np.zeros(40))
    with pytest.raises(UnsupportedError, match="cut set") as caught:
        cg.condition(mechanism, invariant, "exact")
    assert str(caught.value).count(".") <= 2
    assert "not certified" in cg.condition(mechanism, invariant).explain().lower()


def test_data_that_violate_a_sum_are_refused():
    case = TABLES["narrow"]
    with pytest.raises(InvariantError):
        case.condition().sample(case.x + 1, rng=cg.seeded(1))
    assert isinstance(case.condition(), Conditioned)


@pytest.mark.parametrize("name", TABLES)
def test_probabilities_of_releases_are_those_of_enumeration(name):
    case = TABLES[name]
    law, made = case.law(), case.condition()
    likely = law.probabilities > 1e-6
    found = np.exp(made.log_prob(law.states[likely], case.x))
    # the enumeration ends where little of the law is left
    np.testing.assert_allclose(found, law.probabilities[likely], rtol=1e-6)
    assert made.log_ceiling(case.x, thorough=True) >= made.log_normalizer(case.x)
