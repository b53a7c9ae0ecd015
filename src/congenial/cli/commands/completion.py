"""Print a script that completes commands in a shell."""

from __future__ import annotations

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

from congenial.cli.answer import Answer, Command

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> Answer:
    """Print a script with which SHELL completes commands, options and files.

    For bash, put this line into ~/.bashrc: eval "$(congenial completion bash)". For zsh, put this
    line into ~/.zshrc: autoload -Uz compinit; compinit; eval "$(congenial completion zsh)". For
    fish, put this line into ~/.config/fish/config.fish: congenial completion fish | source.
    """
    root = context.find_root()
    name = str(root.info_name)
    completion = SHELLS[shell](root.command, {}, name, f"_{name}_complete".upper())
    script = completion.source().rstrip()
    return Answer({"shell": shell, "script": script}, script)
