"""Losses estimated from draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.auditing.drawn import Shares
from congenial.errors import ArgumentError

PAIR = cg.Tree.from_parents([-1, 0, 0])


TOTAL = cg.consistent(PAIR) & cg.exactly(0)


SCALES = np.array([np.inf, 2.0, 1.5])


def noisy(scales=SCALES, queries=PAIR):
    return cg.Additive(cg.DiscreteLaplace(scales), queries)


def audit(mechanism, neighbours="substitute", **options):
    return cg.audit(mechanism, neighbours=neighbours, confidence=1.0 - 1e-6, **options)


@pytest.mark.parametrize(
    ("pair", "relation"),
    [
        (([4, 2, 2], [4, 4, 0]), "substitute"),
        (([4, 2, 2], [5, 3, 2]), "substitute"),
        (([4, 2, 2], [4, 3, 2]), "substitute"),
        (([4, 2, 2], [4, 3, 1]), "add-remove"),
        (([4, 4, 0], [4, 5, -1]), "substitute"),
    ],
    ids=["two records", "another total", "not a sum", "moved", "below a bound"],
)
def test_only_neighbours_are_compared(pair, relation):
    made = cg.condition(noisy(), TOTAL & cg.nonnegative())
    claim = made.guarantee("substitute") if relation == "add-remove" else None
    with pytest.raises(ArgumentError, match="is not covered"):
        audit(made, relation, pairs=[pair], claim=claim)


def refuted(times: int, confidence: float) -> int:
    """Count the failing audits of a claim that is attained."""
    made = cg.condition(noisy(), TOTAL)
    options = {
        "neighbours": "substitute",
        "method": "statistical",
        "pairs": [([4, 2, 2], [4, 3, 1])],
        "draws": 1000,
        "confidence": confidence,
    }
    audits = (cg.audit(made, rng=cg.seeded(seed), **options) for seed in range(times))
    return sum(not found.passed for found in audits)


def test_a_true_claim_is_refuted_as_rarely_as_stated(monkeypatch):
    times, confidence = 80, 0.5
    most = stats.binom.isf(1e-6, times, 1.0 - confidence)
    assert refuted(times, confidence) <= most
    # events counted on the draws that they were chosen by would refute it often
    monkeypatch.setattr("congenial.auditing.simulation.shared_out", lambda z: Shares(z, z, z))
    assert refuted(times, confidence) > most
