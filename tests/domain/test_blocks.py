"""Margins of tables: how they are called, and which of them a mapping names."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.domain.blocks import select
from congenial.errors import ArgumentError

TREE = cg.Tree.from_paths([("town", "a"), ("town", "b")])
PEOPLE = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18+")}, geography=TREE, name="people")
WORKLOAD = cg.Workload.of(PEOPLE, [(), ("sex",), ("sex", "age")])
BLOCKS = list(WORKLOAD.blocks)


def test_entries_are_named_by_their_cells_and_areas():
    for block in BLOCKS:
        for row in range(block.ids.shape[0]):
            for column in range(block.ids.shape[1]):
                entry = int(block.ids[row, column])
                assert block.name(row, column) == WORKLOAD.names[entry]
                assert block.start <= entry < block.stop
    assert len(set(WORKLOAD.names)) == len(WORKLOAD)


def test_every_entry_has_its_place_where_some_cells_are_impossible():
    source = np.random.default_rng(3)
    for _ in range(40):
        possible = source.random((2, 2, 3)) < 0.6
        possible[:, 0, 0] = True
        table = cg.Table(
            {"sex": ("F", "M"), "age": ("a", "b", "c")},
            geography=TREE,
            name="people",
            impossible=~possible,
        )
        workload = cg.Workload.of(table, [(), ("age",), ("sex", "age")])
        for block in workload.blocks:
            for entry in range(block.start, block.stop):
                row, column = block.place(entry)
                assert block.ids[row, column] == entry
                assert workload.path(entry) == workload.paths[entry]


def test_a_mapping_names_margins_in_any_order_at_all_levels_or_at_one():
    levels = {block.level for block in BLOCKS}
    found = select(BLOCKS, {("age", "sex"): 1.5})
    assert [(set(b.margin), v) for b, v in found] == [({"sex", "age"}, 1.5)] * len(levels)
    ((block, value),) = select(BLOCKS, {max(levels): {"sex": 2}})
    assert (block.margin, block.level, value) == (("sex",), max(levels), 2)
    assert select(BLOCKS, {"people": {0: {"sex": 3}}})[0][1] == 3


@pytest.mark.parametrize(
    "given", [{"height": 1}, {7: {"sex": 1}}, {"people": {"x": 1}}, [("sex",)]]
)
def test_what_names_no_margin_is_refused(given):
    with pytest.raises(ArgumentError, match=r"names no block|give a mapping"):
        select(BLOCKS, given)
