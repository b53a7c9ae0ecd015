"""Write the people of every county as rows that a plan counts, and the list of counties.

``python examples/census/build_counties.py`` writes ``people.parquet``, a row for every county, sex
and age that has people, and ``counties.parquet`` beside this file. The counts are those of the 2010
Census, Summary File 1, table P12 (U.S. Census Bureau, public domain), in ``papers/data``.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent
COUNTS = HERE.parents[1] / "papers" / "data" / "p12_county_2010.csv.gz"


def build(place: Path) -> None:
    """Write both files to a directory."""
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE counts AS SELECT * FROM read_csv(?, types = {'state_fips': 'VARCHAR', "
            "'county_fips': 'VARCHAR'})",
            [str(COUNTS)],
        )
        cells = (
            "SELECT * FROM (UNPIVOT counts ON COLUMNS('^[mf]_') INTO NAME kind VALUE people) "
            "WHERE people > 0"
        )
        for name, select in (
            (
                "people",
                "SELECT state_fips AS state, county_fips AS county, kind[:1] AS sex, kind[3:] AS "
                f"age, people FROM ({cells}) ORDER BY ALL",
            ),
            ("counties", "SELECT state_fips AS state, county_fips AS county FROM counts"),
        ):
            connection.execute(f"COPY ({select}) TO '{place / name}.parquet' (FORMAT parquet)")


if __name__ == "__main__":
    build(HERE)
