"""Entries that move together, and what any public set on one line costs, by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import conditioned_guarantee
from congenial.accounting.loss.inequalities import PROVED, TRIVIAL
from congenial.accounting.loss.together import moving_together, together_in_union
from congenial.invariants.written import resolve_invariant

# Both margins of a table of two by two, from its cells.
SQUARE = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])


def sets_of(resolved):
    """The sets with more than one entry, and whether all entries lie on one line."""
    found = moving_together(resolved)
    sets = {}
    for entry, first in enumerate(found.first.tolist()):
        sets.setdefault(first, []).append(entry)
    return sorted(s for s in sets.values() if len(s) > 1), found.one_line


@pytest.mark.parametrize(
    ("parents", "pins", "sets", "one_line"),
    [
        ([-1, 0, 0], [0], [[1, 2]], True),
        ([-1, 0, 0], [], [], False),
        ([-1, 0, 0, 0], [0], [], False),
        ([-1, 0, 0, 0], [0, 3], [[1, 2]], True),
        ([-1, 0, 1], [], [[0, 1, 2]], True),
        ([-1, 0, 0, 1, 1, 2, 2], [0], [[1, 2]], False),
        ([-1, 0, 0, 1, 1, 2, 2], [1, 2], [[3, 4], [5, 6]], False),
        ([-1, 0, 0, 1, 2], [0], [[1, 2, 3, 4]], True),
        # every entry is a constant
        ([-1, 0], [0], [], False),
    ],
)
def test_sums_of_two_free_entries_link_them(parents, pins, sets, one_line):
    tree = cg.Tree.from_parents(parents)
    invariant = cg.consistent(tree) & cg.nonnegative()
    if pins:
        invariant &= cg.exactly(pins)
    assert sets_of(resolve_invariant(invariant, len(tree), tree)) == (sets, one_line)


def test_equalities_link_entries_with_coefficients_of_one_size():
    for row, one_line in (([1, -1], True), ([2, 2], True), ([1, 2], False), ([1, 0], True)):
        resolved = resolve_invariant(cg.linear(np.array([row]), [4]), 2)
        assert moving_together(resolved).one_line == one_line
    table = resolve_invariant(cg.linear(SQUARE, SQUARE @ np.ones(4)), 4)
    assert sets_of(table) == ([[0, 1, 2, 3]], True)
    both = cg.Workload.of(cg.Table({"a": ("x", "y"), "b": ("u", "v")}), [("a",), ("b",)])
    margins = [entry for entry in range(len(both)) if entry not in both.cells]
    crossing = resolve_invariant(cg.consistent(both) & cg.exactly(margins), len(both), both)
    assert sets_of(crossing)[1]


def test_costs_are_summed_over_a_set():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    found = moving_together(resolve_invariant(cg.consistent(tree) & cg.exactly(0), 7, tree))
    cost = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    assert found.sum(cost).tolist() == [0.0, 3.0, 3.0, 4.0, 8.0, 16.0, 32.0]


def test_alternatives_with_other_equalities_are_on_no_common_line():
    rows = np.array([[1.0, 1.0]])
    for second, one_line in ((5, True), (7, False)):
        pair = [
            resolve_invariant(cg.linear(rows, [total]) & bound, 2)
            for total, bound in ((5, cg.bounds(hi=2)), (second, cg.bounds(lo=3)))
        ]
        assert together_in_union(pair).one_line == one_line


def largest_ratio(points, a):
    """Largest ratio of an output's probabilities between neighbours: x and x + 1, both in a set."""
    total = {x: sum(a ** abs(z - x) for z in points) for x in points}
    return max(
        (
            (a ** abs(z - x) / total[x]) / (a ** abs(z - y) / total[y])
            for x in points
            for y in (x - 1, x + 1)
            if y in total
            for z in points
        ),
        default=Fraction(1),
    )


