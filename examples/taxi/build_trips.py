"""Write trips.parquet beside this file: one row a trip, from the published counts.

The counts are given by date, hour and zone; a cell of n trips becomes n equal rows, with the
columns `date`, `hour` and `PULocationID`. Rows are made and written by DuckDB alone, so memory
stays flat. The file is written aside and then renamed, so that a run cut short leaves none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
COUNTS = HERE / "zone_hour_counts_2022_02.csv.gz"
TRIPS = HERE / "trips.parquet"
# What the counts add up to, zones 264 (unknown) and 265 (outside the city) included.
EXPECTED = 2_979_379


def build(counts: Path = COUNTS, trips: Path = TRIPS, expected: int = EXPECTED) -> int:
    """Write one row a trip.

    Parameters
    ----------
    counts : Path
        CSV with the columns date, hour, zone_id and trips.
    trips : Path
        The Parquet file to write.
    expected : int
        Number of rows that it must have.

    Returns
    -------
    int
        Number of rows written.

    Raises
    ------
    ValueError
        If the counts do not add up to `expected`; nothing is written then.
    """
    aside = trips.with_name(f".{trips.name}.{os.getpid()}.part")
    try:
        with duckdb.connect() as connection:
            source = connection.read_csv(
                str(counts),
                dtype={"date": "DATE", "hour": "TINYINT", "zone_id": "SMALLINT", "trips": "BIGINT"},
            )
            connection.register("counts", source)
            connection.sql(
                """
                SELECT date, hour, zone_id AS PULocationID
                FROM counts, range(trips)
                """
            ).write_parquet(str(aside), compression="zstd")
            written = connection.read_parquet(str(aside)).count("*").fetchall()[0][0]
        if written != expected:
            raise ValueError(
                f"{counts.name} gives {written:,} trips instead of {expected:,}; restore the file."
            )
        aside.replace(trips)
    finally:
        aside.unlink(missing_ok=True)
    return int(written)


if __name__ == "__main__":
    try:
        rows = build()
    except (OSError, ValueError, duckdb.Error) as error:
        sys.exit(f"Error: {error}")
    print(f"Wrote {TRIPS.name}: {rows:,} trips.")
