"""A tree whose tables are too large at once is drawn in parts, from the same law."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import UnsupportedError
from congenial.sum_network import families, tables
from congenial.sum_network.joined import fill_tree, part_messages, tree_in_parts
from support.bounded_trees import p_values
from support.goodness_of_fit import FAILS
from support.parted_trees import biased_parted, random_parted

TREE = cg.Tree.from_parents(
    [-1, 0, 0, *[1] * 2, *[2] * 3, *np.repeat(np.arange(3, 8), 2), *np.repeat(range(8, 18), 4)]
)
COUNTS = TREE.roll_up(np.arange(TREE.leaves.size) % 4)
OBEYING = cg.consistent(TREE) & cg.nonnegative() & cg.exactly([0])


@pytest.fixture
def parts(monkeypatch):
    """Let any tree be drawn in parts, which hold almost nothing at once."""
    monkeypatch.setattr(tree_in_parts, "_FEWEST", 0)
    monkeypatch.setattr(part_messages, "_ROOM", 100)


@pytest.fixture
def refused(monkeypatch):
    """Refuse tables of the whole tree, as for want of memory."""

    def fill(*_):
        raise UnsupportedError("the tables are too large.")

    monkeypatch.setattr(families, "fill_draws", fill)


@pytest.mark.parametrize("make", [lambda seed: random_parted(seed, 60), biased_parted])
def test_the_sum_of_all_weights_is_that_of_the_whole(make, parts):
    tried = 0
    for seed in range(60):
        _, x, whole, _ = make(seed)
        found = fill_tree(whole.forest, whole.own_weights(x), 1e-9)
        if found is None:
            continue
        tried += 1
        got = found.joined.tables.log_sum() + whole.log_mode
        assert found.joined.error <= 1e-9
        assert abs(got - whole.log_normalizer(x)) < found.joined.error + 1e-11, seed
    assert tried > 50


def test_draws_fit_every_marginal_law(parts, refused):
    drawn = cg.condition(cg.Additive(cg.DiscreteLaplace(3.0), TREE), OBEYING).sample(
        COUNTS, 5_000, cg.seeded(1)
    )
    assert TREE.is_consistent(drawn)
    assert drawn.min() >= 0
    for scale, fits in ((3.0, True), (3.9, False)):
        law = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), TREE), OBEYING, "exact")
        assert (min(p_values(drawn, law, COUNTS)) > FAILS) == fits


def test_small_trees_and_very_wide_noise_are_refused_as_before(refused):
    small = cg.condition(cg.Additive(cg.DiscreteLaplace(3.0), TREE), OBEYING)
    with pytest.raises(UnsupportedError, match="too large"):
        small.sample(COUNTS)


@pytest.mark.parametrize("scale", [1000.0])
def test_very_wide_noise_is_not_tried(scale, parts, refused):
    wide = cg.condition(cg.Additive(cg.DiscreteLaplace(scale), TREE), OBEYING)
    with pytest.raises(UnsupportedError, match="too large"):
        wide.sample(COUNTS)


def test_sums_that_are_no_tree_are_not_tried(parts):
    whole = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 4), cg.bounds(0, 9), "exact")
    assert fill_tree(whole.forest, whole.own_weights(np.arange(4)), 1e-9) is None


def test_tables_that_memory_does_not_hold_are_filled_in_parts(parts, monkeypatch):
    # for Gaussian noise there are no tables of families, which would fit
    x = TREE.roll_up(np.arange(40))  # few leaves have equal tables
    whole = cg.condition(cg.Additive(cg.DiscreteGaussian(3.0), TREE), OBEYING)
    monkeypatch.setattr(tables, "_MEMORY_LIMIT", 700)
    assert TREE.is_consistent(whole.sample(x, rng=cg.seeded(1)))
    monkeypatch.setattr(tree_in_parts, "_FEWEST", 1 << 17)
    with pytest.raises(UnsupportedError, match="of tables"):
        whole.sample(x, rng=cg.seeded(1))
