"""The command line: `congenial COMMAND`, and `python -m congenial.cli COMMAND`."""

from congenial.cli.command_line import main

__all__ = ["main"]
