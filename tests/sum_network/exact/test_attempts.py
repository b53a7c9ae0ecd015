"""Single attempts: a refused draw is named and does not begin again."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import exact
from congenial.sum_network.exact import exact_draws
from support.random_networks import composed_at_random, conditioned_at_random, with_larger_factors

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("seed", range(12))
def test_attempts_that_are_all_accepted_are_draws(seed):
    released, x = conditioned_at_random(seed)
    of = released.weighed_envelopes(x)
    values, accepted = exact.attempt(of, 400, cg.seeded(seed))
    assert accepted.all()
    assert (values == exact.sample(of, 400, cg.seeded(seed))).all()


@pytest.mark.parametrize("made", [conditioned_at_random, composed_at_random])
@pytest.mark.parametrize("seed", range(12))
def test_accepted_attempts_satisfy_the_invariant(seed, made):
    released, x = made(seed)
    of = with_larger_factors(released.weighed_envelopes(x), seed)
    values, accepted = exact.attempt(of, 500, cg.seeded(seed), first=x.size)
    assert values.shape == (500, x.size)
    assert accepted.shape == (500,)
    kept = values[accepted] * released.forest.orientation[: x.size] + x
    assert released.resolved.satisfied_by(kept, x).all()


def test_each_attempt_is_one_whatever_its_batch(monkeypatch):
    released, x = composed_at_random(1)
    of = with_larger_factors(released.weighed_envelopes(x), 1)
    monkeypatch.setattr(exact_draws.draws, "_VALUES_AT_ONCE", 7 * of.network.slots)
    values, accepted = exact.attempt(of, 100, cg.seeded(1))
    assert len(values) == accepted.size == 100
    assert 0 < np.count_nonzero(accepted) < 100
    kept = values[accepted][:, : x.size] * released.forest.orientation[: x.size] + x
    assert released.resolved.satisfied_by(kept, x).all()
