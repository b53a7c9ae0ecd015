"""Census table P12, sex by age, for every county of the United States, with state totals exact.

Run it with ``python examples/census/sex_by_age.py``, or with the number of states to take. The
counts are those of the 2010 Census, Summary File 1, as published then (U.S. Census Bureau, public
domain); they come with the package, in ``congenial/studies/data``, where SOURCES.md tells more.
"""

from __future__ import annotations

import sys
from typing import Literal

import numpy as np

import congenial as cg
from congenial.studies.sources import counties

# In the order of the counts, which have women before men.
AGES = (
    *("0-4", "5-9", "10-14", "15-17", "18-19", "20", "21", "22-24", "25-29", "30-34", "35-39"),
    *("40-44", "45-49", "50-54", "55-59", "60-61", "62-64", "65-66", "67-69", "70-74", "75-79"),
    *("80-84", "85+"),
)
METHODS: tuple[Literal["conditioning", "imaging"], ...] = ("conditioning", "imaging")


def census(states: int | None = None) -> tuple[cg.Table, np.ndarray]:
    """Return the table's domain and its counts."""
    found = counties()
    taken = sorted({code[:2] for code in found.codes})[:states]
    at = [i for i, code in enumerate(found.codes) if code[:2] in taken]
    table = cg.Table(
        {"sex": ("female", "male"), "age": AGES},
        groups={"voting_age": ("age", {"minor": AGES[:4], "adult": AGES[4:]})},
        geography=cg.Tree.from_paths([("US", found.codes[i][:2], found.codes[i]) for i in at]),
        levels=("nation", "state", "county"),
        name="P12",
    )
    return table, found.cells[at].reshape(table.shape)


def main(states: int | None = None) -> None:
    """Release the table in two ways, and print what is promised and how far off the counts are."""
    table, counts = census(states)

    # everyone's sex by state as enumerated, no negative count; noise at the cells of counties, and
    # at the groups below and above 18
    workload = cg.Workload.of(table, {"state": ["sex"], "county": [("sex", "voting_age")]})
    mandate = (
        cg.consistent(workload) & cg.nonnegative() & cg.exactly_margins(["sex"], level="state")
    )
    shares = {("sex", "voting_age"): 0.4, ("sex", "age"): 0.6}
    x = workload.answers(counts)
    print(f"{len(workload):,} counts in {table.areas:,} counties")
    for name in METHODS:
        method = cg.condition if name == "conditioning" else cg.image
        noise = cg.calibrate(
            workload, mandate, epsilon=1.0, neighbours="substitute", split=shares, method=name
        )
        engine = method(cg.Additive(noise, workload), mandate)
        _tell(name, workload, x, engine.sample(x), str(engine.guarantee("substitute")))

    # voting age by state exact too: the margins cross, and a draw is still exact
    crossing = cg.Workload.of(table, {"state": ["sex", "voting_age"]})
    mandate = (
        cg.consistent(crossing)
        & cg.nonnegative()
        & cg.exactly_margins(["sex", "voting_age"], level="state")
    )
    noise = cg.calibrate(crossing, mandate, epsilon=1.0, neighbours="substitute")
    engine = cg.condition(cg.Additive(noise, crossing), mandate)
    x = crossing.answers(counts)
    _tell("both margins", crossing, x, engine.sample(x), str(engine.guarantee("substitute")))


def _tell(name: str, workload: cg.Workload, x: np.ndarray, z: np.ndarray, claim: str) -> None:
    print(f"\n{name}: {claim}")
    for margin, level in ((("sex",), "state"), (("sex", "age"), "county")):
        error = workload.array(z, margin, level) - workload.array(x, margin, level)
        told = f"{' by '.join(margin)} at level {level}"
        print(f"  mean absolute error of {told}: {np.abs(error).mean():.3g}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else None)
