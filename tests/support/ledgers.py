"""Ledgers for tests: made, debited, and edited behind their backs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from congenial.accounting.amounts import amount_of, budget
from congenial.ledger.debits import reserve
from congenial.ledger.ledger_file import init_ledger
from congenial.ledger.records import Dataset, Debit
from congenial.ledger.seals import seal

ROWS = Dataset("name:trips", "path:/trips.csv", "trips")


def make_ledger(
    place: Path,
    epsilon: str = "3",
    delta: str = "1e-6",
    neighbours: str = "substitute",
    name: str = "ledger",
) -> Path:
    """Make a ledger in a directory; return its path."""
    path = place / name
    init_ledger(path, budget=budget(epsilon, delta), neighbours=neighbours)
    return path


def debit(
    path: Path,
    epsilon: float = 1.0,
    delta: float = 1e-9,
    dataset: Dataset = ROWS,
    neighbours: str = "substitute",
    release: str = "out",
    fixes: str | None = "",
) -> Debit:
    """Debit a release."""
    cost = amount_of(epsilon, delta)
    return reserve(path, dataset, release=release, cost=cost, neighbours=neighbours, fixes=fixes)


def execute(path: Path, sql: str) -> None:
    """Change a database whatever its own conditions."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(sql)
        database.commit()


def reseal(path: Path) -> None:
    """Hash a ledger anew, as somebody who knows its key can."""
    with closing(sqlite3.connect(path)) as database:
        seal(path, database)
        database.commit()


# The first form of a ledger, as older versions made it.
FIRST_FORM = (
    """CREATE TABLE ledger (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        key BLOB NOT NULL CHECK (typeof(key) = 'blob' AND length(key) = 32),
        neighbours TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (typeof(epsilon) = 'integer' AND epsilon > 0),
        delta INTEGER NOT NULL CHECK (typeof(delta) = 'integer' AND delta >= 0)
    )""",
    """CREATE TABLE datasets (
        id INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE CHECK (typeof(fingerprint) = 'text'),
        label TEXT NOT NULL
    )""",
    """CREATE TABLE names (
        fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text'),
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        leads INTEGER NOT NULL CHECK (leads IN (0, 1)),
        PRIMARY KEY (fingerprint, dataset)
    )""",
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        entry TEXT NOT NULL UNIQUE,
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        release TEXT NOT NULL,
        made TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (typeof(epsilon) = 'integer' AND epsilon >= 0),
        delta INTEGER NOT NULL CHECK (typeof(delta) = 'integer' AND delta >= 0),
        state TEXT NOT NULL CHECK (state IN ('reserved', 'spent'))
    )""",
)


def in_first_form(path: Path) -> None:
    """Turn a ledger into one of the first form, which had no hashes."""
    with closing(sqlite3.connect(path)) as database:
        rows = {
            "ledger": "one, key, neighbours, epsilon, delta",
            "datasets": "id, fingerprint, label",
            "names": "fingerprint, dataset, leads",
            "entries": "id, entry, dataset, release, made, epsilon, delta, state",
        }
        held = {
            table: database.execute(f"SELECT {columns} FROM {table}").fetchall()
            for table, columns in rows.items()
        }
        for table, sql in zip(rows, FIRST_FORM, strict=True):
            database.execute(f"DROP TABLE {table}")
            database.execute(sql)
            for row in held[table]:
                places = ", ".join("?" * len(row))
                database.execute(f"INSERT INTO {table} VALUES ({places})", row)
        database.execute("PRAGMA user_version = 1")
        database.commit()
