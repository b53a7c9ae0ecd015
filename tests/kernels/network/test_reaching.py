"""What sums reach, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.reaching import add_up_least
from congenial.kernels.numerics.trees import read_only


@pytest.mark.parametrize("seed", range(30))
def test_a_node_reaches_its_bound_or_what_its_parts_reach(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 20))
    parents = np.array([rng.integers(-1, v) if v else -1 for v in range(n)], dtype=np.int64)
    is_leaf = ~np.isin(np.arange(n), parents)
    lo = rng.integers(-3, 6, n).astype(float)
    below = np.zeros(n)
    arrays = (read_only(parents), np.empty(0, dtype=np.int64), read_only(is_leaf))
    add_up_least(*arrays, lo, below)

    def reach(v):
        parts = sum(reach(c) for c in np.flatnonzero(parents == v))
        return lo[v] if is_leaf[v] else max(lo[v], parts)

    wanted = [sum(reach(c) for c in np.flatnonzero(parents == v)) for v in range(n)]
    assert below.tolist() == wanted
