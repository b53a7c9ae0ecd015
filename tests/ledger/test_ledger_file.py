"""The ledger's file: made whole, and refused in one sentence where it cannot be used."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from contextlib import closing

import pytest

import congenial.ledger.ledger_file as ledger_files
from congenial.accounting.amounts import budget
from congenial.cli import command_line as cli
from congenial.errors import LedgerError
from congenial.ledger.debits import read_ledger, settle
from congenial.ledger.ledger_file import init_ledger
from congenial.ledger.records import SPENT, UNFINISHED, as_text
from support.city import listing
from support.ledgers import debit, execute, make_ledger
from support.rows import refusal


def test_a_ledger_is_complete_and_readable_by_its_owner_only(tmp_path):
    before = os.umask(0)
    try:
        path = make_ledger(tmp_path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert listing(tmp_path) == ["ledger"]
    assert path.stat().st_nlink == 1
    ledger = read_ledger(path)
    assert (str(ledger.budget), ledger.neighbours) == ("epsilon 3 and delta 1e-6", "substitute")
    assert "Nothing has been debited yet." in as_text(ledger)


def test_a_debit_is_forced_to_the_disk(tmp_path):
    path = make_ledger(tmp_path)
    with ledger_files.transaction(path, write=True) as (database, _):
        assert database.execute("PRAGMA synchronous").fetchone() == (3,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_a_ledger_in_wal_mode_gets_its_rollback_journal_back(tmp_path, monkeypatch):
    path = make_ledger(tmp_path)
    monkeypatch.setattr(ledger_files, "PATIENCE", 0.1)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
        assert read_ledger(path).accounts == ()
        other.execute("BEGIN")
        other.execute("SELECT * FROM ledger").fetchall()
        # in the log that another program has open the debit would not be in the ledger's file
        assert "is locked by another program" in refusal(lambda: debit(path), LedgerError)
    debit(path)
    assert listing(tmp_path) == ["ledger"]
    assert path.read_bytes()[18:20] == b"\x01\x01"  # SQLite's header: the rollback journal
    assert len(read_ledger(path).accounts) == 1


def test_no_other_program_s_database_is_changed(tmp_path):
    path = tmp_path / "other"
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
        other.execute("CREATE TABLE t (a)")
    before = path.read_bytes()
    assert "is not a ledger" in refusal(lambda: debit(path), LedgerError)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["a ledger", "a file", "a directory", "a dangling link"])
def test_a_ledger_never_replaces_a_file(tmp_path, kind):
    path = tmp_path / "ledger"
    if kind == "a ledger":
        debit(make_ledger(tmp_path))
    elif kind == "a file":
        path.write_text("here first")
    elif kind == "a directory":
        path.mkdir()
    else:
        path.symlink_to("nowhere")
    before = listing(tmp_path), path.is_file() and path.read_bytes()
    assert "already exists" in refusal(lambda: make_ledger(tmp_path), LedgerError)
    assert (listing(tmp_path), path.is_file() and path.read_bytes()) == before


def test_a_ledger_that_another_makes_meanwhile_stays(tmp_path, monkeypatch):
    link = os.link

    def late(one, other):
        other.write_text("here first")
        link(one, other)

    monkeypatch.setattr(os, "link", late)
    assert "already exists" in refusal(lambda: make_ledger(tmp_path), LedgerError)
    assert listing(tmp_path) == ["ledger"]
    assert (tmp_path / "ledger").read_text() == "here first"


@pytest.mark.parametrize("step", ["os.open", "os.link", "os.fsync"])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_a_ledger_that_cannot_be_made_leaves_nothing(tmp_path, monkeypatch, step, code):
    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(step, refuse)
        told = refusal(lambda: make_ledger(tmp_path), LedgerError)
    assert os.strerror(code).lower() in told
    assert listing(tmp_path) == []


@pytest.mark.parametrize("place", ["no/such/ledger", "file/ledger", "nul\0byte"])
def test_an_unusable_place_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("")
    path = tmp_path / place
    told = refusal(
        lambda: init_ledger(path, budget=budget("1", "0"), neighbours="substitute"), LedgerError
    )
    assert "cannot be made" in told
    refusal(lambda: read_ledger(path), LedgerError)
    assert listing(tmp_path) == ["file"]


def spoil_nothing(path):
    path.unlink()


def spoil_directory(path):
    path.unlink()
    path.mkdir()


def spoil_empty(path):
    path.write_bytes(b"")


def spoil_text(path):
    path.write_text("a plan, not a ledger\n" * 500)


def spoil_foreign(path):
    path.unlink()
    execute(path, "CREATE TABLE ledger (one, key, neighbours, epsilon, delta)")


def spoil_version(path):
    execute(path, "PRAGMA user_version = 3")


def spoil_truncated(path):
    path.write_bytes(path.read_bytes()[:9000])


def spoil_pages(path):
    content = bytearray(path.read_bytes())
    content[5000:] = bytes(len(content) - 5000)
    path.write_bytes(content)


def spoil_table(path):
    execute(path, "DROP TABLE entries")


def spoil_head(path):
    execute(path, "DELETE FROM ledger")


def spoil_number(path):
    execute(path, "UPDATE entries SET epsilon = 'many'")


def spoil_sign(path):
    execute(path, "UPDATE entries SET epsilon = -1")


def spoil_null(path):
    execute(path, "UPDATE ledger SET epsilon = NULL")


SPOILT = {
    spoil_nothing: "there is no ledger",
    spoil_directory: "not a file",
    spoil_empty: "is not a ledger",
    spoil_text: "is not a ledger",
    spoil_foreign: "is not a ledger",
    spoil_version: "version 3 of the format",
    spoil_truncated: "is damaged",
    spoil_pages: "is damaged",
    spoil_table: "is damaged",
    spoil_head: "is damaged",
    spoil_number: "is damaged",
    spoil_sign: "is damaged",
    spoil_null: "is damaged",
}


@pytest.mark.parametrize("spoil", SPOILT, ids=lambda spoil: spoil.__name__)
def test_a_damaged_ledger_is_refused_and_unchanged(tmp_path, spoil, capsys):
    path = make_ledger(tmp_path)
    made = debit(path)
    try:
        spoil(path)
    except sqlite3.IntegrityError:
        pytest.skip("this SQLite keeps NULL out")
    before = path.is_file() and path.read_bytes()
    for act in (
        lambda: read_ledger(path),
        lambda: debit(path),
        lambda: settle(path, made.entry),
    ):
        assert SPOILT[spoil] in refusal(act, LedgerError)
    assert cli.run(["ledger", "show", str(path)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("Error: ")
    assert told.err.count("\n") == 1
    assert (path.is_file() and path.read_bytes()) == before
    assert {name.removesuffix("-journal") for name in listing(tmp_path)} <= {"ledger"}


def test_a_locked_ledger_is_waited_for_and_then_refused(tmp_path, monkeypatch):
    path = make_ledger(tmp_path)
    monkeypatch.setattr(ledger_files, "PATIENCE", 0.1)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for act in (lambda: debit(path), lambda: read_ledger(path)):
            assert "locked by another program" in refusal(act, LedgerError)
    debit(path)


@pytest.mark.parametrize("full", [True, False])
def test_a_disk_without_room_debits_nothing(tmp_path, monkeypatch, full):
    path = make_ledger(tmp_path)
    debit(path)
    before = read_ledger(path)
    connect = sqlite3.connect

    def small(*arguments, **options):
        database = connect(*arguments, **options)
        if full:
            [[pages]] = database.execute("PRAGMA page_count")
            database.execute(f"PRAGMA max_page_count = {pages}")
        return database

    monkeypatch.setattr(sqlite3, "connect", small)
    huge = "x" * 20_000
    if full:
        assert "no room" in refusal(lambda: debit(path, release=huge), LedgerError)
        assert read_ledger(path) == before
    else:
        debit(path, release=huge)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everything"
)
def test_a_ledger_that_may_not_be_written_can_be_shown(tmp_path):
    path = make_ledger(tmp_path)
    path.chmod(0o400)
    read_ledger(path)
    assert "may not be written" in refusal(lambda: debit(path), LedgerError)


def test_a_read_only_file_system_is_one_sentence(tmp_path, monkeypatch):
    path = make_ledger(tmp_path)
    connect = sqlite3.connect
    monkeypatch.setattr(
        sqlite3, "connect", lambda at, **rest: connect(at.replace("mode=rw", "mode=ro"), **rest)
    )
    read_ledger(path)
    assert "may not be written" in refusal(lambda: debit(path), LedgerError)


@pytest.mark.parametrize("neighbours", ["substitute", "add-remove"])
def test_unlike_neighbours_do_not_add_up(tmp_path, neighbours):
    path = make_ledger(tmp_path, neighbours=neighbours)
    debit(path, neighbours=neighbours)
    other = {"substitute": "add-remove", "add-remove": "substitute"}[neighbours]
    assert "do not add up" in refusal(lambda: debit(path, neighbours=other), LedgerError)
    assert "do not add up" in refusal(lambda: read_ledger(path, neighbours=other), LedgerError)


# Commands


def test_init_and_show(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["ledger", "init", "b.sqlite", "--epsilon", "2.5", "--delta", "1e-7"]) == 0
    assert "ledger = 'b.sqlite' under [privacy]" in capsys.readouterr().out
    one = debit(tmp_path / "b.sqlite", release="out\n1")
    debit(tmp_path / "b.sqlite", 0.25, release="out2")
    settle(tmp_path / "b.sqlite", one.entry)
    capsys.readouterr()
    assert cli.run(["ledger", "show", "b.sqlite"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Budget of each dataset: epsilon 2.5 and delta 1e-7; neighbours: s")
    assert lines[2] == f"Dataset {one.dataset}, 'trips'"
    assert lines[3].split()[:3] == ["spent", "epsilon", "1"]
    assert lines[4].split()[:3] == ["reserved", "epsilon", "0.25"]
    assert lines[5].split()[:3] == ["remaining", "epsilon", "1.25"]
    assert one.entry in lines[7]
    assert lines[7].endswith(f"  {SPENT}")
    assert "'out\\n1'" in lines[7]
    assert lines[8].endswith(f"  {UNFINISHED}")
    assert len(lines) == 9


def test_commands_refuse_in_one_sentence(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for arguments in (
        ["init", "b.sqlite", "--epsilon", "none"],
        ["init", "no/b.sqlite", "--epsilon", "1"],
        ["init", "b.sqlite", "--epsilon", "1", "--delta", "1"],
        ["show", "b.sqlite"],
    ):
        assert cli.run(["ledger", *arguments]) == 2
        told = capsys.readouterr()
        assert told.err.startswith("Error: ")
        assert told.err.count("\n") == 1
    assert listing(tmp_path) == []
