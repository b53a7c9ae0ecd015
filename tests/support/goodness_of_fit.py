"""Chi-square tests of draws against enumerated laws."""

from __future__ import annotations

import numpy as np
from scipy.stats import chi2

from support.enumeration import merged

FAILS = 1e-6


def p_value(observed, expected) -> float:
    """Chi-square goodness of fit; cells of little expectation are merged already."""
    used = expected > 0
    if observed[~used].any():
        return 0.0
    statistic = ((observed[used] - expected[used]) ** 2 / expected[used]).sum()
    return float(chi2.sf(statistic, max(int(used.sum()) - 1, 1)))


def fit(draws, law, nodes, least=10.0) -> float:
    """p-value of draws (size, n) under the joint law of `nodes`."""
    cells, probabilities = merged(law, nodes, least=least / len(draws))
    keys, counts = np.unique(draws[:, list(nodes)], axis=0, return_counts=True)
    observed = np.zeros(probabilities.size)
    known = {tuple(k) for k in np.unique(law.states[:, list(nodes)], axis=0).tolist()}
    for key, count in zip(map(tuple, keys.tolist()), counts, strict=True):
        if key not in known:
            return 0.0
        observed[cells.get(key, 0)] += count
    expected = probabilities * len(draws)
    if expected[0] < least:  # too little to be a cell of its own
        smallest = 1 + int(np.argmin(expected[1:]))
        expected[smallest] += expected[0]
        observed[smallest] += observed[0]
        expected, observed = expected[1:], observed[1:]
    return p_value(observed, expected)
