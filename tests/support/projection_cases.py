"""Random problems of projection on trees."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st

from congenial.domain.tree import Tree
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    nonnegative,
    resolve_invariant,
)

WEIGHTS = (0.0, 1e-3, 0.5, 1.0, 1.0, 1.0, 7.3, 1e3)


@st.composite
def forests(draw, most=9):
    """A tree in scrambled order, often of several levels; sometimes several roots."""
    n = draw(st.integers(1, most))
    first = [-1 if draw(st.integers(0, 5)) == 0 else 0 for _ in range(n)]
    parents = [-1] + [draw(st.integers(first[i], i - 1)) for i in range(1, n)]
    order = draw(st.permutations(range(n)))
    place = {v: i for i, v in enumerate(order)}
    return Tree.from_parents([-1 if parents[v] < 0 else place[parents[v]] for v in order])


@st.composite
def problems(draw, most=9, reach=30, whole=False, weights=WEIGHTS):
    """Noisy values, an invariant that some x satisfies, weights, and that x."""
    tree = draw(forests(most))
    n = len(tree)
    x = tree.roll_up(np.array([draw(st.integers(0, reach)) for _ in tree.leaves], dtype=np.int64))
    number = st.integers(-reach, reach) if whole else st.floats(-reach, reach)
    y = x + np.array([draw(number) for _ in range(n)])
    pinned = np.array([draw(st.integers(0, 4)) == 0 for _ in range(n)])
    y = np.where(pinned, x, y)
    assume(not pinned[tree.roots].all() or x.any())  # refused where y is large below
    slack = st.sampled_from((0.0, 1.0, 2.5, 10.0, np.inf, np.inf, np.inf))
    lo = x - np.array([draw(slack) for _ in range(n)])
    hi = x + np.array([draw(slack) for _ in range(n)])
    invariant = consistent(tree) & bounds(lo, hi)
    if pinned.any():
        invariant = invariant & exactly(np.flatnonzero(pinned))
    if draw(st.booleans()):
        invariant = invariant & nonnegative()
    weight = np.array([draw(st.sampled_from(weights)) for _ in range(n)])
    return tree, y, invariant, weight, x


def incidence(tree):
    """Matrix A with ``A @ leaves = all nodes``."""
    return np.array([tree.roll_up(row) for row in np.eye(tree.leaves.size)]).T


def feasible(z, tree, y, invariant, tolerance):
    resolved = resolve_invariant(invariant, len(tree))
    assert np.abs(tree.roll_up(z[tree.leaves]) - z).max() <= tolerance
    assert (z >= resolved.lo - tolerance)[~resolved.pinned].all()
    assert (z <= resolved.hi + tolerance)[~resolved.pinned].all()
    assert np.abs(z - y)[resolved.pinned].max(initial=0.0) <= tolerance


def integer_points(tree, y, invariant, radius, around):
    """Every integer point of the invariant whose leaves lie within `radius` of `around`."""
    resolved = resolve_invariant(invariant, len(tree))
    lo, hi = np.where(resolved.pinned, y, resolved.lo), np.where(resolved.pinned, y, resolved.hi)
    steps = range(-radius, radius + 1)
    grid = np.array(list(itertools.product(steps, repeat=tree.leaves.size)))
    z = tree.roll_up(grid + np.rint(around[tree.leaves]).astype(np.int64))
    return z[((z >= lo) & (z <= hi)).all(axis=1)]
