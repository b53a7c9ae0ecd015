"""How often intervals by inversion hold the count on census blocks, beside all other methods."""

from __future__ import annotations

from collections.abc import Callable

from papers.studies import coverage
from papers.studies.coverage_methods import ALPHA
from papers.studies.coverage_tables import figures, tables
from papers.studies.coverage_worlds import (
    METHODS,
    census_blocks,
    measured,
    told,
)
from papers.studies.study import Study

# Scale of the noise on every node.
SCALE = 1.0


def run(
    seed: int,
    effort: float,
    *,
    workers: int | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Study:
    """Run every method on people by census block, with noise under which inversion is possible.

    Parameters are those of `papers.studies.coverage.run`.
    """
    world = census_blocks(effort, SCALE, inverted=True)
    found = measured((world,), seed, effort, workers=workers, notify=notify)
    made = found[world.name]
    epsilon = world.tree.depth / SCALE
    least = min(float(tally.covered[:, -1].mean()) for tally in made)
    findings = (
        f"Discrete Laplace noise of scale {SCALE:g} is added at every node of {world.tree.depth} "
        f"levels. Without bounds, epsilon is {epsilon:g} in all if one record is added or removed. "
        f"Each interval should contain the count with probability {1 - ALPHA:.0%}. {METHODS}.",
        f"Every method made {len(made[0].error):,} releases (*replicates*) of the "
        f"{world.tree.leaves.size:,} blocks. Standard errors are in the tables.",
        told(world.name, made),
        f"Over all leaves, the coverage of every method is at least {least:.1%}. Counts are whole "
        "numbers, and this noise is small. Therefore most intervals cannot have a coverage of "
        "exactly 90%. For some methods, coverage is below 90% in some classes and at some levels.",
        f"[The study of coverage](coverage.md) has noise of scale {coverage.SCALE:g}, and also "
        "taxi zones.",
    )
    title = "Intervals by inversion on census blocks, beside all other methods"
    shown = tables(world.name, world.title, made)
    return Study("inversion", title, findings, shown, figures({world.name: shown}))
