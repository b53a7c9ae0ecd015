"""Debits: reserved before noise is drawn, spent once a release is on disk, never given back.

An entry is committed as "reserved" before its noise is drawn, and marked "spent" once its release
is on disk. Both states count. So a process that dies at any moment leaves its debit behind, and no
debit counts twice.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from congenial.accounting.amounts import NOTHING, Amount
from congenial.errors import BudgetError, LedgerError
from congenial.ledger.ledger_file import transaction
from congenial.ledger.records import RESERVED, SHOWN, SPENT, Account, Dataset, Debit, Entry, Ledger
from congenial.ledger.seals import Contents, Row
from congenial.randomness import secure
from congenial.wording import escaped


def reserve(
    path: str | Path,
    dataset: Dataset,
    *,
    release: str,
    cost: Amount,
    neighbours: str,
    fixes: str | None = None,
) -> Debit:
    """Debit a release; when this returns, the debit is on disk."""
    path = Path(path)
    with transaction(path, write=True, neighbours=neighbours) as (database, ledger):
        account, first = _account(path, database, ledger, dataset)
        remaining = ledger.budget - account.total()
        if not remaining.covers(cost):
            raise BudgetError(
                f"the ledger {path} does not cover this release of {dataset.label!r} (dataset "
                f"{account.fingerprint[:SHOWN]}): requested {cost}, remaining {remaining}, missing "
                f"{cost.beyond(remaining)}; ask for no more than remains, or make no further "
                "release of these rows."
            )
        entry = Entry(
            secure().bits(2).tobytes().hex(), escaped(release), _now(), cost, RESERVED, fixes
        )
        database.execute(
            "INSERT INTO entries (dataset, entry, release, made, state, fixes, epsilon, delta, "
            "seal) SELECT id, ?, ?, ?, ?, ?, ?, ?, '' FROM datasets WHERE fingerprint = ?",
            (
                entry.entry,
                entry.release,
                entry.made,
                entry.state,
                entry.fixes,
                cost.epsilon,
                cost.delta,
                account.fingerprint,
            ),
        )
    account = replace(account, entries=(*account.entries, entry))
    return Debit(
        entry.entry,
        account.fingerprint[:SHOWN],
        dataset.label,
        cost,
        remaining - cost,
        first,
        account.adds_up,
    )


def remaining(path: str | Path, dataset: Dataset, *, neighbours: str) -> Amount:
    """Return the remaining budget of a dataset; nothing is written."""
    path = Path(path)
    with transaction(path, write=False, neighbours=neighbours) as (_, ledger):
        row, *_ = _known(path, ledger, dataset)
        return ledger.budget - (NOTHING if row is None else _as_account(ledger, *row).total())


def settle(path: str | Path, entry: str) -> None:
    """Mark an entry as spent: its release is on disk."""
    path = Path(path)
    with transaction(path, write=True) as (database, _):
        done = database.execute(
            "UPDATE entries SET state = ? WHERE entry = ? AND state = ?", (SPENT, entry, RESERVED)
        )
        if done.rowcount != 1:
            raise LedgerError(
                f"the ledger {path} has no unfinished entry {entry!r}; give one that it has."
            )


def read_ledger(path: str | Path, *, neighbours: str | None = None) -> Ledger:
    """Read a ledger without its key; `neighbours` is the relation that it must have, if given."""
    with transaction(Path(path), write=False, neighbours=neighbours) as (_, ledger):
        return Ledger(
            ledger.budget,
            ledger.neighbours,
            tuple(_as_account(ledger, *row) for row in ledger.datasets),
        )


def _account(
    path: Path, database: sqlite3.Connection, ledger: Contents, dataset: Dataset
) -> tuple[Account, bool]:
    """Find or open a release's account, and say if it is new; a failed transaction undoes this."""
    known, one, places = _known(path, ledger, dataset)
    row = known
    if row is None:
        label = escaped(dataset.label)
        made = database.execute(
            "INSERT INTO datasets (fingerprint, label) VALUES (?, ?)", (one, label)
        )
        row = (made.lastrowid, one, label)
    database.executemany(
        "INSERT OR IGNORE INTO names (fingerprint, dataset, leads) VALUES (?, ?, ?)",
        [(one, row[0], 1), *((place, row[0], 0) for place in places)],
    )
    return _as_account(ledger, *row), known is None


def _known(path: Path, ledger: Contents, dataset: Dataset) -> tuple[Row | None, str, list[str]]:
    """Return the row of a dataset's account, None if it has none yet, and its fingerprints.

    These are of its identity and of all its paths.

    An account is found by its name. It is also found by the path of its rows, if these were once
    released without a name; a name given later leads to the same account. A path whose releases
    all had names finds nothing, because several named tables may be at one path.
    """
    identities = dataset.identity, dataset.place, *dataset.others
    one, *places = (_fingerprint(ledger.key, text) for text in identities)
    numbers = {number for known, number, leads in ledger.names if leads and known in (one, *places)}
    if len(numbers) > 1 and dataset.others:
        raise LedgerError(
            f"the rows of this plan's tables have {len(numbers)} budgets in the ledger {path}, and "
            "one release spends one; release each table by a plan of its own."
        )
    if len(numbers) > 1:
        raise LedgerError(
            f"data.name is {dataset.label!r}, and in the ledger {path} the rows of data.source "
            "have a budget under another name; leave data.name out."
        )
    if dataset.name is None and not numbers and {known for known, *_ in ledger.names} & {*places}:
        raise LedgerError(
            f"data.name is missing, and in the ledger {path} the rows of data.source have a name; "
            "give the name that 'congenial ledger show' prints."
        )
    return next((row for row in ledger.datasets if row[0] in numbers), None), one, places


def _fingerprint(key: bytes, identity: str) -> str:
    text = identity.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, key=key, digest_size=16, person=b"dataset").hexdigest()


def _as_account(ledger: Contents, number: int, fingerprint: str, label: str) -> Account:
    return Account(
        fingerprint,
        label,
        tuple(
            Entry(entry, release, made, Amount(epsilon, delta), state, fixes)
            for _, entry, dataset, release, made, epsilon, delta, state, fixes, _ in ledger.entries
            if dataset == number
        ),
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
