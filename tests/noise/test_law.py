"""The noise laws: normalised, drawn as stated, and refused for invalid scales."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from scipy.stats import chi2, kstest

import congenial as cg
from congenial.errors import ArgumentError, CongenialError
from congenial.noise import discrete_gaussian

DRAWS = 20_000
FAILS = 1e-6
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


def p_value(noise, kind, scale) -> float:
    """Chi-square over cells of at least 10 expected draws; wide laws in about 100 cells."""
    reach = int(45 * scale) + 5
    u = np.arange(-reach, reach + 1)
    mass = pmf(kind, scale, u)
    below = np.cumsum(mass)
    least = max(10.0 / noise.size, 0.01 if scale > 20 else 0.0)
    edges, last = [], 0.0
    for i in range(u.size):
        if below[i] - last >= least and 1.0 - below[i] >= least:
            edges.append(i + 1)
            last = below[i]
    # cell c holds the indices from edges[c - 1] up to, but without, edges[c]
    edges = np.array(edges)
    expected = noise.size * np.diff(np.concatenate(([0.0], below[edges - 1], [1.0])))
    cells = np.searchsorted(edges, noise + reach, side="right")
    observed = np.bincount(cells, minlength=expected.size)
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, expected.size - 1))


@pytest.mark.parametrize("kind", sorted(DISCRETE))
@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 30.0, 1e4])
def test_integer_draws_follow_the_law_and_fail_at_a_wrong_scale(kind, scale):
    if kind == "gaussian" and scale < 1:
        scale = 0.6
    mechanism = cg.Additive(DISCRETE[kind](scale), 4)
    x = np.array([0, -3, 17, 2**40])
    draws = mechanism.sample(x, size=DRAWS // 4, rng=cg.seeded(2022))
    assert draws.dtype == np.int64
    noise = (draws - x).ravel()
    assert p_value(noise, kind, scale) > FAILS
    assert p_value(noise, kind, 0.7 * scale) < FAILS
    assert p_value(noise, kind, 1.3 * scale) < FAILS


@pytest.mark.parametrize("kind", sorted(CONTINUOUS))
@pytest.mark.parametrize("scale", [0.01, 1.0, 1e4])
def test_real_draws_follow_the_law_and_fail_at_a_wrong_scale(kind, scale):
    mechanism = cg.Additive(CONTINUOUS[kind](scale), 4)
    draws = mechanism.sample(np.zeros(4), size=DRAWS // 4, rng=cg.seeded(2022))
    assert draws.dtype == np.float64
    name = {"laplace": "laplace", "gaussian": "norm"}[kind]
    assert kstest(draws.ravel() / scale, name).pvalue > FAILS
    assert kstest(draws.ravel() / (0.7 * scale), name).pvalue < FAILS
    assert kstest(draws.ravel() / (1.3 * scale), name).pvalue < FAILS


@pytest.mark.parametrize("kind", sorted(DISCRETE))
@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 50.0, 1e4])
def test_log_prob_is_the_law_as_defined(kind, scale):
    mechanism = cg.Additive(DISCRETE[kind](scale), 1)
    reach = int(40 * scale) + 5
    u = np.arange(-reach, reach + 1)
    got = np.exp(mechanism.log_prob(u[:, None] + 5, [5]))
    assert abs(got.sum() - 1) < 1e-12
    np.testing.assert_allclose(got, pmf(kind, scale, u), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize(
    ("kind", "center"), [("laplace", 0.5), ("gaussian", 1 / np.sqrt(2 * np.pi))]
)
def test_log_density_is_the_law_as_defined(kind, center):
    mechanism = cg.Additive(CONTINUOUS[kind](3.0), 1)
    grid = np.arange(-150, 150, 0.01)
    density = np.exp(mechanism.log_prob(grid[:, None], [0.0]))
    assert abs(density.sum() * 0.01 - 1) < 1e-4
    assert np.exp(mechanism.log_prob([0.0], [0.0])) == pytest.approx(center / 3)
    fall = {"laplace": 2.0, "gaussian": 2.0}[kind]  # (6 / 3) and (6 / 3)^2 / 2
    assert mechanism.log_prob([6.0], [0.0]) - mechanism.log_prob([0.0], [0.0]) == pytest.approx(
        -fall
    )


@pytest.mark.parametrize("law", [*DISCRETE.values(), *CONTINUOUS.values()])
def test_entries_and_draws_are_independent(law):
    noise = cg.Additive(law(5.0), 2).sample([0, 0], size=DRAWS, rng=cg.seeded(9)).astype(float)
    pairs = (noise[:, 0], noise[:, 1]), (noise[:-1, 0], noise[1:, 0]), (noise[:-1, 1], noise[1:, 0])
    for a, b in pairs:
        # five standard deviations of a correlation of nothing; signs and sizes alike
        assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(DRAWS)
        assert abs(np.corrcoef(np.abs(a), np.abs(b))[0, 1]) < 5 / np.sqrt(DRAWS)


@pytest.mark.parametrize("kind", sorted(DISCRETE))
def test_draws_from_extreme_words_are_valid(kind):
    law = DISCRETE[kind](3.0)
    lowest, highest = np.uint64(0), np.uint64(2**64 - 1)
    words = np.array([[lowest, highest], [highest, lowest], [lowest, lowest]], dtype=np.uint64)
    if law.words_per_entry == 1:
        words = words[:, :1]
    noise = law.draw(words, np.array([3.0]), cg.seeded(1).bits)
    # a word of zeros takes a second one
    assert (np.abs(noise) <= 3.0 * 128 * np.log(2) + 1).all()


@pytest.mark.parametrize("sigma", [0.01, 0.4, 1.0, 9.3, 300.0])
def test_gaussian_tables_are_exact_to_the_last_bit(sigma):
    """Against sums of decimals with 60 digits; the law of a word is in the table."""
    table = discrete_gaussian._thresholds(sigma)
    reach = table.size // 2
    with localcontext(prec=60):
        rate = -1 / (2 * Decimal(sigma) ** 2)
        weights = [(rate * k * k).exp() for k in range(-reach, reach + 1)]
        total = sum(weights)
        share = [value * 2**64 / total for value in accumulate(weights)]
    apart = [abs(int(t) - s) for t, s in zip(table, share[:-1], strict=True)]
    assert max(apart) <= 1
    assert (np.diff(table.astype(np.float64)) >= 0).all()
    # a draw is the first value whose entry is above the word
    law = cg.DiscreteGaussian(sigma)
    far = np.array([2**62, 3 * 2**61, 2**63 + 2**40], dtype=np.uint64)
    expected = np.searchsorted(table, far, side="right") - reach
    drawn = law.draw(far[:, None], np.array([sigma]), cg.seeded(1).bits)
    assert drawn[:, 0].tolist() == expected.tolist()
    assert law.sampling_error(np.array([sigma])) == 0.0


def test_wide_gaussian_noise_is_drawn_from_doubles_and_says_so():
    law = cg.DiscreteGaussian([4096.0, 4097.0])
    exact, wide = (law.sampling_error(np.array([s])) for s in (4096.0, 4097.0))
    assert exact == 0.0 < wide < 1e-9
    source, scales = cg.seeded(3), np.array([4096.0, 4097.0])
    drawn = law.draw(source.bits(40_000).reshape(-1, 2), scales, source.bits)
    assert np.std(drawn, axis=0) == pytest.approx([4096.0, 4097.0], rel=0.03)


@pytest.mark.parametrize("kind", sorted(DISCRETE))
def test_noise_on_a_grid_has_no_sampling_error_and_real_noise_the_largest(kind):
    law = DISCRETE[kind]
    assert law(1.0).sampling_error(np.array([1.0, 4096.0, np.inf])) == 0.0
    assert CONTINUOUS[kind](1.0).sampling_error(np.array([1.0])) == 1.0


@pytest.mark.parametrize("law", [*DISCRETE.values(), *CONTINUOUS.values()])
@pytest.mark.parametrize("scale", [0, -1, np.nan, [1.0, 0.0], [[1.0]], -np.inf])
def test_an_invalid_scale_is_refused(law, scale):
    with pytest.raises(ArgumentError, match="give a positive number"):
        law(scale)


@pytest.mark.parametrize("law", [*DISCRETE.values(), *CONTINUOUS.values()])
@pytest.mark.parametrize(
    "scale",
    [
        *("wide", None, [1.0, "x"], [[1.0], [1.0, 2.0]]),
        *("1", b"1", ["1"], True, np.True_, [True], 1j, np.timedelta64(3), 10**400),
        *([True, Fraction(1)], np.array(["1", 2.0], dtype=object)),
    ],
)
def test_a_scale_that_is_not_a_number_is_refused(law, scale):
    with pytest.raises(ArgumentError, match=r"^(scale|sigma) is .*; give a positive number, or"):
        law(scale)


@pytest.mark.parametrize("law", [*DISCRETE.values(), *CONTINUOUS.values()])
@pytest.mark.parametrize("scale", [2, np.float32(2), np.array([2, 2]), Fraction(2), [Decimal(2)]])
def test_a_scale_is_any_real_number(law, scale):
    assert (law(scale).spread == 2.0).all()


@pytest.mark.parametrize("kind", sorted(DISCRETE))
@pytest.mark.parametrize("scale", [1e20, 1e300])
def test_noise_too_wide_for_integers_is_refused_not_wrapped(kind, scale):
    with pytest.raises(CongenialError):
        cg.Additive(DISCRETE[kind](scale), 1).sample([5], rng=cg.seeded(1))
