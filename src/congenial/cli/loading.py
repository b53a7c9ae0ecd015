"""What commands do before their work: imports that Ctrl-C cannot break, and compiled kernels."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import click

_ONCE = "Compiling kernels for this machine, once; this takes up to a minute."
_EVERY_TIME = (
    "Compiling kernels, up to a minute for every command: they cannot be kept, since neither the "
    "package's directory nor a home directory can be written to. Set NUMBA_CACHE_DIR to a "
    "directory that can be."
)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait for imports, which extension modules do not survive half-way."""
    aside = threading.current_thread() is not threading.main_thread()
    if aside or signal.getsignal(signal.SIGINT) in (signal.SIG_IGN, None):
        yield
        return
    waiting: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        raise KeyboardInterrupt


def compile_once(method: str, *, quiet: bool) -> None:
    """Compile all kernels where this machine has not done so yet, and say so: it takes a while.

    Where they cannot be kept, each is compiled when it is first called.
    """
    with undisturbed():
        from congenial.cli.compiled import cache_directory, compile_kernels, is_missing
    own: Literal["conditioning", "imaging"] = (
        "conditioning" if method == "conditioning" else "imaging"
    )
    if not is_missing(own):
        return
    kept = cache_directory() is not None
    if not quiet:
        click.echo(_ONCE if kept else _EVERY_TIME, err=True)
    if kept:
        compile_kernels(own)
