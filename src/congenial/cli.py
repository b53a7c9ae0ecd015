"""The command line: parses, calls, prints.

Exit codes: 0 done, 1 a check failed or the output cannot be written, 2 the input cannot be used,
129, 130 and 143 ended by SIGHUP, SIGINT and SIGTERM.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from congenial import __version__
from congenial.compare_command import compare_command
from congenial.errors import CongenialError
from congenial.loading import compile_once, undisturbed
from congenial.report_command import report_command
from congenial.studies import NAMES as STUDIES

if TYPE_CHECKING:
    from types import FrameType

    from congenial.release import Released

FAILED, UNUSABLE, INTERRUPTED = 1, 2, 130
PLAN = click.argument("plan", type=click.Path(path_type=Path))


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="congenial")
def cli() -> None:
    """Release counts with differential privacy that add up and obey mandates exactly."""


@cli.command("release")
@PLAN
@click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Directory to make; required."
)
@click.option(
    "--simulate",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="Draw reproducibly from a seed. The result protects nobody and is stamped so.",
)
@click.option(
    "--with-truth",
    is_flag=True,
    help="Write the confidential counts beside the released ones; with --simulate only.",
)
@click.option("--overwrite", is_flag=True, help="Replace a release that is already there.")
@click.option("--quiet", is_flag=True, help="Say nothing unless something is wrong.")
def release_command(
    plan: Path, out: Path, simulate: int | None, with_truth: bool, overwrite: bool, quiet: bool
) -> None:
    """Make a release of PLAN, a TOML file."""
    if with_truth and simulate is None:
        raise click.UsageError(
            "--with-truth writes confidential counts, which only a simulation may do; give "
            "--simulate SEED as well, or leave --with-truth out."
        )
    with undisturbed():
        from congenial.plan import read_plan
        from congenial.progress import progress
    read = read_plan(plan)
    compile_once(read.method.name, quiet=quiet)
    with undisturbed():
        from congenial.release import release
    with progress(quiet=quiet) as notify:
        made = release(
            read,
            out,
            base=plan.parent,
            simulate=simulate,
            with_truth=with_truth,
            overwrite=overwrite,
            notify=notify,
        )
    if not made.settled:
        click.echo(
            "The ledger could not be told that the release is written; the entry "
            f"{made.debit.entry if made.debit else ''} stays unfinished, which counts as spent.",
            err=True,
        )
    _summarise(made, quiet)


def _summarise(made: Released, quiet: bool) -> None:
    certificate = made.certificate
    if certificate.stamp is not None:
        click.echo(certificate.stamp, err=quiet)
    if quiet:
        return
    click.echo(
        f"Released {made.nodes} counts to {made.directory}: release.csv, release.parquet and "
        "certificate.json."
    )
    click.echo(certificate.sentence)
    if certificate.left_out.rule is not None:
        click.echo(
            f"Rows for which {certificate.left_out.rule} does not hold were left out; "
            f"{certificate.left_out.rows}."
        )
    _tell_debit(made)
    click.echo(f"Next: congenial verify {shlex.quote(str(made.directory))}")


def _tell_debit(made: Released) -> None:
    debit, ledger = made.debit, made.certificate.plan["privacy"]["ledger"]
    if debit is not None:
        new = ", which is new to the ledger" if debit.first else ""
        click.echo(
            f"Debited {debit.cost} to {debit.label!r} (dataset {debit.dataset}){new}; "
            f"{debit.remaining} remain."
        )
    elif ledger is not None:
        click.echo("The ledger was not touched: a simulation spends nothing and protects nobody.")


@cli.command("verify")
@click.argument("directory", type=click.Path(path_type=Path))
@click.option(
    "--ledger",
    type=click.Path(path_type=Path, exists=True),
    help="The ledger that the plan names, where it is not beside DIRECTORY.",
)
def verify_command(directory: Path, ledger: Path | None) -> int:
    """Check the release in DIRECTORY: files, numbers and claims.

    Not checked, since nothing in the directory can tell: when the release was made, by which
    versions and which route (made, versions and drawn.route in the certificate), a simulation's
    seed, and whether the confidential rows were counted rightly. Nothing is signed.
    """
    with undisturbed():
        from congenial.verify import verify
    checks = verify(directory, ledger=ledger)
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(
            f"{'ok    ' if check.passed else 'FAILED'}  {check.name:{width}}  {check.detail}"
        )
    failed = sum(not check.passed for check in checks)
    if failed:
        click.echo(f"{failed} of {len(checks)} checks failed; do not use this release.")
        return FAILED
    click.echo(f"All {len(checks)} checks passed.")
    return 0


@cli.command("explain")
@PLAN
def explain_command(plan: Path) -> None:
    """Say what a release of PLAN will do, before anything is spent."""
    with undisturbed():
        from congenial.plan import read_plan
    read = read_plan(plan)
    compile_once(read.method.name, quiet=False)
    with undisturbed():
        from congenial.explain import as_text, explain
    click.echo(as_text(explain(read, plan.parent)))


@cli.command("audit")
@PLAN
@click.option(
    "--draws",
    type=click.IntRange(min=100),
    help="Draws of each dataset; by default 50,000, or 6,000 of images.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(min=0.5, max=1.0, max_open=True),
    default=0.999,
    show_default=True,
    help="Draws refute a true claim with one minus this probability at most.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Of the draws, which are simulations.",
)
def audit_command(plan: Path, draws: int | None, confidence: float, seed: int) -> int:
    """Hold PLAN's guarantee to its laws and to draws, on made-up counts.

    Nothing is counted and nothing is spent. A failed check shows a fault; passed checks prove the
    claim for what was enumerated alone, and draws never prove one.
    """
    with undisturbed():
        from congenial.plan import read_plan
        from congenial.progress import progress
    read = read_plan(plan)
    compile_once(read.method.name, quiet=False)
    with undisturbed():
        from congenial.audit_plan import as_text, audit_plan
    with progress() as notify:
        notify("auditing")
        found = audit_plan(read, plan.parent, draws=draws, confidence=confidence, seed=seed)
    click.echo(as_text(found))
    return 0 if found.passed else FAILED


cli.add_command(compare_command)
cli.add_command(report_command)


@cli.group("ledger")
def ledger_group() -> None:
    """Keep what all releases of the same rows have spent."""


@ledger_group.command("init")
@click.argument("ledger", type=click.Path(path_type=Path))
@click.option(
    "--epsilon", required=True, help="What all releases of one dataset may cost together."
)
@click.option("--delta", default="1e-6", show_default=True, help="The same for delta.")
@click.option(
    "--neighbours",
    type=click.Choice(("substitute", "add-remove")),
    default="substitute",
    show_default=True,
    help="The relation that all its plans must name: unlike ones do not add up.",
)
def init_command(ledger: Path, epsilon: str, delta: str, neighbours: str) -> None:
    """Make LEDGER, a file that does not exist yet, with a budget for each dataset."""
    with undisturbed():
        from congenial.accounting.amounts import budget
        from congenial.ledger.files import init_ledger
    total = budget(epsilon, delta)
    init_ledger(ledger, budget=total, neighbours=neighbours)
    click.echo(f"Made {ledger}: {total} for each dataset, neighbours {neighbours}.")
    click.echo(f"Next: name it in a plan, ledger = {ledger.name!r} under [privacy].")


@ledger_group.command("show")
@click.argument("ledger", type=click.Path(path_type=Path))
def show_command(ledger: Path) -> None:
    """Say what is spent and what remains; a ledger holds no count."""
    with undisturbed():
        from congenial.ledger.debits import read_ledger
        from congenial.ledger.records import as_text
    click.echo(as_text(read_ledger(ledger)))


@cli.command("study")
@click.argument("name", type=click.Choice(STUDIES))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("studies/out"),
    show_default=True,
    help="Directory for the tables and figures.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="The same seed gives the same files.",
)
@click.option(
    "--effort",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="Share of the replicates to make, for a quick look.",
)
def study_command(name: str, out: Path, seed: int, effort: float) -> None:
    """Run one of the papers' examples anew, on public or made-up data.

    Writes a page in Markdown, a CSV file for each table, and each figure as PNG and SVG.
    """
    with undisturbed():
        from importlib import import_module

        from congenial.progress import progress
        from congenial.studies.write import check_installed, write

        check_installed()
        study = import_module(f"congenial.studies.{name.replace('-', '_')}")
    with progress() as notify:
        notify(f"study {name}")
        written = write(study.run(seed, effort), out, seed=seed, effort=effort)
    click.echo(f"Wrote {written[0]} and {len(written) - 1} tables and figures beside it.")


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
        outcome = cli.main(args=arguments, prog_name="congenial", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except CongenialError as error:
        click.echo(f"Error: {error}", err=True)
        return UNUSABLE
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted: no partial release is left behind.", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader of our output went away; Python would complain again while it closes stdout
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        # such as a full device behind stdout; what was released stands
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo(f"Error: writing failed ({error.strerror}); make room and try again.", err=True)
        return FAILED
    return outcome if isinstance(outcome, int) else 0


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    # unwinding the stack takes away what was written aside; a second signal must not stop that
    for name in ("SIGHUP", "SIGINT", "SIGTERM"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
