"""Predicted costs, against the tables that are filled, and in words."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.kernels.numerics import laws
from congenial.sum_network.cost import Cost, bytes_text, forest_cost, time_text, work_text
from congenial.sum_network.forest import of_tree
from congenial.sum_network.weights import share_noise
from support.sum_networks import tables_of

OPEN = np.array([-np.inf]), np.array([np.inf])


def noise(forest, scale):
    return share_noise(
        laws.LAPLACE, np.full(forest.n, scale), OPEN, np.zeros(forest.n, dtype=bool), forest.n
    )


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("children", [2, 7, 50])
def test_entries_are_those_of_the_tables_that_a_draw_fills(scale, children):
    parents = [-1] + [0] * children + [1 + v // 3 for v in range(3 * children)]
    forest = of_tree(Tree.from_parents(parents))
    weights = noise(forest, scale)
    cost = forest_cost(forest, weights, shared=True, compose=False)
    filled = tables_of(forest, weights).table.size
    assert filled / 2 <= cost.entries <= 2 * filled
    apart = forest_cost(forest, weights, shared=False, compose=False)
    assert apart.entries > cost.entries
    assert apart.work > cost.work


def test_no_cost_is_stated_if_only_bounds_make_the_law_finite():
    forest = of_tree(Tree.from_parents([-1, 0, 0]))
    assert forest_cost(forest, noise(forest, np.inf), shared=True, compose=False) is None


def test_costs_read_in_units_that_fit():
    assert bytes_text(1023) == "1023 B"
    assert bytes_text(1024) == "1 KiB"
    assert bytes_text(3 * 2**20) == "3 MiB"
    assert bytes_text(2.0**41) == "2048 GiB"
    assert [time_text(w) for w in (1e7, 1e9, 1e10, 9e10, 6e12)] == [
        *("milliseconds", "less than a second", "seconds", "about a minute", "about 100 minutes"),
    ]
    assert work_text(1e10) == "1.0e+10 multiplications (seconds)"
    assert str(Cost(100.0, 1e3)) == (
        "1000 B (1.0e+02 table entries) and milliseconds (1.0e+03 multiplications)"
    )
