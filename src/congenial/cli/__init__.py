"""The command line: `congenial COMMAND`, and `python -m congenial.cli COMMAND`."""

from __future__ import annotations

from typing import NoReturn

from congenial.durability.signals import Ender

__all__ = ["main"]


def main() -> NoReturn:
    """Run the command line; it listens for signals before anything large is imported."""
    ender = Ender()
    ender.listen()
    from congenial.cli import command_line

    command_line.main(ender)
