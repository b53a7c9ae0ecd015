"""`python -m papers NAME`: run one of the papers' examples anew, on public or made-up data."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from congenial.cli.loading import progress
from congenial.errors import CongenialError
from congenial.exhibits.files import check_installed
from papers.studies import NAMES, SHARED
from papers.studies.pages import write


@click.command("papers")
@click.argument("name", type=click.Choice(NAMES))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("out/studies"),
    show_default=True,
    help="Directory for the tables and figures.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="The same seed gives the same files.",
)
@click.option(
    "--effort",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the replicates to make, for a quick look.",
)
def main(name: str, out: Path, seed: int, effort: float) -> None:
    """Write a page in Markdown, a CSV file for each table, and each figure as PNG and SVG."""
    try:
        check_installed()
        study = import_module(f"papers.studies.{name.replace('-', '_')}")
        with progress() as notify:
            notify(f"study {name}")
            # a study that takes long reports how far it is
            kept = {"notify": lambda step: notify(f"study {name}: {step}")}
            found = study.run(seed, effort, **(kept if name in SHARED else {}))
            written = write(found, out, seed=seed, effort=effort)
    except CongenialError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    click.echo(f"Wrote {written[0]} and {len(written) - 1} tables and figures beside it.")


if __name__ == "__main__":
    main(prog_name="python -m papers")
