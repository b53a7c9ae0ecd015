"""A mechanism whose conditional law does not exist is refused when it is conditioned.

The law exists unless counts that are not measured can go to infinity together, which linear
programming decides: along a direction that keeps all sums, pins and bounds.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import congenial as cg
from congenial.errors import ArgumentError, PrivacyError, UnsupportedError
from support.conditioning_cases import INF

REFUSED = "the conditional law does not exist"
CHAIN = cg.Tree.from_parents([-1, 0, 1, 2, 2, 4, 4])
OPEN = np.array([1.0, 1.0, 1.0, 1.0, 1.0, INF, INF])


def endless(rows: np.ndarray, held: np.ndarray, lo: np.ndarray, hi: np.ndarray) -> bool:
    """Whether some direction other than 0 keeps what is imposed and costs nothing."""
    down = np.where(held | np.isfinite(lo), 0.0, -1.0)
    up = np.where(held | np.isfinite(hi), 0.0, 1.0)
    ends = list(zip(down, up, strict=True))
    best = [
        linprog(sign * np.eye(lo.size)[v], A_eq=rows, b_eq=np.zeros(len(rows)), bounds=ends).fun
        for v in np.flatnonzero(down < up)
        for sign in (1.0, -1.0)
    ]
    return min(best, default=0.0) < -1e-6


def tree_rows(tree: cg.Tree) -> np.ndarray:
    inner = np.flatnonzero(~tree.is_leaf)
    return np.array([np.eye(len(tree))[v] - (tree.parents == v) for v in inner])


@pytest.mark.parametrize("kind", [cg.DiscreteLaplace, cg.DiscreteGaussian])
def test_random_trees_are_refused_where_no_law_exists(kind):
    rng = np.random.default_rng(1908)
    refused = 0
    for _ in range(250):
        n = int(rng.integers(3, 9))
        tree = cg.Tree.from_parents([-1] + [int(rng.integers(0, v)) for v in range(1, n)])
        scales = rng.choice([1.0, INF], size=n)
        pins = np.flatnonzero(rng.random(n) < 0.2)
        lo = np.where(rng.random(n) < 0.4, 0.0, -INF)
        hi = np.where(rng.random(n) < 0.2, 50.0, INF)
        invariant = cg.consistent(tree) & cg.bounds(lo, hi)
        held = np.isfinite(scales)
        if pins.size:
            invariant = invariant & cg.exactly(pins)
            held[pins] = True
        mechanism = cg.Additive(kind(scales), tree)
        if endless(tree_rows(tree), held, lo, hi):
            refused += 1
            with pytest.raises(UnsupportedError, match=REFUSED):
                cg.condition(mechanism, invariant)
            continue
        made = cg.condition(mechanism, invariant)
        x = tree.roll_up(rng.integers(0, 5, size=tree.leaves.size))
        assert np.isfinite(made.log_normalizer(x))
    assert 50 < refused < 200


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("kind", [cg.DiscreteLaplace, cg.DiscreteGaussian, cg.Gaussian, cg.Laplace])
def test_every_sampler_refuses_it(kind, bounded):
    """Two leaves that are not measured, whose parent is: one may grow as the other falls."""
    part = cg.consistent(CHAIN)
    if bounded:
        part = part & cg.bounds(lo=[-INF, -INF, -INF, 0, -INF, -INF, -INF])
    mechanism = cg.Additive(kind(OPEN), CHAIN)
    for sampler in ("auto", "exact", "gibbs", "tree-mh"):
        with pytest.raises(UnsupportedError):
            cg.condition(mechanism, part, sampler)
    wide = cg.conditioning.Proposal(scale=np.where(np.isfinite(OPEN), OPEN, 1.0))
    # under bounds, for studies alone
    with pytest.raises(PrivacyError if bounded else UnsupportedError):
        cg.condition(mechanism, part, "independence", proposal=wide).guarantee("add-remove")
    for sampler in ("rejection", "perfect"):
        with pytest.raises(ArgumentError, match="narrower than the noise"):
            cg.condition(mechanism, part, sampler, proposal=wide)


def test_mixtures_unions_and_grids_refuse_it_too():
    part = cg.consistent(CHAIN) & cg.bounds(lo=[-INF, -INF, -INF, 0, -INF, -INF, -INF])
    open_, whole = (cg.Additive(cg.DiscreteLaplace(s), CHAIN) for s in (OPEN, 1.0))
    with pytest.raises(UnsupportedError, match=REFUSED):
        cg.condition(cg.mixture([whole, open_], [0.5, 0.5]), part)
    with pytest.raises(UnsupportedError, match=REFUSED):
        cg.condition(cg.Additive(cg.DiscreteLaplace(OPEN, granularity=0.5), CHAIN), part)
    # the second alternative leaves one leaf open, and nothing holds it
    low = cg.consistent(CHAIN) & cg.bounds(hi=[INF, INF, INF, 2, INF, INF, INF], lo=[0] * 7)
    high = cg.consistent(CHAIN) & cg.bounds(lo=[-INF, -INF, -INF, 3, -INF, -INF, -INF])
    with pytest.raises(UnsupportedError, match=REFUSED):
        cg.condition(open_, low | high)
    assert cg.condition(open_, low).guarantee("add-remove").epsilon > 0


def test_tables_whose_margins_cross_refuse_it():
    """A square of cells that are not measured, of which only the margins are."""
    rows = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    matrix = np.hstack((rows, -np.eye(4, dtype=int)))
    scales = np.array([INF] * 4 + [1.0] * 4)
    mechanism = cg.Additive(cg.DiscreteLaplace(scales), 8)
    with pytest.raises(UnsupportedError, match=REFUSED):
        cg.condition(mechanism, cg.linear(matrix, np.zeros(4)))
    held = cg.linear(matrix, np.zeros(4)) & cg.bounds(lo=[0, *[-INF] * 7], hi=[9, *[INF] * 7])
    made = cg.condition(mechanism, held)
    x = np.array([1, 1, 1, 1, 2, 2, 2, 2])
    assert np.isfinite(made.log_normalizer(x))
