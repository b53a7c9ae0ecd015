"""Two products of one spending: the table, and the measurements from which it was made."""

from __future__ import annotations

import csv
import json
import shutil

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import imaged_guarantee
from congenial.cli.command_line import run
from congenial.data.counts import build_domain
from congenial.errors import CongenialError, ReleaseError
from congenial.imaging.following import follows
from congenial.ledger.debits import read_ledger
from congenial.plan.plan import read_plan
from congenial.randomness import seeded
from congenial.releases import directory as files
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method
from congenial.verification.verdict import verify
from support.city import TRIPS, listing, make_city
from support.edited import change, failed, rewrite

BOTH = 'publish = ["table", "measurements"]'
FREE = 'publish_exactly = ["root"]'
LEAVES = 'neighbours = "substitute"\nepsilon = 1.0\nsplit = { zone = 1.0 }'
PLANS = {
    "l2": {"method": 'name = "imaging"'},
    "l1": {"method": 'name = "imaging"\nnorm = "l1"'},
    "topdown": {"method": 'name = "topdown"'},
    "leaves": {"method": 'name = "topdown"', "privacy": LEAVES},
    "free": {"method": 'name = "imaging"', "invariants": FREE},
}


def city_plan(place, name):
    return read_plan(make_city(place, release=BOTH, **PLANS[name]))


@pytest.fixture(scope="module")
def pristine(tmp_path_factory):
    """Return a directory with a release of every plan."""
    place = tmp_path_factory.mktemp("published")
    for name in PLANS:
        release(city_plan(place, name), place / name, base=place)
    return place


@pytest.fixture
def spoilt(pristine, tmp_path):
    """Return a release of its own to spoil."""
    return shutil.copytree(pristine / "l2", tmp_path / "l2")


@pytest.mark.parametrize("name", sorted(PLANS))
def test_a_release_of_both_passes_every_check(pristine, name):
    checks = {check.name: check for check in verify(pristine / name)}
    assert all(check.passed for check in checks.values())
    assert {"published", "measurements", "table from measurements", "intervals"} <= set(checks)
    stated = json.loads((pristine / name / files.CERTIFICATE).read_text())
    assert stated["published"] == ["table", "measurements"]
    assert set(files.MEASUREMENTS) < set(stated["files"])


@pytest.mark.parametrize("name", sorted(PLANS))
def test_the_file_contains_the_measurements(pristine, name):
    found = cg.inference.read_measurements(pristine / name)
    again = cg.inference.read_measurements(pristine / name / files.MEASUREMENTS_PARQUET)
    np.testing.assert_array_equal(found.y, again.y)
    with (pristine / name / files.MEASUREMENTS_CSV).open(newline="") as file:
        rows = list(csv.DictReader(file))
    kind = {r["noise"] for r in rows}
    assert kind <= {"none: exact", "none: not measured", "discrete-laplace"}
    assert ("none: not measured" in kind) is (name == "leaves")
    for v, row in enumerate(rows):
        assert row["measurement"] == ("" if np.isnan(found.y[v]) else str(int(found.y[v])))
        scale = found.mechanism.scales[v]
        assert row["scale"] == (str(float(scale)) if np.isfinite(scale) else "")
        assert (row["noise"] == "none: exact") == (v == 0)
    assert found.y[0] == sum(TRIPS.values())


def test_a_posterior_can_be_taken_of_the_file(pristine):
    found = cg.inference.read_measurements(pristine / "free")
    law = cg.posterior(found.y, found.mechanism, found.invariant & cg.nonnegative())
    draws = law.sample(50, seeded(1))
    assert (draws[:, 0] == sum(TRIPS.values())).all() and (draws >= 0).all()
    assert all(found.tree.is_consistent(z) for z in draws)


