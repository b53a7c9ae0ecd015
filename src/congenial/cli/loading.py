"""Compiles kernels before a command's work, where that is still to be done."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from congenial.signals import held

if TYPE_CHECKING:
    from congenial.cli.compiled import Method

_ONCE = "Compiling kernels for this machine, once; this takes up to a minute."
_EVERY_TIME = (
    "Compiling kernels, up to a minute for every command: they cannot be kept, since neither the "
    "package's directory nor a home directory can be written to. Set NUMBA_CACHE_DIR to a "
    "directory that can be."
)


def compile_once(method: str, *, quiet: bool) -> None:
    """Compile all kernels where this machine has not done so yet, and say so: it takes a while.

    Where they cannot be kept, each is compiled when it is first called.
    """
    with held():
        from congenial.cli.compiled import cache_directory, compile_kernels, is_missing
    known: tuple[Method, ...] = ("conditioning", "posterior")
    own: Method = next((each for each in known if each == method), "imaging")
    if not is_missing(own):
        return
    kept = cache_directory() is not None
    if not quiet:
        click.echo(_ONCE if kept else _EVERY_TIME, err=True)
    if kept:
        compile_kernels(own)
