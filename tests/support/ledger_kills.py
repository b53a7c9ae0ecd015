"""Kill processes that debit and release, and check after each what they left; a program.

``python ledger_kills.py PLACE steps`` kills a release at every step, ``... releases N`` N releases
and ``... debits N`` N processes that debit and write small files, at random instants; a third word
plants a fault. It prints where it killed, or in which state the entries are, and fails at the first
thing that is lost. Children are forked with everything loaded, so that each takes milliseconds.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import congenial.releases.making.make_release as releases
from congenial.accounting.amounts import Amount, amount_of, budget
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.ledger.debits import read_ledger, reserve, settle
from congenial.ledger.ledger_file import init_ledger
from congenial.ledger.records import (
    RESERVED,
    SPENT,
    Dataset,
    Debit,
)
from congenial.ledger.seals import seal
from congenial.plan.plan import read_plan
from congenial.releases import atomic_directory
from congenial.releases import directory as files
from support.city import SECTIONS, make_city
from support.ledgers import in_first_form

ROWS = Dataset("name:trips", "path:/trips.csv", "trips")
SMALL = amount_of(1e-3, 1e-9)
# Steps of the file system, by the module or class that has them.
STEPS = (
    (os, ("fsync", "rename", "mkdir")),
    (Conditioned, ("sample",)),
    (files, ("write_tables",)),
    (releases, ("certify", "write_certificate", "settle", "reserve")),
    (atomic_directory, ("_put", "_exchange")),
)
# After these the world has changed; after others it is as it is before the next step.
CHANGING = (
    "BEGIN IMMEDIATE",
    "INSERT",
    "UPDATE",
    "COMMIT",
    "sample",
    "rename",
    "exchange",
    "settle",
)


class Killer:
    """Counts steps and ends the process at one of them as a power cut would."""

    def __init__(self, at: int, note: Callable[[str], None]) -> None:
        self.at, self.count, self.note = at, 0, note

    def step(self, name: str) -> None:
        if name.startswith("after") and not any(change in name for change in CHANGING):
            return
        if self.count == self.at:
            self.note(f"killed {name}")
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1

    def around(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*arguments: Any, **options: Any) -> Any:
            self.step(f"before {name}")
            if name == "Conditioned.sample":
                self.note("drawn")
            done = act(*arguments, **options)
            self.step(f"after {name}")
            return done

        return stepped


def noting(path: Path) -> Callable[[str], None]:
    """Return a function that writes a line that survives the process."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    return lambda text: os.write(handle, f"{text}\n".encode()) and None


def instrument(killer: Killer | None, note: Callable[[str], None]) -> None:
    """Count every statement to SQLite and every step of the file system, in a child alone."""

    class Watched(sqlite3.Connection):
        debits = False

        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            word = " ".join(sql.split()[: 3 if sql.startswith("INSERT") else 2])
            self.debits |= word == "INSERT INTO entries"
            begun = word == "COMMIT" and self.debits
            watched = killer if word.split()[0] not in ("PRAGMA", "SELECT") else None
            if watched is not None:
                watched.step(f"before {word}")
            if begun:
                note("begun")
            done = super().execute(sql, *rest)
            if begun:
                note("committed")
            if watched is not None:
                watched.step(f"after {word}")
            return done

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: connect(*a, **k, factory=Watched)  # type: ignore[assignment]
    if killer is not None:
        for owner, names in STEPS:
            for name in names:
                told = f"{getattr(owner, '__name__', owner)}.{name}"
                setattr(owner, name, killer.around(told, getattr(owner, name)))


def forked(act: Callable[[], None], *, after: float | None = None) -> int:
    """Run something in a child, perhaps kill it some seconds after its start; return its status."""
    ready, begin = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(begin, b"!")
            act()
        except BaseException as error:  # noqa: BLE001 -- a child must not return to the parent's code
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
        os._exit(0)
    os.close(begin)
    os.read(ready, 1)
    os.close(ready)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


