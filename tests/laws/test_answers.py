"""Every conditional mechanism has every method of its law, or refuses with a remedy."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, CongenialError, UnsupportedError
from support.conditioning_cases import LAWS
from support.enumeration import enumerate_law, rows_of
from support.sum_networks import margins

BINARY = (-1, 0, 0, 1, 1)
TREE = cg.Tree.from_parents(BINARY)
X = TREE.roll_up(np.array([3, 1, 2]))
SQUARE = np.array([1, 2, 0, 0, 3, 1, 2, 2, 1])
RINGS = margins(3, 3)
LOW = cg.bounds([-np.inf] * 4 + [0.0], [np.inf] * 4 + [0.0])
HIGH = cg.bounds([-np.inf] * 4 + [0.5])


def mixed(step=1.0):
    return cg.mixture(
        [cg.Additive(cg.DiscreteLaplace(s * step, step), TREE) for s in (0.4, 0.7)], [0.3, 0.7]
    )


def conditioned(way):
    """The mechanism of a name, with data that satisfy it."""
    step = 0.25 if "grid" in way else 1.0
    noise = cg.DiscreteLaplace(0.6 * step, step)
    on_tree, on_table = cg.Additive(noise, TREE), cg.Additive(noise, 9)
    sums = cg.linear(RINGS, step * (RINGS @ SQUARE))
    real = {"Gaussian": cg.Gaussian(1.0), "Laplace": cg.Laplace(1.0)}
    if way in real:
        return cg.condition(cg.Additive(real[way], TREE), cg.consistent(TREE)), X
    if way.startswith("cut set"):
        return cg.condition(on_table, sums), step * SQUARE
    if way.startswith("chains"):
        return cg.condition(on_table, sums, "gibbs"), step * SQUARE
    if way.startswith("mixture"):
        return cg.condition(mixed(step), cg.consistent(TREE)), step * X
    if way.startswith("union"):
        tree = cg.consistent(TREE)
        return cg.condition(on_tree, (tree & LOW) | (tree & HIGH)), step * X
    invariant = cg.consistent(TREE)
    if "bounds" in way:
        invariant = invariant & cg.nonnegative()
    return cg.condition(on_tree, invariant), step * X


INTEGER = ("forest", "forest, bounds", "cut set", "mixture", "union")
CHAINS = ("chains", "chains, grid", "Laplace")
EXACT = (*INTEGER, *(f"{way}, grid" for way in INTEGER), "Gaussian")
QUESTIONS = {
    "log_normalizer": lambda k, x: k.log_normalizer(x),
    "log_prob": lambda k, x: k.log_prob(x, x),
    "marginal": lambda k, x: k.marginal(1, x),
    "joint": lambda k, x: k.joint([1, 4], x),
    "interval": lambda k, x: k.interval(1, 0.1),
}


@pytest.mark.parametrize("way", EXACT)
def test_exact_samplers_have_every_method_of_the_law(way):
    known, x = conditioned(way)
    draws = known.sample(x, 7, cg.seeded(1))
    assert draws.shape == (7, x.size)
    assert known.sample(x, rng=cg.seeded(1)).shape == (x.size,)
    assert np.isfinite(known.log_prob(draws, x)).all()
    assert known.log_prob(x, x) == pytest.approx(known.log_prob(draws[:1] * 0 + x, x)[0])
    assert known.log_normalizer(x) < 1.0
    values, _ = known.joint([1, 4], x)
    if way == "Gaussian":
        np.testing.assert_array_equal(values, x[[1, 4]])
        assert known.error_bound == 1.0  # floating-point noise is not certified
    else:
        assert all(v.dtype == draws.dtype for v in values)
        assert known.error_bound == 0.0
    told = known.explain()
    assert told[0].islower()
    assert told.endswith(".")
    bounded = "bounds" in way or way.startswith("union")
    if bounded:
        with pytest.raises(UnsupportedError, match=r"use marginal\(\)"):
            known.interval(1)
    else:
        lo, hi = known.interval(1, 0.001)
        assert lo == -hi < 0


@pytest.mark.parametrize("way", CHAINS)
def test_chains_draw_for_studies_and_refuse_questions_about_the_law(way):
    chained, x = conditioned(way)
    draw, info = chained.run(x, 20, 2, cg.seeded(3))
    assert draw.values.shape == (2, 20, x.size)
    assert not info.certified
    assert chained.sample(x, 5, cg.seeded(3)).shape == (5, x.size)
    assert chained.error_bound == 1.0
    assert "Not certified" in chained.explain()
    for ask in QUESTIONS.values():
        with pytest.raises(UnsupportedError) as told:
            ask(chained, x)
        assert str(told.value).endswith(".")
        assert "\n" not in str(told.value)


def test_chains_on_a_grid_are_those_of_its_units():
    on_grid, x = conditioned("chains, grid")
    whole, counts = conditioned("chains")
    (a, about_a), (b, about_b) = (
        k.run(v, 30, 2, cg.seeded(4)) for k, v in ((on_grid, x), (whole, counts))
    )
    np.testing.assert_array_equal(a.values, 0.25 * b.values)
    np.testing.assert_array_equal(about_a.r_hat, about_b.r_hat)
    with pytest.raises(ArgumentError, match="warmup and thin given to a chain whose start"):
        on_grid.run(x, 30, 2, cg.seeded(4), warmup=3, thin=2)
    exact, x = conditioned("cut set, grid")
    with pytest.raises(UnsupportedError, match=r"use sample\(size"):
        exact.run(x, rng=cg.seeded(1))


@pytest.mark.parametrize("way", [*EXACT, *CHAINS])
@pytest.mark.parametrize("nodes", [None, 1, np.int64(1), "1", 1.5, [True], [None], [99], ["no"]])
def test_invalid_nodes_are_refused(way, nodes):
    made, x = conditioned(way)
    with pytest.raises(CongenialError) as told:
        made.joint(nodes, x)
    assert str(told.value).endswith(".")


@pytest.mark.parametrize("way", EXACT)
@pytest.mark.parametrize("z", [None, "a", [[1], [1, 2]], [1.0], np.zeros((2, 2, 5)), [1j] * 5])
def test_invalid_releases_are_refused(way, z):
    made, x = conditioned(way)
    with pytest.raises(ArgumentError, match=r"^z "):
        made.log_prob(z, x)


@pytest.mark.parametrize("step", [1.0, 0.25])
@pytest.mark.parametrize("nodes", [(1,), (4, 1)])
def test_the_joint_law_of_a_mixture_is_that_of_enumeration(step, nodes):
    known = cg.condition(mixed(step), cg.consistent(TREE))
    laws = [enumerate_law(rows_of(BINARY), "laplace", s, X) for s in (0.4, 0.7)]
    shares = np.array([0.3, 0.7]) * np.exp([law.log_total for law in laws])
    want = {}
    for law, share in zip(laws, shares / shares.sum(), strict=True):
        for state, p in zip(law.states[:, nodes].tolist(), law.probabilities, strict=True):
            want[tuple(state)] = want.get(tuple(state), 0.0) + share * p
    values, table = known.joint(nodes, step * X)
    assert table.sum() == pytest.approx(1.0, abs=1e-12)
    for at in np.ndindex(table.shape):
        key = tuple(int(v[i] / step) for v, i in zip(values, at, strict=True))
        assert abs(want.get(key, 0.0) - table[at]) < 1e-10


@pytest.mark.parametrize("kind", sorted(LAWS))
def test_the_joint_law_of_a_union_is_that_of_enumeration(kind):
    mechanism = cg.Additive(LAWS[kind](0.6), TREE)
    tree = cg.consistent(TREE)
    # the second leaf is 0, or at least 3
    apart = cg.bounds([-np.inf] * 4 + [3.0])
    x = TREE.roll_up(np.array([3, 1, 0]))
    known = cg.condition(mechanism, (tree & LOW) | (tree & apart))
    law = enumerate_law(rows_of(BINARY), kind, 0.6, x)
    kept = (law.states[:, 4] == 0) | (law.states[:, 4] >= 3)
    mass = law.probabilities[kept] / law.probabilities[kept].sum()
    (a, b), table = known.joint([4, 1], x)
    assert b.dtype == np.int64
    for i, j in np.ndindex(table.shape):
        here = (law.states[kept][:, [4, 1]] == (a[i], b[j])).all(axis=1)
        assert abs(mass[here].sum() - table[i, j]) < 1e-9
    assert table[np.isin(a, (1, 2))].sum() == 0.0


def test_parts_sampled_by_chains_are_not_mixed():
    parts = [cg.Additive(cg.DiscreteLaplace(s), 9) for s in (0.4, 0.7)]
    with pytest.raises(UnsupportedError, match="weighed by their probabilities") as told:
        cg.condition(cg.mixture(parts, [0.5, 0.5]), cg.linear(RINGS, RINGS @ SQUARE), "gibbs")
    assert str(told.value).endswith(".")
