"""Keep the total cost of all releases of the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from congenial.cli.answer import Answer, Command, in_decimals, plain
from congenial.cli.arguments import LEDGER
from congenial.durability.signals import uninterrupted

if TYPE_CHECKING:
    from congenial.ledger.records import Account, Ledger


@dataclass(frozen=True)
class MadeResult:
    """A ledger that was made; amounts in decimal digits."""

    ledger: Path
    budget: dict[str, str]
    neighbours: str


@dataclass(frozen=True)
class Dataset:
    """The spending of all releases of the same rows, and the ledger's entries of them."""

    dataset: str
    label: str
    spent: dict[str, str]
    reserved: dict[str, str]
    remaining: dict[str, str]
    adds_up: bool
    entries: tuple[dict[str, object], ...]


@dataclass(frozen=True)
class ShownResult:
    """The contents of a ledger; they hold no count of any row."""

    budget: dict[str, str]
    neighbours: str
    datasets: tuple[Dataset, ...]


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
    type=click.Choice(("substitute", "add-remove")),
    default="substitute",
    show_default=True,
    help="The relation of all its plans; guarantees of different relations do not add up.",
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
        MadeResult(ledger, in_decimals(total), neighbours),
        f"Made {ledger}: {total} for each dataset, neighbours {neighbours}.\n"
        f"Next: name it in a plan, ledger = {ledger.name!r} under [privacy].",
    )


@command.command("show", cls=Command)
@LEDGER
def show_command(ledger: Path) -> Answer:
    """Say what is spent and what remains; a ledger holds no count."""
    with uninterrupted():
        from congenial.ledger.debits import read_ledger
        from congenial.ledger.records import as_text
    found = read_ledger(ledger)
    datasets = tuple(_dataset(found, account) for account in found.accounts)
    return Answer(
        ShownResult(in_decimals(found.budget), found.neighbours, datasets), as_text(found)
    )


def _dataset(ledger: Ledger, account: Account) -> Dataset:
    from congenial.ledger.records import RESERVED, SHOWN, SPENT

    return Dataset(
        account.fingerprint[:SHOWN],
        account.label,
        in_decimals(account.total(SPENT)),
        in_decimals(account.total(RESERVED)),
        in_decimals(ledger.budget - account.total()),
        account.adds_up,
        tuple(plain(entry, without="fixes") for entry in account.entries),
    )
