"""Comparisons of a certificate with what follows from its plan: numbers up to rounding."""

from __future__ import annotations

import pytest

from congenial.verification.checks import close, compare

STATED = {"epsilon": 1.0, "kind": "pure", "parts": [1, 2.5]}


def test_numbers_agree_up_to_rounding():
    assert close(STATED, STATED | {"epsilon": 1.0 + 1e-13})
    assert not close(STATED, STATED | {"epsilon": 1.001})
    assert not close(STATED, STATED | {"parts": [1]})
    assert not close(STATED, STATED | {"parts": [2, 2.5]})
    assert not close(STATED, {key: STATED[key] for key in ("epsilon", "kind")})


def test_a_claim_that_does_not_follow_from_the_plan_fails():
    assert compare("claim", "the claim", STATED, STATED).passed
    wrong = compare("claim", "the claim", STATED, STATED | {"epsilon": 0.5})
    assert not wrong.passed
    assert "disagrees with the plan" in wrong.text


def test_the_old_name_of_its_text_warns():
    with pytest.warns(DeprecationWarning, match="detail is now text"):
        assert compare("claim", "the claim", STATED, STATED).detail.startswith("the claim")
