"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

NEIGHBOURS = ("substitute", "add-remove")
METHODS = ("conditioning", "imaging", "topdown", "posterior")
PATH = click.Path(path_type=Path)
PLAN = click.argument("plan", type=PATH)
RELEASE = click.argument("directory", type=PATH)
LEDGER = click.argument("ledger", type=PATH)
# Counts that simulated releases start from.
TOTAL = click.option(
    "--total",
    type=click.IntRange(min=1),
    help="Number of records in the made-up counts; by default 20 for each leaf.",
)
COUNTS = click.option(
    "--counts",
    type=PATH,
    help="Take public counts instead, such as an earlier release: a CSV or Parquet file with a "
    "column for each level and a column 'count' or 'value'.",
)
