"""A part's message is nowhere below the weights of its sum, and attempts make up for the rest."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.kernels.network import family_draws as kernels
from congenial.randomness import precision
from congenial.sum_network.families import exact_arithmetic as exact
from congenial.sum_network.families import family_messages, wide_noise
from congenial.sum_network.joined import part_messages
from congenial.sum_network.joined.part_tables import fill_by_families
from support.bounded_trees import divide_above, p_values
from support.goodness_of_fit import FAILS
from support.narrow_windows import narrow_windows
from support.parted_trees import invariant_of, random_parted

pytestmark = pytest.mark.kernels


@pytest.fixture
def by_families(monkeypatch):
    """Let all noise count as wide; return the parts whose tables are those of families."""
    monkeypatch.setattr(wide_noise, "_WIDE", 0.0)
    monkeypatch.setattr(wide_noise, "_CROWDED", 0.0)
    found, fill = [], part_messages.fill_by_families

    def noted(part, outside):
        found.append(fill(part, outside))
        return found[-1]

    monkeypatch.setattr(part_messages, "fill_by_families", noted)
    return found


def short_windows(monkeypatch, most=4):
    """Let messages end after a few entries around the largest one."""

    def around(clear, peak):
        return max(peak - most, 0), min(peak + most, clear.size)

    monkeypatch.setattr(family_messages, "_around", around)


def filled_parts(seed):
    """Yield (part, its tables) of some parts that consist of leaves alone."""
    source = np.random.default_rng([8, seed])
    parts = int(source.integers(1, 4))
    above = np.repeat(np.arange(1, parts + 1), source.integers(2, 6, parts))
    tree = cg.Tree.from_parents([-1, *[0] * parts, *above])
    mean = source.choice([0.0, 0.5, 3.0, 20.0])
    x = tree.roll_up(source.poisson(mean, tree.leaves.size))
    scale = source.choice([0.4, 1.0, 3.0, 10.0], 3)[tree.level]
    invariant = cg.consistent(tree) & cg.nonnegative()
    if source.random() < 0.7:
        invariant &= cg.exactly([0])
    noisy = cg.Additive(cg.DiscreteLaplace(scale), tree)
    sums = condition_by_parts(noisy, invariant, 1).sums(x)
    for number, outside in enumerate(sums.joined.outsides):
        part = sums.part(number)
        found = fill_by_families(part, outside)
        if found is not None:
            yield part, found


def weights_of_sums(part, reach):
    """Weights of sums of leaves, in decimals, from the least one on."""
    unary, law, least = part.weights.each, [Decimal(1)] + [Decimal(0)] * (reach - 1), 0
    for v in range(1, part.forest.n):
        low, inverse = int(unary.lo[v]), Decimal(float(unary.inverse[v]))
        own = [(-inverse * abs(low + k)).exp() for k in range(reach)]
        law = [sum(law[j] * own[i - j] for j in range(i + 1)) for i in range(reach)]
        least += low
    return least, law


def accepted_weights(part, found, reach):
    """Bounds on what messages and attempts make of each sum, over its true weight.

    Also the least and the largest probability of acceptance.
    """
    sent, shares, accepted = found.message, [], []
    with precision(0):
        least, weights = weights_of_sums(part, reach)
        for x, weight in enumerate(weights, least):
            more = Decimal(1), Decimal(1)
            if sent.lo <= x <= sent.hi:
                message = Decimal(float(sent.table[x - sent.lo]))
            else:
                side = 0 if x < sent.lo else 2
                edge, ratio = (Decimal(float(t)) for t in sent.tails[side : side + 2])
                message = edge * ratio ** (sent.lo - x if side == 0 else x - sent.hi)
                more = found._share(x)(0)
            own = exact.share(found.sums, 0, 0, x)(2)
            tilted = weight * (Decimal(sent.theta) * x).exp()
            accepted += [more[0] * own[0], more[1] * own[1]]
            shares.append([message * p / tilted for p in accepted[-2:]])
    return np.array(shares).T, min(accepted), max(accepted)


# trusted digits of decimals
CLOSE = Decimal("1e-38")


@pytest.mark.parametrize("short", [False, True])
def test_attempts_and_messages_together_have_the_weights_of_sums(short, by_families, monkeypatch):
    if short:
        narrow_windows(monkeypatch, 0.3)
        short_windows(monkeypatch)
    sums = 0
    for seed in range(60):
        for part, found in filled_parts(seed):
            (low, high), least, most = accepted_weights(part, found, 60)
            with precision(0):
                assert 0 < least <= most <= 1 + CLOSE
                assert max(low) <= min(high) * (1 + CLOSE), seed
                assert max(high / low - 1) < Decimal("1e-12")
            sums += low.size
    assert sums > 5_000


def test_a_message_below_its_table_is_told_apart(by_families):
    part, found = next(filled_parts(1))
    found.message.table[:] *= np.linspace(1.0 - 1e-9, 1.0, found.message.table.size)
    (low, high), *_ = accepted_weights(part, found, 60)
    with precision(0):
        assert max(low) > min(high) * (1 + CLOSE)


def test_most_parts_of_nonnegative_counts_have_tables_of_families(by_families):
    for seed in range(60):
        _, x, _, parted = random_parted(seed, 30)
        parted.sums(x).joined  # noqa: B018
    made = sum(one is not None for one in by_families)
    assert made > max(50, len(by_families) / 2)


@pytest.mark.parametrize(("short", "most"), [(False, 64), (True, 64), (False, 2)])
@pytest.mark.parametrize("seed", [2, 3, 5, 8, 9, 11, 20, 23, 27, 28, 32, 34])
def test_draws_fit_every_marginal_law_and_not_that_of_another_scale(
    seed, short, most, by_families, monkeypatch
):
    divide_above(most, monkeypatch)
    tree, x, whole, parted = random_parted(seed, 30, scales=(3.0,), mean=(2.0,))
    if short:
        narrow_windows(monkeypatch, 0.3)
        short_windows(monkeypatch)
    drawn = parted.sample(x, 2_000 if short else 20_000, cg.seeded(seed))
    assert any(by_families)
    assert tree.is_consistent(drawn)
    monkeypatch.undo()
    assert min(p_values(drawn, whole, x)) > FAILS
    if not short:
        wrong = cg.Additive(type(whole.mechanism.noise)(3.9), tree)
        other = cg.condition(wrong, invariant_of(tree, whole), "exact")
        assert min(p_values(drawn, other, x)) < FAILS


def test_narrow_windows_are_left_and_their_tails_refuse_draws(by_families, monkeypatch):
    narrow_windows(monkeypatch, 0.3)
    short_windows(monkeypatch)
    beyond, share = [], family_messages.PartOfFamilies._share
    monkeypatch.setattr(
        family_messages.PartOfFamilies,
        "_share",
        lambda self, x: beyond.append(x) or share(self, x),
    )
    for seed in (2, 3, 5, 8, 9, 11):
        _, x, _, parted = random_parted(seed, 30, scales=(3.0,), mean=(2.0,))
        parted.sample(x, 500, cg.seeded(seed))
    assert len(beyond) > 200


def test_the_parts_of_a_large_tree_under_wide_noise_are_drawn_by_families():
    made, fill = [], part_messages.fill_by_families
    source = np.random.default_rng(1)
    parents = [-1, *[0] * 3, *np.repeat(np.arange(1, 4), 40)]
    parents = np.append(parents, np.repeat(np.arange(4, 124), 50))
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(np.where(source.random(6000) < 0.2, source.poisson(9.0, 6000), 0))
    noisy = cg.Additive(cg.DiscreteLaplace(10.0), tree)
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            part_messages, "fill_by_families", lambda *of: made.append(fill(*of)) or made[-1]
        )
        drawn = condition_by_parts(noisy, invariant, 1).sample(x, rng=cg.seeded(1))
    assert all(made)
    assert len(made) >= 6
    assert tree.is_consistent(drawn)
    assert drawn[0] == x[0]
    assert drawn.min() >= 0


def lone_family(gaps, tilt):
    """Kernel arrays of one family of leaves, under a tilt."""
    n = len(gaps) + 1
    distinct, counts = np.unique(gaps, return_counts=True)
    ints = {"dtype": np.int64}
    of = (
        np.array([0, len(gaps)], dtype=np.int32),
        np.arange(1, n, dtype=np.int32),
        np.array([0], dtype=np.int32),
        np.zeros(1, dtype=np.bool_),
        np.ones(1, dtype=np.bool_),
        np.zeros(n, dtype=np.bool_),
        np.array([0, *gaps], **ints),
        np.array([0, *(-g for g in gaps)], **ints),
    )
    first, size = np.array([-sum(gaps)]), np.array([2 * sum(gaps)])
    running = np.arange(1, size[0] + 1)
    table = np.zeros(1, **ints), first, size, running, np.zeros((4, 1)), np.ones(1, **ints), size
    guide = np.zeros((1, kernels.PARTS), dtype=np.int32)
    tables = np.zeros(n, dtype=np.int32), *table, np.zeros((2, 1)), guide
    leaves = (
        np.array([0, distinct.size]),
        distinct.astype(np.int64),
        counts.astype(np.int64),
        np.array([-sum(gaps)], **ints),
        np.array([0.1]),
        np.array([tilt]),
    )
    return of, tables, leaves


@pytest.mark.parametrize("tilt", [-0.9, -0.3, 0.05])
def test_a_sum_far_from_its_tilt_is_split_within_few_attempts(tilt):
    gaps, value, rows = [700, 3], -8, 8000
    of, tables, leaves = lone_family(gaps, tilt)
    length, size = 2000, 2
    k = np.arange(length)
    binomial = (k + 1.0) * np.exp(-0.1 * k)  # two leaves, without a tilt
    none = np.zeros(1, dtype=np.int64)
    binomials = none, none, np.array([length]), binomial
    doubt = (np.zeros(1),) * 7
    values, doubts = np.zeros((size + 2, rows), dtype=np.int64), np.zeros(rows)
    values[0] = value
    state, turned, words = np.zeros(5, dtype=np.int64), np.zeros(1), cg.seeded(3).bits(1 << 23)
    order = np.zeros(1, dtype=np.int32)
    tilts = np.zeros(1), np.zeros(1)
    args = of, tables, leaves, binomials, tilts, doubt, state, turned, words, values, doubts
    read = kernels.draw(order, *args)
    assert state[0] == 1
    assert read < 3 * (4 * kernels.FAILED) * rows  # three words an attempt
    # the rest is split uniformly between both leaves, which leaves their joint law
    rest, lifts = values[3], values[1:3] + np.array(gaps)[:, None]
    np.testing.assert_array_equal(lifts.sum(axis=0) + rest, value + sum(gaps))
    got = np.cumsum(np.bincount(lifts[0], minlength=gaps[0] + 1)) / rows
    # Kolmogorov: probability below 1e-6
    assert np.abs(got - law_of_lift(gaps, value, 0.1)).max() < 2.7 / np.sqrt(rows)
    for inverse in (0.13, 0.1 / 1.3):
        assert np.abs(got - law_of_lift(gaps, value, inverse)).max() > 2.7 / np.sqrt(rows)


def law_of_lift(gaps, value, inverse):
    """Cumulative law of the first of two lifts, given the sum of their leaves."""
    a, q = np.arange(gaps[0] + 1), np.exp(-inverse)

    def lift(gap):
        j = np.arange(gap + 1)
        return np.where(j == 0, q**gap, (1 - q * q) * q ** (gap - j.astype(float)))

    law = np.zeros(a.size)
    for j, w in enumerate(lift(gaps[1])):
        left = value + sum(gaps) - j - a
        law += np.where(left >= 0, lift(gaps[0]) * w * (left + 1.0) * q ** np.maximum(left, 0), 0.0)
    return np.cumsum(law) / law.sum()
