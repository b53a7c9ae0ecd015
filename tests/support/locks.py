"""What the lock files pin."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)(?: ; ([^\\]+?))? \\$")


HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


ADDRESS = re.compile(r"[a-z+]+://|\b(?:index-url|find-links|trusted-host)\b", re.IGNORECASE)


def lock_faults(text: str) -> list[str]:
    """Return lines of a lock that are neither a pin, a hash nor a comment, and pins unhashed."""
    faults = [f"address: {line}" for line in text.splitlines() if ADDRESS.search(line)]
    pending = ""
    for line in text.splitlines():
        if HASH.match(line):
            pending = ""
        elif PIN.match(line):
            faults += [f"no hash: {pending}"] if pending else []
            pending = line
        elif not line.startswith("#"):
            faults.append(f"not understood: {line}")
    return faults + ([f"no hash: {pending}"] if pending else [])


def pins(name: str) -> set[tuple[str, str, str]]:
    """Return package, version and marker of every line of a lock."""
    text = (ROOT / "requirements" / f"{name}.lock").read_text(encoding="utf-8")
    return {match.groups("") for line in text.splitlines() if (match := PIN.match(line))}


def needed(requirements: list[str]) -> set[str]:
    """Return the package names of requirements, without extras and bounds."""
    return {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
