"""`python -m congenial.cli`."""

from congenial.cli import main

main()