class Watch:
    """A ledger, the releases beside it, and what their processes wrote down."""

    def __init__(self, place: Path, cost: Amount) -> None:
        self.place, self.cost = place, cost
        self.ledger, self.notes = place / "ledger", place / "notes"
        self.entries: dict[str, str] = {}
        self.read = 0

    def check(self) -> None:
        """Nothing is lost, nothing is counted twice, nothing is on disk without a debit."""
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        told, fresh = Counter(lines), Counter(lines[self.read :])
        self.read = len(lines)
        [*accounts] = read_ledger(self.ledger).accounts
        found = [e for account in accounts for e in account.entries]
        states = {e.entry: e.state for e in found}
        require(len(accounts) <= 1 and len(states) == len(found), "entries repeat")
        require(told["committed"] <= len(found) <= told["begun"], "a debit is lost or made up")
        require(told["drawn"] <= told["committed"], "noise was drawn without a debit")
        # of the last process: others, killed before they began, would hide it
        require(fresh["begun"] <= fresh["tried"], "a release is debited twice")
        # what dead processes left stays as it was
        require(self.entries.items() <= states.items(), "an entry changed")
        require(all(e.cost == self.cost for e in found), "a cost changed")
        total = sum(e.cost.epsilon for e in found)
        require(all(a.total().epsilon == total for a in accounts), "a sum is wrong")
        named = Counter(
            json.loads(path.read_text())["ledger"]["entry"]
            for path in self.place.glob(f"[!.]*/{files.CERTIFICATE}")
        )
        require(set(named) <= set(states), "a release is on disk without a debit")
        require(all(n == 1 for n in named.values()), "two releases share a debit")
        kept = {e for e, state in states.items() if state == SPENT}
        require(told["settled"] <= len(kept), "a finished entry is unfinished again")
        self.entries = states


def require(holds: bool, told: str) -> None:
    if not holds:
        raise SystemExit(f"FAILED: {told}")


def release_once(place: Path, out: str, note: Callable[[str], None]) -> None:
    note("tried")
    made = releases.release(read_plan(place / "plan.toml"), place / out, base=place, overwrite=True)
    if made.settled:
        note("settled")


def debit_for_ever(
    place: Path, number: int, note: Callable[[str], None], debit: Callable[..., Debit]
) -> NoReturn:
    """Debit, write a file aside, let it take its name, and finish the entry, again and again."""
    ledger, at = place / "ledger", 0
    while True:
        note("tried")
        made = debit(ledger, ROWS, release="r", cost=SMALL, neighbours="substitute")
        note("drawn")
        aside, out = place / f".r{number}.{at}", place / f"r{number}.{at}"
        aside.mkdir()
        (aside / files.CERTIFICATE).write_text(json.dumps({"ledger": {"entry": made.entry}}))
        aside.rename(out)
        settle(ledger, made.entry)
        note("settled")
        at += 1


def twice(*arguments: Any, **options: Any) -> Debit:
    reserve(*arguments, **options)
    return reserve(*arguments, **options)


def given_back(path: Path, *arguments: Any, **options: Any) -> Debit:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM entries WHERE state = ?", (RESERVED,))
        seal(path, database)
    return reserve(path, *arguments, **options)


def shared(path: Path, *arguments: Any, **options: Any) -> Debit:
    done = [e for account in read_ledger(path).accounts for e in account.entries]
    made = reserve(path, *arguments, **options)
    return replace(made, entry=done[-1].entry) if done else made


FAULTS = {"twice": twice, "given_back": given_back, "shared": shared}


def prepared(place: Path) -> Watch:
    """Make a plan and its ledger, and load all that a release needs."""
    init_ledger(place / "ledger", budget=budget("1000000", "0.1"), neighbours="substitute")
    make_city(place, privacy=SECTIONS["privacy"] + '\nledger = "ledger"\n')
    plan = read_plan(place / "plan.toml")
    claim = releases.release(plan, place / "warm", base=place, simulate=1).certificate.guarantee
    shutil.rmtree(place / "warm")
    return Watch(place, amount_of(claim.epsilon, claim.delta))


