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
        f"Discrete Laplace noise of scale {SCALE:g} on every node, as for epsilon {epsilon:g} in "
        f"all; each interval is meant to hold the count with probability {1 - ALPHA:.0%}. "
        f"{METHODS}.",
        f"Every method has {len(made[0].error):,} replicates on {world.tree.leaves.size:,} blocks; "
        "standard errors are in the tables.",
        told(world.name, made),
        f"Over all leaves the intervals of every method hold in {least:.1%} of the cases or more. "
        "Counts are whole numbers and this noise is small, so that few could hold just as often as "
        "they are meant to; classes and levels of some hold less often.",
        f"Noise of scale {coverage.SCALE:g}, on taxi zones too, is in the study of coverage.",
    )
    title = "Intervals by inversion on census blocks, beside all other methods"
    shown = tables(world.name, world.title, made)
    return Study("inversion", title, findings, shown, figures(found, SCALE))
