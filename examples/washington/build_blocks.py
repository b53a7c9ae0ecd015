"""Write the people of Washington's blocks as rows that a plan counts, and the list of blocks.

``python examples/washington/build_blocks.py`` writes ``people.parquet``, a row for every block,
race and age that has people, and ``blocks.parquet``, a row a block, beside this file. With the code
of a county, such as 53003, it takes that county alone. SOURCE.md tells where the counts come from.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
LEVELS = "geoid[:5] AS county, geoid[:11] AS tract, geoid[:12] AS block_group, geoid AS block"


def build(place: Path, county: str = "") -> None:
    """Write both files to a directory."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE counts AS SELECT * FROM read_csv(?, types = {'geoid': 'VARCHAR'}) "
            "WHERE starts_with(geoid, ?)",
            [str(HERE / "wa_2010_blocks_race_vap.csv.gz"), county],
        )
        cells = (
            "SELECT geoid, kind, people FROM (UNPIVOT counts ON COLUMNS(* EXCLUDE (geoid, pop)) "
            "INTO NAME kind VALUE people) WHERE people > 0"
        )
        for name, select in (
            (
                "people",
                f"SELECT {LEVELS}, split_part(kind, '_', 2) AS race, split_part(kind, '_', 1) AS "
                f"age, people FROM ({cells}) ORDER BY ALL",
            ),
            ("blocks", f"SELECT {LEVELS} FROM counts ORDER BY geoid"),
        ):
            connection.execute(f"COPY ({select}) TO '{place / name}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Write people.parquet and blocks.parquet.")
    options.add_argument("county", nargs="?", default="", help="five digits; all by default")
    build(HERE, options.parse_args().county)
