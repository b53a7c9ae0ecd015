"""Check a release, and write a page about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from congenial.durability.whole_files import replace_file
from congenial.errors import ReleaseError
from congenial.preview.comparison.expected import expected_errors, work_of_fit
from congenial.releases import directory as files
from congenial.releases.certificate import read_certificate, stated_plan
from congenial.releases.format_1 import FORMAT_1
from congenial.releases.model import claim, exposed
from congenial.releases.reading import read_files
from congenial.report.page import render
from congenial.verification.verdict import verify

_SEED = 20_230_301  # Of the simulated draws, so that the same release gives the same page.


def report(
    directory: str | Path,
    out: str | Path | None = None,
    *,
    notify: Callable[[str], None] | None = None,
) -> Path:
    """Write one HTML page about a release, for readers who know no statistics.

    It needs no other file, unless the release has more than 20,000 counts. Then the page lists the
    levels from the top, and loads the other counts from a folder beside it when their names are
    searched for; it works from a disk, without a network.

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
    Only the directory is read. The same release gives the same page.
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
    checks = verify(place)
    failed = [check for check in checks if not check.passed]
    if failed:
        raise ReleaseError(
            f"{place} fails the check {failed[0].name!r} ({failed[0].text}), so no page is "
            "written; run congenial verify, and get a fresh copy of the release (making another "
            "release would spend privacy budget again)."
        )
    say("working out margins")
    certificate = read_certificate(place / files.CERTIFICATE)
    release = read_files(place, certificate, stated_plan(certificate))
    if certificate.format == FORMAT_1:
        # sentences of format 1 are not checked, so the unprotected facts are worked out again
        stated, model = certificate.guarantee, release.model
        found = exposed(model, claim(model, stated.numerical_error))
        own = msgspec.structs.replace(stated, unprotected=found)
        release = replace(release, certificate=msgspec.structs.replace(certificate, guarantee=own))
    errors = expected_errors(
        release.mechanism, release.values, seed=_SEED, work=work_of_fit(release.model)
    )
    page = render(release, checks, errors, folder.name)
    say("writing")
    try:
        _replace_scripts(folder, page.scripts)
        return replace_file(target, page.text.encode())
    except OSError as error:
        raise ReleaseError(
            f"{target} cannot be written ({(error.strerror or 'unwritable').lower()}); give `out` "
            "a file that can be."
        ) from error


def _replace_scripts(folder: Path, scripts: Sequence[str]) -> None:
    """Replace the scripts of a page in one step; the folder is gone if the page has none."""
    aside, old = (
        folder.with_name(f".{folder.name}.{os.getpid()}.{end}") for end in ("part", "old")
    )
    try:
        if scripts:
            aside.mkdir()
            for number, script in enumerate(scripts):
                (aside / f"{number}.js").write_text(script, encoding="utf-8")
        if folder.exists():
            folder.rename(old)
        if scripts:
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
