"""Audits where sums let only several records move at once, and faults planted there."""

from __future__ import annotations

import itertools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.space import Space, space_of
from congenial.errors import ArgumentError
from support.sum_networks import margins

SQUARE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
ROWS = np.zeros((1, 7))
ROWS[0, [3, 5]] = 1.0
TABLES = {"2 by 2": ((2, 2), 4), "2 by 3": ((2, 3), 4), "3 by 3": ((3, 3), 3)}


def table(name, scale=1.3, lo=None, law=cg.DiscreteLaplace):
    """A table with fixed row and column sums."""
    (rows, columns), total = TABLES[name]
    x = np.zeros((rows, columns), dtype=int)
    for k in range(total):
        x[k % rows, k % columns if rows != columns else (k + k // columns) % columns] += 1
    sums = margins(rows, columns)
    invariant = cg.linear(sums, sums @ x.ravel())
    if lo is not None:
        invariant &= cg.bounds(lo)
    return cg.condition(cg.Additive(law(scale), rows * columns), invariant)


def tree(factor=1.0, bounded=False):
    """Groups published exactly, and a sum across them."""
    scales = factor * np.array([np.inf, np.inf, np.inf, 1.0, 2.0, 1.5, 1.0])
    invariant = cg.consistent(SQUARE) & cg.exactly([1, 2]) & cg.linear(ROWS, [2])
    if bounded:
        invariant &= cg.nonnegative()
    return cg.condition(cg.Additive(cg.DiscreteLaplace(scales), SQUARE), invariant)


MADE = {
    **{name: (lambda factor, name=name: table(name, 1.3 * factor)) for name in TABLES},
    "2 by 3 with bounds": lambda factor: table("2 by 3", 1.3 * factor, 0),
    "tree": tree,
    "tree with bounds": lambda factor: tree(factor, True),
    "discrete Gaussian": lambda factor: table("2 by 3", 1.5 * factor, law=cg.DiscreteGaussian),
}
EXACT = ["2 by 2", "2 by 3", "3 by 3", "tree"]


def audit(mechanism, **options):
    return cg.audit(mechanism, neighbours="substitute", total=4, confidence=1.0 - 1e-6, **options)


def failed(found):
    return {f.check for f in found.findings if not f.passed}


def planted(stated, drawn):
    """State one thing and do another."""
    return SimpleNamespace(
        mechanism=stated.mechanism,
        resolved=stated.resolved,
        guarantee=stated.guarantee,
        sample=drawn.sample,
        log_prob=drawn.log_prob,
    )


@pytest.mark.parametrize("name", MADE)
def test_honest_mechanisms_pass_and_less_noise_is_found(name):
    stated = MADE[name](1.0)
    found = audit(stated, method="exact")
    assert found.passed, str(found)
    loss = found.findings[0]
    assert loss.pairs > 0
    assert loss.found > 0.4 * loss.stated
    if name in EXACT:
        assert loss.slack == pytest.approx(0.0, abs=1e-9)
    # what bounds may cost is charged, and not reached
    less = 0.5 if "bounds" in name else 0.7
    lost = audit(planted(stated, MADE[name](less)), method="exact")
    computed = "rho, computed" if stated.guarantee("substitute").rho else "loss, computed"
    assert failed(lost) == {"loss, enumerated", computed}


@pytest.mark.parametrize("name", ["2 by 3", "tree"])
def test_draws_find_less_noise_too(name):
    stated, drawn = MADE[name](1.0), MADE[name](0.5)
    assert failed(audit(stated, draws=4000)) == set()
    assert "loss, from draws" in failed(audit(planted(stated, drawn), draws=20_000))


@pytest.mark.parametrize("name", EXACT)
def test_moves_charged_as_those_of_one_record_are_found(name):
    """Two cells of four paid for: the sensitivity of a record that moves alone."""
    made = MADE[name](1.0)
    claim = made.guarantee("substitute")
    lower = replace(claim, epsilon=0.5 * claim.epsilon)
    found = audit(made, method="exact", claim=lower)
    assert failed(found) == {"loss, enumerated", "loss, computed"}


def test_uncharged_bounds_are_detected():
    stated, drawn = table("2 by 3"), table("2 by 3", lo=0)
    found = audit(planted(stated, drawn), method="exact")
    assert failed(found) == {"loss, enumerated", "loss, computed"}
    assert found.findings[0].found > found.findings[0].stated


def test_every_pair_of_the_covered_datasets_is_compared():
    made = table("3 by 3", lo=0)
    space = space_of(made)
    datasets = [*space.datasets(3)]
    sums = margins(3, 3)
    counts = [np.array(x) for x in itertools.product(range(4), repeat=9) if sum(x) == 3]
    value = made.resolved.equalities[1]
    wanted = [x for x in counts if (sums @ x == value).all()]
    assert {tuple(x) for x in datasets} == {tuple(x) for x in wanted}
    pairs = space.pairs(datasets, "substitute", 2)
    near = [(x, y) for x, y in itertools.combinations(wanted, 2) if np.abs(x - y).sum() <= 4]
    assert len(pairs) == len(near) == audit(made, method="exact").findings[0].pairs
    assert 0 < len(near) < len(wanted) * (len(wanted) - 1) // 2
    assert space.pairs(datasets, "substitute") == []


def test_pairs_that_are_given_may_differ_in_as_many_records_as_the_claim_says():
    made = table("3 by 3", lo=0)
    two = ([1, 0, 0, 0, 1, 0, 0, 0, 1], [0, 1, 0, 1, 0, 0, 0, 0, 1])
    three = ([1, 0, 0, 0, 1, 0, 0, 0, 1], [0, 1, 0, 0, 0, 1, 1, 0, 0])
    assert audit(made, method="exact", pairs=[two]).passed
    with pytest.raises(ArgumentError, match="differ in at most 2 records"):
        audit(made, method="exact", pairs=[three])


def test_too_few_records_are_refused():
    with pytest.raises(ArgumentError, match=r"total is 2, and no two .* raise it"):
        cg.audit(table("2 by 3"), neighbours="substitute", method="exact", total=2)


def test_datasets_are_held_to_bounds_by_their_own_exact_values():
    resolved = tree().resolved
    resolved = replace(
        resolved,
        equalities=(np.zeros((0, 7)), np.zeros(0)),
        pairs=np.array([[1, 2], [3, 1]]),
        hi=np.full(7, 2.0),
    )
    space = Space(tree().mechanism, (resolved,))
    found = {tuple(x) for x in space.datasets(4)}
    every = [SQUARE.roll_up(np.array(x)) for x in itertools.product(range(5), repeat=4)]
    # no release satisfies bounds that exact values break
    wanted = {tuple(x) for x in every if x[3] >= x[1] >= x[2] and (x[3:] <= 2).all() and x[0] <= 2}
    assert found == wanted == {tuple(x) for x in every if x[0] <= 4 and space.allows(x)}
