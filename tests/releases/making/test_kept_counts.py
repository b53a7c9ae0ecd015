"""Counts of parts that stay in memory, as they were, while there is room."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.releases.making import kept_counts
from congenial.releases.making.kept_counts import KeptCounts

TREE = cg.Tree.from_paths([("a", f"b{i}", f"c{j}") for i in range(3) for j in range(4)])


def test_a_part_comes_back_as_it_was():
    for largest in (0, 200, 300, 70_000, 2**40):
        kept, counts = KeptCounts(), TREE.roll_up(np.arange(12) * largest)
        assert kept.of(("a",)) is None
        kept.keep(("a",), TREE, counts)
        tree, values = kept.of(("a",))
        np.testing.assert_array_equal(tree.parents, TREE.parents)
        np.testing.assert_array_equal(values, counts)
        assert values.dtype == np.int64


def test_parts_beyond_the_room_are_not_kept(monkeypatch):
    kept, counts = KeptCounts(), TREE.roll_up(np.arange(12))
    kept.keep(("a",), TREE, counts)
    monkeypatch.setattr(kept_counts, "_ROOM", kept.size + 10)
    kept.keep(("b",), TREE, counts)
    assert kept.of(("b",)) is None
    assert kept.of(("a",)) is not None


def test_counts_of_zero_take_hardly_any_room():
    tree = cg.Tree.from_parents(np.concatenate([[-1], np.zeros(100_000, dtype=int)]))
    kept = KeptCounts()
    kept.keep(("a",), tree, np.zeros(100_001, dtype=np.int64))
    assert kept.size < 5000


def test_no_count_is_shown():
    kept = KeptCounts()
    kept.keep(("a",), TREE, TREE.roll_up(np.arange(12)))
    assert repr(kept) == "KeptCounts()"
