"""Uniform compositions: every split as likely, in every regime, and words that suffice."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product
from math import comb

import numba
import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.kernels.network import compositions
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

LEAST = 1e-6
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
        (2**62, 1),
        (2**62, 3),
        (2**62, 130),
        (2**62, 100_000),
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


def first_for(value, below, bits):
    """Return the first number of `bits` bits that draws `value` below `below`, and is kept."""
    drawn = -(-(value << bits) // below)
    while (drawn * below) % 2**bits < 2**bits % below:
        drawn += 1
    assert (drawn * below) >> bits == value
    return drawn


def packed(numbers, bits):
    """Return a tape of words that hold these numbers."""
    whole = sum(number << (bits * i) for i, number in enumerate(numbers))
    count = len(numbers) * bits // 64 + 2
    return np.array([whole >> (64 * i) & 2**64 - 1 for i in range(count)], dtype=np.uint64)


@pytest.mark.parametrize(("total", "n"), [(1, 4), (2, 4), (3, 3), (4, 4), (5, 3), (7, 2), (65, 3)])
def test_all_draws_of_few_bars_give_every_composition_as_often(total, n):
    size, places = min(n - 1, total), total + n - 1
    # Floyd's method draws numbers below these, each from 16 bits
    below = range(places - size + 1, places + 1)
    choices = [[first_for(v, t, 16) for v in range(t)] for t in below]
    seen = Counter(tuple(split(total, 0, n, packed(c, 16))[0][0]) for c in product(*choices))
    assert len(seen) == comb(places, size)
    assert len(set(seen.values())) == 1
    assert all(sum(parts) == total and min(parts) >= 0 for parts in seen)


def test_all_draws_of_bars_far_apart_give_every_composition_as_often():
    total, n, places = 96, 3, 98
    choices = [first_for(v, places, 32) for v in range(places)]
    seen, again = Counter(), {}
    for one, two in product(range(places), repeat=2):
        tape = packed([choices[one], choices[two]], 32)[:1]
        other = (one + 5) % places
        tape = np.append(tape, np.uint64(first_for(other, places, 64)))
        parts, read, _ = split(total, 0, n, tape)
        if one == two:  # one more is drawn
            again[one] = tuple(parts[0])
            assert read == 2
        else:
            seen[tuple(parts[0])] += 1
            assert read == 1
    assert len(seen) == comb(places, 2)
    assert set(seen.values()) == {2}
    for one, parts in again.items():
        first, last = sorted((one, (one + 5) % places))
        assert parts == (first, last - first - 1, places - last - 1)


# the number of bars, of places, and the last places of four groups of places
BUCKETS = [(3, 200, (50, 100, 150)), (40, 130, (20, 64, 128)), (70, 130, (20, 64, 128))]
BUCKETS += [(2, 129, (30, 64, 128)), (20, 321, (65, 100, 256)), (1, 200, (50, 128, 150))]


@pytest.mark.parametrize(("size", "places", "ends"), BUCKETS)
def test_bars_in_buckets_are_a_uniform_subset(size, places, ends):
    draws, n = 20_000, size + 1
    bars = drawn_in_buckets(size, places, draws)
    assert (np.diff(bars, axis=1) > 0).all()
    edges = np.array([0, *ends, places])
    groups = np.stack([np.histogram(row, edges - 0.5)[0] for row in bars])
    assert (groups.sum(axis=1) == size).all()

    seen = Counter(map(tuple, groups))
    cells = np.indices((n, n, n)).reshape(3, -1).T
    cells = np.column_stack((cells, size - cells.sum(axis=1)))[cells.sum(axis=1) <= size]

    def fit(widths):
        """Return the p-value of the numbers of bars in the groups."""
        mean = draws * stats.multivariate_hypergeom(widths, size).pmf(cells)
        common = mean >= 8
        observed = np.array([seen[tuple(cell)] for cell in cells[common].tolist()])
        observed = np.append(observed, draws - observed.sum())
        expected = np.append(mean[common], draws - mean[common].sum())
        kept = slice(None) if expected[-1] > 8 else slice(-1)
        expected *= observed[kept].sum() / expected[kept].sum()
        return stats.chisquare(observed[kept], expected[kept]).pvalue

    widths = np.diff(edges)
    assert fit(widths) > LEAST
    # the same test sees a law that prefers some places a little
    assert fit(widths + np.array([4, 0, -4, 0])) < LEAST


@numba.njit
def add_in_buckets(places, size, words, values, members):
    """Place bars as `compose` does if there are many; return (last bar, words read)."""
    shift = compositions._bucket(places, size)
    held = np.empty(((places - 1) >> shift) + 1, dtype=np.int32)
    table, edges = np.empty(256, dtype=np.uint8), np.empty(65, dtype=np.uint64)
    chosen = np.empty(2048, dtype=np.int64)
    odds = size / places
    at, _ = compositions._count_all(places, size, shift, odds, words, 0, table, edges, held)
    return compositions._add_many(
        places, size, False, 1, words, at, held, values, 0, members, 0, chosen
    )


def drawn_in_buckets(size, places, draws):
    """Return sorted bars, a row for each draw."""
    out = np.empty((draws, size), dtype=np.int64)
    for row, words in zip(out, cg.seeded(4).bits(400 * draws).reshape(draws, -1), strict=True):
        values = np.zeros((size + 1, 1), dtype=np.int64)
        last, read = add_in_buckets(places, size, words, values, np.arange(size + 1))
        assert read <= words.size
        row[:] = np.cumsum(values[:size, 0] + 1) - 1
        assert row[-1] == last
    return out


def test_words_that_decide_no_bucket_are_left_out():
    # words of ones are beyond all tables; the byte 255 always needs a word
    for total, n in ((10**5, 1000), (10**8, 1000), (2**62, 130)):
        words = cg.seeded(5).bits(20_000).copy()
        words[cg.seeded(6).bits(20_000) % np.uint64(3) == 0] = np.uint64(2**64 - 1)
        parts, read, _ = split(total, 0, n, words)
        assert read <= words.size
        assert parts.min() >= 0
        assert parts.sum() == total
        again, read_again, _ = split(total, 0, n, words[: read + 2])
        assert read_again == read
        np.testing.assert_array_equal(parts, again)


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
