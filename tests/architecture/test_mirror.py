"""Every module has its tests at its place, and every test lies where its module does.

`tests/<folder>/test_<module>.py` holds the tests of `src/congenial/<folder>/<module>.py`. Tests of
more than one module lie in the folders of `APART`.
"""

from __future__ import annotations

from support.sources import ROOT

TESTS = ROOT / "tests"
# Properties across modules, promises of the README, pages, the map, and helpers.
APART = {"laws", "guarantees", "docs", "architecture", "support"}
LONGEST = 700  # lines of a test file
# Modules without a test file of their own. The list may only shrink.