def kill_at_every_step(place: Path) -> list[str]:
    """Kill the first release, in an older ledger, later ones, and such as replace another."""
    watch = prepared(place)
    in_first_form(watch.ledger)
    first = kill_steps(watch, "first", 0, until=lambda: bool(watch.entries))
    known = first.index("before congenial.releases.making.make_release.reserve")
    later = kill_steps(watch, "later", known)
    whole = kill_steps(watch, "out", 10**9, same=True)
    require(not whole and (place / "out").exists(), "a release was not made")
    put = known + later.index("before congenial.releases.atomic_directory._put")
    return first + later + kill_steps(watch, "out", put, same=True)


def kill_steps(
    watch: Watch,
    out: str,
    number: int,
    *,
    same: bool = False,
    until: Callable[[], bool] = lambda: False,
) -> list[str]:
    """Kill one release after another, each a step later; return the steps."""
    killed: list[str] = []
    while not until():

        def child(number: int = number) -> None:
            note = noting(watch.notes)
            instrument(Killer(number, note), note)
            release_once(watch.place, out if same else f"{out}{number}", note)

        status = forked(child)
        watch.check()
        if os.WIFEXITED(status):
            require(os.WEXITSTATUS(status) == 0, "a release failed")
            break
        killed.append(watch.notes.read_text().rsplit("killed ", 1)[1].strip())
        number += 1
    return killed


def kill_releases(place: Path, times: int) -> list[str]:
    """Kill real releases at random instants, some while they replace another."""
    watch = prepared(place)
    began = time.monotonic()
    require(forked(lambda: released(watch, 0)) == 0, "a release failed")
    return kill_at_random(watch, times, 1.2 * (time.monotonic() - began), released)


def released(watch: Watch, number: int) -> None:
    note = noting(watch.notes)
    instrument(None, note)
    release_once(watch.place, f"out{number % 5}", note)


def kill_debits(place: Path, times: int, debit: Callable[..., Debit]) -> list[str]:
    """Kill processes that do nothing but debit and write."""
    for name in ("trial", "ledger"):
        init_ledger(place / name, budget=budget("1000000", "0.1"), neighbours="substitute")
    began = time.monotonic()
    made = reserve(place / "trial", ROWS, release="r", cost=SMALL, neighbours="substitute")
    settle(place / "trial", made.entry)
    longest = min(0.06, 3.0 * (time.monotonic() - began))

    def debited(watch: Watch, number: int) -> None:
        note = noting(watch.notes)
        instrument(None, note)
        debit_for_ever(place, number, note, debit)

    return kill_at_random(Watch(place, SMALL), times, longest, debited)


def kill_at_random(
    watch: Watch, times: int, longest: float, act: Callable[[Watch, int], None]
) -> list[str]:
    """Kill processes within `longest` seconds; on a busy machine more, later, until all is seen."""
    chance, number = np.random.default_rng(5), 0
    while number < times or (
        number < 5 * times and {RESERVED, SPENT} != set(watch.entries.values())
    ):
        number += 1
        longest *= 1.02 if number > times else 1.0
        status = forked(lambda at=number: act(watch, at), after=chance.uniform(0.0, longest))  # type: ignore[misc]
        watch.check()
        require(status in (0, signal.SIGKILL), "a process failed")
    return list(watch.entries.values())


def main(place: Path, kind: str, times: int = 0, fault: str = "") -> None:
    if kind == "steps":
        done = kill_at_every_step(place)
    elif kind == "releases":
        done = kill_releases(place, times)
    else:
        done = kill_debits(place, times, FAULTS.get(fault, reserve))
    sys.stdout.write(f"{json.dumps(done)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *map(int, sys.argv[3:4]), *sys.argv[4:])
