"""Entries that bounds determine, against all datasets within the bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.neighbours.leeway import with_implied
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, InfeasibleError
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1])
LEAVES = np.flatnonzero(TREE.is_leaf)
SPAN = range(-2, 7)


def every_dataset(tree: cg.Tree, resolved) -> np.ndarray:
    """All counts whose leaves are in SPAN, within the bounds and the inequalities."""
    leaves = int(tree.is_leaf.sum())
    cells = np.array(list(itertools.product(SPAN, repeat=leaves)))
    x = np.asarray(tree.roll_up(cells))
    matrix, value = resolved.inequalities
    keep = ((x >= resolved.lo) & (x <= resolved.hi)).all(axis=1) & (x @ matrix.T >= value).all(
        axis=1
    )
    matrix, value = resolved.equalities
    return x[keep & (x @ matrix.T == value).all(axis=1)]


def random_box(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.full(5, -np.inf), np.full(5, np.inf)
    low[LEAVES], high[LEAVES] = SPAN[0], SPAN[-1]
    for v in range(5):
        centre = rng.integers(-1, 7)
        if rng.random() < 0.6:
            low[v] = max(low[v], centre - rng.integers(0, 2))
        if rng.random() < 0.6:
            high[v] = min(high[v], centre + rng.random())
    return low, np.maximum(low, high)


def random_case(rng: np.random.Generator):
    parts = cg.consistent(TREE) & cg.bounds(*random_box(rng))
    if rng.random() < 0.4:
        row = rng.integers(-2, 3, 5)
        parts &= cg.at_least([row, -row], [rng.integers(0, 3), -3])
    return resolve_invariant(parts, 5)


@pytest.mark.parametrize("seed", range(6))
def test_entries_held_in_place_never_differ_and_on_trees_all_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    held = empty = 0
    for _ in range(60):
        resolved = random_case(rng)
        x = every_dataset(TREE, resolved)
        try:
            found = with_implied(resolved, TREE)
        except EmptyNeighbourhoodError:
            assert not len(x)
            empty += 1
            continue
        if not len(x):
            assert resolved.n_inequalities
            continue
        same = (x == x[0]).all(axis=0)
        assert same[found.pinned].all()
        matrix, value = found.equalities
        assert (x @ matrix.T == value).all()
        if not resolved.n_inequalities:
            np.testing.assert_array_equal(found.pinned, same)
        held += int(found.pinned.sum() > 0)
    assert held > 5
    assert empty > 5


def test_public_sums_are_carried_along() -> None:
    none = cg.linear([1, 1, 0], [0]) & cg.nonnegative()
    assert with_implied(resolve_invariant(none, 3), None).pinned.tolist() == [True, True, False]
    low = cg.at_least([[2, 0, 0], [-1, 1, 0], [0, -3, 0]], [5, 0, -9])
    assert with_implied(resolve_invariant(low, 3), None).pinned.tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("grid", "high", "pinned"), [(0.5, 0.5, True), (0.5, 1.0, False), (1.0, 0.9, True)]
)
def test_an_entry_with_less_room_than_one_record_is_held_in_place(grid, high, pinned) -> None:
    resolved = resolve_invariant(cg.bounds([0.0, -np.inf], [high, np.inf]), 2)
    assert with_implied(resolved, None, grid=grid).pinned.tolist() == [pinned, False]


LAPLACE, LEAF = cg.DiscreteLaplace(1.0), cg.Tree.from_parents([-1, 0, 0])


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize(
    ("queries", "mandate"),
    [
        (1, cg.bounds(4.5, 5.5)),
        (LEAF, cg.consistent(LEAF) & cg.bounds([-np.inf, 5, 5], [10, np.inf, np.inf])),
        (1, cg.bounds(0, 0) | cg.bounds(10, 10)),
        (2, cg.bounds([0, 0], [0, np.inf]) | cg.bounds([10, 0], [10, np.inf])),
    ],
)
def test_a_guarantee_without_neighbouring_pairs_is_refused(queries, mandate, relation) -> None:
    released = cg.condition(cg.Additive(LAPLACE, queries), mandate)
    with pytest.raises(EmptyNeighbourhoodError):
        released.guarantee(relation)


def test_sums_between_two_equal_bounds_count_as_fixed() -> None:
    both = cg.at_least([[1, 1], [-2, -2]], [5, -10])
    noise = cg.Additive(LAPLACE, 2)
    released = cg.condition(noise, both)
    with pytest.raises(EmptyNeighbourhoodError, match="fixed sum"):
        released.guarantee("add-remove")
    assert "fixed linear" in released.guarantee("substitute").sentence
    # a projection adds its noise to data outside of the bounds, too
    stated = cg.image(noise, both).guarantee("add-remove")
    assert stated.sentence == cg.image(noise, cg.nonnegative()).guarantee("add-remove").sentence


def test_a_union_states_which_datasets_are_neighbours() -> None:
    noise = cg.Additive(LAPLACE, 2)
    low, near, far = (
        cg.bounds([a, -np.inf], [b, np.inf]) for a, b in ((-np.inf, 0), (1, 3), (10, np.inf))
    )
    told = cg.condition(noise, low | far).guarantee("add-remove").covered
    assert "the same alternative" in told
    assert "an alternative" in cg.condition(noise, low | near).guarantee("add-remove").covered


def box_around(rng: np.random.Generator, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounds close to a dataset, those of leaves within SPAN."""
    low, high = (x + sign * (rng.random(5) < 0.3) for sign in (-1.0, 1.0))
    low[rng.random(5) < 0.3], high[rng.random(5) < 0.3] = -np.inf, np.inf
    low[LEAVES] = np.maximum(low[LEAVES], SPAN[0])
    high[LEAVES] = np.minimum(high[LEAVES], SPAN[-1])
    return low, high


