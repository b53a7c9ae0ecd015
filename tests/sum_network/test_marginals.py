"""Laws computed once for like values equal the laws computed for each value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.inference import inversion
from congenial.kernels.network import marginals as kernels
from congenial.sum_network import extremes
from congenial.sum_network import marginals as module
from congenial.sum_network.marginals import one_sided, summaries
from congenial.sum_network.tables import Tables
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels


def a_tree(rng) -> cg.Tree:
    """Families of like leaves, and like families."""
    parents, level = [-1], [0]
    for _ in range(int(rng.integers(1, 4))):
        sizes = rng.integers(1, 6, 2)
        below = []
        for v in level:
            for _ in range(int(rng.choice(sizes))):
                below.append(len(parents))
                parents.append(v)
        level = below
    return cg.Tree.from_parents(parents)


def messages_of(tree: cg.Tree, rng) -> extremes._Messages:
    scales = rng.choice([0.7, 2.0], len(tree))
    mechanism = cg.condition(
        cg.Additive(cg.DiscreteLaplace(scales), tree), cg.consistent(tree) & cg.nonnegative()
    )
    z = np.asarray(tree.roll_up(rng.integers(0, 3, tree.leaves.size)))
    resolved, _, bound = inversion._checked(mechanism)
    weights = inversion._weights(mechanism, resolved, inversion._cuts(mechanism, z, bound, 0.01))
    laws = extremes._Laws(extremes.of_tree(tree), weights)
    return extremes._Messages(laws, np.full(laws.cut.ctype.size, 1.5))


def alone(network, dispersion, base, number):
    return np.arange(network.slots)


def twins_of(tables: Tables, dispersion, base):
    return module._twins(tables.network, dispersion, base, module._NO_NUMBERS)


@pytest.mark.parametrize("seed", range(20))
def test_twins_have_the_same_summaries_to_the_last_digit(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    tree = a_tree(rng)
    n, messages = len(tree), messages_of(tree, rng)
    tables = messages.cut
    more = [{}]
    # only some nodes of one class are alike then
    dispersion, base = rng.choice([0.0, 0.5], n), rng.integers(0, 2, n)
    rising = np.where(tree.is_leaf, dispersion, 0.0)
    more.append({"dispersion": rising, "center": base})
    told = messages.free.table, messages.lost, tree.is_leaf, np.array([0.2, 0.01])
    found = [summaries(tables, tree.is_leaf, 0.1, **these) for these in more]
    sides = one_sided(tables, *told)
    monkeypatch.setattr(module, "_twins", alone)
    for these, before in zip(more, found, strict=True):
        assert np.array_equal(summaries(tables, tree.is_leaf, 0.1, **these), before)
    for one, other in zip(sides, one_sided(tables, *told), strict=True):
        assert np.array_equal(one, other)


def test_there_are_twins_where_nodes_are_alike_and_none_where_they_differ():
    tree = cg.Tree.from_parents([-1] + [0] * 8)
    rng = np.random.default_rng(1)
    mechanism = cg.condition(
        cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    resolved, _, bound = inversion._checked(mechanism)
    cuts = inversion._cuts(mechanism, np.zeros(9, dtype=np.int64), bound, 0.01)
    laws = extremes._Laws(extremes.of_tree(tree), inversion._weights(mechanism, resolved, cuts))
    tables = extremes._Messages(laws, np.full(laws.cut.ctype.size, 1.5)).cut
    none, zero = np.zeros(9), np.zeros(9, dtype=np.int64)
    assert len(set(twins_of(tables, none, zero)[1:9].tolist())) == 1
    differing = rng.permutation(9).astype(np.int64)
    assert len(set(twins_of(tables, none, differing)[1:9].tolist())) == 8
    # whether nodes are alike is asked of all of a class
    base = zero.copy()
    base[3] = 1
    assert np.array_equal(twins_of(tables, none, base), np.arange(tables.network.slots))


@pytest.mark.parametrize("size", [0, 1, 3, 7, 40, 203])
def test_the_extent_is_the_sum_and_the_least_that_is_positive(size):
    found = entry("network.lacking.extent")
    rng = np.random.default_rng(size)
    for scale in (1.0, 1e-300, 5e-324):
        p = np.where(rng.random(size) < 0.3, 0.0, rng.random(size) * scale)
        total, least = found(p)
        assert total == pytest.approx(p.sum(), rel=1e-14)
        assert least == min(p[p > 0.0].min(initial=1.0), 1.0)
    assert found(np.full(size, 3.0)) == (3.0 * size, 1.0)


@pytest.mark.parametrize("few", [0, 10**6])
@pytest.mark.parametrize("seed", range(60))
def test_the_reach_of_like_nodes_is_that_of_each_by_itself(seed, few, monkeypatch):
    """Scales, exact counts and families vary, so that some nodes are alike and others not."""
    rng = np.random.default_rng(seed)
    tree = a_tree(rng)
    n = len(tree)
    scales = rng.choice([0.7, 2.0, np.inf], n, p=[0.6, 0.3, 0.1])
    scales[tree.is_leaf] = rng.choice([0.7, 2.0], tree.leaves.size, p=[0.8, 0.2])
    exact = np.flatnonzero((rng.random(n) < 0.15) | (tree.level == 0))
    noisy = cg.Additive(cg.DiscreteLaplace(scales), tree)
    law = cg.condition(noisy, cg.consistent(tree) & cg.exactly(exact.tolist()))
    tables = law.whole_tables
    laws = (module.marginal(tables, v) for v in range(n))
    each = [module.interval_and_reach(*one, 0.1)[2] for one in laws]
    monkeypatch.setattr(module, "_FEW", few)  # one pass down, or each law by itself
    assert module.reaches(tables, tree, 0.1).tolist() == each


@pytest.mark.parametrize("noise", [cg.DiscreteLaplace, cg.DiscreteGaussian])
@pytest.mark.parametrize("seed", range(20))
def test_even_laws_are_worked_out_for_half_of_the_values(seed, noise):
    rng = np.random.default_rng(seed)
    tree = a_tree(rng)
    n = len(tree)
    mechanism = cg.Additive(noise(rng.choice([0.7, 4.0, 15.0], n)), tree)
    exact = np.flatnonzero((rng.random(n) < 0.15) | (tree.level == 0))
    tables = cg.condition(mechanism, cg.consistent(tree) & cg.exactly(exact.tolist())).whole_tables
    assert module._is_even(tables)
    given = tables, tables.table, np.zeros(tables.lo.size), tree.is_leaf, 0.1
    rising = np.zeros(n), np.zeros(n, dtype=np.int64)
    whole, half = (
        module._laws(*given, rising, np.empty(0), even=even)[0] for even in (False, True)
    )
    for column in (kernels.MEDIAN, kernels.LOW, kernels.HIGH, kernels.REACH):
        assert np.array_equal(half[:, column], whole[:, column])
    for column in (kernels.VARIANCE, kernels.EMPTY):
        assert np.allclose(half[:, column], whole[:, column], rtol=1e-8, atol=1e-12)
    assert np.abs(half[:, kernels.MEAN]).max() < 1e-9


def even_tables(tree: cg.Tree, rng, noise=cg.DiscreteLaplace) -> Tables:
    """Scales vary by branch and node; some counts are exact, and some sums not measured."""
    n = len(tree)
    scales = rng.choice([0.3, 2.0, 9.0, 40.0], n, p=[0.1, 0.4, 0.4, 0.1])
    scales[~tree.is_leaf & (rng.random(n) < 0.2)] = np.inf
    exact = np.flatnonzero((rng.random(n) < 0.1) | ((tree.level == 0) & (rng.random() < 0.7)))
    mandates = cg.consistent(tree)
    if exact.size:
        mandates = mandates & cg.exactly(exact.tolist())
    return cg.condition(cg.Additive(noise(scales), tree), mandates).whole_tables


def different_of(tables: Tables, tree: cg.Tree) -> tuple[module._Different, np.ndarray, np.ndarray]:
    number = module._alike(tables.network.slot_class[: len(tree)].astype(np.int64), tree)
    _, first, number = np.unique(number, return_index=True, return_inverse=True)
    return module._different(tables, tree, first, number), first, number


@pytest.mark.parametrize("noise", [cg.DiscreteLaplace, cg.DiscreteGaussian])
@pytest.mark.parametrize("seed", range(20))
def test_reaches_by_transforms_are_those_of_each_law_by_itself(seed, noise):
    rng = np.random.default_rng(seed)
    tree = a_tree(rng)
    tables = even_tables(tree, rng, noise)
    different, first, number = different_of(tables, tree)
    laws = [module.marginal(tables, int(v)) for v in first]
    for alpha in (0.9, 0.5, 0.1, 1e-3, 1e-8):
        found = module._reaches_of_even(tables, different, alpha)
        assert found is not None
        assert found.tolist() == [module.interval_and_reach(*law, alpha)[2] for law in laws]
    given = tables, tables.table, np.zeros(tables.lo.size), tree.is_leaf, 0.1
    rising = np.zeros(len(tree)), np.zeros(len(tree), dtype=np.int64)
    passed = module._laws(*given, rising, np.empty(0), even=True)[0][:, kernels.REACH]
    assert np.array_equal(module._reaches_of_even(tables, different, 0.1)[number], passed)


@pytest.mark.parametrize(("most", "error"), [(1, 2.0**-53), (1 << 20, 2.0**-53), (1 << 20, 1e-9)])
@pytest.mark.parametrize("seed", range(10))
def test_laws_by_transforms_differ_by_no_more_than_their_bound(seed, most, error, monkeypatch):
    """One node at a time, or many; the errors of transforms as they are, or made far larger."""
    rng = np.random.default_rng(seed)
    tree = a_tree(rng)
    tables = even_tables(tree, rng)
    different, first, _ = different_of(tables, tree)
    whole, exact = module._Down.reaches, module._spectra
    apart, seen = [], []

    def noted(down, rows, alpha):
        shown = down._halves(different.of[rows.laws], rows.outside.shape[1])
        for q, outside, own, off_by in zip(*rows[:2], shown, rows.off_by, strict=True):
            half = outside * own
            total = half[0] + 2.0 * half[1:].sum()
            values, probabilities = module.marginal(tables, int(first[q]))
            missing = half.size - 1 + values[0], half.size - 1 - values[-1]
            law = np.concatenate((half[:0:-1], half)) / total
            difference = np.abs(law - np.pad(probabilities, missing)).sum()
            apart.append((difference, 2.0 * off_by * (own[0] + 2.0 * own[1:].sum()) / total))
            seen.append(q)
        return whole(down, rows, alpha)

    def disturbed(halves, size):
        spectra = exact(halves, size)
        ways = rng.choice([-1.0, 1.0], spectra.shape) if rng.random() < 0.5 else 1.0
        return spectra + 7.0 * np.log2(size) * error * spectra[:, :1] * ways

    monkeypatch.setattr(module, "_AT_ONCE", most)
    monkeypatch.setattr(module._Down, "reaches", noted)
    if error > 2.0**-53:
        monkeypatch.setattr(module, "_spectra", disturbed)
        monkeypatch.setattr(module, "_UNIT", error)
        monkeypatch.setattr(module, "_OFF_BY", 1.0)
    assert module._reaches_of_even(tables, different, 0.1) is not None
    assert sorted(seen) == list(range(first.size))
    # rounding in the laws that these are compared with is allowed for
    assert all(found <= 1.001 * bound + 1e-13 for found, bound in apart)


def test_reaches_by_transforms_of_families_of_hundreds():
    sizes = (1, 2, 3, 200, 511, 700)
    parents = [-1, *[0] * 6, *np.repeat(np.arange(1, 7), sizes).tolist()]
    tree = cg.Tree.from_parents(parents)
    for scale in (0.5, 12.0):
        mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
        law = cg.condition(mechanism, cg.consistent(tree) & cg.exactly([0]))
        tables = law.whole_tables
        different, first, _ = different_of(tables, tree)
        laws = [module.marginal(tables, int(v)) for v in first]
        found = module._reaches_of_even(tables, different, 0.1)
        assert found.tolist() == [module.interval_and_reach(*law, 0.1)[2] for law in laws]


@pytest.mark.parametrize("seed", range(20))
def test_a_period_moves_next_to_nothing_into_a_window(seed):
    rng = np.random.default_rng(seed)
    tree = a_tree(rng)
    tables = even_tables(tree, rng)
    different, _, _ = different_of(tables, tree)
    lengths = module._lengths(tables, different)
    for q in np.flatnonzero(np.diff(different.begins)):
        law, widest = np.ones(1), 0
        for child in range(*different.begins[q : q + 2]):
            of = tables.of_class(int(different.of[child]))
            widest = max(widest, of.size // 2)
            for _ in range(different.times[child]):
                law = np.convolve(law, of / of.sum())
        window = int(tables.hi[different.of[q]]) + widest
        assert lengths[q] > 2 * max(int(tables.hi[different.of[q]]), widest)
        beyond = np.abs(np.arange(law.size) - law.size // 2) >= lengths[q] - window
        assert law[beyond].sum() <= module._BEYOND
    assert not lengths[np.diff(different.begins) == 0].any()


def test_transforms_are_for_wide_laws_of_large_families():
    parents = [-1, *[0] * 90, *np.repeat(np.arange(1, 91), np.arange(1, 91)).tolist()]
    tree = cg.Tree.from_parents(parents)
    for scale, varied, pay in ((0.5, 0.0, False), (40.0, 0.0, True), (0.5, 0.1, False)):
        scales = scale + varied * np.arange(len(tree)) / len(tree)
        law = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), cg.consistent(tree))
        different, _, _ = different_of(law.whole_tables, tree)
        assert module._transforms_pay(law.whole_tables, tree, different) == pay


@pytest.mark.parametrize("name", ["_OFF_BY", "_OF_FAMILY", "_OF_ALL"])
def test_laws_that_transforms_cannot_give_are_summed_term_by_term(name, monkeypatch):
    rng = np.random.default_rng(3)
    tree = a_tree(rng)
    tables = even_tables(tree, rng)
    monkeypatch.setattr(module, "_FEW", 0)
    monkeypatch.setattr(module, "_transforms_pay", lambda *_: True)
    before = module.reaches(tables, tree, 0.1)
    monkeypatch.setattr(module, name, 0.0)
    assert module._reaches_of_even(tables, different_of(tables, tree)[0], 0.1) is None
    assert np.array_equal(module.reaches(tables, tree, 0.1), before)


def test_laws_that_bounds_cut_are_not_even():
    rng = np.random.default_rng(5)
    assert not module._is_even(messages_of(a_tree(rng), rng).cut)
    tree = cg.Tree.from_parents([-1, 0, 0])
    tables = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree))
    tables = tables.whole_tables
    uneven = tables.table.copy()
    uneven[tables.offset[int(tables.network.slot_class[1])]] *= 1.0 + 1e-9
    assert module._is_even(tables) and not module._is_even(replace(tables, table=uneven))


def test_nodes_of_one_number_are_passed_once():
    """Two families of one kind, below parents of one law, and a family of another kind."""
    parents = [-1, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3]
    tree = cg.Tree.from_parents(parents)
    mechanism = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree))
    tables = mechanism.whole_tables
    network, none = tables.network, (np.zeros(12), np.zeros(12, dtype=np.int64))
    number = module._alike(network.slot_class[:12].astype(np.int64), tree)
    twin = module._twins(network, *none, number)
    assert [len(set(twin[[1, 2, 3]])), len(set(twin[4:10])), len(set(twin[10:12]))] == [2, 1, 1]
    before = module._twins(network, *none, module._NO_NUMBERS)
    assert np.unique(twin).size < np.unique(before).size
