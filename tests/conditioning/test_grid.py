"""Noise on a dyadic grid: the laws, the conditional law, its limit, and its guarantee."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import congenial as cg
from congenial.errors import (
    ArgumentError,
    InfeasibleError,
    PrivacyError,
    UnsupportedError,
)
from support.conditioning_cases import INF
from support.enumeration import enumerate_law, rows_of

DRAWS = 20_000
FAILS = 1e-6
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
CONTINUOUS = {"laplace": cg.Laplace, "gaussian": cg.Gaussian}
BINARY = (-1, 0, 0, 1, 1)
STAR = cg.Tree.from_parents([-1, 0, 0, 0])


def weights(kind, scale, u):
    return np.exp(-np.abs(u) / scale) if kind == "laplace" else np.exp(-0.5 * (u / scale) ** 2)


def grid_pmf(kind, scale, step):
    """Grid points and their probabilities, from the weights alone."""
    reach = int(45 * scale / step) + 5
    u = step * np.arange(-reach, reach + 1)
    return u, weights(kind, scale, u) / weights(kind, scale, u).sum()


def p_value(noise, u, mass) -> float:
    """Chi-square over cells of at least 10 expected draws."""
    below = np.cumsum(mass)
    cell = np.minimum((below - 0.5 * mass) * 100, 99).astype(int)
    least = 10.0 / noise.size
    cell[below < least], cell[1.0 - below < least] = 0, 99
    at = cell[np.searchsorted(u, noise)]
    expected = noise.size * np.bincount(cell, weights=mass, minlength=100)
    observed = np.bincount(at, minlength=100)
    used = expected >= 5
    assert observed[~used].sum() <= 60
    statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
    return float(chi2.sf(statistic, used.sum() - 1))


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("step", [2.0**-40, 0.125, 0.5, 4.0, 2.0**40])
@pytest.mark.parametrize("ratio", [0.02, 0.7, 3.0, 500.0])
def test_the_law_is_that_of_the_definition(kind, step, ratio):
    scale = ratio * step
    u, mass = grid_pmf(kind, scale, step)
    mechanism = cg.Additive(LAWS[kind](scale, granularity=step), 1)
    got = np.exp(mechanism.log_prob(5 * step + u[:, None], [5 * step]))
    np.testing.assert_allclose(got, mass, rtol=1e-9, atol=1e-300)
    variance = mechanism.noise.variances(mechanism.scales)
    assert variance[0] == pytest.approx((mass * u**2).sum(), rel=1e-9)
    assert mechanism.log_prob([0.5 * step], [0]) == -np.inf
    assert mechanism.log_prob([5.25 * step], [5 * step]) == -np.inf


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize(("scale", "step"), [(1.0, 0.125), (3.0, 2.0), (0.01, 2.0**-12)])
def test_draws_follow_the_law_and_fail_at_a_wrong_scale(kind, scale, step):
    x = step * np.array([0, -3, 17, 2**40])
    mechanism = cg.Additive(LAWS[kind](scale, step), 4)
    draws = mechanism.sample(x, size=DRAWS // 4, rng=cg.seeded(11))
    assert draws.dtype == np.float64
    noise = (draws - x).ravel()
    assert (noise / step == np.rint(noise / step)).all()
    for wrong in (1.0, 0.7, 1.3):
        p = p_value(noise, *grid_pmf(kind, wrong * scale, step))
        assert (p > FAILS) == (wrong == 1.0), wrong


@pytest.mark.parametrize("kind", sorted(LAWS))
def test_a_finer_grid_draws_closer_to_the_continuous_law(kind):
    one = CONTINUOUS[kind](2.0)
    for step, close in ((0.25, 3e-2), (2.0**-8, 5e-5)):
        law = LAWS[kind](2.0, step)
        u = np.array([-3.0, 0.0, 0.25, 7.5])
        density = np.exp(law.log_pmf(u, np.full(4, 2.0))) / step
        np.testing.assert_allclose(density, np.exp(one.log_pmf(u, np.full(4, 2.0))), rtol=close)
        scales = np.array([2.0, INF])
        assert law.variances(scales)[0] == pytest.approx(one.variances(scales)[0], rel=close)
        assert law.variances(scales)[1] == one.variances(scales)[1] == INF


def conditioned(kind, scales, step, parents=BINARY, pinned=(), lo=None):
    tree = cg.Tree.from_parents(parents)
    invariant = cg.consistent(tree)
    if pinned:
        invariant = invariant & cg.exactly(list(pinned))
    if lo is not None:
        invariant = invariant & cg.bounds(lo)
    return cg.condition(cg.Additive(LAWS[kind](np.asarray(scales), step), tree), invariant), tree


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("step", [0.25, 2.0])
@pytest.mark.parametrize(
    ("scales", "pinned", "low"),
    [
        ([0.5, 0.4, 0.6, 0.5, 0.4], (), None),
        ([0.5, 0.7, 0.6, 0.5, 0.8], (0,), None),
        ([0.5, INF, 0.6, 0.5, 0.4], (3,), None),
        ([0.7, 0.7, 0.7, 0.7, 0.7], (0,), 0.3),
    ],
)
def test_the_conditional_law_is_that_of_enumeration(kind, step, scales, pinned, low):
    """Enumerated on the integers, with everything divided by the step."""
    scales = step * np.asarray(scales)
    lo = None if low is None else low * step
    got, tree = conditioned(kind, scales, step, pinned=pinned, lo=lo)
    counts = tree.roll_up(np.array([3, 1, 2]))
    x = step * counts
    law = enumerate_law(
        rows_of(BINARY), kind, scales / step, counts, pinned, -INF if low is None else low, flat=60
    )
    assert got.log_normalizer(x) == pytest.approx(law.log_total, abs=1e-10)
    heavy = np.argsort(-law.probabilities)[:500]
    z = step * law.states[heavy]
    np.testing.assert_allclose(got.log_prob(z, x), np.log(law.probabilities[heavy]), atol=1e-9)
    assert got.log_prob(x, x) == pytest.approx(got.log_prob(z, x)[(z == x).all(axis=1)][0])
    assert got.log_prob(x + 0.5 * step, x) == -INF
    for node in range(5):
        values, probabilities = got.marginal(node, x)
        want = law.marginal(node)
        for value, p in zip(values, probabilities, strict=True):
            assert want.get(int(value / step), 0.0) == pytest.approx(p, abs=1e-10)
    (first, last), table = got.joint([1, 4], x)
    assert first.dtype == last.dtype == np.float64
    np.testing.assert_allclose(
        table.sum(axis=1)[np.isin(first, got.marginal(1, x)[0])].sum(), 1.0, atol=1e-9
    )
    pair = law.probabilities[(law.states[:, 1] == counts[1]) & (law.states[:, 4] == counts[4])]
    at = table[np.ix_(first == x[1], last == x[4])]
    assert at.sum() == pytest.approx(pair.sum(), abs=1e-10)
    draws = got.sample(x, size=4000, rng=cg.seeded(5))
    assert draws.dtype == np.float64
    assert (draws / step == np.rint(draws / step)).all()
    assert (tree.roll_up(draws[:, tree.leaves]) == draws).all()  # exactly
    assert (draws[:, list(pinned)] == x[list(pinned)]).all()
    assert low is None or (draws[:, [v for v in range(5) if v not in pinned]] >= lo).all()


def test_draws_follow_the_conditional_law_and_fail_at_a_wrong_scale():
    scale, step = 1.5, 0.25
    got, tree = conditioned("laplace", [scale] * 5, step, pinned=(0,))
    x = tree.roll_up(np.array([3.25, 0.5, 2.0]))
    draws = got.sample(x, size=DRAWS, rng=cg.seeded(3))
    for wrong in (1.0, 0.7, 1.3):
        other, _ = conditioned("laplace", [wrong * scale] * 5, step, pinned=(0,))
        values, probabilities = other.marginal(3, x)
        inside = np.isin(draws[:, 3], values)
        p = p_value(draws[inside, 3], values, probabilities)
        assert (p > FAILS and inside.all()) == (wrong == 1.0), wrong


def test_the_variance_of_the_conditioned_laplace_is_five_sixths():
    """Three leaves, one sum: 5 / 6 of the squared scale in the continuous limit."""
    invariant = cg.consistent(STAR) & cg.exactly(0)
    error = {}
    for k in (3, 4, 6):
        noise = cg.DiscreteLaplace(np.array([INF, 2.0, 2.0, 2.0]), granularity=2.0**-k)
        values, p = cg.condition(cg.Additive(noise, STAR), invariant).marginal(1, np.zeros(4))
        assert (p * values).sum() == pytest.approx(0.0, abs=1e-10)
        error[k] = (p * values**2).sum() / (5 / 6 * 2.0**2) - 1
    assert abs(error[6]) < 5e-5
    assert error[3] / error[4] == pytest.approx(4.0, rel=0.02)  # quadratic in the granularity


def test_the_conditioned_gaussian_has_its_closed_form():
    """One sum over n leaves: variance sigma^2 (1 - 1 / n), on any fine grid."""
    invariant = cg.consistent(STAR) & cg.exactly(0)
    noise = cg.DiscreteGaussian(np.array([INF, 2.0, 2.0, 2.0]), granularity=0.125)
    values, p = cg.condition(cg.Additive(noise, STAR), invariant).marginal(2, np.zeros(4))
    assert (p * values**2).sum() == pytest.approx(4.0 * (1 - 1 / 3), rel=1e-9)


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("step", [2.0**-8, 0.25, 1.0])
def test_the_guarantee_depends_on_the_scale_and_not_on_the_grid(neighbours, step):
    tree = cg.Tree.from_parents(BINARY)
    scales = step * 4.0 + np.array([1.0, 3.0, 4.0, 5.0, 7.0])
    pure = cg.condition(cg.Additive(cg.DiscreteLaplace(scales, step), tree), cg.consistent(tree))
    # two grandchildren of the root, or one and the other child: what changes is stated by hand
    path = 1 / scales
    want = {
        "add-remove": path[0] + path[1] + path[3],
        "substitute": path[1] + path[3] + path[2],
    }[neighbours]
    assert pure.guarantee(neighbours).epsilon == pytest.approx(want, rel=1e-14)
    bounded = cg.condition(
        cg.Additive(cg.DiscreteLaplace(scales, step), tree), cg.consistent(tree) & cg.nonnegative()
    )
    # with bounds a record's many steps count one by one, from the leaf that has the most noise
    pairs = {
        "add-remove": [((0, 2), 2), ((0, 1, 3), 3), ((0, 1, 4), 4)],
        "substitute": [((3, 4), 4), ((1, 3, 2), 3), ((1, 4, 2), 4)],
    }[neighbours]
    steps, losses = round(1 / step), []
    for changed, leaf in pairs:
        base = path[list(changed)].sum()
        rise = np.exp((base - 2 * path[leaf]) * np.arange(1, steps + 1) / steps).sum()
        losses.append(base + np.log1p((1 - np.exp(-base / steps)) * rise))
    assert bounded.guarantee(neighbours).epsilon == pytest.approx(max(losses), rel=1e-12)
    assert want < max(losses) < 2 * want
    normal = cg.condition(cg.Additive(cg.DiscreteGaussian(scales, step), tree), cg.consistent(tree))
    square = 0.5 / scales**2
    want = {
        "add-remove": square[0] + square[1] + square[3],
        "substitute": square[1] + square[3] + square[2],
    }[neighbours]
    assert normal.guarantee(neighbours).rho == pytest.approx(want, rel=1e-14)
    imaged = cg.image(cg.Additive(cg.DiscreteLaplace(scales, step), tree), cg.consistent(tree))
    assert imaged.guarantee(neighbours).epsilon == pure.guarantee(neighbours).epsilon


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
def test_the_guarantee_holds_for_every_release_enumerated(neighbours):
    """The largest log ratio between neighbouring data is epsilon, a record counting for 1."""
    step, scale = 0.25, 1.5
    got, tree = conditioned("laplace", [scale] * 4, step, parents=(-1, 0, 0, 0))
    x = tree.roll_up(np.array([2.0, 1.0, 1.0]))
    moved = (
        np.array([2.0, 1.0, 1.0])
        + {
            "substitute": [-1.0, 1.0, 0.0],
            "add-remove": [1.0, 0.0, 0.0],
        }[neighbours]
    )
    side = np.arange(-2.0, 5.0, step)
    leaves = np.stack(np.meshgrid(side, side, side), axis=-1).reshape(-1, 3)
    z = tree.roll_up(leaves)
    loss = got.log_prob(z, x) - got.log_prob(z, tree.roll_up(moved))
    epsilon = got.guarantee(neighbours).epsilon
    assert np.abs(loss).max() == pytest.approx(epsilon, rel=1e-9)


def test_a_grid_coarser_than_a_record_gets_no_guarantee():
    tree = cg.Tree.from_parents(BINARY)
    mechanism = cg.Additive(cg.DiscreteLaplace(8.0, 2.0), tree)
    kept, moved = (way(mechanism, cg.consistent(tree)) for way in (cg.condition, cg.image))
    for made in (kept, moved):
        with pytest.raises(PrivacyError, match="granularity of at most a record"):
            made.guarantee("substitute")


@pytest.mark.parametrize(
    "step", [0, 3, 0.3, -0.5, 2.0**-41, 2.0**41, np.inf, np.nan, True, None, "1", [1.0], 1 + 2**-52]
)
@pytest.mark.parametrize("law", LAWS.values())
def test_a_granularity_that_is_not_a_power_of_two_is_refused(law, step):
    with pytest.raises(ArgumentError, match="give a power of two") as told:
        law(1.0, granularity=step)
    assert "\n" not in str(told.value)


def test_values_off_the_grid_are_refused_and_not_shown():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, 0.25), 2)
    with pytest.raises(ArgumentError, match=r"no multiple of the granularity 0\.25") as told:
        mechanism.sample([0.75, 777.3], rng=cg.seeded(1))
    assert "777" not in str(told.value)
    with pytest.raises(ArgumentError, match="beyond 2\\^52 steps"):
        mechanism.sample([0.0, 2.0**52], rng=cg.seeded(1))
    largest = 2.0**50
    assert (mechanism.sample([largest, -largest], rng=cg.seeded(1)) != 0).all()
    got, _ = conditioned("laplace", [1.0] * 5, 0.25)
    with pytest.raises(ArgumentError, match="no multiple"):
        got.sample([0.1] * 5)
    with pytest.raises(ArgumentError, match="does not add up"):
        got.sample([0.25] * 5)


@pytest.mark.parametrize("law", LAWS.values())
def test_noise_too_wide_for_exact_sums_is_refused(law):
    with pytest.raises(UnsupportedError, match="coarser granularity"):
        cg.Additive(law(1e10, 2.0**-40), 1).sample([0])
    with pytest.raises(UnsupportedError, match="coarser granularity"):
        cg.Additive(law(1e15), 1).sample([0])


def test_bounds_and_sums_are_moved_to_the_grid():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, 0.5), 3)
    got = cg.condition(mechanism, cg.linear([1, 1, 1], 2.5) & cg.bounds(0.2, 1.9))
    draws = got.sample([0.5, 1.0, 1.0], size=300, rng=cg.seeded(8))
    assert (draws.sum(axis=1) == 2.5).all()
    assert draws.min() == 0.5
    assert draws.max() == 1.5
    with pytest.raises(InfeasibleError, match=r"no multiple of the granularity 0\.5"):
        cg.condition(mechanism, cg.bounds(0.1, 0.4))
    several = cg.condition(mechanism, cg.linear([[1, 1, 1], [1, 0, 0]], [2.5, 0.5]))
    draws = several.sample([0.5, 1.0, 1.0], size=300, rng=cg.seeded(8))
    assert (draws[:, 0] == 0.5).all()


def test_intervals_cover_and_no_shorter_one_does():
    got, _ = conditioned("laplace", [2.0] * 5, 0.125, pinned=(0,))
    lo, hi = got.interval(1, 0.1)
    assert lo == -hi
    values, p = got.marginal(1, np.zeros(5))
    assert p[np.abs(values) <= hi].sum() >= 0.9 - 1e-12
    assert p[np.abs(values) < hi].sum() < 0.9
    assert hi / 0.125 == int(hi / 0.125)


def test_unions_and_mixtures_on_a_grid():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, 0.5), 2)
    apart = (cg.linear([1, 1], 1.0) & cg.bounds(hi=[0.0, INF])) | (
        cg.linear([1, 1], 1.0) & cg.bounds(lo=[1.5, -INF])
    )
    got = cg.condition(mechanism, apart)
    x = [0.0, 1.0]
    values, p = got.marginal(0, x)
    assert p.sum() == pytest.approx(1.0)
    first = np.arange(-60, 61) * 0.5
    weight = np.exp(-np.abs(first) - np.abs(-first)) * ((first <= 0) | (first >= 1.5))
    table = dict(zip(first, weight / weight.sum(), strict=True))
    for value, q in zip(values, p, strict=True):
        assert table.get(value, 0.0) == pytest.approx(q, abs=1e-10)
    draws = got.sample(x, size=200, rng=cg.seeded(4))
    assert set(np.unique(draws[:, 0] / 0.5 % 1)) == {0.0}
    wide = cg.Additive(cg.DiscreteLaplace(4.0, 0.5), 2)
    mixed = cg.condition(cg.mixture([mechanism, wide], [0.5, 0.5]), cg.linear([1, 1], 1.0))
    assert mixed.guarantee("substitute").epsilon == pytest.approx(2.0)
    assert np.exp(mixed.log_prob([[0.5, 0.5], [0.25, 0.75]], x)).shape == (2,)
    odd = cg.Additive(cg.DiscreteLaplace(1.0, 0.25), 2)
    with pytest.raises(ArgumentError, match="the same granularity"):
        cg.condition(cg.mixture([mechanism, odd], [0.5, 0.5]), cg.linear([1, 1], 1.0))


def test_imaging_releases_reals_and_refuses_integers():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, 0.25), STAR)
    made = cg.image(mechanism, cg.consistent(STAR))
    z = made.sample(STAR.roll_up([1.25, 2.0, 3.5]), size=5, rng=cg.seeded(2))
    np.testing.assert_allclose(STAR.roll_up(z[:, STAR.leaves]), z, atol=1e-9)
    with pytest.raises(ArgumentError, match=r"granularity 0\.25"):
        cg.image(mechanism, cg.consistent(STAR), integer=True)
    whole = cg.Additive(cg.DiscreteLaplace(1.0, granularity=1), STAR)
    assert cg.image(whole, cg.consistent(STAR), integer=True).sample(np.zeros(4)).dtype == np.int64


def test_a_granularity_of_one_changes_nothing():
    x = np.array([5, 2, 1, 2])
    for law in LAWS.values():
        plain, named = (cg.Additive(n, STAR) for n in (law(2.0), law(2.0, granularity=1)))
        a, b = (m.sample(x, 10, cg.seeded(1)) for m in (plain, named))
        assert a.dtype == b.dtype == np.int64
        assert (a == b).all()
        kept = cg.condition(named, cg.consistent(STAR)).sample(x, 10, cg.seeded(1))
        assert kept.dtype == np.int64
    assert "multiples of 0.25" in conditioned("laplace", [1.0] * 5, 0.25)[0].explain()


@pytest.mark.parametrize("law", [*LAWS.values(), *CONTINUOUS.values()])
@pytest.mark.parametrize("scale", [1e-101, 1e101, [1.0, 5e-324]])
def test_scales_whose_squares_leave_the_floating_point_range_are_refused(law, scale):
    with pytest.raises(ArgumentError, match="give a number from 1e-100 to"):
        law(scale)
    for edge in (1e-100, 1e100):
        tree = cg.Tree.from_parents([-1, 0, 0])
        mechanism = cg.Additive(law([edge, 1.0, 1.0]), tree)
        z = cg.condition(mechanism, cg.consistent(tree)).sample([0, 0, 0], rng=cg.seeded(1))
        assert np.isfinite(z).all()
        assert abs(z[0]) <= (1e-90 if edge < 1 else 60)
