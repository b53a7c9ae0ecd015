"""The valid contents of a ledger's file, and the keyed hashes that show damage and edits.

Every entry has a hash of its row and of the hash of the entry before it. The head has a hash of
everything else in the file and of the last entry's hash. The key is in the ledger itself, so the
hashes protect against damage and accidental edits, but not against the curator.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from congenial.accounting.amounts import Amount
from congenial.errors import LedgerError
from congenial.ledger.records import RESERVED, SPENT

Row = tuple[Any, ...]
# SQLite's application id and format version of the file. The format before had no hashes.
APPLICATION: Final = 0x436F6E67
VERSION: Final = 2
UNSEALED: Final = 1
_COLUMNS = {
    "ledger": """
        one INTEGER PRIMARY KEY CHECK (one = 1),
        key BLOB NOT NULL CHECK (typeof(key) = 'blob' AND length(key) = 32),
        neighbours TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (typeof(epsilon) = 'integer' AND epsilon > 0),
        delta INTEGER NOT NULL CHECK (typeof(delta) = 'integer' AND delta >= 0)""",
    "datasets": """
        id INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE CHECK (typeof(fingerprint) = 'text'),
        label TEXT NOT NULL""",
    "names": """
        fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text'),
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        leads INTEGER NOT NULL CHECK (leads IN (0, 1)),
        PRIMARY KEY (fingerprint, dataset)""",
    "entries": f"""
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        entry TEXT NOT NULL UNIQUE,
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        release TEXT NOT NULL,
        made TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (typeof(epsilon) = 'integer' AND epsilon >= 0),
        delta INTEGER NOT NULL CHECK (typeof(delta) = 'integer' AND delta >= 0),
        state TEXT NOT NULL CHECK (state IN ('{RESERVED}', '{SPENT}'))""",
}
# Columns that the older format, without hashes, lacks.
_ADDED = {
    "ledger": ",\n        seal TEXT NOT NULL",
    "entries": ",\n        fixes TEXT,\n        seal TEXT NOT NULL",
}
_BLANK: dict[str, Row] = {"ledger": ("",), "entries": (None, "")}
# The type of each column, by a letter: integer, text, bytes, or text that may be missing.
_KINDS = {"ledger": "ibtiit", "datasets": "itt", "names": "tii", "entries": "itittiitnt"}
_TYPES = {"i": (int,), "t": (str,), "b": (bytes,), "n": (str, type(None))}
_INDEXED = ("datasets", "names", "entries")
_SEQUENCE = "CREATE TABLE sqlite_sequence(name,seq)"


@dataclass(frozen=True)
class Contents:
    """All rows of a ledger's file, in the order of their numbers or names."""

    version: int  # Version of the file's format.
    key: bytes = field(repr=False)  # Of all hashes.
    neighbours: str  # The neighbouring relation of all its guarantees.
    budget: Amount  # Limit on the total cost of all releases of one dataset.
    seal: str  # Hash of everything but the entries' own hashes.
    datasets: list[Row]
    names: list[Row]
    # Number, name, dataset, release, time, epsilon, delta, state, what it fixes, hash.
    entries: list[Row]
    sequence: list[Row]  # The last row number that SQLite assigned.


def damaged(path: Path, how: str = "") -> LedgerError:
    """Return the error that a ledger is damaged, with the reason if it is known."""
    return LedgerError(
        f"the ledger {path} is damaged{how and f' ({how})'}; restore a copy, and debit by hand "
        "the releases made since that copy."
    )


def create(database: sqlite3.Connection) -> None:
    """Make the tables of an empty ledger."""
    for sql in _tables(VERSION).values():
        database.execute(sql)
    database.execute(f"PRAGMA user_version = {VERSION}")


def examine(path: Path, database: sqlite3.Connection) -> Contents:
    """Read the whole ledger and check it."""
    [[application]] = database.execute("PRAGMA application_id")
    [[version]] = database.execute("PRAGMA user_version")
    if application != APPLICATION:
        raise LedgerError(
            f"{path} is not a ledger; give the path of one that 'congenial ledger init' made."
        )
    if version not in (UNSEALED, VERSION):
        raise LedgerError(
            f"the ledger {path} has version {version} of the format and this congenial writes "
            f"version {VERSION}; use the congenial that made it."
        )
    found = database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master").fetchall()
    schema = {(*row, sql if sql is None else _spaced(str(sql))) for *row, sql in found}
    if strange := schema ^ _expected(version):
        # a trigger could delete an entry, and a view could stand in for a table
        kind, name, *_ = min(strange, key=repr)
        raise damaged(path, f"its {kind} {name!r} is not as a ledger has it")
    # pages, indexes, the conditions on every column, and references from one table to another
    if database.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
        raise damaged(path)
    if database.execute("PRAGMA foreign_key_check").fetchall():
        raise damaged(path, "an entry refers to no dataset")
    ledger = _read(path, database, version)
    if version == VERSION:
        _check_seals(path, ledger)
    return ledger


