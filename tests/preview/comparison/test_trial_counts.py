"""Counts to compare methods on: made up from public facts, or read from public counts."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest

import congenial as cg
from congenial.data.counts import build_domain
from congenial.errors import ArgumentError, DataError
from congenial.plan.plan import read_plan
from congenial.preview.comparison.trial_counts import (
    RECORDS,
    from_file,
    from_rows,
    made_up,
)
from support.city import TRIPS, ZONES, make_city

EXAMPLES = Path(__file__).parents[3] / "examples"
WIDE = cg.Tree.from_paths([("all", f"a{i}", f"{i}-{j}") for i in range(40) for j in range(50)])


@pytest.mark.parametrize("total", [1, 7, 2000, 123_457, 2**52])
@pytest.mark.parametrize("spread", [0.0, 2.0, 10.0])
def test_made_up_counts_have_the_stated_total_and_add_up(total, spread):
    found = made_up(WIDE, seed=4, total=total, spread=spread)
    assert found.counts[0] == total
    assert WIDE.is_consistent(found.counts)
    assert (found.counts >= 0).all()
    assert found.stamp is None
    assert f"--total {total}" in found.options
    assert f"{total:,} records" in found.text


def test_a_default_total_is_stated():
    found = made_up(WIDE, seed=4)
    assert found.counts[0] == RECORDS * 2000
    assert f"{RECORDS} a leaf" in found.text
    assert "--total" not in found.options


def test_the_seed_decides_and_the_spread_is_that_of_logs():
    one, same, other = (made_up(WIDE, seed=s, total=10**9).counts for s in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)
    for spread in (0.5, 2.0):
        x = made_up(WIDE, seed=1, total=2**52, spread=spread).counts
        logs = np.log(x[WIDE.leaves]).reshape(40, 50)
        within = np.sqrt(logs.var(axis=1, ddof=1).mean())
        # 1,960 degrees of freedom: the estimate is within 8% of the truth
        assert within == pytest.approx(spread, rel=0.08)
        between = np.log(x[WIDE.level == 1]).std(ddof=1)
        assert between == pytest.approx(spread, rel=0.6)
    equal = made_up(WIDE, seed=1, total=6000, spread=0.0).counts
    assert set(equal[WIDE.leaves].tolist()) == {3}


def shares(x):
    """Percentages of 0, 1 to 9, 10 to 99 and more, and the share of the largest tenth."""
    ends = np.searchsorted(np.sort(x), [1, 10, 100, np.inf])
    parts = np.diff(ends, prepend=0) / x.size
    return [
        *np.rint(100 * parts).astype(int),
        round(np.sort(x)[-(x.size // 10) :].sum() / x.sum(), 2),
    ]


def taxi_hours():
    """Return the tree of boroughs, zones and hours, and the month's trips of its leaves."""
    with (EXAMPLES / "taxi" / "taxi_zone_lookup.csv").open(newline="") as file:
        zones = [(row["Borough"], int(row["LocationID"])) for row in csv.DictReader(file)]
    zones = [(borough, zone) for borough, zone in zones if zone <= 263]
    trips = Counter()
    with gzip.open(EXAMPLES / "taxi" / "zone_hour_counts_2022_02.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            trips[int(row["zone_id"]), int(row["hour"])] += int(row["trips"])
    paths = [
        ("NYC", borough, f"{zone}", f"{hour}") for borough, zone in zones for hour in range(24)
    ]
    return cg.Tree.from_paths(paths), [trips[int(zone), int(hour)] for *_, zone, hour in paths]


def blocks():
    """Return the tree of Washington's blocks, their people, and those of their cells."""
    with gzip.open(EXAMPLES / "washington" / "wa_2010_blocks_race_vap.csv.gz", "rt") as file:
        rows = list(csv.reader(file))[1:]
    paths = [("WA", g[2:5], g[5:11], g[11], g[12:]) for g, *_ in rows]
    return (
        cg.Tree.from_paths(paths),
        [int(row[1]) for row in rows],
        np.array([row[2:] for row in rows], dtype=np.int64).ravel(),
    )


def test_the_made_up_counts_have_the_documented_features_of_the_data():
    taxi, trips = taxi_hours()
    assert shares(np.array(trips)) == [22, 38, 18, 22, 0.85]
    made = made_up(taxi, seed=1).counts[taxi.leaves]
    assert shares(made) == [38, 41, 18, 4, 0.84]
    washington, people, cells = blocks()
    assert shares(np.array(people)) == [39, 14, 38, 8, 0.6]
    assert shares(cells) == [83, 13, 4, 0, 0.95]
    assert shares(made_up(washington, seed=1).counts[washington.leaves]) == [56, 32, 9, 2, 0.95]


@pytest.mark.parametrize(("given", "name"), [({"total": 0}, "total"), ({"spread": -0.1}, "spread")])
def test_numbers_out_of_range_are_refused(given, name):
    with pytest.raises(ArgumentError, match=f"{name} is"):
        made_up(WIDE, seed=1, **given)


@pytest.fixture
def city(tmp_path):
    """Return the plan and the tree of the small city, and where they are."""
    plan = read_plan(make_city(tmp_path))
    return plan, build_domain(plan, base=tmp_path), tmp_path


def written(place, text):
    """Write a file of public counts."""
    file = place / "public.csv"
    file.write_text(text)
    return file


def test_counts_of_the_leaves_are_used_unchanged(city):
    plan, tree, place = city
    rows = "".join(f"{n},{zone},{ZONES[zone]}\n" for zone, n in TRIPS.items())
    found = from_file(plan, tree, written(place, "Count,ZONE,Borough\n" + rows), seed=1)
    assert np.array_equal(found.counts, tree.roll_up(np.array(list(TRIPS.values()))))
    assert found.options == "--counts public.csv"


def test_coarse_counts_are_split_among_leaves(city):
    plan, tree, place = city
    file = written(place, "borough,value\nArden,500\nBrook,0\n")
    found = from_file(plan, tree, file, seed=1)
    assert found.counts[tree.level == 1].tolist() == [500, 0, 0]
    assert tree.is_consistent(found.counts)
    assert (found.counts[tree.find("Arden") + 1 :][:3] > 0).any()
    assert "(1 of its 3 nodes are missing and count as 0)" in found.text
    assert "divided below that level" in found.text
    again = from_file(plan, tree, file, seed=2)
    assert not np.array_equal(found.counts, again.counts)


def test_the_deepest_level_of_a_file_is_used(city):
    plan, tree, place = city
    rows = "borough,zone,count\n,,99\nArden,,50\nArden,1,7\nCombe,6,3\n"
    found = from_file(plan, tree, written(place, rows), seed=1)
    assert found.counts[0] == 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("borough,zone\nArden,1\n", "has the columns borough, zone; give it"),
        ("zone,count\n1,4\n", "has the columns zone, count; give it borough"),
        ("a,count\n1,4\n", "has the columns a, count"),
        ("borough,zone,count\n", "holds no rows"),
        ("borough,zone,count\nArden,9,4\n", "names 'City/Arden/9', which is no node"),
        ("borough,zone,count\nArden,1,4\nArden,1,5\n", "names 'City/Arden/1' twice"),
        ("borough,zone,count\nArden,1,-4\n", "no count from 0 to 2\\^52 for 'City/Arden/1'"),
        ("borough,zone,count\nArden,1,\n", "no count from 0 to 2\\^52 for 'City/Arden/1'"),
        ("borough,zone,count\nArden,1,many\n", "no count from 0 to 2\\^52"),
        ("borough,zone,count\nArden,1,5.5\n", "for 'City/Arden/1'; give a whole number"),
        ("borough,zone,count\nArden,1,nan\n", "for 'City/Arden/1'; give a whole number"),
        ("borough,zone,count\n,1,4\n", "has a row with a gap in its path"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_in_one_sentence(city, text, message):
    plan, tree, place = city
    with pytest.raises(DataError, match=message) as caught:
        from_file(plan, tree, written(place, text), seed=1)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["none.csv", ".", "x.txt"])
def test_a_file_that_cannot_be_read_is_reported(city, name):
    plan, tree, place = city
    (place / "x.txt").write_bytes(b"\x00\xff")
    with pytest.raises(DataError, match="`counts`"):
        from_file(plan, tree, place / name, seed=1)


def test_rows_are_counted_and_stamped_unless_they_are_public(city):
    plan, tree, place = city
    truth = tree.roll_up(np.array(list(TRIPS.values())))
    public, secret = (from_rows(plan, tree, place, public=p) for p in (True, False))
    assert np.array_equal(public.counts, truth)
    assert np.array_equal(secret.counts, truth)
    assert public.stamp is None
    assert secret.stamp == "SIMULATION: NOT PRIVATE"
    assert "declares public" in public.text


def test_the_plans_own_rows_are_refused_as_public_counts_under_any_name(city):
    plan, tree, place = city
    rows = place / "rows.csv"
    rows.write_text("borough,zone,count\nArden,1,4\n")
    (place / "symbolic.csv").symlink_to(rows)
    (place / "hard.csv").hardlink_to(rows)
    for name in (
        "rows.csv",
        "../" + place.name + "/rows.csv",
        "symbolic.csv",
        "hard.csv",
        "r*.csv",
    ):
        with pytest.raises(DataError, match=r"own rows \(data.source\); give a file of public"):
            from_file(plan, tree, place / name, place, seed=1)
    # one of several, another of which cannot be read
    many = msgspec.structs.replace(plan, data=msgspec.structs.replace(plan.data, source="r*.csv"))
    (place / "r.csv").write_text("")
    with pytest.raises(DataError, match=r"own rows \(data.source\); give a file of public"):
        from_file(many, tree, place / "hard.csv", place, seed=1)
    copied = written(place, rows.read_text())
    assert from_file(plan, tree, copied, place, seed=1).counts[0] == 4
