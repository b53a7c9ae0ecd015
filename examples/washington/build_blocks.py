"""Write people and homes of Washington's blocks as rows that a plan counts, and the list of blocks.

``python examples/washington/build_blocks.py`` writes four files beside this one:
``people.parquet``, a row for every block, race and age that has people; ``homes.parquet``, a row
for every block and kind of home; ``blocks.parquet``, a row a block; ``capacity.csv``, the most
people that each block has room for. With the code of a county, such as 53003, it takes that county
alone. SOURCE.md tells where the people come from. Homes and room are made up.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
LEVELS = "geoid[:5] AS county, geoid[:11] AS tract, geoid[:12] AS block_group, geoid AS block"

# One home in use for every two adults, rounded up, and one for children alone; one home for rent
# for every eight homes in use, and one for the season for every sixteen.
HOMES = """
WITH used AS (
    SELECT geoid, greatest(1, (coalesce(sum(people) FILTER (kind LIKE 'adult%'), 0) + 1) // 2) AS n
    FROM ({cells}) GROUP BY geoid
)
SELECT geoid, 'in use' AS status, 'lived in' AS kind, n AS homes FROM used
UNION ALL SELECT geoid, 'empty', 'for rent', n // 8 FROM used
UNION ALL SELECT geoid, 'empty', 'seasonal', n // 16 FROM used
"""

# Room for twice the people, rounded up to a power of two, and for 16 at least.
ROOM = "CAST(greatest(16, 2 ** ceil(log2(greatest(2 * pop, 1)))) AS BIGINT) AS room"


def build(place: Path, county: str = "") -> None:
    """Write the files to a directory."""
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
            (
                "homes",
                f"SELECT {LEVELS}, status, kind, CAST(homes AS BIGINT) AS homes FROM "
                f"({HOMES.format(cells=cells)}) WHERE homes > 0 ORDER BY ALL",
            ),
            ("blocks", f"SELECT {LEVELS} FROM counts ORDER BY geoid"),
        ):
            connection.execute(f"COPY ({select}) TO '{place / name}.parquet' (FORMAT parquet)")
        connection.execute(
            f"COPY (SELECT {LEVELS}, {ROOM} FROM counts ORDER BY geoid) TO '{place}/capacity.csv'"
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Write the rows of the example.")
    options.add_argument("county", nargs="?", default="", help="five digits; all by default")
    build(HERE, options.parse_args().county)
