"""Splits of a difference of two sums of geometric variables, against integers and series."""

from __future__ import annotations

from decimal import Decimal, getcontext
from math import comb, factorial

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.kernels.network import differences
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

LEAST = 1e-6
UNIT = Decimal(2) ** -64
doubled_log = entry("numerics.doubled.doubled_log")
doubled_log_gamma = entry("network.differences.doubled_log_gamma")
doubled_log_weight = entry("network.differences.log_weight")
acceptance = entry("network.differences.acceptance")


@pytest.fixture(autouse=True)
def sixty_digits():
    getcontext().prec = 60


def value(pair):
    return Decimal(float(pair[0])) + Decimal(float(pair[1]))


def log_weight(j, s, n, inverse):
    """Return the logarithm of a weight, without the factor (n - 1)!^-2."""
    if max(j, n) < 5000:
        both = comb(j + n - 1, j) * comb(j + s + n - 1, j + s) * factorial(n - 1) ** 2
        return Decimal(both).ln() - 2 * Decimal(inverse) * j
    return (
        sum(
            sign * log_gamma(Decimal(z))
            for sign, z in ((1, j + n), (-1, j + 1), (1, j + s + n), (-1, j + s + 1))
        )
        - 2 * Decimal(inverse) * j
    )


def exact_log_weight(j, s, n, scale):
    """The same, where the inverse of the scale is not rounded."""
    inverse = 1 / scale
    return log_weight(j, s, n, inverse) + 2 * j * (Decimal(inverse) - 1 / Decimal(scale))


