"""Draws do not depend on threads, cached rows, first guesses or lengths of tapes."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from dataclasses import replace
from math import frexp
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from scipy.stats import chi2

import congenial as cg
from congenial.kernels.network import compositions, descend
from congenial.sum_network import draws, exact
from support import one_choice
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

LEAST = 1e-6
cumulate_root = entry("network.descend._cumulate_root")


def tables_of(*, bounded=True, scale=1.5):
    """Tables of a tree with choices of many kinds and, without bounds, compositions."""
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    x = tree.roll_up([3, 0, 9, 1, 4, 2, 7, 0, 1])
    resolved = cg.consistent(tree)
    resolved &= cg.nonnegative() if bounded else cg.exactly(0)
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), tree), resolved)
    compiled = conditioned._compiled(np.asarray(x))
    return exact.fill_envelopes(compiled)


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_the_same_seed_gives_the_same_bits_on_any_number_of_threads(bounded, rows, monkeypatch):
    tables = tables_of(bounded=bounded)
    monkeypatch.setattr(draws, "_VALUES_AT_ONCE", 300 * tables.network.slots)
    alone = draws.sample(tables, rows, cg.seeded(1), threads=1)
    for threads in (2, 3, 64):
        assert (draws.sample(tables, rows, cg.seeded(1), threads=threads) == alone).all()
    other = draws.sample(tables, rows, cg.seeded(2), threads=2)
    assert rows == 1 or not (other == alone).all()


def meet(monkeypatch, module, name, parties):
    """Make a kernel wait until it runs on as many threads at once; fails where it never does."""
    barrier, kernel, seen = threading.Barrier(parties, timeout=30.0), getattr(module, name), set()

    def wait(*args):
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            barrier.wait()
        return kernel(*args)

    monkeypatch.setattr(module, name, wait)
    return seen


@pytest.mark.parametrize(("module", "name"), [(descend, "draw"), (compositions, "compose")])
def test_many_draws_use_several_threads_at_once(module, name, monkeypatch):
    tables = tables_of(bounded=False)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    seen = meet(monkeypatch, module, name, 2)
    draws.sample(tables, 40_000, cg.seeded(1))
    assert len(seen) == 2
    assert threading.get_ident() not in seen


def test_a_few_draws_use_no_thread(monkeypatch):
    tables = tables_of()
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 2)
    seen = meet(monkeypatch, descend, "draw", 1)
    draws.sample(tables, 10, cg.seeded(1))
    assert seen == {threading.get_ident()}


def test_an_interrupt_is_seen_while_threads_draw(monkeypatch):
    tables = tables_of()
    kernel, calls = descend.draw, []
    # a shell that started this in the background may have it ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            _thread.interrupt_main()
            time.sleep(0.05)
        kernel(*args)

    monkeypatch.setattr(descend, "draw", interrupted)
    monkeypatch.setattr(draws, "_VALUES_AT_ONCE", 10 * tables.network.slots)
    try:
        with pytest.raises(KeyboardInterrupt):
            draws.sample(tables, 1000, cg.seeded(1), threads=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(calls) <= 4


@pytest.mark.parametrize("entries", [1, 40, 1 << 20])
def test_kept_rows_change_no_bit(entries, monkeypatch):
    tables = tables_of(scale=20.0)
    monkeypatch.setattr(draws, "_OFTEN", 10**9)
    without = draws.sample(tables, 500, cg.seeded(1), threads=1)
    monkeypatch.setattr(draws, "_OFTEN", 1)
    monkeypatch.setattr(draws, "_ENTRIES", entries * max(1, int(tables.near.reach.max()) // 4))
    kept = draws._Kept(tables, 500, draws._ENTRIES)
    assert (kept.begins >= 0).any() == (entries > 1)
    assert (draws.sample(tables, 500, cg.seeded(1), threads=1) == without).all()


def chisquare(first, second):
    """p-value of two samples of integers having one law, by cells of about equal number."""
    edges = np.unique(np.quantile(np.concatenate((first, second)), np.arange(1, 20) / 20))
    a, b = (
        np.bincount(np.searchsorted(edges, v, side="right"), minlength=edges.size + 1)
        for v in (first, second)
    )
    used = a + b > 0
    a, b = a[used], b[used]
    return chi2.sf(((a - b) ** 2 / (a + b)).sum(), a.size - 1)


@pytest.mark.parametrize("off", [-3.0, 0.0, 2.0, 1e6])
def test_the_first_guess_of_a_choice_does_not_change_the_law(off):
    tables = tables_of()
    rows = 40_000
    near = tables.near
    reach = np.minimum(near.reach, 1 + (off == 0.0))
    elsewhere = replace(tables, near=near._replace(middle=near.middle + off, reach=reach))
    right = draws.sample(tables, rows, cg.seeded(1))
    found = draws.sample(elsewhere, rows, cg.seeded(2))
    assert not (right == found).all()
    scaled = draws.sample(tables_of(scale=1.5 * 1.3), rows, cg.seeded(3))
    for node in (1, 3, 11):
        assert chisquare(right[:, node], found[:, node]) > LEAST
        assert chisquare(right[:, node], scaled[:, node]) < LEAST


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9, 16, 17, 100])
def test_choices_compare_integers_exactly(width):
    numbers = np.random.default_rng(width)
    a, b = numbers.random(width), numbers.random(width + 3) * 1e-3
    for s in range(2 * width + 2):
        first, last = max(0, s - b.size + 1), min(width - 1, s)
        products = a[first : last + 1] * b[s - last : s - first + 1][::-1]
        total = float(products.sum()) * (1.0 + 1e-9)
        unit = 2.0 ** (62 - frexp(total)[1])
        weights = [int(w * unit) + 1 for w in products]
        ends = np.array([0, 2**64 - 1], dtype=np.uint64)
        words = np.concatenate((ends, numbers.integers(2**64, size=20, dtype=np.uint64)))
        found = one_choice.split(a, 0, b, 0, s, total, words)
        for word, left in zip(words.tolist(), found.tolist(), strict=True):
            target = word * int(total * unit) >> 64
            k = 0
            while k < len(weights) and sum(weights[: k + 1]) <= target:
                k += 1
            # more than the weights add up to falls to the largest
            k = k if k < len(weights) else int(np.argmax(products))
            assert left == first + k


@pytest.mark.parametrize("scale", [0.3, 1.0, 30.0, 300.0])
def test_the_error_of_root_choices_is_at_most_the_charge(scale):
    # tails far longer than the law is wide
    t = np.exp(-np.abs(np.arange(-40 * int(scale + 1), 40 * int(scale + 1) + 1)) / scale)
    row = np.empty(t.size, dtype=np.int64)
    cumulate_root(t, 0.0, False, row)
    total = int(row[-1])
    drawn = np.diff(row, prepend=0).tolist()
    true = [int(w * 2.0**200) for w in np.minimum(t, 1.0).tolist()]
    whole = sum(true)
    assert total < 1 << 63
    apart = sum(abs(w * whole - e * total) for w, e in zip(drawn, true, strict=True))
    # half of `apart` over both totals, and size * 2^-61
    assert apart << 60 < t.size * whole * total


def test_a_tape_that_is_too_short_is_extended_and_read_again(monkeypatch):
    tables = tables_of(bounded=False)
    tapes = []

    def compose(*args):
        tapes.append(args[5].copy())
        return 200

    fake = SimpleNamespace(count_words=lambda *args: 3, compose=compose)
    monkeypatch.setattr(draws, "compositions", fake)
    draws.sample(tables, draws._TOGETHER + 1, cg.seeded(1), threads=1)
    sizes = [tape.size for tape in tapes]
    assert sizes[:2] == [3, 3]
    assert max(sizes) >= 200
    for longer in tapes[2:]:
        assert any((longer[:3] == tape).all() for tape in tapes[:2])
    # words beyond the first are new ones
    assert len(set(np.concatenate(tapes).tolist())) == sum(sorted(sizes)[-2:])


@pytest.mark.parametrize("seed", range(20))
def test_draws_of_all_variables_and_of_some_have_the_same_law(seed):
    rng = np.random.default_rng(seed)
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2])
    n, known = len(tree), cg.consistent(tree)
    if seed % 2:
        known &= cg.exactly(np.flatnonzero(rng.random(n) < 0.2).tolist())
    scales = rng.choice([0.7, 2.0], n)
    scales[1] = rng.choice([2.0, np.inf])
    law = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), known)
    tables = law.whole_tables
    # in the same order, the same words give the same draws
    every = draws.draws_of_some(tables, np.arange(n))
    found = draws.sample(tables, 500, cg.seeded(seed), threads=1)
    assert np.array_equal(draws.sample(every, 500, cg.seeded(seed), threads=1), found)
    nodes = rng.permutation(n)[: rng.integers(1, 5)]
    few = draws.draws_of_some(tables, nodes)
    assert few.network.op.size <= tables.network.op.size
    alone = draws.sample(few, 20_000, cg.seeded(seed))
    assert alone.shape == (20_000, nodes.size)
    whole = draws.sample(tables, 20_000, cg.seeded(seed + 100))[:, nodes]
    times = rng.choice([-1, 1], nodes.size)

    def apart(one, other):
        """Return the p-value of a difference of two samples."""
        values = np.concatenate((one, other))
        edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, 12)).astype(int))
        a, b = (
            np.bincount(np.searchsorted(edges, x), minlength=edges.size + 1) for x in (one, other)
        )
        kept = a + b > 0
        return chi2.sf(((a - b)[kept] ** 2 / (a + b)[kept]).sum(), max(kept.sum() - 1, 1))

    assert apart(alone @ times, whole @ times) > LEAST
    if (whole @ times).std() > 0.0:
        assert apart(alone @ times + 1, whole @ times) < LEAST


def test_one_leaf_among_many_takes_a_few_choices():
    tree = cg.Tree.from_parents([-1] + [0] * 40 + [v for v in range(1, 41) for _ in range(40)])
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    tables = cg.condition(mechanism, cg.consistent(tree)).whole_tables
    few = draws.draws_of_some(tables, np.array([700, 41]))
    assert tables.network.op.size > 1_000 and few.network.op.size < 40


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_a_tree_whose_leaves_are_composed_are_drawn_alone(seed):
    """Places of partial sums are used again, and the leaves need the draws of others."""
    rng = np.random.default_rng(seed)
    tree = cg.Tree.from_parents([-1, 0, 0, 0] + [1] * 7 + [2] * 5 + [3] * int(rng.integers(1, 9)))
    mechanism = cg.Additive(cg.DiscreteLaplace(rng.choice([2.0, 5.0], 4)[tree.level]), tree)
    law = cg.condition(mechanism, cg.consistent(tree) & cg.exactly([0]))
    tables = law._draw_tables
    found = draws.sample(tables, 20_000, cg.seeded(seed), first=len(tree))[:, [1, 3]]
    alone = draws.draws_of_some(tables, np.array([1, 3]))
    drawn = draws.sample(alone, 20_000, cg.seeded(seed + 50))
    assert abs(np.corrcoef(drawn.T)[0, 1] - np.corrcoef(found.T)[0, 1]) < 0.05
    assert np.allclose(drawn.std(axis=0), found.std(axis=0), rtol=0.06)
    composed = np.flatnonzero(tables.network.op >= descend.COMPOSE).size
    leaf = draws.draws_of_some(tables, np.array([4]))
    assert (leaf is None) == bool(composed and 4 in tables.network.members)


def test_places_that_are_used_again_are_followed_to_the_values_they_had():
    tables = tables_of()
    n = tables.network.n
    assert tables.network.places < tables.network.slots
    found = draws.sample(tables, 300, cg.seeded(1), threads=1)
    every = draws.draws_of_some(tables, np.arange(n)[::-1].copy())
    assert np.array_equal(draws.sample(every, 300, cg.seeded(1), threads=1)[:, ::-1], found)
    means = draws.sample(tables, 40_000, cg.seeded(1))
    for v in range(n):
        alone = draws.sample(draws.draws_of_some(tables, np.array([v])), 40_000, cg.seeded(2))
        spread = max(means[:, v].std(), 1e-9)
        assert abs(alone.mean() - means[:, v].mean()) < 0.04 * spread
        assert abs(alone.std() - spread) < 0.04 * spread + 1e-6


def test_operations_are_taken_back():
    network = tables_of().network
    values = np.random.default_rng(1).integers(-9, 9, network.places)
    draws._take_back(network, values, 0, network.op.size)
    first = np.flatnonzero(network.op == descend.SPLIT)[0]
    places = (int(each[first]) for each in (network.first, network.second, network.third))
    whole, *parts = (int(values[place]) for place in places)
    assert whole == sum(parts)
