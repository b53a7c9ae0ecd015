"""Rejection: how often candidates are accepted."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from support.proposal_cases import ALL, made


@pytest.mark.parametrize("name", ALL)
def test_the_acceptance_is_what_the_normaliser_says(name):
    case = ALL[name]
    conditioned = made(case, "rejection")
    batch = conditioned.batch(case.x, 1, 40_000, cg.seeded(7))
    share = float((batch.log_uniforms <= batch.log_weights).mean())
    chance = conditioned.acceptance(case.x)
    assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / 40_000)


def test_the_ratio_of_continuous_gaussian_noise_is_its_acceptance():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    mechanism = cg.Additive(cg.Gaussian([1.0, 0.5, 2.0, 1.5]), tree)
    conditioned = cg.condition(mechanism, cg.consistent(tree), "rejection")
    x = np.array([6.0, 1.0, 2.0, 3.0])
    batch = conditioned.batch(x, 1, 40_000, cg.seeded(2))
    share = float((batch.log_uniforms <= batch.log_weights).mean())
    assert share == pytest.approx(conditioned.acceptance(x), abs=0.0125)
    assert conditioned.acceptance(x) > 0.1
