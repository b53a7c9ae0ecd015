"""The closest point worked out part by part is that of the whole tree."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging import closest, closest_in_parts
from congenial.imaging.closest import project
from congenial.imaging.closest_in_parts import project_by_parts
from congenial.imaging.solvers import part_curves
from congenial.imaging.solvers.part_curves import TreePiece, solve_parts
from congenial.invariants.written import resolve_invariant
from support.cut_problems import random_cut, scaled_cut
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@pytest.fixture
def short_curves(monkeypatch):
    """Send few points of each curve, so that most problems need several rounds."""
    monkeypatch.setattr(part_curves, "POINTS", 3)
    monkeypatch.setattr(part_curves, "FEWEST", 3)


@pytest.fixture
def two_passes(monkeypatch):
    """Project whole trees by curves and two passes, as parts are, and not by Newton steps."""
    monkeypatch.setattr(closest, "active_set", lambda *_, **__: None)


def in_parts(problem):
    return project_by_parts(problem.y, problem.invariant, problem.level, problem.weight)


def rounding(problem):
    """Relative rounding error of two passes, and the change of the top that ends the rounds."""
    # a value follows from at most n others upward and n downward, with n roundings each; a part
    # follows the change of its total, no value by more than that
    return 2 * len(problem.tree) ** 2 * np.finfo(float).eps + part_curves.SETTLED


def compare(problem, factor):
    """Compare with the whole; a refusal must be the same one."""
    try:
        whole = project(problem.y, problem.invariant, problem.weight)
    except NumericalError:
        with pytest.raises(NumericalError):
            in_parts(problem)
        return
    assert np.abs(in_parts(problem) - whole).max() <= factor * problem.size


@for_each_seed(200)
def test_the_point_is_that_of_project(seed, short_curves):
    # both points keep their conditions up to 1e-9 of the largest number
    compare(random_cut(seed, weights=("plain", "apart")[seed % 2]), 1e-9)


@pytest.mark.parametrize("weights", ["plain", "sparse", "apart"])
def test_thousands_of_points_are_those_of_two_passes(weights, short_curves, two_passes):
    for seed in range(1000):
        problem = random_cut(seed, 25, weights)
        compare(problem, rounding(problem))


@for_each_seed(3000)
def test_numbers_of_very_different_size(seed, short_curves, two_passes):
    compare(scaled_cut(seed), 1e-9)


@for_each_seed(200)
def test_counts_of_a_trillion(seed, short_curves):
    compare(random_cut(seed, 25, ("plain", "sparse")[seed % 2], 2**40), 1e-9)


def test_counts_of_a_trillion_keep_their_last_digit(short_curves):
    for seed in range(200):
        small = random_cut(seed, 25, "measured", 2**20)
        tree, weight = small.tree, small.weight
        far = tree.roll_up(np.full(tree.leaves.size, 2**36))
        invariant = cg.consistent(tree) & cg.bounds(-far.astype(float) - 3.0, np.inf)
        near = project_by_parts(small.y, invariant, small.level, weight)
        above = cg.consistent(tree) & cg.bounds(-3.0, np.inf)
        moved = project_by_parts(small.y + far, above, small.level, weight)
        # `y + far` is rounded to 2^-12 at most, in counts below 2^41
        assert np.abs(moved - far - near).max() <= 2.0**-10


@for_each_seed(60)
def test_larger_trees_and_curves_sent_at_once(seed, two_passes):
    problem = random_cut(seed, 300)
    compare(problem, rounding(problem))


@for_each_seed(40)
def test_the_point_is_that_of_a_dense_programme(seed, short_curves):
    problem = random_cut(seed, 10, "measured")
    roots = problem.tree.roots
    if not resolve_invariant(problem.invariant, len(problem.tree)).pinned[roots].all():
        return
    # a redundant condition leads project() to a dense programme
    again = cg.linear(np.eye(len(problem.tree))[roots], problem.y[roots])
    dense = project(problem.y, problem.invariant & again, problem.weight)
    # the conditions hold up to 1e-9 of the largest number, and the least weight is 1/300 of the
    # largest, so that values differ by 300 times as much
    assert np.abs(in_parts(problem) - dense).max() <= 3e-7 * problem.size


def pieces(problem):
    """Return the split, the top and a function that makes a part."""
    tree, split = problem.tree, problem.tree.split(problem.level)
    resolved = resolve_invariant(problem.invariant, len(tree), tree)
    weight = problem.weight / problem.weight.max()

    def piece(nodes, part):
        return TreePiece(
            nodes, part, resolved.restricted(nodes, part), problem.y[nodes], weight[nodes]
        )

    def fetch(number):
        part = split.part(number)
        return piece(part.nodes, part.tree)

    return split, piece(split.nodes, split.top), fetch


@for_each_seed(60)
def test_one_part_is_held_at_a_time(seed, short_curves):
    problem = random_cut(seed, 60)
    split, top, fetch = pieces(problem)
    held, out = [], np.full(len(problem.tree), np.nan)

    def counted(number):
        assert all(ref() is None for ref in held)
        part = fetch(number)
        held[:] = [weakref.ref(each) for each in (part, part.resolved, part.y, part.weight)]
        return part

    def store(part, z):
        out[part.nodes] = z

    out[split.nodes] = solve_parts(top, split.roots, counted, store)
    np.testing.assert_array_equal(out, in_parts(problem))


def fetched(problem):
    """Return how often a part is fetched, on average."""
    split, top, fetch = pieces(problem)
    count = [0]

    def counted(number):
        count[0] += 1
        return fetch(number)

    solve_parts(top, split.roots, counted, lambda *_: None)
    return count[0] / split.roots.size


def test_parts_without_bounds_are_worked_out_twice(short_curves):
    seen = 0
    for seed in range(200):
        problem = random_cut(seed, weights="measured")
        if not problem.bounded:
            seen += 1
            assert fetched(problem) <= 2
    assert seen > 20


def test_long_curves_take_more_rounds(monkeypatch):
    made = random_cut(7, 200, "measured")
    problem = replace(made, invariant=cg.consistent(made.tree) & cg.nonnegative(), level=0)
    assert fetched(problem) == 2
    monkeypatch.setattr(part_curves, "POINTS", 3)
    monkeypatch.setattr(part_curves, "FEWEST", 3)
    assert fetched(problem) > 3


def test_unknown_pieces_of_a_curve():
    points = np.array([[-2.0, -1.0, 0.0, 0.0, 3.0, 5.0], [0.0, 2.0, 4.0, 7.0, 8.0, 8.0]])
    curve = part_curves._Curve(points, np.array([0, 1, 4, 6, 9, 12]), np.zeros(2))
    assert curve.unknown(1.0) is None  # places 0 and 1 are next to each other
    assert curve.unknown(2.0) == 2  # the piece on the right may be bent
    assert curve.unknown(3.0) == 2
    assert curve.unknown(5.0) == 2  # other totals at price 0 may be on the piece on the left
    assert curve.unknown(7.5) == 4
    assert curve.unknown(8.0) == 4
    assert part_curves._Curve(points, np.arange(6), np.zeros(2)).unknown(5.0) is None


def test_a_point_that_is_not_optimal_is_refused(monkeypatch):
    problem = random_cut(3, 30, "measured")
    shifted = part_curves._Joined.refined
    monkeypatch.setattr(part_curves._Joined, "refined", lambda *given: shifted(*given) + 0.01)
    curved = part_curves._curved
    monkeypatch.setattr(part_curves, "_curved", lambda *given: curved(*given) + 0.01)
    with pytest.raises(NumericalError, match="misses its optimality conditions"):
        in_parts(problem)


def test_infeasible_parts_are_found_without_the_whole(monkeypatch):
    monkeypatch.setattr(closest_in_parts, "check_feasible", lambda *_, **__: None)
    tree = cg.Tree.from_paths(["all/a/1", "all/a/2", "all/b/3", "all/b/4"])
    y = np.array([9.0, 6.0, 4.0, 3.0, 3.0, 6.0, -2.0])
    lo = np.array([-np.inf, -np.inf, 3.0, 4.0, -np.inf, -np.inf, -np.inf])
    hi = np.where(np.arange(7) == 1, 6.0, np.inf)
    for pins, cap in (([], hi), ([1], np.inf), ([0], hi + (np.arange(7) == 0))):
        invariant = cg.consistent(tree) & cg.bounds(lo, cap)
        invariant = invariant & cg.exactly(pins) if pins else invariant
        with pytest.raises(InfeasibleError, match=r"(all/)?a'|no values add up"):
            project_by_parts(y, invariant, 1)
    # a total above the parts, and bounds below them
    capped = cg.consistent(tree) & cg.bounds(hi=np.where(np.arange(7) > 1, 2.0, np.inf))
    with pytest.raises(InfeasibleError, match="node 'all'"):
        project_by_parts(y, capped & cg.exactly([0]), 1)


def in_integers(problem, seed):
    given = problem.y, problem.invariant, problem.level, problem.weight
    return project_by_parts(*given, integer=True, rng=cg.seeded(seed))


@for_each_seed(150)
def test_integers_have_the_least_summed_change(seed, short_curves):
    problem = random_cut(seed, 25, ("plain", "sparse")[seed % 2])
    tree, resolved = problem.tree, resolve_invariant(problem.invariant, len(problem.tree))
    got = in_integers(problem, seed)
    assert got.dtype == np.int64 and tree.is_consistent(got)
    assert resolved.satisfied_by(got, problem.y)
    lo, hi = np.ceil(resolved.lo), np.floor(resolved.hi)
    invariant = cg.consistent(tree) & cg.bounds(
        np.where(resolved.pinned, -np.inf, lo), np.where(resolved.pinned, np.inf, hi)
    )
    if resolved.pinned.any():
        invariant = invariant & cg.exactly(np.flatnonzero(resolved.pinned))
    real = project(problem.y, invariant, problem.weight)
    rng = cg.seeded(seed)
    whole = project(problem.y, problem.invariant, problem.weight, integer=True, rng=rng)
    change, least = np.abs(got - real).sum(), np.abs(whole - real).sum()
    # differences below 2^-20 a value are ties
    assert abs(change - least) <= len(tree) * 2.0**-20


def test_ties_between_parts_and_within_them_are_broken_at_random(short_curves):
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    y = np.array([3.0, 1.5, 1.5, 0.75, 0.75, 0.75, 0.75])
    invariant, source = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative(), cg.seeded(1)
    draws = 500
    drawn = np.array(
        [project_by_parts(y, invariant, 1, integer=True, rng=source) for _ in range(draws)]
    )
    assert set(map(tuple, drawn[:, 1:3].tolist())) == {(1, 2), (2, 1)}
    # by symmetry each mean is half its parent's; five standard deviations of a fair coin
    assert np.abs(drawn[:, 1:].mean(axis=0) - y[1:]).max() <= 5 * 0.5 / np.sqrt(draws)


def test_integers_that_cannot_be_exact_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    for pin in (0, 1, 3):
        y = np.where(np.arange(7) == pin, 2.5, 1.0)
        with pytest.raises(InfeasibleError, match="not an integer"):
            project_by_parts(y, cg.consistent(tree) & cg.exactly([pin]), 1, integer=True)
