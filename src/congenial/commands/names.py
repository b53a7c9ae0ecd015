"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

OUT_DIRECTORY = click.Path(path_type=Path)
PLAN = click.argument("plan", type=click.Path(path_type=Path))
RELEASE = click.argument("directory", type=click.Path(path_type=Path))
LEDGER = click.argument("ledger", type=click.Path(path_type=Path))
