"""Releases in parts, for their tests."""

from __future__ import annotations

import csv
import json

import congenial as cg
from congenial.errors import CongenialError
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


def keys_of(place):
    rows = table_of(place)
    names = [name for name in rows[0] if name not in ("value", "lower", "upper", "truth", "note")]
    return [[row[name] for name in names] for row in rows]


def stated_in(place):
    """Return what a certificate states, apart from its time and its files."""
    found = json.loads((place / files.CERTIFICATE).read_text())
    return {key: value for key, value in found.items() if key not in ("made", "files")}


def refused(place, out, seed, **options):
    """Simulate a release with its truth; return why it was refused, empty if it was not."""
    try:
        make(place, out, simulate=seed, with_truth=True, **options)
    except CongenialError as error:
        return str(error)
    return ""
