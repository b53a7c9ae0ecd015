"""The command line: puts the commands together, and turns errors into sentences and exit codes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import click

from congenial import __version__
from congenial.commands.answer import DONE, FAILED, show_failure, wants_json
from congenial.commands.audit import audit_command
from congenial.commands.compare import compare_command
from congenial.commands.explain import explain_command
from congenial.commands.init import init_command
from congenial.commands.ledger import ledger_group
from congenial.commands.release import release_command
from congenial.commands.report import report_command
from congenial.commands.study import study_command
from congenial.commands.verify import verify_command
from congenial.errors import CongenialError

if TYPE_CHECKING:
    from types import FrameType

EPILOGUE = """\b
Exit codes:
  0    done
  1    a check failed, or the output cannot be written
  2    the input cannot be used: nothing was released
  129  ended by SIGHUP, 130 by Ctrl-C, 143 by SIGTERM

With --json a command prints one JSON object, also about an error.
"""


class _InOrderOfUse(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- as click calls it
        """List the commands as a user comes to need them."""
        return list(self.commands)


@click.group(
    cls=_InOrderOfUse,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EPILOGUE,
)
@click.version_option(__version__, prog_name="congenial")
def cli() -> None:
    """Release counts with differential privacy that add up and obey mandates exactly."""


for _command in (
    init_command,
    explain_command,
    release_command,
    verify_command,
    report_command,
    compare_command,
    audit_command,
    ledger_group,
    study_command,
):
    cli.add_command(_command)


def main() -> NoReturn:
    """Run the command line; the entry point of the `congenial` script."""
    signal.signal(signal.SIGTERM, _terminate)
    # a terminal that goes away, unless nohup asked us not to mind
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _terminate)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors become one sentence on stderr."""
    try:
        outcome = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader of our output went away; Python would complain again while it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        # such as a full device behind stdout; what was released stands
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"Error: writing failed ({error.strerror}); make room and try again.", err=True)
        return FAILED
    return outcome


def _run(arguments: list[str]) -> int:
    try:
        outcome = cli.main(args=arguments, prog_name="congenial", standalone_mode=False)
    except (CongenialError, click.ClickException) as error:
        return show_failure(error, _name(arguments), as_json=wants_json(arguments))
    except (KeyboardInterrupt, click.Abort):
        return show_failure(None, _name(arguments), as_json=wants_json(arguments))
    return outcome if isinstance(outcome, int) else DONE


def _name(arguments: Sequence[str]) -> str:
    """Name of the command that arguments begin with, of a group's too."""
    known: click.Command | None = cli
    found: list[str] = []
    for argument in arguments:
        known = known.commands.get(argument) if isinstance(known, click.Group) else None
        if known is None:
            break
        found.append(argument)
    return " ".join(found)


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    # unwinding the stack takes away what was written aside; a second signal must not stop that
    for name in ("SIGHUP", "SIGINT", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
