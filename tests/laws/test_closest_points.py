"""Closest points of thousands of small random problems, against least-distance programming.

The reference turns a problem into nonnegative least squares (Lawson and Hanson 1974, chapter 23):
none of the package's solvers finds its points that way.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

import congenial as cg
from congenial.errors import InfeasibleError
from congenial.imaging.closest import project
from congenial.imaging.solvers.dense import sum_rows
from congenial.imaging.solvers.general import solve_general
from congenial.imaging.solvers.sparse import solve_sparse
from congenial.invariants.written import (
    at_least,
    bounds,
    consistent,
    exactly,
    linear,
    resolve_invariant,
)

pytestmark = pytest.mark.kernels


def closest(resolved, y, weight):
    """The closest point; None where hardly any other is allowed. Every weight is above 0."""
    equal, value = sum_rows(resolved)
    rows, least = resolved.inequalities
    eye, root = np.eye(resolved.n), np.sqrt(weight)
    low, high = (np.isfinite(end) & ~resolved.pinned for end in (resolved.lo, resolved.hi))
    equal = np.vstack((equal, eye[resolved.pinned])) / root
    gap = np.concatenate((value, y[resolved.pinned])) - equal @ (root * y)
    rows = np.vstack((rows, eye[low], -eye[high])) / root
    least = np.concatenate((least, resolved.lo[low], -resolved.hi[high])) - rows @ (root * y)
    # moves are relative to the weights' roots: those that equalities ask for, and free ones
    start = np.linalg.lstsq(equal, gap, rcond=1e-10)[0]
    _, singular, right = np.linalg.svd(equal)
    free = right[(singular > 1e-10).sum() :].T
    inside, short = rows @ free, least - rows @ start
    moved = np.abs(inside).max(axis=1, initial=0.0) > 1e-9  # by anything but rounding
    inside, short = inside[moved], short[moved]
    unit = short.max(initial=0.0)
    if unit > 1e-12 * np.abs(y).max() and free.size:
        system, target = np.vstack((inside.T, short / unit)), np.zeros(free.shape[1] + 1)
        target[-1] = 1.0
        off = system @ nnls(system, target, maxiter=100 * short.size)[0] - target
        if abs(off[-1]) < 1e-9:
            return None
        start = start - unit * free @ (off[:-1] / off[-1])
        # where a single point is left, rounding decides whether one is seen
        if (least - rows @ start).max() > 1e-9 * np.abs(y).max():
            return None
    return y + start / root


def crossing(seed, largest=5):
    """Rows that cross, inequalities, bounds and pins that an x satisfies, and values near it."""
    draw = np.random.default_rng([5, seed])
    n, size = int(draw.integers(2, 9)), 10.0 ** draw.integers(0, largest + 1)
    x = np.rint(draw.uniform(0.0, 5.0, n) * size)
    a = draw.integers(-1, 2, (int(draw.integers(1, 4)), n))
    upper = np.where(draw.random(n) < 0.3, x + np.rint(size * draw.random(n)), np.inf)
    invariant = linear(a, a @ x)
    if seed % 4:
        invariant &= bounds(0.0, upper)
    if seed % 2:
        b = draw.integers(-1, 2, (2, n))
        invariant &= at_least(b, b @ x - np.rint(size * draw.uniform(0.0, 2.0, 2)))
    return x, size, invariant, n, draw


def tree(seed):
    """A tree with bounds on any node."""
    draw = np.random.default_rng([6, seed])
    n, size = int(draw.integers(2, 12)), 10.0 ** draw.integers(0, 6)
    domain = cg.Tree.from_parents([-1, *(int(draw.integers(0, i)) for i in range(1, n))])
    x = domain.roll_up(np.rint(draw.uniform(0.0, 5.0, domain.leaves.size) * size))
    invariant = consistent(domain)
    ends = [size * np.rint(2.0 * draw.exponential(1.0, n)) for _ in range(2)]
    kept = draw.random((2, n)) < (0.0, 0.3, 0.8)[seed % 3]
    invariant &= bounds(
        np.where(kept[0], x - ends[0], -np.inf), np.where(kept[1], x + ends[1], np.inf)
    )
    return x, size, invariant, n, draw


def noisy(made, lightest=-1.0):
    x, size, invariant, n, draw = made
    pins = np.flatnonzero(draw.random(n) < 0.15)
    y = x + size * draw.laplace(0.0, 1.0, n) * 10.0 ** draw.uniform(-1.0, 1.0)
    if pins.size:
        invariant, y[pins] = invariant & exactly(pins), x[pins]
    return y, invariant, 10.0 ** draw.uniform(lightest, 0.0, n), resolve_invariant(invariant, n)


@pytest.mark.parametrize("kind", [crossing, tree])
def test_closest_points_of_thousands_of_problems(kind):
    moved = 0
    for seed in range(1500):
        y, invariant, weight, resolved = noisy(kind(seed))
        weight /= weight.max()
        true = closest(resolved, y, weight)
        if true is None:
            continue
        # numbers are rounded, and moves are proved to a billionth of the largest
        far, size = np.abs(true - y).max(), np.abs(y).max()
        close = 1e-8 * far + 1e-12 * size
        assert np.abs(project(y, invariant, weights=weight) - true).max() <= close, seed
        if kind is crossing and seed % 3 == 0:
            # a distance is proved, which is the square of a move, of weights of at least a tenth
            wide = close + np.sqrt(1e-8 * max(far, 1.0))
            assert np.abs(solve_general(resolved, y, weight) - true).max() <= close, seed
            assert np.abs(solve_sparse(resolved, y, weight) - true).max() <= wide, seed
        moved += far > 1e-6 * size
    assert moved > 1000


def test_the_sparse_solver_finds_far_points_of_light_weights():
    moved = 0
    for seed in range(300):
        y, _, weight, resolved = noisy(crossing(seed, 7), -6.0)
        weight /= weight.max()
        true = closest(resolved, y, weight)
        if true is None:
            continue
        far = max(np.abs(true - y).max(), 1.0)
        # the sparse solver proves the weighted square of a move, to a billionth
        off = np.sqrt(weight) * (solve_sparse(resolved, y, weight) - true)
        assert np.abs(off).max() <= np.sqrt(2e-9) * far, seed
        moved += far > 1e5
    assert moved > 100


def every_integer(resolved, y):
    """All integers that satisfy the conditions, shape (k, n)."""
    lo, hi = (np.where(resolved.pinned, y, bound) for bound in (resolved.lo, resolved.hi))
    sides = [np.arange(np.ceil(a), np.floor(b) + 1.0) for a, b in zip(lo, hi, strict=True)]
    every = np.array(list(itertools.product(*sides))).reshape(-1, resolved.n)
    equal, value = sum_rows(resolved)
    rows, least = resolved.inequalities
    kept = (every @ equal.T == value).all(axis=1) & (every @ rows.T >= least).all(axis=1)
    return every[kept]


def test_integers_of_a_thousand_boxes_are_of_least_change():
    none = moved = 0
    for seed in range(1000):
        draw = np.random.default_rng([7, seed])
        n = int(draw.integers(2, 6))
        x = draw.integers(0, 4, n)
        if seed % 2:
            domain = cg.Tree.from_parents([-1, *(int(draw.integers(0, i)) for i in range(1, n))])
            x = domain.roll_up(draw.integers(0, 3, domain.leaves.size))
            invariant = consistent(domain)
        else:
            a = draw.integers(-2, 3, (2, n))
            invariant = linear(a, a @ x) & at_least(a[:1, ::-1], a[:1, ::-1] @ x - 1)
        ends = draw.uniform(0.0, 2.5, (2, n))
        lo = x - ends[0] + (seed % 5 == 0)
        invariant &= bounds(lo, np.maximum(x + ends[1], np.ceil(lo)))
        resolved = resolve_invariant(invariant, n)
        y = x + draw.laplace(0.0, 2.0, n)
        every = every_integer(resolved, y)
        if not every.size:
            with pytest.raises(InfeasibleError):
                project(y, invariant, integer=True, rng=cg.seeded(seed))
            none += 1
            continue
        z = project(y, invariant)
        whole = project(y, invariant, integer=True, rng=cg.seeded(seed))
        assert (every == whole).all(axis=1).any(), seed
        change = np.abs(every - z).sum(axis=1)
        # parts of less than 2^-20 count as none, ties are broken by as much
        assert np.abs(whole - z).sum() <= change.min() + 2.0**-19 * n, seed
        moved += np.abs(whole - z).sum() > 0.1
    assert none > 20
    assert moved > 300
