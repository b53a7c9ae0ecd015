"""Keep the total cost of all releases of the same rows."""

from __future__ import annotations

from pathlib import Path

import click

from congenial.cli.answer import Answer, Command, in_decimals, plain
from congenial.cli.arguments import LEDGER, NEIGHBOURS
from congenial.durability.signals import uninterrupted


@click.group("ledger")
def command() -> None:
    """Keep the total cost of all releases of the same rows."""


@command.command("init", cls=Command)
@LEDGER
@click.option(
    "--epsilon", required=True, help="Limit on the total epsilon of all releases of one dataset."
)
@click.option("--delta", default="1e-6", show_default=True, help="Limit on their total delta.")
@click.option(
    "--neighbours",
    type=click.Choice(NEIGHBOURS),
    default="substitute",
    show_default=True,
    help="The neighbours of all plans with this ledger; guarantees for different neighbours "
    "cannot be added.",
)
def init_command(ledger: Path, epsilon: str, delta: str, neighbours: str) -> Answer:
    """Make a new LEDGER, with a budget for each dataset.

    LEDGER is a file that does not exist yet; a plan names it as privacy.ledger.
    """
    with uninterrupted():
        from congenial.accounting.amounts import budget
        from congenial.ledger.ledger_file import init_ledger
    total = budget(epsilon, delta)
    init_ledger(ledger, budget=total, neighbours=neighbours)
    return Answer(
        {"ledger": ledger, "budget": in_decimals(total), "neighbours": neighbours},
        f"Made {ledger}: {total} for each dataset, neighbours {neighbours}.\n"
        f"Next: name the ledger in a plan: ledger = {ledger.name!r} under [privacy].",
    )


@command.command("show", cls=Command)
@LEDGER
def show_command(ledger: Path) -> Answer:
    """Say how much of each budget is spent, and how much remains."""
    with uninterrupted():
        from congenial.ledger.debits import read_ledger
        from congenial.ledger.records import RESERVED, SHOWN, SPENT, as_text
    found = read_ledger(ledger)
    datasets = [
        {
            "dataset": account.fingerprint[:SHOWN],
            "label": account.label,
            "spent": in_decimals(account.total(SPENT)),
            "reserved": in_decimals(account.total(RESERVED)),
            "remaining": in_decimals(found.budget - account.total()),
            "adds_up": account.adds_up,
            "entries": [plain(entry, without="fixes") for entry in account.entries],
        }
        for account in found.accounts
    ]
    result = {
        "budget": in_decimals(found.budget),
        "neighbours": found.neighbours,
        "datasets": datasets,
    }
    return Answer(result, as_text(found))
