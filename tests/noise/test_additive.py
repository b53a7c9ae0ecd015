"""The additive mechanism: counts and sizes that it takes, and shapes that it gives."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError

DISCRETE = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


CONTINUOUS = {"laplace": cg.Laplace, "gaussian": cg.Gaussian}


def pmf(kind, scale, u):
    """The law as defined, summed up to where it vanishes."""
    if kind == "laplace":
        a = np.exp(-1.0 / scale)
        return (1 - a) / (1 + a) * a ** np.abs(u)
    reach = int(40 * scale) + 5
    every = np.arange(-reach, reach + 1)
    return np.exp(-0.5 * (u / scale) ** 2) / np.exp(-0.5 * (every / scale) ** 2).sum()


def test_log_prob_adds_up_over_entries_and_takes_rows():
    mechanism = cg.Additive(cg.DiscreteLaplace([1.0, 2.0, np.inf]), 3)
    x = np.array([1, 2, 3])
    z = np.array([[1, 2, 3], [0, 4, 99], [5, 5, -99]])
    want = [
        np.log(pmf("laplace", 1.0, row[0] - 1)) + np.log(pmf("laplace", 2.0, row[1] - 2))
        for row in z
    ]
    got = mechanism.log_prob(z, x)
    assert got.shape == (3,)
    np.testing.assert_allclose(got, want)
    assert mechanism.log_prob(z[0], x).shape == ()


@pytest.mark.parametrize("law", [*DISCRETE.values(), *CONTINUOUS.values()])
def test_each_entry_has_a_scale_and_an_unmeasured_entry_no_noise(law):
    scales = np.array([0.5, 200.0, np.inf, 20.0])
    mechanism = cg.Additive(law(scales), 4)
    draws = mechanism.sample([1000, 2000, 3000, 4000], size=4000, rng=cg.seeded(1))
    assert draws.shape == (4000, 4)
    spread = np.abs(draws - np.array([1000, 2000, 0, 4000])).mean(axis=0)
    assert spread[0] < 2
    assert 10 < spread[3] < 30
    assert 100 < spread[1] < 300
    if law in DISCRETE.values():
        assert (draws[:, 2] == 0).all()
    else:
        assert np.isnan(draws[:, 2]).all()


def test_the_number_of_scales_and_of_queries_is_checked():
    with pytest.raises(ArgumentError, match="3 scales; give one, or 2"):
        cg.Additive(cg.DiscreteLaplace([1.0, 2.0, 3.0]), 2)
    for queries in (0, -1):
        with pytest.raises(ArgumentError, match="at least one query"):
            cg.Additive(cg.DiscreteLaplace(1.0), queries)
    for queries in ("tree", 2.5, True, None):
        with pytest.raises(ArgumentError, match="a number of queries"):
            cg.Additive(cg.DiscreteLaplace(1.0), queries)


@pytest.mark.parametrize(
    "x",
    [[1], [1, 2, 3], [[1, 2]], [1.5, 2], [np.nan, 1], [np.inf, 1], ["a", "b"], None, [2**62, 0]],
)
def test_invalid_counts_are_refused(x):
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 2)
    with pytest.raises(ArgumentError, match=r"^x ") as told:
        mechanism.sample(x, rng=cg.seeded(1))
    assert "\n" not in str(told.value)
    assert str(2**62) not in str(told.value)


def test_counts_of_uneven_rows_are_refused():
    with pytest.raises(ArgumentError):
        cg.Additive(cg.DiscreteLaplace(1.0), 2).sample([[1], [2, 3]], rng=cg.seeded(1))


def test_integers_may_be_given_as_floats():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 2)
    a = mechanism.sample([1.0, 2.0], rng=cg.seeded(1))
    assert a.dtype == np.int64
    assert (a == mechanism.sample([1, 2], rng=cg.seeded(1))).all()


@pytest.mark.parametrize("size", [-1, 2.5, True, "3"])
def test_an_invalid_size_is_refused(size):
    with pytest.raises(ArgumentError, match="size is"):
        cg.Additive(cg.DiscreteLaplace(1.0), 2).sample([1, 2], size=size, rng=cg.seeded(1))


def test_shapes_of_draws():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 2)
    assert mechanism.sample([1, 2]).shape == (2,)
    assert mechanism.sample([1, 2], size=0).shape == (0, 2)
    assert mechanism.sample([1, 2], size=1).shape == (1, 2)
    assert mechanism.sample([1, 2], size=np.int64(3)).shape == (3, 2)


def test_a_value_between_integers_has_no_probability():
    assert cg.Additive(cg.DiscreteLaplace(1.0), 1).log_prob([0.5], [0]) == -np.inf


def test_counts_are_as_large_as_doubles_resolve():
    most = 2**53
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 2)
    assert mechanism.counts([most, -most]).tolist() == [most, -most]
    for wrong in (most + 1, -most - 1):
        with pytest.raises(ArgumentError, match=r"beyond 2\^53 steps"):
            mechanism.counts([0, wrong])


def test_values_off_the_grid_are_refused_as_data_and_have_probability_zero():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, granularity=0.25), 2)
    assert mechanism.counts([0.5, -0.75]).tolist() == [0.5, -0.75]
    with pytest.raises(ArgumentError, match=r"no multiple of the granularity 0\.25"):
        mechanism.counts([0.5, 0.3])
    z = np.array([[0.75, 0.25], [0.8, 0.25]])
    assert np.isfinite(mechanism.log_prob(z, [0.5, 0.5])).tolist() == [True, False]
    # in steps of the grid it is the same law
    steps = mechanism.in_units()
    assert (steps.granularity, steps.per_record) == (1.0, 4.0)
    assert steps.log_prob(4 * z[0], [2, 2]) == pytest.approx(
        float(mechanism.log_prob(z[0], [0.5, 0.5])), rel=1e-12
    )
    with pytest.raises(ArgumentError, match="positive multiple"):
        cg.Additive(cg.DiscreteLaplace(1.0), 2, per_record=1.5)


def test_numbers_beyond_any_use_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0])
    invariant = cg.consistent(tree) & cg.exactly([0])
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace([np.inf, 2.0, 2.0]), tree), invariant)
    for wrong in (
        lambda: conditioned.sample([2, 1, 1], 10**12),
        lambda: conditioned.sample([2, 1, 1], 2**63),
        lambda: conditioned.sample(np.ma.array([2, 1, 1], mask=[0, 1, 0])),
        lambda: cg.DiscreteLaplace(10**400),
        lambda: cg.DiscreteLaplace(1.0, granularity=10**400),
        lambda: cg.bounds(hi=10**400),
        lambda: cg.calibrate(tree, invariant, epsilon=10**400, neighbours="substitute"),
        lambda: cg.calibrate(tree, invariant, epsilon=1e-320, neighbours="substitute"),
    ):
        with pytest.raises(ArgumentError) as refused:
            wrong()
        assert len(str(refused.value)) < 300
