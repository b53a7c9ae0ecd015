"""Variables grouped by the sums above them, against loops."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.families import families
from support.kernel_entries import entry


@pytest.mark.parametrize("seed", range(30))
def test_summands_are_grouped_and_sums_come_after_all_below_them(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 8))
    # sum k > 0 stands at an owner that is a summand of an earlier sum
    above, owner, depth = [], np.full(m, -1, dtype=np.int32), np.zeros(m, dtype=np.int32)
    for k in range(m):
        if k:
            top = int(rng.integers(0, k))
            owner[k], depth[k] = len(above), depth[top] + 1
            above.append(top)
        above += [k] * int(rng.integers(1, 4))
    above = np.array(above, dtype=np.int32)
    if seed % 3 == 0 and m == 1:
        above = np.sort(above)
    n = above.size
    start, member = np.empty(m + 1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    bottom_up = np.empty(m, dtype=np.int32)
    first = families(above, owner, depth, start, member, bottom_up)
    for k in range(m):
        summands = np.flatnonzero(above == k).tolist()
        here = range(start[k], start[k + 1])
        assert [first + i if first >= 0 else member[i] for i in here] == summands
    place = {k: i for i, k in enumerate(bottom_up.tolist())}
    assert sorted(place) == list(range(m))
    for k in range(m):
        below = [j for j in range(m) if owner[j] >= 0 and above[owner[j]] == k]
        assert all(place[j] < place[k] for j in below)


@pytest.mark.parametrize("size", [1, 2, 48, 49, 3000])
def test_members_are_sorted_by_class(size):
    rng = np.random.default_rng(size)
    members = (rng.integers(5, 9000, size) << 32) + np.arange(size)
    given = members.copy()
    entry("network.families.sort")(members, np.empty_like(members), size)
    assert members.tolist() == sorted(given.tolist())
