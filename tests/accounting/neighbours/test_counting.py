"""In which entries a record counts: of a tree, of a table and of a plain vector."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.neighbours.counting import counting, counting_all
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2])
TABLE = cg.Workload.of(
    cg.Table({"sex": ("F", "M"), "age": ("0", "1", "2")}), [(), ("sex",), ("age",), ("sex", "age")]
)


@pytest.mark.parametrize("counted", [TREE, TABLE, None], ids=["tree", "table", "vector"])
def test_a_record_adds_one_where_it_counts(counted):
    n = 6 if counted is None else len(counted)
    lay = counting(n, counted)
    dense = lay.dense()
    for k, cell in enumerate(lay.cells):
        leaf = np.zeros(lay.cells.size)
        leaf[k] = 1
        if isinstance(counted, cg.Tree):
            wanted = counted.roll_up(leaf)
        elif counted is None:
            wanted = leaf
        else:
            wanted = counted.answers(leaf.astype(int).reshape(2, 3))
        assert dense[:, k].tolist() == list(wanted)
        assert dense[cell, k] == 1
    rng = np.random.default_rng(1)
    cost, rows = rng.random(n), rng.integers(-2, 3, (4, n)).astype(np.float64)
    assert lay.summed(cost) == pytest.approx(cost @ dense)
    assert lay.on_cells(rows) == pytest.approx(rows @ dense)


def test_cells_are_alike_if_their_records_add_the_same_to_fixed_values():
    invariant = cg.consistent(TREE) & cg.exactly([0, 2])
    lay = counting(6, TREE)
    assert lay.cells.tolist() == [3, 4, 5]
    first, second, third = lay.alike(resolve_invariant(invariant, 6, TREE))
    assert first == second != third
    apart = invariant & cg.linear(np.array([[0.0, 0, 0, 2, 1, 0]]), [7.0])
    assert len(set(lay.alike(resolve_invariant(apart, 6, TREE)).tolist())) == 3


@pytest.mark.parametrize("parents", [[-1], [-1, 0, 1, 2], [-1, 0, 1, 1], [-1, -1, 0], [1, -1, 1]])
def test_entries_that_count_every_record_are_those_of_every_cell(parents):
    for counted in (cg.Tree.from_parents(parents), TABLE, None):
        n = len(parents) if counted is None else len(counted)
        everywhere = counting(n, counted).dense().all(axis=1)
        assert sorted(counting_all(n, counted).tolist()) == np.flatnonzero(everywhere).tolist()
