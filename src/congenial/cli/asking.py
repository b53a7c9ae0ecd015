"""Questions on the terminal, each with a default and a reason; options answer them beforehand."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

T = TypeVar("T")
# Columns of a sentence on a terminal.
_WIDEST = 100


@dataclass(frozen=True)
class Question:
    """What is asked.

    Attributes
    ----------
    option : str
        The option that answers it, such as ``--root``.
    words : str
    why : str
        One plain sentence.
    """

    option: str
    words: str
    why: str


@dataclass(frozen=True)
class Asker:
    """Asks on stderr, so that stdout is left to the answer; takes defaults where `yes`.

    Attributes
    ----------
    yes : bool
    taken : dict of str to str
        What was taken without asking, by option; filled as questions come.
    """

    yes: bool
    taken: dict[str, str] = field(default_factory=dict)

    def ask(
        self,
        question: Question,
        given: Any,
        default: str,
        understand: Callable[[str], T],
    ) -> T:
        """Return the answer to a question.

        Parameters
        ----------
        question : Question
        given : str or None
            What the option says; it is asked where None.
        default : str
        understand : callable
            Turns text into the answer, or raises `click.UsageError`.

        Raises
        ------
        click.UsageError
            If the option's value is none of the answers, or the input ends.
        """
        if given is not None or self.yes:
            if given is None:
                self.taken[question.option] = default
            try:
                return understand(default if given is None else str(given))
            except click.UsageError as error:
                raise click.UsageError(f"{question.option}: {error.message}") from None
        width = min(_WIDEST, shutil.get_terminal_size().columns)
        click.echo(f"\n{click.wrap_text(question.why, width)}", err=True)
        try:
            answer: T = click.prompt(
                question.words,
                default=default,
                show_default=bool(default),
                value_proc=understand,
                err=True,
            )
        except click.Abort as end:
            if not isinstance(end.__context__, EOFError):
                raise
            raise click.UsageError(
                f"the input ended before the answer to {question.words!r}; give {question.option}, "
                "or --yes to take what is offered."
            ) from None
        return answer


def choice(known: Sequence[str]) -> Callable[[str], str]:
    """Understand one of a few words."""

    def understand(answer: str) -> str:
        if not answer.strip():
            raise click.UsageError(f"name one of {', '.join(known)}.")
        if answer.strip() not in known:
            raise click.UsageError(f"{answer!r} is not one of {', '.join(known)}.")
        return answer.strip()

    return understand


def number(least: float, most: float) -> Callable[[str], float]:
    """Understand a number in a range."""

    def understand(answer: str) -> float:
        try:
            found = float(answer)
        except ValueError:
            found = float("nan")
        if not least <= found <= most:
            raise click.UsageError(f"{answer!r} is no number from {least:g} to {most:g}.")
        return found

    return understand


def yes_or_no(answer: str) -> bool:
    """Understand yes or no."""
    words = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
    found = words.get(answer.strip().casefold())
    if found is None:
        raise click.UsageError(f"{answer!r} is neither yes nor no.")
    return found


def some_text(answer: str) -> str:
    """Understand a text that is not blank."""
    if not answer.strip():
        raise click.UsageError("a name is needed.")
    return answer.strip()


def column(known: Sequence[str]) -> Callable[[str], str]:
    """Understand a column's name, or its number as listed, from 1."""

    def understand(answer: str) -> str:
        (name,) = columns(known)(listed([answer.strip()]))
        return name

    return understand


def columns(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Understand columns' names or numbers as listed, from 1, separated by commas."""

    def understand(answer: str) -> tuple[str, ...]:
        found = tuple(_column(part, known) for part in split(answer))
        if not found:
            raise click.UsageError("name at least one column.")
        return found

    return understand


def _column(part: str, known: Sequence[str]) -> str:
    if part in known:
        return part
    folded = [name for name in known if name.strip().casefold() == part.casefold()]
    if len(folded) == 1:
        return folded[0]
    if part.isdecimal() and 1 <= int(part) <= len(known):
        return known[int(part) - 1]
    # a name with a comma shows its quotes, as the answer has to
    names = [json.dumps(name, ensure_ascii=False) if "," in name else name for name in known]
    raise click.UsageError(f"{part!r} is no column; the columns are {', '.join(names)}.")


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
