"""Releases in parts, for their tests."""

from __future__ import annotations

import csv

import congenial as cg
from congenial.releases import directory as files
from congenial.releases.making.make_release import release

# Sections of a plan of the small city that may be released in parts.
PARTED = {
    "method": 'name = "topdown"',
    "release": 'publish = ["table", "measurements"]',
}


def make(place, out="out", **options):
    """Release the plan in a directory into a directory below it."""
    return release(cg.read_plan(place / "plan.toml"), place / out, base=place, **options)


def table_of(place, name=files.CSV):
    """Return the rows of a table of a release."""
    with (place / name).open(newline="") as file:
        return list(csv.DictReader(file))