@pytest.mark.parametrize("a", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
def test_no_set_on_a_line_loses_more_than_is_stated(a):
    """All sets of ten integers: unions of intervals, and no intervals at all."""
    limit = 1 / a + 1 - a
    most = Fraction(1)
    for k in range(1, 11):
        for points in itertools.combinations(range(10), k):
            ratio = largest_ratio(points, a)
            assert ratio <= limit
            most = max(most, ratio)
    # ten integers in a row reach the limit but for the mass beyond them
    assert (most - 1 / a) / (limit - 1 / a) > Fraction(1, 2)
    # charged as if the set were all integers, it would be too little
    assert most > 1 / a


def union(scale, *spans):
    tree = cg.Tree.from_parents([-1, 0, 0])
    base = cg.consistent(tree) & cg.exactly(0)
    parts = [
        base & cg.bounds([-np.inf, low, -np.inf], [np.inf, high, np.inf]) for low, high in spans
    ]
    invariant = parts[0] | parts[1]
    mechanism = cg.Additive(cg.DiscreteLaplace([np.inf, scale, scale]), tree)
    return cg.condition(mechanism, invariant)


@pytest.mark.parametrize(
    "spans", [((0, 2), (5, 7)), ((0, 0), (1, 1)), ((0, 3), (4, 9)), ((0, 1), (8, 9))]
)
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_a_union_on_one_line_is_charged_as_a_set_on_a_line(spans, scale):
    engine = union(scale, *spans)
    claim = engine.guarantee("substitute")
    a = math.exp(-2.0 / scale)
    assert claim.base_epsilon == pytest.approx(2.0 / scale)
    assert claim.epsilon == pytest.approx(math.log(1 / a + 1 - a))
    assert claim.gamma_source == PROVED
    points = [z for low, high in spans for z in range(low, high + 1)]
    rows = np.array([[9, z, 9 - z] for z in points])
    # the sampler's own law, at every pair
    for x in points:
        for y in (x - 1, x + 1):
            if y in points:
                here = np.asarray(engine.log_prob(rows, [9, x, 9 - x]))
                there = np.asarray(engine.log_prob(rows, [9, y, 9 - y]))
                assert (here - there).max() <= claim.epsilon + 1e-9


def test_a_union_on_no_line_is_charged_twice_the_loss():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    base = cg.consistent(tree) & cg.exactly(0)
    low, high = cg.bounds(hi=[np.inf, 2, np.inf, np.inf]), cg.bounds([-np.inf, 5, -np.inf, -np.inf])
    mechanism = cg.Additive(cg.DiscreteLaplace([np.inf, 2.0, 2.0, 2.0]), tree)
    claim = cg.condition(mechanism, (base & low) | (base & high)).guarantee("substitute")
    assert (claim.gamma, claim.gamma_source) == (1.0, TRIVIAL)
    # nor is one whose record moves several steps of the grid at once
    two = cg.Tree.from_parents([-1, 0, 0])
    base = cg.consistent(two) & cg.exactly(0)
    low, high = cg.bounds(hi=[np.inf, 2, np.inf]), cg.bounds([-np.inf, 5, -np.inf])
    fine = cg.Additive(cg.DiscreteLaplace([np.inf, 2.0, 2.0], granularity=0.5), two)
    claim = cg.condition(fine, (base & low) | (base & high)).guarantee("substitute")
    assert (claim.gamma, claim.gamma_source) == (1.0, TRIVIAL)


@pytest.mark.parametrize("least", [-2, 0, 1])
def test_an_inequality_between_two_cells_is_a_bound_on_their_line(least):
    tree = cg.Tree.from_parents([-1, 0, 0])
    row = cg.at_least([0, 1, -1], least)
    invariant = cg.consistent(tree) & cg.exactly(0) & row
    mechanism = cg.Additive(cg.DiscreteLaplace([np.inf, 2.0, 2.0]), tree)
    resolved = resolve_invariant(invariant, 3, tree)
    claim = conditioned_guarantee(mechanism, resolved, "substitute", sampler_error=0.0)
    a = math.exp(-1.0)
    assert claim.gamma_source == PROVED
    assert claim.epsilon == pytest.approx(math.log(1 / a + 1 - a))
    points = [z for z in range(-30, 60) if z - (9 - z) >= least]
    assert math.log(largest_ratio(points, a)) == pytest.approx(claim.epsilon, abs=1e-9)


def test_a_table_of_two_by_two_with_exact_margins_loses_what_is_stated():
    claimed = {}
    for scale in (1.0, 4.0):
        invariant = cg.linear(SQUARE, SQUARE @ np.full(4, 20)) & cg.nonnegative()
        engine = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), 4), invariant)
        claim = engine.guarantee("substitute")
        rows = np.array([[20 + k, 20 - k, 20 - k, 20 + k] for k in range(-20, 21)])
        worst = max(
            float((np.asarray(engine.log_prob(rows, x)) - engine.log_prob(rows, y)).max())
            for x, y in itertools.permutations(rows, 2)
            if np.abs(x - y).max() == 1
        )
        assert worst <= claim.epsilon + 1e-9
        assert worst == pytest.approx(claim.epsilon, abs=1e-3)
        claimed[scale] = claim.epsilon
    assert claimed[1.0] == pytest.approx(math.log(math.exp(4) + 1 - math.exp(-4)))
