"""Peer of a release: DuckDB counts, NumPy adds noise, DuckDB writes the same two files.

No domain is checked, nothing is claimed, and noise is floating-point's: what is left is the work
that nobody can save.
"""

from __future__ import annotations

import sys

import duckdb
import numpy as np

SCALE = 6.0


def publish(rows: str, places: str, out: str) -> None:
    """Count the rows at every place and above, add noise, and write CSV and Parquet."""
    connection = duckdb.connect()
    connection.execute(f"""
        CREATE TABLE counted AS
        WITH leaf AS (
            SELECT county, tract, block, count(r.block) AS n
            FROM '{places}' LEFT JOIN (SELECT block FROM '{rows}') AS r USING (block) GROUP BY ALL
        )
        SELECT 3 - grouping(county) - grouping(tract) - grouping(block) AS level, county, tract,
            block, sum(n)::BIGINT AS n
        FROM leaf GROUP BY GROUPING SETS ((), (county), (county, tract), (county, tract, block))
        ORDER BY level, county, tract, block
    """)
    counts = connection.execute("SELECT n FROM counted").fetchnumpy()["n"]
    rng, p = np.random.default_rng(), 1.0 - np.exp(-1.0 / SCALE)
    noise = rng.geometric(p, counts.size) - rng.geometric(p, counts.size)
    connection.register("noisy", {"value": np.asarray(counts) + noise})
    released = "SELECT counted.* EXCLUDE n, value FROM counted POSITIONAL JOIN noisy"
    connection.execute(f"COPY ({released}) TO '{out}.csv' (HEADER)")
    connection.execute(f"COPY ({released}) TO '{out}.parquet'")


if __name__ == "__main__":
    publish(*sys.argv[1:])
