"""Files that are written whole or not at all, and are on the disk before the next step."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file in one step: after a failure, the old file is unchanged."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        aside.write_bytes(content)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    return path


def sync(path: Path) -> None:
    """Force a file, or the names in a directory, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
