"""Uniform compositions: every split as likely, in every regime, and words that suffice."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from math import comb

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.kernels.network import compositions
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

LEAST = 1e-6
fill_tables = entry("numerics.binomial.fill_tables")
in_order = entry("numerics.ordering.in_order")


def split(up, down, n, words, draws=1):
    """Compose `up` and `down` into n parts each, as many times as asked; return rows of parts."""
    values = np.zeros((n + 2, draws), dtype=np.int64)
    values[n], values[n + 1] = up, -down
    program = np.array([n]), np.array([n + 1]), np.array([0]), np.array([n])
    if words is None:
        first, second, _, cls = program
        words = compositions.count_words(first, second, cls, values, 0, draws)
    if not isinstance(words, np.ndarray):
        words = cg.seeded(1).bits(words)
    read = compositions.compose(*program, np.arange(n), words, values, 0, draws)
    return values[:n].T, read, words.size


@pytest.mark.parametrize(("total", "n"), [(3, 4), (4, 3), (1, 5), (6, 2), (2, 7), (7, 3), (9, 1)])
def test_every_composition_is_as_likely(total, n):
    draws = 20_000
    parts, read, size = split(total, 0, n, None, draws)
    assert read <= size
    seen = Counter(map(tuple, parts))
    count = comb(total + n - 1, n - 1)
    assert (parts.sum(axis=1) == total).all()
    assert parts.min() >= 0
    observed = list(seen.values()) + [0] * (count - len(seen))
    assert len(observed) == count
    if n == 1:
        return
    assert stats.chisquare(observed).pvalue > LEAST
    # the same test sees that parts drawn one after another, uniformly, are another law
    skewed = Counter()
    uniform = np.random.default_rng(2)
    for _ in range(draws):
        left, row = total, []
        for _ in range(n - 1):
            row.append(int(uniform.integers(left + 1)))
            left -= row[-1]
        skewed[(*row, left)] += 1
    if n > 2:
        other = list(skewed.values()) + [0] * (count - len(skewed))
        assert stats.chisquare(other).pvalue < LEAST


@pytest.mark.parametrize(
    ("total", "n"),
    [
        (10**4, 180),
        (300, 260),
        (190, 400),
        (10**6, 5),
        (10**9, 50),
        (10**9, 2000),
        (5, 100_000),
        (170, 10**5),
        (10**6, 100_000),
        (2**40, 300),
        (2**61, 200),
        (2**61, 20),
        (30_000, 2000),
        (31_000, 2000),
        (0, 5),
        (800, 20),
        (300, 1500),
        (1100, 900),
        (5000, 40),
    ],
)
def test_every_regime_adds_up_within_its_words(total, n):
    # words are sometimes too few, by design; not for most of a hundred tapes
    short = 0
    values = np.zeros((n + 2, 1), dtype=np.int64)
    values[n], values[n + 1] = total, -total
    program = np.array([n]), np.array([n + 1]), np.array([0]), np.array([n])
    first, second, _, cls = program
    count = compositions.count_words(first, second, cls, values, 0, 1)
    up = np.zeros(n)
    for seed in range(100 if n < 10**4 else 10):
        words = cg.seeded(seed).bits(count)
        read = compositions.compose(*program, np.arange(n), words, values, 0, 1)
        short += read > count
        if read <= count:
            assert values[:n].sum() == 0
            up += np.maximum(values[:n, 0], 0)
    assert short <= 2
    mean = total / n
    if n >= 300 and mean > 1:
        parts = split(total, 0, n, count)[0][0]
        # parts are nearly geometric: their spread equals their mean (plus one half)
        assert parts.min() >= 0
        assert parts.sum() == total
        assert parts.std() == pytest.approx(np.sqrt(mean * (mean + 1)), rel=6 / np.sqrt(n) + 0.02)


@pytest.mark.parametrize(
    ("total", "n"),
    [(10**6, 40), (10**7, 200), (2**50, 150), (250, 200), (3000, 200), (2500, 2000), (10**5, 400)],
)
def test_parts_have_the_same_law_at_every_position(total, n):
    draws = 4000
    parts, read, size = split(total, 0, n, None, draws)
    assert read <= size
    assert (parts.sum(axis=1) == total).all()
    for at in (0, n // 2, n - 1):
        # one of n parts exceeds k as often as the total is n - 1 bars and k places short
        k = [int(share * total / n) for share in (0.2, 0.7, 1.6)]
        whole = comb(total + n - 1, n - 1)
        tail = [float(Fraction(comb(total - j + n - 2, n - 1), whole)) for j in k]
        for j, p in zip(k, tail, strict=True):
            above = int((parts[:, at] > j).sum())
            assert abs(above - draws * p) < 6 * np.sqrt(draws * p * (1 - p)) + 1
            wrong = p ** (1 / 1.3)
            if 0.1 < p < 0.9:
                assert abs(above - draws * wrong) > 3 * np.sqrt(draws * wrong * (1 - wrong))


def test_subsets_drawn_in_buckets_are_uniform():
    total, n, draws = 1500, 1100, 5000
    parts, read, size = split(total, 0, n, None, draws)
    assert read <= size
    places = total + n - 1
    # place i holds a bar with the same probability for all i, and so do pairs i, j
    ends = np.cumsum(parts[:, :-1] + 1, axis=1) - 1
    bar = np.zeros((draws, places), dtype=bool)
    bar[np.arange(draws)[:, None], ends] = True
    p = (n - 1) / places
    expected = draws * p
    statistic = ((bar.sum(axis=0) - expected) ** 2 / (expected * (1 - p))).sum()
    assert stats.chi2.sf(statistic * (places - 1) / places, places - 1) > LEAST
    pair = p * (n - 2) / (places - 1)
    for gap in (1, 2, 63, 64):
        both = (bar[:, :-gap] & bar[:, gap:]).mean()
        spread = np.sqrt(pair * (1 - pair) / (draws * (places - gap)))
        assert abs(both - pair) < 6 * spread
        assert abs(both - 1.3 * pair) > 6 * spread


def exact_binomial(n, odds):
    """Return the probabilities of 0..64 as fractions, and what their sum leaves out."""
    odds = Fraction(odds)
    weights, w = [], Fraction(1)
    for k in range(65):
        weights.append(w)
        w = w * max(n - k, 0) * odds / (k + 1)
    total = sum(weights)
    return [w / total for w in weights]


# at the last of them, sums that are all but a little round to one
ODDS = [(64, 0.7), (64, 0.07), (16, 0.09), (1024, 0.0011), (2**50, 2.0**-50), (4, 0.2)]
ODDS += [(64, 0.3023263415309361), (64, 0.8032426551735617), (64, 0.03230015613969715)]


@pytest.mark.parametrize(("n", "odds"), ODDS)
def test_tables_of_the_binomial_law_are_right_to_62_bits(n, odds):
    table, edges = np.empty(256, dtype=np.uint8), np.empty(65, dtype=np.uint64)
    fill_tables(n, odds, table, edges)
    got = [Fraction(int((table == k).sum()), 256) for k in range(65)]
    more, last = Fraction(int((table == 255).sum()), 256), 0
    for k in range(65):
        edge = int(edges[k]) if k < 64 else 2**64
        got[k] += more * Fraction(max(edge - last, 0), 2**64)
        last = max(last, edge)
    truth = exact_binomial(n, odds)
    assert sum(got) == 1
    assert sum(abs(a - b) for a, b in zip(got, truth, strict=True)) / 2 < Fraction(1, 2**62)


def test_a_tape_that_is_too_short_is_reported_and_longer_tapes_agree():
    for total, n in ((100, 30), (10**5, 1000), (10**8, 1000)):
        words = cg.seeded(3).bits(20_000)
        parts, read, _ = split(total, 7, n, words)
        again, read_again, _ = split(total, 7, n, words[: read + 2])
        assert read == read_again
        np.testing.assert_array_equal(parts, again)
        _, beyond, size = split(total, 7, n, words[: read // 2])
        assert beyond > size
        # not even a broken generator makes it run for ever
        split(total, 7, n, np.zeros(read // 2, dtype=np.uint64))


def test_all_subsets_of_few_places_are_equally_likely():
    parts, _, _ = split(2, 0, 4, None, 8000)
    seen = Counter(map(tuple, parts))
    stars = [tuple(np.bincount(c, minlength=4)) for c in combinations(range(4), 2)]
    assert all(seen[s] > 0 for s in stars)


def test_five_are_put_in_order():
    # a network that sorts all zeros and ones sorts all numbers (Knuth, volume 3, 5.3.4)
    for bits in product((0, 1), repeat=5):
        assert in_order(*np.array(bits, dtype=np.uint64)) == tuple(sorted(bits))


@pytest.mark.parametrize("shift", [2, 10, 12, 13, 21, 22, 32, 33])
def test_bars_lie_anywhere_in_buckets_of_any_size(shift):
    # up to two, four or five places are read at once, by their size
    n, draws = 400, 300
    places = 2 * n << (shift - 1)  # two bars a bucket
    parts, read, size = split(places - n + 1, 0, n, None, draws)
    assert read <= size
    bars = np.cumsum(parts[:, :-1] + 1, axis=1) - 1
    assert (np.diff(bars, axis=1) > 0).all()
    within = (bars % (1 << shift)).ravel() / (1 << shift)
    seen = np.bincount((within * 4).astype(int), minlength=4)
    assert stats.chisquare(seen).pvalue > LEAST
    skewed = np.bincount((within**1.3 * 4).astype(int), minlength=4)
    assert stats.chisquare(skewed).pvalue < LEAST
