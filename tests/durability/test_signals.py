"""Signals end a command with their own code, in the middle of whatever, and leave nothing."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path

import duckdb
import numpy as np
import pytest

import congenial.cli.compiled
import congenial.releases.making.make_release as releases
from congenial.cli import command_line as cli
from congenial.data.sources import ask, connect
from congenial.durability.signals import (
    ENDING,
    Ended,
    Ender,
    uninterrupted,
)
from congenial.errors import DataError
from congenial.ledger.debits import read_ledger
from congenial.plan.plan import read_plan
from congenial.releases import atomic_directory
from congenial.releases import directory as files
from congenial.verification.verdict import verify
from support.city import SECTIONS, listing, make_city
from support.ledgers import make_ledger

EACH = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has other signals")


@pytest.fixture
def ender():
    """Listen as a command does; afterwards everything is as it was."""
    numbers = (*ENDING, signal.SIGALRM)
    before, hook = {number: signal.getsignal(number) for number in numbers}, sys.unraisablehook
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)
    made = Ender()
    made.listen()
    yield made
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.unraisablehook = hook
    for number, handler in before.items():
        signal.signal(number, handler)


def soon(number, after=0.2):
    """Send a signal to this process in a moment."""
    timer = threading.Timer(after, os.kill, (os.getpid(), number))
    timer.start()
    return timer


@pytest.mark.parametrize("number", EACH)
def test_a_signal_waits_for_the_end_of_a_block(ender, number):
    done = []
    with pytest.raises(Ended) as ended, uninterrupted(), uninterrupted():
        signal.raise_signal(number)
        done.append("imported")
    assert done == ["imported"]
    assert ended.value.code == 128 + number == 128 + ender.number


@pytest.mark.usefixtures("ender")
def test_a_signal_is_delivered_despite_other_errors():
    with pytest.raises(Ended), uninterrupted():
        signal.raise_signal(signal.SIGTERM)
        raise RuntimeError


@pytest.mark.usefixtures("ender")
def test_in_a_library_an_interrupt_raises_keyboard_interrupt():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


@pytest.mark.usefixtures("ender")
def test_a_signal_that_the_shell_ignores_is_ignored():
    for number in EACH:
        signal.signal(number, signal.SIG_IGN)
    Ender().listen()
    for number in EACH:
        with uninterrupted():
            signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_IGN


@pytest.mark.usefixtures("ender")
def test_a_second_signal_does_not_stop_the_tidying():
    with pytest.raises(Ended) as ended:
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.code == 143
    for number in EACH:
        signal.raise_signal(number)


class Fragile:
    """Its destructor is where a signal comes."""

    def __del__(self):
        signal.raise_signal(signal.SIGTERM)


def in_a_destructor():
    Fragile()


def in_a_callback():
    # only Python itself knows that nobody hears an exception from here
    kept = Fragile.__new__(type("Plain", (), {}))
    called = weakref.ref(kept, lambda _: signal.raise_signal(signal.SIGTERM))
    del kept
    assert called() is None


def in_a_library():
    scope = {"__name__": "numba.core.caching", "signal": signal, "after": []}
    exec("signal.raise_signal(signal.SIGTERM)\nafter.append(1)", scope)
    assert scope["after"] == [1]


@pytest.mark.usefixtures("ender")
@pytest.mark.parametrize("act", [in_a_destructor, in_a_callback, in_a_library])
def test_no_signal_is_swallowed(act, capsys):
    begun = time.monotonic()
    with pytest.raises(Ended) as ended:
        act()
        while time.monotonic() < begun + 20:
            time.sleep(0.01)
    assert ended.value.code == 143
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("end", [RuntimeError, KeyboardInterrupt, DataError, None])
def test_the_exit_code_is_that_of_the_signal_despite_libraries(ender, end, monkeypatch):
    def swallow(_):
        with suppress(Ended):
            signal.raise_signal(signal.SIGHUP)
        if end is not None:
            raise end
        return 0

    monkeypatch.setattr(cli, "run", swallow)
    with pytest.raises(SystemExit) as ended:
        cli.main(ender)
    assert ended.value.code == 129


# DuckDB


@pytest.mark.usefixtures("ender")
@pytest.mark.parametrize("number", EACH)
def test_a_long_query_is_cut_short(number):
    slow = "SELECT count(*) FROM range(100000000000) t (i) WHERE i % 7 = 3"
    with connect() as connection:
        timer = soon(number)
        begun = time.monotonic()
        with pytest.raises(Ended) as ended:
            ask(connection, slow, "refused")
        timer.join()
    assert ended.value.code == 128 + number
    assert time.monotonic() < begun + 20


@pytest.mark.usefixtures("ender")
def test_duckdb_is_set_up_completely_before_a_signal_is_handled(monkeypatch):
    class Setting:
        done = 0

        def execute(self, _):
            signal.raise_signal(signal.SIGTERM)
            self.done += 1

    setting = Setting()
    monkeypatch.setattr(duckdb, "connect", lambda _: setting)
    with pytest.raises(Ended), connect():
        pass
    assert setting.done > 5


# What is left behind


@pytest.mark.usefixtures("ender")
@pytest.mark.parametrize("step", ["_make_beside", "os.rename"])
def test_a_signal_between_two_steps_leaves_nothing(step, tmp_path, monkeypatch):
    plan = read_plan(make_city(tmp_path))
    before = listing(tmp_path)
    owner = atomic_directory if step.startswith("_") else atomic_directory.os
    name = step.split(".")[-1]
    act = getattr(owner, name)

    def struck(*arguments, **options):
        made = act(*arguments, **options)
        signal.raise_signal(signal.SIGTERM)
        return made

    monkeypatch.setattr(owner, name, struck)
    with pytest.raises(Ended):
        releases.release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    written = ("certificate.json", "release.csv", "release.parquet", files.MARKER)
    whole = {"out", *(f"out/{name}" for name in written)}
    left = set(listing(tmp_path)) - set(before)
    # once the release has its name it stays
    assert left == (set() if step == "_make_beside" else whole)


@pytest.mark.usefixtures("ender")
def test_a_signal_while_a_failed_release_is_tidied_away_leaves_nothing(tmp_path, monkeypatch):
    plan = read_plan(make_city(tmp_path))
    before, tidy = listing(tmp_path), shutil.rmtree

    def refuse(*_):
        raise OSError

    def struck(*arguments, **options):
        signal.raise_signal(signal.SIGTERM)
        tidy(*arguments, **options)

    monkeypatch.setattr(atomic_directory, "_put", refuse)
    monkeypatch.setattr(atomic_directory.shutil, "rmtree", struck)
    with pytest.raises(Ended):
        releases.release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    assert listing(tmp_path) == before


@pytest.mark.usefixtures("ender")
def test_a_signal_leaves_a_complete_ledger_or_none(tmp_path, monkeypatch):
    link = os.link

    def struck(*arguments):
        signal.raise_signal(signal.SIGTERM)
        link(*arguments)

    monkeypatch.setattr(os, "link", struck)
    with pytest.raises(Ended):
        make_ledger(tmp_path)
    assert listing(tmp_path) == ["ledger"]
    assert read_ledger(tmp_path / "ledger").accounts == ()


@pytest.mark.usefixtures("ender")
def test_a_kernel_that_is_being_compiled_is_finished_and_no_other_begun(monkeypatch):
    compiled = []

    class Kernel:
        def compile(self, _):
            signal.raise_signal(signal.SIGTERM)
            compiled.append(1)

    class Module:
        def __getattr__(self, _):
            return Kernel()

    monkeypatch.setattr(congenial.cli.compiled.importlib, "import_module", lambda _: Module())
    with pytest.raises(Ended):
        congenial.cli.compiled.compile_share(0)
    assert compiled == [1]


def hears(process):
    """Whether a process has its handler of SIGTERM."""
    with suppress(OSError):
        told = Path(f"/proc/{process.pid}/status").read_text()
        caught = re.search(r"SigCgt:\s*([0-9a-f]+)", told)
        return caught is not None and int(caught[1], 16) >> (signal.SIGTERM - 1) & 1 == 1
    return True


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_signals_at_random_instants_end_releases_with_their_codes(tmp_path):
    make_ledger(tmp_path, epsilon="100")
    make_city(tmp_path, privacy=SECTIONS["privacy"] + '\nledger = "ledger"\n')
    before = listing(tmp_path)
    # a shell that runs us in the background may have made its children deaf
    program = (
        "import signal, sys\n"
        "for each in (1, 2, 15): signal.signal(each, signal.SIG_DFL)\n"
        "from congenial.cli import main\n"
        "sys.argv = ['congenial', 'release', 'plan.toml', '--out', 'out', '--quiet']\n"
        "main()\n"
    )
    chance, ended = np.random.default_rng(7), 0
    for attempt, number in enumerate(EACH * 2):
        with subprocess.Popen(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            while not hears(process):
                time.sleep(0.001)
            time.sleep(chance.uniform(0.0, 1.5))
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        told = [line for line in err.splitlines() if line and not line.startswith("Compiling")]
        if process.returncode == 0:  # it had ended before
            (tmp_path / "out").rename(tmp_path / f"done {attempt}")
            before = listing(tmp_path)
            continue
        ended += 1
        assert process.returncode == 128 + number, err
        assert told == ["Interrupted: no partial release is left behind."] * (number == 2)
        assert out == ""
        if (tmp_path / "out").exists():  # it came between the release and the end of the command
            assert all(check.passed for check in verify(tmp_path / "out"))
            (tmp_path / "out").rename(tmp_path / f"done {attempt}")
            before = listing(tmp_path)
        assert listing(tmp_path) == before
    assert ended > 0
    read_ledger(tmp_path / "ledger")


LATE = """
import sys, time
from congenial.cli import command_line
from congenial.durability.signals import Ender

ender = Ender()
ender.listen()
ender.number = 15

def struck(arguments):
    ender._later()  # a signal in code that it would break, just before the command has its answer
    return 0

command_line.run = struck
try:
    command_line.main(ender)
except SystemExit as end:
    import signal
    if signal.getsignal(signal.SIGALRM) is not signal.SIG_IGN:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # as Python does at its end
    time.sleep(0.05)
    sys.exit(end.code)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
def test_a_signal_just_before_the_end_has_its_own_code():
    done = subprocess.run([sys.executable, "-c", LATE], check=False, timeout=60)
    assert done.returncode == 143
