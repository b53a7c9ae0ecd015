"""A directory that appears whole or not at all."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from congenial.durability.signals import uninterrupted
from congenial.durability.whole_files import sync
from congenial.errors import ReleaseError
from congenial.releases import directory as files

# Constants of Linux's renameat2, which swaps two directories in one step.
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
# Bytes that a count takes in a release's files, at least; with names of usual length some 35. And
# those of the smallest certificate and two tables, in blocks of 4 KiB: two and one each.
_BYTES, _SMALLEST = 16, 4 * 4096


@contextmanager
def write_aside(
    out: Path, overwrite: bool, before: Callable[[], None] = lambda: None
) -> Iterator[Path]:
    """Yield a directory beside `out` that is renamed to `out` at the end, or removed on failure.

    `before` is called before a release at `out` is refused, and may refuse what matters more.
    """
    _check_target(out, overwrite, before)
    place: Path | None = None
    try:
        with uninterrupted():
            place = _make_beside(out)
        yield place
        _settle(place)
        _put(place, out)
        sync(out.absolute().parent)  # the ledger marks the entry as spent after this
    except (OSError, duckdb.IOException) as error:
        reason = getattr(error, "strerror", None) or "input or output failed"
        raise ReleaseError(
            f"the release cannot be written to {out} ({reason.lower()}); give a directory that can "
            "be written, with room for it."
        ) from error
    finally:
        if place is not None:
            with uninterrupted():
                shutil.rmtree(place, ignore_errors=True)


def check_room(place: Path, counts: int) -> None:
    """Refuse with ReleaseError if the disk of a directory cannot hold a release of some counts."""
    free, needed = shutil.disk_usage(place).free, _SMALLEST + _BYTES * counts
    if free < needed:
        raise ReleaseError(
            f"the disk of {place.absolute().parent} has {free / 1e3:,.1f} kB left, and a release "
            f"of {counts:,} counts takes {needed / 1e3:,.1f} kB or more; make room, or give an "
            "`out` on another disk."
        )


def _check_target(out: Path, overwrite: bool, before: Callable[[], None]) -> None:
    if out.name in ("", ".."):
        raise ReleaseError(
            f"`out` is {str(out)!r}, which is no new name; give one, such as "
            f"{str(out / 'release')!r}."
        )
    if not files.is_text(out):
        raise ReleaseError(
            f"`out` is {str(out)!r}, and its path is not in UTF-8 or has a NUL; give another `out`."
        )
    try:
        if out.is_symlink() or (out.exists() and not out.is_dir()):
            raise ReleaseError(
                f"{out} is not a directory and stands where the release would go; give another "
                "`out`."
            )
        if not out.parent.is_dir():
            text = "is not a directory" if os.path.lexists(out.parent) else "does not exist"
            raise ReleaseError(
                f"{out.parent} {text}, and the release would go into it; make it first, or give "
                "another `out`."
            )
        found = out.exists() and any(out.iterdir())
        strange = files.strangers(out) if found else []
    except OSError as error:
        raise ReleaseError(
            f"{out} cannot be looked into ({(error.strerror or 'unreadable').lower()}); give "
            "another `out`."
        ) from error
    if not found:
        return
    if strange:
        raise ReleaseError(
            f"{str(out)!r} holds {strange[0]!r}, which is no part of a release; give a directory "
            "that does not exist yet."
        )
    if not overwrite:
        before()
        raise ReleaseError(
            f"{str(out)!r} holds a release; give `overwrite=True` to replace it, or another `out`."
        )


def _make_beside(out: Path) -> Path:
    # the name need not be secret: the files in it are already private
    attempt = 0
    while True:
        # a name may have 255 bytes, and a character takes up to four
        place = out.parent / f".{out.name[:50]}.{os.getpid()}.{attempt}.partial"
        try:
            place.mkdir()
        except FileExistsError:
            attempt += 1
        else:
            return place


def _settle(place: Path) -> None:
    """Force a directory and its files to the disk, so that the rename never shows empty files."""
    for path in (*place.iterdir(), place):
        sync(path)


def _put(place: Path, out: Path) -> None:
    """Let `place` take the name `out`; an older release there ends up under the name `place`."""
    if not out.exists() or not any(out.iterdir()):
        os.rename(place, out)
        return
    if _exchange(place, out):
        return
    old = place.with_suffix(".old")
    os.rename(out, old)
    moved = False
    try:
        os.rename(place, out)
        moved = True
    finally:
        if moved:
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.rename(old, out)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names in one step where the system can; False where it cannot."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return False
    done: int = rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    return done == 0
