"""The last acceptance of draws from envelopes: by doubles and by decimals alike, seldom in vain."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import exact
from congenial.sum_network.exact import exact_draws, rare_draws
from support.random_networks import (
    compiled_at_random,
    composed_at_random,
    conditioned_at_random,
    with_larger_factors,
)

pytestmark = pytest.mark.kernels


def drawn(released, x, seed, rows):
    """Values of all nodes, drawn from envelopes."""
    compiled = released._compiled(None if released.data_free else x)
    found = exact.sample(exact.fill_envelopes(compiled), rows, cg.seeded(seed), first=x.size)
    return found * released.forest.orientation[: x.size] + x


def test_decisions_in_decimals_are_those_of_doubles(monkeypatch):
    accepted = exact_draws.Acceptance.accepted

    def doubtful(self, values, doubt, rare, rng):
        return accepted(self, values, np.ones_like(doubt), rare, rng)

    for seed in range(40):
        released, x = conditioned_at_random(seed)
        quick = drawn(released, x, seed, 20)
        monkeypatch.setattr(exact_draws.Acceptance, "accepted", doubtful)
        assert (drawn(released, x, seed, 20) == quick).all()
        monkeypatch.setattr(exact_draws.Acceptance, "accepted", accepted)


def test_the_share_of_a_draw_is_at_most_1_and_bounded_by_its_doubt(monkeypatch):
    accepted, seen = exact_draws.Acceptance.accepted, []

    def compared(self, values, doubt, rare, rng):
        least = exact_draws.lacking_of_weights(self.of)
        for column in range(values.shape[1]):
            low, high = rare_draws.share(self.of, values[:, column], {})(0)
            assert high <= 1
            lacking = float(1 - low)
            assert 0.0 < lacking < doubt[column] + least
            seen.append(lacking)
        return accepted(self, values, doubt, rare, rng)

    monkeypatch.setattr(exact_draws.Acceptance, "accepted", compared)
    for seed in range(40):
        drawn(*conditioned_at_random(seed), seed, 10)
    assert np.median(seen) < 1e-11


@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_the_number_of_threads_changes_no_draw(seed):
    of = exact.fill_envelopes(compiled_at_random(seed))
    alone = exact.sample(of, 3000, cg.seeded(1), threads=1)
    for threads in (2, 5):
        assert (exact.sample(of, 3000, cg.seeded(1), threads=threads) == alone).all()


@pytest.mark.parametrize("seed", range(12))
def test_attempts_that_are_all_accepted_are_draws(seed):
    released, x = conditioned_at_random(seed)
    of = released.weighed_envelopes(x)
    accepted, values = exact.attempt(of, 400, cg.seeded(seed))
    assert accepted.all()
    assert (values == exact.sample(of, 400, cg.seeded(seed))).all()


@pytest.mark.parametrize("made", [conditioned_at_random, composed_at_random])
@pytest.mark.parametrize("seed", range(12))
def test_accepted_attempts_satisfy_the_invariant(seed, made):
    released, x = made(seed)
    of = with_larger_factors(released.weighed_envelopes(x), seed)
    accepted, values = exact.attempt(of, 500, cg.seeded(seed), first=x.size)
    assert accepted.shape == (500,)
    assert values.shape == (np.count_nonzero(accepted), x.size)
    kept = values * released.forest.orientation[: x.size] + x
    assert released.resolved.satisfied_by(kept, x).all()


def test_each_attempt_is_one_whatever_its_batch(monkeypatch):
    released, x = composed_at_random(1)
    of = with_larger_factors(released.weighed_envelopes(x), 1)
    monkeypatch.setattr(exact_draws.draws, "_VALUES_AT_ONCE", 7 * of.network.slots)
    accepted, values = exact.attempt(of, 100, cg.seeded(1))
    assert accepted.size == 100 and 0 < len(values) == np.count_nonzero(accepted) < 100
    kept = values[:, : x.size] * released.forest.orientation[: x.size] + x
    assert released.resolved.satisfied_by(kept, x).all()
