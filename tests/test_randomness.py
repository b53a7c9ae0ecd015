"""Sources of random words: secure by default, seeded only when told."""

from __future__ import annotations

import hashlib
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, chisquare

import congenial as cg
from congenial import randomness
from congenial.errors import ArgumentError
from congenial.randomness import (
    Randomness,
    derived_key,
    fresh_key,
    geometric,
    given,
    keyed,
    resolve,
    seeded_words,
    uniform_below,
)

KEY = bytes(range(32))


@pytest.mark.parametrize("source", [cg.secure(), cg.seeded(1), keyed(KEY, private=True)], ids=repr)
def test_words_are_uniform_64_bit_integers(source):
    words = source.bits(50_000)
    assert isinstance(source, Randomness)
    assert words.dtype == np.uint64
    assert words.shape == (50_000,)
    assert np.unique(words).size == words.size
    assert source.bits(0).shape == (0,)
    for shift in (0, 28, 56):  # low, middle and high bytes
        byte = (words >> np.uint64(shift)).astype(np.uint8)
        counts = np.bincount(byte, minlength=256)
        expected = words.size / 256
        assert chi2.sf(((counts - expected) ** 2 / expected).sum(), 255) > 1e-6
    ones = np.unpackbits(words.view(np.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / np.sqrt(64 * words.size)


def test_the_default_is_secure_and_says_so():
    assert resolve(None).private
    assert cg.secure().private
    assert not cg.seeded(0).private
    assert repr(cg.seeded(5)) == "congenial.seeded(5)"
    assert repr(cg.secure()) == "congenial.secure()"


def test_the_secure_source_reads_the_operating_system(monkeypatch):
    asked = []

    def urandom(count):
        asked.append(count)
        return bytes(range(8)) * (count // 8)

    monkeypatch.setattr("os.urandom", urandom)
    words = cg.secure().bits(3)
    assert asked == [24]
    assert (words == np.frombuffer(bytes(range(8)), dtype=np.uint64)).all()
    tree = cg.Tree.from_parents([-1, 0, 0])
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree))
    asked.clear()
    first = conditioned.sample([1, 1, 0])
    assert asked
    assert (first == conditioned.sample([1, 1, 0], rng=cg.secure())).all()
    asked.clear()
    conditioned.sample([1, 1, 0], rng=cg.seeded(1))
    assert not asked


def test_a_seed_repeats_and_another_does_not():
    first, again, other = cg.seeded(7), cg.seeded(7), cg.seeded(8)
    words = first.bits(100)
    assert (words == again.bits(100)).all()
    assert not (words == other.bits(100)).any()
    assert not (first.bits(100) == words).any()  # it moves on
    assert (cg.seeded(np.int64(7)).bits(100) == words).all()


def test_words_do_not_depend_on_the_sizes_of_requests():
    source = cg.seeded(3)
    parts = np.concatenate([source.bits(k) for k in (1, 2, 3, 5, 7)])
    assert (parts == cg.seeded(3).bits(18)).all()


def test_words_of_a_key_are_those_of_shake_256_in_the_places_asked_for():
    words = keyed(KEY, private=True).bits(20_000)
    for block in (0, 1, 2):
        text = b"congenial: words" + KEY + block.to_bytes(8, "little")
        whole = np.frombuffer(hashlib.shake_256(text).digest(8 * 8192), dtype="<u8")
        here = words[8192 * block : 8192 * (block + 1)]
        assert (here == whole[: here.size]).all()
    rng = np.random.default_rng(0)
    for _ in range(200):
        sizes = rng.integers(0, 4_000, size=5)
        source = keyed(KEY, private=True)
        parts = [source.bits(int(size)) for size in sizes]
        assert (np.concatenate(parts) == words[: sizes.sum()]).all()
        assert [part.size for part in parts] == sizes.tolist()
        assert not any(part.flags.writeable for part in parts)


def test_a_derived_key_is_shake_256_of_key_and_context():
    items = (3).to_bytes(8, "little") + b"abc" + (1).to_bytes(8, "little") + b"d"
    expected = hashlib.shake_256(b"congenial: key" + KEY + items).digest(32)
    assert derived_key(KEY, b"abc", b"d") == expected
    others = [(b"ab", b"cd"), (b"abcd",), (b"abc",), (b"abc", b"d", b""), ()]
    found = {derived_key(KEY, *context) for context in others} | {expected}
    assert len(found) == len(others) + 1
    assert derived_key(KEY[::-1], b"abc", b"d") not in found
    assert keyed(expected, private=True).bits(4).tobytes() not in found


def test_a_key_comes_from_a_source_and_says_whose_it_is():
    assert fresh_key(cg.seeded(3)) == cg.seeded(3).bits(4).tobytes()
    assert len({fresh_key(cg.secure()) for _ in range(10)}) == 10
    assert keyed(KEY, private=True).private and not keyed(KEY, private=False).private
    source = keyed(KEY, private=True)
    assert KEY.hex() not in repr(source) and repr(KEY) not in repr(source)
    assert resolve(source) is source


@pytest.mark.parametrize("key", [b"", KEY[:-1], KEY + b"0", "k" * 32, None])
def test_a_key_of_another_size_is_refused(key):
    with pytest.raises(ArgumentError, match="32 bytes"):
        keyed(key, private=True)
    with pytest.raises(ArgumentError, match="32 bytes"):
        derived_key(key)


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(ArgumentError, match="give a nonnegative integer"):
        cg.seeded(seed)


@pytest.mark.parametrize("rng", [1, "secure", np.random.default_rng(1), object()])
def test_a_source_made_elsewhere_is_refused(rng):
    with pytest.raises(ArgumentError, match=r"congenial\.secure\(\)"):
        resolve(rng)


def test_seeded_words_are_those_of_the_source_from_any_place_on():
    whole = cg.seeded(8).bits(100)
    for begin, count in ((0, 100), (0, 0), (1, 9), (4, 4), (37, 63), (99, 1)):
        assert (seeded_words(8, begin, count) == whole[begin : begin + count]).all()


def test_given_words_come_in_order_and_no_others_do():
    source = given(seeded_words(8, 0, 10))
    assert not source.private
    assert (np.append(source.bits(3), source.bits(7)) == cg.seeded(8).bits(10)).all()
    with pytest.raises(ArgumentError, match="1 words are asked for, and 0 are left"):
        source.bits(1)


RATIOS = ((1, 3), (2, 7), (1, 2), (1, 1), (0, 1), (3, 2**70))


@pytest.mark.parametrize("p", [Fraction(*ratio) for ratio in RATIOS])
def test_a_word_is_below_a_probability_exactly_where_it_is(p):
    def probability(level):
        low = Decimal(p.numerator) / Decimal(p.denominator)
        off = Decimal(10) ** -(18 + 20 * level)
        return max(low - off, Decimal(0)), low + off

    source, boundary = cg.seeded(3), math.floor(p * 2**64)
    for word in {0, 1, boundary - 1, boundary + 1, 2**63, 2**64 - 1}:
        if 0 <= word < 2**64 and word != boundary:
            assert randomness.is_below(word, probability, source) == (word < p * 2**64)


def test_a_word_at_the_boundary_takes_further_bits():
    # the first 64 bits of 1/3 are 0101...; the next word decides
    levels = []

    def third(level):
        levels.append(level)
        off = Decimal(10) ** -(25 + 20 * level)
        return Decimal(1) / 3 - off, Decimal(1) / 3 + off

    at = 2**64 // 3
    low, high = (np.array([word], dtype=np.uint64) for word in (2**62, 2**63))
    assert randomness.is_below(at, third, randomness.given(low))
    assert not randomness.is_below(at, third, randomness.given(high))
    assert levels == [0, 1, 0, 1]


@pytest.mark.parametrize("digits", [0, 3, 19, 25, 60])
def test_the_words_that_decide_do_not_depend_on_how_closely_a_probability_is_enclosed(digits):
    def third(level):
        off = Decimal(10) ** -(digits + 20 * level)
        with randomness.precision(level + 4):
            return max(Decimal(1) / 3 - off, Decimal(0)), Decimal(1) / 3 + off

    at = 2**64 // 3
    for word in (0, at - 1, at + 1, 2**64 - 1):
        assert randomness.is_below(word, third, words()) == (word < at)
    for second in (at - 1, at + 1):
        assert randomness.is_below(at, third, words(second)) == (second < at)
    assert not randomness.is_below(at, third, words(at, at, 2**64 - 1))


@pytest.mark.parametrize("known", [2**63, 2**63 - 1])
def test_a_probability_that_ends_with_a_word_is_decided(known):
    def half(level):
        off = Decimal(10) ** -(1 + 20 * level)
        return Decimal("0.5") - off, Decimal("0.5") + off

    # the next words are not the first or the last of all
    assert randomness.is_below(known, half, cg.seeded(1)) == (known < 2**63)


def test_products_enclose_products():
    def third(level):
        with randomness.precision(level):
            return randomness.around(Decimal(1) / 3, level)

    for level in range(3):
        low, high = randomness.product([third, third])(level)
        with randomness.precision(level + 2):
            ninth = Decimal(1) / 9
            assert low <= ninth <= high
            assert high - low < Decimal(10) ** -(38 + 20 * level)


def words(*given_words):
    """A source of these words."""
    return given(np.array(given_words, dtype=np.uint64))


def test_places_are_drawn_in_proportion_to_weights_of_any_size():
    weights = [3 << 2000, 0, 1 << 2000, 4 << 2000, 0, 1]
    rows = 80_000
    seen = np.bincount(randomness.choose(weights, rows, cg.seeded(8)), minlength=6)
    assert seen[[1, 4, 5]].sum() == 0
    expected = np.array([3, 1, 4]) * rows / 8
    assert chi2.sf(((seen[[0, 2, 3]] - expected) ** 2 / expected).sum(), 2) > 1e-6
    wrong = np.array([3, 1.3, 4]) * rows / 8.3
    assert chi2.sf(((seen[[0, 2, 3]] - wrong) ** 2 / wrong).sum(), 2) < 1e-6


def test_a_word_at_the_end_of_a_place_is_decided_by_further_bits():
    first, second = (1 << 64) // 3, (2 << 64) // 3
    of_thirds = randomness.choose
    clear = words(first - 1, first + 1, second - 1, second + 1)
    assert of_thirds([1, 1, 1], 4, clear).tolist() == [0, 1, 1, 2]
    # 1/3 repeats its word; 2/3 as well
    for end, below in ((first, 0), (second, 1)):
        assert of_thirds([1, 1, 1], 1, words(end, end - 1)).tolist() == [below]
        assert of_thirds([1, 1, 1], 1, words(end, end + 1)).tolist() == [below + 1]
        assert of_thirds([1, 1, 1], 1, words(end, end, end - 1)).tolist() == [below]
    # two ends within one word
    narrow = [10**30, 1, 10**30]
    middle = (1 << 63) - 1
    assert of_thirds(narrow, 1, words(middle, 0)).tolist() == [0]
    assert of_thirds(narrow, 1, words(middle, (1 << 64) - 1)).tolist() == [1]
    last = Fraction(10**30, 2 * 10**30 + 1)
    known = int(last * (1 << 192))
    split = [known >> 128, known >> 64 & (1 << 64) - 1, known & (1 << 64) - 1]
    assert of_thirds(narrow, 1, words(*split[:2], split[2] - 1)).tolist() == [0]
    assert of_thirds(narrow, 1, words(*split[:2], split[2] + 1)).tolist() == [1]


def test_a_single_place_takes_its_word_too():
    source = words(5, 6)
    assert randomness.choose([0, 7], 1, source).tolist() == [1]
    assert source.bits(1).tolist() == [6]
    assert randomness.choose([2], 0, source).tolist() == []


@pytest.mark.parametrize("n", [1, 2, 7, 2**64 + 1])
def test_integers_below_a_number_are_uniform(n):
    drawn = [uniform_below(n, cg.seeded(seed)) for seed in range(700)]
    assert all(0 <= k < n for k in drawn)
    observed = np.bincount([k * min(n, 7) // n for k in drawn], minlength=min(n, 7))
    assert chisquare(observed).pvalue > 1e-6 if n > 1 else observed[0] == 700


def test_geometric_numbers_have_their_ratio():
    rng = cg.seeded(4)
    drawn = np.minimum([geometric(Fraction(2, 3), rng) for _ in range(3000)], 8)
    for ratio, fits in ((2 / 3, True), (2 / 3 * 0.7, False), (2 / 3 * 1.3, False)):
        law = (1 - ratio) * ratio ** np.arange(9.0)
        law[8] = ratio**8
        p = chisquare(np.bincount(drawn, minlength=9), 3000 * law / law.sum()).pvalue
        assert (p > 1e-6) == fits
