"""Make a release of PLAN."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from congenial.cli.answer import Answer, Command, plain
from congenial.cli.arguments import PATH, PLAN, PartWorkers, WholeNumber
from congenial.cli.loading import compile_once, load, progress
from congenial.durability.signals import uninterrupted

if TYPE_CHECKING:
    from congenial.releases.making.make_release import ReleaseResult


@click.command("release", cls=Command)
@PLAN
@click.option("--out", required=True, type=PATH, help="Directory to make.")
@click.option(
    "--simulate",
    type=WholeNumber(min=0),
    metavar="SEED",
    help="Draw from a seed, reproducibly. The result is not private and is stamped so.",
)
@click.option(
    "--with-truth", is_flag=True, help="Also write the confidential counts; needs --simulate SEED."
)
@click.option(
    "--parts",
    metavar="LEVEL",
    help="Make the release in parts, to use less memory. A part is all counts below one node of "
    "LEVEL.",
)
@click.option(
    "--on",
    type=PartWorkers(),
    help="Who works on the parts: 'spark' counts and draws them, from Parquet files; a number of "
    "processes of this machine moves noisy counts, by imaging or the posterior. Needs --parts.",
)
@click.option("--overwrite", is_flag=True, help="Replace a release that is already there.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
def command(
    plan: Path,
    out: Path,
    simulate: int | None,
    with_truth: bool,
    parts: str | None,
    on: str | int | None,
    overwrite: bool,
    quiet: bool,
) -> Answer:
    """Make a release of PLAN, a TOML file.

    Counts the rows, draws the release and writes it as CSV and Parquet, beside a certificate. Each
    release of the same rows costs epsilon again.
    """
    if on is not None and parts is None:
        raise click.UsageError("--on says who works on the parts of a release; give --parts LEVEL.")
    read = load(plan, rows=True)
    compile_once(read.method.name, crossing=read.crossing, quiet=quiet)
    with uninterrupted():
        from congenial.releases.making.make_release import release
    with session_of(on) as session, progress(quiet=quiet) as notify:
        made = release(
            read,
            out,
            base=plan.parent,
            simulate=simulate,
            with_truth=with_truth,
            overwrite=overwrite,
            parts=parts,
            on=session,
            notify=notify,
        )
    stamp = made.certificate.stamp
    result = {
        "directory": made.directory,
        "nodes": made.nodes,
        "stamp": stamp,
        "certificate": made.certificate,
        "debit": None if made.debit is None else plain(made.debit),
        "settled": made.settled,
        "odd_names": made.odd_names,
    }
    notes = tuple(_notes(made))
    if quiet:
        return Answer(result, "", notes=notes if stamp is None else (*notes, stamp))
    return Answer(result, "\n".join(_summary(made)), notes=notes)


def session_of(on: str | int | None) -> AbstractContextManager[object | None]:
    """Return the session to draw on, started only if asked for, or the number of processes."""
    if on != "spark":
        return nullcontext(on)
    from congenial.cli.spark_session import spark_session

    return spark_session()


def _notes(made: ReleaseResult) -> Iterator[str]:
    from congenial.ledger.records import unlike
    from congenial.releases.sentences import not_by_posterior

    yield from made.odd_names
    yield from not_by_posterior(made.certificate)
    if made.debit is None:
        return
    if not made.settled:
        yield (
            f"The ledger could not mark its entry {made.debit.entry} as spent. The entry stays "
            "unfinished, and an unfinished entry counts as spent."
        )
    if not made.debit.adds_up:
        yield f"Warning: {unlike(made.debit.label)}"


def _summary(made: ReleaseResult) -> list[str]:
    from congenial.releases.sentences import (
        cost_of_bounds,
        missing_intervals,
        records_of_rows,
        rows_left_out,
    )

    certificate = made.certificate
    lines = [] if certificate.stamp is None else [certificate.stamp]
    both = "measurements" in certificate.published
    measured = " measurements.csv, measurements.parquet" if both else ""
    lines += [
        f"Released {made.nodes:,} counts to {made.directory}: release.csv, release.parquet"
        f"{',' * both}{measured} and certificate.json.",
        certificate.sentence,
    ]
    told = (records_of_rows, rows_left_out, missing_intervals, cost_of_bounds)
    lines += [*filter(None, (text(certificate) for text in told)), *_debited(made)]
    return [*lines, f"Next: congenial verify {shlex.quote(str(made.directory))}"]


def _debited(made: ReleaseResult) -> list[str]:
    debit, ledger = made.debit, made.certificate.plan["privacy"]["ledger"]
    if debit is not None:
        new = ", which is new to the ledger" if debit.first else ""
        return [
            f"Debited {debit.cost} from the budget of {debit.label!r} (dataset {debit.dataset})"
            f"{new}; {debit.remaining} remain."
        ]
    if ledger is not None:
        return ["The ledger did not change: a simulation spends nothing and protects nobody."]
    return []
