"""Damage and clumsy edits of a ledger are refused, and older ledgers are sealed by their debits."""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import sys
from contextlib import closing
from decimal import Decimal

import numpy as np
import pytest

import congenial.ledger.debits as ledger_debits
import congenial.ledger.ledger_file as ledger_files
from congenial.errors import LedgerError
from congenial.ledger.debits import read_ledger, settle
from congenial.ledger.records import Dataset, as_text
from support.city import listing
from support.ledgers import debit, execute, in_first_form, make_ledger, reseal
from support.rows import refusal

OTHER = Dataset(None, "path:/adults.csv", "adults.csv")


@pytest.fixture
def path(tmp_path):
    """Return a ledger of two datasets, some of whose entries are finished."""
    made = make_ledger(tmp_path)
    for at in range(4):
        entry = debit(made, 0.25, dataset=OTHER if at == 2 else Dataset("name:a", "path:/a", "a"))
        if at % 2:
            settle(made, entry.entry)
    return made


def refused(path):
    """Everything refuses the ledger in one sentence, and leaves it as it was."""
    before = path.read_bytes()
    told = refusal(lambda: read_ledger(path), LedgerError)
    assert refusal(lambda: debit(path, 0.25), LedgerError) == told
    assert refusal(lambda: settle(path, "0" * 32), LedgerError) == told
    assert path.read_bytes() == before
    return told


