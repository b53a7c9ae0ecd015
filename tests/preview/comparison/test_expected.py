"""Errors that a release is expected to have, against the noise's own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.preview.comparison.expected import NotSimulated, draws_for, simulated_errors


def test_errors_are_those_of_the_noise():
    mechanism = cg.Additive(cg.DiscreteLaplace([1.0, 5.0]), 2)
    found = simulated_errors(mechanism, np.array([10, 20]), seed=3)
    wanted = 1 / np.sinh(1 / np.array([1.0, 5.0]))
    draws = draws_for(2)
    assert found.draws == draws
    assert np.abs(found.totals / draws - wanted).max() < 5 * 7.2 / np.sqrt(draws)
    again = simulated_errors(mechanism, np.array([10, 20]), seed=3)
    assert (again.totals == found.totals).all()


def test_fewer_releases_of_many_counts_are_simulated():
    assert draws_for(10) >= draws_for(10**6) >= 1


@pytest.mark.parametrize("error", [NumericalError("too hard."), MemoryError()])
def test_plans_that_cannot_be_simulated_have_a_reason(error):
    def sample(*_, **__):
        raise error

    found = simulated_errors(SimpleNamespace(sample=sample), np.array([1]), seed=1)
    assert isinstance(found, NotSimulated)
    assert found.why
