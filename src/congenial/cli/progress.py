"""A progress line for work that takes more than two seconds, on a terminal only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0


@contextmanager
def progress(*, quiet: bool = False, patience: float = PATIENCE) -> Iterator[Callable[[str], None]]:
    """Return a function to call with each step as it begins."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("starting", total=None)
    timer = threading.Timer(patience, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda step: bar.update(task, description=step)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
