"""`python -m benchmarks`: run the rows, print the table, write JSON, plot and page."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks import plot, report, runner
from benchmarks.machine import ROOT, described
from benchmarks.record import Line
from benchmarks.rows import ROWS

# Seconds of all rows together, up to 25 minutes.
BUDGET = 1500.0
# Between the version of the newest rows and those of others.
OTHERS = "; other rows: "
PAGE = ROOT / "docs" / "benchmarks.md"
PLOT = ROOT / "docs" / "benchmarks-growth"


@click.command(help="Measure what exact draws cost, beside a peer in the same run.")
@click.option("--only", multiple=True, type=click.Choice(ROWS), help="This row; may be repeated.")
@click.option("--quick", is_flag=True, help="Tiny sizes, to see that everything runs.")
@click.option(
    "--page",
    is_flag=True,
    help=f"Write {PAGE.name} and its plot into docs too. With --only, these rows replace those of "
    "the last run on this machine.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=ROOT / "benchmarks" / "out",
    show_default="benchmarks/out",
    help="Directory of results.json and the plot.",
)
@click.option("--budget", type=float, default=BUDGET, show_default=True, help="Seconds in all.")
def main(*, only: tuple[str, ...], quick: bool, page: bool, out: Path, budget: float) -> None:
    """Run the rows and write what was seen."""
    if page and quick:
        raise click.UsageError("--page is for real sizes; leave out --quick.")
    rows = [row for row in ROWS if not only or row in only]
    machine = described()
    others: list[Line] = []
    if page and only:
        others, before = _others(out / "results.json", rows, machine)
        if before != machine["congenial"]:
            here = f"{machine['congenial']} ({', '.join(rows)})"
            machine["congenial"] = f"{here}{OTHERS}{_without(rows, before)}"
    lines = runner.run(
        rows, quick=quick, budget=budget, tell=lambda text: click.echo(text, err=True)
    )
    lines = sorted([*lines, *others], key=lambda line: ROWS.index(line.row))
    click.echo(report.table(lines))
    if quick:
        click.echo("Tiny sizes were measured: these numbers say nothing about the targets.")
    runner.write_json(out / "results.json", lines, machine, quick=quick)
    stems = [out / "growth", PLOT] if page else [out / "growth"]
    drawn: list[Path] = []
    try:
        for stem in stems:
            drawn = plot.growth(lines, stem)
    except ModuleNotFoundError as error:
        click.echo(f"No plot: {error.name} is not installed.", err=True)
    click.echo(f"Wrote {out / 'results.json'}.")
    if page:
        picture = f"{PLOT.name}.svg" if drawn else None
        PAGE.write_text(report.page(lines, machine, plot=picture), encoding="utf-8")
        click.echo(f"Wrote {PAGE.relative_to(ROOT)}.")


def _without(rows: list[str], before: str) -> str:
    """Leave out the names of rows that are measured anew, and versions that have no others."""
    kept = []
    for part in before.split(OTHERS):
        version, _, listed = part.partition(" (")
        left = [row for row in listed.rstrip(")").split(", ") if row not in (*rows, "")]
        if left or not listed:
            kept.append(f"{version} ({', '.join(left)})" if left else version)
    return OTHERS.join(kept)


def _others(results: Path, rows: list[str], machine: dict[str, str]) -> tuple[list[Line], str]:
    """Return the lines of the other rows, measured on the same machine, and their version."""
    if not results.is_file():
        raise click.UsageError("there are no results of other rows; run without --only first.")
    lines, before = runner.read_json(results)
    if before["processor"] != machine["processor"]:
        raise click.UsageError("the other rows were measured on another machine; measure all.")
    kept = [line for line in lines if line.row not in rows]
    if {line.row for line in kept} | set(rows) != set(ROWS):
        raise click.UsageError("the last run lacks some rows; run without --only first.")
    return kept, before["congenial"]


if __name__ == "__main__":
    sys.exit(main())
