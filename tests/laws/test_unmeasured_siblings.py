"""Siblings that are not measured but bounded on one side: drawn as one composition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.errors import CongenialError
from congenial.sum_network import exact
from support.conditioning_cases import INF, Case
from support.enumeration import enumerate_law
from support.goodness_of_fit import FAILS, fit
from support.tree_cases import make

DRAWS = 20_000
CASES = {
    "counted upwards": make((-1, 0, 0, 0), [0.7, INF, INF, INF], [1, 0, 2], lo=0),
    "counted downwards": make((-1, 0, 0, 0), [0.7, INF, INF, INF], [-1, 0, -2], hi=0),
    "pinned total": make((-1, 0, 0, 0), [1.0, INF, INF, INF], [1, 0, 2], pinned=(0,), lo=0),
    "bounds that differ": make(
        (-1, 0, 0, 0), [0.7, INF, INF, INF], [1, 0, 2], lo=np.array([-INF, -1, 0, -2])
    ),
    "beside one measured": make(
        (-1, 0, 0, 0, 0), [0.6, INF, INF, 0.5, INF], [1, 0, 2, 1], pinned=(0,), lo=0
    ),
    "a family and one alone": make(
        (-1, 0, 0, 1, 1, 2), [INF, 0.5, 0.4, INF, INF, INF], [1, 0, 2], pinned=(0,), lo=0
    ),
    "gaussian": make((-1, 0, 0, 0), [0.9, INF, INF, INF], [1, 0, 2], lo=0, kind="gaussian"),
}


@pytest.mark.parametrize("name", CASES)
def test_draws_follow_the_law_and_fail_at_a_wrong_scale(name):
    one = CASES[name]
    conditioned = one.condition()
    tables = conditioned._draws_of(one.x)
    assert tables.network.moved.size >= 2
    draws = conditioned.sample(one.x, size=DRAWS, rng=cg.seeded(20220202))
    assert fit(draws, one.law(), range(one.n)) > FAILS
    finite = np.isfinite(one.scales)
    finite[list(one.pinned)] = False
    if finite.any():
        wrong = Case(one.kind, one.scales * 1.3, *(one.x, one.pinned, one.lo, one.hi, one.parents))
        assert fit(draws, wrong.law(), range(one.n)) < FAILS


def test_the_test_fails_for_a_biased_composition():
    one = CASES["pinned total"]
    draws = one.condition().sample(one.x, size=DRAWS, rng=cg.seeded(20220202))
    # the law of leaves that are measured after all, however widely
    other = enumerate_law(
        one.all_rows, one.kind, np.array([1.0, 9.0, 9.0, 9.0]), one.x, one.pinned, one.lo, one.hi
    )
    assert fit(draws, other, range(one.n)) < FAILS


@st.composite
def bounded_trees(draw):
    """Two levels below a root, leaves bounded on one side and mostly not measured."""
    fans = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    parents = [-1, *[0] * len(fans)]
    for i, fan in enumerate(fans):
        parents += [1 + i] * fan
    n = len(parents)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(rng.poisson(draw(st.sampled_from((0.5, 4.0, 60.0))), tree.leaves.size))
    scales = rng.choice([0.5, 2.0, 5.0], n)
    scales[rng.random(n) < np.where(tree.is_leaf, 0.7, 0.2)] = INF
    up = draw(st.booleans())
    slack = np.where(tree.is_leaf, rng.integers(0, 4, n), INF)
    lo, hi = (x - slack, INF) if up else (-INF, x + slack)
    kind = draw(st.sampled_from(("laplace", "gaussian")))
    return Case(kind, scales, x, (0,) if draw(st.booleans()) else (), lo, hi, tuple(parents))


@given(bounded_trees())
@settings(max_examples=80, derandomize=True, deadline=None)
def test_the_mass_of_envelopes_is_hardly_above_the_normalizer(one):
    try:
        conditioned = one.condition()
        plain = conditioned._prepare(one.x)
        envelopes = conditioned.weighed_envelopes(one.x)
    except CongenialError:
        assume(False)
    low, high = (float(end.ln()) for end in exact.mass(envelopes)(0))
    assert plain.log_sum() - 1e-8 < low <= high < plain.log_sum() + 1e-3
    draws = conditioned.sample(one.x, size=20, rng=cg.seeded(1))
    assert conditioned._satisfied_by(draws, one.x).all()


def test_tables_do_not_grow_with_the_counts():
    tree = cg.Tree.from_parents([-1, *[0] * 5, *np.repeat(np.arange(1, 6), 20)])
    scales = np.where(tree.level == 1, 2.0, INF)
    invariant = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), invariant)
    leaves = np.random.default_rng(3).poisson(30.0, 100)
    sizes = []
    for counts in (leaves, 10**7 * leaves):
        x = tree.roll_up(counts)
        sizes.append(conditioned._draws_of(x).table.size)
        draws = conditioned.sample(x, size=10, rng=cg.seeded(1))
        assert conditioned._satisfied_by(draws, x).all()
        assert np.unique(draws[:, tree.leaves[0]]).size > 5
    assert sizes[1] <= 1.1 * sizes[0]
    assert sizes[0] < 4000
