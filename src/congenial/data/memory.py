"""The memory limit of a query."""

from __future__ import annotations

from pathlib import Path

_FREE = Path("/proc/meminfo")
# Files with the memory limit of a container, for versions 2 and 1 of control groups.
_GROUPS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def allowance() -> int | None:
    """Half of the free memory, in bytes; None if the system does not state it.

    The other half is for Python and other programs. A small file may declare more rows than fit in
    memory; the limit makes that an error message before the system kills a program.
    """
    found = [int(text) for group in _GROUPS if (text := _read(group).strip()).isdigit()]
    for line in _read(_FREE).splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            found.append(1024 * int(rest.split()[0]))
    return min(found) // 2 if found else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError:
        return ""
