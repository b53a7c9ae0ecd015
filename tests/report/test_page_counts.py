"""The names by which counts in side files are searched for."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.report.page_counts import called
from congenial.report.side_files import Depths


def test_cells_of_every_block_are_searched_for_by_the_block():
    tree = cg.Tree.from_paths(
        [("s", f"t{b // 4}", f"B{b}", cell) for b in range(12) for cell in ("men", "women")]
    )
    paths = [tree.path(v) for v in range(len(tree))]

    def different(depth, at):
        return len({path[at] for path in paths if len(path) == depth + 1})

    nodes = np.bincount(tree.level).tolist()
    assert called(Depths(1, 3), nodes, different) == {2: 2, 3: 2}
    assert called(Depths(1, 2), nodes, different) == {2: 2}


def test_names_that_are_alike_on_every_level_are_their_own():
    assert called(Depths(0, 2), [1, 10, 100], lambda *_: 1) == {1: 1, 2: 2}
