"""Gaussian noise under bounds: Rényi divergences in exact fractions, and the sampler's own laws."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import ZCDP_DELTA, conditioned_guarantee
from congenial.accounting.loss.inequalities import NONE, WHOLE
from congenial.accounting.loss.zero_concentrated import zcdp_delta, zcdp_epsilon, zcdp_rho
from congenial.accounting.neighbours.nested import nested_sums
from congenial.accounting.proofs import proofs_of
from congenial.auditing.enumerated import enumerated
from congenial.auditing.space import space_of
from congenial.errors import ArgumentError, PrivacyError
from congenial.invariants.written import resolve_invariant

INF = math.inf
# weights of one step, as the squares of which noise decays; 1 where a count is not measured
WEIGHTS = [Fraction(1), Fraction(1, 30), Fraction(1, 4), Fraction(3, 4), Fraction(19, 20)]


def excess(points, queries, weights, order):
    """Largest exp((a - 1)(D - a rho)) over all pairs of points; the claim is that it is at most 1.

    Every weight is its factor to the power of the squared noise, so all numbers are rational.
    """
    counts = [tuple(int(v) for v in queries @ z) for z in points]

    def weight(center, z):
        return math.prod(w ** ((a - b) ** 2) for w, a, b in zip(weights, center, z, strict=True))

    total = {
        t: sum(weight(t, z) for z in counts)
        for t in {
            tuple(k * a - (k - 1) * b for a, b in zip(x, y, strict=True))
            for x, y in itertools.permutations(counts, 2)
            for k in (0, 1, order)
        }
    }
    worst = Fraction(0)
    for x, y in itertools.permutations(counts, 2):
        far = tuple(order * a - (order - 1) * b for a, b in zip(x, y, strict=True))
        worst = max(worst, total[far] * total[y] ** (order - 1) / total[x] ** order)
    return worst


def family(rng, cells):
    """Random nested sets of `cells` cells, as rows."""
    sets = []

    def split(part):
        if len(part) < 2:
            return
        at = int(rng.integers(1, len(part)))
        for half in (part[:at], part[at:]):
            if rng.random() < 0.7:
                sets.append(half)
            split(half)

    split([*rng.permutation(cells)])
    return np.array(
        [*np.eye(cells, dtype=int), *(np.isin(np.arange(cells), part).astype(int) for part in sets)]
    )


def nested_cases(seed, count):
    """Points that satisfy random bounds of random nested sums, some with a pinned total."""
    rng = np.random.default_rng(seed)
    while count:
        cells = int(rng.integers(1, 5))
        queries = family(rng, cells)
        low = rng.integers(-2, 1, len(queries))
        high = low + rng.integers(1, 4, len(queries))
        low[cells:] -= 2
        high[cells:] += 2
        points = np.array(
            [*itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))]
            if cells == len(queries)
            else [
                z
                for z in itertools.product(
                    *(range(a, b + 1) for a, b in zip(low[:cells], high[:cells], strict=True))
                )
                if (queries @ z >= low).all() and (queries @ z <= high).all()
            ]
        )
        if points.size and rng.random() < 0.6:
            points = points[points.sum(axis=1) == points[0].sum()]
        if not 2 <= len(points) <= 14:
            continue
        weights = [WEIGHTS[i] for i in rng.integers(len(WEIGHTS), size=len(queries))]
        count -= 1
        yield points, queries, weights


@pytest.mark.parametrize("order", [2, 3, 5])
def test_under_nested_bounds_integer_orders_have_the_divergence_of_the_noise(order):
    found = [excess(*case, order) for case in nested_cases(order, 60)]
    assert max(found) <= 1
    assert max(found) > Fraction(99, 100)  # and nothing smaller would do


def two_products(f, g, h, up=1):
    """Sums of f and g, and those of h and the smallest h' that satisfies the lemma's condition."""
    other = dict.fromkeys(h, Fraction(0))
    for x, y in itertools.product(f, g):
        down = tuple((a + b) // 2 for a, b in zip(x, y, strict=True))
        over = tuple((a + b + up) // 2 for a, b in zip(x, y, strict=True))
        other[over] = max(other[over], f[x] * g[y] / h[down])
    return sum(f.values()) * sum(g.values()), sum(h.values()) * sum(other.values())


@pytest.mark.parametrize("shape", [(4,), (7,), (3, 3), (2, 4), (2, 2, 2)])
def test_the_four_functions_of_the_lemma(shape):
    rng = np.random.default_rng(sum(shape))
    points = [*itertools.product(*map(range, shape))]
    for _ in range(40):
        f, g, h = (
            {z: Fraction(int(v)) for z, v in zip(points, values, strict=True)}
            for values in rng.integers(1, 40, (3, len(points))) ** 2
        )
        left, right = two_products(f, g, h)
        assert left <= right
    # equal where all are, and false where both halves are rounded down
    one = dict.fromkeys(points, Fraction(1))
    left, right = two_products(one, one, one)
    assert left == right
    corner = {points[0]: Fraction(1)}
    near = {z: v for z, v in one.items() if max(z) <= 1}
    left, right = two_products(corner, near, corner, up=0)
    assert left > right


def test_the_lemma_fails_for_conditions_that_are_not_sums():
    square = np.array([*itertools.product(range(-3, 4), repeat=2)])
    kept = square[(square @ [3, 1] >= -1) & (square @ [-3, -1] >= -2)]
    weights = [Fraction(math.exp(-0.5 / s**2)) for s in (1.0, 0.5)]
    assert excess(kept, np.eye(2, dtype=int), weights, 2) > Fraction(5, 4)
    tree_free = cg.Additive(cg.DiscreteGaussian([1.0, 0.5]), 2)
    resolved = resolve_invariant(cg.at_least([[3, 1], [-3, -1]], [-1, -2]), 2)
    with pytest.raises(PrivacyError, match="no bound is proved"):
        conditioned_guarantee(tree_free, resolved, "add-remove", sampler_error=0.0)


def test_the_lemma_fails_for_non_integer_orders():
    # three cells, and the sum of the first two, with noise below a step
    cells = np.array([[0, 0, 2], [0, 1, 1], [1, 0, 1], [1, 1, 0], [2, 0, 0]])
    counts = np.column_stack((cells, cells[:, 0] + cells[:, 1]))
    precision = np.array([0.0, 1 / 4.0**2, 1 / 0.6**2, 1 / 0.4**2])
    x, y = counts[0], counts[2]
    p, q = (np.exp(-0.5 * (counts - side) ** 2 @ precision) for side in (x, y))
    p, q = p / p.sum(), q / q.sum()
    rho = 0.5 * (x - y) ** 2 @ precision

    def divergence(order):
        return math.log((p**order * q ** (1 - order)).sum()) / (order - 1)

    assert divergence(1.05) > 1.05 * 1.05 * rho
    assert all(divergence(order) <= order * rho for order in (2, 3, 4, 7))


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0, 40.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-12])
def test_all_integer_orders_are_searched(rho, delta):
    every = np.arange(2.0, 2e4)
    rest = (every - 1) * np.log1p(-1 / every) - np.log(every)
    best = (every * rho + (rest - math.log(delta)) / (every - 1)).min()
    found = zcdp_epsilon(rho, delta, whole_orders=True)
    assert found == pytest.approx(max(0.0, best), rel=1e-9)
    assert found >= zcdp_epsilon(rho, delta)
    if found > 0:
        assert zcdp_delta(rho, found, whole_orders=True) == pytest.approx(delta, rel=1e-6)


PAIR = cg.Tree.from_paths([("r", "a"), ("r", "b"), ("r", "c")])
DEEP = cg.Tree.from_paths([("r", "A", "a"), ("r", "A", "b"), ("r", "B", "c"), ("r", "B", "d")])


def noisy(sigma, shape):
    return cg.Additive(cg.DiscreteGaussian(sigma), shape)


ENGINES = {
    "cells": (noisy(1.5, 3), cg.nonnegative(), "add-remove"),
    "one total": (noisy(0.7, 3), cg.linear(np.ones(3), 3) & cg.bounds(-1, 4), "substitute"),
    "tree": (
        noisy([INF, 1.0, 2.0, 0.7, 1.5, 1.5, 3.0], DEEP),
        cg.consistent(DEEP) & cg.exactly(0) & cg.nonnegative(),
        "substitute",
    ),
    "free tree": (noisy(2.0, PAIR), cg.consistent(PAIR) & cg.nonnegative(), "add-remove"),
    "leaves not measured": (
        noisy([INF, 1.0, 1.5, INF, INF, INF, INF], DEEP),
        cg.consistent(DEEP) & cg.exactly(0) & cg.nonnegative(),
        "substitute",
    ),
}


@pytest.mark.parametrize("name", ENGINES)
def test_exact_laws_satisfy_their_guarantees(name):
    mechanism, invariant, neighbours = ENGINES[name]
    engine = cg.condition(mechanism, invariant)
    claim = engine.guarantee(neighbours)
    assert (claim.gamma_source, claim.whole_orders) == (WHOLE, True)
    assert "proofs/gaussian-bounds.md" in proofs_of(claim)
    assert claim.base_epsilon <= claim.epsilon < 1.05 * claim.base_epsilon
    assert claim.gamma == round(claim.epsilon / claim.base_epsilon - 1.0, 9)
    space = space_of(engine)
    shares = []
    for delta in (1e-2, 1e-4, ZCDP_DELTA):
        epsilon = zcdp_epsilon(claim.rho, delta, whole_orders=True)
        held = replace(claim, epsilon=epsilon, delta=delta)
        loss, mass = enumerated(engine, space, held, neighbours, total=3)
        assert loss.passed, str(loss)
        assert mass.passed
        shares.append(loss.found / epsilon)
    assert max(shares) > 0.6


def test_using_integer_orders_only_costs_almost_nothing():
    rho = zcdp_rho(1.0, 1e-6)
    more = zcdp_epsilon(rho, 1e-6, whole_orders=True) / zcdp_epsilon(rho, 1e-6)
    assert 1.0 < more < 1.001


@pytest.mark.parametrize("name", ENGINES)
def test_too_little_noise_is_detected(name):
    mechanism, invariant, neighbours = ENGINES[name]
    claim = cg.condition(mechanism, invariant).guarantee(neighbours)
    less = cg.Additive(cg.DiscreteGaussian(0.7 * mechanism.scales), mechanism.tree or mechanism.n)
    found = cg.audit(
        cg.condition(less, invariant), neighbours=neighbours, method="exact", claim=claim
    )
    assert not found.passed


def test_nested_sums_are_recognised():
    rng = np.random.default_rng(4)
    seen = set()
    for _ in range(300):
        tree = [None, PAIR, DEEP][int(rng.integers(3))]
        n = 5 if tree is None else len(tree)
        rows = rng.integers(0, 2, (int(rng.integers(1, 4)), n)) * rng.choice([-1, 1, 3])
        if rng.random() < 0.2:
            rows[0, rng.integers(n)] = 2
        invariant = cg.linear(rows[:1], [0]) & cg.at_least(rows[1:], np.zeros(len(rows) - 1))
        if tree is not None:
            invariant &= cg.consistent(tree)
        resolved = resolve_invariant(invariant, n, tree)
        cells = np.arange(n) if tree is None else tree.leaves
        counted = np.eye(n, dtype=int)
        if tree is not None:
            counted = np.array([tree.roll_up((cells == leaf).astype(np.int64)) for leaf in cells]).T
        sums = rows @ counted
        sets = [set(np.flatnonzero(row)) for row in np.vstack((sums, counted))]
        plain = all(len(set(row[row != 0])) <= 1 for row in sums)
        apart = all(not a & b or a <= b or b <= a for a, b in itertools.combinations(sets, 2))
        assert nested_sums(resolved) == (plain and apart)
        seen.add(nested_sums(resolved))
    assert seen == {True, False}


def test_crossing_sums_are_refused():
    margins = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    resolved = resolve_invariant(cg.linear(margins, [1, 1, 1]) & cg.nonnegative(), 4)
    with pytest.raises(PrivacyError, match="are disjoint or one contains the other"):
        conditioned_guarantee(noisy(1.0, 4), resolved, "substitute", sampler_error=0.0)
    with pytest.raises(PrivacyError, match="union"):
        cg.condition(noisy(1.0, 1), cg.bounds(0, 1) | cg.bounds(5, 6)).guarantee("add-remove")
    mixed = cg.mixture([noisy(1.0, PAIR), noisy(2.0, PAIR)], [0.5, 0.5])
    whole = cg.consistent(PAIR) & cg.nonnegative()
    with pytest.raises(PrivacyError, match="weights depend on the data"):
        cg.condition(mixed, whole).guarantee("add-remove")
    # each by itself is covered, and so is a choice between the two that no data enter
    parts = [cg.condition(noisy(s, PAIR), whole) for s in (1.0, 2.0)]
    chosen = cg.mixture(parts, [0.5, 0.5]).guarantee("add-remove")
    assert chosen.epsilon == parts[0].guarantee("add-remove").epsilon
    assert (chosen.rho, chosen.whole_orders) == (None, False)


def test_continuous_noise_pays_nothing_at_any_order():
    resolved = resolve_invariant(cg.consistent(PAIR) & cg.nonnegative(), len(PAIR), PAIR)
    real = cg.Additive(cg.Gaussian(2.0), PAIR)
    claim = conditioned_guarantee(real, resolved, "add-remove", sampler_error=0.0)
    assert (claim.gamma, claim.gamma_source, claim.whole_orders) == (0.0, WHOLE, False)
    assert claim.ideal_only


def test_composition_keeps_the_restriction_to_integer_orders():
    bounded = cg.condition(noisy(2.0, PAIR), cg.consistent(PAIR) & cg.nonnegative())
    free = cg.condition(noisy(2.0, PAIR), cg.consistent(PAIR))
    one, other = bounded.guarantee("add-remove"), free.guarantee("add-remove")
    assert (other.gamma_source, other.whole_orders) == (NONE, False)
    both = cg.accounting.compose([one, other])
    assert both.whole_orders
    assert both.epsilon == zcdp_epsilon(2 * one.rho, ZCDP_DELTA, whole_orders=True)
    assert not cg.accounting.compose([other, other]).whole_orders
    group = cg.accounting.group_privacy(one, 3)
    assert group.whole_orders
    assert group.epsilon <= zcdp_epsilon(9 * one.rho, ZCDP_DELTA, whole_orders=True)
    parts = cg.accounting.compose_parallel([one, other])
    assert parts.whole_orders
    assert parts.epsilon == one.epsilon


@pytest.mark.parametrize("wrong", ["1e-6", [1e-6], True, math.nan, -1.0])
def test_a_delta_that_is_no_number_in_range_is_refused(wrong):
    tree = cg.Tree.from_parents([-1, 0, 0])
    asked = {"epsilon": 1.0, "neighbours": "substitute"}
    for ask in (
        lambda: zcdp_epsilon(1.0, wrong),
        lambda: zcdp_rho(1.0, wrong),
        lambda: cg.calibrate(tree, cg.consistent(tree), delta=wrong, **asked),
    ):
        with pytest.raises(ArgumentError, match="delta is"):
            ask()
    with pytest.raises(ArgumentError, match="rho is"):
        zcdp_delta(wrong, 1.0)
