"""Error margins and likelihoods of releases, against exact laws, enumeration and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, UnsupportedError
from support.count_priors import HIGHEST, log_count

INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


def grown(*fans):
    parents, start, width = [-1], 0, 1
    for fan in fans:
        parents += [start + i // fan for i in range(width * fan)]
        start, width = start + width, width * fan
    return cg.Tree.from_parents(parents)


def uneven():
    generator = np.random.default_rng(4)
    parents = [-1, *[0] * 7]
    for v in range(1, 8):
        parents += [v] * int(generator.integers(1, 30))
    return cg.Tree.from_parents(parents)


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize(
    "make", [lambda: grown(3, 4, 5), uneven, lambda: grown(1, 1), lambda: grown(9)]
)
@pytest.mark.parametrize("pins", [(), (0,), (0, 2)])
def test_margins_are_those_of_each_node(kind, make, pins):
    tree = make()
    scales = np.where(tree.level == 0, 0.7, np.where(tree.level == 1, 2.0, 4.0))
    known = cg.consistent(tree)
    pins = [v for v in pins if v < len(tree)]
    if pins:
        known = known & cg.exactly(pins)
    given = cg.condition(cg.Additive(LAWS[kind](scales), tree), known)
    for alpha in (0.1, 0.5):
        found = cg.inference.error_margins(given, alpha)
        assert found.tolist() == [given.interval(v, alpha)[1] for v in range(len(tree))]


def test_margins_where_every_node_has_a_law_of_its_own():
    tree = grown(6, 20)
    scales = 1.0 + 0.01 * np.arange(len(tree))
    given = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), cg.consistent(tree))
    found = cg.inference.error_margins(given)
    assert found.tolist() == [given.interval(v)[1] for v in range(len(tree))]


def test_margins_of_a_million_leaves_take_no_longer_than_a_few_laws():
    tree = grown(100, 100, 100)
    given = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree))
    found = cg.inference.error_margins(given)
    for level in range(4):
        here = np.unique(found[tree.level == level])
        assert here.size == 1
    assert found[-1] == given.interval(len(tree) - 1)[1]


def covered(assumed, truth, ask, replicates, seed):
    """Share of the noise drawn at `truth` that margins found at `assumed` hold."""
    nothing = np.zeros(truth.mechanism.n, dtype=np.int64)
    source = cg.seeded(seed)
    hits = 0
    for _ in range(replicates):
        noise = truth.sample(nothing, rng=source)
        hits += ask(assumed, noise, source)
    return hits / replicates


def of_sum(given, noise, source):
    return bool(
        abs(noise[[2, 5, 9]].sum())
        <= cg.inference.error_margin_of_sum(given, [2, 5, 9], size=99, rng=source)
    )


def of_level(given, noise, source):
    at = np.flatnonzero(given.mechanism.tree.level == 2)
    reach = cg.inference.simultaneous_error_margins(given, at, size=99, rng=source)
    return bool((np.abs(noise[at]) <= reach).all())


@pytest.mark.parametrize("ask", [of_sum, of_level])
def test_simulated_margins_have_the_stated_coverage(ask):
    tree = grown(3, 4)
    known = cg.consistent(tree) & cg.exactly(0)
    noise = {f: cg.Additive(cg.DiscreteLaplace(6.0 * f), tree) for f in (1.0, 0.7)}
    given = {f: cg.condition(made, known) for f, made in noise.items()}
    replicates = 1000
    error = 4.8 * np.sqrt(0.09 / replicates)  # p = 1e-6
    share = covered(given[1.0], given[1.0], ask, replicates, 3)
    assert share > 0.9 - error
    assert share < 0.9 + 2 * error  # and not by being wide
    assert covered(given[0.7], given[1.0], ask, replicates, 3) < 0.9 - error


def test_margins_of_exact_counts_are_zero():
    tree = grown(3, 2)
    known = cg.consistent(tree) & cg.exactly([0, 1])
    given = cg.condition(cg.Additive(cg.DiscreteLaplace(3.0), tree), known)
    assert cg.inference.error_margins(given)[[0, 1]].tolist() == [0, 0]
    assert cg.inference.error_margin_of_sum(given, [1], rng=cg.seeded(1)) == 0
    assert cg.inference.simultaneous_error_margins(given, [0, 1, 2], rng=cg.seeded(1))[
        :2
    ].tolist() == [0, 0]


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("kind", sorted(LAWS))
def test_errors_of_imaging_do_not_depend_on_the_counts_with_unmeasured_inner_nodes(norm, kind):
    # margins are simulated at counts of 0, so the error may not depend on the counts
    tree = grown(3, 2, 3)
    scales = np.array([0.8, INF, INF, 3.0])[tree.level]
    mechanism = cg.Additive(LAWS[kind](scales), tree)
    engine = cg.image(mechanism, cg.consistent(tree), norm, integer=True)
    leaves = np.random.default_rng(8).integers(0, 2000, size=int(tree.is_leaf.sum()))
    counts = tree.roll_up(leaves * (np.arange(leaves.size) < 6))
    for seed in range(40):
        here = engine.sample(counts, rng=cg.seeded(seed)) - counts
        there = engine.sample(np.zeros_like(counts), rng=cg.seeded(seed))
        assert here.tolist() == there.tolist()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_margins_of_imaging_need_every_count_determined_by_measurements(norm):
    tree = cg.Tree.from_paths(["a/b", "a/c", "a/d"])
    two_open = cg.Additive(cg.DiscreteLaplace([1.0, 2.0, INF, INF]), tree)
    engine = cg.image(two_open, cg.consistent(tree), norm, integer=True)
    for margins in (
        lambda: cg.inference.error_margins(engine),
        lambda: cg.inference.error_margin_of_sum(engine, ["b"]),
        lambda: cg.inference.simultaneous_error_margins(engine, ["b"]),
    ):
        with pytest.raises(UnsupportedError, match=r"a/d. is neither measured nor determined"):
            margins()
    one_open = cg.Additive(cg.DiscreteLaplace([1.0, 2.0, 2.0, INF]), tree)
    engine = cg.image(one_open, cg.consistent(tree), norm, integer=True)
    margin = cg.inference.error_margins(engine, rng=cg.seeded(1))
    counts = np.array([10_100, 0, 100, 10_000])
    off = np.abs(engine.sample(counts, 2_000, cg.seeded(2)) - counts)
    assert ((off <= margin).mean(axis=0) > 0.87).all()


def test_margins_under_inequalities_are_refused():
    tree = grown(3)
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    given = cg.condition(noisy, cg.consistent(tree) & cg.nonnegative())
    for ask in (
        cg.inference.error_margins,
        lambda k: cg.inference.error_margin_of_sum(k, [1]),
        cg.inference.simultaneous_error_margins,
    ):
        with pytest.raises(UnsupportedError, match="inverted_intervals"):
            ask(given)
    imaged = cg.image(noisy, cg.consistent(tree) & cg.nonnegative())
    with pytest.raises(UnsupportedError, match="posterior"):
        cg.inference.error_margins(imaged)
    free = cg.condition(noisy, cg.consistent(tree))
    with pytest.raises(ArgumentError, match="size"):
        cg.inference.error_margin_of_sum(free, [1], 0.01, size=50)
    with pytest.raises(ArgumentError, match="alpha"):
        cg.inference.error_margins(free, 1.0)
    with pytest.raises(ArgumentError, match="no node"):
        cg.inference.simultaneous_error_margins(free, [])


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("dispersion", [0.3, 2.0, INF])
@pytest.mark.parametrize("pins", [(), (0,), (2,), (0, 2)])
def test_likelihood_of_a_model_against_enumeration(kind, dispersion, pins):
    tree = cg.Tree.from_parents([-1, 0, 0])
    scales = np.array([0.8, 0.6, 1.2])
    known = cg.consistent(tree)
    if pins:
        known = known & cg.exactly(list(pins))
    given = cg.condition(cg.Additive(LAWS[kind](scales), tree), known)
    z, mean = np.array([7, 2, 5]), (2.0, 4.0)
    total = 0.0
    for i in range(HIGHEST):
        for j in range(HIGHEST):
            x = np.array([i + j, i, j])
            if (x[list(pins)] == z[list(pins)]).all():
                prior = log_count(i, mean[0], dispersion) + log_count(j, mean[1], dispersion)
                total += math.exp(prior + given.log_prob(z, x))
    found = cg.inference.log_likelihood(z, given, cg.inference.Prior(mean, dispersion))
    assert found == pytest.approx(math.log(total), abs=1e-9)
    assert (
        cg.inference.log_likelihood([8, 2, 5], given, cg.inference.Prior(mean, dispersion)) == -INF
    )


def test_a_release_with_impossible_exact_counts_has_likelihood_zero():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noisy, model = cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.inference.Prior([2.0, 4.0], 0.7)
    for pinned, z in ((0, [7, 2, 5]), (1, [7, 2, 5])):
        free = cg.consistent(tree) & cg.exactly([pinned])
        high, low = np.full(3, INF), np.full(3, -INF)
        high[pinned] = z[pinned]
        held = cg.condition(noisy, free & cg.bounds(low, high))
        assert held.data_free
        plain = cg.inference.log_likelihood(z, cg.condition(noisy, free), model)
        assert np.isfinite(plain) and cg.inference.log_likelihood(z, held, model) == plain
        high[pinned] -= 1
        low[pinned] = -1.0
        law = cg.condition(noisy, free & cg.bounds(low, high))
        assert cg.inference.log_likelihood(z, law, model) == -INF
        with pytest.raises(ArgumentError, match="an impossible exact count"):
            cg.inference.log_likelihood_gradient(z, law, model)
    # a model counts from 0 on
    for pins, z in (([0], [-1, 2, -3]), ([1], [3, -1, 4]), ([0, 1], [3, 5, -2])):
        law = cg.condition(noisy, cg.consistent(tree) & cg.exactly(pins))
        assert cg.inference.log_likelihood(z, law, model) == -INF


@pytest.mark.parametrize("row", [[0, 1, -1], [1, 0, 0], [0, 1, 1]])
def test_a_model_whose_counts_may_violate_a_linear_condition_is_refused(row):
    tree = cg.Tree.from_parents([-1, 0, 0])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    z = np.array([6, 3, 3])
    given = cg.condition(noisy, cg.consistent(tree) & cg.linear([row], [int(np.dot(row, z))]))
    assert cg.inference.log_likelihood(z, given, z) == float(given.log_prob(z, z))
    with pytest.raises(UnsupportedError, match="linear"):
        cg.inference.log_likelihood(z, given, cg.inference.Prior(3.0))
    with pytest.raises(UnsupportedError, match="linear"):
        cg.inference.log_likelihood_gradient(z, given, cg.inference.Prior(3.0))


def test_likelihoods_of_releases_sum_to_one():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noisy = cg.Additive(cg.DiscreteLaplace(0.4), tree)
    given = cg.condition(noisy, cg.consistent(tree))
    model = cg.inference.Prior([0.5, 0.7], 2.0)
    total = sum(
        math.exp(cg.inference.log_likelihood([i + j, i, j], given, model))
        for i in range(-5, 14)
        for j in range(-5, 14)
    )
    assert total == pytest.approx(1.0, abs=1e-4)
    bounded = cg.condition(noisy, cg.consistent(tree) & cg.nonnegative())
    x = np.array([[3, 1, 2], [4, 2, 2]])
    both = cg.inference.log_likelihood([3, 1, 2], bounded, x)
    assert both.tolist() == [float(bounded.log_prob([3, 1, 2], row)) for row in x]
    with pytest.raises(UnsupportedError, match="evidence"):
        cg.inference.log_likelihood([3, 1, 2], bounded, model)


def test_evidence_against_enumeration():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    scales = np.array([1.0, INF, 0.7, 0.5])
    noisy = cg.Additive(cg.DiscreteLaplace(scales), tree)
    known = cg.consistent(tree) & cg.bounds(hi=[INF, 9, INF, INF])
    law = cg.posterior([9, np.nan, -1, 4], noisy, known, cg.inference.Prior([1.0, 2.0, 3.0], 0.7))
    total = 0.0
    for i in range(10):
        for j in range(30):
            for k in range(30):
                x = np.array([i + j + k, i, j, k])
                prior = sum(
                    log_count(c, m, 0.7) for c, m in zip(x[1:], (1.0, 2.0, 3.0), strict=True)
                )
                total += math.exp(prior + float(noisy.log_prob([9, 0, -1, 4], x)))
    assert law.log_evidence() == pytest.approx(math.log(total), abs=1e-8)
    flat = cg.posterior([9, 0, 3, 4], noisy, known & cg.nonnegative())
    with pytest.raises(UnsupportedError, match="flat"):
        flat.log_evidence()


@pytest.mark.parametrize("nodes", [[3], [3, 4], [5, 1, 4], [3, 3]])
def test_sums_of_many_nodes_drawn_alone_have_the_margins_of_whole_draws(nodes, monkeypatch):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
    noisy = cg.Additive(cg.DiscreteLaplace(6.0), tree)
    law = cg.condition(noisy, cg.consistent(tree) & cg.exactly([0]))
    ask = cg.inference.error_margin_of_sum
    whole = ask(law, nodes, size=60_000, rng=cg.seeded(1))
    monkeypatch.setattr("congenial.inference.error_law.MANY_VALUES", 0)
    assert abs(ask(law, nodes, size=60_000, rng=cg.seeded(1)) - whole) <= 1
    assert abs(ask(law, [1, 2], size=99, rng=cg.seeded(1))) == 0
    assert ask(law, nodes, 0.01, size=60_000, rng=cg.seeded(1)) > whole + 1
