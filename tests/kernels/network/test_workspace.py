"""Workspace: no two classes in use at the same time share a slice."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.workspace import assign


@pytest.mark.parametrize("seed", range(30))
def test_rooms_in_use_do_not_overlap(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 40))
    left, right = np.full((2, count), -1, dtype=np.int32)
    for c in range(2, count):
        if rng.random() < 0.6:
            left[c], right[c] = rng.integers(0, c, 2)
    width = rng.integers(0, 200, count)
    kept = rng.random(count) < 0.2
    place = np.full(count, -1, dtype=np.int64)
    extent = assign(left, right, width, kept, place)
    last = np.arange(count)
    for c in range(count):
        for part in (left[c], right[c]):
            if part >= 0:
                last[part] = c
    last[kept] = count
    for c in range(count):
        assert place[c] + width[c] <= extent
        for d in range(c):
            if last[d] >= c and width[c] and width[d]:  # both are needed when c is made
                assert place[c] + width[c] <= place[d] or place[d] + width[d] <= place[c]
