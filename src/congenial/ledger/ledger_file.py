"""The file of a ledger: how it is made, opened, checked and locked."""

from __future__ import annotations

import errno
import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from congenial.accounting.amounts import Amount
from congenial.durability.signals import uninterrupted
from congenial.durability.whole_files import sync
from congenial.errors import LedgerError
from congenial.ledger.seals import (
    APPLICATION,
    UNSEALED,
    Contents,
    create,
    damaged,
    examine,
    seal,
    upgrade,
)
from congenial.randomness import secure

# Seconds that a process waits for a lock.
PATIENCE = 30.0
# SQLite reports a failed lock call as a lock held by another process, or as a disk failure.
_LOCKS = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM)
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


def init_ledger(path: str | Path, *, budget: Amount, neighbours: str) -> None:
    """Make a ledger that only its owner may read; on failure there is no file.

    The directory exists. The budget limits the total cost of all releases of one dataset. A ledger
    has one relation of neighbours, because guarantees of different relations do not add up.
    """
    path = Path(path)
    taken = LedgerError(
        f"{path} already exists, and a budget cannot be set twice; give another path."
    )
    aside = path.with_name(f".{path.name}.{secure().bits(1).tobytes().hex()}.partial")
    try:
        if os.path.lexists(path):
            raise taken
        with uninterrupted():
            os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                _fill(aside, path, budget, neighbours)
                # a link, unlike a rename, never replaces a file that another process has made
                os.link(aside, path)
            finally:
                aside.unlink()
            sync(path.parent)
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
        create(database)
        database.execute(
            "INSERT INTO ledger VALUES (1, ?, ?, ?, ?, '')",
            (secure().bits(4).tobytes(), neighbours, budget.epsilon, budget.delta),
        )
        seal(path, database)
    sync(aside)


@contextmanager
def transaction(
    path: Path, *, write: bool, neighbours: str | None = None
) -> Iterator[tuple[sqlite3.Connection, Contents]]:
    """Open and check a ledger inside one transaction, undone on any failure."""
    _check_place(path)
    with _connected(path, shown=path) as database:
        if write:
            _leave_wal(database)
        database.execute("BEGIN IMMEDIATE" if write else "BEGIN")
        try:
            ledger = examine(path, database)
            if neighbours not in (None, ledger.neighbours):
                raise LedgerError(
                    f"the ledger {path} is for the neighbours {ledger.neighbours!r} and the plan "
                    f"says {neighbours!r}, whose guarantees do not add up; name another ledger in "
                    "privacy.ledger."
                )
            if write and ledger.version == UNSEALED:
                upgrade(database, ledger)
            yield database, ledger
            if write:
                seal(path, database)
            database.execute("COMMIT")
        finally:
            if database.in_transaction:
                with suppress(sqlite3.Error):
                    database.execute("ROLLBACK")


def _leave_wal(database: sqlite3.Connection) -> None:
    """Switch a ledger from WAL mode back to a rollback journal.

    A write-ahead log is a second file, kept while any process has the ledger open. A copy of the
    ledger alone lacks the debits in the log, and file systems without shared memory lose them.
    """
    [[application]] = database.execute("PRAGMA application_id")
    [[mode]] = database.execute("PRAGMA journal_mode")
    if application == APPLICATION and mode == "wal":
        database.execute("PRAGMA journal_mode = DELETE").fetchall()


def _check_place(path: Path) -> None:
    """Refuse a path that is not a file, and a file with several names."""
    try:
        there = os.path.lexists(path)
        found = path.stat() if path.exists() else None
    except ValueError:
        there, found = False, None
    except OSError as error:
        reason = (error.strerror or "unreadable").lower()
        raise LedgerError(f"the ledger {path} cannot be read ({reason}); grant access.") from None
    if found is None or not stat.S_ISREG(found.st_mode):
        raise LedgerError(
            f"the ledger {path} is not a file; give the path of one."
            if there
            else f"there is no ledger {str(path)!r}; make it with 'congenial ledger init "
            f"{shlex.quote(str(path))} --epsilon TOTAL', or give another path (that of "
            "privacy.ledger starts from the plan's directory)."
        )
    if found.st_nlink > 1:
        # SQLite's journal is beside one name; a process that opens another name does not see it
        raise LedgerError(
            f"the ledger {path} has {found.st_nlink} names (hard links), and a debit made under "
            f"one could be lost under another; keep one of them ('find DIRECTORY -samefile {path}' "
            "lists them), and make the others symbolic links."
        )


@contextmanager
def _connected(path: Path, *, shown: Path) -> Iterator[sqlite3.Connection]:
    """Open an existing SQLite file; its errors become sentences."""
    uri = f"file:{quote(os.fsencode(path.absolute().as_posix()))}?mode=rw"
    try:
        database = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        with closing(database):
            # EXTRA also syncs the directory; otherwise a power cut could restore the journal and
            # undo a debit whose noise has been drawn
            database.execute("PRAGMA synchronous = EXTRA")
            database.execute("PRAGMA fullfsync = ON")
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        text = _lock_failure(path.parent) if code in _LOCKS else None
        text = text or _REMEDIES.get(code)
        raise (LedgerError(f"the ledger {shown} {text}.") if text else damaged(shown)) from None
    except UnicodeDecodeError:
        # the file may hold bytes that are not text, so SQLite's own message is used
        raise damaged(shown) from None


def _lock_failure(directory: Path) -> str | None:
    """Try a lock on a temporary file; return the fault and its remedy if locks do not work.

    The ledger itself is not used: closing it would drop the locks of other threads.
    """
    try:
        import fcntl
    except ImportError:  # another system, with locks of another kind
        return None
    place = directory / f".{secure().bits(1).tobytes().hex()}.lock"
    try:
        handle = os.open(place, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except OSError:
        return None
    try:
        place.unlink()
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "no reason given")
        return (
            f"is in a directory where locks fail ({name}: {(error.strerror or 'unknown').lower()}),"
            " so two simultaneous releases could exceed its budget; turn the file system's locks "
            "on (for NFS, its lock service), or move the ledger to another disk"
        )
    finally:
        os.close(handle)
    return None
