"""The first two calls of a sum network: what is refused before and while tables are filled."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial import sum_network
from congenial.errors import InfeasibleError, UnsupportedError

pytestmark = pytest.mark.kernels


def weights(scale, lo, hi):
    kind = cg.DiscreteLaplace(1.0).kind
    fixed = np.zeros(3, dtype=np.bool_)
    return sum_network.share_noise(kind, scale, (lo, hi), fixed, 3)


FOREST = sum_network.of_tree(cg.Tree.from_parents([-1, 0, 0]))
FREE = np.full(3, np.inf)


def test_a_law_that_cannot_be_normalised_is_refused():
    improper = weights(FREE, -FREE, FREE)
    assert not sum_network.is_proper(FOREST, improper)
    with pytest.raises(UnsupportedError, match="does not exist"):
        sum_network.compile(FOREST, improper)


def test_sums_that_bounds_rule_out_are_refused():
    ruled_out = weights(np.ones(3), np.array([9.0, 0.0, 0.0]), np.array([9.0, 2.0, 2.0]))
    with pytest.raises(InfeasibleError, match="within the bounds"):
        sum_network.compile(FOREST, ruled_out)
