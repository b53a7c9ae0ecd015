"""Exact draws by rejection: which case takes them, explanations, questions, refusals."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.closing_sampler import ClosingConditioned
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.conditioning.mixtures import Mixture
from congenial.errors import UnsupportedError
from congenial.sum_network import closing
from congenial.sum_network.closing import closing_draws
from support.closing_cases import crossing_at_random
from support.sum_networks import margins


def table(rows, columns, scale, x=None, more=None):
    """A table of counts with both margins fixed, conditioned."""
    sums = margins(rows, columns)
    x = np.zeros(rows * columns, dtype=np.int64) if x is None else x
    invariant = cg.linear(sums, sums @ x)
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), rows * columns)
    return cg.condition(mechanism, invariant if more is None else invariant & more, "exact")


@pytest.mark.parametrize("scale", [5.0, 50.0, 1e3])
def test_wide_noise_is_drawn_by_rejection_as_often_at_any_scale(scale):
    x = np.arange(24)
    made = table(4, 6, scale, x)
    assert isinstance(made, ClosingConditioned)
    assert 0.03 < made.accepted < 0.2
    drawn = made.sample(x, 500, cg.seeded(1))
    assert (drawn @ margins(4, 6).T == margins(4, 6) @ x).all()
    assert 0.2 * scale < np.abs(drawn - x).mean() < scale
    np.testing.assert_array_equal(drawn, made.sample(x, 500, cg.seeded(1)))
    assert made.sample(x, rng=cg.seeded(2)).shape == (24,)
    assert made.sample(x, 0).shape == (0, 24)


def test_narrow_noise_keeps_the_cut_set():
    assert isinstance(table(3, 3, 0.6), CutConditioned)


def test_bounds_hold_and_the_estimate_does_not_read_counts():
    rng = np.random.default_rng(2)
    x = rng.integers(0, 30, 20)
    made = table(4, 5, 20.0, x, cg.nonnegative())
    drawn = made.sample(x, 200, cg.seeded(1))
    assert drawn.min() >= 0
    text = made.explain()
    assert text == table(4, 5, 20.0, x + 1000, cg.nonnegative()).explain()
    for told in (
        "by rejection",
        "8 sums form cycles",
        "closed by 3 values",
        "depends on the counts",
    ):
        assert told in text


def test_questions_about_the_law_take_a_cut_set():
    x = np.full(9, 5)
    slow = table(3, 3, 2.0, x)
    assert isinstance(slow, ClosingConditioned)
    assert slow.by_cut is not None
    values, probabilities = slow.marginal(4, x)
    drawn = slow.sample(x, 20_000, cg.seeded(3))[:, 4]
    assert abs(drawn.var() / ((values - 5) ** 2 @ probabilities) - 1.0) < 0.1
    assert slow.log_prob(x, x) < 0.0
    assert slow.interval(4, 0.1)[1] > 0
    wide = table(6, 6, 40.0)
    assert wide.by_cut is None
    zeros = np.zeros(36, dtype=np.int64)
    for question in (
        lambda: wide.marginal(0, zeros),
        lambda: wide.log_normalizer(zeros),
        lambda: wide.interval(0),
        lambda: wide.joint([0, 1], zeros),
    ):
        with pytest.raises(UnsupportedError, match="cut set"):
            question()
    assert wide.log_ceiling(zeros) == np.inf
    assert wide.log_ceiling(zeros, thorough=True) < 1e-9


def test_the_guarantee_has_no_part_for_draws():
    guarantee = table(5, 5, 40.0).guarantee("substitute")
    assert guarantee.delta == 0.0


def test_unions_and_mixtures_draw_by_rejection():
    sums = margins(3, 3)
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5])
    need, size = cg.linear(sums, sums @ x), 6_000
    ends = np.full(9, np.inf)
    low, high = ends.copy(), -ends
    low[0], high[0] = 3, 4
    union = (need & cg.bounds(-ends, low)) | (need & cg.bounds(high, ends))
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), 9)
    made = cg.condition(mechanism, union)
    assert all(isinstance(part, ClosingConditioned) for part in made.parts)
    drawn = made.sample(x, size, cg.seeded(5))
    values, probabilities = table(3, 3, 2.0, x).marginal(0, x)
    # the two alternatives are all values
    share = probabilities[values <= 3].sum()
    assert abs((drawn[:, 0] <= 3).mean() - share) < 5.0 * np.sqrt(share * (1.0 - share) / size)
    narrow = cg.Additive(cg.DiscreteLaplace(1.5), 9)
    mixed = cg.condition(Mixture((narrow, mechanism), (0.4, 0.6)), need)
    log = np.array([part.log_normalizer(x) for part in mixed.parts])
    share = 1.0 / (1.0 + 1.5 * np.exp(log[1] - log[0]))
    spread = [part.sample(x, size, cg.seeded(6))[:, 4].var() for part in mixed.parts]
    wanted = share * spread[0] + (1.0 - share) * spread[1]
    found = mixed.sample(x, size, cg.seeded(7))[:, 4].var()
    assert abs(found / wanted - 1.0) < 0.15


def test_random_tables_are_drawn_through_the_public_door():
    refused = 0
    for seed in range(16):
        case = crossing_at_random(seed, scales=(5.0, 20.0))
        bounded = case.system()[0].has_inequalities
        try:
            made = cg.condition(case.mechanism(), case.invariant, "exact")
        except UnsupportedError:
            assert bounded
            refused += 1
            continue
        # cells with parts are drawn under bounds if all cells have some
        if isinstance(made, CutConditioned):
            assert bounded
        else:
            assert not bounded or all(one.owns_sums for one in made.closings if one.trees)
        drawn = made.sample(case.x, 20, cg.seeded(seed))
        assert made.resolved.satisfied_by(drawn, case.x).all()
    assert 0 < refused < 12


@pytest.mark.parametrize(("shape", "share"), [((3, 3), 0.29), ((4, 6), 0.05), ((6, 12), 6e-4)])
def test_decision_0027_tells_how_often_draws_are_accepted(shape, share):
    # a few thousand attempts vary by a quarter where hardly any is accepted
    for scale in (10.0, 1000.0):
        assert table(*shape, scale).accepted == pytest.approx(share, rel=0.35)


def test_sums_that_are_not_connected_are_drawn_apart():
    # together, hardly any attempt would be accepted
    sums = np.kron(np.eye(40, dtype=np.int64), margins(3, 3))
    rng = np.random.default_rng(1)
    x = rng.integers(0, 9, 360)
    for more in (cg.linear(sums, sums @ x), cg.linear(sums, sums @ x) & cg.nonnegative()):
        made = cg.condition(cg.Additive(cg.DiscreteLaplace(20.0), 360), more, "exact")
        assert made.accepted > 0.2
        assert "40 sets of sums are drawn apart" in made.explain()
        drawn = made.sample(x, 50, cg.seeded(1))
        assert (drawn @ sums.T == sums @ x).all()
        for part in range(0, 360, 9):
            assert (drawn[:, part : part + 9] != x[part : part + 9]).any()


@pytest.mark.parametrize("law", [cg.DiscreteLaplace, cg.DiscreteGaussian])
def test_bounded_parts_near_zero_do_not_carry_cells_away(law):
    # 30 parts of each cell, most of them 0: each cell alone would drift by more than 100
    rng = np.random.default_rng(4)
    parts = rng.poisson(0.2, (30, 9))
    x = np.concatenate((parts.sum(axis=0), parts.ravel()))
    rows = np.zeros((15, 279), dtype=np.int64)
    rows[:6, :9] = margins(3, 3)
    for cell in range(9):
        rows[6 + cell, cell], rows[6 + cell, 9 + cell :: 9] = 1, -1
    scales = np.append(np.full(9, np.inf), np.full(270, 6.0))
    need = cg.linear(rows, rows @ x) & cg.nonnegative()
    made = cg.condition(cg.Additive(law(scales), 279), need, "exact")
    tilted, started = made._draws(x), 200
    accepted, drawn = closing.attempt(tilted, made.system.size, started, cg.seeded(1))
    assert accepted.mean() > 0.02
    drawn = made.sample(x, 100, cg.seeded(2))
    assert (drawn @ rows.T == rows @ x).all()
    assert drawn.min() == 0


def test_decision_0027_tells_how_often_draws_under_bounds_are_accepted():
    rng = np.random.default_rng(0)
    for columns, parts, mean, scale in itertools.product((3, 6), (1, 20), (0.3, 30.0), (20.0,)):
        cells = 3 * columns
        leaves = rng.poisson(mean * rng.exponential(1.0, (parts, cells)))
        x = np.concatenate((leaves.sum(axis=0), leaves.ravel()))
        rows = np.zeros((3 + columns + cells, x.size), dtype=np.int64)
        rows[: 3 + columns, :cells] = margins(3, columns)
        for cell in range(cells):
            rows[3 + columns + cell, cell] = 1
            rows[3 + columns + cell, cells + cell :: cells] = -1
        scales = np.append(np.full(cells, np.inf), np.full(leaves.size, scale))
        need = cg.linear(rows, rows @ x) & cg.nonnegative()
        made = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), x.size), need, "exact")
        if isinstance(made, ClosingConditioned):
            shares = [closing.share_accepted(one) for one in made._draws(x)]
            assert min(shares) > 1e-3, (columns, parts, mean, scale)


@pytest.mark.parametrize("scale", [1e-3, 0.05, 1.0, 300.0])
def test_all_tilts_cancel_exactly(scale):
    tried = 0
    for seed in range(3, 400, 4):  # in these tables, all cells have parts
        case = crossing_at_random(seed, scales=(0.5 * scale, scale))
        made = case.by_rejection()
        if made is None or made.data_free:
            continue
        weights = made._shared_weights(case.x, None)
        for one in made.closings:
            parts = (one.free, *one.trees)
            tilts = closing_draws._tilts(one, [closing_draws._turned(p, weights) for p in parts])
            if tilts is None:
                continue
            tried += 1
            tilt = [Fraction(float(of.own[0])) for of in tilts[1:]]
            signs = one.free.forest.orientation
            for v, own in enumerate(tilts[0].own.tolist()):
                against = sum(
                    t * int(a) * int(signs[v])
                    for t, a in zip(tilt, one.multiples[:, v], strict=True)
                )
                assert Fraction(own) == -against
                above = one.free.forest.above[v]
                if above >= 0:
                    sums = float(tilts[0].sums[above])
                    assert Fraction(sums) + Fraction(own) == Fraction(sums + own)
    assert tried > 20
