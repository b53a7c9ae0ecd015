"""The plan that `congenial init` begins: its method, its intervals, and its errors; margins."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from congenial.cli import command_line as cli
from congenial.plan.draft import COARSE_TO_FINE, guess_levels
from congenial.plan.plan import read_plan
from congenial.preview.explanation import as_text, explain
from congenial.releases.making.make_release import release
from congenial.report.write import report
from support.city import ZONES, make_city
from support.cross_tables import random_rows, write_rows


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


LOOKUP = ("--lookup", "zones.csv", "--lookup-key", "zone_id", "--lookup-on", "zone")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a working directory with rows and a lookup."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("hour,zone\n3,1\n4,2\n5,4\n5,6\n")
    lines = "".join(f"{zone},{borough}\n" for zone, borough in ZONES.items())
    (tmp_path / "zones.csv").write_text(f"zone_id,borough\n{lines}")
    return tmp_path


@pytest.mark.parametrize(
    ("given", "method", "published", "source"),
    [
        ((), "posterior", ("table", "measurements"), "measurements"),
        (("--nonnegative", "no"), "conditioning", ("table",), "law"),
        (("--method", "topdown"), "topdown", ("table", "measurements"), "measurements"),
        (("--method", "conditioning"), "conditioning", ("table",), "inversion"),
        (("--nonnegative", "no", "--method", "imaging"), "imaging", ("table",), "simulation"),
        (
            ("--nonnegative", "no", "--method", "posterior"),
            "posterior",
            ("table", "measurements"),
            "measurements",
        ),
    ],
)
def test_every_count_of_a_plan_begun_by_init_has_an_interval(
    place, given, method, published, source
):
    assert run("init", "rows.csv", *LOOKUP, *given, "--yes") == 0
    plan = read_plan("plan.toml")
    assert (plan.method.name, plan.release.publish) == (method, published)
    assert run("release", "plan.toml", "--out", "out", "--simulate", 1) == 0
    certificate = json.loads(Path("out/certificate.json").read_text())
    assert certificate["accuracy"]["basis"]["kind"] == source
    with Path("out/release.csv").open(newline="") as file:
        assert all(row["lower"] and row["upper"] for row in csv.DictReader(file))


def test_on_skewed_counts_the_default_has_far_smaller_errors_than_conditioning():
    """The numbers of the changelog: a month of taxi trips by borough, zone and hour of the day."""
    taxi = Path(__file__).parents[2] / "examples" / "taxi"
    with (taxi / "taxi_zone_lookup.csv").open(encoding="utf-8", newline="") as file:
        boroughs = {row["LocationID"]: row["Borough"] for row in csv.DictReader(file)}
    trips = Counter()
    with gzip.open(taxi / "zone_hour_counts_2022_02.csv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            trips[row["zone_id"], row["hour"]] += int(row["trips"])
    paths = {
        ("city", borough, zone, str(hour)): trips[zone, str(hour)]
        for zone, borough in boroughs.items()
        if int(zone) <= 263
        for hour in range(24)
    }
    tree = cg.Tree.from_paths(list(paths))
    x = tree.roll_up([paths[tree.path(int(v))] for v in tree.leaves])
    mandates = cg.consistent(tree) & cg.exactly("city") & cg.nonnegative()

    def errors(method):
        noise = cg.calibrate(tree, mandates, epsilon=1.0, neighbours="substitute", method=method)
        mechanism = cg.Additive(noise, tree)
        made = (
            cg.condition(mechanism, mandates)
            if method == "conditioning"
            else cg.image(mechanism, mandates, integer=True)
        )
        assert made.guarantee("substitute").epsilon == pytest.approx(1.0)
        off = np.abs(made.sample(x, size=20, rng=cg.seeded(7)) - x).mean(axis=0)
        return [round(float(off[tree.level == depth].mean()), 1) for depth in (1, 2)]

    assert errors("conditioning") == pytest.approx([260, 32], rel=0.1)
    assert errors("imaging") == pytest.approx([5.3, 6.1], rel=0.4)


def accuracy_by_level(text):
    """Return the cells of the noise and the margin of the levels that are not exact."""
    rows = text[text.index('<table id="levels">') : text.index("</table>")].split("<tr>")[3:]
    cells = [re.findall(r"<td[^>]*>([^<]*)</td>", row) for row in rows]
    return [(row[2], row[4]) for row in cells]


@pytest.mark.parametrize("publish", ["", 'publish = ["table", "measurements"]'])
@pytest.mark.parametrize("method", ["conditioning", "imaging", "topdown"])
@pytest.mark.parametrize("bounds", [True, False])
def test_counts_under_bounds_have_no_error_margin_of_the_noise(tmp_path, method, publish, bounds):
    if method == "conditioning":
        publish = ""
    invariants = 'publish_exactly = ["root"]' + "\nnonnegative = true" * bounds
    plan = make_city(tmp_path, method=f'name = "{method}"', release=publish, invariants=invariants)
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=3)
    text = report(tmp_path / "out").read_text(encoding="utf-8")
    found = accuracy_by_level(text)
    assert len(found) == 2
    for noise, margin in found:
        assert ("±" not in noise) is bounds
        assert (not margin.startswith("±") or "around the measurement" in margin) is bounds
    assert f'"bent":{int(bounds)}' in text  # by which page.js leaves the sign out too
    assert ("Interval, 90%" in text) is bounds
    said = as_text(explain(read_plan(plan), tmp_path))
    assert ("  margin" in said) is not (bounds and bool(publish))
    assert ("measured within" in said) is (bounds and bool(publish))


@pytest.mark.parametrize(
    ("names", "guess"),
    [
        (["id", "Zone", "borough"], ("borough", "Zone")),
        (["clinicId", "DistrictName", "visits"], ("DistrictName", "clinicId")),
        (["pickup_zone", "dropoff_zone"], ("pickup_zone",)),
        (["when", "who"], ("when",)),
    ],
)
def test_levels_are_guessed_from_names(names, guess):
    assert guess_levels(dict.fromkeys(names, "VARCHAR")) == guess


def test_a_column_of_numbers_with_a_point_is_not_offered():
    assert guess_levels({"root": "VARCHAR", "cost": "DOUBLE", "kind": "VARCHAR"}) == ("kind",)
    assert len(set(COARSE_TO_FINE)) == len(COARSE_TO_FINE)


def test_a_table_is_drafted_from_attributes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path, random_rows(3))
    Path("ages.csv").write_text("age\n0-17\n18-64\n65+\n")
    begin = ("init", "people.csv", "--weight", "people", "--domain", "blocks.csv", "--yes")
    listed = ("--levels", "area,block", "--attributes", "sex=F,M; age=ages.csv")
    assert run(*begin, *listed, "--publish-exactly", "root", "--root", "Town") == 0
    text = Path("plan.toml").read_text()
    plan = read_plan("plan.toml")
    assert plan.attributes == {"sex": ("F", "M"), "age": ("0-17", "18-64", "65+")}
    assert plan.table.margins == ("total", "sex", "age", "sex by age")
    assert plan.method.name == "topdown"
    assert plan.release.publish == ("table", "measurements")
    assert plan.invariants.publish_exactly == ("root: total",)
    # every example in a comment is one of a valid plan
    Path("plan.toml").write_text(re.sub(r"(?m)^# (split|at_least|at_most) =", r"\1 =", text))
    assert set(read_plan("plan.toml").privacy.split) == {
        f"{level}: {margin}" for level in ("root", "area", "block") for margin in plan.table.margins
    } - {"root: total"}
    Path("plan.toml").write_text(text)
    assert run("release", "plan.toml", "--out", "out", "--simulate", 1) == 0
    assert run("verify", "out") == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("sex", "'sex' has no values"),
        ("sex=F,M; sex=F", "'sex' is given twice"),
        ("race=a,b", "'race' is no column"),
        ("sex=people.csv", "holds the confidential rows"),
        ("sex=sexes.csv", "sexes.csv"),
    ],
)
def test_wrong_attributes_are_refused_in_a_sentence(
    tmp_path, monkeypatch, capsys, attributes, message
):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path, random_rows(3))
    begin = ("init", "people.csv", "--weight", "people", "--domain", "blocks.csv", "--yes")
    assert run(*begin, "--levels", "area,block", "--attributes", attributes) != 0
    assert message in capsys.readouterr().err
    assert not Path("plan.toml").exists()
