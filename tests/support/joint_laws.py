"""Joint laws compared with enumeration."""

from __future__ import annotations

import numpy as np


def assert_same_joint(conditioned, law, x, nodes):
    """Compare a joint law with enumeration to 1e-10."""
    values, probabilities = conditioned.joint(nodes, x)
    assert probabilities.shape == tuple(v.size for v in values)
    assert all((np.diff(v) == 1).all() and v.dtype == np.int64 for v in values)
    keys, at = np.unique(law.states[:, list(nodes)], axis=0, return_inverse=True)
    want = np.bincount(at.ravel(), weights=law.probabilities)
    rest = probabilities.copy()
    for key, mass in zip(keys.tolist(), want, strict=True):
        index = tuple(k - int(v[0]) for k, v in zip(key, values, strict=True))
        if all(0 <= i < n for i, n in zip(index, rest.shape, strict=True)):
            assert abs(rest[index] - mass) < 1e-10
            rest[index] = 0.0
        else:
            assert mass < 1e-10
    assert rest.sum() < 1e-10