def test_the_joint_claim_is_that_of_the_noise_at_all_that_is_not_exact(pristine):
    stated = json.loads((pristine / "l2" / files.CERTIFICATE).read_text())
    found = cg.inference.read_measurements(pristine / "l2")
    imaged = cg.image(found.mechanism, found.invariant, integer=True)
    alone = imaged_guarantee(found.mechanism, imaged.resolved, "substitute", sampler_error=0.0)
    assert stated["guarantee"]["epsilon"] == pytest.approx(alone.epsilon)
    # a record moves between two boroughs and two zones, each count changing by one
    worst = 2 / found.mechanism.scales[1] + 2 / found.mechanism.scales[2]
    assert alone.epsilon == pytest.approx(worst)


def test_measurements_are_unbiased_and_not_cut_at_zero(tmp_path):
    model = build_model(plan := city_plan(tmp_path, "l2"), build_domain(plan, base=tmp_path))
    truth = model.tree.roll_up(np.array([31, 0, 12, 7, 25, 4]))
    y = choose_method(model).measure(truth, 4_000, seeded(1))
    scales = model.mechanism.scales
    spread = np.where(np.isfinite(scales), scales, 0.0) * np.sqrt(2 / 4_000)
    # p = 1e-6 for ten counts, and fails where noise is cut at 0
    assert (np.abs(y.mean(axis=0) - truth) <= 5.4 * spread).all()
    assert (np.abs(np.maximum(y, 0).mean(axis=0) - truth) > 5.4 * spread).any()


def test_publishing_both_changes_no_draw_and_costs_nothing(tmp_path):
    both = city_plan(tmp_path, "l2")
    table = read_plan(make_city(tmp_path, **PLANS["l2"]))
    one = release(both, tmp_path / "both", base=tmp_path, simulate=3)
    other = release(table, tmp_path / "table", base=tmp_path, simulate=3)
    assert one.certificate.guarantee == other.certificate.guarantee
    values = [files.read_table(tmp_path / d).column("value") for d in ("both", "table")]
    assert values[0] == values[1]
    assert not any((tmp_path / "table" / name).exists() for name in files.MEASUREMENTS)


