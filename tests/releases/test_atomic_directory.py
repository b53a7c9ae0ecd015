"""A directory appears whole or not at all, and an older release stays until then."""

from __future__ import annotations

import pytest

from congenial.errors import ReleaseError
from congenial.releases import atomic_directory, directory
from congenial.releases.atomic_directory import write_aside


def fill(out, text, *, overwrite=False):
    with write_aside(out, overwrite) as place:
        (place / directory.CSV).write_text(text)


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_release_takes_the_place_of_another_at_once(tmp_path, monkeypatch, exchanges):
    if not exchanges:
        monkeypatch.setattr(atomic_directory, "_exchange", lambda *_: False)
    out = tmp_path / "out"
    fill(out, "one")
    with write_aside(out, True) as place:
        (place / directory.CSV).write_text("two")
        assert (out / directory.CSV).read_text() == "one"
    assert (out / directory.CSV).read_text() == "two"
    assert list(tmp_path.iterdir()) == [out]


def failing(out, error):
    with write_aside(out, True) as place:
        (place / directory.CSV).write_text("half")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("before", [True, False])
def test_a_failure_leaves_the_older_directory(tmp_path, error, before):
    out = tmp_path / "out"
    if before:
        fill(out, "one")
    with pytest.raises(error):
        failing(out, error())
    assert list(tmp_path.iterdir()) == ([out] if before else [])
    assert not before or (out / directory.CSV).read_text() == "one"


def test_a_failing_disk_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(ReleaseError, match=r"cannot be written .*no space left"):
        failing(tmp_path / "out", OSError(28, "No space left on device"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("file", "not a directory and stands"),
        ("none/out", "does not exist"),
        ("file/out", "is not a directory, and the release"),
        ("full", "holds 'own.txt', which is no part of a release"),
        ("release", "holds a release; give `overwrite=True`"),
        ("..", "no new name"),
        ("link", "not a directory and stands"),
    ],
)
def test_targets_that_hold_something_else_are_refused_untouched(tmp_path, name, message):
    (tmp_path / "file").write_text("own")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "own.txt").write_text("own")
    fill(tmp_path / "release", "one")
    (tmp_path / "link").symlink_to(tmp_path / "full")
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(ReleaseError, match=message):
        fill(tmp_path / name, "two")
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    assert (tmp_path / "release" / directory.CSV).read_text() == "one"
