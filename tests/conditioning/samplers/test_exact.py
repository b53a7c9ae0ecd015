"""The exact sampler: every draw is exact, and other cases are refused."""

from __future__ import annotations

import pytest

import congenial as cg
from congenial.conditioning.samplers.auto import SAMPLER as AUTO
from congenial.conditioning.samplers.exact import SAMPLER
from congenial.errors import UnsupportedError

TREE = cg.Tree.from_parents([-1, 0, 0])
TOTAL = cg.consistent(TREE) & cg.exactly([0])
X = [9, 4, 5]


def test_auto_is_exact_if_that_is_affordable():
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), TREE)
    draws = [
        cg.condition(mechanism, TOTAL, sampler).sample(X, 20, cg.seeded(1)).tolist()
        for sampler in (SAMPLER, AUTO, "exact", "auto")
    ]
    assert draws[0] == draws[1] == draws[2] == draws[3]
    assert SAMPLER.certified
    assert not AUTO.certified


def test_exact_refuses_the_cases_in_which_auto_uses_a_chain():
    mechanism = cg.Additive(cg.Laplace(2.0), TREE)
    with pytest.raises(UnsupportedError, match="DiscreteLaplace"):
        cg.condition(mechanism, TOTAL, SAMPLER)
    studied = cg.condition(mechanism, TOTAL, AUTO)
    with pytest.raises(cg.errors.CongenialError):
        studied.log_prob(X, X)
