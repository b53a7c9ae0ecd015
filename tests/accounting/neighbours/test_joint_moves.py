"""Sums that let no record move alone: joint moves against all pairs of small tables."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.neighbours import joint_moves as searched
from congenial.accounting.neighbours.joint_moves import free_cells, joint_moves
from congenial.accounting.proofs import proofs_of
from congenial.errors import EmptyNeighbourhoodError, PrivacyError
from support.sum_networks import margins

CELLS = np.arange(8).reshape(2, 2, 2)
# all sums over one axis of a table of three
CUBE = np.array(
    [
        np.isin(CELLS, line).ravel()
        for a in range(3)
        for line in np.moveaxis(CELLS, a, 2).reshape(4, 2)
    ]
).astype(int)
SUMS = {
    "2 by 2": margins(2, 2),
    "2 by 3": margins(2, 3),
    "3 by 3": margins(3, 3),
    "2 by 2 by 2": CUBE,
    "weights": np.array([[1, 2, 3]]),
    # two records of the first cell and one of the second, for one of each other cell
    "steps": np.array(
        [
            [1, 0, 1, 1, 0],
            [1, 0, 1, 0, 1],
            [1, 0, 0, 1, 1],
            [0, 1, 1, 0, 0],
            [0, 1, 0, 1, 0],
            [0, 1, 0, 0, 1],
        ]
    ),
    # the first three cells need two records, the others three; the last cannot change
    "blocks": np.array(
        [[1, 1, 1, 0, 0, 0, 0], [1, 2, 3, 0, 0, 0, 0], [0, 0, 0, 0, 1, 3, 0], [0, 0, 0, 0, 0, 0, 1]]
    ),
}


def tables(cells, total):
    for bars in itertools.combinations(range(total + cells - 1), cells - 1):
        yield np.diff(np.array((-1, *bars, total + cells - 1))) - 1


def fibres(sums, total):
    """Tables of a given number of records, grouped by their fixed sums."""
    found = {}
    for x in tables(sums.shape[1], total):
        found.setdefault(tuple(sums @ x), []).append(x)
    return list(found.values())


def brute_force(cost, incidence, sums, most, power=1):
    """Fewest records, largest cost and largest change, from all pairs of tables of `most` records.

    A move of k records joins two tables of k records, and those of more beside.
    """
    moves = [y - x for same in fibres(sums, most) for x, y in itertools.combinations(same, 2)]
    sizes = [int(np.abs(v).sum()) // 2 for v in moves]
    least = {}
    for v, size in zip(moves, sizes, strict=True):
        for cell in np.flatnonzero(v):
            least[cell] = min(size, least.get(cell, size))
    records = max(least.values(), default=0)
    changes = [np.abs(incidence @ v) for v, k in zip(moves, sizes, strict=True) if k <= records]
    worst = max((float(d**power @ cost) for d in changes), default=0.0)
    return set(least), records, worst, int(max((d.max() for d in changes), default=0))


def costs(n, seed=1):
    return np.random.default_rng(seed).uniform(0.2, 2.0, n)


@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("power", [1, 2])
def test_plain_vectors(name, power):
    sums = SUMS[name]
    n = sums.shape[1]
    most = {"2 by 2 by 2": 4, "3 by 3": 3}.get(name, 4)
    _, *wanted = brute_force(costs(n), np.eye(n), sums, most, power)
    found = joint_moves(costs(n), np.eye(n), sums.astype(float), power=power)
    assert [found.records, found.cost, found.largest] == pytest.approx(wanted)
    assert found.records == {"2 by 2 by 2": 4, "blocks": 3, "steps": 3}.get(name, 2)
    assert found.changes.tolist() == (free_cells(np.vstack((np.ones(n, dtype=int), sums)))).tolist()


def test_random_sums_over_random_trees():
    rng = np.random.default_rng(7)
    seen = []
    for _ in range(60):
        n = int(rng.integers(3, 7))
        sums = rng.integers(0, 4, size=(int(rng.integers(1, 4)), n))
        groups = rng.integers(0, 2, size=(3, n))
        incidence = np.vstack((np.eye(n), groups))
        cost = costs(n + 3, int(rng.integers(1000)))
        if np.unique(sums, axis=1).shape[1] < n:
            continue  # one record can move
        reached, *wanted = brute_force(cost, incidence, sums, 4)
        null = np.linalg.svd(np.vstack((np.ones(n), sums)))
        rank = int((null.S > 1e-9).sum())
        movable = set(np.flatnonzero((np.abs(null.Vh[rank:]) > 1e-9).any(axis=0)))
        if not movable:
            seen.append("none")
            with pytest.raises(EmptyNeighbourhoodError, match="no entry that could change"):
                joint_moves(cost, incidence, sums.astype(float))
        elif movable - reached:
            seen.append("more")
            with pytest.raises(PrivacyError, match="more than 4 records"):
                joint_moves(cost, incidence, sums.astype(float))
        else:
            found = joint_moves(cost, incidence, sums.astype(float))
            seen.append(found.records)
            assert [found.records, found.cost, found.largest] == pytest.approx(wanted)
    assert {"none", "more", 2, 3} <= set(seen)


def conditioned(sums, scales, law=cg.DiscreteLaplace, lo=None):
    n = sums.shape[1]
    invariant = cg.linear(sums, sums @ np.ones(n))
    if lo is not None:
        invariant &= cg.bounds(lo)
    return cg.condition(cg.Additive(law(scales), n), invariant)


def losses(engine, sums, total, records):
    """Largest loss over all pairs of tables of `total` records, at all such tables."""
    worst = 0.0
    for same in fibres(sums, total):
        whole = np.array(same)
        if len(same) < 2:
            continue
        invariant = cg.linear(sums, sums @ same[0])
        if np.isfinite(engine.resolved.lo).any():
            invariant &= cg.bounds(0)
        here = cg.condition(engine.mechanism, invariant)
        rows = np.array([here.log_prob(whole, x) for x in same])
        for i, j in itertools.combinations(range(len(same)), 2):
            if np.abs(same[i] - same[j]).sum() <= 2 * records:
                worst = max(worst, float(np.abs(rows[i] - rows[j]).max()))
    return worst


def check(name, lo):
    sums = SUMS[name]
    engine = conditioned(sums, 1.0 / costs(sums.shape[1]), lo=lo)
    claim = engine.guarantee("substitute")
    total = {"2 by 2": 4, "3 by 3": 2}.get(name, 3)
    worst = losses(engine, sums, total, claim.records)
    assert worst <= claim.epsilon + 1e-9
    assert worst > claim.base_epsilon - 1e-9
    return claim, worst


TABLES = ["2 by 2", "2 by 3", "3 by 3", "steps"]


@pytest.mark.parametrize("name", TABLES)
def test_equalities_cost_as_much_as_the_most_expensive_move(name):
    claim, worst = check(name, None)
    assert worst == pytest.approx(claim.epsilon, abs=1e-9)
    assert (claim.records, claim.at_once, claim.gamma) == (3 if name == "steps" else 2, True, 0.0)


@pytest.mark.parametrize("name", TABLES)
def test_bounds_are_charged(name):
    claim, worst = check(name, 0)
    assert worst <= claim.epsilon
    assert 0.0 < claim.gamma < 1.0
    assert claim.base_epsilon < claim.epsilon <= 2 * claim.base_epsilon


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("lo", [None, 0])
def test_a_search_that_misses_moves_is_detected(name, lo, monkeypatch):
    def lax(*args, **options):
        found = joint_moves(*args, **options)
        return replace(found, cost=0.4 * found.cost)

    monkeypatch.setattr(searched, "joint_moves", lax)
    with pytest.raises(AssertionError):
        check(name, lo)


def test_gaussian_noise_pays_the_square_of_a_change():
    claim = conditioned(SUMS["steps"], 2.0, cg.DiscreteGaussian).guarantee("substitute")
    # entries change by 2, 1, 1, 1 and 1
    assert claim.rho == pytest.approx((4 + 4) / (2 * 4.0))
    table = conditioned(SUMS["2 by 3"], 2.0, cg.DiscreteGaussian).guarantee("substitute")
    assert table.rho == pytest.approx(4 / (2 * 4.0))


def test_counts_of_a_tree_pay_too():
    # two groups of two; sums across them
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    rows = np.zeros((2, 7))
    rows[0, [3, 4]] = rows[1, [3, 5]] = 1
    invariant = cg.consistent(tree) & cg.linear(rows, [2, 2]) & cg.exactly(0)
    scales = np.array([np.inf, 1.0, 1.0, 2.0, 2.0, 4.0, 4.0])
    engine = cg.image(cg.Additive(cg.DiscreteLaplace(scales), tree), invariant)
    claim = engine.guarantee("substitute")
    assert claim.epsilon == pytest.approx(1 / 2 + 1 / 2 + 1 / 4 + 1 / 4)
    weights = np.zeros((1, 7))
    weights[0, 3:] = 0, 1, 3, 7
    free = cg.consistent(tree) & cg.linear(weights, [11]) & cg.exactly(0)
    fixed = np.array([[0, 1, 3, 7], [1, 1, 1, 1]])
    incidence = np.array([tree.roll_up(row) for row in np.eye(4, dtype=np.int64)]).T
    cost = np.where(np.isinf(scales), 0.0, 1 / scales)
    _, records, worst, _ = brute_force(cost, incidence, fixed, 4)
    got = cg.image(cg.Additive(cg.DiscreteLaplace(scales), tree), free).guarantee("substitute")
    assert (got.records, got.epsilon) == (records, pytest.approx(worst))


def test_the_sentence_distinguishes_joint_moves_from_groups():
    claim = conditioned(SUMS["3 by 3"], 1.0).guarantee("substitute")
    text = "replacing 2 records at once, the fewest that keep what is published exactly,"
    assert text in claim.sentence
    assert "one after another" not in claim.sentence
    assert "proofs/composition.md" not in proofs_of(claim)
    with pytest.raises(PrivacyError, match="2 records already"):
        cg.accounting.group_privacy(claim, 2)
    twice = cg.accounting.compose([claim, claim])
    assert (twice.epsilon, twice.records, twice.at_once) == (2 * claim.epsilon, 2, True)
    single = conditioned(np.ones((1, 9)), 1.0).guarantee("substitute")
    assert not single.at_once
    for other in (single, cg.accounting.group_privacy(single, 2)):
        with pytest.raises(PrivacyError):
            cg.accounting.compose([claim, other])


def test_records_that_can_move_alone_are_charged_for_single_moves():
    # cells 0 and 1 are alike, the square of the others lets two records move
    sums = np.zeros((5, 6))
    sums[0, :2] = 1
    sums[1:, 2:] = margins(2, 2)
    claim = conditioned(sums, 1.0).guarantee("substitute")
    assert (claim.records, claim.at_once) == (1, False)
    assert claim.epsilon == pytest.approx(2.0)


def test_cases_outside_the_search_are_refused():
    with pytest.raises(PrivacyError, match="no integer"):
        joint_moves(np.ones(3), np.eye(3), np.array([[0.1, 0.2, 0.3]]))
    wide = margins(21, 20)
    with pytest.raises(PrivacyError, match="420 cells are too many"):
        joint_moves(np.ones(420), np.eye(420), wide.astype(float))
    steps = np.array([[0.0, 1.0, 7.0]])
    with pytest.raises(PrivacyError, match="more than 4 records"):
        joint_moves(np.ones(3), np.eye(3), steps)
    many = np.arange(200.0)[None]
    with pytest.raises(PrivacyError, match="too many to search"):
        joint_moves(np.ones(200), np.eye(200), many)
    # what is allowed is found
    found = joint_moves(np.ones(400), np.eye(400), margins(20, 20).astype(float))
    assert (found.records, found.cost, found.largest) == (2, 4.0, 1)


def test_coefficients_are_compared_exactly():
    # the least sums that part the cells differ in the last of 40 bits
    big = 2.0**39
    with pytest.raises(EmptyNeighbourhoodError):
        joint_moves(np.ones(2), np.eye(2), np.array([[big, big + 1]]))
    assert math.isclose(
        joint_moves(np.ones(3), np.eye(3), np.array([[big, big + 1, big + 2]])).cost, 4.0
    )


def test_claims_under_different_sums_do_not_compose():
    # each pair of margins of a cube leaves moves of two records, all three pairs together of four
    cells = np.arange(8).reshape(2, 2, 2)

    def margins(axis):
        lines = np.moveaxis(cells, axis, 2).reshape(4, 2)
        return [np.isin(cells, line).ravel().astype(int) for line in lines]

    claims = [
        conditioned(np.array(margins(a) + margins(a + 1)), 1.0).guarantee("substitute")
        for a in (0, 1)
    ]
    assert [claim.records for claim in claims] == [2, 2]
    with pytest.raises(PrivacyError, match="different fixed sums"):
        cg.accounting.compose(claims)
    singles = [
        conditioned(np.array([row]), 1.0).guarantee("substitute") for row in ([1, 1, 0], [0, 1, 1])
    ]
    with pytest.raises(PrivacyError, match="different fixed sums"):
        cg.accounting.compose(singles)
    assert cg.accounting.compose([singles[0], singles[0]]).epsilon == 2 * singles[0].epsilon


def test_entries_that_no_single_record_changes_are_said_to_be_unprotected():
    # four cells of a table with fixed margins, and two free ones beside it
    sums = np.array(
        [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [1, 0, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0]]
    )
    claim = conditioned(sums, 10.0).guarantee("substitute")
    assert claim.records == 1
    told = "the values of entry 0, entry 1, entry 2 and entry 3, which are the same in all "
    told += "neighbouring datasets"
    assert told in claim.unprotected and told in claim.sentence
    all_free = conditioned(np.ones((1, 4)), 10.0).guarantee("substitute")
    assert not any("the same in" in text for text in all_free.unprotected)
    at_once = conditioned(SUMS["3 by 3"], 1.0).guarantee("substitute")
    assert not any("the same in" in text for text in at_once.unprotected)
