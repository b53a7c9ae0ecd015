"""The datasets of a mechanism: all small ones, and which of them are neighbours."""

from __future__ import annotations

import congenial as cg
from congenial.auditing.space import space_of

PAIR = cg.Tree.from_parents([-1, 0, 0])


def test_every_pair_is_compared_once():
    space = space_of(
        cg.condition(
            cg.Additive(cg.DiscreteLaplace([1.5, 2.0, 1.5]), PAIR),
            cg.consistent(PAIR) & cg.nonnegative(),
        )
    )
    datasets = list(space.datasets(2))
    assert sorted(tuple(x[1:]) for x in datasets) == [
        (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (2, 0),
    ]  # fmt: skip
    assert len(space.pairs(datasets, "add-remove")) == 6
    assert len(space.pairs(datasets, "substitute")) == 3