def upgrade(database: sqlite3.Connection, ledger: Contents) -> None:
    """Add the columns that a ledger without hashes lacks; `seal` fills in the hashes."""
    for table in reversed(_COLUMNS):
        database.execute(f"DROP TABLE {table}")
    create(database)
    budget = ledger.budget
    rows = {
        "ledger": [(1, ledger.key, ledger.neighbours, budget.epsilon, budget.delta, ledger.seal)],
        "datasets": ledger.datasets,
        "names": ledger.names,
        "entries": ledger.entries,
    }
    for table, each in rows.items():
        places = ", ".join("?" * len(_KINDS[table]))
        database.executemany(f"INSERT INTO {table} VALUES ({places})", each)  # noqa: S608 -- our own names


def seal(path: Path, database: sqlite3.Connection) -> None:
    """Write the hashes of a ledger's contents; the last step of every change."""
    ledger = _read(path, database, VERSION)
    seals = _entry_seals(ledger)
    for row, right in zip(ledger.entries, seals, strict=True):
        if row[-1] != right:
            database.execute("UPDATE entries SET seal = ? WHERE id = ?", (right, row[0]))
    database.execute("UPDATE ledger SET seal = ?", (_head_seal(ledger, seals),))


def _tables(version: int) -> dict[str, str]:
    added = _ADDED if version == VERSION else {}
    return {
        name: f"CREATE TABLE {name} ({columns}{added.get(name, '')}\n    )"
        for name, columns in _COLUMNS.items()
    }


def _expected(version: int) -> set[Row]:
    tables = {("table", name, name, _spaced(sql)) for name, sql in _tables(version).items()}
    indexes = {("index", f"sqlite_autoindex_{name}_1", name, None) for name in _INDEXED}
    return tables | indexes | {("table", "sqlite_sequence", "sqlite_sequence", _SEQUENCE)}


def _spaced(sql: str) -> str:
    return " ".join(sql.split())


def _read(path: Path, database: sqlite3.Connection, version: int) -> Contents:
    tables: dict[str, list[Row]] = {}
    for table, kinds in _KINDS.items():
        # ordered by numbers and random names, not by times
        order = "fingerprint, dataset" if table == "names" else "1"
        rows = database.execute(f"SELECT * FROM {table} ORDER BY {order}").fetchall()  # noqa: S608 -- our own names
        if version == UNSEALED:
            rows = [(*row, *_BLANK.get(table, ())) for row in rows]
        for row in rows:
            if not all(isinstance(v, _TYPES[kind]) for v, kind in zip(row, kinds, strict=True)):
                raise damaged(path, f"a row of its table {table!r} holds a value of a wrong type")
        tables[table] = rows
    if len(tables["ledger"]) != 1:
        raise damaged(path, "its budget is missing")
    sequence = database.execute("SELECT name, seq FROM sqlite_sequence ORDER BY 1").fetchall()
    [[_, key, neighbours, epsilon, delta, seal]] = tables.pop("ledger")
    budget = Amount(epsilon, delta)
    return Contents(version, key, neighbours, budget, seal, sequence=sequence, **tables)


def _check_seals(path: Path, ledger: Contents) -> None:
    right = _entry_seals(ledger)
    for number, (row, hashed) in enumerate(zip(ledger.entries, right, strict=True), 1):
        if row[-1] != hashed:
            raise damaged(path, f"entry {number} of {len(right)} or one before it was changed")
    if ledger.seal != _head_seal(ledger, right):
        raise damaged(path, "its budget, its datasets or its newest entries were changed")


def _entry_seals(ledger: Contents) -> list[str]:
    """Hash every entry with the hash before it; its state can change, so the head hashes it."""
    seals: list[str] = []
    for *row, _state, fixes, _seal in ledger.entries:
        before = seals[-1] if seals else ""
        seals.append(_hashed(ledger.key, b"entry", [before, *row, fixes]))
    return seals


def _head_seal(ledger: Contents, seals: list[str]) -> str:
    states = [state for *_, state, _fixes, _seal in ledger.entries]
    head = [ledger.neighbours, ledger.budget.epsilon, ledger.budget.delta]
    rest = [ledger.datasets, ledger.names, states, seals[-1:], ledger.sequence]
    return _hashed(ledger.key, b"head", [VERSION, head, *rest])


def _hashed(key: bytes, person: bytes, values: list[Any]) -> str:
    # JSON in ASCII is the same from every version of Python
    text = json.dumps(values).encode("ascii")
    return hashlib.blake2b(text, key=key, digest_size=16, person=person).hexdigest()
