"""TopDown: each family against an independent solver, ties, ranges, and the mechanism."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, InfeasibleError
from congenial.imaging.top_down import topdown, topdown_image
from congenial.invariants.written import (
    bounds,
    exactly,
    nonnegative,
    resolve_invariant,
)
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import seeded
from support.projection_cases import problems

pytestmark = pytest.mark.kernels

FLAT = Tree.from_parents([-1, 0, 0, 0])
CITY = Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
COUNTS = CITY.roll_up(np.array([4, 0, 9, 1, 2]))


def closest(y, whole, lo, hi):
    """The closest point of sum `whole` within [lo, hi], by bisection on its one multiplier."""
    reach = 1.0 + np.abs(y).max() + abs(whole)
    reach += np.abs(np.nan_to_num(np.concatenate((lo, hi)), posinf=0.0, neginf=0.0)).max()
    least, most = -2.0 * reach, 2.0 * reach
    for _ in range(200):
        t = 0.5 * (least + most)
        least, most = (t, most) if np.clip(y + t, lo, hi).sum() < whole else (least, t)
    return np.clip(y + 0.5 * (least + most), lo, hi)


def reachable(tree, resolved, y):
    """Ranges of each node with those below it, from the leaves up."""
    lo, hi = np.array(resolved.lo), np.array(resolved.hi)
    lo[resolved.pinned] = hi[resolved.pinned] = y[resolved.pinned]
    starts, order = tree.children
    for v in np.argsort(-tree.level, kind="stable"):
        members = order[starts[v] : starts[v + 1]]
        if members.size:
            lo[v] = max(lo[v], lo[members].sum())
            hi[v] = min(hi[v], hi[members].sum())
    return lo, hi


@given(problems(most=12))
@settings(max_examples=150, deadline=None)
def test_each_family_is_projected_onto_its_parents_value(problem):
    tree, y, invariant, _, _ = problem
    z = topdown(y, tree, invariant, integer=False)
    assert z.dtype == np.float64
    lo, hi = reachable(tree, resolve_invariant(invariant, len(tree)), y)
    starts, order = tree.children
    for root in tree.roots:
        assert z[root] == pytest.approx(np.clip(y[root], lo[root], hi[root]), abs=1e-9)
    for v in np.flatnonzero(~tree.is_leaf):
        members = order[starts[v] : starts[v + 1]]
        assert z[members].sum() == pytest.approx(z[v], abs=1e-9)
        best = closest(y[members], z[v], lo[members], hi[members])
        assert z[members] == pytest.approx(best, abs=1e-7)


@given(problems(most=12), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_integers_are_the_largest_remainders_of_each_family(problem, seed):
    tree, y, invariant, _, _ = problem
    resolved = resolve_invariant(invariant, len(tree))
    y = np.where(resolved.pinned, np.rint(y), y)
    z = topdown(y, tree, invariant, rng=seeded(seed))
    inside = bounds(np.ceil(resolved.lo), np.floor(resolved.hi)) & invariant
    lo, hi = reachable(tree, resolve_invariant(inside, len(tree)), y)
    starts, order = tree.children
    for v in np.flatnonzero(~tree.is_leaf):
        members = order[starts[v] : starts[v + 1]]
        real = closest(y[members], z[v], lo[members], hi[members])
        up = z[members] - np.floor(real + 2.0**-20)
        assert set(up.tolist()) <= {0.0, 1.0}
        rest = real - np.floor(real + 2.0**-20)
        if up.any() and not up.all():
            assert rest[up == 1].min() >= rest[up == 0].max() - 2.0**-18


def test_a_wide_family_is_rounded_by_largest_remainder_too():
    n = 3000
    tree = Tree.from_parents([-1, *[0] * n])
    y = np.concatenate(([2.0 * n], np.random.default_rng(4).normal(1.0, 3.0, n)))
    real = topdown(y, tree, exactly("root") & nonnegative(), integer=False)
    z = topdown(y, tree, exactly("root") & nonnegative(), rng=seeded(1))
    assert z[1:].sum() == 2 * n
    up, rest = z[1:] > np.floor(real[1:]), real[1:] - np.floor(real[1:])
    assert rest[up].min() > rest[~up].max() - 2.0**-20


@pytest.mark.parametrize("width", [3, 60])
def test_remaining_units_go_to_random_children(width):
    tree = Tree.from_parents([-1, *[0] * width])
    y = np.concatenate(([width // 3], np.zeros(width)))
    source = seeded(6)
    draws = [topdown(y, tree, exactly("root") & nonnegative(), rng=source) for _ in range(3000)]
    seen = np.sum(draws, axis=0)[1:]
    # exactly as many each time, so the counts vary less than independent ones
    assert chisquare(seen).pvalue > 1e-6
    tilted = seen + np.where(np.arange(width) < width // 3, 0.3, -0.15) * seen.mean()
    assert chisquare(tilted).pvalue < 1e-6


def test_the_root_is_rounded_to_either_side_of_a_half():
    tree = Tree.from_parents([-1, 0])
    source = seeded(2)
    up = sum(int(topdown([0.5, 0.5], tree, nonnegative(), rng=source)[0]) for _ in range(2000))
    assert abs(up - 1000) < 5.0 * np.sqrt(500.0)


def test_counts_of_a_trillion_keep_their_last_digit():
    big = 2**40
    x = CITY.roll_up(np.array([big, 0, big + 1, 1, 0]))
    y = x + np.array([0, 3, -2, 5, -1, 4, -7, 2])
    invariant = exactly("root") & nonnegative()
    small = topdown(y - x, CITY, exactly("root") & bounds(-x.astype(float), np.inf), integer=False)
    assert topdown(y, CITY, invariant, integer=False) - x == pytest.approx(small, abs=2.0**-11)
    assert CITY.is_consistent(topdown(y, CITY, invariant, rng=seeded(1)))


def uneven(seed, capped):
    """A tree of families of many sizes, values of many sizes, and what must hold."""
    draw = np.random.default_rng(seed)
    parents, above = [-1], [0]
    for _ in range(3):
        below = []
        for v in above:
            size = int(draw.choice([1, 2, 7, 8, 9, 17, 40]))
            below += range(len(parents), len(parents) + size)
            parents += [v] * size
        above = draw.permutation(below)[: 1 + len(below) // 6].tolist()
    tree = Tree.from_parents(parents)
    y = draw.normal(2.0, 3.0, len(tree)) * 10.0 ** draw.integers(-3, 7, len(tree))
    y[0] = float(draw.choice([0.0, 5.0, 1e4]))
    return tree, y, exactly([0]) & (bounds(0, 1e9) if capped else nonnegative())


@pytest.mark.parametrize("capped", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_families_unlike_those_before_them_are_solved(seed, capped):
    # each search starts where the family before ended, and several places are written at once
    tree, y, resolved = uneven(seed, capped)
    z = topdown(y, tree, resolved, integer=False)
    lo, hi = reachable(tree, resolve_invariant(resolved, len(tree)), y)
    starts, order = tree.children
    for v in np.flatnonzero(~tree.is_leaf):
        members = order[starts[v] : starts[v + 1]]
        exact = closest(y[members], z[v], lo[members], hi[members])
        size = 1.0 + np.abs(y[members]).max()
        np.testing.assert_allclose(z[members], exact, atol=1e-9 * size)
        wrong = closest(y[members], z[v] + 1e-4 * size, lo[members], hi[members])
        assert np.abs(wrong - z[members]).max() > 1e-9 * size


@pytest.mark.parametrize("capped", [False, True])
def test_thousands_of_trees_add_up_to_what_their_numbers_resolve(capped):
    # a parent at 0 over children at 10 million: no sum is right to the last digit of 0
    families = 0
    for seed in range(3000):
        tree, y, resolved = uneven(seed, capped)
        z = topdown(y, tree, resolved, integer=False)
        starts, order = tree.children
        for v in np.flatnonzero(~tree.is_leaf):
            members = order[starts[v] : starts[v + 1]]
            size = np.abs(y[members]) + np.abs(z[members])
            # at most 40 numbers are moved and added up: each sum is rounded as often
            assert abs(z[members].sum() - z[v]) <= 50 * 2.0**-52 * (z[v] + size.sum())
            # all move by one amount, but for those that it would take below 0
            moved, positive = z[members] - y[members], z[members] > 0.0
            by, close = moved[positive].max(initial=-np.inf), 2.0**-51 * size.max()
            assert (moved >= by - close).all()
            families += 1
    assert families > 20_000


@pytest.mark.parametrize("noise", [DiscreteLaplace, DiscreteGaussian])
def test_each_level_may_have_its_own_share_of_the_budget(noise):
    scales = np.array([9.0, 1.0, 2.5])[CITY.level]
    invariant = exactly("root") & nonnegative()
    made = topdown_image(Additive(noise(scales), CITY), invariant)
    draws = made.sample(COUNTS, 500, seeded(3))
    assert (draws[:, 0] == COUNTS[0]).all() and (draws >= 0).all()
    assert CITY.is_consistent(draws)
    error = np.abs(draws - COUNTS)[:, 1:3].mean()
    louder = np.array([9.0, 2.0, 2.5])[CITY.level]
    loud = topdown_image(Additive(noise(louder), CITY), invariant).sample(COUNTS, 500, seeded(3))
    assert error < 0.8 * np.abs(loud - COUNTS)[:, 1:3].mean()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: topdown([771, 1, 1, 1], FLAT, exactly(0) & bounds(0, 800) & bounds(-5, 3)),
            InfeasibleError,
            "'0'",
        ),
        (lambda: topdown([5, 1, 1, 1], FLAT, nonnegative(), integer=1), ArgumentError, "integer"),
        (lambda: topdown([5, 2.0**60, 1, 1], FLAT, nonnegative()), ArgumentError, "2\\^53"),
    ],
)
def test_unsupported_cases_are_refused_without_a_count(call, error, words):
    with pytest.raises(error, match=words) as caught:
        call()
    assert "771" not in str(caught.value)


def test_noise_without_a_tree_and_noise_on_a_grid_are_refused_each_for_its_own_reason():
    with pytest.raises(ArgumentError, match="needs noise on a tree or a workload; give Additive"):
        topdown_image(Additive(DiscreteLaplace(1.0), 8), nonnegative())
    grid = Additive(DiscreteLaplace(1.0, granularity=0.5), CITY)
    with pytest.raises(ArgumentError, match=r"has granularity 0\.5, .* noise of granularity 1"):
        topdown_image(grid, nonnegative())
