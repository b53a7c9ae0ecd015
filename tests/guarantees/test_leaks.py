"""No confidential count leaves a release except where the plan publishes it exactly.

Cells have distinctive numbers of rows. After a real release, the tests search all output for these
numbers: both streams, the log at its most detailed level, every file, and the errors of failing
releases. Released values are noisy and may equal any number, so they are tested separately. Every
search is shown to find a planted leak.
"""

from __future__ import annotations

import csv
import json
import logging
import os
import re
import sys
from pathlib import Path

import duckdb
import numpy as np
import pytest

import congenial.releases.making.make_release
from congenial.cli import command_line as cli
from congenial.data.counts import count
from congenial.plan.plan import read_plan
from congenial.releases import directory as files
from support.city import make_city

ZONES = {1: "Arden", 2: "Arden", 3: "Brook", 4: "Brook", 5: "Combe", 6: "Combe", 9: "Combe"}
TRIPS = {1: 7351, 2: 1213, 3: 2417, 4: 3019, 5: 4073, 6: 5021, 9: 9173}
EXCLUDED = TRIPS[9]
BOROUGHS = {"Arden": 8564, "Brook": 5436, "Combe": 9094}
TOTAL = 23094
EVERYTHING = TOTAL + EXCLUDED
# A key that the lookup lacks is as confidential as a count.
STRANGER = 836_271
# What is released: noisy, or published exactly.
RELEASED = ("value", "lower", "upper", "level_lower", "level_upper", "measurement")

# Noise of thousands: that two cells both keep their counts by chance has odds below 1e-7.
PRIVACY = 'neighbours = "substitute"\nepsilon = 0.001\nsplit = {{ {} }}'
NOISY = PRIVACY.format("root = 0.2, borough = 0.3, zone = 0.5")
BELOW = PRIVACY.format("borough = 0.4, zone = 0.6")
# Little noise, which is drawn faster, where released values are not judged.
QUICK = NOISY.replace("0.001", "1.0")
DATA = """
    source = "rows.csv"
    where = "zone < 9"
    types = { zone = "INTEGER", hour = "INTEGER" }
    lookup = { source = "zones.csv", key = "zone_id", on = "zone" }
    """
FREE = "nonnegative = false"
PINNED = 'publish_exactly = ["root", "Brook"]'


def secrets(*published):
    """Return all confidential counts but those published."""
    return {*TRIPS.values(), *BOROUGHS.values(), TOTAL, EVERYTHING} - set(published)


def found_in(text, numbers):
    """Return the numbers that occur in a text, digests aside, in any common way of writing."""
    text = re.sub(r"\b[0-9a-f]{64}\b", "", text)
    text = re.sub(r"(?<=\d)[,_'\u2009\u202f](?=\d{3}(?!\d))", "", text)
    return {n for n in numbers if re.search(rf"(?<![\d.]){n}(?!\d)", text)}


def everything_written(place):
    """Return the text of every file, without released values; for Parquet also its hidden parts."""
    texts = {}
    for path in sorted(place.rglob("*")):
        if not path.is_file():
            continue
        name = str(path.relative_to(place))
        if path.name in (files.CSV, files.MEASUREMENTS_CSV):
            with path.open(newline="") as file:
                rows = [
                    {k: v for k, v in row.items() if k not in RELEASED}
                    for row in csv.DictReader(file)
                ]
            texts[name] = json.dumps(rows)
        elif path.name in (files.PARQUET, files.MEASUREMENTS_PARQUET):
            texts[name] = parquet_text(path)
        else:
            texts[name] = path.read_bytes().decode("utf-8", "replace")
    return texts


def parquet_text(path):
    """Return rows, key-value metadata and statistics of a Parquet file but for its values."""
    with duckdb.connect(":memory:") as connection:
        parts = [
            connection.execute(query).fetchall()
            for query in (
                f"SELECT COLUMNS(lambda c: c NOT IN {RELEASED}) FROM '{path}'",
                f"SELECT * FROM parquet_kv_metadata('{path}')",
                # offsets and sizes are bytes of the file, not counts
                f"SELECT path_in_schema, num_values, stats_min, stats_max, stats_min_value, "
                f"stats_max_value, stats_distinct_count, key_value_metadata "
                f"FROM parquet_metadata('{path}') WHERE path_in_schema NOT IN {RELEASED}",
            )
        ]
    return repr(parts)


def fields_of(record):
    """Return what a log record carries, but for clocks and numbers of processes and lines."""
    own = {"created", "msecs", "relativeCreated", "process", "thread", "lineno"}
    return repr({name: value for name, value in vars(record).items() if name not in own})


