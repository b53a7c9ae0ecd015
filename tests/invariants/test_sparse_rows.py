"""Equalities as sparse rows: those stated and those of a tree."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import UnsupportedError
from congenial.invariants.sparse_rows import sparse_rows, structure_rows
from congenial.invariants.written import resolve_invariant

pytestmark = pytest.mark.uncompiled


def test_rows_are_indices_and_signs_and_rows_of_zeros_are_left_out():
    ((indices, signs),) = sparse_rows(np.array([[0.0, -1.0, 1.0], [0.0, 0.0, 0.0]]))
    assert (indices.tolist(), signs.tolist()) == ([1, 2], [-1, 1])
    with pytest.raises(UnsupportedError, match="sums and differences only"):
        sparse_rows(np.array([[2.0, 1.0]]))


def test_a_tree_has_a_row_for_every_sum():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    resolved = resolve_invariant(cg.consistent(tree), 5)
    found = [
        dict(zip(*map(np.ndarray.tolist, row), strict=True)) for row in structure_rows(resolved)
    ]
    assert found == [{0: 1, 1: -1, 2: -1}, {1: 1, 3: -1, 4: -1}]
