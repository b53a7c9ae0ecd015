"""Release 2 million made-up counts in four parts by the posterior, in one process and in more.

Prints the time on the clock and the processor time. Usage: python -m benchmarks.release_processes 2
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import click
import duckdb

from benchmarks.release_in_parts import write_rows, wrong_sums
from benchmarks.rows.pipeline import TOPDOWN, seconds_of, used_by

PARTS, PART = 4, 500_000


@click.command(help="Compare one process with NUMBER processes.")
@click.argument("number", type=click.IntRange(min=2), default=2)
def main(number: int) -> None:
    """Write the rows, release them twice, and check the sums."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        with duckdb.connect(config={"memory_limit": "4GB"}) as connection:
            write_rows(connection, place, PARTS, PART)
            plan = TOPDOWN.replace("rows.parquet", "rows-*.parquet").replace("topdown", "posterior")
            (place / "plan.toml").write_text(plan)
            command = [sys.executable, "-m", "congenial.cli", "release", str(place / "plan.toml")]
            command += ["--parts", "county"]
            for given in ([], ["--on", str(number)]):
                out, begun = place / f"out{len(given)}", time.perf_counter()
                used = used_by([*command, *given, "--out", str(out)])
                wrong = wrong_sums(connection, out / "release.parquet")
                click.echo(
                    f"{' '.join(given) or 'one process'}: {time.perf_counter() - begun:,.0f} s, "
                    f"{seconds_of(used):,.0f} s of processor time; sums that do not hold: {wrong}"
                )


if __name__ == "__main__":
    main()
