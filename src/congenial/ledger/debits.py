"""Debits: reserved before noise is drawn, spent once a release is on disk, never given back.

An entry is committed before its noise is drawn ("reserved") and marked "spent" once its release is
on disk. Both states count. So a process that dies at any instant leaves its debit behind, and no
debit is counted twice.
"""

from __future__ import annotations

import hashlib
import sqlite3
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
        fingerprint = _fingerprint(found.key, dataset)
        known = database.execute(
            "SELECT id FROM datasets WHERE fingerprint = ?", (fingerprint,)
        ).fetchone()
        spent = _spent(database, known[0]) if known else NOTHING
        remaining = found.budget - spent
        if not remaining.covers(cost):
            raise BudgetError(
                f"the ledger {path} does not cover this release of {dataset.label!r} (dataset "
                f"{fingerprint[:SHOWN]}): Requested {cost}, Remaining {remaining}, Missing "
                f"{cost.beyond(remaining)}; ask for less, or release no more of these rows."
            )
        number = known[0] if known else _open_account(database, fingerprint, dataset.label)
        entry = secure().bits(2).tobytes().hex()
        database.execute(
            "INSERT INTO entries (entry, dataset, release, made, epsilon, delta, state) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (entry, number, release, _now(), cost.epsilon, cost.delta, RESERVED),
        )
    first = known is None
    return Debit(entry, fingerprint[:SHOWN], dataset.label, cost, remaining - cost, first)


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


def _fingerprint(key: bytes, dataset: Dataset) -> str:
    text = dataset.identity.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(text, key=key, digest_size=16, person=b"dataset").hexdigest()


def _open_account(database: sqlite3.Connection, fingerprint: str, label: str) -> int:
    made = database.execute(
        "INSERT INTO datasets (fingerprint, label) VALUES (?, ?)", (fingerprint, label)
    )
    return int(made.lastrowid or 0)


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