def near(x: np.ndarray, relation: str) -> bool:
    """Whether two of the datasets are neighbours."""
    inside = {tuple(int(v) for v in row[LEAVES]) for row in x}
    one = np.eye(3, dtype=int)
    moves = one if relation == "add-remove" else one[[0, 0, 1]] - one[[1, 2, 2]]
    return any(tuple((np.array(row) + move).tolist()) in inside for row in inside for move in moves)


@pytest.mark.parametrize("relation", ["add-remove", "substitute"])
@pytest.mark.parametrize("alternatives", [1, 2])
def test_a_guarantee_under_bounds_is_given_only_where_there_are_neighbours(
    relation: str, alternatives: int
) -> None:
    rng = np.random.default_rng(alternatives)
    noise, seen = cg.Additive(LAPLACE, TREE), {True: 0, False: 0}
    for _ in range(60 * alternatives):
        boxes = [box_around(rng, TREE.roll_up(rng.integers(0, 4, 3))) for _ in range(alternatives)]
        each = [cg.consistent(TREE) & cg.bounds(*box) for box in boxes]
        try:
            released = cg.condition(noise, each[0] if alternatives == 1 else each[0] | each[1])
        except (ArgumentError, InfeasibleError):  # alternatives that overlap, bounds that clash
            continue
        kept = [every_dataset(TREE, resolve_invariant(one, 5)) for one in each]
        some = near(np.vstack(kept), relation)
        try:
            told = released.guarantee(relation).covered
        except EmptyNeighbourhoodError:
            # under add-remove a held count alone is a reason to refuse
            assert not some or relation == "add-remove"
            seen[False] += 1
            continue
        same = any(near(x, relation) for x in kept)
        # whether one record leads to another alternative is told from distances alone
        assert same or "an alternative" in told
        assert some == same or "the same alternative" not in told
        seen[True] += 1
    assert min(seen.values()) >= 3


def test_margins_that_cross_hold_cells_in_place() -> None:
    table = cg.Table({"sex": ["f", "m"], "age": ["0", "1", "2"]})
    workload = cg.Workload.of(table, [("sex",), ("age",), ("sex", "age")])
    cells = np.array(list(itertools.product(range(3), repeat=6)))
    x = np.array([workload.answers(row.reshape(2, 3)) for row in cells])
    rng, held = np.random.default_rng(7), 0
    for _ in range(40):
        middle = x[rng.integers(len(x))]
        low = np.where(rng.random(x.shape[1]) < 0.6, middle - rng.integers(0, 2), -np.inf)
        high = np.where(rng.random(x.shape[1]) < 0.6, middle + rng.integers(0, 2), np.inf)
        low[workload.cells] = np.maximum(low[workload.cells], 0)
        high[workload.cells] = np.minimum(high[workload.cells], 2)
        inside = x[((x >= low) & (x <= high)).all(axis=1)]
        resolved = resolve_invariant(
            cg.consistent(workload) & cg.bounds(low, high), x.shape[1], workload
        )
        found = with_implied(resolved, workload)
        assert (inside == inside[0]).all(axis=0)[found.pinned].all()
        held += int((found.pinned & (low < high)).sum())
    assert held > 20
