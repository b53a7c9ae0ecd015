"""Draws by families have the law that the tables of all merges have, whatever transforms err."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.kernels.network import family_draws as kernels
from congenial.kernels.network import member_sums
from congenial.sum_network.families import family_draws, family_sums
from support.bounded_trees import compiled, conditioned, divide_above, filled, p_values, random_tree
from support.goodness_of_fit import p_value

pytestmark = pytest.mark.kernels

LEAST = 1e-6


@pytest.mark.parametrize("most", [64, 2])
@pytest.mark.parametrize("seed", range(12))
def test_the_law_is_that_of_the_tables_of_all_merges(seed, most, monkeypatch):
    divide_above(most, monkeypatch)
    source = np.random.default_rng(seed)
    tree, x = random_tree(source, int(source.integers(4, 16)))
    scale = float(source.choice([0.7, 2.0, 6.0]))
    pinned = bool(source.integers(2))
    released = conditioned(tree, scale, pinned=pinned)
    draws = x + family_draws.sample(filled(released, x), 40_000, cg.seeded(seed))
    found = list(p_values(draws, released, x))
    assert min(found, default=1.0) > LEAST
    if scale > 1.0 and found:
        other = conditioned(tree, 1.3 * scale, pinned=pinned)
        assert min(p_values(draws, other, x)) < LEAST


@pytest.mark.parametrize("far", [4.0, 0.0])
@pytest.mark.parametrize("seed", range(6))
def test_exact_nodes_have_one_value_and_the_others_their_law(seed, far, monkeypatch):
    monkeypatch.setattr(family_sums, "_FAR", far)
    source = np.random.default_rng([7, seed])
    tree, x = random_tree(source, 14)
    inner = np.setdiff1d(np.arange(len(tree)), tree.leaves)
    exact = [0, *inner[source.random(inner.size) < 0.6].tolist()]
    sums = filled(conditioned(tree, 3.0, pinned=exact), x)
    assert all(len(sums.tables.values(v)) == 1 for v in exact if x[v])
    draws = x + family_draws.sample(sums, 20_000, cg.seeded(seed))
    assert (draws[:, exact] == x[exact]).all()
    assert min(p_values(draws, conditioned(tree, 3.0, pinned=exact), x), default=1.0) > LEAST
    other = conditioned(tree, 3.9, pinned=exact)
    assert min(p_values(draws, other, x), default=0.0) < LEAST


def test_tables_of_exact_nodes_take_no_transforms(monkeypatch):
    tree = cg.Tree.from_parents([-1, *[0] * 5, *np.repeat(np.arange(1, 6), 40)])
    x = tree.roll_up(np.random.default_rng(1).poisson(30.0, tree.leaves.size))
    laws = []
    back = family_sums._back
    monkeypatch.setattr(family_sums, "_back", lambda *args: laws.append(args) or back(*args))
    assert filled(conditioned(tree, 20.0, pinned=False), x) is not None
    assert len(laws) >= 2
    laws.clear()
    assert filled(conditioned(tree, 20.0, pinned=[0, 1, 2, 3, 4, 5]), x) is not None
    assert not laws


@pytest.mark.parametrize("unmeasured", [[0], [1, 2], [0, 1, 2], [3, 5]])
def test_nodes_without_noise_have_the_law_of_all_merges_too(unmeasured):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6])
    x = tree.roll_up(np.random.default_rng(4).poisson(2.0, tree.leaves.size))
    scales = np.full(len(tree), 3.0)
    scales[unmeasured] = np.inf
    released = conditioned(tree, scales, pinned=False)
    sums = filled(released, x)
    made = compiled(released, x)
    draws = x + family_draws.sample(replace(sums, freed=made.freed), 20_000, cg.seeded(3))
    assert min(p_values(draws, released, x)) > LEAST


def inaccurate(sums, factor):
    """Return sums whose entries are up to twice too large."""
    tables, doubt = sums.tables, sums.doubt
    table, unit, factors = tables.running.copy(), doubt.unit.copy(), np.zeros_like(doubt.factor)
    for t in range(unit.size):
        own = table[tables.place[t] : tables.place[t] + tables.size[t]]
        own[1:] = np.diff(own)
        if doubt.factor[t] > 0.0:
            own[:] = own * np.where(np.arange(own.size) % 3, 0.55, 0.95)
            unit[t] *= 0.5
            factors[t] = factor
    largest, total, guide = (np.empty_like(c) for c in (tables.largest, tables.total, tables.guide))
    kernels.cumulate(tables.place, tables.size, table, largest, total, guide)
    made = tables._replace(running=table, largest=largest, total=total, guide=guide)
    return replace(sums, tables=made, doubt=doubt._replace(unit=unit, factor=factors))


@pytest.mark.parametrize("factor", [1e-300, 1e300])
@pytest.mark.parametrize("seed", range(3))
def test_entries_that_are_too_large_change_no_law(seed, factor, monkeypatch):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 4, 5, 5, 6, 6])
    x = tree.roll_up(np.random.default_rng(seed).poisson(2.0, tree.leaves.size))
    released = conditioned(tree, 2.0)
    sums = inaccurate(filled(released, x), factor)
    assert (sums.doubt.factor > 0.0).any()
    choose = family_draws._choose

    def doubtful(sums, values, doubts, rng):
        # a large factor is settled before a sum is split, a small one at the end
        choose(sums, values, doubts, rng)
        doubts[np.isfinite(doubts)] = 1.0

    monkeypatch.setattr(family_draws, "_choose", doubtful)
    draws = x + family_draws.sample(sums, 1500, cg.seeded(seed))
    assert min(p_values(draws, released, x), default=1.0) > LEAST
    monkeypatch.setattr(family_draws, "_share", lambda *_: (1.0, 0.0))
    wrong = x + family_draws.sample(sums, 3000, cg.seeded(seed))
    assert min(p_values(wrong, released, x)) < LEAST


def test_a_draw_goes_on_where_its_words_ended(monkeypatch):
    source = np.random.default_rng(8)
    tree, x = random_tree(source, 14)
    released = conditioned(tree, 2.0)
    sums = filled(released, x)
    # batches of 50 draws, whose words are fetched 60 at a time
    monkeypatch.setattr(family_draws, "_WORDS", 60)
    monkeypatch.setattr(family_draws, "_VALUES", 50 * sums.n)
    draws = x + family_draws.sample(sums, 5000, cg.seeded(4))
    assert min(p_values(draws, released, x)) > LEAST


def test_the_same_seed_gives_the_same_bits():
    tree, x = random_tree(np.random.default_rng(2), 30)
    sums = filled(conditioned(tree, 5.0), x)
    one, same, other = (family_draws.sample(sums, 20, cg.seeded(seed)) for seed in (1, 1, 2))
    assert (one == same).all()
    assert (one != other).any()


@pytest.mark.parametrize("seed", range(40))
def test_an_attempt_that_ends_early_is_refused_in_full_too(seed):
    tree, x = random_tree(np.random.default_rng(seed), 60)
    sums = filled(conditioned(tree, 8.0), x)
    values = np.zeros((2, sums.n + sums.order.size, 200), dtype=np.int64)
    bare = sums.tables.tails[0] == 0.0
    assert bare.any()
    for i, below in enumerate((0.0, 1e-300)):
        # with something below each table, all members of an attempt are drawn
        sums.tables.tails[:2, bare] = np.array([[below], [1e3]])
        family_draws._choose(sums, values[i], np.zeros(200), cg.seeded(1))
    assert (values[0] == values[1]).all()


class Counted:
    """A source of words that ends after so many."""

    def __init__(self, seed, most):
        self.source, self.left = cg.seeded(seed), most

    def bits(self, number):
        self.left -= number
        assert self.left >= 0
        return self.source.bits(number)


def merged(observed, expected):
    """Merge the first cells until they expect 10 draws together."""
    first = int(np.argmax(np.cumsum(expected) >= 10.0))
    return tuple(np.append(c[: first + 1].sum(), c[first + 1 :]) for c in (observed, expected))


def law_of_first(sums, total):
    """Weights of the first member of the root's family at total - 6, ..., total, given their sum.

    All other members have one table, which begins at 0.
    """
    own, each = sums.tables.entries(1).astype(float), sums.tables.entries(2).astype(float)
    others = np.ones(1)
    for _ in range(7):
        others = np.convolve(others, each)
    values = np.arange(total - 6, total + 1)
    weights = own[values - sums.tables.values(1)[0]] * others[total - values]
    return weights / weights.sum()


@pytest.mark.parametrize("total", [-2, -3, -5])
@pytest.mark.parametrize("scale", [0.5, 0.7])
def test_sums_in_the_tails_of_narrow_noise_are_split_within_few_attempts(scale, total):
    # entries far below the mode are 1, which is far too large, and a tilt makes them larger
    tree = cg.Tree.from_parents([-1, *[0] * 8, *np.repeat(np.arange(1, 9), 2)])
    x = tree.roll_up(np.array([12, 12, *[0] * 14]))
    sums, other = (filled(conditioned(tree, s, pinned=False), x) for s in (scale, 1.3 * scale))
    given = replace(sums, families=sums.families._replace(root=np.zeros(9, dtype=np.bool_)))
    rows, found = 3000, np.zeros(7)
    for seed in range(rows):
        values = np.zeros((sums.rows, 1), dtype=np.int64)
        values[0] = total
        # a tilt is sought anew for each draw; more words would fail
        family_draws._choose(given, values, np.zeros(1), Counted(seed, 2 * family_draws._WORDS))
        assert values[1:9].sum() == total
        if total - 6 <= values[1, 0]:
            found[values[1, 0] - total + 6] += 1
    assert p_value(*merged(found, rows * law_of_first(sums, total))) > LEAST
    assert p_value(*merged(found, rows * law_of_first(other, total))) < LEAST


def steep(sums, decay):
    """Give all members the table of a sum of 20 like geometric variables, of 1,624 values."""
    i = np.arange(1624.0)
    log = 19 * np.log1p(i) - decay * i
    entries = np.maximum(2.0**55 * np.exp(log - log.max()), 1.0).astype(np.int64)
    made = sums.tables
    tables = made.of.max() + 1
    running = np.concatenate([entries] * tables)
    place, size = i.size * np.arange(tables), np.full(tables, i.size)
    largest, total = np.zeros((2, tables), dtype=np.int64)
    moments, guide = np.empty((3, tables)), np.empty_like(made.guide)
    member_sums.moments_of_tables(place, size, running, moments)
    kernels.cumulate(place, size, running, largest, total, guide)
    tails = np.zeros_like(made.tails)
    first = np.zeros(tables, dtype=np.int64)
    laid = place, first, size, running, tails, largest, total
    own = type(made)(made.of, *laid, moments[1:].copy("F"), guide)
    exact = sums.doubt._replace(rounding=np.zeros(tables))
    return replace(sums, tables=own, doubt=exact), entries / 2.0**55


@pytest.mark.parametrize("retilt", [-0.2, 0.0])
@pytest.mark.parametrize("total", [280, 20, 1500])
def test_sums_far_from_the_mean_of_wide_tables_are_split_within_few_attempts(total, retilt):
    tree = cg.Tree.from_parents([-1, *[0] * 8, *np.repeat(np.arange(1, 9), 20)])
    x = tree.roll_up(np.full(160, 3))
    sums, entries = steep(filled(conditioned(tree, 20.0, pinned=False), x), 0.05)
    root = np.zeros(sums.families.root.size, dtype=np.bool_)
    retilts = np.where(np.arange(root.size) == 0, retilt, sums.retilt)
    top = sums.order[sums.order == 0]
    given = replace(sums, families=sums.families._replace(root=root), order=top, retilt=retilts)
    found = []
    for seed in range(400):
        values = np.zeros((sums.rows, 1), dtype=np.int64)
        values[0] = total
        family_draws._choose(given, values, np.zeros(1), Counted(seed, 2 * family_draws._WORDS))
        assert values[1:9].sum() == total
        found.append(values[1, 0])
    p = law_of_one(entries, total)
    ends = np.searchsorted(np.cumsum(p), np.linspace(0.05, 0.95, 19))
    expected = np.diff(np.cumsum(p)[ends], prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(ends, found), minlength=20)
    kept = expected > 0.02
    assert p_value(observed[kept], 400 * expected[kept]) > LEAST


def law_of_one(entries, total):
    """Law of one of eight members with one table, given their sum; any tilt leaves it as it is."""
    at, low, high = np.arange(entries.size), -1.0, 1.0
    for _ in range(60):
        tilt = 0.5 * (low + high)
        own = np.exp(np.log(entries) + tilt * at - (np.log(entries) + tilt * at).max())
        own /= own.sum()
        low, high = (tilt, high) if 8.0 * (own @ at) < total else (low, tilt)
    others = np.ones(1)
    for _ in range(7):
        others = np.convolve(others, own)[: total + 1]
    first = at[at <= total]
    p = own[first] * np.pad(others, (0, total + 1))[total - first]
    return p / p.sum()


def test_draws_that_are_always_rejected_are_an_error(monkeypatch):
    tree, x = random_tree(np.random.default_rng(2), 12)
    sums = filled(conditioned(tree, 2.0), x)
    sums.doubt.factor[sums.doubt.factor > 0.0] = 1e300
    monkeypatch.setattr(family_draws, "_share", lambda *_: (0.0, 0.0))
    with pytest.raises(NumericalError, match="in a row were rejected"):
        family_draws.sample(sums, 1, cg.seeded(1))
