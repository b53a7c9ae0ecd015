"""Releases in parts, for their tests."""

from __future__ import annotations

import csv
import json

import duckdb

import congenial as cg
from congenial.errors import CongenialError, PlanError
from congenial.releases import directory as files
from congenial.releases.making.make_release import release
from congenial.verification import parts, verdict
from support.edited import change

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


def watched(monkeypatch):
    """Return a list to which each reading by `verify` adds whether it was part by part."""
    seen, read = [], parts.read_in_parts

    def reading(*args):
        found = read(*args)
        seen.append(found is not None)
        return found

    monkeypatch.setattr(verdict, "read_in_parts", reading)
    return seen


def outcome(directory, level=None):
    """Return the verdict on a release, None if its plan has no parts of the level."""
    try:
        return verdict.verify(directory, parts=level)
    except PlanError:
        return None


def copied(directory, query, *, names=files.TABLE):
    """Write the files of a table anew by a query on `t`."""
    csv, parquet = (directory / name for name in names)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t AS SELECT * FROM '{parquet}'")
        connection.execute(f"COPY ({query}) TO '{parquet}' (FORMAT parquet)")
        connection.execute(f"COPY ({query}) TO '{csv}' (FORMAT csv, HEADER, FORCE_QUOTE *)")
    change(directory, lambda stated: None)
