"""`python -m benchmarks`: run the rows, print the table, write JSON, plot and page."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks import plot, report, runner
from benchmarks.machine import ROOT, described
from benchmarks.rows import ROWS

# Seconds of all rows together, up to 25 minutes.
BUDGET = 1500.0
PAGE = ROOT / "docs" / "benchmarks.md"
PLOT = ROOT / "docs" / "benchmarks-growth"


@click.command(help="Measure what exact draws cost, beside a peer in the same run.")
@click.option("--only", multiple=True, type=click.Choice(ROWS), help="This row; may be repeated.")
@click.option("--quick", is_flag=True, help="Tiny sizes, to see that everything runs.")
@click.option("--page", is_flag=True, help=f"Write {PAGE.name} and its plot into docs too.")
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
    if page and (only or quick):
        raise click.UsageError("--page is for a whole run; leave out --only and --quick.")
    rows = [row for row in ROWS if not only or row in only]
    machine = described()
    lines = runner.run(
        rows, quick=quick, budget=budget, tell=lambda text: click.echo(text, err=True)
    )
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


if __name__ == "__main__":
    sys.exit(main())
