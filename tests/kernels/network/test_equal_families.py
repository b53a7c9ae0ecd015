"""Families of leaves, their gaps and which are equal, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network import equal_families as kernels

pytestmark = pytest.mark.kernels


def random_members(source):
    """Return where families begin, their members, and properties of these."""
    number = source.integers(1, source.choice([4, 120]), int(source.integers(1, 8)))
    start = np.append(0, np.cumsum(number)).astype(np.int32)
    n = int(start[-1]) + 3
    member = source.permutation(n)[: start[-1]].astype(np.int32)
    owned, inverse = source.random(n) < 0.02, source.choice([0.5, 0.5, 0.5, 0.25, 0.0], n)
    if source.random() < 0.7:
        inverse[:] = 0.5
    return start, member, owned, inverse, source.integers(0, 6, n), source.integers(-3, 4, n)


def test_families_of_leaves_and_their_gaps_are_those_of_loops():
    source, found = np.random.default_rng(1), 0
    for _ in range(300):
        start, member, owned, inverse, gap, least = random_members(source)
        m = start.size - 1
        of_leaves, rate = np.empty(m, dtype=np.bool_), np.empty(m)
        reach, base = np.empty(m, dtype=np.int64), np.full(m, 99)
        kernels.find_leaves(start, member, owned, inverse, gap, of_leaves, rate, reach)
        begins, (gaps, counts) = np.empty(m + 1, dtype=np.int64), np.full((2, member.size), -7)
        shape = start, member, of_leaves, gap, least
        used = kernels.list_gaps(*shape, begins, base, gaps, counts)
        assert begins[m] == used
        for f in range(m):
            own = member[start[f] : start[f + 1]]
            scales = set(inverse[own].tolist())
            assert of_leaves[f] == (not owned[own].any() and len(scales) == 1 and 0.0 not in scales)
            assert (rate[f], reach[f]) == (min(scales), gap[own].max())
            listed = slice(begins[f], begins[f + 1])
            if not of_leaves[f]:
                assert begins[f] == begins[f + 1]
                continue
            found += 1
            values, times = np.unique(gap[own], return_counts=True)
            assert gaps[listed].tolist() == values.tolist()
            assert counts[listed].tolist() == times.tolist()
            assert base[f] == least[own].sum()
    assert found > 200


@pytest.mark.parametrize("room", [0, 5])
def test_the_first_equal_family_is_found_in_full_hash_tables_too(room):
    source, shared = np.random.default_rng(2), 0
    for _ in range(300):
        m = int(source.integers(1, 16))
        begins = np.append(0, np.cumsum(source.integers(0, 3, m)))
        lists = tuple(source.integers(0, 2, begins[-1]) for _ in range(2))
        number = np.flatnonzero(source.random(m) < 0.8)
        keys, out = source.integers(-1, 1, (number.size, 2)), np.arange(m)
        # one place is left: searches pass many families that differ
        seen = np.full(1 << (int(number.size).bit_length() + room), -1)
        kernels.first_equal(number, keys, begins, lists, seen, out)
        known, true = {}, np.arange(m)
        for i, f in enumerate(number.tolist()):
            own = tuple(one[begins[f] : begins[f + 1]].tobytes() for one in lists)
            true[f] = known.setdefault((keys[i].tobytes(), *own), f)
        assert out.tolist() == true.tolist()
        shared += (out != np.arange(m)).sum()
    assert shared > 100
