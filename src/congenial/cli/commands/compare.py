"""Simulate every method that fits PLAN, side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

import click

from congenial.cli.answer import Answer, Command
from congenial.cli.arguments import COUNTS, PATH, PLAN, TOTAL, WholeNumber
from congenial.cli.loading import compile_once, load, progress
from congenial.durability.signals import uninterrupted
from congenial.errors import ReleaseError


@click.command("compare", cls=Command)
@PLAN
@TOTAL
@click.option(
    "--spread",
    type=click.FloatRange(min=0, max=10),
    default=1.5,
    show_default=True,
    help="How unequal the made-up counts are: the standard deviation of the logarithm of the "
    "random weights by which each place is divided among its parts.",
)
@COUNTS
@click.option(
    "--public",
    is_flag=True,
    help="Compare on the plan's rows. With this option you declare that they are public.",
)
@click.option(
    "--simulate",
    type=WholeNumber(min=0),
    metavar="SEED",
    help="Seed of the noise, in place of --seed; needs --with-truth. A comparison with "
    "--with-truth is not private.",
)
@click.option(
    "--with-truth",
    is_flag=True,
    help="Compare on the plan's confidential rows; needs --simulate SEED.",
)
@click.option(
    "--delta",
    type=click.FloatRange(min=1e-15, max=1e-2),
    help="Also compare Gaussian noise at this delta, if the plan has no delta.",
)
@click.option(
    "--replicates",
    type=WholeNumber(min=2),
    help="Number of simulated releases by each method: by default 200, or fewer if a release has "
    "more than 20,000 counts.",
)
@click.option(
    "--seed",
    type=WholeNumber(min=0),
    help="Seed of the made-up counts and of the noise; 1 by default.",
)
@click.option(
    "--out",
    type=PATH,
    help="Directory for a page, tables as CSV and JSON, and a figure; files of an earlier "
    "comparison there are replaced.",
)
def command(plan: Path, out: Path | None, **options: Any) -> Answer:
    """Compare all methods that fit PLAN on simulated releases.

    Each method has the epsilon of PLAN. Without --counts, --public or --with-truth the counts are
    made up and no confidential row is read. Nothing is spent.
    """
    _check_compare(options)
    with uninterrupted():
        from congenial.preview.comparison.comparing import compare
        from congenial.preview.comparison.outcome_tables import as_text
        from congenial.preview.comparison.pages import (
            check_can_write,
            has_files,
            terminal_width,
            write,
        )
        from congenial.preview.comparison.trial_counts import find_counts
    if out is not None:
        check_can_write(out)
    rows: Literal["public", "confidential"] | None = "public" if options["public"] else None
    if options["with_truth"]:
        rows = "confidential"
    read = load(plan, rows=rows is not None)
    if options["counts"] is not None:
        find_counts(options["counts"])
    for method in ("conditioning", "imaging"):
        compile_once(method, crossing=read.crossing, quiet=False)
    with progress() as notify:
        found = compare(
            read,
            plan.parent,
            total=options["total"],
            counts=options["counts"],
            rows=rows,
            spread=options["spread"],
            delta=options["delta"],
            replicates=options["replicates"],
            seed=next(s for s in (options["simulate"], options["seed"], 1) if s is not None),
            notify=notify,
        )
    text = as_text(found, width=terminal_width(), colour=sys.stdout.isatty())
    written: list[Path] = []
    if out is not None:
        replaced = has_files(out)
        try:
            written = write(found, out, command=f"congenial compare {plan.name} {found.options}")
        except ReleaseError:
            click.echo(text, err=True)  # a long comparison is not lost with the files
            raise
        text += f"\nWrote {written[0]} and {len(written) - 1} files beside it"
        text += ", in place of an earlier comparison." if replaced else "."
    return Answer({"comparison": found, "files": written}, text)


def _check_compare(options: dict[str, Any]) -> None:
    if options["with_truth"] != (options["simulate"] is not None):
        raise click.UsageError(
            "--simulate SEED and --with-truth go together; give both to compare on confidential "
            "counts, or neither."
        )
    given = [f"--{name}" for name in ("total", "counts", "public", "simulate") if options[name]]
    if options["simulate"] == 0:
        given.append("--simulate")
    if len(given) > 1:
        raise click.UsageError(f"{given[0]} and {given[1]} name different counts; give one.")
    if options["simulate"] is not None and options["seed"] is not None:
        raise click.UsageError("--simulate and --seed both give a seed; leave out --seed.")
