"""The answer of a command, printed as text or as one JSON object."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from congenial.errors import CongenialError
from congenial.wording import escaped

if TYPE_CHECKING:
    from congenial.accounting.amounts import Amount

# Version of the JSON object; it grows when a key goes or changes its meaning, not for a new key.
FORMAT = 1
# An argument as messages name it; `rows='public'` stands for the option --public.
_ARGUMENT = re.compile(r"`(?P<name>[a-z_]+)(=(True|'(?P<value>[a-z_]+)'))?`")
DONE, FAILED, UNUSABLE, UNPRINTED, MISTAKE, INTERRUPTED = 0, 1, 2, 3, 70, 130
INTERRUPTION = "Interrupted: no partial release is left behind."


@dataclass(frozen=True)
class Answer:
    """The answer of a command."""

    result: Mapping[str, object]  # Printed by ``--json``.
    text: str  # Printed otherwise.
    exit_code: int = DONE
    notes: tuple[str, ...] = ()  # Lines for people, on stderr either way.


class Command(click.Command):
    """A command that returns an `Answer`, with ``--json`` among its options."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for param in self.params:  # the help text states the range itself
            if isinstance(param.type, click.IntRange | click.FloatRange) and not param.metavar:
                param.metavar = "INTEGER" if isinstance(param.type, click.IntRange) else "NUMBER"
        self.params.append(
            click.Option(["--json"], is_flag=True, help="Print one JSON object and nothing else.")
        )

    def invoke(self, ctx: click.Context) -> int:
        """Run the command, print its answer and return its exit code."""
        as_json = ctx.params.pop("json")
        answer: Answer = super().invoke(ctx)
        for line in answer.notes:
            click.echo(line, err=True)
        if as_json:
            _print(ctx.command_path.partition(" ")[2], answer.exit_code, result=answer.result)
        elif answer.text:
            click.echo(answer.text)
        return answer.exit_code


def show_failure(
    error: CongenialError | click.ClickException | None,
    name: str,
    notes: Sequence[str] = (),
    *,
    as_json: bool,
) -> int:
    """Say on stderr what went wrong, with ``--json`` on stdout too, and return the exit code.

    `notes` are sentences about what remains, such as a debit.
    """
    code, kind, begins = UNUSABLE, "UsageError", "Error: "
    if error is None:
        code, kind, begins, text = INTERRUPTED, "Interrupted", "", INTERRUPTION
    elif isinstance(error, click.exceptions.NoArgsIsHelpError):
        begins, text = "", error.format_message()
    elif isinstance(error, click.ClickException):
        text = _usage(error, name)
    else:
        kind, text = type(error).__name__, with_options(str(error))
    text = " ".join((text, *notes))
    click.echo(f"{begins}{text}", err=True)
    if as_json:
        _print(name, code, error={"kind": kind, "message": escaped(text)})
    return code


def with_options(message: str) -> str:
    """Name options where a message names arguments: of `overwrite=True` it is --overwrite."""
    return _ARGUMENT.sub(lambda m: "--" + (m["value"] or m["name"]).replace("_", "-"), message)


def _usage(error: click.ClickException, name: str) -> str:
    """Say in one sentence what is wrong with the command's arguments."""
    text = " ".join(line.strip() for line in error.format_message().splitlines()).rstrip(".")
    text = re.sub(r"\. Did you mean (.+)\?$", r" (did you mean \1?)", text)
    text = text.replace(". Choose from: ", ", one of ")
    text = as_number(text)
    if text.endswith("is not readable"):
        return f"{text}; grant read access to it."
    if ";" in text:  # our own messages have a remedy after a semicolon
        return f"{text}."
    context = getattr(error, "ctx", None)
    command = f"congenial {name}".strip() if context is None else context.command_path
    return f"{text}; see {command} --help."


def as_number(text: str) -> str:
    """Say what is wrong with a number in words that are not click's."""
    return text.replace("is not a valid float range", "is not a number")


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether arguments ask for JSON, even if they cannot be parsed."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def in_decimals(amount: Amount) -> dict[str, str]:
    """Write an amount, every digit of it."""
    return {"epsilon": amount.epsilon_text, "delta": amount.delta_text}


def plain(record: object, without: str = "") -> dict[str, object]:
    """Return a record's fields but one, with amounts as decimals."""
    from congenial.accounting.amounts import Amount

    return {
        name: in_decimals(value) if isinstance(value, Amount) else value
        for name, value in vars(record).items()
        if name != without
    }


def encoded(output: object) -> bytes:
    """Encode as one line of JSON in UTF-8; NaN and infinity become null."""
    import msgspec

    return msgspec.json.encode(output, enc_hook=_written) + b"\n"


def _print(command: str, exit_code: int, *, error: object = None, result: object = None) -> None:
    """Print the object of ``--json``; `command` is empty if no command was recognised."""
    output = {"format": FORMAT, "command": command, "exit_code": exit_code}
    # as bytes, so that the terminal's encoding does not change the JSON
    click.echo(encoded({**output, "error": error, "result": result}), nl=False)


def _written(value: Any) -> str:
    if isinstance(value, Path):
        return escaped(str(value))
    raise NotImplementedError(f"{type(value).__name__} cannot be written as JSON")