def test_the_ledger_is_debited_once(tmp_path, capsys):
    ledger = tmp_path / "l.sqlite"
    assert run(["ledger", "init", str(ledger), "--epsilon", "3", "--delta", "1e-6"]) == 0
    privacy = (
        'neighbours = "substitute"\nepsilon = 1.0\nsplit = { borough = 0.4, zone = 0.6 }\n'
        'ledger = "l.sqlite"'
    )
    plan = make_city(tmp_path, release=BOTH, privacy=privacy, **PLANS["l2"])
    assert run(["release", str(plan), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "measurements.csv, measurements.parquet and certificate.json" in said
    accounts = read_ledger(ledger, neighbours="substitute")
    assert str(accounts).count("out") == 1
    assert failed(tmp_path / "out") == []


def test_conditioning_refuses_measurements_before_anything_is_read(tmp_path, capsys):
    plan = make_city(tmp_path, release=BOTH)
    before = listing(tmp_path)
    assert run(["release", str(plan), "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "cost epsilon again" in said and said.count("\n") == 1
    assert listing(tmp_path) == before


@pytest.mark.parametrize("name", sorted(PLANS))
def test_another_table_does_not_follow_from_the_measurements(pristine, name):
    """Three units moved between two zones of a borough, wherever that is not as close."""
    found = cg.inference.read_measurements(pristine / name)
    value = np.array(files.read_table(pristine / name).column("value"))
    tree, plan = found.tree, PLANS[name]
    known = found.invariant if name == "free" else found.invariant & cg.nonnegative()
    norm = "l1" if name == "l1" else "l2"
    engine = (
        cg.imaging.topdown_image(found.mechanism, known)
        if "topdown" in plan["method"]
        else cg.image(found.mechanism, known, norm, integer=True)
    )
    y = np.nan_to_num(found.y)
    assert follows(engine, y, value, seeded(4))
    precision = np.where(np.isnan(found.y), 0.0, 1.0 / found.mechanism.scales)
    told = 0
    for v in tree.leaves:
        siblings = tree.leaves[tree.parents[tree.leaves] == tree.parents[v]]
        for w in siblings[siblings != v]:
            other = value.copy()
            other[v] += 3
            other[w] -= 3
            if other.min() >= 0 or name == "free":
                # where both are as close in L1 no one could tell
                farther = precision @ (np.abs(other - y) - np.abs(value - y)) > 1e-9
                assert follows(engine, y, other, seeded(4)) == (name == "l1" and not farther)
                told += 1
    assert told


@pytest.mark.parametrize(
    ("query", "check"),
    [
        ("SELECT * REPLACE (measurement + (level = 2)::INT AS measurement) FROM t", "intervals"),
        (
            "SELECT * REPLACE (measurement + 9 * (level = 2)::INT AS measurement) FROM t",
            "intervals",
        ),
        ("SELECT * REPLACE (measurement + (level = 0)::INT AS measurement) FROM t", "measurements"),
        ("SELECT * REPLACE (scale * 2 AS scale) FROM t", "measurements"),
        ("SELECT * REPLACE ('discrete-gaussian' AS noise) FROM t", "measurements"),
        (
            "SELECT * REPLACE (nullif(measurement, measurement) AS measurement) FROM t",
            "measurements",
        ),
        ("SELECT * FROM t WHERE zone IS DISTINCT FROM '1'", "table"),
        ("SELECT * FROM t ORDER BY level DESC", "table"),
        ("SELECT * EXCLUDE (scale) FROM t", "table"),
        ("SELECT * FROM t WHERE false", "table"),
    ],
)
def test_changed_measurements_with_new_hashes_are_detected(spoilt, query, check):
    rewrite(spoilt, query, files.MEASUREMENTS)
    assert check in failed(spoilt)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * REPLACE (lower - 1 AS lower) FROM t",
        "SELECT * REPLACE (CASE WHEN level = 2 THEN NULL ELSE upper END AS upper) FROM t",
        "SELECT * REPLACE (lower + 1 AS lower, upper + 1 AS upper) FROM t",
    ],
)
def test_changed_intervals_with_new_hashes_are_detected(spoilt, query):
    rewrite(spoilt, query)
    assert failed(spoilt) == ["intervals"]


@pytest.mark.parametrize(
    ("part", "value", "check"),
    [
        (("published",), ["table"], "published"),
        (("published",), ["measurements", "table"], "published"),
        (("accuracy", "confidence"), 0.95, "intervals"),
        (("accuracy", "basis"), {"kind": "law"}, "intervals"),
        (("accuracy", "sums"), [], None),
        (("accuracy", "levels", 2, "margin"), 1, "intervals"),
        (("accuracy", "levels", 2, "required"), 1.0, "intervals"),
        (("accuracy", "levels", 2, "met"), True, "intervals"),
    ],
)
def test_the_certificates_statement_about_intervals_is_recomputed(spoilt, part, value, check):
    def put(stated):
        for key in part[:-1]:
            stated = stated[key]
        stated[part[-1]] = value

    change(spoilt, put)
    assert failed(spoilt) == ([] if check is None else [check])


def test_a_changed_sum_of_a_simulated_margin_is_found(tmp_path):
    """The ends come from a simulation, which its seed tells again."""
    sections = PLANS["free"] | {"accuracy": "sums = { some = ['Arden'] }"}
    release(read_plan(make_city(tmp_path, **sections)), tmp_path / "out", base=tmp_path)
    assert failed(tmp_path / "out") == []
    stated = json.loads((tmp_path / "out" / files.CERTIFICATE).read_text())["accuracy"]["sums"][0]
    for key, other in (
        ("value", stated["value"] + 1),
        ("upper", stated["upper"] + 1),
        ("name", "other"),
    ):
        spoilt = shutil.copytree(tmp_path / "out", tmp_path / key)

        def put(whole, key=key, other=other):
            whole["accuracy"]["sums"][0][key] = other

        change(spoilt, put)
        assert failed(spoilt) == ["intervals"]


def test_missing_or_additional_measurements_are_detected(spoilt, pristine, tmp_path):
    (spoilt / files.MEASUREMENTS_CSV).unlink()
    assert "hashes" in failed(spoilt)
    plan = read_plan(make_city(tmp_path, **PLANS["l2"]))
    release(plan, tmp_path / "table", base=tmp_path)
    for name in files.MEASUREMENTS:
        shutil.copy(pristine / "l2" / name, tmp_path / "table" / name)
    assert {"hashes", "measurement files"} <= set(failed(tmp_path / "table"))


def test_a_release_without_them_replaces_one_with_them_whole(tmp_path):
    release(city_plan(tmp_path, "l2"), tmp_path / "out", base=tmp_path)
    plan = read_plan(make_city(tmp_path))
    release(plan, tmp_path / "out", base=tmp_path, overwrite=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == sorted(files.ALWAYS)


def test_a_simulation_is_stamped_in_every_row(tmp_path):
    release(city_plan(tmp_path, "l2"), tmp_path / "out", base=tmp_path, simulate=1)
    table = files.read_table(tmp_path / "out", files.MEASUREMENTS)
    assert set(table.column("note")) == {files.STAMP}
    assert cg.inference.read_measurements(tmp_path / "out").y[0] == sum(TRIPS.values())
    assert failed(tmp_path / "out") == []


def test_a_simulation_hides_no_stamp_of_its_measurements(tmp_path):
    release(city_plan(tmp_path, "l2"), tmp_path / "sham", base=tmp_path, simulate=3)
    assert not failed(tmp_path / "sham")
    rewrite(tmp_path / "sham", "SELECT * REPLACE ('' AS note) FROM t", files.MEASUREMENTS)
    assert failed(tmp_path / "sham") == ["simulation"]


def test_the_truth_of_a_simulation_adds_up(tmp_path):
    plan = city_plan(tmp_path, "l2")
    release(plan, tmp_path / "sham", base=tmp_path, simulate=3, with_truth=True)
    assert not failed(tmp_path / "sham")
    changed = "SELECT * REPLACE (truth + (level = 2)::BIGINT AS truth) FROM t"
    rewrite(tmp_path / "sham", changed)
    assert failed(tmp_path / "sham") == ["simulation"]


def test_files_without_measurements_are_refused(pristine, tmp_path):
    with pytest.raises(ReleaseError, match=r"does not exist; give the directory .* publish = "):
        cg.inference.read_measurements(tmp_path)
    with pytest.raises(ReleaseError, match=r"give the measurements\.parquet of a"):
        cg.inference.read_measurements(pristine / "l2" / files.PARQUET)
    with pytest.raises(ReleaseError, match="cannot be read as a table"):
        cg.inference.read_measurements(pristine / "l2" / files.CERTIFICATE)
    broken = shutil.copytree(pristine / "l2", tmp_path / "broken")
    rewrite(broken, "SELECT * REPLACE (-scale AS scale) FROM t", files.MEASUREMENTS)
    with pytest.raises(ReleaseError, match="a measurement without its number or the law or scale"):
        cg.inference.read_measurements(broken)


def test_a_level_may_not_have_the_name_of_a_column_of_the_file(tmp_path):
    zones = 'root = "City"\nlevels = ["borough", "lower"]\ndomain = "lookup"'
    lookup = 'source = "rows.csv"\nlookup = { source = "zones.csv", key = "zone_id", on = "zone" }'
    split = 'neighbours = "substitute"\nepsilon = 1.0\nsplit = { borough = 0.4, lower = 0.6 }'
    plan = make_city(tmp_path, hierarchy=zones, data=lookup, privacy=split)
    (tmp_path / "zones.csv").write_text("zone_id,borough,lower\n1,A,1\n2,A,2\n")
    with pytest.raises(CongenialError, match="names 'lower', which the released table uses"):
        release(read_plan(plan), tmp_path / "out", base=tmp_path)
