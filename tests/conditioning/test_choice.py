"""Refusals of conditioning, each one sentence without a count, and the results of calls."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import (
    ArgumentError,
    CongenialError,
    InfeasibleError,
    InvariantError,
    UnsupportedError,
)

pytestmark = pytest.mark.kernels

TREE = cg.Tree.from_parents([-1, 0, 0])
SECRET = 987654321
X = np.array([SECRET + 1, SECRET, 1])
LAPLACE = cg.DiscreteLaplace(2.0)
MECHANISM = cg.Additive(LAPLACE, TREE)
FREE = cg.condition(MECHANISM, cg.consistent(TREE))
HELD = cg.condition(MECHANISM, cg.consistent(TREE) & cg.exactly(0) & cg.nonnegative())


def told(call, error) -> str:
    """Return the message: one sentence, of our own, without a count."""
    with pytest.raises(CongenialError) as caught:
        call()
    assert isinstance(caught.value, error)
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert str(SECRET)[:5] not in text
    return text


@pytest.mark.parametrize("mechanism", [None, LAPLACE, TREE, "laplace"])
def test_an_invalid_mechanism_is_refused(mechanism):
    told(lambda: cg.condition(mechanism, cg.consistent(TREE)), ArgumentError)


@pytest.mark.parametrize("invariant", [None, TREE, "consistent", [cg.consistent(TREE)]])
def test_an_invalid_invariant_is_refused(invariant):
    told(lambda: cg.condition(MECHANISM, invariant), ArgumentError)


@pytest.mark.parametrize("sampler", ["mcmc", None, 1, ""])
def test_an_invalid_sampler_is_refused(sampler):
    text = told(lambda: cg.condition(MECHANISM, cg.consistent(TREE), sampler), ArgumentError)
    assert "auto, exact" in text


@pytest.mark.parametrize("noise", [cg.Laplace(1.0), cg.Gaussian(1.0)])
def test_real_noise_is_not_covered_under_inequalities(noise):
    invariant = cg.consistent(TREE) & cg.nonnegative()
    text = told(lambda: cg.condition(cg.Additive(noise, TREE), invariant), UnsupportedError)
    assert "Discrete" in text


ASK = {
    "sample": lambda k, x: k.sample(x, rng=cg.seeded(1)),
    "log_prob": lambda k, x: k.log_prob(X, x),
    "log_normalizer": lambda k, x: k.log_normalizer(x),
    "marginal": lambda k, x: k.marginal(1, x),
}


@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("conditioned", [FREE, HELD], ids=["equalities", "bounds"])
@pytest.mark.parametrize(
    "x",
    [
        [SECRET],
        [SECRET, SECRET, 1],
        [SECRET + 1.5, SECRET + 0.5, 1],
        [np.nan, SECRET, 1],
        [2**62, 2**62, 0],
        ["a", "b", "c"],
        None,
        [X, X],
    ],
)
def test_impossible_counts_are_refused(ask, conditioned, x):
    told(lambda: ASK[ask](conditioned, x), ArgumentError)


@pytest.mark.parametrize("ask", ASK)
def test_counts_below_a_bound_are_refused_without_showing_them(ask):
    text = told(lambda: ASK[ask](HELD, [SECRET, SECRET + 4321, -4321]), InvariantError)
    assert "4321" not in text
    assert "bounds" in text


def test_a_pinned_count_outside_its_bounds_is_refused_too():
    invariant = cg.consistent(TREE) & cg.exactly(0) & cg.bounds(lo=[SECRET * 2, -np.inf, -np.inf])
    conditioned = cg.condition(MECHANISM, invariant)
    told(lambda: conditioned.sample(X, rng=cg.seeded(1)), InvariantError)


@pytest.mark.parametrize("x", [[3, 3], [0, 0]])
def test_counts_that_violate_a_linear_condition_are_refused(x):
    conditioned = cg.condition(cg.Additive(LAPLACE, 2), cg.linear([1, 1], 5))
    for ask in ("sample", "log_normalizer"):
        told(lambda ask=ask: ASK[ask](conditioned, x), InvariantError)
    assert conditioned.sample([2, 3], rng=cg.seeded(1)).sum() == 5


def test_a_linear_condition_without_integer_solutions_is_refused():
    told(
        lambda: cg.condition(cg.Additive(LAPLACE, 2), cg.linear([1, 1], 0.5)).sample([0, 0]),
        InvariantError,
    )


@pytest.mark.parametrize(
    "scales", [[np.inf, np.inf, 1.0], [np.inf, np.inf, np.inf], [np.inf, 1.0, np.inf]]
)
def test_laws_that_do_not_exist_are_refused(scales):
    mechanism = cg.Additive(cg.DiscreteLaplace(scales), TREE)
    asked = told(lambda: cg.condition(mechanism, cg.consistent(TREE)), UnsupportedError)
    assert "measure more queries" in asked


def test_a_vector_entry_without_noise_and_bounds_is_refused():
    mechanism = cg.Additive(cg.DiscreteLaplace([1.0, np.inf]), 2)
    told(lambda: cg.condition(mechanism, cg.nonnegative()), UnsupportedError)


@pytest.mark.parametrize("size", [-1, 1.5, "2", True])
def test_an_invalid_size_is_refused(size):
    told(lambda: FREE.sample(X, size=size), ArgumentError)


@pytest.mark.parametrize("rng", [1, np.random.default_rng(1), "secure"])
def test_an_invalid_random_source_is_refused(rng):
    told(lambda: FREE.sample(X, rng=rng), ArgumentError)


@pytest.mark.parametrize("node", [3, -1, "nowhere", None, 1.5, True])
def test_an_invalid_node_is_refused(node):
    told(lambda: FREE.marginal(node, X), ArgumentError)
    told(lambda: FREE.interval(node), ArgumentError)


def test_nodes_of_a_vector_are_indices():
    conditioned = cg.condition(cg.Additive(LAPLACE, 2), cg.linear([1, 1], 0))
    for node in ("a", 2, -1, None):
        told(lambda node=node: conditioned.marginal(node, [0, 0]), ArgumentError)


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 2, np.nan, "a tenth", None])
def test_an_invalid_alpha_is_refused(alpha):
    told(lambda: FREE.interval(0, alpha), ArgumentError)


def test_an_interval_under_bounds_would_depend_on_the_counts():
    assert "marginal" in told(lambda: HELD.interval(0), UnsupportedError)


@pytest.mark.parametrize("z", [[1, 2], [[1, 2]], 3, [[[1, 2, 3]]], ["a", "b", "c"], None])
def test_releases_of_a_wrong_shape_are_refused(z):
    told(lambda: FREE.log_prob(z, X), ArgumentError)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_releases_that_are_not_counts_have_probability_zero(value):
    assert FREE.log_prob([value, value, 0.0], X) == -np.inf


def test_shapes_and_repetition():
    one = FREE.sample(X, rng=cg.seeded(4))
    assert one.shape == (3,)
    assert one.dtype == np.int64
    assert FREE.sample(X, size=0, rng=cg.seeded(4)).shape == (0, 3)
    many = FREE.sample(X, size=6, rng=cg.seeded(4))
    assert many.shape == (6, 3)
    assert (many == FREE.sample(X, size=6, rng=cg.seeded(4))).all()
    assert (many != FREE.sample(X, size=6, rng=cg.seeded(5))).any()
    source = cg.seeded(4)
    rows = [FREE.sample(X, rng=source) for _ in range(6)]
    again = cg.seeded(4)
    assert (np.array(rows) == [FREE.sample(X, rng=again) for _ in range(6)]).all()


def test_counts_may_be_lists_integral_floats_or_any_integers():
    want = HELD.sample(X, rng=cg.seeded(1))
    for x in (X.tolist(), X.astype(float), X.astype(np.uint32), tuple(X.tolist())):
        assert (HELD.sample(x, rng=cg.seeded(1)) == want).all()


def test_counts_at_the_limit_of_double_precision_stay_exact():
    big = 2**52 - 101
    x = np.array([2 * big, big, big])
    invariant = cg.consistent(TREE) & cg.exactly(0)
    conditioned = cg.condition(MECHANISM, invariant)
    draws = conditioned.sample(x, size=50, rng=cg.seeded(1))
    assert (draws[:, 0] == 2 * big).all()
    assert (draws[:, 1] + draws[:, 2] == 2 * big).all()
    assert np.isfinite(conditioned.log_prob(draws, x)).all()
    assert conditioned.log_prob(np.add(x, [1, 1, 0]), x) == -np.inf
    told(lambda: conditioned.sample(4 * x, rng=cg.seeded(1)), ArgumentError)


def test_bounds_on_counts_at_the_limit_of_double_precision_hold():
    big = 2**52 - 101
    x = np.array([2 * big + 3, big + 3, big])
    lo = np.array([-np.inf, float(big), float(big) - 64])
    conditioned = cg.condition(MECHANISM, cg.consistent(TREE) & cg.exactly(0) & cg.bounds(lo=lo))
    draws = conditioned.sample(x, size=2000, rng=cg.seeded(1))
    assert draws[:, 1].min() == big
    assert conditioned.marginal(1, x)[0][0] == big


def test_infeasible_bounds_name_the_entry():
    with pytest.raises(InfeasibleError, match="node '0/1'"):
        cg.condition(MECHANISM, cg.bounds([0, 5, 0], [9, 4, 9]))


def test_the_explanation_says_how_and_why():
    text = HELD.explain()
    assert "exact" in text
    assert "3 queries" in text
    assert str(SECRET)[:5] not in text
    assert "one law for every dataset" in FREE.explain()