def log_gamma(z):
    """Stirling's series beyond 1000, to fifty digits."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    out = (z - Decimal("0.5")) * z.ln() - z + (2 * pi).ln() / 2
    bernoulli = ["1/6", "-1/30", "1/42", "-1/30", "5/66", "-691/2730", "7/6", "-3617/510"]
    for k, b in enumerate(bernoulli, start=1):
        top, bottom = map(Decimal, b.split("/"))
        out += top / bottom / (2 * k * (2 * k - 1)) / z ** (2 * k - 1)
    return out


def test_logarithms_are_right_to_93_bits():
    numbers = np.random.default_rng(0)
    for _ in range(300):
        x = 10 ** numbers.uniform(-3, 89)
        low = x * 1e-17 * numbers.normal()
        got = doubled_log(x, low)
        assert abs(value(got) - (Decimal(x) + Decimal(low)).ln()) < Decimal(2) ** -93


def test_log_gamma_is_right_from_one_to_beyond_2_to_the_53():
    for z in (1, 2, 3, 10, 63, 64, 65, 1000):
        error = abs(value(doubled_log_gamma(z)) - Decimal(factorial(z - 1)).ln())
        assert error < (z + 4) * Decimal(2) ** -92
    for z in (10**4, 10**6 + 1, 10**9 + 7, 10**13 + 3, 2**57 + 1):
        error = abs(value(doubled_log_gamma(z)) - log_gamma(Decimal(z)))
        assert error < z * Decimal(2) ** -92


CASES = [(0, 4, 0.3), (3, 4, 5.0), (0, 30, 1.0), (17, 30, 40.0), (1000, 100, 10.0)]
LARGE = [(0, 2**20, 0.5), (0, 2**20, 1000.0), (12345, 2**20, 10.0), (0, 10**7, 1e4)]


@pytest.mark.parametrize(("s", "n", "scale"), CASES + LARGE)
def test_blocks_lie_around_the_mode_and_bound_all_weights(s, n, scale):
    mode, above, low = differences.place_blocks(s, n, 1 / scale)
    weight = [log_weight(int(j), s, n, 1 / scale) for j in (mode, mode + 1, max(mode - 1, 0))]
    assert weight[0] >= weight[1]
    assert weight[0] >= weight[2]
    half = Decimal(2).ln()
    assert log_weight(int(mode + above), s, n, 1 / scale) < weight[0] - half
    if mode >= low:
        assert log_weight(int(mode - low), s, n, 1 / scale) < weight[0] - half
    # and hold about one half of what they bound
    assert log_weight(int(mode + 0.8 * above), s, n, 1 / scale) > weight[0] - half or above < 8


@pytest.mark.parametrize(("s", "n", "scale"), CASES + LARGE)
def test_places_are_accepted_in_proportion_to_their_weights(s, n, scale):
    inverse = 1 / scale
    mode, above, low = map(int, differences.place_blocks(s, n, inverse))
    top = doubled_log_weight(mode, s, n, inverse)
    base = exact_log_weight(mode, s, n, scale)
    for i in (0, 1, 3, 20, 60):
        for j in (mode + i * above, mode + (i + 1) * above - 1, mode - 1 - i * low):
            if j < 0:
                continue
            log = doubled_log_weight(j, s, n, inverse)
            got, off = acceptance(log, i, top, abs(j - mode) * inverse)
            truth = (exact_log_weight(j, s, n, scale) - base).exp() * 2**i
            assert truth * Decimal(differences.SURE) <= 1
            # the kernel adds 2^-52 to the error
            assert abs(Decimal(float(got)) - truth) < Decimal(float(off)) / 2 + Decimal(2) ** -60
            assert off < 1e-9


def split(s, n, scale, draws, seed=1, words=None):
    values = np.zeros((3, draws), dtype=np.int64)
    values[0] = s
    slots = [np.array([k]) for k in range(3)]
    words = cg.seeded(seed).bits(20 * draws + 60) if words is None else words
    none = np.zeros(0, dtype=np.bool_), np.zeros(differences.QUESTION, dtype=np.int64)
    of = *slots, np.array([n]), np.array([1 / scale])
    read = differences.split(*of, words, values, 0, draws, *none)
    return values, read, words.size


@pytest.mark.parametrize(("s", "n", "scale"), [(0, 4, 0.3), (3, 4, 5.0), (-17, 30, 2.0)])
def test_splits_have_their_law(s, n, scale):
    draws = 20_000
    values, read, size = split(s, n, scale, draws)
    assert read <= size
    assert (values[1] + values[2] == s).all()
    assert values[1].min() >= 0
    assert values[2].max() <= 0
    seen = values[1] - max(s, 0)

    def law(scale):
        j = range(int(40 * scale * np.sqrt(n) + 40))
        logs = [float(log_weight(k, abs(s), n, 1 / scale)) for k in j]
        p = np.exp(np.array(logs) - max(logs))
        return p / p.sum()

    def p_value(p):
        expected, observed = draws * p, np.bincount(seen, minlength=p.size)[: p.size]
        kept = expected > 20
        terms = (observed - expected)[kept] ** 2 / expected[kept]
        return stats.chi2.sf(terms.sum(), kept.sum() - 1)

    assert p_value(law(scale)) > LEAST
    assert p_value(law(0.7 * scale)) < LEAST
    assert p_value(law(1.3 * scale)) < LEAST


def test_a_large_split_is_nearly_normal():
    n, scale, draws = 2**20, 1000.0, 2000
    values, _, _ = split(0, n, scale, draws)
    # half the variance of a sum of n geometric variables
    spread = scale * np.sqrt(n / 2)
    scores = (values[1] - n * (1 / np.expm1(1 / scale))) / spread
    assert stats.kstest(scores, stats.norm(0, 1).cdf).pvalue > LEAST
    assert stats.kstest(scores, stats.norm(0, 1.3).cdf).pvalue < LEAST


def test_a_tape_that_is_too_short_is_reported():
    words = cg.seeded(2).bits(400)
    values, read, _ = split(5, 100, 3.0, 20, words=words)
    again, read_again, _ = split(5, 100, 3.0, 20, words=words[:read])
    np.testing.assert_array_equal(values, again)
    assert read == read_again
    _, beyond, size = split(5, 100, 3.0, 20, words=words[: read // 2])
    assert beyond > size
    split(5, 100, 3.0, 20, words=np.zeros(10, dtype=np.uint64))
