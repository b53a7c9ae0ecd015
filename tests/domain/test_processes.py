"""Processes that work on parts beside each other, and what happens if they cannot or end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import congenial as cg
from congenial.domain.processes import started
from congenial.errors import ArgumentError, ReleaseError, UnsupportedError

SCRIPT = """
from congenial.domain.processes import started

def work(number):
    import time
    print(os.getpid(), flush=True)
    time.sleep(600)

import os
import signal

# a shell that starts tests in the background has them ignore interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
{guard}
    with started(2, print) as processes:
        processes.run("waiting for", work, {{0: (), 1: ()}})
"""


def cubed(number, *given):
    return number**3, given, os.getpid()


def first_words(number, rng):
    return rng.bits(2).tolist()


def refused(number):
    raise UnsupportedError(f"part {number} takes too long")


def ended(number):
    os._exit(3)


def test_parts_keep_their_order_and_two_processes_work():
    told = []
    with started(2, told.append) as processes:
        found = processes.run("moving", cubed, {k: (k, "x") for k in range(20)})
        assert [one[:2] for one in found] == [(k**3, (k, "x")) for k in range(20)]
        assert os.getpid() not in {pid for *_, pid in found}
        assert told[-1] == "moving parts: 20 of 20"
        assert processes.run("moving", cubed, {}) == []
        # each part has words of its own, which follow from those of the source
        words = [
            processes.run("x", first_words, {k: (processes.source(rng),) for k in range(3)})
            for rng in (cg.seeded(1), cg.seeded(1))
        ]
        assert words[0] == words[1] and len({tuple(each) for each in words[0]}) == 3
        with pytest.raises(UnsupportedError, match="part 4 takes too long"):
            processes.run("moving", refused, {4: ()})


def late(number, place):
    """Fail at once, or write a file later."""
    if number == 0:
        raise UnsupportedError("the first part takes too long")
    time.sleep(1.0)
    (place / str(number)).touch()


def test_nobody_works_on_after_an_error(tmp_path):
    with started(2, print) as processes:
        with pytest.raises(UnsupportedError, match="the first part"):
            processes.run("moving", late, dict.fromkeys(range(20), (tmp_path,)))
        found = len(list(tmp_path.iterdir()))
        time.sleep(1.5)
        assert len(list(tmp_path.iterdir())) == found < 19


def test_a_process_that_ends_is_told():
    with (
        started(2, print) as processes,
        pytest.raises(ReleaseError, match="one of 2 worker processes ended") as caught,
    ):
        processes.run("moving", ended, {0: (), 1: ()})
    assert caught.value.__cause__ is None and caught.value.__context__ is None


@pytest.mark.parametrize("number", [0, -1, True, 1_001])
def test_another_number_is_refused(number):
    told = pytest.raises(ArgumentError, match="a number of processes from 1 to 1,000")
    with told, started(number, print):
        pass


def test_a_script_without_a_guard_is_told(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(guard="if True:"))
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "ArgumentError: no worker process could be started; in a script" in done.stderr


def runs(pid):
    """Whether a process runs; one that has ended may still be listed, until somebody asks how."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are listed elsewhere")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_processes_end_with_the_one_that_started_them(tmp_path, how):
    (tmp_path / "script.py").write_text(SCRIPT.format(guard='if __name__ == "__main__":'))
    command = [sys.executable, "script.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            workers = [int(running.stdout.readline()) for _ in range(2)]
            assert all(map(runs, workers))
            running.send_signal(how)
            end = time.monotonic() + 30
            while any(map(runs, workers)):
                assert time.monotonic() < end
                time.sleep(0.05)
        finally:
            running.kill()
