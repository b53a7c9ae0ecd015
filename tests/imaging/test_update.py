"""Imaged mechanisms: their law, their ties, their shapes, their speed and their claims."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.stats import chisquare

from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.closest import Projector, project
from congenial.imaging.solvers.problem import prepare
from congenial.imaging.solvers.two_pass import round_whole
from congenial.imaging.top_down import topdown
from congenial.imaging.update import image
from congenial.invariants.written import (
    at_least,
    consistent,
    exactly,
    nonnegative,
    resolve_invariant,
)
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.noise.gaussian import Gaussian
from congenial.noise.laplace import Laplace
from congenial.randomness import seeded
from support.projection_arrays import words_of

DRAWS = 4000
PAIR = Tree.from_parents([-1, 0, 0])
FLAT = Tree.from_parents([-1, 0, 0, 0])


def city(leaves, boroughs):
    """City, boroughs, zones, the zones dealt to boroughs unevenly, and counts with many zeros."""
    parents = np.concatenate(
        ([-1], np.zeros(boroughs, dtype=int), 1 + (np.arange(leaves) ** 2 // 7) % boroughs)
    )
    tree = Tree.from_parents(parents)
    counts = (np.arange(tree.leaves.size) * 7919) % 101
    return tree, tree.roll_up(np.where(counts < 40, 0, counts * counts))


def fit(draws, scale):
    """P-value of imaged noise at the first of two bins: (u1 - u2) / 2 under a pinned total."""
    a = np.exp(-1.0 / scale)
    u = np.arange(-60, 61)
    pmf = (1 - a) / (1 + a) * a ** np.abs(u)
    law = np.convolve(pmf, pmf)  # of u1 - u2, from -120 on
    seen = np.bincount(np.clip(np.rint(2 * draws).astype(int), -12, 12) + 12, minlength=25)
    inner = law[108:133].copy()
    inner[0], inner[-1] = law[:109].sum(), law[132:].sum()
    return chisquare(seen, inner / inner.sum() * seen.sum()).pvalue


def test_the_law_of_an_image_of_two_bins():
    x = np.array([50, 20, 30])
    imaged = image(Additive(DiscreteLaplace(2.0), PAIR), consistent(PAIR) & exactly("root"))
    draws = imaged.sample(x, DRAWS, seeded(11))
    assert (draws[:, 0] == 50).all() and (draws[:, 1] + draws[:, 2] == 50).all()
    assert fit(draws[:, 1] - 20, 2.0) > 1e-6
    assert fit(draws[:, 1] - 20, 2.0 * 1.3) < 1e-6
    assert fit(draws[:, 1] - 20, 2.0 * 0.7) < 1e-6


def even(counts):
    return chisquare(counts).pvalue


@pytest.mark.parametrize("method", ["l2", "l1", "topdown"])
def test_ties_do_not_go_by_position(method):
    # ten units, or one, to share among three children that are all alike
    source = seeded(5)
    invariant = consistent(FLAT) & exactly("root") & nonnegative()
    first = np.zeros(3)
    for _ in range(1500):
        y = [10.0, 3.0, 3.0, 3.0]
        if method == "topdown":
            z = topdown(y, FLAT, invariant, source)
        else:
            z = project(y, invariant, norm=method, integer=True, rng=source)
        assert sorted(z[1:].tolist()) == [3, 3, 4]
        first[np.argmax(z[1:])] += 1
    assert even(first) > 1e-6


def test_the_check_of_ties_sees_a_bias_of_position():
    resolved = resolve_invariant(consistent(FLAT) & exactly("root"), 4)
    projector = Projector(resolved, np.ones(4), "l2", True)
    links, sums = projector.forest
    task = prepare(links, resolved, sums, np.array([10.0, 3, 3, 3]), np.ones(4), integer=True)
    real = np.array([0.0, 1 / 3, 1 / 3, 1 / 3]) + np.array([1.0, 0, 0, 0])
    by_position = round_whole(task, real, words_of(np.arange(4)))
    assert by_position.tolist() == [1, 1, 0, 0]  # equal words: the first child always wins
    assert even([1500, 0, 0]) < 1e-6
    assert even([1500 / 3 * 1.3, 1500 / 3 * 0.85, 1500 / 3 * 0.85]) < 1e-6


def test_rounding_adds_no_bias_over_many_draws():
    tree, x = city(40, 4)
    mechanism = Additive(DiscreteLaplace(3.0), tree)
    invariant = consistent(tree) & exactly("root")
    real = image(mechanism, invariant).sample(x, 600, seeded(8))
    whole = image(mechanism, invariant, integer=True).sample(x, 600, seeded(9))
    for draws in (real, whole):
        error = draws - x
        spread = np.maximum(error.std(axis=0), 1e-12) / np.sqrt(600)
        assert np.abs(error.mean(axis=0))[1:].max() < 5.5 * spread[1:].max()


def test_measurements_weigh_one_over_their_variance():
    scales = np.array([np.inf, 1.0, 4.0])
    imaged = image(Additive(Laplace(scales), PAIR), consistent(PAIR))
    assert imaged.projector.weight == pytest.approx([0, 1, 1 / 16])
    x = PAIR.roll_up(np.array([5.0, 7.0]))
    z = imaged.sample(x, rng=seeded(2))
    assert np.isfinite(z).all() and z[0] == pytest.approx(z[1] + z[2])


@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0, 10.0])
def test_variances_are_those_of_the_laws(scale):
    u = np.arange(-400.0, 401.0)
    for law in (DiscreteLaplace(scale), DiscreteGaussian(scale)):
        pmf = np.exp(law.log_pmf(u, np.full(u.size, scale)))
        assert law.variances(law.spread.reshape(1))[0] == pytest.approx(
            (pmf * u**2).sum(), rel=1e-9
        )
    assert Laplace(scale).variances(np.full(2, scale)) == pytest.approx([2 * scale**2] * 2)
    assert Gaussian([scale, np.inf]).variances(np.array([scale, np.inf]))[1] == np.inf


@pytest.mark.parametrize("scale", [1e-3, 1e-2, 1e6])
def test_scales_far_apart(scale):
    tree, x = city(30, 3)
    scales = np.where(tree.level == 2, scale, 1.0)
    invariant = consistent(tree) & exactly("root") & nonnegative()
    imaged = image(Additive(DiscreteLaplace(scales), tree), invariant, integer=True)
    assert tree.is_consistent(imaged.sample(x, rng=seeded(4)))


def test_a_hundred_thousand_leaves_in_seconds():
    tree, x = city(100_000, 300)
    invariant = consistent(tree) & exactly("root") & nonnegative()
    imaged = image(Additive(DiscreteLaplace(5.0), tree), invariant, integer=True)
    imaged.sample(x, rng=seeded(1))
    start = time.process_time()  # which a busy machine hardly lengthens
    z = imaged.sample(x, rng=seeded(2))
    taken = time.process_time() - start
    assert tree.is_consistent(z) and (z >= 0).all() and z[0] == x[0]
    assert taken < 5.0  # about 0.2 s


def test_unsupported_cases_are_refused():
    mechanism = Additive(DiscreteLaplace(1.0), FLAT)
    with pytest.raises(UnsupportedError, match="at_least"):
        image(mechanism, at_least([0, 1, 1, 0], 3), norm="l1")
    with pytest.raises(ArgumentError, match="'l7'"):
        image(mechanism, consistent(FLAT), norm="l7")
    with pytest.raises(ArgumentError, match="mechanism"):
        image(FLAT, consistent(FLAT))
    with pytest.raises(ArgumentError, match="roll_up") as caught:
        image(mechanism, consistent(FLAT)).sample([771, 1, 1, 1])
    assert "771" not in str(caught.value)
