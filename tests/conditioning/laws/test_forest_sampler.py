"""The conditional law against enumeration: log_prob, every marginal, log_normalizer, interval."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings

import congenial as cg
from congenial.conditioning.laws import forest_sampler
from congenial.errors import UnsupportedError
from congenial.sum_network import tables as sum_tables
from support.conditioning_cases import INF, LAWS, Case, boxed_cases, open_cases, row_cases
from support.enumeration import assert_same_law, enumerate_law

pytestmark = pytest.mark.kernels

BINARY = (-1, 0, 0, 1, 1)  # a root, two children, two grandchildren under the first
UNEVEN = (-1, 0, 0, 0, 2, 2, 4)  # depths 1 to 3
CHAIN = (-1, 0, 1, 2)
STAR = (-1, 0, 0, 0)
TWO_ROOTS = (-1, -1, 0, 0, 1)


def case(parents, scales, leaves, *, pinned=(), lo=-INF, hi=INF, kind="laplace"):
    tree = cg.Tree.from_parents(parents)
    scales = np.broadcast_to(np.asarray(scales, dtype=float), (len(tree),)).copy()
    return Case(kind, scales, tree.roll_up(np.array(leaves)), pinned, lo, hi, tuple(parents))


NAMED = {
    "single": case([-1], 3.0, [5]),
    "single pinned": case([-1], 3.0, [5], pinned=(0,)),
    "single nonnegative": case([-1], 3.0, [1], lo=0),
    "single at most": case([-1], 3.0, [1], hi=2),
    "two singles": case([-1, -1], [0.5, 2.0], [1, 0]),
    "star": case(STAR, 0.5, [3, 0, 1]),
    "star pinned": case(STAR, 1.0, [3, 0, 1], pinned=(0,)),
    "star nonnegative": case(STAR, 0.5, [3, 0, 1], lo=0),
    "star pinned nonnegative": case(STAR, 10.0, [3, 0, 1], pinned=(0,), lo=0),
    "star root not measured": case(STAR, [INF, 0.4, 0.5, 0.6], [3, 0, 1]),
    "star leaf not measured": case(STAR, [0.4, 0.4, INF, 0.6], [3, 0, 1]),
    "star, all but the root not measured": case(STAR, [0.4, INF, INF, INF], [3, 0, 1], lo=0),
    "star pinned, one not measured": case(STAR, [1, 0.5, INF, 0.6], [3, 0, 1], pinned=(0,)),
    "binary": case(BINARY, 0.5, [3, 1, 2]),
    "binary, middle not measured": case(BINARY, [0.5, INF, 0.3, 0.5, 0.5], [3, 1, 2]),
    "binary, leaves not measured": case(BINARY, [0.4, 0.4, 0.4, INF, INF], [3, 1, 2], lo=0),
    "binary, one leaf not measured": case(BINARY, [0.4, 0.4, 0.4, 0.3, INF], [3, 1, 2]),
    "binary, only leaves measured": case(BINARY, [INF, INF, 0.5, 0.5, 0.5], [3, 1, 2]),
    "binary pinned root": case(BINARY, 0.7, [3, 1, 2], pinned=(0,)),
    "binary pinned middle": case(BINARY, 0.5, [3, 1, 2], pinned=(1,)),
    "binary pinned leaf": case(BINARY, 0.5, [3, 1, 2], pinned=(4,)),
    "binary pinned root and leaf": case(BINARY, 0.7, [3, 1, 2], pinned=(0, 3)),
    "binary pinned all leaves": case(BINARY, 0.7, [3, 1, 2], pinned=(2, 3, 4)),
    "binary pinned everywhere": case(BINARY, 0.7, [3, 1, 2], pinned=(0, 1, 2, 3, 4)),
    "binary boxed": case(BINARY, [1000, 3, 0.1, 30, 2], [3, 1, 2], lo=0, hi=9),
    "binary bounds on the root alone": case(
        BINARY, 0.4, [3, 1, 2], lo=np.array([5.0, *[-INF] * 4]), hi=np.array([7.0, *[INF] * 4])
    ),
    "uneven nonnegative, scales apart": case(
        UNEVEN, [1000, 0.1, 30, 1, 100, 0.3, 5], [2, 0, 1, 3], pinned=(0,), lo=0
    ),
    "uneven": case(UNEVEN, [0.3, 0.1, 0.2, 0.3, 0.2, 0.1, 0.4], [2, 0, 1, 3]),
    "chain": case(CHAIN, [1, 2, 3, 4], [5]),
    "chain not measured but once": case(CHAIN, [INF, INF, 3, INF], [5]),
    "two roots": case(TWO_ROOTS, [0.3, 0.2, 0.4, 0.3, 0.5], [4, 0, 2]),
    "two roots, one pinned": case(TWO_ROOTS, 1.0, [4, 0, 2], pinned=(0,), lo=0),
    "narrow": case(BINARY, 0.02, [3, 1, 2]),
    "large counts": case(
        STAR, 5.0, [2**40, 0, 1], pinned=(0,), lo=np.array([0, 2.0**40 - 30, 0, 0])
    ),
}


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("name", NAMED)
def test_named_cases(name, kind):
    one = NAMED[name]
    one = Case(kind, one.scales, one.x, one.pinned, one.lo, one.hi, one.parents)
    assert_same_law(one.condition(), one.law(), one.x)


@pytest.mark.parametrize("name", NAMED)
def test_several_laws_at_once_are_those_of_each_node(name):
    one = NAMED[name]
    conditioned, nodes = one.condition(), [*range(one.n)]
    found = [*conditioned.marginals(nodes, one.x)]
    assert len(found) == one.n
    for v, both in zip(nodes, found, strict=True):
        for here, alone in zip(both, conditioned.marginal(v, one.x), strict=True):
            assert here.tobytes() == alone.tobytes()


@given(open_cases())
@settings(max_examples=120, derandomize=True, deadline=None)
def test_open_cases(one):
    assert_same_law(one.condition(), one.law(), one.x)


@given(open_cases(unmeasured=True))
@settings(max_examples=80, derandomize=True, deadline=None)
def test_open_cases_with_entries_not_measured(one):
    if one.proper:
        assert_same_law(one.condition(), one.law(), one.x)
    else:
        with pytest.raises(UnsupportedError, match="not measured"):
            one.condition()


@given(boxed_cases())
@settings(max_examples=150, derandomize=True, deadline=None)
def test_boxed_cases(one):
    assert_same_law(one.condition(), one.law(), one.x)


@given(row_cases())
@settings(max_examples=120, derandomize=True, deadline=None)
def test_sums_and_differences(one):
    assert_same_law(one.condition(), one.law(), one.x)


@given(open_cases(most=4))
@settings(max_examples=10, derandomize=True, deadline=None)
def test_the_comparison_sees_a_scale_off_by_a_thousandth(one):
    law = one.law()
    if law.probabilities.max() > 0.999999:
        return
    wrong = Case(
        one.kind, one.scales * 1.001, one.x, one.pinned, one.lo, one.hi, one.parents, one.rows
    )
    with pytest.raises(AssertionError):
        assert_same_law(wrong.condition(), law, one.x)


def test_a_plain_vector_with_one_pinned_total():
    # the total is an entry of its own, equal to the sum of the others
    rows = [[1, -1, -1, -1]]
    x = np.array([6, 1, 2, 3])
    invariant = cg.linear(rows, [0]) & cg.exactly(0)
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(1.5), 4), invariant)
    assert_same_law(conditioned, enumerate_law(rows, "laplace", 1.5, x, [0]), x)


def test_a_plain_vector_with_a_public_total():
    x = np.array([1, 2, 3])
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteGaussian(2.0), 3), cg.linear([1, 1, 1], 6) & cg.nonnegative()
    )
    assert_same_law(conditioned, enumerate_law([[1, 1, 1]], "gaussian", 2.0, x, lo=0), x)


def test_at_least_on_single_entries_is_a_bound():
    x = np.array([1, 2, 3])
    invariant = cg.linear([1, 1, 1], 6) & cg.at_least([[2, 0, 0], [0, -1, 0]], [0.5, -4.2])
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), 3), invariant)
    law = enumerate_law([[1, 1, 1]], "laplace", 2.0, x, lo=[1, -INF, -INF], hi=[INF, 4, INF])
    assert_same_law(conditioned, law, x)


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01, 1e-4])
def test_an_interval_is_the_shortest_symmetric_one(alpha):
    one = NAMED["binary"]
    conditioned, law = one.condition(), one.law()
    for node in range(one.n):
        lo, hi = conditioned.interval(node, alpha)
        assert lo == -hi
        noise = {v - one.x[node]: p for v, p in law.marginal(node).items()}
        inside = sum(p for u, p in noise.items() if lo <= u <= hi)
        narrower = sum(p for u, p in noise.items() if lo < u < hi)
        assert inside >= 1 - alpha - 1e-11
        assert narrower < 1 - alpha


def test_an_interval_of_a_pinned_node_is_a_point():
    assert NAMED["binary pinned root"].condition().interval(0, 0.01) == (0, 0)


def test_log_prob_is_minus_infinity_outside_the_invariant():
    one = NAMED["binary boxed"]
    one = Case(one.kind, one.scales, one.x, (0,), one.lo, one.hi, one.parents)
    conditioned = one.condition()
    good = one.x  # root 6, inner 3, leaves 3, 1, 2
    assert np.isfinite(conditioned.log_prob(good, good))
    for wrong in (
        np.add(good, [0, 1, 0, 0, 0]),  # does not add up
        np.add(good, [1, 1, 0, 1, 0]),  # the pinned root moved
        np.add(good, [0, 0, 0, 5, -5]),  # below zero
        np.add(good, [0.5, 0.5, 0, 0.5, 0]),  # not whole
    ):
        assert conditioned.log_prob(wrong, good) == -INF
    both = conditioned.log_prob(np.array([good, np.add(good, [0, 1, 0, 0, 0])]), good)
    assert both.shape == (2,)
    assert np.isfinite(both[0])
    assert both[1] == -INF


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("name", NAMED)
def test_normalisers_of_several_datasets_at_once_are_those_of_each(name, kind):
    one = NAMED[name]
    one = Case(kind, one.scales, one.x, one.pinned, one.lo, one.hi, one.parents)
    conditioned = one.condition()
    datasets = [one.x, *conditioned.sample(one.x, 4, cg.seeded(3))]
    together = conditioned.log_normalizers(datasets)
    alone = [conditioned.log_normalizer(x) for x in datasets]
    np.testing.assert_allclose(together, alone, rtol=1e-11, atol=1e-9)


def test_normalisers_of_sums_that_no_entry_owns():
    noisy = cg.Additive(cg.DiscreteLaplace(2.0), 6)
    signs = np.array([1, 1, 1, 0, 0, 0])
    pair = cg.linear(signs, 3) & cg.linear(1 - signs, 4) & cg.nonnegative()
    conditioned = cg.condition(noisy, pair)
    datasets = np.array([[3, 0, 0, 4, 0, 0], [1, 1, 1, 2, 2, 0], [0, 3, 0, 1, 0, 3]])
    together = conditioned.log_normalizers(datasets)
    assert np.ptp(together) > 0.1
    np.testing.assert_allclose(together, [conditioned.log_normalizer(x) for x in datasets])


def test_the_work_at_a_dataset_is_that_of_its_tables():
    tree, x = wide_tree()
    noisy = cg.Additive(cg.DiscreteLaplace(30.0), tree)
    conditioned = cg.condition(noisy, cg.consistent(tree) & OBEYING)
    filling, drawing = conditioned.work_at(x)
    tables = conditioned._tables(x)
    products = float(tables.network.products(tables.width).sum())
    assert 0.3 * products < filling < 3.0 * products
    near = float(np.minimum(tables.near.reach, tables.width) @ tables.network.uses)
    assert near / 2.0 < drawing < 2.0 * near


def wide_tree():
    """Return (tree, counts): four levels, 200 leaves of unlike counts."""
    sizes = (1, 5, 25, 200)
    parents = [-1]
    for above, here in itertools.pairwise(sizes):
        begin = len(parents) - above
        parents += [begin + i * above // here for i in range(here)]
    tree = cg.Tree.from_parents(parents)
    return tree, tree.roll_up(np.arange(200) % 7)


@pytest.fixture
def _small_memory(monkeypatch):
    """Let nothing but small parts fit in memory."""
    monkeypatch.setattr(forest_sampler, "_LARGEST_PART", 60)
    monkeypatch.setattr(sum_tables, "_MEMORY_LIMIT", 2_000)


OBEYING = cg.nonnegative() & cg.exactly([0])


@pytest.mark.usefixtures("_small_memory")
def test_tables_of_a_large_tree_that_do_not_fit_are_filled_part_by_part():
    tree, x = wide_tree()
    # for Gaussian noise there are no tables of families, which would fit
    noisy = cg.Additive(cg.DiscreteGaussian(3.0), tree)
    whole = cg.condition(noisy, cg.consistent(tree) & OBEYING)
    with pytest.raises(UnsupportedError, match="of tables"):
        whole.log_normalizer(x)
    drawn = whole.sample(x, 20, cg.seeded(1))
    assert tree.are_consistent(drawn).all()
    assert drawn.min() >= 0
    assert (drawn[:, 0] == x[0]).all()
    in_parts = cg.conditioning.condition_by_parts(noisy, cg.consistent(tree) & OBEYING, 1)
    np.testing.assert_array_equal(drawn, in_parts.sample(x, 20, cg.seeded(1)))


@pytest.mark.usefixtures("_small_memory")
def test_laplace_noise_is_drawn_part_by_part_too():
    tree, x = wide_tree()
    noisy, need = cg.Additive(cg.DiscreteLaplace(3.0), tree), cg.consistent(tree) & OBEYING
    # upper bounds have no tables of families
    whole = cg.condition(noisy, need & cg.bounds(0, 10**6))
    drawn = whole.sample(x, 20, cg.seeded(1))
    assert tree.are_consistent(drawn).all() and drawn.min() >= 0
    in_parts = cg.conditioning.condition_by_parts(noisy, need & cg.bounds(0, 10**6), 1)
    np.testing.assert_array_equal(drawn, in_parts.sample(x, 20, cg.seeded(1)))
    assert whole.guarantee("substitute").delta == in_parts.guarantee("substitute").delta == 0.0


@pytest.mark.usefixtures("_small_memory")
def test_a_tree_without_small_parts_is_refused():
    tree, x = wide_tree()
    parents = np.concatenate(([-1], tree.parents + 1))
    parents[-150:] = 1  # one part that is too large, and a level above it
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(np.arange(tree.leaves.size) % 7)
    whole = cg.condition(
        cg.Additive(cg.DiscreteGaussian(3.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    with pytest.raises(UnsupportedError, match="of tables"):
        whole.sample(x)
