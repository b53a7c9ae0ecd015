"""Ask about DATA, and write a plan for it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from congenial.cli.answer import Answer, Command
from congenial.cli.arguments import METHODS, NEIGHBOURS, PATH
from congenial.cli.asking import Asker
from congenial.durability.signals import uninterrupted
from congenial.errors import PlanError


@click.command("init", cls=Command)
@click.argument("data", type=click.Path())
@click.option(
    "--out",
    type=PATH,
    default=Path("plan.toml"),
    show_default=True,
    help="The plan to write.",
)
@click.option("--table", help="The table of a database.")
@click.option(
    "--weight",
    metavar="COLUMN",
    help="The column with a row's number of records; '' if a row is one record.",
)
@click.option(
    "--lookup",
    type=click.Path(),
    metavar="FILE",
    help="A public table joined to the rows; '' for none.",
)
@click.option("--lookup-key", metavar="COLUMN", help="The lookup's key column.")
@click.option("--lookup-on", metavar="COLUMN", help="The rows' column with these keys.")
@click.option("--levels", metavar="COLUMNS", help="Columns, coarse to fine, with commas.")
@click.option(
    "--attributes",
    metavar="LIST",
    help="Attributes counted at every place: 'sex=F,M; age=ages.csv'.",
)
@click.option(
    "--domain",
    help="Where the nodes (the places with counts) come from: 'lookup', 'data', or a public file.",
)
@click.option(
    "--names-repeat",
    type=click.Choice(("yes", "no")),
    help="Whether one name may be under several parents, such as an age under each sex.",
)
@click.option("--root", help="Name of the root, which counts all records.")
@click.option(
    "--neighbours",
    type=click.Choice(NEIGHBOURS),
    help="substitute: hide a record's values. add-remove: also hide whether the record is there.",
)
@click.option(
    "--epsilon", help="The guarantee; a smaller epsilon is more private, with more noise."
)
@click.option(
    "--publish-exactly",
    metavar="NAMES",
    help="Levels or nodes, with commas between, that are published without noise and not "
    "protected; '' for none.",
)
@click.option(
    "--nonnegative",
    type=click.Choice(("yes", "no")),
    help="Whether to forbid released counts below zero.",
)
@click.option("--method", type=click.Choice(METHODS), help="How releases satisfy sums and bounds.")
@click.option("--ledger", metavar="FILE", help="Ledger of the releases; '' for none.")
@click.option("--name", help="Name of the rows in the ledger.")
@click.option("--yes", is_flag=True, help="Ask nothing and take the defaults.")
@click.option("--overwrite", is_flag=True, help="Replace a file that is already there.")
def command(data: str, out: Path, yes: bool, overwrite: bool, **given: str | None) -> Answer:
    """Look at the columns of DATA, ask, and write a commented plan.

    DATA is a Parquet or CSV file, or a DuckDB or SQLite file. A pattern in quotes, such as
    "rows-*.csv", names several Parquet or CSV files.
    Only the names and types of its columns are read, no value. Each option answers one question.
    """
    with uninterrupted():
        from congenial.cli.wizard import DOMAIN_IS_DATA, ask_all, try_plan
        from congenial.data.columns import find
        from congenial.durability.whole_files import replace_file
        from congenial.plan.draft import as_toml
        from congenial.plan.plan import parse_plan
        from congenial.releases.certificate import plain_plan
    find(data, "DATA")
    _check_target(out, overwrite)
    asker = Asker(yes, given)
    draft = replace(ask_all(asker, data, out), guessed=tuple(asker.taken))
    following = f"congenial explain {shlex.quote(str(out))}"
    if not following.isprintable():
        following = "congenial explain PLAN, with this file's name"
    written = as_toml(draft, following)
    plan = parse_plan(written, base=out.parent)
    try_plan(plan, out.parent)
    try:
        replace_file(out, written.encode())
    except OSError as error:
        raise PlanError(
            f"the plan {str(out)!r} cannot be written "
            f"({(error.strerror or 'unwritable').lower()}); give another --out."
        ) from None
    notes = (*_guesses(asker.taken), *((DOMAIN_IS_DATA,) if draft.domain == "data" and yes else ()))
    taken = {option.removeprefix("--"): answer for option, answer in asker.taken.items()}
    result = {
        "file": out,
        "plan": plain_plan(plan),
        "columns": draft.columns,
        "next": following,
        "guessed": taken,
    }
    return Answer(result, f"Wrote {out}.\nNext: {following}", notes=notes)


def _guesses(taken: Mapping[str, str]) -> tuple[str, ...]:
    """List the defaults taken without asking, the levels first, because they may be wrong."""
    order = sorted(taken, key=lambda option: option != "--levels")
    shown = [
        f"{option} {shlex.quote(taken[option]) if taken[option].isprintable() else '...'}"
        for option in order
    ]
    if not shown:
        return ()
    if "--levels" in taken:
        shown[0] += " (by the columns' names)"
    answers = ", ".join(shown)
    return (f"These answers are guesses: {answers}. Correct the plan, or give these options.",)


def _check_target(out: Path, overwrite: bool) -> None:
    shown = repr(str(out))
    if out.is_dir():
        raise PlanError(f"the plan {shown} is a directory; give --out a file in it.")
    if not out.parent.is_dir():
        raise PlanError(
            f"the plan {shown} would be in a directory that does not exist; make it first, or give "
            "another --out."
        )
    if os.path.lexists(out) and not overwrite:
        raise PlanError(
            f"the plan {shown} already exists; give --overwrite to replace it, or another --out."
        )
    if os.path.lexists(out) and out.suffix != ".toml":
        raise PlanError(
            f"{shown} exists and its name does not end in .toml, so it is not replaced; give "
            "another --out."
        )
