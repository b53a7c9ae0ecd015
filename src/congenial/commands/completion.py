"""`congenial completion`: prints what a shell needs to complete commands, plans and releases."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from congenial.commands.answer import Answer, Command

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

SHELLS = ("bash", "zsh", "fish")
# Names that no shell needs quotes for; the shell itself completes others.
_SIMPLE = re.compile(r"[\w./+@%,:=-]*")
CERTIFICATE = "certificate.json"


@dataclass(frozen=True)
class Result:
    """The script, as a shell's start-up file evaluates it."""

    shell: str
    script: str


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> Answer:
    """Print what SHELL needs to complete commands, options, plans and releases.

    For bash, put this into ~/.bashrc: eval "$(congenial completion bash)". For zsh, the same with
    zsh into ~/.zshrc, after "autoload -Uz compinit; compinit". For fish: congenial completion fish
    | source.
    """
    from click.shell_completion import get_completion_class

    root = context.find_root()
    name = str(root.info_name)
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"this version of click does not know {shell}; update click.")
    script = kind(root.command, {}, name, f"_{name}_complete".upper()).source().rstrip()
    return Answer(Result(shell, script), script)


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
