"""Methods that the exact sampler provides for other samplers."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import (
    InvariantError,
    UnsupportedError,
)
from support.enumeration import enumerate_law
from support.goodness_of_fit import FAILS, fit
from support.proposal_cases import DRAWS, made
from support.tree_cases import CASES

SAMPLERS = ("rejection", "perfect", "independence")


def test_the_law_is_that_of_the_exact_sampler():
    case = CASES["star"]
    exact = made(case, "exact")
    for sampler in SAMPLERS:
        conditioned = made(case, sampler)
        assert conditioned.log_normalizer(case.x) == exact.log_normalizer(case.x)
        assert conditioned.log_prob(case.x, case.x) == exact.log_prob(case.x, case.x)
        np.testing.assert_array_equal(conditioned.marginal(1, case.x), exact.marginal(1, case.x))
        np.testing.assert_array_equal(
            conditioned.joint([1], case.x)[1], exact.joint([1], case.x)[1]
        )
        assert conditioned.interval(0) == exact.interval(0)
        assert "sampler='exact'" in conditioned.explain()


JOINT = cg.linear([[1, 1, 1]], 6) & cg.at_least([[2, 1, 0], [0, 1, -1]], [3, -3])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_inequalities_of_unequal_weights_are_covered_for_studies(sampler):
    x, scale = np.array([2, 1, 3]), 1.1
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), 3), JOINT, sampler)
    assert conditioned.exact is None
    if sampler == "independence":
        draw, info = conditioned.run(x, 5000, 4, cg.seeded(6), thin=40)
        draws = draw.values.reshape(-1, 3)
        assert info.tv_bound is None and "not known" in info.unbounded
        assert "would depend on confidential data" in conditioned.explain()
    else:
        draws = conditioned.sample(x, DRAWS, cg.seeded(6))
    assert ((2 * draws[:, 0] + draws[:, 1] >= 3) & (draws[:, 1] - draws[:, 2] >= -3)).all()
    for factor, right in ((1.0, True), (0.7, False), (1.3, False)):
        law = enumerate_law([[1, 1, 1]], "laplace", scale * factor, x)
        inside = (2 * law.states[:, 0] + law.states[:, 1] >= 3) & (
            law.states[:, 1] - law.states[:, 2] >= -3
        )
        mass = law.probabilities * inside
        cut = type(law)(law.states[inside], mass[inside] / mass.sum(), 0.0)
        assert (fit(draws, cut, range(3)) > FAILS) == right
    for ask in (
        lambda: conditioned.log_normalizer(x),
        lambda: conditioned.log_prob(x, x),
        lambda: conditioned.marginal(0, x),
        lambda: conditioned.joint([0], x),
        lambda: conditioned.interval(0),
    ):
        with pytest.raises(UnsupportedError, match="estimate the answer from draws"):
            ask()
    with pytest.raises(UnsupportedError, match="normaliser"):
        conditioned.log_ratio(x)
    with pytest.raises(InvariantError, match="at_least"):
        conditioned.sample(np.array([0, 0, 6]), rng=cg.seeded(1))
