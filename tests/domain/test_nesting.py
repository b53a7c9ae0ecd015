"""Sets of cells that are nested or disjoint, and sums of them, against sets."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.nesting import nested_parents, sums_by_refinement


def random_chain(rng, nested):
    """Return rows of sets, and which cells each set has: rows refine each other if `nested`."""
    k = int(rng.integers(2, 9))
    rows, members, at = [], {}, 0
    labels = np.zeros(k, dtype=np.int64)
    for _ in range(int(rng.integers(1, 4))):
        split = rng.integers(0, 2, k)
        labels = labels * 2 + split if nested else split
        row = np.empty(k, dtype=np.int64)
        for label in np.unique(labels):
            row[labels == label] = at
            members[at] = frozenset(np.flatnonzero(labels == label).tolist())
            at += 1
        rows.append(row)
    return np.array(rows), members


@pytest.mark.parametrize("seed", range(60))
def test_a_parent_is_the_smallest_set_that_holds_a_set(seed):
    rng = np.random.default_rng(seed)
    chain, members = random_chain(rng, nested=bool(seed % 2))
    found = nested_parents(chain, len(members))
    sets = list(members.values())
    nested = all(not a & b or a <= b or b <= a for a in sets for b in sets)
    assert (found is not None) == nested
    if found is None:
        return
    for s, cells in members.items():
        above = [t for t, other in members.items() if cells < other or (cells == other and t < s)]
        # of equal sets, the one of a later row is the smaller
        wanted = min(above, key=lambda t: (len(members[t]), -t), default=-1)
        assert found[s] == wanted


@pytest.mark.parametrize("seed", range(30))
def test_every_set_is_the_sum_of_smaller_ones(seed):
    rng = np.random.default_rng(seed)
    chain, members = random_chain(rng, nested=bool(seed % 2))
    k, n = chain.shape[1], len(members)
    chain = np.vstack((chain, np.arange(n, n + k)))
    starts = [int(row.min()) for row in chain]
    stops = [*starts[1:], n + k]
    sums = sums_by_refinement(chain, [slice(a, b) for a, b in zip(starts, stops, strict=True)])
    counts = rng.integers(0, 9, k)
    values = np.array([sum(counts[list(cells)]) for cells in members.values()] + counts.tolist())
    assert sums.totals.tolist() == list(range(n))
    assert not sums.gaps(values).any()
    values[0] += 1
    assert sums.gaps(values)[0] == 1
    assert (sums.sum_of_part == np.repeat(np.arange(n), np.diff(sums.starts))).all()
