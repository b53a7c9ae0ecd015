"""Files are written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial.durability.whole_files import replace_file, sync


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")
    assert replace_file(path, b"new") == path
    assert path.read_bytes() == b"new"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_bytes(b"old")

    def full(self, content):
        with self.open("wb") as file:
            file.write(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


def test_files_and_directories_are_forced_to_the_disk(tmp_path, monkeypatch):
    forced = []
    monkeypatch.setattr("os.fsync", forced.append)
    (tmp_path / "a").touch()
    sync(tmp_path / "a")
    sync(tmp_path)
    assert len(forced) == 2
