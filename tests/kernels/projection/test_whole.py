"""Whole-tree rounding to integers of least summed change: against a mixed-integer solver."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.stats import chisquare

from congenial.domain.tree import Tree
from congenial.errors import InfeasibleError
from congenial.imaging.closest import Projector, project
from congenial.imaging.solvers.active_set import ActiveSet
from congenial.imaging.solvers.problem import checked_weights
from congenial.imaging.solvers.two_pass import tie_grid
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    nonnegative,
    resolve_invariant,
)
from congenial.kernels.projection.whole import ROUNDED, is_least, round_levels
from congenial.randomness import seeded
from support.projection_cases import problems
from support.wide_trees import city

pytestmark = pytest.mark.kernels

POSITIVE = (1e-3, 0.5, 1.0, 1.0, 1.0, 7.3)


def least_change(tree, z, resolved):
    """Least summed change to integers, by HiGHS: each value is floor + part + more - fewer."""
    n, inner = len(tree), np.flatnonzero(~tree.is_leaf)
    floor = np.floor(z + 2.0**-21)
    share = np.maximum(z - floor, 0.0)
    share[share < 2.0**-20] = 0.0
    lo, hi = np.ceil(resolved.lo), np.floor(resolved.hi)
    lo, hi = np.where(resolved.pinned, floor, lo), np.where(resolved.pinned, floor, hi)
    child = np.flatnonzero(tree.parents >= 0)
    sums = np.zeros((inner.size, n))
    sums[np.searchsorted(inner, tree.parents[child]), child] = 1.0
    sums[np.arange(inner.size), inner] = -1.0
    unit = np.hstack((np.eye(n), np.eye(n), -np.eye(n)))
    rows = [LinearConstraint(unit, lo - floor, hi - floor)]
    if inner.size:
        rows.append(LinearConstraint(sums @ unit, -sums @ floor, -sums @ floor))
    found = milp(
        np.concatenate((1.0 - 2.0 * share, np.ones(2 * n))),
        integrality=np.ones(3 * n),
        bounds=Bounds(np.zeros(3 * n), np.concatenate((share > 0, np.full(2 * n, np.inf)))),
        constraints=rows,
    )
    assert found.status == 0
    return float(found.fun + share.sum())


def both(tree, y, invariant, weight=None):
    """The closest real point and its rounding, by the fast method alone."""
    resolved = resolve_invariant(invariant, len(tree))
    relative = checked_weights(weight, len(tree))
    found = Projector(resolved, relative, "l2", integer=True).active_set
    real = found.solve(y)
    if real is None:
        return resolved, None, None
    return resolved, real, found.solve_whole(y, seeded(8).bits(len(tree)))


@given(problems(most=12, reach=6, weights=POSITIVE))
@settings(max_examples=120, deadline=None)
def test_the_change_is_the_least(problem):
    tree, y, invariant, weight, _ = problem
    resolved, real, z = both(tree, y.astype(float), invariant, weight)
    if z is None:  # left to the dynamic programme, which is tested by enumeration
        return
    assert tree.is_consistent(z)
    assert ((z >= resolved.lo) & (z <= resolved.hi))[~resolved.pinned].all()
    assert (z == y)[resolved.pinned].all()
    assert np.abs(z - real).sum() == pytest.approx(least_change(tree, real, resolved), abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_some_hundred_nodes_too(seed):
    tree, x, rng = city(150, 2 + seed % 3, 40 + seed)
    y = x + rng.normal(0.0, 3.0, len(tree))
    y[tree.roots] = x[tree.roots]
    resolved, real, z = both(tree, y, consistent(tree) & exactly("root") & nonnegative())
    assert z is not None
    assert tree.is_consistent(z) and (z >= 0).all()
    assert np.abs(z - real).sum() == pytest.approx(least_change(tree, real, resolved), abs=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_large_trees_are_rounded_without_help(seed):
    tree, x, rng = city(20_000, 3 + seed, seed)
    y = x + rng.normal(0.0, 3.0, len(tree))
    y[tree.roots] = x[tree.roots]
    _, real, z = both(tree, y, consistent(tree) & exactly("root") & nonnegative())
    assert z is not None and tree.is_consistent(z) and (z >= 0).all()
    assert np.abs(z - real).max() < 2.0


def test_the_certificate_sees_a_rounding_that_is_not_the_least():
    tree, x, rng = city(400, 3, 5)
    y = x + rng.normal(0.0, 3.0, len(tree))
    resolved = resolve_invariant(consistent(tree) & nonnegative(), len(tree))
    found = Projector(resolved, np.ones(len(tree)), "l2", integer=True).active_set
    (z, near), out = found._solve(y, 2), np.empty(len(tree))
    task = (found.levels.rows, found.leaf, found.inner, near, z, int(1.0 / tie_grid(z)))
    assert round_levels(*task, 0, seeded(1).bits(len(tree)), out) == ROUNDED
    assert is_least(*task, out)
    first, split, *_ = found.levels.rows
    seen = 0
    for k in range(first.size - 1):
        a, b = first[k], split[k]
        if b - a < 2:
            continue
        moved = out.copy()  # a unit from one leaf to another, neither of them tied
        moved[a : a + 2] += 1.0, -1.0
        worse = np.abs(moved - z).sum() > np.abs(out - z).sum() + 1e-6
        allowed = near[a + 1] + moved[a + 1] >= 0.0
        assert is_least(*task, moved) == (allowed and not worse)
        seen += 1
    assert seen > 20
    assert not is_least(*task, out + 1.0)


def test_the_two_methods_round_alike(monkeypatch):
    tree, x, rng = city(300, 4, 3)
    y = x + rng.normal(0.0, 3.0, len(tree))
    imposed = consistent(tree) & nonnegative()
    real = project(y, imposed)
    fast = project(y, imposed, integer=True, rng=seeded(1))
    monkeypatch.setattr(ActiveSet, "solve_whole", lambda self, values, words: None)
    slow = project(y, imposed, integer=True, rng=seeded(1))
    assert np.abs(fast - real).sum() == pytest.approx(np.abs(slow - real).sum(), abs=1e-3)


@pytest.mark.parametrize("width", [3, 70])
def test_equal_remainders_are_chosen_from_at_random(width):
    # two families alike, so that units of parents tie as well
    parents = [-1, 0, 0, *[1] * width, *[2] * width]
    tree = Tree.from_parents(parents)
    y = np.full(len(tree), 1.0 / 3.0)
    y[0] = width - (width % 3) + 1.0
    y[1:3] = y[0] / 2.0
    y[3:] = y[0] / (2.0 * width)
    source = seeded(12)
    imposed = consistent(tree) & exactly("root")
    draws = np.array([project(y, imposed, integer=True, rng=source) for _ in range(3000)])
    assert tree.is_consistent(draws)
    low = draws.min()
    seen = (draws[:, 3:] - low).sum(axis=0)
    assert seen.min() > 0
    assert chisquare(seen).pvalue > 1e-6
    tilted = seen * np.where(np.arange(2 * width) % width == 0, 1.3, 1.0)
    tilted *= seen.sum() / tilted.sum()
    if width == 3:
        assert chisquare(tilted, np.full(2 * width, seen.mean())).pvalue < 1e-6
    up = (draws[:, 1] > draws[:, 2]).sum(), (draws[:, 1] < draws[:, 2]).sum()
    assert sum(up) == 0 or chisquare(up).pvalue > 1e-6


def test_pins_that_are_not_integers_are_refused():
    tree = Tree.from_parents([-1, 0, 0])
    for pins in ([0], [1]):
        with pytest.raises(InfeasibleError, match="not an integer"):
            project([3.5, 1.5, 2.0], consistent(tree) & exactly(pins), integer=True)


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_large_counts_are_rounded_as_small_ones(big, seed):
    tree = Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    rng = np.random.default_rng(seed)
    shift = tree.roll_up(np.full(4, big))
    y = np.round(rng.normal(0.0, 3.0, 7) * 64.0) / 64.0
    near = project(y, consistent(tree) & bounds(-50, 50), integer=True, rng=seeded(1))
    far = project(
        y + shift,
        consistent(tree) & bounds(shift - 50.0, shift + 50.0),
        integer=True,
        rng=seeded(1),
    )
    assert (far - shift).tolist() == near.tolist()


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("integer", [False, True])
def test_a_table_that_satisfies_the_invariant_is_its_own_closest_point(norm, integer):
    tree = Tree.from_paths([("all", "a", "1"), ("all", "a", "2"), ("all", "b", "3")])
    known = consistent(tree) & exactly("all") & nonnegative()
    y = tree.roll_up([3, 0, 4])
    found = project(y, known, norm=norm, integer=integer)
    assert found.tolist() == y.tolist() and found.dtype == (np.int64 if integer else np.float64)
    assert found is not y
    below = tree.roll_up([3, -1, 5])  # adds up, and breaks a bound
    other = project(below, known, norm=norm, integer=integer)
    assert other.min() >= 0 and other.tolist() != below.tolist()
