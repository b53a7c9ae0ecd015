"""Sources of random words: secure by default, seeded only when told."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import congenial as cg
from congenial.errors import ArgumentError
from congenial.randomness import Randomness, resolve


@pytest.mark.parametrize("source", [cg.secure(), cg.seeded(1)], ids=repr)
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


@pytest.mark.parametrize("seed", [-1, 1.5, "1", None, True])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(ArgumentError, match="give a nonnegative integer"):
        cg.seeded(seed)


@pytest.mark.parametrize("rng", [1, "secure", np.random.default_rng(1), object()])
def test_a_source_made_elsewhere_is_refused(rng):
    with pytest.raises(ArgumentError, match=r"congenial\.secure\(\)"):
        resolve(rng)
