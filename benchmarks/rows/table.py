"""Census table P12, sex by age, at every county of the United States under exact state totals."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import congenial as cg
from benchmarks import ours, worlds
from benchmarks.peers import geometric
from benchmarks.record import Case, Measure, Seen
from benchmarks.timing import Times, ratio, rounds

SCALE = 2.0
LAY = "margins laid out and answered"
CONDITIONED = "conditioned release"
IMAGED = "imaged release, in integers"
BESIDE = "{} beside noise"
TARGETS = {CONDITIONED: 60.0, IMAGED: 10.0}
# Whose counts the states publish exactly.
EXACT = {"sex": ["sex"], "sex, and voting age": ["sex", "voting_age"]}


def cases(quick: bool) -> tuple[Case, ...]:
    """Return a case each of nested and of crossing totals."""
    found = []
    for name, margins in EXACT.items():
        measures = [Measure(LAY, "s")]
        for each, target in TARGETS.items():
            measures.append(Measure(each, "s", target))
            measures.append(Measure(BESIDE.format(each), ours.UNIT))
        run = partial(_run, margins, 3 if quick else None)
        found.append(Case("table", f"state totals by {name}", tuple(measures), 150.0, run))
    return tuple(found)


def _run(margins: list[str], states: int | None) -> Iterator[Seen]:
    ours.warm(bounded=True)
    table, counts = worlds.p12(states)

    def lay() -> cg.Workload:
        workload = cg.Workload.of(table, {"state": margins})
        workload.answers(counts)
        _ = workload.tree
        return workload

    workload = lay()
    x = workload.answers(counts)
    noise = cg.DiscreteLaplace(workload.scales({("sex", "age"): SCALE}))
    mechanism = cg.Additive(noise, workload)
    invariant = cg.consistent(workload) & cg.nonnegative()
    invariant &= cg.exactly(margins=margins, level="state")
    steps = {
        LAY: lay,
        "noise": geometric.noise(int(workload.cells.size), SCALE),
        CONDITIONED: lambda: cg.condition(mechanism, invariant, sampler="exact").sample(x),
        IMAGED: lambda: cg.image(mechanism, invariant, integer=True).sample(x),
    }
    times = rounds(steps, repeats=5, budget=90.0)
    for name in (LAY, *TARGETS):
        yield _seconds(name, times)
    for name in TARGETS:
        yield ratio(BESIDE.format(name), times[name], times["noise"])


def _seconds(name: str, times: Times) -> Seen:
    taken = times[name]
    return Seen(name, float(sorted(taken)[len(taken) // 2]), float(taken.min()), float(taken.max()))
