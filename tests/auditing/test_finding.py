"""Findings of an audit: whether they pass, and what is said of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import congenial as cg
from congenial.auditing.finding import LIMITS, Audit, Finding

TREE = cg.Tree.from_parents([-1, 0, 0])


@cache
def guarantee():
    """Return a guarantee, made only in a test, so that collecting tests compiles nothing."""
    noise = cg.Additive(cg.DiscreteLaplace(1.0), TREE)
    return cg.condition(noise, cg.consistent(TREE) & cg.exactly([0])).guarantee("substitute")


GOOD = Finding("loss, enumerated", True, 0.5, 2.0, 3, 40, None, "all outputs were compared")


def test_an_audit_passes_if_every_finding_passes():
    bad = replace(GOOD, check="delta, from draws", passed=False, found=2.5)
    assert Audit(guarantee(), (GOOD,), 0.999).passed
    assert not Audit(guarantee(), (GOOD, bad), 0.999).passed
    assert (GOOD.slack, bad.slack) == (1.5, -0.5)
    lines = str(Audit(guarantee(), (GOOD, bad), 0.999)).splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["ok", "FAILED"]
    assert "delta, from draws: all outputs were compared" in lines
    assert lines[-1] == LIMITS.splitlines()[-1]
