"""TopDown on one forest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.domain.tree import Tree
from congenial.imaging.solvers.descent import joined, shares, words_for
from congenial.imaging.top_down import topdown
from congenial.invariants.written import (
    exactly,
    nonnegative,
    resolve_invariant,
)
from congenial.randomness import seeded, seeded_words
from support.projection_cases import problems

pytestmark = pytest.mark.kernels


def feasible(z, tree, y, invariant, tolerance):
    resolved = resolve_invariant(invariant, len(tree))
    assert np.abs(tree.roll_up(z[tree.leaves]) - z).max() <= tolerance
    assert (z >= resolved.lo - tolerance)[~resolved.pinned].all()
    assert (z <= resolved.hi + tolerance)[~resolved.pinned].all()
    assert np.abs(z - y)[resolved.pinned].max(initial=0.0) <= tolerance


@given(problems(whole=True, reach=50), st.integers(0, 2**32))
@settings(max_examples=80, deadline=None)
def test_topdown_is_feasible_and_integer(problem, seed):
    tree, y, invariant, _, _ = problem
    z = topdown(y, tree, invariant, rng=seeded(seed))
    assert z.dtype == np.int64 and tree.is_consistent(z)
    feasible(z, tree, y, invariant, 0.0)


def test_topdown_of_one_level_is_the_simplex_projection_rounded():
    tree = Tree.from_parents([-1, 0, 0, 0, 0])
    invariant = exactly("root") & nonnegative()
    y = np.array([10.0, 6.0, 5.0, -3.0, 0.5])
    # on the simplex: 5.5, 4.5, 0, 0; the half unit goes to either of the first two
    seen = {tuple(topdown(y, tree, invariant, rng=seeded(s)).tolist()) for s in range(40)}
    assert seen == {(10, 6, 4, 0, 0), (10, 5, 5, 0, 0)}


def test_topdown_respects_pins_on_lower_levels():
    # the first child must hold at least the 7 pinned under it, whatever its own noise
    tree = Tree.from_parents([-1, 0, 0, 1, 1])
    z = topdown([8, -20, 30, 7, 0], tree, exactly([0, 3]) & nonnegative(), rng=seeded(3))
    assert z.tolist() == [8, 7, 1, 7, 0]


@pytest.mark.parametrize(("first", "count"), [(0, 8), (0, 3), (5, 9), (3, 1), (6, 0)])
def test_the_bits_of_some_nodes_are_those_that_all_nodes_have(first, count):
    def read(word, number):
        return seeded_words(4, word, number)

    n = 17
    everything = shares(read, 0, n)
    assert np.array_equal(shares(read, first, count), everything[first : first + count])
    # the words of all but the last node, which shares its word with nobody
    assert np.array_equal(joined(everything[:-1]), read(0, words_for(n - 1)))
