"""Check a release, and write a page about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from congenial.durability.whole_files import replace_file
from congenial.errors import ReleaseError
from congenial.preview.comparison.expected import draws_of, simulated_errors
from congenial.releases import directory as files
from congenial.releases.certificate import stated_plan
from congenial.releases.format_1 import FORMAT_1
from congenial.report.page import render
from congenial.report.page_counts import SEED, counts_at_once
from congenial.report.page_in_parts import counts_by_parts
from congenial.verification.parts import ReadInParts
from congenial.verification.verdict import read_and_check


def report(
    directory: str | Path,
    out: str | Path | None = None,
    *,
    notify: Callable[[str], None] | None = None,
) -> Path:
    """Write one HTML page about a release, for readers who know no statistics.

    It needs no other file, unless the release has more than 20,000 counts. Then the page lists the
    levels from the top. It loads the counts of the next levels, at most 12 million, from a folder
    beside it when their names are searched for. It works from a disk, without a network. Still
    deeper levels are in the release's own files only.

    Parameters
    ----------
    directory : path
        As `congenial.release` wrote it.
    out : path, optional
        File to write; an existing page is replaced. By default ``report.html`` in the directory.
    notify : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    Path
        The file.

    Notes
    -----
    Only the directory is read. The same release gives the same page. A large release that `verify`
    reads in parts is read in parts here, too.
    """
    say = notify or (lambda _: None)
    place = Path(directory)
    target = place / files.REPORT if out is None else Path(out)
    folder = target.with_name(f"{target.stem}-counts")
    _check_target(target, place)
    if strange := files.no_scripts(folder):
        raise ReleaseError(
            f"{folder}{strange[0]} is no script of a page about a release, and the page's scripts "
            "would replace it; move it, or give `out` another file."
        )
    say("checking the release")
    checks, read = read_and_check(place, notify=say)
    failed = [check for check in checks if not check.passed]
    if failed or read is None:
        raise ReleaseError(
            f"{place} fails the check {failed[0].name!r} ({failed[0].text}), so no page is "
            "written; run congenial verify, and get a fresh copy of the release (making another "
            "release would spend privacy budget again)."
        )
    certificate = read.certificate
    if certificate.format == FORMAT_1:
        # sentences of format 1 are not checked, so the unprotected facts are worked out again
        found = read.specified()[1].guarantee.unprotected
        own = msgspec.structs.replace(certificate.guarantee, unprotected=found)
        certificate = msgspec.structs.replace(certificate, guarantee=own)
    try:
        with _replacing(folder) as scripts:
            say("working out margins")
            if isinstance(read, ReadInParts):
                counts = counts_by_parts(place, read, scripts)
            else:
                made, draws = read.release, draws_of(read.release.model)
                errors = simulated_errors(made.mechanism, made.values, seed=SEED, draws=draws)
                counts = counts_at_once(made, errors, scripts)
            say("writing")
            page = render(certificate, stated_plan(certificate), counts, checks, folder.name)
        return replace_file(target, page.encode())
    except OSError as error:
        raise ReleaseError(
            f"{target} cannot be written ({(error.strerror or 'unwritable').lower()}); give `out` "
            "a file that can be."
        ) from error


@contextmanager
def _replacing(folder: Path) -> Iterator[Path]:
    """Yield a directory for the scripts of a page, which then replace the others in one step.

    The folder is gone if the page has no script.
    """
    aside, old = (
        folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("part", "old")
    )
    try:
        aside.mkdir()
        yield aside
        if folder.exists():
            folder.rename(old)
        if any(aside.iterdir()):
            aside.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:  # after a failure, or Ctrl-C, the scripts are those of the page that is still there
        if old.exists() and not folder.exists():
            old.rename(folder)
        for left in (aside, old):
            shutil.rmtree(left, ignore_errors=True)


# A tag near the beginning of every page.
_GENERATOR = b'<meta name="generator" content="congenial">'
_NEAR = 4096  # Bytes of a file that are searched for the tag.


def _check_target(target: Path, place: Path) -> None:
    """Refuse to replace any file except a page about a release."""
    if target.is_dir() or not target.parent.is_dir():
        text = "is a directory" if target.is_dir() else "is in a directory that does not exist"
        raise ReleaseError(f"{target} {text}; give `out` a file in a directory that exists.")
    if target.parent.resolve() == place.resolve():
        if target.name == files.REPORT:
            return
        text = "is" if target.name in files.ALL else "would be no"
        raise ReleaseError(
            f"{target} {text} part of the release; give `out` {files.REPORT} there, or a file "
            "elsewhere."
        )
    if os.path.lexists(target) and not _is_page(target):
        raise ReleaseError(
            f"{target} exists and is no page about a release, so it is not replaced; give `out` "
            "another file."
        )


def _is_page(target: Path) -> bool:
    try:
        with target.open("rb") as file:
            return _GENERATOR in file.read(_NEAR)
    except OSError:
        return False
