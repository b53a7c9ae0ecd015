"""The tree of a domain's ordered paths is the one that `Tree.from_paths` builds."""

from __future__ import annotations

import numpy as np

from congenial.data.public_domain import tree_of
from congenial.domain.tree import Tree
from congenial.plan.plan import parse_plan
from support.city import plan_text


def test_ordered_paths_make_the_tree_of_any_paths():
    source = np.random.default_rng(4)
    for _ in range(500):
        depth = int(source.integers(1, 5))
        levels = [f"l{at}" for at in range(depth)]
        plan = parse_plan(
            plan_text(
                hierarchy=f'root = "all"\nlevels = {levels}\ndomain = "lookup"',
                privacy='neighbours = "substitute"\nepsilon = 1.0',
            )
        )
        paths = sorted(
            {
                tuple("abc"[source.integers(3)] for _ in range(depth))
                for _ in range(source.integers(1, 41))
            }
        )
        columns = [np.array(names, dtype=object) for names in zip(*paths, strict=True)]
        made, known = tree_of(plan, columns), Tree.from_paths(("all", *path) for path in paths)
        assert made.names == known.names
        assert made.parents.tolist() == known.parents.tolist()
