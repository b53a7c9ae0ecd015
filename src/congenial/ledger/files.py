"""The file of a ledger: how it is made, opened, checked and locked."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

from congenial.accounting.amounts import Amount
from congenial.errors import LedgerError
from congenial.ledger.records import RESERVED, SPENT
from congenial.randomness import secure

# How SQLite is told whose file this is, and in which form.
APPLICATION: Final = 0x436F6E67
VERSION: Final = 1
# Seconds that one process waits for another.
PATIENCE = 30.0
_TABLES = f"""
    CREATE TABLE ledger (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        key BLOB NOT NULL CHECK (typeof(key) = 'blob' AND length(key) = 32),
        neighbours TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (typeof(epsilon) = 'integer' AND epsilon > 0),
        delta INTEGER NOT NULL CHECK (typeof(delta) = 'integer' AND delta >= 0)
    );
    CREATE TABLE datasets (
        id INTEGER PRIMARY KEY,
        fingerprint TEXT NOT NULL UNIQUE CHECK (typeof(fingerprint) = 'text'),
        label TEXT NOT NULL
    );
    CREATE TABLE names (
        fingerprint TEXT NOT NULL CHECK (typeof(fingerprint) = 'text'),
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        leads INTEGER NOT NULL CHECK (leads IN (0, 1)),
        PRIMARY KEY (fingerprint, dataset)
    );
    CREATE TABLE entries (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        entry TEXT NOT NULL UNIQUE,
        dataset INTEGER NOT NULL REFERENCES datasets (id),
        release TEXT NOT NULL,
        made TEXT NOT NULL,
        epsilon INTEGER NOT NULL CHECK (typeof(epsilon) = 'integer' AND epsilon >= 0),
        delta INTEGER NOT NULL CHECK (typeof(delta) = 'integer' AND delta >= 0),
        state TEXT NOT NULL CHECK (state IN ('{RESERVED}', '{SPENT}'))
    );
"""
_REMEDIES = {
    sqlite3.SQLITE_BUSY: f"is locked by another program for more than {PATIENCE:.0f} seconds; try "
    "again once that has ended",
    sqlite3.SQLITE_NOTADB: "is not a ledger; give the path of one that 'congenial ledger init' "
    "made",
    sqlite3.SQLITE_READONLY: "may not be written; grant write access to it and to its directory",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened or written; grant access to it and to its directory",
    sqlite3.SQLITE_PERM: "may not be read; grant access to it",
    sqlite3.SQLITE_FULL: "has no room left on its disk; make room",
    sqlite3.SQLITE_IOERR: "cannot be read or written, for its disk failed; see to the disk",
}
_DAMAGED = (
    "is damaged; restore a copy, and add up by hand what was released since that copy was made"
)


@dataclass(frozen=True)
class Head:
    """What a ledger says of itself."""

    key: bytes = field(repr=False)
    neighbours: str
    budget: Amount


def init_ledger(path: str | Path, *, budget: Amount, neighbours: str) -> None:
    """Make a ledger, whole or not at all, that its owner alone may read.

    Parameters
    ----------
    path : path
        Nothing stands there yet; its directory exists.
    budget : Amount
        What all releases of one dataset may cost together.
    neighbours : {"substitute", "add-remove"}
        Guarantees of different relations do not add up, so a ledger has one.

    Raises
    ------
    LedgerError
        If something is there, or it cannot be made.
    """
    path = Path(path)
    taken = LedgerError(
        f"{path} is already there, and a budget is not to be set twice; give another path."
    )
    aside = path.with_name(f".{path.name}.{secure().bits(1).tobytes().hex()}.partial")
    try:
        if os.path.lexists(path):
            raise taken
        os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        try:
            _fill(aside, path, budget, neighbours)
            # a link, unlike a rename, never replaces what another process has put there
            os.link(aside, path)
        finally:
            aside.unlink()
        _force(path.parent)
    except FileExistsError:
        raise taken from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise LedgerError(
            f"the ledger {path} cannot be made ({reason.lower()}); give a path in a directory that "
            "exists and can be written."
        ) from None


def _fill(aside: Path, path: Path, budget: Amount, neighbours: str) -> None:
    with _connected(aside, shown=path) as database:
        database.execute(f"PRAGMA application_id = {APPLICATION}")
        database.execute(f"PRAGMA user_version = {VERSION}")
        database.executescript(_TABLES)
        database.execute(
            "INSERT INTO ledger VALUES (1, ?, ?, ?, ?)",
            (secure().bits(4).tobytes(), neighbours, budget.epsilon, budget.delta),
        )
    _force(aside)


def head(path: Path, database: sqlite3.Connection, *, neighbours: str | None = None) -> Head:
    """Check an open ledger and read what it says of itself.

    Parameters
    ----------
    path : Path
    database : sqlite3.Connection
    neighbours : str, optional
        The relation that the ledger must be for.

    Raises
    ------
    LedgerError
        If it is no ledger, one of another version, broken in its pages or rows, or for another
        relation.
    """
    [[application]] = database.execute("PRAGMA application_id")
    [[version]] = database.execute("PRAGMA user_version")
    if application != APPLICATION:
        raise LedgerError(f"{path} {_REMEDIES[sqlite3.SQLITE_NOTADB]}.")
    if version != VERSION:
        raise LedgerError(
            f"the ledger {path} has version {version} of the format and this congenial writes "
            f"version {VERSION}; use the congenial that made it."
        )
    # pages, and the conditions on every column
    found = None
    if database.execute("PRAGMA quick_check(1)").fetchall() == [("ok",)]:
        found = database.execute("SELECT key, neighbours, epsilon, delta FROM ledger").fetchone()
    if found is None:
        raise LedgerError(f"the ledger {path} {_DAMAGED}.")
    key, relation, *units = found
    if neighbours not in (None, relation):
        raise LedgerError(
            f"the ledger {path} is for the neighbours {relation!r} and the plan says "
            f"{neighbours!r}, whose guarantees do not add up; name another ledger in "
            "privacy.ledger."
        )
    return Head(key, relation, Amount(*units))


@contextmanager
def transaction(path: Path, *, write: bool) -> Iterator[sqlite3.Connection]:
    """Open a ledger inside one transaction, undone on any failure."""
    try:
        found = path.is_file()
        there = found or os.path.lexists(path)
    except ValueError:
        found = there = False
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise LedgerError(f"the ledger {path} cannot be read ({reason}); grant access.") from None
    if not found:
        raise LedgerError(
            f"the ledger {path} is not a file; give the path of one."
            if there
            else f"there is no ledger {str(path)!r}; make it with 'congenial ledger init', or "
            "correct privacy.ledger, which starts from the plan's directory."
        )
    with _connected(path, shown=path) as database:
        database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            yield database
            database.execute("COMMIT")
        finally:
            if database.in_transaction:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")


@contextmanager
def _connected(path: Path, *, shown: Path) -> Iterator[sqlite3.Connection]:
    """Open a SQLite file that exists; its errors become sentences.

    Raises
    ------
    LedgerError
    """
    uri = f"file:{quote(os.fsencode(path.absolute().as_posix()))}?mode=rw"
    try:
        database = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        with closing(database):
            # EXTRA also forces the directory: else a power cut could bring the journal back, and
            # with it undo a debit whose noise has been drawn
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("PRAGMA fullfsync = ON")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        told = _REMEDIES.get(code, _DAMAGED)
        raise LedgerError(f"the ledger {shown} {told}.") from None


def _force(path: Path) -> None:
    """Force a file, or the names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
