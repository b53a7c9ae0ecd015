"""Census table P12, sex by age, for every county of the United States, with state totals exact.

Run it whole, ``python examples/census/sex_by_age.py``, or with the number of states to take; or
cell by cell in an editor that knows ``# %%``. The counts are those of the 2010 Census, Summary File
1, as published then (U.S. Census Bureau, public domain); they come with the project, in
``papers/data``, where SOURCES.md tells more.
"""

# %% What is used
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import congenial as cg

# The counts are read by a part of the project that is not installed with the package.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from papers.studies.sources import counties

options = argparse.ArgumentParser(description="Release sex by age for every county, in three ways.")
options.add_argument("states", type=int, nargs="?", help="how many states to take; all by default")
given, _ = options.parse_known_args()

# In the order of the counts, which have women before men.
AGES = (
    *("0-4", "5-9", "10-14", "15-17", "18-19", "20", "21", "22-24", "25-29", "30-34", "35-39"),
    *("40-44", "45-49", "50-54", "55-59", "60-61", "62-64", "65-66", "67-69", "70-74", "75-79"),
    *("80-84", "85+"),
)


# %% The table: its two attributes, a group of ages, and its geography
def census(states: int | None = None) -> tuple[cg.Table, np.ndarray]:
    """Return the table's domain and its counts."""
    found = counties()
    taken = sorted({code[:2] for code in found.codes})[:states]
    at = [i for i, code in enumerate(found.codes) if code[:2] in taken]
    domain = cg.Table(
        {"sex": ("female", "male"), "age": AGES},
        groups={"voting_age": ("age", {"minor": AGES[:4], "adult": AGES[4:]})},
        geography=cg.Tree.from_paths([("US", found.codes[i][:2], found.codes[i]) for i in at]),
        levels=("nation", "state", "county"),
        name="P12",
    )
    return domain, found.cells[at].reshape(domain.shape)


table, counts = census(given.states)

# %% The invariant: everyone's sex by state as enumerated, no negative count. Noise goes to cells
# of counties, and to the groups below and above 18.
workload = cg.Workload.of(table, {"state": ["sex"], "county": [("sex", "voting_age")]})
invariant = cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=["sex"], level="state")
shares = {("sex", "voting_age"): 0.4, ("sex", "age"): 0.6}
x = workload.answers(counts)
print(f"{len(workload):,} counts in {table.areas:,} counties")


# %% What is told of each release: its guarantee, and how far off its counts are
def tell(name: str, asked: cg.Workload, true: np.ndarray, z: np.ndarray, claim: str) -> None:
    """Print what a release promises and its mean absolute errors; the counts are public here."""
    print(f"\n{name}: {claim}")
    for margin, level in ((("sex",), "state"), (("sex", "age"), "county")):
        error = asked.array(z, margin, level) - asked.array(true, margin, level)
        told = f"{' by '.join(margin)} at level {level}"
        print(f"  mean absolute error of {told}: {np.abs(error).mean():.3g}")


# %% Conditioning: drawn from the noise's own law, given the invariant
scales = cg.calibrate(
    workload, invariant, epsilon=1.0, neighbours="substitute", split=shares, method="conditioning"
)
drawn = cg.condition(cg.Additive(scales, workload), invariant)
tell("conditioning", workload, x, drawn.sample(x), str(drawn.guarantee("substitute")))

# %% Imaging: noise first, then the closest table that satisfies the invariant
scales = cg.calibrate(
    workload, invariant, epsilon=1.0, neighbours="substitute", split=shares, method="imaging"
)
moved = cg.image(cg.Additive(scales, workload), invariant)
tell("imaging", workload, x, moved.sample(x), str(moved.guarantee("substitute")))

# %% Voting age by state exact too: the margins cross, and a draw is still exact
crossing = cg.Workload.of(table, {"state": ["sex", "voting_age"]})
invariant = (
    cg.consistent(crossing)
    & cg.nonnegative()
    & cg.exactly(margins=["sex", "voting_age"], level="state")
)
scales = cg.calibrate(crossing, invariant, epsilon=1.0, neighbours="substitute")
joined = cg.condition(cg.Additive(scales, crossing), invariant)
x = crossing.answers(counts)
tell("both margins", crossing, x, joined.sample(x), str(joined.guarantee("substitute")))
