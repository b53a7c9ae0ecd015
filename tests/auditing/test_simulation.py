"""Audits by draws: pairs compared, how seldom a true claim is refuted, and what is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
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


def test_pairs_may_be_given_if_the_queries_are_unknown():
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


def test_the_same_seed_gives_the_same_audit():
    made = cg.condition(noisy(), TOTAL)
    one, same, other = (
        str(audit(made, draws=2000, rng=rng)) for rng in (None, None, cg.seeded(77))
    )
    assert one == same != other
    assert "Draws can refute a claim but never prove it" in one
    assert audit(made, draws=2000, rng=cg.secure()).passed


def test_mechanisms_that_cannot_be_audited_are_refused():
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


TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
TABLE = cg.Workload.of(cg.Table({"a": ("x", "y"), "b": ("p", "q")}), [(), ("a",), ("b",)])


@pytest.mark.parametrize(("share", "passed"), [(1.0, True), (0.5, False)])
@pytest.mark.parametrize(
    ("domain", "make", "tables"),
    [
        (TREE, cg.best_table, 4),
        (TABLE, lambda *given: cg.image(*given, integer=True), 64),
        (TABLE, cg.imaging.topdown_image, 64),
    ],
)
def test_a_table_that_takes_long_is_audited_by_its_measurements(
    domain, make, tables, share, passed
):
    """Working out thousands of tables would take minutes; a few are compared with the invariant."""
    known = cg.consistent(domain) & cg.exactly([0]) & cg.nonnegative()
    claim = make(cg.Additive(cg.DiscreteLaplace(4.0), domain), known).guarantee("substitute")
    drawn = make(cg.Additive(cg.DiscreteLaplace(4.0 * share), domain), known)
    found = cg.audit(
        drawn, neighbours="substitute", method="statistical", draws=20_000, claim=claim
    )
    assert found.passed is passed
    by_name = {finding.check: finding for finding in found.findings}
    assert by_name["invariant, from draws"].passed
    assert by_name["invariant, from draws"].outputs == tables
    assert "tables are made from them" in by_name["loss, from draws"].text