def flipped(content, chance):
    """Flip some bits, half of them where something is written."""
    out = bytearray(content)
    written = np.flatnonzero(np.frombuffer(content, dtype=np.uint8))
    for _ in range(1 + int(chance.integers(3)) // 2):
        anywhere = chance.random() < 0.5
        at = int(chance.integers(len(out))) if anywhere else int(chance.choice(written))
        out[at] ^= 1 << int(chance.integers(8))
    return bytes(out)


def outcome(path, before):
    """Read and debit a ledger that may be damaged; return what was wrong, or what came of it."""
    try:
        found = read_ledger(path)
    except LedgerError:
        found = None
    if found not in (None, before):
        return "wrong"
    try:
        made = debit(path, 0.25, dataset=OTHER)
    except LedgerError:
        return "refused"
    if found is None:
        return "wrong"
    return "fine" if made.remaining.epsilon_text == "2.5" else "wrong"


def flip(path, times, seed):
    """Count what comes of so many damaged copies of a ledger."""
    chance = np.random.default_rng(seed)
    before, content = read_ledger(path), path.read_bytes()
    seen = {"wrong": 0, "refused": 0, "fine": 0}
    for _ in range(times):
        path.write_bytes(flipped(content, chance))
        seen[outcome(path, before)] += 1
        for stray in path.parent.glob(f"{path.name}-*"):
            stray.unlink()
    return seen


def test_every_flipped_bit_is_detected(path, monkeypatch):
    monkeypatch.setattr(ledger_files, "PATIENCE", 0.1)
    seen = flip(path, 150, 11)
    assert seen["wrong"] == 0
    # most bits of the file that are written matter
    assert seen["refused"] > 40


def test_the_test_fails_for_an_undetected_amount(path, monkeypatch):
    # as it was before there were hashes
    monkeypatch.setattr("congenial.ledger.seals._check_seals", lambda *_: None)
    before = read_ledger(path)
    execute(path, "UPDATE entries SET epsilon = epsilon + 8 WHERE id = 3")
    assert outcome(path, before) == "wrong"


EDITS = {
    "an amount": "UPDATE entries SET epsilon = epsilon - 1 WHERE id = 2",
    "the newest amount": "UPDATE entries SET delta = 0 WHERE id = 4",
    "a state": "UPDATE entries SET state = 'spent' WHERE id = 1",
    "a time": "UPDATE entries SET made = '2020-01-01T00:00:00+00:00' WHERE id = 1",
    "the newest entry gone": "DELETE FROM entries WHERE id = 4",
    "the first entry gone": "DELETE FROM entries WHERE id = 1",
    "all entries gone": "DELETE FROM entries",
    "an entry in another account": "UPDATE entries SET dataset = 2 WHERE id = 1",
    "an entry out of order": "UPDATE entries SET id = 9 WHERE id = 1",
    "what an entry fixes": "UPDATE entries SET fixes = NULL WHERE id = 1",
    "a hash": "UPDATE entries SET seal = '' WHERE id = 1",
    "the head's hash": "UPDATE ledger SET seal = ''",
    "the budget": "UPDATE ledger SET epsilon = epsilon * 2",
    "the relation": "UPDATE ledger SET neighbours = 'add-remove'",
    "the key": "UPDATE ledger SET key = zeroblob(32)",
    "a label": "UPDATE datasets SET label = 'b' WHERE id = 1",
    "a name that leads elsewhere": "UPDATE names SET dataset = 2",
    "a name gone": "DELETE FROM names WHERE leads = 1",
    "a name of no dataset": "INSERT INTO names VALUES ('x', 7, 1)",
    "an entry of no dataset": "UPDATE entries SET dataset = 7 WHERE id = 1",
    "numbers that start anew": "UPDATE sqlite_sequence SET seq = 0",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON entries BEGIN DELETE FROM entries; END",
    "a view": "CREATE VIEW v AS SELECT * FROM entries",
    "a table": "CREATE TABLE more (a)",
    "an index": "CREATE INDEX i ON entries (release)",
    "the older form": "PRAGMA user_version = 1",
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_clumsy_edit_is_refused(path, edit):
    execute(path, EDITS[edit])
    assert "is damaged" in refused(path)


@pytest.mark.parametrize("edit", ["a trigger", "a name of no dataset", "a view"])
def test_files_with_the_key_and_without_the_tables_are_not_ledgers(path, edit):
    execute(path, EDITS[edit])
    reseal(path)
    assert "is damaged" in refused(path)


def test_text_in_another_encoding_is_damage(path):
    content = bytearray(path.read_bytes())
    content[59] = 3  # SQLite's number of UTF-16
    path.write_bytes(content)
    refused(path)


def test_the_message_names_the_entry(path):
    execute(path, EDITS["an amount"])
    assert "entry 2 of 4 or one before it was changed" in refused(path)


# Older ledgers


def test_an_older_ledger_is_sealed_by_its_next_debit(path):
    sealed = read_ledger(path)
    in_first_form(path)
    before = path.read_bytes()
    older = read_ledger(path)
    assert [a.total() for a in older.accounts] == [a.total() for a in sealed.accounts]
    assert path.read_bytes() == before
    # nothing is changed by a debit that is refused
    refusal(lambda: debit(path, 100.0), LedgerError)
    assert path.read_bytes() == before
    debit(path, 0.5)
    now = read_ledger(path)
    assert [a.entries for a in now.accounts[:2]] == [a.entries for a in older.accounts]
    assert now.accounts[2].total().epsilon_text == "0.5"
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (2,)
    execute(path, EDITS["an amount"])
    assert "entry 2 of 5" in refused(path)


def test_an_older_ledger_keeps_its_unfinished_entries(path):
    in_first_form(path)
    [first, *_] = read_ledger(path).accounts[0].entries
    settle(path, first.entry)
    states = [e.state for a in read_ledger(path).accounts for e in a.entries]
    assert states.count("spent") == 3


def test_an_upgrade_that_fails_leaves_the_older_ledger(path, monkeypatch):
    in_first_form(path)
    before = path.read_bytes()

    def full(*_):
        raise sqlite3.OperationalError

    monkeypatch.setattr(ledger_files, "seal", full)
    refusal(lambda: debit(path), LedgerError)
    monkeypatch.undo()
    assert path.read_bytes() == before
    debit(path)


# Names, locks and clocks


def test_a_ledger_with_two_names_is_refused(path):
    other = path.with_name("copy")
    os.link(path, other)
    for name in (path, other):
        assert "has 2 names (hard links)" in refused(name)
    other.unlink()
    other.symlink_to(path.name)
    debit(other)
    assert len(read_ledger(path).accounts) == 3


def test_failing_locks_are_reported_as_such(path, monkeypatch):
    monkeypatch.setattr(ledger_files, "PATIENCE", 0.1)

    def fail(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    before = listing(path.parent)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        # SQLite tells a lock that fails as one that another program holds
        other.execute("BEGIN EXCLUSIVE")
        assert "locked by another program" in refusal(lambda: debit(path), LedgerError)
        monkeypatch.setattr(fcntl, "lockf", fail)
        told = refusal(lambda: debit(path), LedgerError)
    assert "ENOLCK" in told and "turn the file system's locks on" in told
    assert {name.removesuffix("-journal") for name in listing(path.parent)} == set(before)


def test_a_clock_that_goes_back_changes_no_order(path, monkeypatch):
    for made in ("2031-05-01T00:00:00+00:00", "1999-01-01T00:00:00+00:00"):
        monkeypatch.setattr(ledger_debits, "_now", lambda made=made: made)
        debit(path, 0.25, dataset=OTHER)
    [first, second] = read_ledger(path).accounts
    assert not first.clock_jumped
    assert second.clock_jumped
    assert [e.made[:4] for e in second.entries][1:] == ["2031", "1999"]
    assert Decimal(second.total().epsilon_text) == Decimal("0.75")
    text = as_text(read_ledger(path))
    assert text.count("The clock went back. Entries are in the order of their debits.") == 1


@pytest.mark.skipif(sys.platform == "darwin", reason="names are text there")
def test_a_release_whose_name_is_not_valid_text_is_debited(path):
    debit(path, 0.25, release=os.fsdecode(b"out\xff"), dataset=OTHER)
    assert read_ledger(path).accounts[1].entries[-1].release == "out\\udcff"


# Sums
