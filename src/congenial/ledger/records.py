"""The records of a ledger, and the dataset whose budget a plan spends."""

from __future__ import annotations

import os
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from congenial.accounting.amounts import NOTHING, Amount
from congenial.plan.plan import Plan
from congenial.wording import aligned

# The states of an entry; both count.
RESERVED, SPENT = "reserved", "spent"
UNFINISHED = "unfinished, counted as spent"
# The part of a fingerprint that is shown, in hexadecimal digits.
SHOWN = 8


@dataclass(frozen=True)
class Dataset:
    """The rows whose budget a release spends."""

    name: str | None  # Name of the rows in the plan.
    place: str  # The real path of their source.
    label: str  # Public label for people.
    others: tuple[str, ...] = ()  # Real paths of the further rows of a plan of several tables.

    @property
    def identity(self) -> str:
        """The identity of rows: their name, else their place."""
        return self.place if self.name is None else self.name


@dataclass(frozen=True)
class Debit:
    """The debit of one release in a ledger."""

    entry: str  # Random name of the entry.
    dataset: str  # Beginning of the dataset's fingerprint.
    label: str
    cost: Amount
    remaining: Amount  # The dataset's budget that remains after it.
    first: bool  # Whether the dataset was new to the ledger.
    adds_up: bool  # `Account.adds_up`, this release included.


@dataclass(frozen=True)
class Entry:
    """A line of a ledger."""

    entry: str
    release: str
    made: str  # Time by the machine's clock; nothing depends on it.
    cost: Amount
    state: str  # "reserved" or "spent"; both count.
    fixes: str | None  # Hash of the counts published exactly; "" for none, None where unknown.


@dataclass(frozen=True)
class Account:
    """The entries of one dataset, in the order of their debits."""

    fingerprint: str
    label: str
    entries: tuple[Entry, ...]

    def total(self, state: str | None = None) -> Amount:
        """Sum of the entries in one state, or of all."""
        return sum((e.cost for e in self.entries if state in (None, e.state)), NOTHING)

    @property
    def adds_up(self) -> bool:
        """Whether the entries are known to share neighbouring datasets, as their sum requires.

        They share some if all entries that publish counts exactly publish the same ones.
        """
        fixed = {entry.fixes for entry in self.entries}
        return len(self.entries) < 2 or (None not in fixed and len(fixed - {""}) < 2)

    @property
    def clock_jumped(self) -> bool:
        """Whether the times of the entries do not ascend as the entries do."""
        times = [entry.made for entry in self.entries]
        return times != sorted(times)


@dataclass(frozen=True)
class Ledger:
    """The contents of a ledger without its key."""

    budget: Amount  # Of each dataset.
    neighbours: str  # The neighbouring relation of all its guarantees.
    accounts: tuple[Account, ...]


def dataset_of(plan: Plan, base: str | Path = ".") -> Dataset:
    """Find the dataset whose budget a plan spends.

    The rows are identified by `data.name` if given, else by the source's real path alone. So plans
    with other row filters, hierarchies or tables of one database share one budget. Letter case and
    Unicode form are folded, because some file systems do so. The rows of all tables of a plan have
    one name, and so one budget.
    """
    name, source = plan.data.name, plan.data.source
    place, *others = (
        f"path:{_folded(os.path.realpath(Path(base) / each))}"
        for each in (source, *(t.rows.source for t in plan.tables.values() if t.rows is not None))
    )
    if name is None:
        return Dataset(None, place, Path(source).name, tuple(others))
    return Dataset(f"name:{_folded(name.strip())}", place, name.strip(), tuple(others))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def unlike(label: str) -> str:
    """Warn that the sum of a dataset's releases may promise nothing."""
    return (
        f"The releases of {label!r} publish different counts exactly, differ in data.weight or in "
        "bounds that noise is conditioned on, or were partly debited by an older version. It is "
        "not known whether all of them protect the same neighbouring datasets, so the sum of their "
        "epsilons may promise nothing. Publish the same counts exactly in every release of "
        "these rows, with the same data.weight and bounds."
    )


def as_text(ledger: Ledger) -> str:
    """Write a ledger as text; it has no counts."""
    lines = [
        f"Budget of each dataset: {ledger.budget}; neighbours: {ledger.neighbours}. "
        "Epsilons and deltas add up. Reserved: for releases that are not finished."
    ]
    if not ledger.accounts:
        lines.append("Nothing has been debited yet.")
    for account in ledger.accounts:
        left = ledger.budget - account.total()
        lines += ["", f"Dataset {account.fingerprint[:SHOWN]}, {account.label!r}"]
        figures = [
            ("spent", account.total(SPENT)),
            ("reserved", account.total(RESERVED)),
            ("remaining", left),
        ]
        lines += [f"  {name:9}  {amount}" for name, amount in figures]
        rows = [("release", "made", "epsilon", "delta", "entry", "state")]
        rows += [
            (
                repr(e.release),
                e.made,
                e.cost.epsilon_text,
                e.cost.delta_text,
                e.entry,
                UNFINISHED if e.state == RESERVED else e.state,
            )
            for e in account.entries
        ]
        lines += [f"  {line}" for line in aligned(rows)]
        if not account.adds_up:
            lines.append(f"  {unlike(account.label)}")
        if account.clock_jumped:
            lines.append("  The clock went back. Entries are in the order of their debits.")
    return "\n".join(lines)
