"""How often intervals hold the count, and how far estimates are off, by size of the count."""

from __future__ import annotations

from collections.abc import Callable

from papers.studies.coverage_methods import ALPHA
from papers.studies.coverage_tables import figures, tables
from papers.studies.coverage_worlds import (
    METHODS,
    World,
    census_blocks,
    measured,
    told,
)
from papers.studies.sources import taxi
from papers.studies.study import Study

# Scale of the noise on every node.
SCALE = 4.0


def run(
    seed: int,
    effort: float,
    *,
    workers: int | None = None,
    notify: Callable[[str], None] = lambda _: None,
) -> Study:
    """Run every method on taxi trips by zone and on people by census block.

    Parameters
    ----------
    seed : int
    effort : float
        Share of the full study's replicates; small ones take one county's blocks.
    workers : int, optional
        Threads, see `papers.studies.coverage_worlds.measured`.
    notify : callable
        Told how far it is.
    """
    zones = World("zones", "trips by taxi zone", *taxi(), SCALE, inverted=True)
    # of a whole state's blocks so many may be empty that inversion is refused
    people = census_blocks(effort, SCALE, inverted=False)
    worlds = zones, people
    found = measured(worlds, seed, effort, workers=workers, notify=notify)
    first, second = (f"{len(found[w.name][0].error):,}" for w in worlds)
    findings = (
        f"Discrete Laplace noise of scale {SCALE:g} is added at every node. Each interval should "
        f"contain the count with probability {1 - ALPHA:.0%}. {METHODS}. With this noise, "
        "inversion is possible for zones only: on blocks, too many true counts could be 0. The "
        "[next study](inversion.md) has blocks with less noise.",
        f"Every method made {first} releases (*replicates*) of the {zones.tree.leaves.size:,} "
        f"zones. Every method except inversion made {second} releases of the "
        f"{people.tree.leaves.size:,} blocks. Standard errors are in the tables.",
        *(told(name, made) for name, made in found.items()),
        "Bias by decile of the true count need not be a fault of an estimate. The mean of a "
        "posterior is moved towards counts that are likely under the prior. So it is above the "
        "smallest true counts and below the largest. But a user sees only the estimate. If the "
        "prior is right, leaves with the same estimate have this estimate as the mean of their "
        "true counts. Therefore bias by decile of the estimate shows whether a prior is good.",
        "A release by conditioning can be closer to the true counts than the best estimate from "
        "measurements. The noise of conditioning has another law than that of measurements: it "
        "adds up.",
        "A posterior has its stated coverage on average over counts like those of its prior. "
        "Coverage differs between classes of the true count, because estimates, above all small "
        "ones, are moved towards counts that are likely under the prior. Coverage by class of the "
        "estimate shows whether a prior is good.",
    )
    shown = {w.name: tables(w.name, w.title, found[w.name]) for w in worlds}
    every = tuple(table for own in shown.values() for table in own)
    title = "Coverage of intervals and bias of estimates, by size of the count"
    return Study("coverage", title, findings, every, figures(shown))
