"""Comparisons of a certificate: numbers up to rounding, and words of other versions."""

from __future__ import annotations

from congenial.verification.checks import WORDS, close, compare

TEXT = min(WORDS)
STATED = {"epsilon": 1.0, TEXT: "costs 3 units", "parts": [1, "a"]}


def test_numbers_agree_up_to_rounding():
    assert close(STATED, STATED | {"epsilon": 1.0 + 1e-13})
    assert not close(STATED, STATED | {"epsilon": 1.001})
    assert not close(STATED, STATED | {"parts": [1]})
    assert not close(STATED, {key: STATED[key] for key in ("epsilon", TEXT)})


def test_what_does_not_follow_from_the_plan_fails():
    assert compare("claim", "the claim", STATED, STATED).passed
    wrong = compare("claim", "the claim", STATED, STATED | {"epsilon": 0.5})
    assert not wrong.passed
    assert "does not follow" in wrong.detail


def test_words_of_another_version_are_not_compared_and_its_numbers_are():
    reworded = STATED | {TEXT: "it takes 3 units"}
    assert not compare("claim", "the claim", STATED, reworded).passed
    other = compare("claim", "the claim", STATED, reworded, author="0.0.1")
    assert (other.passed, other.comparable) == (True, False)
    false = STATED | {TEXT: "it takes 4 units"}
    assert not compare("claim", "the claim", STATED, false, author="0.0.1").passed
