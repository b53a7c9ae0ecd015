"""The command line: puts the commands together, and turns errors into sentences and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING, NoReturn

import click

from congenial import __version__
from congenial.cli.answer import (
    DONE,
    FAILED,
    INTERRUPTED,
    MISTAKE,
    UNPRINTED,
    show_failure,
    wants_json,
)
from congenial.durability.signals import Ended, Ender, uninterrupted
from congenial.errors import CongenialError, UnsupportedError

if TYPE_CHECKING:
    from types import TracebackType

HELP = """Release counts with differential privacy that add up and satisfy invariants exactly.

\b
A first release:
  congenial init rows.csv                        asks, and writes plan.toml
  congenial explain plan.toml                    says what it will do
  congenial release plan.toml --out release      makes it, which costs epsilon
  congenial verify release                       checks it
"""
EPILOGUE = """\b
Exit codes:
  0              done
  1              a check failed
  2              the input or the output path cannot be used; nothing was released
  3              stdout cannot be written; files that were written remain
  70             a bug in congenial: please report it
  129, 130, 143  ended by SIGHUP, SIGINT (Ctrl-C), SIGTERM

With --json a command prints one JSON object, also for an error.
"""


# In the order in which a user needs them; further commands follow by name.
FIRST = (
    *("init", "explain", "compare", "audit", "release", "verify", "report"),
    *("ledger", "completion"),
)
FOLDER = "congenial.cli.commands"


def command_names() -> list[str]:
    """Return the names of the commands, each that of its file in `commands/`."""
    files = iter_modules(import_module(FOLDER).__path__)
    found = {file.name.replace("_", "-") for file in files}
    return [*(name for name in FIRST if name in found), *sorted(found - set(FIRST))]


def summary(name: str) -> str:
    """Return what a command does, the first line of its file, without importing it."""
    found = find_spec(f"{FOLDER}.{name.replace('-', '_')}")
    with Path(str(found and found.origin)).open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')


class Commands(click.Group):
    """The commands, in the order in which a user needs them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the names of the commands."""
        return command_names()

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        """Import a command; None where there is none of the name."""
        if cmd_name not in command_names():
            return None
        with uninterrupted():
            module = import_module(f"{FOLDER}.{cmd_name.replace('-', '_')}")
        found: click.Command = module.command
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary(name)) for name in command_names()])


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=HELP,
    epilog=EPILOGUE,
)
@click.version_option(__version__, prog_name="congenial")
def cli() -> None:
    """Group the commands; `HELP` is the text shown."""


def main(ender: Ender) -> NoReturn:
    """Run the command line; `ender` listens for signals already."""
    sys.excepthook = _mistake
    try:
        code = run(sys.argv[1:])
    finally:
        # the signal decides the exit code, even if a library replaced the exception
        ender.stop()
        if ender.number is not None:
            raise SystemExit(128 + ender.number) from None
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors become one sentence on stderr."""
    try:
        outcome = _run(arguments)
        if sys.stdout is not None:  # the caller may have closed it
            sys.stdout.flush()
    except BrokenPipeError:
        # the reader closed the pipe; without this Python would fail again when it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNPRINTED
    except OSError as error:
        # such as a full disk behind stdout; a written release remains, and another is debited again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _complain(
            f"Error: stdout cannot be written ({str(error.strerror).lower()}), so the answer is "
            "lost. A file or a release that the command makes is whole or absent; look for it "
            "before you try again, because another release is debited again."
        )
        return UNPRINTED
    return outcome


def _run(arguments: list[str]) -> int:
    error: CongenialError | click.ClickException | None = None  # None means an interruption
    notes: Sequence[str] = ()
    try:
        outcome = cli.main(args=arguments, prog_name="congenial", standalone_mode=False)
        return outcome if isinstance(outcome, int) else DONE
    except (CongenialError, click.ClickException) as failure:
        error, notes = failure, getattr(failure, "__notes__", ())
    except Ended as ended:
        if ended.code != INTERRUPTED:
            return int(str(ended.code))
    except SystemExit as end:
        if end.code != FAILED:
            raise
        return UNPRINTED  # click exits with this code if the reader closed the pipe
    except MemoryError as failure:
        error = UnsupportedError(
            "this needs more memory than there is; use fewer nodes or levels, or another machine."
        )
        notes = getattr(failure, "__notes__", ())
    except (KeyboardInterrupt, click.Abort) as stop:
        notes = getattr(stop, "__notes__", ())
    return show_failure(error, _name(arguments), notes, as_json=wants_json(arguments))


def _name(arguments: Sequence[str]) -> str:
    """Name of the command that arguments begin with, of a group's too."""
    known: click.Command | None = cli
    found: list[str] = []
    for argument in arguments:
        if isinstance(known, click.Group):
            known = known.get_command(click.Context(known), argument)
            found += [argument] * (known is not None)
    return " ".join(found)


def _complain(text: str) -> None:
    """Say something on stderr, if that can be written."""
    with suppress(OSError):
        click.echo(text, err=True)


def _mistake(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> NoReturn:
    """Print an unhandled exception, and exit with a code of its own."""
    sys.__excepthook__(kind, error, trace)
    _complain("This is a bug in congenial; please report it.")
    raise SystemExit(MISTAKE)
