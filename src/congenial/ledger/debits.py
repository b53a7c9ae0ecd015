"""Debits: reserved before noise is drawn, spent once a release is on disk, never given back.

An entry is committed before its noise is drawn ("reserved") and marked "spent" once its release is
on disk. Both states count. So a process that dies at any instant leaves its debit behind, and no
debit is counted twice.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from congenial.accounting.amounts import NOTHING, Amount
from congenial.errors import BudgetError, LedgerError
from congenial.ledger.files import head, transaction
from congenial.ledger.records import RESERVED, SHOWN, SPENT, Account, Dataset, Debit, Entry, Ledger
from congenial.randomness import secure


def reserve(
    path: str | Path, dataset: Dataset, *, release: str, cost: Amount, neighbours: str
) -> Debit:
    """Debit a release; when this returns, the debit is on disk.

    Parameters
    ----------
    path : path
    dataset : Dataset
    release : str
        What people call the release.
    cost : Amount
        All that it may spend.
    neighbours : str
        The relation of its guarantee.

    Returns
    -------
    Debit

    Raises
    ------
    BudgetError
        If the rest of the dataset's budget does not cover `cost`; nothing is debited.
    LedgerError
        If the ledger cannot be used.
    """
    path = Path(path)
    with transaction(path, write=True) as database:
        found = head(path, database, neighbours=neighbours)
        account = _account(path, database, found.key, dataset)
        fingerprint = account.fingerprint
        remaining = found.budget - account.spent
        if not remaining.covers(cost):
            raise BudgetError(
                f"the ledger {path} does not cover this release of {dataset.label!r} (dataset "
                f"{fingerprint[:SHOWN]}): Requested {cost}, Remaining {remaining}, Missing "
                f"{cost.beyond(remaining)}; ask for less, or release no more of these rows."
            )
        entry = secure().bits(2).tobytes().hex()
        database.execute(
            "INSERT INTO entries (entry, dataset, release, made, epsilon, delta, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (entry, account.number, release, _now(), cost.epsilon, cost.delta, RESERVED),
        )
    return Debit(entry, fingerprint[:SHOWN], dataset.label, cost, remaining - cost, account.first)


def settle(path: str | Path, entry: str) -> None:
    """Mark an entry as spent: its release is on disk.

    Raises
    ------
    LedgerError
        If the ledger cannot be used, or has no such entry left unfinished.
    """
    path = Path(path)
    with transaction(path, write=True) as database:
        head(path, database)
        done = database.execute(
            "UPDATE entries SET state = ? WHERE entry = ? AND state = ?", (SPENT, entry, RESERVED)
        )
        if done.rowcount != 1:
            raise LedgerError(
                f"the ledger {path} has no unfinished entry {entry!r}; give one that it has."
            )


def read_ledger(path: str | Path, *, neighbours: str | None = None) -> Ledger:
    """Read a ledger without its key.

    Parameters
    ----------
    path : path
    neighbours : str, optional
        A relation that it must be for.

    Raises
    ------
    LedgerError
        If it is not there, is not a ledger, is damaged, or is for another relation.
    """
    path = Path(path)
    with transaction(path, write=False) as database:
        found = head(path, database, neighbours=neighbours)
        accounts = tuple(
            Account(fingerprint, label, _entries(database, number))
            for number, fingerprint, label in database.execute(
                "SELECT id, fingerprint, label FROM datasets ORDER BY id"
            ).fetchall()
        )
    return Ledger(found.budget, found.neighbours, accounts)


@dataclass(frozen=True)
class _Account:
    number: int
    fingerprint: str
    spent: Amount
    first: bool


def _account(path: Path, database: sqlite3.Connection, key: bytes, dataset: Dataset) -> _Account:
    """Find or open the account that a release is charged to; the transaction undoes it on failure.

    A name leads to its account, and so does a place of rows that were once released without a name:
    a name that comes later leads to the same account. A place seen only under names leads nowhere,
    as several named tables may lie there.

    Raises
    ------
    LedgerError
        If name and place lead to different accounts, or a name is missing.
    """
    one, place = (_fingerprint(key, text) for text in (dataset.identity, dataset.place))
    led = [_led(database, fingerprint) for fingerprint in (one, place)]
    numbers = {number for number in led if number is not None}
    if len(numbers) > 1:
        raise LedgerError(
            f"data.name is {dataset.label!r}, and in the ledger {path} data.source has another "
            "budget than that name; leave data.name out."
        )
    if dataset.name is None and not numbers and _is_seen(database, place):
        raise LedgerError(
            f"data.name is missing, and the ledger {path} knows the rows of data.source by a name; "
            "give the name that 'congenial ledger show' tells."
        )
    first = not numbers
    number = _opened(database, one, dataset.label) if first else numbers.pop()
    database.executemany(
        "INSERT OR IGNORE INTO names (fingerprint, dataset, leads) VALUES (?, ?, ?)",
        [(one, number, 1), (place, number, 0)],
    )
    [[shown]] = database.execute("SELECT fingerprint FROM datasets WHERE id = ?", (number,))
    return _Account(number, shown, _spent(database, number), first)


def _led(database: sqlite3.Connection, fingerprint: str) -> int | None:
    found = database.execute(
        "SELECT dataset FROM names WHERE fingerprint = ? AND leads = 1", (fingerprint,)
    ).fetchone()
    return None if found is None else int(found[0])


def _is_seen(database: sqlite3.Connection, fingerprint: str) -> bool:
    found = database.execute("SELECT 1 FROM names WHERE fingerprint = ?", (fingerprint,))
    return found.fetchone() is not None


def _opened(database: sqlite3.Connection, fingerprint: str, label: str) -> int:
    made = database.execute(
        "INSERT INTO datasets (fingerprint, label) VALUES (?, ?)", (fingerprint, label)
    )
    return int(made.lastrowid or 0)


def _fingerprint(key: bytes, identity: str) -> str:
    text = identity.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, key=key, digest_size=16, person=b"dataset").hexdigest()


def _entries(database: sqlite3.Connection, dataset: int) -> tuple[Entry, ...]:
    return tuple(
        Entry(entry, release, made, Amount(epsilon, delta), state)
        for entry, release, made, epsilon, delta, state in database.execute(
            "SELECT entry, release, made, epsilon, delta, state FROM entries WHERE dataset = ? "
            "ORDER BY id",
            (dataset,),
        )
    )


def _spent(database: sqlite3.Connection, dataset: int) -> Amount:
    return sum((entry.cost for entry in _entries(database, dataset)), NOTHING)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
