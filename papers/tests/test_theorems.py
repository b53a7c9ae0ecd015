"""The papers' theorems, each tried on many random finite laws, exactly."""

from __future__ import annotations

import pytest

from papers.claims import CLAIMS, Claim, decide

CASES = 200


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.item)
def test_every_claim_is_as_it_was_found(claim: Claim) -> None:
    verdict = decide(claim.case, cases=CASES, seed=1)
    assert verdict.cases == CASES
    assert verdict.holds == claim.true, verdict.counterexample
    assert bool(verdict.counterexample) != verdict.holds


@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.true], ids=lambda claim: claim.item)
def test_every_trial_can_fail(claim: Claim) -> None:
    assert claim.control is not None
    assert not decide(claim.control, cases=CASES, seed=2).holds


def test_every_item_is_named_once() -> None:
    assert len({claim.item for claim in CLAIMS}) == len(CLAIMS)


def test_the_counterexample_to_theorem_3_5_is_about_counts_that_meet_the_union() -> None:
    (claim,) = (c for c in CLAIMS if c.item == "Two Views, Theorem 3.5, part 2")
    verdict = decide(claim.case, cases=1000, seed=1)
    assert verdict.counterexample == (
        "double geometric, a = 1/2, counts 0 and 1, C = {0}, C' = {1}: ratios 1 and 1 become 2"
    )
