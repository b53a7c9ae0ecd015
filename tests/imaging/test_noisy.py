"""Draws of an update: noise first, then each vector moved."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.accounting.guarantee import imaged_guarantee
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, InvariantError
from congenial.imaging.top_down import topdown_image
from congenial.imaging.update import image
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    linear,
    nonnegative,
    resolve_invariant,
)
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.noise.laplace import Laplace
from congenial.randomness import seeded


def city(leaves, boroughs):
    """City, boroughs, zones, the zones dealt to boroughs unevenly, and counts with many zeros."""
    parents = np.concatenate(
        ([-1], np.zeros(boroughs, dtype=int), 1 + (np.arange(leaves) ** 2 // 7) % boroughs)
    )
    tree = Tree.from_parents(parents)
    counts = (np.arange(tree.leaves.size) * 7919) % 101
    return tree, tree.roll_up(np.where(counts < 40, 0, counts * counts))


@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("integer", [False, True])
def test_every_draw_is_consistent(norm, integer):
    tree, x = city(263, 6)
    invariant = consistent(tree) & exactly("root") & nonnegative()
    imaged = image(Additive(DiscreteLaplace(4.0), tree), invariant, norm, integer)
    draws = imaged.sample(x, 5, seeded(1))
    assert draws.shape == (5, 270) and draws.dtype == (np.int64 if integer else np.float64)
    assert imaged.sample(x, rng=seeded(1)).shape == (270,)
    assert imaged.sample(x, 0).shape == (0, 270)
    assert (draws >= 0).all() and (draws[:, 0] == x[0]).all()
    off = np.abs(tree.roll_up(draws[:, tree.leaves]) - draws).max()
    assert off == 0 if integer else off < 1e-9 * x[0]
    assert np.array_equal(draws, imaged.sample(x, 5, seeded(1)))
    assert not np.array_equal(draws[0], draws[1])


def test_the_guarantee_is_that_of_the_noise():
    tree, _ = city(30, 3)
    mechanism = Additive(DiscreteLaplace(4.0), tree)
    invariant = consistent(tree) & exactly("root") & nonnegative()
    imaged = image(mechanism, invariant, integer=True)
    found = imaged.guarantee("substitute")
    assert found.epsilon == pytest.approx(4 / 4.0)  # two zones and two boroughs change by one
    assert found.gamma == 0.0 and found.unprotected
    resolved = resolve_invariant(invariant, len(tree), tree)
    assert found == imaged_guarantee(mechanism, resolved, "substitute", sampler_error=0.0)
    assert found.sampler_error == found.delta == 0.0  # the noise has its law exactly
    with pytest.raises(EmptyNeighbourhoodError):
        imaged.guarantee("add-remove")
    text = imaged.explain()
    assert "imaging" in text and "discrete-laplace" in text and "L2" in text


def test_a_vector_with_one_public_total():
    imaged = image(
        Additive(DiscreteLaplace(2.0), 3), linear([1, 1, 1], 9) & bounds(0, 7), integer=True
    )
    draws = imaged.sample([4, 5, 0], 50, seeded(1))
    assert (draws.sum(axis=1) == 9).all() and draws.min() >= 0 and draws.max() <= 7


def test_real_data_add_up_up_to_rounding():
    tree = Tree.from_parents([-1, 0, 0])
    imaged = image(Additive(Laplace(1.0), tree), consistent(tree), "l2")
    imaged.measure([3.0 + 1e-12, 1.25, 1.75], rng=seeded(1))
    with pytest.raises(ArgumentError, match="does not add up"):
        imaged.measure([3.0 + 1e-6, 1.25, 1.75], rng=seeded(1))


@pytest.mark.parametrize("make", [image, topdown_image])
@pytest.mark.parametrize(("zero", "first"), [(["all", "a"], "all"), (["a"], "all/a")])
def test_an_exact_count_given_as_zero_over_large_measurements_is_refused(make, zero, first):
    """Otherwise every count below it would be 0."""
    tree = Tree.from_paths(["all/a/1", "all/a/2", "all/b/3"])
    mechanism = Additive(DiscreteLaplace(2.0), tree)
    known = consistent(tree) & exactly(["all", "a"])
    y = np.array(tree.roll_up([300, 40, 500]))
    y[[tree.find(name) for name in zero]] = 0
    with pytest.raises(InvariantError, match=f"y is 0 at node '{first}', which is published"):
        make(mechanism, known & nonnegative()).apply(y, seeded(1))
    if make is image:  # counts that may be negative need not be 0
        assert image(mechanism, known).apply(y, seeded(1)).any()
    true = np.array(tree.roll_up([0, 0, 500]))
    assert make(mechanism, known & nonnegative()).sample(true, rng=seeded(2))[1] == 0
