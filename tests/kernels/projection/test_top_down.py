"""Families moved onto what their parents got, against bisection."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chisquare

from congenial.kernels.numerics.trees import read_only
from congenial.kernels.projection.check import reach
from congenial.kernels.projection.top_down import DONE, INFEASIBLE, TOO_LARGE, descend
from support.kernel_entries import entry
from support.projection_arrays import laid, leaf_sums, linked, random_parents, words_of
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels

NONE = words_of([])
LEAST_UP = entry("projection.top_down._least_up")


def moved(y, lo, hi, whole):
    """The closest values of sum `whole` within their ranges."""
    if hi.sum() - lo.sum() < 1e-12:
        return lo

    def short(by):
        return np.clip(y + by, lo, hi).sum() - whole

    return np.clip(y + brentq(short, -500.0, 500.0, xtol=1e-13), lo, hi)


@for_each_seed(200)
@pytest.mark.parametrize("whole", [False, True])
def test_each_family_is_the_closest_to_its_measurements(seed, whole):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, int(rng.integers(1, 14)))
    rows, order = laid(parents)
    sums, n = leaf_sums(parents), parents.size
    x = sums @ rng.integers(0, 9, sums.shape[1])
    y = x + rng.normal(0, 4, n)
    lo, hi = x - rng.integers(0, 5, n).astype(float), x + rng.integers(0, 5, n).astype(float)
    low, high = lo.copy(), hi.copy()
    assert reach(linked(parents), 1e-9, low, high) < 0
    by_place = low[order], high[order]
    words = words_of(rng.integers(0, 2**63, n)) if whole else NONE
    z, fixed = np.empty(n), np.zeros(n, dtype=bool)
    assert descend(rows, order, fixed, *by_place, True, read_only(y), 1e12, words, z) == DONE
    assert ((z >= low - 1e-9) & (z <= high + 1e-9)).all()
    assert not whole or (z == np.rint(z)).all()
    root = parents < 0
    assert abs(z[root] - np.clip(y[root], low[root], high[root])) <= (0.5 if whole else 1e-12)
    for v in range(n):
        family = np.flatnonzero(parents == v)
        if family.size:
            assert z[family].sum() == pytest.approx(z[v], abs=1e-9)
            wanted = moved(y[family], low[family], high[family], z[v])
            # remainders are read on a grid of 2^-20
            np.testing.assert_allclose(z[family], wanted, atol=1.0 + 2e-6 if whole else 1e-8)


def test_infeasible_problems_are_refused():
    rows, order = laid(np.array([-1, 0, 0]))
    lo, hi = np.array([5.0, 0.0, 0.0]), np.array([9.0, 4.0, 4.0])
    fixed, z = np.array([True, False, False]), np.empty(3)
    for values, state in (([4.0, 1.0, 1.0], INFEASIBLE), ([6.0, 1e13, 1.0], TOO_LARGE)):
        given = read_only(np.array(values))
        assert descend(rows, order, fixed, lo, hi, True, given, 1e12, NONE, z) == state


@for_each_seed(300)
def test_the_largest_remainders_are_found_by_guesses(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.choice([1, 2, 3, 7, 8, 9, 20, 65, 300]))
    m = -(-k // 8) * 8
    full = 2**20
    # even, equal, in few groups, or nearly all small
    spread = rng.integers(0, 4)
    parts = rng.integers(0, [full, 2, 5, full][spread], k) * (3 if spread in (1, 2) else 1)
    if spread == 3:
        parts = np.floor(full * (parts / full) ** 12)
    after = rng.integers(0, full, m - k)  # what is behind a family does not count
    given = np.concatenate((parts, after)).astype(float)
    positive = int((parts > 0).sum())
    for units in {0, positive, *rng.integers(0, positive + 1, 9).tolist()}:
        least, up, shared = LEAST_UP(float(units), float(positive), given, m, k)
        assert (parts >= least).sum() == up <= units
        assert (parts == least - 1).sum() == shared if shared else up == units
        assert not shared or up < units < up + shared


def rounded(y, lo, hi, whole, words):
    """Round one family whose parent has the value `whole`."""
    n = y.size + 1
    rows = np.array([[1, n], [n, n], [1, 1], [0, n]])
    ends = np.concatenate(([whole], lo)), np.concatenate(([whole], hi))
    z, given = np.empty(n), read_only(np.concatenate(([whole], y)))
    fixed, order = np.arange(n) == 0, np.zeros(0, dtype=np.int64)
    capped = bool((hi < np.inf).any())
    assert descend(rows, order, fixed, *ends, capped, given, 2.0**53, words, z) == DONE
    return z[1:]


def nearest_roundings(real, whole):
    """All integers next to the values of sum `whole` whose summed change is least."""
    floor = np.floor(real + 2.0**-21)
    parts = np.rint((real - floor) * 2**20).astype(np.int64)
    best, least = [], np.inf
    for up in combinations(np.flatnonzero(parts).tolist(), int(whole - floor.sum())):
        added = np.bincount(np.array(up, dtype=np.int64), minlength=real.size)
        change = np.where(added, 2**20 - parts, parts).sum()
        if change < least:
            best, least = [], change
        if change == least:
            best.append(tuple((floor + added).tolist()))
    return best


@for_each_seed(400)
def test_a_familys_rounding_is_one_of_least_change_and_each_of_them_happens(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 11))
    # coarse steps, so that remainders are often equal
    step = float(rng.choice([1.0, 0.5, 0.25, 2.0**-19]))
    y = np.rint(rng.normal(1, 2, k) / step) * step
    lo = np.zeros(k)
    hi = np.full(k, np.inf) if seed % 2 else rng.integers(1, 5, k).astype(float)
    whole = float(rng.integers(0, min(hi.sum(), 2 * k) + 1))
    best = set(nearest_roundings(moved(y, lo, np.minimum(hi, 99.0), whole), whole))
    drawn = {
        tuple(rounded(y, lo, hi, whole, words_of(rng.integers(0, 2**64, k, dtype=np.uint64))))
        for _ in range(8 * len(best))
    }
    assert drawn <= best
    assert len(drawn) > 0.9 * len(best) - 1


@pytest.mark.parametrize(("k", "units"), [(2, 1), (5, 1), (5, 3), (5, 4), (12, 2), (12, 10)])
def test_equally_good_roundings_are_equally_likely(k, units):
    rng = np.random.default_rng(k * units)
    ways = list(combinations(range(k), units))
    counts = dict.fromkeys(ways, 0)
    y, lo, hi = np.zeros(k), np.zeros(k), np.full(k, np.inf)
    for words in rng.integers(0, 2**64, (40 * len(ways), 4), dtype=np.uint64):
        up = rounded(y, lo, hi, float(units), words_of(words))
        counts[tuple(np.flatnonzero(up).tolist())] += 1
    assert chisquare(list(counts.values())).pvalue > 1e-6
    assert sum(counts.values()) == 40 * len(ways)


def test_all_bits_of_a_place_count_in_a_wide_family():
    k = 200_000
    words = np.zeros(k // 4 + 1, dtype=np.uint64)
    words[0] = 0xFFFF << 32  # the lower of the two halves by which the first place is drawn
    up = rounded(np.zeros(k), np.zeros(k), np.full(k, np.inf), 1.0, words_of(words))
    assert np.flatnonzero(up).tolist() == [0xFFFF * k >> 32] == [3]


def test_a_family_of_large_values_of_both_signs_adds_up():
    big = 2.0**52
    y = np.array([big, big, big, -big, -big, 3.0])
    z = rounded(y, np.full(6, -np.inf), np.full(6, np.inf), big + 5.0, words_of(range(6)))
    assert z.sum() == big + 5.0
