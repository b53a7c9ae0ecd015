"""The last acceptance of draws from envelopes: by doubles and by decimals alike, seldom in vain."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import exact
from congenial.sum_network.exact import exact_draws, rare_draws
from support.random_networks import compiled_at_random, conditioned_at_random

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
