"""The auditor's parts, and what it refuses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.auditing.binomial import probability_bounds
from congenial.auditing.drawn import Shares
from congenial.auditing.enumerated import at_delta
from congenial.auditing.space import space_of
from congenial.errors import ArgumentError, PrivacyError, UnsupportedError

PAIR = cg.Tree.from_parents([-1, 0, 0])
TOTAL = cg.consistent(PAIR) & cg.exactly(0)
SCALES = np.array([np.inf, 2.0, 1.5])
FREE = np.array([1.5, 2.0, 1.5])


def noisy(scales=SCALES, queries=PAIR):
    return cg.Additive(cg.DiscreteLaplace(scales), queries)


def audit(mechanism, neighbours="substitute", **options):
    return cg.audit(mechanism, neighbours=neighbours, confidence=1.0 - 1e-6, **options)


def failed(found) -> set[str]:
    return {f.check for f in found.findings if not f.passed}


@pytest.mark.parametrize(
    ("hits", "trials"), [(0, 50), (1, 50), (50, 50), (49, 50), (17, 400), (9_990, 10_000)]
)
@pytest.mark.parametrize("error", [0.05, 1e-7])
def test_bounds_of_a_probability(hits, trials, error):
    lower, upper = probability_bounds(hits, trials, error)
    low = stats.beta.ppf(error, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.isf(error, hits + 1, trials - hits) if hits < trials else 1.0
    np.testing.assert_allclose((lower, upper), (low, high), rtol=1e-6, atol=1e-12)
    assert lower <= low * (1 + 1e-9)
    assert upper >= high * (1 - 1e-9)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
def test_epsilon_at_a_delta_is_that_of_discrete_gaussian_noise(epsilon):
    u = np.arange(-80, 81)
    law = -0.5 * (u / 2.0) ** 2
    law -= np.logaddexp.reduce(law)
    delta = cg.accounting.discrete_gaussian_delta(sigma=2.0, epsilon=epsilon)
    assert at_delta(law[1:], law[:-1], delta) == pytest.approx(epsilon, abs=1e-9)
    assert at_delta(law[1:], law[:-1], 1.0) == 0.0


def test_every_pair_is_compared_once():
    space = space_of(cg.condition(noisy(FREE), cg.consistent(PAIR) & cg.nonnegative()))
    datasets = list(space.datasets(2))
    assert sorted(tuple(x[1:]) for x in datasets) == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0),
    ]  # fmt: skip
    assert len(space.pairs(datasets, "add-remove")) == 6
    assert len(space.pairs(datasets, "substitute")) == 3


def test_pairs_may_be_given_where_queries_are_not_told():
    made = cg.condition(noisy(), TOTAL)
    bare = SimpleNamespace(sample=made.sample, guarantee=made.guarantee)
    with pytest.raises(ArgumentError, match="pairs="):
        audit(bare)
    given = [([4, 2, 2], [4, 3, 1])]
    assert [f.check for f in audit(bare, pairs=given).findings] == ["loss, from draws"]
    leaky = SimpleNamespace(
        sample=cg.condition(noisy(0.5 * SCALES), TOTAL).sample, guarantee=made.guarantee
    )
    assert failed(audit(leaky, pairs=given)) == {"loss, from draws"}
    assert audit(made, pairs=given).findings[0].pairs == 1


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


def test_a_wrong_normaliser_is_found():
    made = cg.condition(noisy(), TOTAL & cg.nonnegative())
    wrong = SimpleNamespace(
        mechanism=made.mechanism,
        resolved=made.resolved,
        sample=made.sample,
        guarantee=made.guarantee,
        log_prob=lambda z, x: made.log_prob(z, x) + 1e-6,
    )
    assert failed(audit(wrong, method="exact")) == {"mass, enumerated"}
    assert audit(made, method="exact").findings[1].found == pytest.approx(1.0, abs=1e-9)


def refuted(times: int, confidence: float) -> int:
    """Count the audits of a claim that is attained which fail."""
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


def test_the_same_seed_gives_the_same_audit():
    made = cg.condition(noisy(), TOTAL)
    one, same, other = (
        str(audit(made, draws=2000, rng=rng)) for rng in (None, None, cg.seeded(77))
    )
    assert one == same != other
    assert "draws can refute a claim and never prove one" in one
    assert audit(made, draws=2000, rng=cg.secure()).passed


def test_what_cannot_be_audited_is_refused():
    made = cg.condition(noisy(), TOTAL)
    with pytest.raises(ArgumentError, match="method is"):
        audit(made, method="both")
    with pytest.raises(ArgumentError, match="draws is"):
        audit(made, draws=3)
    with pytest.raises(ArgumentError, match=r"take 22 GiB .* at most 83,333,333"):
        audit(made, draws=10**9)
    with pytest.raises(ArgumentError, match="total is"):
        audit(made, total=0)
    with pytest.raises(ArgumentError, match="confidence is"):
        cg.audit(made, neighbours="substitute", confidence=1.0)
    with pytest.raises(ArgumentError, match="no pair"):
        audit(made, pairs=[([1, 1, 0], [1, 1, 0])])
    wide = cg.condition(noisy(1.0, 30), cg.linear(np.ones(30), 3) & cg.nonnegative())
    with pytest.raises(UnsupportedError, match="statistical"):
        audit(
            SimpleNamespace(
                mechanism=wide.mechanism,
                resolved=wide.resolved,
                guarantee=wide.guarantee,
                sample=wide.sample,
            ),
            method="exact",
        )
    with pytest.raises(PrivacyError):
        audit(cg.condition(noisy(FREE), cg.consistent(PAIR), "tree-mh"))
