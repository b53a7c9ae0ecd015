"""Release made-up counts in parts of a million, check their sums, verify and report; print costs.

Needs some 7 GB of disk for each 10^8 counts, and twice as much with measurements. `report` verifies
the release again.
Usage: python -m benchmarks.release_in_parts 100
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click
import duckdb

from benchmarks.rows.pipeline import TOPDOWN, seconds_of, used_by

PART = 1_000_000


@click.command(help="Release PARTS million counts, one county after another.")
@click.argument("parts", type=click.IntRange(min=2))
@click.option("--measurements", is_flag=True, help="Publish the measurements, too.")
@click.option(
    "--method",
    type=click.Choice(("topdown", "conditioning", "imaging", "posterior")),
    default="topdown",
    help="How the counts are drawn.",
)
def main(parts: int, measurements: bool, method: str) -> None:
    """Write the rows, release them, check the released sums, verify, and write a page."""
    plan = TOPDOWN.replace("rows.parquet", "rows-*.parquet").replace("topdown", method)
    if measurements:
        plan += 'release = { publish = ["table", "measurements"] }\n'
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with duckdb.connect(config={"memory_limit": "4GB"}) as connection:
            write_rows(connection, place, parts)
            (place / "plan.toml").write_text(plan)
            command = [sys.executable, "-m", "congenial.cli"]
            release = [*command, "release", str(place / "plan.toml"), "--parts", "county"]
            made = used_by([*release, "--out", str(place / "out")])
            wrong = wrong_sums(connection, place / "out" / "release.parquet")
        # ends with an error if a check fails
        verified = used_by([*command, "verify", str(place / "out")])
        reported = used_by([*command, "report", str(place / "out")])
    for step, used in (("release", made), ("verify", verified), ("report", reported)):
        click.echo(
            f"{step} of {parts * PART:,} counts: {used.ru_maxrss / 1000:,.0f} MB at most, "
            f"{seconds_of(used):,.0f} s of processor time"
        )
    click.echo(f"sums that do not hold, and negative counts: {wrong}")


def write_rows(
    connection: duckdb.DuckDBPyConnection, place: Path, parts: int, size: int = PART
) -> None:
    """Write all places, and a file of rows for each part: two rows a place, more at the first."""
    names = (
        f"'c' || (i // {size}) AS county, 't' || (i // 1_000) AS tract, 'b' || i AS block "
        "FROM (SELECT {} AS i FROM range({}))"
    )
    connection.execute("SELECT setseed(0.5)")
    every = names.format("range", parts * size)
    connection.execute(f"COPY (SELECT {every}) TO '{place}/places.parquet'")
    for part in range(parts):
        drawn = names.format(f"{part * size} + floor({size} * pow(random(), 2))::BIGINT", 2 * size)
        connection.execute(f"COPY (SELECT {drawn}) TO '{place}/rows-{part:04}.parquet'")


def wrong_sums(connection: duckdb.DuckDBPyConnection, table: Path) -> int:
    """Count the negative counts and those that are not the sum of the counts below."""
    wrong = f"SELECT count(*) FROM '{table}' WHERE value < 0"
    total = connection.execute(wrong).fetchall()[0][0]
    for level, name in ((0, "root"), (1, "county"), (2, "tract")):
        sums = (
            f"SELECT {name}, sum(value) FILTER (level = {level}) AS own, "
            f"sum(value) FILTER (level = {level + 1}) AS below FROM '{table}' GROUP BY 1"
        )
        found = f"SELECT count(*) FROM ({sums}) WHERE own IS NOT NULL AND own <> below"
        total += connection.execute(found).fetchall()[0][0]
    return int(total)


if __name__ == "__main__":
    main()
