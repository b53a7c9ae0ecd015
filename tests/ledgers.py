"""Ledgers for tests: made, debited, and edited behind their backs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from congenial.accounting.amounts import amount_of, budget
from congenial.ledger.debits import reserve
from congenial.ledger.files import init_ledger
from congenial.ledger.records import Dataset, Debit

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
) -> Debit:
    """Debit a release."""
    cost = amount_of(epsilon, delta)
    return reserve(path, dataset, release=release, cost=cost, neighbours=neighbours)


def execute(path: Path, sql: str) -> None:
    """Change a database whatever its own conditions."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(sql)
        database.commit()
