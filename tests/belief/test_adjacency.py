"""Neighbourhoods under an invariant, against all pairs of small datasets."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from congenial.belief.adjacency import hamming, neighbourhood

CUBE = list(product((0, 1), repeat=3))


@pytest.mark.parametrize("seed", range(30))
def test_the_closest_pairs_that_remain(seed):
    rng = np.random.default_rng(seed)
    kept = [x for x in CUBE if rng.random() < 0.4]
    found = neighbourhood(kept, hamming)
    apart = {
        (x, y): sum(a != b for a, b in zip(x, y, strict=True)) for x, y in combinations(kept, 2)
    }
    least = min(apart.values(), default=None)
    assert found.distance == least
    assert found.state == (
        "destroyed" if least is None else "intact" if least == 1 else "disrupted"
    )
    assert {frozenset(pair) for pair in found.pairs} == {
        frozenset(pair) for pair, d in apart.items() if d == least
    }
    alone = {x for x in kept if not any(x in pair for pair, d in apart.items() if d == 1)}
    assert set(found.isolated) == alone


def test_datasets_of_unlike_sizes_have_no_distance():
    with pytest.raises(ValueError, match="shorter"):
        hamming((0, 1), (0,))
