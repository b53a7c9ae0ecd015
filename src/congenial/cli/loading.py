"""Around a command's work: its plan, the kernels not compiled yet, and a line of progress."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from congenial.durability.signals import uninterrupted

if TYPE_CHECKING:
    from congenial.cli.compiled import Method
    from congenial.plan.plan import Plan

# Seconds of a command before the line of progress appears; loading the package counts, too.
PATIENCE = 2.0
_BEGAN = time.monotonic()
_ONCE = "Compiling kernels for this machine, once; this takes up to a minute."
_EVERY_TIME = (
    "Compiling kernels; this takes up to a minute for every command, because neither the package's "
    "directory nor a home directory is writable. To compile once only, set NUMBA_CACHE_DIR to a "
    "writable directory."
)


def load(plan: Path, *, rows: bool) -> Plan:
    """Read a plan, and check that its files exist; `rows` says whether its rows are needed."""
    with uninterrupted():
        from congenial.data.public_domain import find_files
        from congenial.plan.plan import read_plan
    read = read_plan(plan)
    find_files(read, plan.parent, rows=rows)
    return read


def compile_once(method: str, *, crossing: bool = False, quiet: bool) -> None:
    """Compile all kernels if this machine has not done so yet, and say so.

    `crossing` says whether margins of a table cross. If kernels cannot be cached, each is compiled
    when it is first called.
    """
    with uninterrupted():
        from congenial.cli.compiled import cache_directory, compile_kernels, is_missing
    known: tuple[Method, ...] = ("conditioning", "posterior")
    own: list[Method] = [next((each for each in known if each == method), "imaging")]
    if crossing:
        own.append("tables")
    missing = [each for each in own if is_missing(each)]
    if not missing:
        return
    kept = cache_directory() is not None
    if not quiet:
        click.echo(_ONCE if kept else _EVERY_TIME, err=True)
    if kept:
        with progress(quiet=quiet) as notify:
            notify("compiling kernels")
            for each in missing:
                compile_kernels(each)


@contextmanager
def progress(
    *, quiet: bool = False, patience: float | None = None
) -> Iterator[Callable[[str], None]]:
    """Yield a function to call with each step as it begins; steps are shown on a terminal only.

    The line appears after `patience` seconds; by default `PATIENCE` after the command began.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_interactive:  # a terminal that cannot erase a line would keep it
        yield lambda _: None
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),  # names of levels may have brackets
        TimeElapsedColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("starting", total=None)
    if patience is None:
        patience = max(0.0, PATIENCE - (time.monotonic() - _BEGAN))
    timer = threading.Timer(patience, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda step: bar.update(task, description=step)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
