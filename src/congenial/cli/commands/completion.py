"""Print a script that completes commands in a shell."""

from __future__ import annotations

import click

from congenial.cli.answer import Answer, Command

SHELLS = ("bash", "zsh", "fish")


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> Answer:
    """Print a script with which SHELL completes commands, options and files.

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
    return Answer({"shell": shell, "script": script}, script)
