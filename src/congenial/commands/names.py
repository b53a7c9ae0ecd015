"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

from congenial.commands.completion import complete_plans, complete_releases

OUT_DIRECTORY = click.Path(path_type=Path)
PLAN = click.argument("plan", type=click.Path(path_type=Path), shell_complete=complete_plans)
RELEASE = click.argument(
    "directory", type=click.Path(path_type=Path), shell_complete=complete_releases
)
LEDGER = click.argument("ledger", type=click.Path(path_type=Path))
