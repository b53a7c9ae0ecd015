"""The enumerated cost of one pinned total, against whole laws and against the exact engine."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

import congenial as cg
from congenial.belief import Belief, FiniteMechanism
from congenial.errors import ArgumentError
from papers.claims.cost_of_bounds import moves, pinned_total, tables


def whole_laws(a, cells, total):
    """The conditioned mechanism in full, and all pairs one substituted record apart."""
    every = list(tables(cells, total))
    laws = {
        x: Belief.from_weights(
            {z: a ** sum(abs(s - t) for s, t in zip(z, x, strict=True)) for z in every}
        )
        for x in every
    }
    near = [
        (x, y)
        for x, y in combinations(every, 2)
        if sum(abs(s - t) for s, t in zip(x, y, strict=True)) == 2
    ]
    return FiniteMechanism(laws), near


@pytest.mark.parametrize("cells", [2, 3, 4])
@pytest.mark.parametrize("total", [1, 2, 3])
@pytest.mark.parametrize("a", [Fraction(1, 5), Fraction(1, 2), Fraction(9, 10)])
def test_the_cost_is_that_of_the_whole_laws(a, cells, total):
    mechanism, near = whole_laws(a, cells, total)
    cost = pinned_total(a, cells=cells, total=total)
    assert cost.ratio == mechanism.ratio(near)
    assert cost.ratio <= 2 / a**2 - 1
    assert cost.gamma == pytest.approx(mechanism.epsilon(near) / (-2 * math.log(a)) - 1, abs=1e-12)
    assert tuple(sorted(cost.pair)) in {tuple(sorted(pair)) for pair in near}
    # without the bounds it would cost nothing
    assert (cost.gamma > 0) == (total > 1)


def test_tables_and_moves():
    assert list(tables(2, 2)) == [(2, 0), (1, 1), (0, 2)]
    assert len(set(tables(4, 8))) == math.comb(11, 3)
    assert set(moves((1, 0, 2))) == {(0, 1, 2), (0, 0, 3), (2, 0, 1), (1, 1, 1)}


@pytest.mark.parametrize(("epsilon", "cells", "total"), [(0.5, 3, 4), (1.0, 4, 5), (2.0, 2, 6)])
def test_the_exact_engine_has_the_same_normalizers(epsilon, cells, total):
    a = math.exp(-epsilon / 2)
    cost = pinned_total(a, cells=cells, total=total)
    tree = cg.Tree.from_parents([-1] + [0] * cells)
    noise = cg.DiscreteLaplace([math.inf] + [2 / epsilon] * cells)
    held = cg.consistent(tree) & cg.exactly("root") & cg.nonnegative()
    engine = cg.condition(cg.Additive(noise, tree), held)
    first, second = (engine.log_normalizer(tree.roll_up(np.array(x))) for x in cost.pair)
    assert math.exp(second - first + epsilon) == pytest.approx(cost.ratio, rel=1e-10)
    # what the library charges is never less
    assert engine.guarantee("substitute").epsilon >= math.log(cost.ratio)


def test_two_cells_and_a_large_total_have_a_closed_form():
    a = Fraction(1, 2)
    limit = 1 / a**2 + 1 - a**2
    near = pinned_total(a, cells=2, total=12).ratio
    assert 0 < limit - near < Fraction(1, 10**6)


@pytest.mark.parametrize("wrong", [{"cells": 1, "total": 2}, {"cells": 2, "total": 0}])
def test_what_is_refused(wrong):
    with pytest.raises(ArgumentError, match="at least 2 cells"):
        pinned_total(0.5, **wrong)
    with pytest.raises(ArgumentError, match="between 0 and 1"):
        pinned_total(1.0, cells=2, total=2)


# Largest loss found, over what is claimed: by leaves of each of two parents, and by epsilon.
FOUND = {
    (2, 1.0): 0.927,
    (2, 4.0): 0.715,
    (5, 1.0): 0.995,
    (5, 4.0): 0.818,
    (20, 1.0): 1.000,
    (20, 4.0): 0.960,
    (100, 1.0): 1.000,
    (100, 4.0): 1.000,
}


@pytest.mark.parametrize(("leaves", "epsilon"), FOUND)
def test_wide_trees_lose_all_that_is_claimed(leaves, epsilon):
    """Two parents below a pinned total of 1,000; the noise is calibrated to epsilon.

    Losses are those of five moves of a record between tables with most leaves at 0.
    """
    tree = cg.Tree.from_parents([-1, 0, 0] + [1] * leaves + [2] * leaves)
    invariant = cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
    noise = cg.calibrate(tree, invariant, epsilon=epsilon, neighbours="substitute")
    engine = cg.condition(cg.Additive(noise, tree), invariant)

    def table(counts):
        of_leaf = np.zeros(2 * leaves, dtype=np.int64)
        of_leaf[list(counts)] = list(counts.values())
        return tree.roll_up(of_leaf)

    far = leaves  # the first leaf of the second parent
    pairs = [
        ({0: 1000}, {0: 999, 1: 1}),
        ({0: 1000}, {0: 999, far: 1}),
        ({0: 500, far: 500}, {0: 499, far: 500, far + 1: 1}),
        ({0: 500, far: 500}, {0: 499, far: 501}),
        ({far: 1000}, {0: 1, far: 999}),
    ]
    most = 0.0
    for x, y in (tuple(map(table, pair)) for pair in pairs):
        base = float((np.abs(x - y) / noise.spread).sum())
        most = max(most, base + abs(engine.log_normalizer(y) - engine.log_normalizer(x)))
    claim = engine.guarantee("substitute").epsilon
    assert claim == pytest.approx(epsilon)
    assert most <= claim * (1 + 1e-9)
    assert round(most / claim, 3) == FOUND[leaves, epsilon]
