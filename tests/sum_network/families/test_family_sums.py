"""Tables of families: bounds on the true weights, with errors that hold, at any width of noise."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import families
from congenial.sum_network.families import exact_arithmetic, family_draws, family_sums
from support.bounded_trees import conditioned, filled, posterior_filled, random_tree

pytestmark = pytest.mark.kernels


def direct_law(sums, f):
    """Return (first value, law) of the sum of a family, term by term, by its tilt."""
    of, tables = sums.families, sums.tables
    if of.of_leaves[f]:
        law, inverse, tilt = np.ones(1), sums.leaves.inverse[f], sums.leaves.tilt[f]
        reach = math.ceil(60.0 / (inverse - tilt))
        for v in of.member[of.start[f] : of.start[f + 1]]:
            y = np.arange(reach + of.gap[v])
            leaf = np.exp(-inverse * np.abs(y - of.gap[v]) + tilt * y)
            law = np.convolve(law, leaf / leaf.sum())
        return int(sums.leaves.base[f]), law
    first, law = 0, np.ones(1)
    for v in of.member[of.start[f] : of.start[f + 1]]:
        table = tables.entries(v).astype(float)
        table *= np.exp(sums.retilt[f] * (np.arange(table.size) - table.argmax()))
        law, first = np.convolve(law, table / table.sum()), first + tables.values(v)[0]
    return first, law


def entries_checked(sums):
    """Compare the entries of all tables of owners with the true weights; return how many tables."""
    of, doubt, tables, seen = sums.families, sums.doubt, sums.tables, 0
    for f in range(of.owner.size):
        v, t = of.owner[f], tables.of[of.owner[f]]
        if v < 0 or doubt.factor[t] == 0.0:
            continue
        values, entries = np.array(tables.values(v)), tables.entries(v).astype(float)
        first, law = direct_law(sums, f)
        inside = (values >= first) & (values < first + law.size)
        true = np.where(inside, law[np.clip(values - first, 0, law.size - 1)], 0.0)
        away = np.abs(values - doubt.center[t])
        unit = np.exp(doubt.slope[t] * values - doubt.decay[t] * away - doubt.top[t])
        true *= doubt.unit[t] * unit
        # term by term in doubles: a relative error of some 1e-13
        assert (entries >= true * (1.0 - 1e-12)).all()
        assert (entries - true <= 1e-12 * true + doubt.factor[t] * unit + 2.0).all()
        seen += 1
    return seen


def test_entries_are_the_true_weights_or_more_by_at_most_their_doubt():
    source, seen = np.random.default_rng(7), 0
    for _ in range(1500):
        tree, x = random_tree(source, int(source.integers(4, 40)))
        scale = float(source.choice([0.7, 4.0, 20.0]))
        released = conditioned(tree, scale, pinned=bool(source.integers(2)))
        seen += entries_checked(filled(released, x))
    assert seen > 2500


def test_entries_of_posteriors_are_the_true_weights_or_more_too():
    """Their sums have other modes than 0, and leaves may have modes below their bounds."""
    source, seen = np.random.default_rng(17), 0
    for _ in range(400):
        tree, x = random_tree(source, int(source.integers(4, 40)))
        scale = float(source.choice([0.7, 4.0, 20.0]))
        y = x + np.rint(source.laplace(0.0, scale, len(tree))).astype(np.int64)
        pinned = bool(source.integers(2))
        y[0] = x[0] if pinned else y[0]
        _, sums, _ = posterior_filled(tree, scale, y, pinned=pinned)
        seen += entries_checked(sums)
    assert seen > 500


def test_equal_families_of_different_sums_have_one_table_with_true_weights():
    levels = [np.repeat(np.arange(m), 6) + s for m, s in ((1, 0), (6, 1), (36, 7), (216, 43))]
    tree, shared = cg.Tree.from_parents(np.concatenate([[-1], *levels])), np.zeros(4)
    source = np.random.default_rng(8)
    for _ in range(6):
        leaves = source.poisson(4.0, 1296) * (source.random(1296) < 0.05)
        sums = filled(conditioned(tree, float(source.choice([5.0, 12.0]))), tree.roll_up(leaves))
        # many tables are computed by transforms, those of inner families
        assert entries_checked(sums) > 30
        for level in (2, 3):
            of = np.flatnonzero(tree.level == level)
            numbers = sums.tables.of[of]
            own = np.unique(np.stack((tree.parents[of], numbers)), axis=1)
            shared[level] += own.shape[1] - np.unique(numbers).size
        # those of leaves are not: term by term, as exact arithmetic finds them
        own = sums.families.of_leaves & (sums.families.owner >= 0)
        for f in source.choice(np.flatnonzero(own), 40).tolist():
            v = int(sums.families.owner[f])
            value = int(source.choice(sums.tables.values(v)))
            doubt = family_draws.family_draws.doubt_of(v, value, sums.doubt, sums.tables)
            low, high = exact_arithmetic.share(sums, v, f, value)(0)
            assert 1.0 - doubt <= low <= high <= 1
    assert (shared[2:] > 0).all()


@pytest.mark.parametrize("matched", [True, False])
def test_families_of_leaves_whose_tables_lie_elsewhere_get_other_tilts(matched, monkeypatch):
    tree, x = random_tree(np.random.default_rng(9), 60)
    begin = family_sums._Filling._begin

    def far_off(filling):
        begin(filling)
        leaves = filling.families.members.of_leaves
        filling.theta[leaves] -= 2.0
        filling.law.tilt[leaves] -= 2.0
        if not matched:
            monkeypatch.setattr(family_sums._Filling, "_match", lambda *_: None)

    monkeypatch.setattr(family_sums._Filling, "_begin", far_off)
    sums = filled(conditioned(tree, 20.0), x)
    assert (sums is not None) == matched
    if sums is not None:
        assert entries_checked(sums) > 3


def test_shares_agree_with_the_sums_term_by_term():
    source = np.random.default_rng(3)
    tree, x = random_tree(source, 60)
    sums = filled(conditioned(tree, 6.0), x)
    values, doubts = np.zeros((sums.n + sums.order.size, 1), dtype=np.int64), np.zeros(1)
    family_draws._choose(sums, values, doubts, cg.seeded(1))
    product = 1.0
    for v, f, value in family_draws._unsettled(sums, values[:, 0]):
        share, units = family_draws._share(sums, v, f, value)
        low, high = exact_arithmetic.share(sums, v, f, value)(2)
        assert low <= high <= Decimal(1)
        assert abs(share - float(high)) <= units * 2.0**-53 * share
        product *= share
        if f < 0 or sums.directly[f]:
            continue
        own, t = sums.doubt, sums.tables.of[v]
        log = own.slope[t] * value - own.decay[t] * abs(value) - own.top[t]
        entry = sums.tables.entries(v)[value - sums.tables.values(v)[0]]
        first, direct = direct_law(sums, f)
        true = own.unit[t] * math.exp(log) * direct[value - first] / entry
        assert share == pytest.approx(true, rel=1e-11)
    assert 1.0 - doubts[0] - 1e-13 <= product <= 1.0 + 1e-13


def test_values_whose_weights_are_too_small_for_doubles_are_possible():
    # some 400 people in blocks of three cells, with narrow noise and no exact total
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 2, 2, 2])
    x = tree.roll_up(np.array([400, 0, 2, 1, 380, 0]))
    sums = filled(conditioned(tree, 0.3, pinned=False), x)
    of, tables = sums.families, sums.tables
    for f in np.flatnonzero(of.of_leaves):
        v, least = int(of.owner[f]), int(sums.leaves.base[f])
        assert (tables.entries(v) >= 1).all()
        # the least sum lies far below the table
        assert least < tables.values(v)[0] - 300
        assert tables.tails[0, tables.of[v]] > 0.0
        low, high = exact_arithmetic.share(sums, v, int(f), least)(40)
        assert 0 < low <= high <= 1
        # nothing lies below it
        assert exact_arithmetic.share(sums, v, int(f), least - 1)(40) == (0, 0)


@pytest.mark.parametrize("scale", [0.3, 4.0, 40.0, 200.0])
def test_no_weight_exceeds_its_table_or_the_bound_beyond_it(scale):
    """Shares are at most 1, in decimals, also far beyond the ends of tables."""
    source, beyond = np.random.default_rng(11), 0
    for _ in range(8):
        tree, x = random_tree(source, int(source.integers(4, 12)))
        sums = filled(conditioned(tree, scale, pinned=bool(source.integers(2))), x)
        of, tables = sums.families, sums.tables
        for f in np.flatnonzero(of.owner >= 0):
            v = int(of.owner[f])
            first, size = tables.values(v)[0], len(tables.values(v))
            away = np.unique(np.geomspace(1, 200, 4).astype(int))
            inside = source.integers(0, size, 2)
            for place in [*inside.tolist(), *(-away).tolist(), *(size - 1 + away).tolist()]:
                if not exact_arithmetic._entry(sums, v, place):
                    continue
                share = exact_arithmetic.share(sums, v, int(f), first + place)
                # what lies beyond the tables of members is added up, but for a rest
                low, high = share(1)
                assert low <= 1
                assert high <= 1 or not 0 <= place < size
                beyond += not 0 <= place < size
    assert beyond > 30 or scale == 0.3


@pytest.mark.parametrize("scale", [0.5, 4.0, 20.0, 100.0])
def test_tables_are_filled_at_any_scale(scale):
    source = np.random.default_rng(5)
    # states, counties, blocks and cells, most of which are empty
    levels = [np.repeat(np.arange(m), k) for m, k in ((1, 8), (8, 40), (320, 12))]
    starts = np.cumsum([0, 1, 8, 320])
    parents = np.concatenate([[-1], *(s + a for s, a in zip(starts, levels, strict=False))])
    tree = cg.Tree.from_parents(parents)
    leaves = source.poisson(6.0, tree.leaves.size) * (source.random(tree.leaves.size) < 0.2)
    x = tree.roll_up(leaves)
    released = conditioned(tree, scale)
    sums = filled(released, x)
    assert sums is not None
    drawn = x + families.sample(sums, 3, cg.seeded(1), first=len(tree))
    assert (drawn >= 0).all()
    assert (drawn[:, 0] == x[0]).all()
    for row in drawn:
        assert (tree.roll_up(row[tree.leaves]) == row).all()


def test_sums_of_unmeasured_nodes_may_lie_far_above_the_data():
    # their tilt is positive, and their members have no noise of their own
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    scales, ends = np.array([8.0, np.inf, np.inf, *[8.0] * 4]), np.zeros((2, 7))
    ends[0], ends[1, 0] = [150.0, *[np.inf] * 6], 200.0
    base = cg.consistent(tree) & cg.nonnegative()
    either = (base & cg.bounds(hi=ends[0])) | (base & cg.bounds(lo=ends[1]))
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), either, sampler="exact")
    sums = filled(made.parts[1], tree.roll_up(np.array([3, 0, 0, 4])))
    assert sums is not None
    assert sums.leaves.tilt[sums.families.root] > 0.0


def test_gaussian_noise_and_leaves_without_a_bound_take_the_other_way():
    tree, x = random_tree(np.random.default_rng(1), 12)
    assert filled(conditioned(tree, 3.0, noise=cg.DiscreteGaussian), x) is None
    free = cg.condition(cg.Additive(cg.DiscreteLaplace(3.0), tree), cg.consistent(tree))
    assert filled(free, x) is None


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="no longer floating point here")
@pytest.mark.parametrize("n", [64, 96, 192, 256, 384])
def test_transforms_keep_the_error_that_is_stated_for_their_period(n):
    source, turn = np.random.default_rng(n), 2 * np.arctan2(np.longdouble(0), np.longdouble(-1))
    angle = (np.outer(np.arange(n // 2 + 1), np.arange(n)) % n) * turn / n
    waves = np.cos(angle), np.sin(angle)
    largest = 0.0
    for scale in (0.01, 0.3, 5.0):
        rows = np.exp(-scale * np.arange(n)) * source.random((400, n))
        found = np.fft.rfft(rows)
        re, im = (rows.astype(np.longdouble) @ wave.T for wave in waves)
        off = np.hypot(found.real - re, found.imag + im)
        # of the whole period: all frequencies but the first and the last occur twice
        twice = np.where(np.arange(n // 2 + 1) % (n // 2) == 0, 1, 2)
        error, size = (np.sqrt((twice * square).sum(axis=1)) for square in (off**2, re**2 + im**2))
        largest = max(largest, float((error / size).max()))
    assert 0.01 * family_sums._stages(n) < largest < family_sums._stages(n)
