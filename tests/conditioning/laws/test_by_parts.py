"""Conditioning by parts has exactly the law of conditioning at once."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import InvariantError
from congenial.sum_network.joined import split_sums
from support.bounded_trees import p_values
from support.enumeration import enumerate_law, rows_of
from support.goodness_of_fit import FAILS, fit
from support.narrow_windows import narrow_windows
from support.parted_trees import invariant_of, random_parted


def test_draws_obey_the_invariant():
    for seed in range(150):
        tree, x, whole, parted = random_parted(seed, 40)
        drawn = parted.sample(x, 3, cg.seeded(seed))
        assert tree.is_consistent(drawn)
        np.testing.assert_array_equal(drawn[:, whole.fixed], np.tile(x[whole.fixed], (3, 1)))
        assert (drawn >= whole.resolved.lo).all()
        one = parted.sample(x, rng=cg.seeded(seed))
        assert one.shape == x.shape
        assert tree.is_consistent(one)


def enumerated(tree, whole, x):
    kind = "laplace" if "laplace" in whole.mechanism.noise.name else "gaussian"
    resolved = whole.resolved
    pinned = np.flatnonzero(whole.fixed).tolist()
    given = kind, whole.mechanism.scales, x, pinned, resolved.lo, resolved.hi
    return enumerate_law(rows_of(tree.parents), *given)


def test_probabilities_of_all_tops_are_those_of_enumeration():
    compared = 0
    for seed in range(120):
        tree, x, whole, parted = random_parted(seed, 8, scales=(0.3, 0.6, 1.0))
        law, split = enumerated(tree, whole, x), parted.split
        joined = parted.sums(x).joined
        keys, at = np.unique(law.states[:, split.nodes], axis=0, return_inverse=True)
        want = np.bincount(at.ravel(), weights=law.probabilities)
        noise = keys - x[split.nodes]
        mechanism = whole.restricted(split.nodes, split.top).mechanism
        log = mechanism.noise.log_pmf(noise, mechanism.scales).sum(axis=1)
        log -= mechanism.noise.log_pmf(np.zeros(len(split.top)), mechanism.scales).sum()
        inside = np.ones(len(keys), dtype=bool)
        for root, sent in zip(split.roots, joined.messages, strict=True):
            u = noise[:, root]
            seen = (u >= sent.lo) & (u <= sent.hi)
            entry = sent.table[np.clip(u - sent.lo, 0, sent.table.size - 1)]
            inside &= seen & (entry > 0)
            log += np.log(np.maximum(entry, 1e-300)) - sent.theta * u
        got = np.where(inside, np.exp(log - log[inside].max()), 0.0)
        # the tables exceed the exact messages by what lies beyond windows
        assert np.abs(got / got.sum() - want).max() < 1e-4, seed
        compared += len(keys)
    assert compared > 5000


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("seed", [3, 8, 11, 17, 28])
def test_draws_fit_the_law_and_not_one_of_a_scale_30_percent_off(seed, narrow, monkeypatch):
    if narrow:
        narrow_windows(monkeypatch)
    tree, x, whole, parted = random_parted(seed, 7, scales=(1.0,), mean=(2.0,))
    law = enumerated(tree, whole, x)
    drawn = parted.sample(x, 40_000, cg.seeded(seed))
    free = [v for v in range(len(tree)) if np.unique(law.states[:, v]).size > 1]
    nodes = free[-3:]
    assert fit(drawn, law, nodes) > FAILS
    noise = type(whole.mechanism.noise)
    for scale in (1.3, 1 / 1.3):
        wrong = cg.condition(cg.Additive(noise(scale), tree), invariant_of(tree, whole), "exact")
        assert fit(drawn, enumerated(tree, wrong, x), nodes) < FAILS


def test_draws_of_a_larger_tree_fit_every_marginal_law():
    tree = cg.Tree.from_parents([-1, 0, 0, 0, *np.repeat([1, 2, 3], 20)])
    x = tree.roll_up(np.arange(60) % 4)
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    noisy = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    drawn = condition_by_parts(noisy, invariant, 1).sample(x, 5_000, cg.seeded(1))
    whole = cg.condition(noisy, invariant, "exact")
    assert min(p_values(drawn, whole, x)) > FAILS
    wrong = cg.condition(cg.Additive(cg.DiscreteLaplace(3.9), tree), invariant, "exact")
    assert min(p_values(drawn, wrong, x)) < FAILS


def test_draws_that_a_part_refuses_are_drawn_anew(monkeypatch):
    narrow_windows(monkeypatch, 0.2)
    attempts, attempt = [], split_sums.SplitSums._attempt

    def counted(self, out, rows, rng):
        accepted = attempt(self, out, rows, rng)
        attempts.append((rows.size, accepted.sum()))
        return accepted

    monkeypatch.setattr(split_sums.SplitSums, "_attempt", counted)
    for seed in range(24):
        tree, x, whole, parted = random_parted(seed, 20)
        drawn = parted.sample(x, 50, cg.seeded(seed))
        assert tree.is_consistent(drawn)
        assert (drawn >= whole.resolved.lo).all()
    tried, accepted = np.sum(attempts, axis=0)
    assert accepted == 24 * 50 and tried > 1.02 * accepted


def test_the_guarantee_is_that_of_the_whole():
    for seed in range(5):
        _, _, whole, parted = random_parted(seed, 20)
        assert parted.guarantee("substitute") == whole.guarantee("substitute")
        assert parted.error_bound == whole.error_bound == 0.0


def test_counts_outside_the_invariant_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative(), 1)
    with pytest.raises(InvariantError):
        parted.sample(np.array([1, 2, -1, 1, 1]))
