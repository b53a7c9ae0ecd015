"""Write a page about a release, for all readers."""

from __future__ import annotations

from pathlib import Path

import click

from congenial.cli.answer import Answer, Command
from congenial.cli.arguments import PATH, RELEASE
from congenial.cli.loading import compile_once, progress
from congenial.durability.signals import uninterrupted


@click.command("report", cls=Command)
@RELEASE
@click.option("--out", type=PATH, help="File to write; by default report.html in DIRECTORY.")
def command(directory: Path, out: Path | None) -> Answer:
    """Write a page about the release in DIRECTORY, for readers who know no statistics.

    The page is one HTML file that needs no network. It states which facts are protected, the
    guarantee, and every count with its error margin. Of more than 20,000 counts, those of the
    lowest levels are in a folder beside the page, which goes where the page goes. The release is
    checked first. Nothing is spent and no row is read.
    """
    with uninterrupted():
        from congenial.releases.certificate import method_of
        from congenial.report.write import report
    compile_once(method_of(directory), quiet=False)
    with progress() as notify:
        made = report(directory, out, notify=notify)
    beside = made.with_name(f"{made.stem}-counts")
    more = (
        f" Its counts are in {beside}, which goes where the page goes." if beside.is_dir() else ""
    )
    return Answer({"file": made}, f"Wrote {made}.{more}")
