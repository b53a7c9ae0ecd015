"""Release the taxi trips of New York's zones, and say how far off the counts may be.

Run it whole, ``python examples/taxi/release_zones.py``, or cell by cell in an editor that knows
``# %%``. With ``--simulate SEED`` it gives the same each time, and protects nobody.
"""

# %% What is used
from __future__ import annotations

import argparse
import csv
import runpy
from pathlib import Path

import numpy as np

import congenial as cg

HERE = Path(__file__).resolve().parent

options = argparse.ArgumentParser(description="Release the taxi trips of New York's zones.")
options.add_argument("--simulate", type=int, metavar="SEED", help="draw reproducibly, for a trial")
options.add_argument("--out", type=Path, default=HERE / "release-zones", help="directory to make")
given, _ = options.parse_known_args()
source = cg.secure() if given.simulate is None else cg.seeded(given.simulate)

# %% The rows: one a trip, built from counts that the city has published
if not (HERE / "trips.parquet").exists():
    rows = runpy.run_path(str(HERE / "build_trips.py"))["build"]()
    print(f"Built trips.parquet: {rows:,} trips.\n")

# %% The plan: that of the demo, but counts may be negative, and by conditioning. Then the noise has
# one law whatever the counts are, so that all that follows is exact.
plan = cg.parse_plan(
    """
    [data]
    source = "trips.parquet"
    where = "PULocationID <= 263"
    lookup = { source = "taxi_zone_lookup.csv", key = "LocationID", on = "PULocationID" }

    [hierarchy]
    root = "New York City"
    levels = ["Borough", "PULocationID"]
    domain = "lookup"

    [privacy]
    neighbours = "substitute"
    epsilon = 1.0
    split = { Borough = 0.4, PULocationID = 0.6 }

    [invariants]
    publish_exactly = ["root"]

    [method]
    name = "conditioning"
    """
)
print(cg.explain(plan, HERE))

# %% The release, checked as anybody can check it
made = cg.release(plan, given.out, base=HERE, simulate=given.simulate, overwrite=True)
print(f"\n{made.certificate.sentence}")
checks = cg.verify(given.out)
assert all(check.passed for check in checks)
print(f"All {len(checks)} checks passed.")

# %% From here on nothing but the release is read, as its users do
found = cg.read_release(given.out)
tree, z = found.tree, found.values
zones = np.flatnonzero(tree.level == 2)
boroughs = np.flatnonzero(tree.level == 1)
with (HERE / "taxi_zone_lookup.csv").open(encoding="utf-8", newline="") as file:
    places = {row["LocationID"]: row["Zone"] for row in csv.DictReader(file)}
called = [places.get(name, name) for name in tree.names]
assert z[zones].sum() == z[boroughs].sum() == z[0]
print(f"\n{z[0]:,} trips in {zones.size} zones; {(z[zones] < 0).sum()} zones have a count below 0.")

# %% Margins of error: 90% of all releases have the true count within, at every node by itself ...
noise = found.mechanism
assert isinstance(noise, cg.conditioning.Conditioned)  # on the invariants, for all counts
margins = cg.inference.error_margins(noise, alpha=0.1)
busiest = zones[np.argsort(z[zones])[::-1][:5]]
print("\nThe busiest zones, with 90% margins of error:")
for v in busiest:
    print(f"  {called[v]:30} {z[v]:9,} ± {margins[v]}")

# ... and wider ones for all zones at once, and for a sum of one's own
together = cg.inference.simultaneous_error_margins(noise, zones.tolist(), alpha=0.1, rng=source)
airports = [tree.find(name) for name in ("1", "132", "138")]
margin = cg.inference.error_margin_of_sum(noise, airports, alpha=0.1, rng=source)
print(f"All zones at once: ± {together.max()} at most.")
print(f"The three airports: {z[airports].sum():,} ± {margin}")

# %% The posterior: draws of whole tables of trips that add up, are nowhere negative, and could have
# led to this release. The prior is fitted to the release alone, so nothing more is spent.
law = found.posterior("negative-binomial")
low, high = law.intervals(0.1)
quiet = zones[np.argsort(z[zones], kind="stable")[:3]]
print("\nZones with the smallest counts: as released, and what the counts may be (90%):")
for v in quiet:
    print(f"  {called[v]:30.30} {z[v]:5}   {low[v]} to {high[v]}")

# %% The probability of an event, by name of zone, and its Monte Carlo error
first, second = tree.find("17"), tree.find("225")
more = law.probability(lambda counts: counts[:, first] > counts[:, second], rng=source)
print(
    f"\nP({called[first]} has more trips than {called[second]}) = {more.probability:.3f} "
    f"± {more.standard_error:.3f}"
)

# %% Zones compared: where in the order of its borough may a zone be?
brooklyn = zones[tree.parents[zones] == tree.find("Brooklyn")]
shown = brooklyn[np.argsort(z[brooklyn])[::-1][10:16]]
draws = law.sample(2000, rng=source)
ranks = 1 + (draws[:, None, brooklyn] > draws[:, shown, None]).sum(axis=2)
print("\nBrooklyn's zones in the middle, by rank (90%):")
for v, rank in zip(shown, ranks.T, strict=True):
    ends = np.quantile(rank, (0.05, 0.95), method="inverted_cdf")
    print(f"  {called[v]:30} {z[v]:6,}   rank {ends[0]} to {ends[1]}")

# %% How many zones are quiet, which no table shows
few = np.quantile((draws[:, zones] < 100).sum(axis=1), (0.05, 0.95), method="inverted_cdf")
print(f"\nZones with fewer than 100 trips: {few[0]} to {few[1]} (90%)")

# %% A share: trips that start in Manhattan
share = draws[:, tree.find("Manhattan")] / draws[:, 0]
print(f"Manhattan's share: {share.mean():.4%} ± {1.645 * share.std():.4%} (90%)")

# %% The demo's own plan, under which no released count is negative. It publishes the closest table
# that satisfies the invariants and, at no further cost, the measurements from which the table was
# made. The posterior of the true counts comes from these. (This is a second release of the same
# rows: together they cost epsilon 2, which a ledger would add up.)
plan = cg.read_plan(HERE / "plan.toml")
beside = given.out.with_name(f"{given.out.name}-nonnegative")
cg.release(plan, beside, base=HERE, simulate=given.simulate, overwrite=True)
imaged = cg.read_release(beside)
law = imaged.posterior("negative-binomial")
low, high = law.intervals(0.1)
print(
    "\nThe same quiet zones, no count below zero: released, measured, and what they may be (90%):"
)
for v in quiet:
    measured = imaged.measurements.y[v] if imaged.measurements is not None else np.nan
    print(f"  {called[v]:30.30} {imaged.values[v]:5} {measured:5.0f}   {low[v]} to {high[v]}")
