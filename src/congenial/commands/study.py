"""`congenial study`: parses, calls, answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from congenial.commands.answer import Answer, Command
from congenial.commands.loading import undisturbed
from congenial.commands.names import OUT_DIRECTORY
from congenial.studies import NAMES, SHARED


@dataclass(frozen=True)
class Result:
    """What a study found and wrote, the page first."""

    name: str
    seed: int
    effort: float
    findings: tuple[str, ...]
    files: tuple[Path, ...]


@click.command("study", cls=Command)
@click.argument("name", type=click.Choice(NAMES))
@click.option(
    "--out",
    type=OUT_DIRECTORY,
    default=Path("studies/out"),
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
def command(name: str, out: Path, seed: int, effort: float) -> Answer:
    """Run one of the papers' examples anew, on public or made-up data.

    Writes a page in Markdown, a CSV file for each table, and each figure as PNG and SVG.
    """
    with undisturbed():
        from importlib import import_module

        from congenial.progress import progress
        from congenial.studies.write import check_installed, write

        check_installed()
        study = import_module(f"congenial.studies.{name.replace('-', '_')}")
    with progress() as notify:
        notify(f"study {name}")
        # one study takes long: it tells how far it is
        shown = {"notify": lambda told: notify(f"study {name}: {told}")} if name in SHARED else {}
        found = study.run(seed, effort, **shown)
        written = write(found, out, seed=seed, effort=effort)
    return Answer(
        Result(name, seed, effort, tuple(found.findings), tuple(written)),
        f"Wrote {written[0]} and {len(written) - 1} tables and figures beside it.",
    )
