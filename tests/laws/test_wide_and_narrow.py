"""Wide noise beside narrow noise: draws succeed for all counts."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import congenial as cg


@pytest.mark.parametrize("kind", [cg.DiscreteLaplace, cg.DiscreteGaussian])
@pytest.mark.parametrize("leaves", [*permutations([0, 0, 10**6]), (0, 0, 0), (3, 10**4, 0)])
def test_wide_noise_beside_narrow_noise_is_drawn_for_all_counts(kind, leaves):
    """Nothing is measured of the root, so that leaves are independent: each has its own mass."""
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    scales = np.array([np.inf, 1000.0, 1000.0, 0.1])
    made = cg.condition(cg.Additive(kind(scales), tree), cg.consistent(tree) & cg.nonnegative())
    x = tree.roll_up(np.array(leaves))
    draws = made.sample(x, 20, cg.seeded(1))
    assert tree.is_consistent(draws)
    assert draws.min() >= 0
    noise = np.arange(-30_000, 30_001)
    log_p = [kind(s).log_pmf(noise, np.array([s])) for s in scales[1:]]
    kept = [np.exp(p)[noise >= -v].sum() for p, v in zip(log_p, leaves, strict=True)]
    assert made.log_normalizer(x) == pytest.approx(np.log(kept).sum(), abs=1e-8)