class Observed:
    """A release run in a directory of its own, with all that came out of it."""

    def __init__(self, place, capfd, caplog, **sections):
        self.place = place
        sections = {"data": DATA, "privacy": NOISY, "invariants": FREE} | sections
        self.plan = make_city(place, zones=ZONES, trips=sections.pop("trips", TRIPS), **sections)
        (place / "run").mkdir()
        # a compiler knows types and no values, and logs millions of lines about them
        caplog.set_level(logging.INFO, logger="numba")
        caplog.set_level(logging.DEBUG)
        capfd.readouterr()
        # relative, since a temporary directory may have any number in its name
        self.code = cli.run(["release", "plan.toml", "--out", "run/out"])
        out, err = capfd.readouterr()
        told = "\n".join(record.getMessage() for record in caplog.records)
        self.texts = {"stdout": out, "stderr": err, "log": told}
        self.texts |= {f"record {i}": fields_of(r) for i, r in enumerate(caplog.records)}
        self.texts |= everything_written(place / "run")

    def leaks(self, numbers):
        """Return where which of the numbers occur."""
        hits = {name: found_in(text, numbers) for name, text in self.texts.items()}
        return {name: found for name, found in hits.items() if found}

    def values(self):
        """Return the released value of each node by its path."""
        with (self.place / "run" / "out" / files.CSV).open(newline="") as file:
            return {(r["borough"], r["zone"]): int(r["value"]) for r in csv.DictReader(file)}


def published(place, name):
    """Return the released columns of a table as numbers, by name."""
    with (place / "run" / "out" / name).open(newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        column: [int(row[column]) if row[column] else None for row in rows]
        for column in RELEASED
        if column in rows[0]
    }


def kept(values):
    """Return the nodes whose released value is the confidential count."""
    truth = {("", ""): TOTAL} | {(borough, ""): n for borough, n in BOROUGHS.items()}
    truth |= {(ZONES[zone], str(zone)): n for zone, n in TRIPS.items() if zone != 9}
    return [node for node, value in values.items() if value == truth[node]]


@pytest.fixture
def observe(tmp_path, capfd, caplog, monkeypatch):
    """Run releases that may write only where this test looks."""
    scratch = tmp_path / "run" / "scratch"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(scratch))
    return lambda **sections: Observed(tmp_path, capfd, caplog, **sections)


@pytest.mark.parametrize("noisy", ["conditioning", "imaging"])
def test_a_release_shows_no_confidential_count(observe, noisy):
    seen = observe(method=f'name = "{noisy}"')
    assert seen.code == 0
    assert set(seen.texts) >= {"stdout", "stderr", "log", f"out/{files.CSV}"}
    assert seen.leaks(secrets()) == {}
    assert len(kept(seen.values())) < 2


BOTH = 'publish = ["table", "measurements"]'
EACH = "simultaneous = true\nsums = { two = ['Arden', 'Brook'] }"


@pytest.mark.parametrize("bounds", [FREE, "nonnegative = true"])
@pytest.mark.parametrize("method", ["imaging", "topdown"])
def test_measurements_and_intervals_show_no_confidential_count(observe, method, bounds):
    seen = observe(
        method=f'name = "{method}"', invariants=bounds, release=BOTH, accuracy=EACH, privacy=QUICK
    )
    assert seen.code == 0
    assert {f"out/{name}" for name in files.MEASUREMENTS} <= set(seen.texts)
    table, measured = (published(seen.place, n) for n in (files.CSV, files.MEASUREMENTS_CSV))
    assert set(table) == {"value", "lower", "upper", "level_lower", "level_upper"}
    assert len(table["value"]) == len(measured["measurement"]) == 10
    # each interval holds the released count, which is noisy
    assert all(map(int.__le__, table["lower"], table["value"]))
    assert all(map(int.__ge__, table["upper"], table["value"]))
    assert seen.leaks(secrets()) == {}


def test_measurements_are_noisy(observe):
    seen = observe(method='name = "imaging"', release=BOTH)
    assert seen.code == 0
    y = published(seen.place, files.MEASUREMENTS_CSV)["measurement"]
    truth = [TOTAL, *BOROUGHS.values(), *(n for zone, n in TRIPS.items() if zone != 9)]
    assert len(y) == len(truth) == 10
    assert len(set(y) & set(truth)) < 2


def test_published_counts_are_shown_and_no_others(observe):
    seen = observe(invariants=PINNED, privacy=BELOW)
    assert seen.code == 0
    assert seen.leaks(secrets(TOTAL, BOROUGHS["Brook"])) == {}
    # nor are those two, outside the released values
    assert seen.leaks({TOTAL, BOROUGHS["Brook"]}) == {}
    values = seen.values()
    assert values["", ""] == TOTAL
    assert values["Brook", ""] == BOROUGHS["Brook"]


def test_excluded_rows_are_mentioned_without_their_number(observe):
    seen = observe(privacy=QUICK)
    assert "Their number is confidential" in seen.texts["stdout"]
    assert "their number is confidential" in seen.texts["log"]
    assert seen.leaks({EXCLUDED, EVERYTHING}) == {}


@pytest.mark.parametrize(
    "sections",
    [
        {"trips": TRIPS | {STRANGER: 3}, "data": DATA.replace("zone < 9", "zone <> 9")},
        {"trips": TRIPS | {STRANGER: 3}, "data": DATA.replace('where = "zone < 9"', "")},
        {"data": DATA.replace("zone < 9", "zone < 0")},
        {"data": DATA.replace("zone < 9", "hour < 'noon'")},
        {"invariants": 'publish_exactly = ["Nowhere"]', "privacy": BELOW},
        {"privacy": 'neighbours = "add-remove"\nepsilon = 1.0', "invariants": PINNED},
    ],
)
def test_a_failed_release_shows_no_confidential_count(observe, sections):
    seen = observe(**sections)
    assert seen.code == 2
    assert seen.texts["stderr"].startswith("Error: ")
    assert seen.leaks({*secrets(), STRANGER}) == {}
    assert not (seen.place / "run" / "out").exists()


