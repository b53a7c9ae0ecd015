"""Findings of an audit: whether they pass, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import congenial as cg
from congenial.auditing.finding import LIMITS, Audit, Finding, announced
from support.notebook import texts

TREE = cg.Tree.from_parents([-1, 0, 0])


@cache
def guarantee():
    """Return a guarantee, made only in a test, so that collecting tests compiles nothing."""
    noise = cg.Additive(cg.DiscreteLaplace(1.0), TREE)
    return cg.condition(noise, cg.consistent(TREE) & cg.exactly([0])).guarantee("substitute")


GOOD = Finding("loss, enumerated", True, 0.5, 2.0, 3, 40, None, "all outputs were compared")


def test_each_pair_is_announced_before_it_is_given():
    said = []
    pairs = [(np.arange(k), np.arange(k)) for k in (1, 2)]
    each = announced(pairs, said.append, "pair")
    assert next(each) is pairs[0]
    assert said == ["pair 1 of 2"]
    assert [*each] == pairs[1:]
    assert said == ["pair 1 of 2", "pair 2 of 2"]


def test_an_audit_passes_if_every_finding_passes():
    bad = replace(GOOD, check="delta, from draws", passed=False, found=2.5)
    assert Audit(guarantee(), (GOOD,), 0.999).passed
    assert not Audit(guarantee(), (GOOD, bad), 0.999).passed
    assert (GOOD.slack, bad.slack) == (1.5, -0.5)
    lines = str(Audit(guarantee(), (GOOD, bad), 0.999)).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["ok", "FAILED"]
    assert "delta, from draws: all outputs were compared" in lines
    assert lines[-1] == LIMITS.splitlines()[-1]


def test_an_audit_is_shown_with_its_checks_and_limits():
    bad = replace(GOOD, check="delta, from draws", passed=False, found=2.5)
    found = Audit(guarantee(), (GOOD, bad), 0.999)
    assert repr(found) == "Audit(2 checks: 1 failed)"
    assert repr(Audit(guarantee(), (GOOD,), 0.999)) == "Audit(1 check: all passed)"
    shown = texts(found._repr_html_())
    assert shown.count("ok") == shown.count("FAILED") == 1
    assert "loss, enumerated: all outputs were compared" in shown
    assert shown[-1] == LIMITS
