"""Enumerated laws: epsilon at a delta, and a normaliser that is wrong."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.enumerated import at_delta

PAIR = cg.Tree.from_parents([-1, 0, 0])
TOTAL = cg.consistent(PAIR) & cg.exactly(0)
NOISY = cg.Additive(cg.DiscreteLaplace([np.inf, 2.0, 1.5]), PAIR)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_epsilon_at_a_delta_is_that_of_discrete_gaussian_noise(epsilon):
    u = np.arange(-80, 81)
    law = -0.5 * (u / 2.0) ** 2
    law -= np.logaddexp.reduce(law)
    delta = cg.accounting.discrete_gaussian_delta(sigma=2.0, epsilon=epsilon)
    assert at_delta(law[1:], law[:-1], delta) == pytest.approx(epsilon, abs=1e-9)
    assert at_delta(law[1:], law[:-1], 1.0) == 0.0


def found(mechanism):
    return cg.audit(mechanism, neighbours="substitute", method="exact").findings


def test_a_wrong_normaliser_is_detected():
    made = cg.condition(NOISY, TOTAL & cg.nonnegative())
    wrong = SimpleNamespace(
        mechanism=made.mechanism,
        resolved=made.resolved,
        sample=made.sample,
        guarantee=made.guarantee,
        log_prob=lambda z, x: made.log_prob(z, x) + 1e-6,
    )
    assert {f.check for f in found(wrong) if not f.passed} == {"mass, enumerated"}
    assert found(made)[1].found == pytest.approx(1.0, abs=1e-9)
