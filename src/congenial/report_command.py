"""`congenial report`: parses, calls, prints."""

from __future__ import annotations

from pathlib import Path

import click

from congenial.loading import compile_once, undisturbed


@click.command("report")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="File to write; by default report.html in DIRECTORY.",
)
def report_command(directory: Path, out: Path | None) -> None:
    """Write a page about the release in DIRECTORY, for readers who know no statistics.

    One HTML file that needs no network: what is protected and what is not, the guarantee, and every
    count with its margin of error. The release is checked first; nothing is spent.
    """
    with undisturbed():
        from congenial.progress import progress
        from congenial.report.write import method_of, report
    compile_once(method_of(directory), quiet=False)
    with progress() as notify:
        made = report(directory, out, notify=notify)
    click.echo(f"Wrote {made}.")
