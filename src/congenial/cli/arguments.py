"""Arguments that several commands take."""

from __future__ import annotations

from pathlib import Path

import click

PATH = click.Path(path_type=Path)
PLAN = click.argument("plan", type=PATH)
RELEASE = click.argument("directory", type=PATH)
LEDGER = click.argument("ledger", type=PATH)
