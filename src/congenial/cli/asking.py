"""Questions on the terminal, each with a default and a reason; options answer them beforehand."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from congenial.cli.answer import as_number
from congenial.errors import CongenialError
from congenial.wording import nearest

# Longest line of an explanation on the terminal, in characters.
_WIDEST = 100


@dataclass(frozen=True)
class Asker:
    """Asks on stderr, because stdout is for the answer; if `yes`, takes defaults without asking."""

    yes: bool
    given: Mapping[str, str | None]  # Values of options, by their names with underscores.
    # Defaults that were taken without asking, by option.
    taken: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        name: str,
        words: str,
        why: str,
        default: str,
        kind: click.ParamType[Any] | Callable[[str], Any] = str,
    ) -> Any:
        """Return an option's value, or the answer to a question; `kind` converts both."""
        option = f"--{name.replace('_', '-')}"
        convert = click.types.convert_type(kind)

        def understand(answer: str) -> Any:
            try:
                return convert(answer.strip())
            except click.BadParameter as error:
                raise click.UsageError(as_number(error.message)) from None
            except CongenialError as error:
                raise click.UsageError(str(error)) from None

        given = self.given[name]
        if given is not None or self.yes:
            if given is None:
                self.taken[option] = given = default
            try:
                return understand(given)
            except click.UsageError as error:
                raise click.UsageError(f"{option}: {error.message}") from None
        width = min(_WIDEST, shutil.get_terminal_size().columns)
        click.echo(f"\n{click.wrap_text(why, width)}", err=True)
        try:
            return click.prompt(
                words, default=default, show_default=bool(default), value_proc=understand, err=True
            )
        except click.Abort as end:
            if not isinstance(end.__context__, EOFError):
                raise
            raise click.UsageError(
                f"the input ended before the answer to {words!r}; give {option}, or --yes to take "
                "what is offered."
            ) from None


def column(answer: str, known: Sequence[str]) -> str:
    """Understand a column's name, or its number as listed, from 1."""
    if answer in known:
        return answer
    folded = [name for name in known if name.strip().casefold() == answer.casefold()]
    if len(folded) == 1:
        return folded[0]
    if answer.isdecimal() and 1 <= int(answer) <= len(known):
        return known[int(answer) - 1]
    raise click.UsageError(
        f"{answer!r} is no column; the columns are {listed(known)}{nearest(answer, known)}."
    )


def columns(answer: str, known: Sequence[str]) -> tuple[str, ...]:
    """Understand columns' names or numbers as listed, from 1, separated by commas."""
    found = tuple(column(part, known) for part in split(answer))
    if not found:
        raise click.UsageError("name at least one column.")
    return found


def split(answer: str) -> tuple[str, ...]:
    """Split at commas; quotes keep a comma in a name."""
    try:
        parts = next(csv.reader([answer], skipinitialspace=True, strict=True), [])
    except csv.Error:
        raise click.UsageError(f"{answer!r} has a quote that does not end with its name.") from None
    return tuple(part.strip() for part in parts if part.strip())


def listed(names: Sequence[str]) -> str:
    """Join names so that `split` gives them back."""
    return ", ".join(
        '"' + n.replace('"', '""') + '"' if set(n) & set(',"\n\r') else n for n in names
    )
