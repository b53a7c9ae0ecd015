"""Verdicts on the fitted prior of a release, and on the table made under it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import congenial as cg
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.verification.fitted import (
    judged_absence,
    judged_least,
    judged_prior,
    unfitted_prior,
)

FOUND = LevelSplits(np.array([1.0, 2.0, 3.0]), np.array([0.0, 0.0, 0.5]))


def stated_by(author=cg.__version__, prior=()):
    return SimpleNamespace(author=author, prior=prior)


def test_a_prior_may_differ_by_rounding_and_no_more():
    near = LevelSplits(FOUND.alpha * 1.0001, FOUND.spread * 0.9999)
    assert judged_prior(stated_by(), near, FOUND).passed
    for alpha, spread in (([1.0, 2.01, 3.0], FOUND.spread), (FOUND.alpha, [0.0, 0.0, 0.51])):
        other = LevelSplits(np.array(alpha), np.array(spread))
        check = judged_prior(stated_by(), other, FOUND)
        assert not check.passed and "another prior" in check.text and "unless" not in check.text
        assert "unless congenial" in judged_prior(stated_by("0.0.1"), other, FOUND).text


def test_without_measurements_it_is_said_what_nobody_can_check():
    assert "no fit can be checked" in unfitted_prior(stated_by()).text
    assert "nobody can check why" in unfitted_prior(stated_by(prior=None)).text


def test_a_posterior_that_could_be_computed_was_due():
    assert judged_absence(refused=True).passed
    check = judged_absence(refused=False)
    assert not check.passed and "was due" in check.text


def test_a_table_of_larger_error_fails():
    assert judged_least(follow=True).passed and not judged_least(follow=False).passed
