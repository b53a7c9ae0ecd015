"""Release a dataframe of one's own: visits to the clinics of a city that does not exist.

Run it whole, ``python examples/dataframe/clinic_visits.py``, or cell by cell in an editor that
knows ``# %%``. It needs polars, as any other dataframe would need its own library. With
``--simulate SEED`` it gives the same each time, and protects nobody.
"""

# %% What is used
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import congenial as cg

HERE = Path(__file__).resolve().parent

options = argparse.ArgumentParser(description="Release visits to the clinics of a city.")
options.add_argument("--simulate", type=int, metavar="SEED", help="draw reproducibly, for a trial")
options.add_argument("--out", type=Path, default=HERE / "release", help="directory to make")
given, _ = options.parse_known_args()
source = cg.secure() if given.simulate is None else cg.seeded(given.simulate)

# %% The rows, one a visit; yours come from elsewhere. These are made up, the same each time.
clinics = pl.read_csv(HERE / "clinics.csv")
draw = np.random.default_rng(2024)
weights = np.array([9.0, 4.0, 0.5, 6.0, 2.0, 7.0, 1.0, 0.1, 3.0])
at = draw.choice(clinics.height, size=500, p=weights / weights.sum())
visits = clinics[at].with_columns(
    age=pl.Series(draw.integers(0, 95, size=at.size)),
    booked=pl.Series(draw.random(at.size) < 0.8),
)
print(visits.head(3))

# %% The plan. The list of clinics is public, also of those without a visit; ages are not released,
# and still may say which visits count. The city's total is published as it is.
plan = cg.parse_plan(
    """
    [data]
    source = "visits.parquet"          # what the frame stands for; there is no such file
    where = "age >= 18 AND booked"

    [hierarchy]
    root = "city"
    levels = ["district", "clinic"]
    domain = "clinics.csv"

    [privacy]
    neighbours = "substitute"
    epsilon = 0.5
    split = { district = 0.3, clinic = 0.7 }

    [invariants]
    publish_exactly = ["root"]
    """
)
print(cg.explain(plan, HERE))

# %% The release: the frame is counted in place of the plan's source. pandas, Arrow, a DuckDB
# relation or a lazy frame would do as well.
made = cg.release(plan, given.out, base=HERE, frame=visits, simulate=given.simulate, overwrite=True)
print(f"\n{made.certificate.sentence}")
assert all(check.passed for check in cg.verify(given.out))

# %% Back into a dataframe: each count with the interval that holds the true one in 90% of releases
found = cg.read_release(given.out)
table = pl.read_parquet(given.out / "release.parquet")
with pl.Config(tbl_rows=20):
    print(table.select("level_name", "district", "clinic", "value", "lower", "upper"))

# %% What the counts may be: whole tables that add up, nowhere negative, given the release
law = found.posterior("negative-binomial")
low, high = law.intervals(0.1)
likely = law.point("l1", rng=source)
print("\nReleased, likely, and a 90% interval:")
for v in np.flatnonzero(found.tree.level == 2):
    print(f"  {found.names[v]:12} {found.values[v]:6} {likely[v]:6}   {low[v]} to {high[v]}")

# %% A question of one's own: does the Old Town see more visits than the Hills?
old_town, hills = found.tree.find("Old Town"), found.tree.find("Hills")
more = law.probability(lambda counts: counts[:, old_town] > counts[:, hills], rng=source)
print(f"\nP(more visits in the Old Town than in the Hills) = {more.probability:.3f}")
