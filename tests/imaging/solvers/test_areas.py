"""Tables as nodes, cells and rows: entries, and bounds that leave the areas below a choice."""

from __future__ import annotations

import itertools

import numpy as np

import congenial as cg
from congenial.imaging.solvers.areas import lay_out

AXES = {"a": ("x", "y"), "b": ("p", "q", "r")}
STREETS = cg.Tree.from_paths([("n", "1"), ("n", "2"), ("s", "3")])


def laid(table, margins, bounded=()):
    workload = cg.Workload.of(table, margins)
    blocks = list(workload.blocks)
    return workload, lay_out(table, blocks, [b for b in blocks if b.margin in bounded])


def test_rows_are_the_entries_of_the_workload_and_cells_add_up_to_them():
    for impossible in (None, [{"a": "x", "b": "p"}]):
        table = cg.Table(AXES, geography=STREETS, impossible=impossible)
        workload, areas = laid(table, {0: [(), ("a",)], 1: [("b",)]})
        counts = np.arange(18).reshape(3, 2, 3) * table.possible.reshape(3, 2, 3)
        vector = workload.answers(counts)
        x = areas.read(vector)
        np.testing.assert_array_equal(x[-3:], counts.reshape(3, 6))
        np.testing.assert_array_equal(x[0], counts[:2].sum(axis=0).ravel())
        entries = areas.ids >= 0
        rows = areas.summed(x)
        np.testing.assert_array_equal(rows[entries], vector[areas.ids[entries]])
        assert np.unique(areas.ids[entries]).size == len(workload)
        assert not rows[~areas.possible].any()


def test_families_and_stages_go_down_level_by_level():
    table = cg.Table(AXES, geography=STREETS)
    _, areas = laid(table, [()])
    first, members, head = areas.families
    assert head.tolist() == [-1, -1, 0, 1]
    assert [members[a:b].tolist() for a, b in itertools.pairwise(first)] == [[0], [1], [2, 3], [4]]
    assert areas.stages == [(0, 2), (2, 4)]


def test_margins_with_bounds_are_joined():
    table = cg.Table(AXES | {"c": ("u", "v")})
    _, areas = laid(table, [("a",), ("b",), ("c",)], bounded=[("a",), ("c",)])
    widths = np.diff(areas.starts).tolist()
    assert widths[0] == 12
    assert sorted(widths[1:]) == [2, 2, 3, 4]


def test_carried_bounds_are_what_the_areas_below_can_have():
    table = cg.Table({"a": ("x", "y"), "b": ("p", "q")}, geography=STREETS)
    _, areas = laid(table, [(), ("a",), ("b",)], bounded=[("a",), ("b",)])
    rng = np.random.default_rng(0)
    for _ in range(30):
        counts = rng.integers(0, 3, size=(3, 4)).astype(float)
        x = np.zeros((areas.parent.size, 4))
        x[-3:] = counts
        x[:2] = areas.rolled_up(x, 0)
        rows = areas.summed(x)
        low, high = np.full(rows.shape, -np.inf), np.full(rows.shape, np.inf)
        low[:, :4] = 0.0
        margins = slice(4, None)
        fixed = np.isin(np.arange(areas.ids.shape[1]), areas.of[:, 1:]) & (areas.ids[-1] >= 0)
        fixed[:4] = False
        low[-3:, fixed] = high[-3:, fixed] = rows[-3:, fixed]
        least, most, wrong = areas.carried(low, high, 0.0)
        assert wrong == -1
        # every table of the three areas with these margins, summed over the first two
        tables = [
            [
                np.array(cells)
                for cells in itertools.product(range(5), repeat=4)
                if (areas.summed(np.array([cells], dtype=float))[0, fixed] == row[fixed]).all()
            ]
            for row in rows[-3:]
        ]
        reached = np.array([one + two for one in tables[0] for two in tables[1]], dtype=float)
        found = areas.summed(reached)
        assert (found >= least[0]).all()
        assert (found <= most[0]).all()
        # one number is free in each table, so the bounds are attained
        assert found[:, 0].max() == areas.within(least[:1], most[:1])[1][0, 0]
        low[-3, 4] = high[-3, 4] = 99.0
        assert areas.carried(low, high, 0.0)[2] >= 0
        assert margins.start == 4


def test_bounds_that_others_imply_are_dropped_and_the_rest_kept():
    table = cg.Table(AXES, geography=STREETS)
    _, areas = laid(table, [(), ("a",)])
    shape = areas.ids.shape
    low, high = np.zeros(shape), np.full(shape, np.inf)
    total = int(
        areas.of[0, [m for m in range(areas.of.shape[1]) if np.ptp(areas.of[:, m]) == 0]][0]
    )
    high[-1, total] = 7.0
    least, most, _ = areas.carried(low, high, 0.0)
    assert (least[:, 6:] == -np.inf).all()
    assert (least[:, :6] == 0.0).all()
    assert most[-1, total] == most[1, total] == 7.0
    assert np.isfinite(most).sum() == 2
    least, most = areas.loosened(low, high)
    assert (least[:2] == -np.inf).all()
    assert (least[2:, :6] == 0.0).all()
    assert np.isfinite(most).sum() == 1
