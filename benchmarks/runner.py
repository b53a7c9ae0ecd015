"""Run cases one after another, each in a process of its own with its own limit of time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from benchmarks.machine import ONE_THREAD, ROOT, used_seconds
from benchmarks.record import Case, Line, Seen, line
from benchmarks.rows import cases

# Cases that would begin with less than this left are not run.
_LEAST = 10.0
# A case may take so many times its limit where it shares the machine.
_SLOW = 4.0
_POLL = 0.1


def run(
    rows: Iterable[str], *, quick: bool, budget: float, tell: Callable[[str], None]
) -> list[Line]:
    """Run rows and return their lines.

    Parameters
    ----------
    rows : iterable of str
    quick : bool
    budget : float
        Seconds for all of them; what does not fit is not run, and its lines say so.
    tell : callable
        Given a line of text before each case.

    Returns
    -------
    list of Line
        One a measure, in order, also where nothing was seen.
    """
    begin = time.monotonic()
    lines: list[Line] = []
    for row in rows:
        for index, case in enumerate(cases(row, quick=quick)):
            left = budget - (time.monotonic() - begin)
            tell(f"{row}: {case.name}")
            if left < _LEAST:
                lines += to_lines(case, {}, "not run: the time of the whole run was spent")
                continue
            seen, why = _apart(case, index, quick=quick, wait=min(_SLOW * case.limit, left))
            lines += to_lines(case, seen, why)
    return lines


def to_lines(case: Case, seen: dict[str, Seen], why: str) -> list[Line]:
    """Return the lines of a case's measures."""
    return [line(case, measure, seen.get(measure.name), why) for measure in case.measures]


def _apart(case: Case, index: int, *, quick: bool, wait: float) -> tuple[dict[str, Seen], str]:
    """Run a case in another process; return what it saw, and why the rest is missing."""
    command = [sys.executable, "-m", "benchmarks.worker", case.row, str(index)]
    command += ["--quick"] if quick else []
    with TemporaryFile() as out_file, TemporaryFile() as bad_file:
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment() | dict(case.environment),
            stdout=out_file,
            stderr=bad_file,
        ) as process:
            stopped = _stopped(process, case.limit, wait)
        out, bad = (_text(file) for file in (out_file, bad_file))
    why = stopped
    if not stopped and process.returncode:
        last = bad.strip().splitlines()[-1:] or [f"ended with status {process.returncode}"]
        why = f"failed: {last[0]}"
    seen = {}
    for text in out.splitlines():
        # another library may write too, and a process that was stopped may leave half a line
        if not (text.startswith("{") and text.endswith("}")):
            continue
        told = json.loads(text)
        if "why" in told:
            why = str(told["why"])
        elif "measure" in told:
            seen[str(told["measure"])] = Seen(**told)
    return seen, why


def _stopped(process: subprocess.Popen[bytes], limit: float, wait: float) -> str:
    """Wait for a process to end; stop it at its limit, and return why, else nothing."""
    end = time.monotonic() + wait
    try:
        while process.poll() is None:
            if used_seconds(process.pid) > limit:
                return f"over its limit of {limit:.0f} s"
            if time.monotonic() > end:
                return f"stopped after {wait:.0f} s by the clock, the machine being busy"
            time.sleep(_POLL)
        return ""
    finally:
        process.kill()


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def environment() -> dict[str, str]:
    """Return this process's environment with one thread a library, and the source to import."""
    paths = [str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    return os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def write_json(path: Path, lines: list[Line], machine: dict[str, str], *, quick: bool) -> None:
    """Write results and machine to a file."""
    from dataclasses import asdict

    content = {"machine": machine, "quick": quick, "lines": [asdict(each) for each in lines]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: Path) -> tuple[list[Line], dict[str, str]]:
    """Return the results and the machine of a file written before."""
    content = json.loads(path.read_text(encoding="utf-8"))
    return [Line(**each) for each in content["lines"]], content["machine"]
