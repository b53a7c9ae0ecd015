"""Mean, deviation, median and interval of every node, by one pass over filled tables.

Noise is discrete Laplace of scale 2 at every node, the root is pinned and no count is bounded.
Filling the tables is not in the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks import worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.rows.everywhere import FANS, QUICK_FANS
from benchmarks.timing import rounds
from congenial import sum_network

SCALE = 2.0
ALL = "summaries of all nodes"


def cases(quick: bool) -> tuple[Case, ...]:
    """Return the tree of row `everywhere`, and a small one."""
    found: dict[str, tuple[int, ...]] = {"tree of two levels": (3, 2) if quick else (50, 40)}
    found["tree of four levels"] = QUICK_FANS if quick else FANS
    measures = (Measure(ALL, "ns/node"),)
    return tuple(
        Case("summaries", name, measures, 60.0, partial(_run, fans)) for name, fans in found.items()
    )


def _run(fans: tuple[int, ...]) -> Iterator[Seen]:
    tree = worlds.grown(fans)
    n = len(tree)
    ends = np.full(n, -np.inf), np.full(n, np.inf)
    weights = sum_network.share_noise(1, np.full(n, SCALE), ends, tree.parents < 0, n)
    tables = sum_network.fill(sum_network.compile(sum_network.of_tree(tree), weights))
    is_leaf = tree.is_leaf
    step = {"all": partial(sum_network.summaries, tables, is_leaf, 0.1)}
    step["all"]()  # loads the kernels
    taken = 1e9 * rounds(step, repeats=7, budget=20.0)["all"] / n
    yield Seen(ALL, float(np.median(taken)), float(taken.min()), float(taken.max()))