@pytest.mark.parametrize(
    "stage",
    [
        "making.make_release.build_model",
        "making.make_release.checked_draws",
        "making.make_release.certify",
        "atomic_directory._settle",
    ],
)
def test_a_bug_shows_no_confidential_count(observe, monkeypatch, stage):
    def fail(*_, **__):
        raise congenial.errors.NumericalError("the draw failed; report this.")

    monkeypatch.setattr(f"congenial.releases.{stage}", fail)
    seen = observe(privacy=QUICK)
    assert seen.code == 2
    assert seen.leaks(secrets()) == {}
    assert not (seen.place / "run" / "out").exists()


def test_counts_do_not_show_in_a_repr(observe):
    seen = observe(privacy=QUICK)
    counted = count(read_plan(seen.plan), base=seen.place)
    assert counted.excluded == EXCLUDED
    assert counted.counts[0] == TOTAL
    assert found_in(repr(counted), secrets()) == set()
    assert found_in(str(counted), secrets()) == set()


# What follows shows that each search above can fail.

PLANTED = 7351


def planting(monkeypatch, leak):
    """Let a release leak just before it draws."""
    settled = congenial.releases.making.make_release.checked_draws

    def leaky(resolved, drawn, counts):
        leak(int(counts.flat[np.flatnonzero(counts == PLANTED)[0]]))
        return settled(resolved, drawn, counts)

    monkeypatch.setattr(congenial.releases.making.make_release, "checked_draws", leaky)


@pytest.mark.parametrize(
    ("where", "leak"),
    [
        ("log", lambda n: logging.getLogger("congenial").debug("counted %d", n)),
        ("record 0", lambda n: logging.getLogger("congenial").debug("counted", extra={"n": n})),
        ("stdout", lambda n: sys.stdout.write(f"counted {n:,}")),
        ("stdout", lambda n: os.write(1, f"mean {n}.0".encode())),
        ("stderr", lambda n: os.write(2, str(n).encode())),
        ("notes.txt", lambda n: Path("run/notes.txt").write_text(f"[{n}]")),
    ],
)
def test_a_planted_leak_is_found(observe, monkeypatch, where, leak):
    planting(monkeypatch, leak)
    found = observe(privacy=QUICK).leaks(secrets())
    assert any(PLANTED in numbers for numbers in found.values())
    assert where in found or where.startswith("record")


def test_a_leak_into_certificate_or_tables_is_found(observe, monkeypatch):
    told = f"{EXCLUDED} rows excluded"
    monkeypatch.setattr(congenial.releases.certificate, "versions", lambda: {"rows": told})
    monkeypatch.setattr(congenial.releases.sentences, "rows_left_out", lambda _: told)
    write = files.write_tables

    def leaky(place, names, tree, value, **options):
        write(place, names, tree, value, truth=np.full(len(tree), PLANTED), stamped=False)

    monkeypatch.setattr(files, "write_tables", leaky)
    found = observe(privacy=QUICK).leaks(secrets())
    assert EXCLUDED in found[f"out/{files.CERTIFICATE}"]
    assert EXCLUDED in found["stdout"]
    assert PLANTED in found[f"out/{files.CSV}"]
    assert PLANTED in found[f"out/{files.PARQUET}"]


def test_a_release_without_noise_is_found(observe, monkeypatch):
    written = files.write_tables
    held = {}

    def remember(resolved, drawn, counts):
        held["counts"] = counts
        return drawn

    def bare(place, names, tree, value, **options):
        written(place, names, tree, held["counts"], **options)

    monkeypatch.setattr(congenial.releases.making.make_release, "checked_draws", remember)
    monkeypatch.setattr(files, "write_tables", bare)
    values = observe().values()
    assert len(kept(values)) == 10


def test_a_leak_in_an_error_is_found(observe, monkeypatch):
    def fail(resolved, drawn, counts):
        raise congenial.errors.NumericalError(f"the total {counts[0]} cannot be kept.")

    monkeypatch.setattr(congenial.releases.making.make_release, "checked_draws", fail)
    assert observe(privacy=QUICK).leaks(secrets()) == {"stderr": {TOTAL}}


def test_digits_inside_other_numbers_are_no_leak():
    assert found_in("17351 73510 1.7351 7351a", {PLANTED}) == {PLANTED}
    assert found_in("17351 73510 1.7351", {PLANTED}) == set()
    assert found_in("7,351 or 7_351", {PLANTED}) == {PLANTED}
    assert found_in("7351".rjust(64, "a"), {PLANTED}) == set()  # a digest
    assert found_in("7351".rjust(63, "a"), {PLANTED}) == {PLANTED}
