"""Decisions in decimals: the same ones as by doubles, and the law of values beyond tables."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.network import family_draws as kernels
from congenial.sum_network.families import exact_arithmetic as exact
from congenial.sum_network.families import family_draws
from support.bounded_trees import conditioned, filled, p_values, random_tree
from support.short_tables import shortened
from support.uncompiled import in_python

pytestmark = pytest.mark.kernels

LEAST = 1e-6


def test_laws_of_sums_are_rounded_down_by_less_than_their_error():
    source = np.random.default_rng(2)
    for _ in range(200):
        parts, law = [], [Fraction(1)]
        for _ in range(int(source.integers(1, 4))):
            size = source.integers(1, 6)
            drawn = [Fraction(int(w), 1000) for w in source.integers(1, 1000, size)]
            part = [w / sum(drawn) for w in drawn]
            times = int(source.integers(1, 5))
            parts.append(([Decimal(w.numerator) / Decimal(w.denominator) for w in part], times))
            for _ in range(times):
                law = [
                    sum(part[i] * law[k - i] for i in range(len(part)) if 0 <= k - i < len(law))
                    for k in range(len(law) + len(part) - 1)
                ]
        most = int(source.integers(0, len(law)))
        found, error = exact._law_of_sum(parts, most, 0)
        unit = exact._unit(0)
        assert len(found) == most + 1
        assert error < 200
        # decimals of 28 digits were the probabilities
        room = Fraction(unit, 10**26)
        for value, true in zip(found, law, strict=False):
            assert -room <= true * unit - value <= error + room


@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_doubles_and_decimals_make_the_same_draws_of_the_same_words(monkeypatch):
    cases = []
    for seed in range(120):
        source = np.random.default_rng(seed)
        tree, x = random_tree(source, int(source.integers(4, 30)))
        scale = float(10.0 ** source.uniform(-1.0, 3.0))
        sums = filled(conditioned(tree, scale, pinned=bool(source.integers(2))), x)
        if sums is not None:
            cases.append((seed, sums, family_draws.sample(sums, 1, cg.seeded(seed))))
    assert len(cases) > 90
    in_python(monkeypatch)
    decided = {"leaves": 0, "tables": 0}

    def counted(decide, kind):
        def decision(*args):
            decided[kind] += 1
            return decide(*args)

        return decision

    monkeypatch.setattr(kernels, "_decided", lambda *_: -1)
    monkeypatch.setattr(exact, "try_leaves", counted(exact.try_leaves, "leaves"))
    monkeypatch.setattr(exact, "try_tables", counted(exact.try_tables, "tables"))
    for seed, sums, drawn in cases:
        assert (family_draws.sample(sums, 1, cg.seeded(seed)) == drawn).all()
    assert min(decided.values()) > 200


@pytest.mark.parametrize("rough", [0.01, 0.0])
def test_draws_whose_shares_are_worked_out_are_the_same(monkeypatch, rough):
    """By doubles where these decide, and by decimals alone."""
    cases = []
    for seed in range(40):
        source = np.random.default_rng(seed)
        tree, x = random_tree(source, int(source.integers(4, 16)))
        sums = filled(conditioned(tree, float(10.0 ** source.uniform(-0.5, 1.0))), x)
        cases.append((sums, family_draws.sample(sums, 3, cg.seeded(seed))))
    worked = []
    monkeypatch.setattr(family_draws, "_DOUBTS", 1e300)
    monkeypatch.setattr(family_draws, "_ROUGH", rough)
    share = exact.share
    monkeypatch.setattr(exact, "share", lambda *args: worked.append(args) or share(*args))
    for seed, (sums, drawn) in enumerate(cases):
        assert (family_draws.sample(sums, 3, cg.seeded(seed)) == drawn).all()
    assert (len(worked) > 100) == (rough == 0.0)


@pytest.mark.parametrize("width", [9, 15])
@pytest.mark.parametrize("seed", range(12))
def test_tables_that_end_too_early_change_no_law(seed, width, monkeypatch):
    source = np.random.default_rng(seed)
    tree, x = random_tree(source, int(source.integers(4, 10)))
    scale, pinned = float(source.choice([0.7, 2.0])), bool(source.integers(2))
    released, beyond = conditioned(tree, scale, pinned=pinned), []
    shortened(monkeypatch, width)
    sums = filled(released, x)
    propose = exact._beyond
    monkeypatch.setattr(exact, "_beyond", lambda *args: beyond.append(args[1]) or propose(*args))
    draws = x + family_draws.sample(sums, 2000, cg.seeded(seed))
    assert min(p_values(draws, released, x), default=1.0) > LEAST
    if scale > 1.0 and not pinned:
        assert len(beyond) > 100


def test_a_law_without_what_lies_beyond_tables_is_told_apart(monkeypatch):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2])
    x = tree.roll_up(np.array([1, 0, 2, 0, 1]))
    released = conditioned(tree, 2.0, pinned=False)
    shortened(monkeypatch, 9)
    sums = filled(released, x)
    draws = x + family_draws.sample(sums, 400, cg.seeded(1))
    assert min(p_values(draws, released, x)) > LEAST
    monkeypatch.setattr(exact, "_beyond", lambda *_: None)
    wrong = x + family_draws.sample(sums, 4000, cg.seeded(1))
    assert min(p_values(wrong, released, x)) < LEAST


def test_a_value_outside_its_bounds_has_no_share():
    # a leaf of its own beside a sum of leaves, far above its bound beside the noise
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    x = tree.roll_up(np.array([500, 2, 3]))
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.bounds(lo=np.array([400, 0, 0, 0, 0]))
    noise = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    sums = filled(cg.condition(noise, invariant, sampler="exact"), x)
    leaf = int(np.flatnonzero(sums.families.lone)[0])
    least = int(sums.families.least[leaf])
    assert least == -500
    assert sums.tables.values(leaf)[0] > least
    assert exact.share(sums, leaf, -1, least - 1)(0) == (0, 0)
    assert exact.share(sums, leaf, -1, least)(0)[0] > 0
    root = int(np.flatnonzero(sums.families.root)[0])
    owner = int(sums.families.owner[root])
    assert sums.limits[0, root] == 400 - 505
    assert exact.share(sums, owner, root, 400 - 506)(0) == (0, 0)
