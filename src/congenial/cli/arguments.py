"""Arguments that several commands take, and what a shell offers for them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Names that no shell needs quotes for; the shell itself completes others.
_SIMPLE = re.compile(r"[\w./+@%,:=-]*")
CERTIFICATE = "certificate.json"


def complete_plans(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer TOML files, and directories on the way to more."""
    return _offer(incomplete, lambda entry: entry.name.endswith(".toml"), "file")


def complete_releases(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Offer directories that hold a certificate, and others on the way to more."""
    return _offer(incomplete, lambda entry: (entry / CERTIFICATE).is_file(), "dir")


def _offer(incomplete: str, wanted: Callable[[Path], bool], otherwise: str) -> list[CompletionItem]:
    """Offer what is wanted of one directory; where there is nothing, the shell's own completion."""
    from click.shell_completion import CompletionItem

    head, tail = os.path.split(incomplete)
    try:
        found = sorted(Path(head or ".").expanduser().iterdir())
    except (OSError, RuntimeError, ValueError):
        return []
    near = [
        entry
        for entry in found
        if entry.name.startswith(tail) and entry.name.startswith(".") <= tail.startswith(".")
    ]
    hits = [entry.name for entry in near if wanted(entry)]
    ways = [f"{entry.name}/" for entry in near if entry.is_dir() and not wanted(entry)]
    before = incomplete.removesuffix(tail) if tail else incomplete
    names = [f"{before}{name}" for name in (*hits, *ways)]
    if not hits or not all(_SIMPLE.fullmatch(name) for name in names):
        return [CompletionItem(incomplete, type=otherwise)]
    return [CompletionItem(name) for name in names]


OUT_DIRECTORY = click.Path(path_type=Path)
PLAN = click.argument("plan", type=click.Path(path_type=Path), shell_complete=complete_plans)
RELEASE = click.argument(
    "directory", type=click.Path(path_type=Path), shell_complete=complete_releases
)
LEDGER = click.argument("ledger", type=click.Path(path_type=Path))
