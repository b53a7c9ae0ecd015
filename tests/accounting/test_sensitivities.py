"""Sensitivity against all pairs of neighbouring small datasets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError

PAIR = cg.Tree.from_parents([-1, 0, 0])
DEEP = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
UNEVEN = cg.Tree.from_parents([-1, 0, 0, 1, 1, 4])
FOREST = cg.Tree.from_parents([-1, -1, 0, 0, 1])


def incidence(tree):
    return np.array([tree.roll_up(row) for row in np.eye(tree.leaves.size, dtype=np.int64)]).T


def brute_force(matrix, neighbours, norm, fixed=None):
    """Largest change between all pairs of neighbouring datasets of one to three records."""
    cells = range(matrix.shape[1])
    counts = np.eye(matrix.shape[1], dtype=np.int64)
    fixed = np.zeros((0, matrix.shape[0])) if fixed is None else np.asarray(fixed)
    changes = []
    for size in (1, 2, 3):
        for records in itertools.combinations_with_replacement(cells, size):
            before = counts[list(records)].sum(axis=0)
            for i, new in itertools.product(range(size), cells):
                rest = records[:i] + records[i + 1 :]
                if neighbours == "substitute":
                    after = counts[[*rest, new]].sum(axis=0)
                else:
                    after = before - counts[records[i]]
                change = matrix @ after - matrix @ before
                if new != records[i] and not (fixed @ change).any():
                    changes.append(np.linalg.norm(change, ord=norm))
    return max(changes, default=None)


def attained(matrix, found):
    change = -matrix[:, found.origin].astype(float)
    if found.destination is not None:
        change += matrix[:, found.destination]
    return np.linalg.norm(change, ord=found.norm)


@pytest.mark.parametrize("tree", [PAIR, DEEP, UNEVEN, FOREST])
@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("norm", [1, 2])
def test_trees(tree, neighbours, norm):
    found = cg.accounting.sensitivity(tree, neighbours=neighbours, norm=norm)
    assert found.value == pytest.approx(brute_force(incidence(tree), neighbours, norm))
    whole = np.zeros((len(tree), len(tree)))
    whole[:, tree.leaves] = incidence(tree)
    assert attained(whole, found) == pytest.approx(found.value)
    as_matrix = cg.accounting.sensitivity(incidence(tree), neighbours=neighbours, norm=norm)
    assert as_matrix.value == pytest.approx(found.value)


@pytest.mark.parametrize("pins", [(0,), (1,), (0, 1), (0, 1, 2), (3,), (0, 3, 5)])
@pytest.mark.parametrize("norm", [1, 2])
def test_pinned_nodes_leave_fewer_pairs(pins, norm):
    fixed = np.eye(len(DEEP))[list(pins)]
    found = cg.accounting.sensitivity(
        DEEP,
        neighbours="substitute",
        norm=norm,
        invariant=cg.consistent(DEEP) & cg.exactly(list(pins)),
    )
    assert found.value == pytest.approx(brute_force(incidence(DEEP), "substitute", norm, fixed))
    assert not {found.origin, found.destination} & set(pins)


def test_disjoint_cells():
    for norm, value in ((1, 2.0), (2, math.sqrt(2.0))):
        assert float(cg.accounting.sensitivity(5, neighbours="substitute", norm=norm)) == value
        assert float(cg.accounting.sensitivity(5, neighbours="add-remove", norm=norm)) == 1.0


def test_the_papers_two_bins():
    # Gong and Meng, Example 4.1: scale 2 / epsilon spends epsilon when a record changes bin,
    # and changing a record keeps the total, so it is no farther than one step
    free = cg.accounting.sensitivity(2, neighbours="substitute")
    kept = cg.accounting.sensitivity(
        2, neighbours="substitute", invariant=cg.linear([[1, 1]], [10])
    )
    assert free.value == kept.value == 2.0


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
@pytest.mark.parametrize("norm", [1, 2])
def test_random_query_matrices(neighbours, norm):
    rng = np.random.default_rng(4)
    for _ in range(30):
        matrix = rng.integers(-3, 4, size=(rng.integers(1, 5), rng.integers(2, 6)))
        found = cg.accounting.sensitivity(matrix, neighbours=neighbours, norm=norm)
        assert found.value == pytest.approx(brute_force(matrix, neighbours, norm))
        assert attained(matrix, found) == pytest.approx(found.value)


def test_random_query_matrices_with_invariants():
    rng = np.random.default_rng(5)
    empty = 0
    for _ in range(60):
        m, n = rng.integers(2, 5), rng.integers(2, 6)
        matrix = rng.integers(0, 2, size=(m, n))
        pins = [0] if rng.random() < 0.5 else []
        row = rng.integers(0, 2, size=(1, m))
        invariant = cg.linear(row, [3]) & cg.exactly(pins) if pins else cg.linear(row, [3])
        fixed = np.vstack((row, np.eye(m)[pins]))
        wanted = brute_force(matrix, "substitute", 2, fixed)
        if wanted is None:
            empty += 1
            with pytest.raises(EmptyNeighbourhoodError):
                cg.accounting.sensitivity(
                    matrix, neighbours="substitute", norm=2, invariant=invariant
                )
            continue
        found = cg.accounting.sensitivity(
            matrix, neighbours="substitute", norm=2, invariant=invariant
        )
        assert found.value == pytest.approx(wanted)
        assert attained(matrix, found) == pytest.approx(wanted)
    assert 0 < empty < 60


def test_many_cells_are_searched_in_blocks(monkeypatch):
    matrix = np.random.default_rng(6).integers(0, 50, size=(3, 40))
    apart = np.abs(matrix[:, :, None] - matrix[:, None, :]).sum(axis=0)
    monkeypatch.setattr("congenial.accounting.sensitivities._BLOCK", 300)
    found = cg.accounting.sensitivity(matrix, neighbours="substitute")
    assert found.value == apart.max()
    assert apart[found.origin, found.destination] == apart.max()


def test_mandated_sums_of_fractions_hide_no_pair():
    # 0.1 + 0.2 is not 0.3 in doubles
    matrix = np.array([[1, 0], [1, 0], [0, 1]])
    found = cg.accounting.sensitivity(
        matrix, neighbours="substitute", invariant=cg.linear([[0.1, 0.2, 0.3]], [1.0])
    )
    assert found.value == 3.0


def test_cells_that_no_query_distinguishes_have_no_effect():
    found = cg.accounting.sensitivity([[1, 1]], neighbours="substitute")
    assert (found.value, found.origin, found.destination) == (0.0, 0, 1)


def test_invariants_without_neighbours_are_refused():
    pinned = cg.consistent(PAIR) & cg.exactly([1])
    with pytest.raises(EmptyNeighbourhoodError):
        cg.accounting.sensitivity(PAIR, neighbours="substitute", invariant=pinned & cg.exactly([0]))
    with pytest.raises(EmptyNeighbourhoodError):
        cg.accounting.sensitivity(PAIR, neighbours="add-remove", invariant=pinned)
    with pytest.raises(EmptyNeighbourhoodError):
        cg.accounting.sensitivity([[1, 1]], neighbours="add-remove", invariant=cg.exactly([0]))
    with pytest.raises(EmptyNeighbourhoodError):
        cg.accounting.sensitivity([[2]], neighbours="substitute")
    with pytest.raises(PrivacyError):
        cg.accounting.sensitivity(
            3, neighbours="substitute", invariant=cg.linear([[1, -1, 0]], [0])
        )


def test_a_query_that_no_record_touches_may_be_pinned_under_add_remove():
    found = cg.accounting.sensitivity(
        [[1, 2], [0, 0]], neighbours="add-remove", norm=2, invariant=cg.exactly([1])
    )
    assert (found.value, found.origin, found.destination) == (2.0, 1, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"neighbours": "bounded"},
        {"norm": 3},
        {"norm": True},
        {"workload": 0},
        {"workload": True},
        {"workload": [1, 2]},
        {"workload": [[1, 2], [3]]},
        {"workload": [[0.5, 1.0]]},
        {"workload": [[math.nan, 1.0]]},
        {"workload": np.zeros((0, 2))},
    ],
)
def test_wrong_arguments_are_refused(wrong):
    good = {"workload": [[1, 0]], "neighbours": "substitute"} | wrong
    with pytest.raises(ArgumentError):
        cg.accounting.sensitivity(good.pop("workload"), **good)


def test_the_sentence_names_the_pair():
    assert "cell 1 to cell 2" in cg.accounting.sensitivity(PAIR, neighbours="substitute").sentence
    assert "removing" in cg.accounting.sensitivity(PAIR, neighbours="add-remove").sentence
