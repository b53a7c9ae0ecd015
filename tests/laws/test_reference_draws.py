"""Draws are those that exact arithmetic makes of the same words, written apart, on every route.

Equality, not statistics: for thousands of random networks. `support.reference` has the draws.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.kernels.network import descend, differences
from congenial.kernels.network import family_draws as kernels
from congenial.sum_network import draws, exact
from congenial.sum_network.closing import closing_draws
from congenial.sum_network.cutset import cut_draws
from congenial.sum_network.exact import exact_draws, rare_draws
from congenial.sum_network.families import family_draws
from support.bounded_trees import conditioned, filled, random_tree
from support.closing_cases import crossing_at_random
from support.cut_cases import narrowly_weighed, open_case
from support.narrow_windows import narrow_windows
from support.random_mixtures import mixture_at_random
from support.random_networks import (
    composed_at_random,
    conditioned_at_random,
    linear_at_random,
    with_larger_factors,
)
from support.reference import closers, cut_sets, families, merges, unions
from support.reference.numbers import Words
from support.short_tables import shortened
from support.uncompiled import in_python

pytestmark = pytest.mark.kernels


def random_sums(seed):
    """Return the envelopes of a tree of up to 200 nodes, with noise of a scale of 0.1 to 1000."""
    rng = np.random.default_rng([3, seed])
    n = int(rng.choice([4, 12, 40, 200], p=[0.4, 0.4, 0.15, 0.05]))
    tree, x = random_tree(rng, n)
    scale = float(10.0 ** rng.uniform(-1.0, 3.0 if n < 100 else 1.0))
    law = (cg.DiscreteLaplace, cg.DiscreteGaussian)[seed % 2]
    need = cg.consistent(tree)
    if rng.random() < 0.5:
        need &= cg.nonnegative()
    if rng.random() < 0.5:
        need &= cg.exactly([0])
    released = cg.condition(cg.Additive(law(scale), tree), need, sampler="exact")
    return exact.fill_envelopes(released._compiled(None if released.data_free else x))


def assert_same(of, rows, seed):
    drawn = exact.sample(of, rows, cg.seeded(seed))
    assert (merges.draw(of, rows, Words(seed)) == drawn).all()


@pytest.mark.parametrize("part", range(4))
def test_draws_from_all_merges(part):
    for seed in range(300 * part, 300 * (part + 1)):
        assert_same(random_sums(seed), 1 + seed % 3, seed)


def test_choices_that_begin_with_three_values():
    for seed in range(200):
        of = random_sums(seed)
        near = of.near._replace(reach=np.minimum(of.near.reach, 1))
        assert_same(replace(of, near=near), 3, seed)


@pytest.mark.parametrize("made", [conditioned_at_random, composed_at_random, linear_at_random])
def test_draws_that_leave_narrow_windows(made, monkeypatch):
    narrow_windows(monkeypatch, 0.02 if made is conditioned_at_random else 0.2)
    beyond = []
    choose = rare_draws.choose
    monkeypatch.setattr(rare_draws, "choose", lambda *args: beyond.append(args) or choose(*args))
    for seed in range(200):
        released, x = made(seed)
        try:
            of = released.weighed_envelopes(x)
        except NumericalError:  # no windows so narrow have bounds on what lies beyond
            continue
        # with larger factors, many draws begin again
        assert_same(with_larger_factors(of, seed) if seed % 2 else of, 5, seed)
    assert len(beyond) > 50


def test_draws_whose_acceptance_doubles_seldom_decide(monkeypatch):
    decided = Counter()
    share, accepted = rare_draws.share, exact_draws.Acceptance.accepted

    def counted(self, values, *args):
        decided["all"] += values.shape[1]
        return accepted(self, values, *args)

    monkeypatch.setattr(exact_draws, "lacking_of_weights", lambda _: 0.25)
    monkeypatch.setattr(rare_draws, "share", lambda *args: decided.update(slow=1) or share(*args))
    monkeypatch.setattr(exact_draws.Acceptance, "accepted", counted)
    for seed in range(200):
        assert_same(random_sums(seed), 4, seed)
    assert 3 * decided["slow"] > decided["all"] > 700


def pinned_alone(seed):
    """Return the envelopes of many leaves with wide noise, whose sum is exact."""
    rng = np.random.default_rng([4, seed])
    leaves, scale = int(rng.integers(20, 200)), float(10.0 ** rng.uniform(1.5, 3.0))
    tree = cg.Tree.from_parents([-1] + [0] * leaves)
    need = cg.consistent(tree) & cg.exactly([0])
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), tree), need, sampler="exact")
    return exact.fill_envelopes(released._compiled(None))


def test_splits_without_tables():
    splits = 0
    for seed in range(120):
        of = pinned_alone(seed)
        splits += (of.network.op == descend.DIFFERENCE).any()
        assert_same(of, 3, seed)
    assert splits > 80


def test_splits_with_doubles_of_two_bits(monkeypatch):
    in_python(monkeypatch)
    acceptance, decide, below = vars(differences)["acceptance"], draws.is_accepted, merges.below
    decided = Counter()

    def crippled(*args):
        return round(4.0 * acceptance(*args)[0]) / 4.0, 0.25

    monkeypatch.setattr(differences, "acceptance", crippled)
    monkeypatch.setattr(draws, "is_accepted", lambda *args: decided.update(slow=1) or decide(*args))
    monkeypatch.setattr(merges, "below", lambda *args: decided.update(all=1) or below(*args))
    for seed in range(40):
        assert_same(pinned_alone(seed), 3, seed)
    # the reference decides all proposals, and all draws
    assert 3 * decided["slow"] > decided["all"] - 40 * 3 > 100


def random_families(seed, most=200):
    """Return the tables of families of a tree of at most 200 nodes, if families can have them."""
    rng = np.random.default_rng([5, seed])
    n = min(int(rng.choice([4, 12, 40, 200], p=[0.3, 0.4, 0.2, 0.1])), most)
    tree, x = random_tree(rng, n)
    scale = float(10.0 ** rng.uniform(-1.0, 3.0 if n < 40 else 1.5))
    exact = np.append(0, np.flatnonzero(rng.random(n) < 0.2)) if seed % 3 == 0 else seed % 2 == 0
    return filled(conditioned(tree, scale, pinned=exact), x)


@pytest.mark.parametrize("part", range(4))
def test_draws_family_by_family(part):
    noted, made = Counter(), 0
    for seed in range(300 * part, 300 * (part + 1)):
        sums = random_families(seed)
        if sums is None:
            continue
        made += 1
        drawn = family_draws.sample(sums, 1, cg.seeded(seed))[0]
        assert (families.draw(sums, Words(seed), noted) == drawn).all()
    assert made > 200
    assert min(noted["leaves"], noted["tables"]) > 1000


def test_so_many_trees_are_drawn_family_by_family():
    # proofs/family-draws.md
    assert sum(random_families(seed) is not None for seed in range(1200)) == 885


@pytest.mark.parametrize("bits", [2, 6])
def test_families_with_doubles_of_few_bits(bits, monkeypatch):
    cases = [(seed, sums) for seed in range(150) if (sums := random_families(seed, most=40))]
    in_python(monkeypatch)
    decided, choices = vars(kernels)["_decided"], Counter()

    def crippled(p, off, word):
        mantissa, exponent = math.frexp(p)
        rounded = math.ldexp(round(mantissa * 2.0**bits) / 2.0**bits, exponent)
        found = decided(rounded, off + 2.0 ** (1 - bits), word)
        choices[found] += 1
        return found

    monkeypatch.setattr(kernels, "_decided", crippled)
    for seed, sums in cases:
        drawn = family_draws.sample(sums, 1, cg.seeded(seed))[0]
        assert (families.draw(sums, Words(seed)) == drawn).all()
    assert choices[-1] > (choices.total() / 3 if bits == 2 else 10)


@pytest.mark.parametrize("width", [9, 15])
def test_families_with_tables_of_few_values(width, monkeypatch):
    shortened(monkeypatch, width)
    monkeypatch.setattr(family_draws, "_DOUBTS", 1e300)
    noted = Counter()
    for seed in range(80):
        rng = np.random.default_rng([6, seed])
        tree, x = random_tree(rng, int(rng.integers(4, 10)))
        scale, pinned = float(rng.choice([0.7, 2.0])), bool(rng.integers(2))
        sums = filled(conditioned(tree, scale, pinned=pinned), x)
        if sums is None:
            continue
        drawn = family_draws.sample(sums, 1, cg.seeded(seed))[0]
        assert (families.draw(sums, Words(seed), noted, closely=True) == drawn).all()
    assert noted["worked out"] > 50
    if width == 9:
        assert min(noted["beyond"], 4 * noted["settled"]) > 20


@pytest.mark.parametrize("doubt", [0.0, 0.25])
def test_draws_by_a_cut_set(doubt, monkeypatch):
    worked, share = Counter(), cut_draws.share
    monkeypatch.setattr(cut_draws, "share", lambda *args: worked.update(slow=1) or share(*args))
    for seed in range(600):
        of = cut_draws.prepare(narrowly_weighed(open_case(seed), 40.0, tally=bool(seed % 2)))
        of = replace(of, doubt=of.doubt + doubt)
        for again in range(3 * seed, 3 * seed + 3):
            drawn = cut_draws.sample(of, 1, cg.seeded(again))[0]
            assert (cut_sets.draw(of, Words(again)) == drawn).all()
    assert (worked["slow"] > 600) == (doubt > 0.0)


@pytest.mark.parametrize("off", [2.0**-40, 0.25])
def test_draws_that_leave_closers_out(off, monkeypatch):
    worked, share_of = Counter(), closing_draws.share_of
    monkeypatch.setattr(closing_draws, "_OFF", off)
    monkeypatch.setattr(
        closing_draws, "share_of", lambda *args: worked.update(slow=1) or share_of(*args)
    )
    for seed in range(200):
        case = crossing_at_random(seed)
        released = case.by_rejection()
        if released is None:
            continue
        of, size = released._draws(case.x), released.system.size
        drawn = closing_draws.sample(of, size, 2, cg.seeded(seed))
        assert (closers.draw(of, size, 2, Words(seed)) == drawn).all()
        worked.update(made=1, trees=any(one.trees for one in of))
    assert min(worked["made"], 2 * worked["trees"]) > 100
    assert (worked["slow"] > 100) == (off > 0.1)


def test_draws_from_unions_and_mixtures():
    for seed in range(300):
        made, x, *_ = mixture_at_random(seed)
        parts = made._weighed(x)
        assert not any(part.far for part in parts)
        for again in range(3 * seed, 3 * seed + 3):
            drawn = made.sample(x, 1, cg.seeded(again))[0]
            assert (unions.draw(parts, x, Words(again)) == drawn).all()
