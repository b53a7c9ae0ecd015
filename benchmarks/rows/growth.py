"""Time of the first draw from 10^4 to 10^7 leaves, which is linear.

The trees have the same four levels and the same fan-out below the root, so only the number of
leaves differs. The process keeps the memory that a draw frees. The first round waits for this
memory. A virtual machine may take longer to provide it than a draw takes to fill it. If there are
three or more rounds, the first is therefore left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import rounds

SCALE = 2.0
# A decade more of leaves may cost ten times as much, and a fifth.
TARGET = 1.2
# The C library's allocator asks for memory once and gives none back (glibc).
KEPT = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}
KINDS = (("equalities only", False), ("every count ≥ 0", True))
PER_LEAF = "{:,} leaves, first draw"
STEP = "a leaf's time at {:,} over that at {:,}"


def sizes(quick: bool) -> tuple[int, ...]:
    """Return the numbers of leaves, ascending."""
    return (1_000, 10_000) if quick else (10_000, 100_000, 1_000_000, 10_000_000)


def cases(quick: bool) -> tuple[Case, ...]:
    """Return one case a kind; sizes go up in it until its time is spent."""
    counts = sizes(quick)
    times = tuple(Measure(PER_LEAF.format(n), "ns/leaf") for n in counts)
    steps = tuple(Measure(STEP.format(b, a), "×", TARGET) for a, b in pairwise(counts))
    return tuple(
        Case("growth", name, times + steps, limit, partial(_run, bounded, counts), KEPT)
        for (name, bounded), limit in zip(KINDS, (120.0, 180.0), strict=True)
    )


def _run(bounded: bool, counts: tuple[int, ...]) -> Iterator[Seen]:

    ours.warm(bounded=bounded)
    before: tuple[int, float] | None = None
    for leaves in counts:
        tree = worlds.grown((leaves // 500, 25, 20))
        x = worlds.poisson(tree)
        mechanism = cg.Additive(cg.DiscreteLaplace(SCALE), tree)
        invariant = ours.tree_invariant(tree, pinned=True, bounded=bounded)
        step = {"first": partial(ours.first_draw, mechanism, invariant, x)}
        times = rounds(step, repeats=9, budget=25.0)["first"] / leaves
        per_leaf = float(times.min())  # a fifth is less than the noise of one round
        yield Seen(
            PER_LEAF.format(leaves),
            1e9 * per_leaf,
            low=1e9 * float(times.min()),
            high=1e9 * float(times.max()),
            detail={"leaves": float(leaves), "rounds": float(times.size)},
        )
        if before is not None:
            yield Seen(STEP.format(leaves, before[0]), per_leaf / before[1])
        before = leaves, per_leaf
