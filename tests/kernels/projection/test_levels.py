"""A forest laid out level by level: every family is one stretch, leaves first."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.projection.forest import Forest
from congenial.kernels.projection.levels import drop_implied, lay_out


@pytest.mark.parametrize("seed", range(25))
def test_every_family_is_one_stretch(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    parents = np.array([rng.integers(-1, v) if v else -1 for v in range(n)])
    members = [np.flatnonzero(parents == v) for v in range(n)]
    starts = np.concatenate([[0], np.cumsum([len(m) for m in members])]).astype(np.int64)
    children = np.concatenate([*members, np.empty(0)]).astype(np.int64)
    order = np.full(n, -1, dtype=np.int64)
    forest = Forest(starts, children, np.empty(0, dtype=np.int64), parents < 0)
    first, split, below, at = lay_out(forest, order)
    assert sorted(order.tolist()) == list(range(n))
    inner = [v for v in range(n) if len(members[v])]
    assert sorted(order[at[:-1]].tolist()) == inner
    for k in range(len(inner)):
        v = order[at[k]]
        family = order[first[k] : first[k + 1]]
        assert sorted(family.tolist()) == members[v].tolist()
        leaves, parts = order[first[k] : split[k]], order[split[k] : first[k + 1]]
        assert all(not len(members[c]) for c in leaves)
        assert parts.tolist() == order[at[below[k] : below[k + 1]]].tolist()
    rows = np.array([first, split, below, at])
    leaf_lo = np.where([not len(members[v]) for v in order], rng.integers(-2, 3, n), 0.0)
    lo = rng.integers(-4, 5, len(inner)).astype(float)
    kept = lo.copy()
    drop_implied(rows, leaf_lo, kept)

    def reached(k):
        inside = sum(leaf_lo[first[k] : split[k]])
        return inside + sum(max(reached(j), lo[j]) for j in range(below[k], below[k + 1]))

    for k in range(len(inner)):
        assert kept[k] == (-np.inf if lo[k] <= reached(k) else lo[k])
