"""Arguments that several commands take."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click

# Most digits of a whole number that is written with an exponent.
_DIGITS = 30


class WholeNumber(click.IntRange):
    """A whole number in a range; 1e6 and 1_000_000 are ways to write a million."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number, and check its range."""
        if isinstance(value, str):
            try:
                number = Decimal(value)
            except InvalidOperation:
                number = Decimal("nan")
            if not number.is_finite() or number != number.to_integral_value():
                self.fail(
                    f"{value!r} is not a whole number; give one such as 12 or 1e6.",
                    param,
                    ctx,
                )
            if number.adjusted() >= _DIGITS:
                self.fail(
                    f"{value!r} has more than {_DIGITS} digits; give a smaller number.", param, ctx
                )
            value = int(number)
        return super().convert(value, param, ctx)


class PartWorkers(click.ParamType[str | int]):
    """Who works on the parts of a release: 'spark', or a number of processes."""

    name = "spark|NUMBER"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | int:
        """Read a word or a number."""
        if value == "spark":
            return "spark"
        try:
            return WholeNumber(min=1).convert(value, param, ctx)
        except click.BadParameter:
            pass  # outside the handler, whose error does not name Spark
        raise click.BadParameter(
            f"{value!r} works on no parts; give 'spark' or a number of processes from 1.",
            ctx,
            param,
        )


NEIGHBOURS = ("substitute", "add-remove")
METHODS = ("conditioning", "imaging", "topdown", "posterior")
PATH = click.Path(path_type=Path)
PLAN = click.argument("plan", type=PATH)
RELEASE = click.argument("directory", type=PATH)
LEDGER = click.argument("ledger", type=PATH)
# Counts that simulated releases start from.
TOTAL = click.option(
    "--total",
    type=WholeNumber(min=1),
    help="Number of records in the made-up counts; by default 20 for each leaf.",
)
COUNTS = click.option(
    "--counts",
    type=PATH,
    help="Take public counts instead, such as an earlier release: a CSV or Parquet file with a "
    "column for each level and a column 'count' or 'value'.",
)
