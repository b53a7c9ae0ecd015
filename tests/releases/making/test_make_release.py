"""A release is written completely or not at all, and describes itself."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import duckdb
import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.data.counts import count
from congenial.errors import CongenialError, InvariantError, NumericalError, ReleaseError
from congenial.ledger.debits import read_ledger
from congenial.plan.plan import read_plan
from congenial.releases import directory as files
from congenial.releases.making.make_release import release
from congenial.releases.model import build_model, choose_method
from congenial.verification.verdict import verify
from support.city import SECTIONS, TRIPS, ZONES, listing, make_city
from support.ledgers import make_ledger


def make(place, out=None, plan=None, **options):
    """Release the plan of a small city."""
    plan = plan or make_city(place)
    return release(read_plan(plan), out or place / "out", base=place, **options)


def rows_of(directory):
    """Return the released table as the CSV has it."""
    with (directory / files.CSV).open(newline="") as file:
        return list(csv.DictReader(file))


def test_there_is_one_row_for_each_node_and_sums_hold(tmp_path):
    made = make(tmp_path)
    rows = rows_of(made.directory)
    paths = ["root", "borough", "zone"]
    assert list(rows[0]) == ["level", "level_name", *paths, "value", "lower", "upper"]
    assert made.nodes == len(rows) == 10
    value = {(r["borough"], r["zone"]): int(r["value"]) for r in rows}
    assert value["", ""] == sum(TRIPS.values())
    assert value["", ""] == sum(v for (b, z), v in value.items() if b and not z)
    for borough in ("Arden", "Brook", "Combe"):
        below = [v for (b, z), v in value.items() if b == borough and z]
        assert value[borough, ""] == sum(below)
        assert min(below) >= 0
    assert {r["level_name"] for r in rows if r["level"] == "2"} == {"zone"}
    assert not made.simulated


def test_parquet_holds_the_same_rows(tmp_path):
    directory = make(tmp_path).directory
    found = duckdb.sql(f"SELECT * FROM '{directory / files.PARQUET}'")
    assert [str(t) for t in found.types] == ["BIGINT", *["VARCHAR"] * 4, *["BIGINT"] * 3]
    as_text = [["" if v is None else str(v) for v in row] for row in found.fetchall()]
    assert as_text == [list(row.values()) for row in rows_of(directory)]


def test_the_certificate_states_the_guarantee(tmp_path):
    made = make(tmp_path)
    stated = json.loads((made.directory / files.CERTIFICATE).read_text())
    assert stated["guarantee"]["epsilon"] == pytest.approx(1.0)
    neighbours = {"relation": "substitute", "records": 1, "row_filter_may_change": False}
    assert stated["guarantee"]["neighbours"] == neighbours
    assert stated["guarantee"]["unprotected"] == [{"kind": "exact-node", "path": ["City"]}]
    assert stated["guarantee"]["numerical_error"] == stated["guarantee"]["delta"] == 0
    base = stated["guarantee"]["base_epsilon"]
    assert stated["guarantee"]["gamma"] == pytest.approx(1 / base - 1)
    assert stated["guarantee"]["gamma_source"] == "proved-bound"
    scales = [v["scale"] for v in stated["noise"]["levels"]]
    assert scales == pytest.approx([None, 2 / (0.4 * base), 2 / (0.6 * base)])
    assert stated["simulation"] is None
    assert stated["files"][files.CSV] == files.sha256(made.directory / files.CSV)
    assert set(stated["versions"]) == {"congenial", "python", "numpy", "numba", "duckdb"}
    assert stated["domain"]["row_filter"] is None


def test_certificate_names_no_directory_of_this_machine(tmp_path):
    place = tmp_path / "deep"
    place.mkdir()
    plan = make_city(
        place,
        data=f"""
        source = "{place / "rows.csv"}"
        lookup = {{ source = "{place / "zones.csv"}", key = "zone_id", on = "zone" }}
        """,
    )
    made = make(tmp_path, plan=plan)
    text = (made.directory / files.CERTIFICATE).read_text()
    assert str(tmp_path) not in text
    assert '"rows.csv"' in text


def test_draws_are_fresh_and_simulations_are_not(tmp_path):
    plan = make_city(tmp_path)
    fresh = {
        (make(tmp_path, tmp_path / f"fresh{i}", plan).directory / files.CSV).read_text()
        for i in range(3)
    }
    assert len(fresh) == 3
    same = {
        (make(tmp_path, tmp_path / f"same{i}", plan, simulate=7).directory / files.CSV).read_text()
        for i in range(2)
    }
    other = make(tmp_path, tmp_path / "other", plan, simulate=8).directory / files.CSV
    assert len(same | {other.read_text()}) == 2


def test_a_simulation_is_stamped_everywhere(tmp_path):
    made = make(tmp_path, simulate=1)
    assert made.simulated
    assert files.STAMP == "SIMULATION: NOT PRIVATE"
    assert {row["note"] for row in rows_of(made.directory)} == {files.STAMP}
    assert files.STAMP in (made.directory / files.MARKER).read_text()
    assert made.certificate.stamp == files.STAMP
    assert made.certificate.sentence.startswith(files.STAMP)
    assert "truth" not in rows_of(made.directory)[0]


def test_truth_is_written_in_simulations_only(tmp_path):
    with pytest.raises(ReleaseError, match="only a simulation"):
        make(tmp_path, with_truth=True)
    assert not (tmp_path / "out").exists()
    rows = rows_of(make(tmp_path, simulate=1, with_truth=True).directory)
    truth = {int(r["zone"]): int(r["truth"]) for r in rows if r["zone"]}
    assert truth == TRIPS


def test_a_frame_is_counted_in_place_of_the_source(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"zone": [z for z, n in TRIPS.items() for _ in range(2 * n)]})
    rows = rows_of(make(tmp_path, frame=frame).directory)
    assert int(rows[0]["value"]) == 2 * sum(TRIPS.values())


HIERARCHY = 'root = "City"\nlevels = ["borough", "zone"]\ndomain = "{}"'
SHARES = 'neighbours = "{}"\nepsilon = 1.0\nsplit = {{ root = 0.2, borough = 0.3, zone = 0.5 }}'
PLANS = {
    "imaging": {"method": 'name = "imaging"'},
    "equalities": {"invariants": 'publish_exactly = ["root"]'},
    "equal shares": {"privacy": 'neighbours = "substitute"\nepsilon = 0.5'},
    "a borough and a zone": {
        "invariants": 'publish_exactly = ["root", "Brook", "Arden/2"]\nnonnegative = true'
    },
    "boroughs": {
        "invariants": 'publish_exactly = ["root", "borough"]\nnonnegative = true',
        "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
    },
    "add-remove": {"privacy": SHARES.format("add-remove"), "invariants": "nonnegative = true"},
    "add-remove, imaging": {
        "privacy": SHARES.format("add-remove"),
        "invariants": "nonnegative = true",
        "method": 'name = "imaging"',
    },
    "nothing exact": {"privacy": SHARES.format("substitute"), "invariants": ""},
    "nodes from the rows": {"hierarchy": HIERARCHY.format("data")},
    "nodes from a file": {"hierarchy": HIERARCHY.format("nodes.csv")},
}


@pytest.mark.parametrize("name", PLANS)
def test_every_kind_of_plan_is_released_and_verified(tmp_path, name):
    (tmp_path / "nodes.csv").write_text(
        "borough,zone\n" + "".join(f"{borough},{zone}\n" for zone, borough in ZONES.items())
    )
    made = make(tmp_path, plan=make_city(tmp_path, **PLANS[name]), simulate=4, with_truth=True)
    assert [check for check in verify(made.directory) if not check.passed] == []
    stated = made.certificate.guarantee
    asked = read_plan(tmp_path / "plan.toml").privacy.epsilon
    # a substitution never changes the total, so its share of the budget is not spent
    assert stated.epsilon == pytest.approx(0.8 * asked if name == "nothing exact" else asked)
    for row in rows_of(made.directory):
        exact = f"the exact count of {row['root']}"
        exact += "".join(f"/{part}" for part in (row["borough"], row["zone"]) if part)
        if exact in stated.unprotected:
            assert row["value"] == row["truth"]
    # a zone without a trip is a node, unless the nodes come from the rows
    zones = {row["zone"] for row in rows_of(made.directory)}
    assert ("2" in zones) is (name != "nodes from the rows")


def test_names_that_need_quotes_survive(tmp_path):
    zones = {1: 'Say "no", Sir', 2: " lead", 3: "NULL", 4: "O'Hara"}
    place, odd = tmp_path, tmp_path / "odd [a]*? it's"
    odd.mkdir()
    plan = make_city(place, zones={}, trips={1: 5, 2: 5, 3: 5, 4: 5})
    with (place / "zones.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("zone_id", "borough"), *zones.items()])
    made = release(read_plan(plan), odd / "out", base=place)
    assert {r["borough"] for r in rows_of(made.directory)} >= {'Say "no", Sir', "NULL", "O'Hara"}
    assert all(check.passed for check in verify(made.directory))


def test_an_older_release_is_replaced_only_with_overwrite(tmp_path):
    plan = make_city(tmp_path)
    make(tmp_path, plan=plan, simulate=1)
    before = (tmp_path / "out" / files.CSV).read_text()
    with pytest.raises(ReleaseError, match="' holds a release; give `overwrite=True`"):
        make(tmp_path, plan=plan)
    assert (tmp_path / "out" / files.CSV).read_text() == before
    make(tmp_path, plan=plan, overwrite=True)
    # nothing of the simulation stays behind
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(
        [files.CERTIFICATE, files.CSV, files.PARQUET]
    )
    assert listing(tmp_path) == sorted(
        ["out", "plan.toml", "rows.csv", "zones.csv"]
        + [f"out/{n}" for n in (files.CERTIFICATE, files.CSV, files.PARQUET)]
    )


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('where = "hour >= 18"', "does not fit its columns .hour VARCHAR"),
        ('where = "random() < 0.5"', r"calls random\(\)"),
        ('where = "minute = 3"', "names 'minute', which is no column of 'rows.csv'"),
        ('types = { minute = "INTEGER" }', "'minute'"),
    ],
)
def test_wrong_columns_are_told_before_an_older_release(tmp_path, data, told):
    make(tmp_path, simulate=1)
    plan = make_city(tmp_path, data=f"{textwrap.dedent(SECTIONS['data'])}{data}")
    with pytest.raises(CongenialError, match=told):
        make(tmp_path, plan=plan)


def test_overwriting_without_an_atomic_exchange(tmp_path, monkeypatch):
    plan = make_city(tmp_path)
    make(tmp_path, plan=plan)
    monkeypatch.setattr("congenial.releases.atomic_directory._exchange", lambda one, other: False)
    make(tmp_path, plan=plan, simulate=1, overwrite=True)
    assert (tmp_path / "out" / files.MARKER).exists()
    assert not [name for name in listing(tmp_path) if "partial" in name or "old" in name]


def test_a_failed_replacement_leaves_the_older_release(tmp_path, monkeypatch):
    plan = make_city(tmp_path)
    make(tmp_path, plan=plan)
    before = (tmp_path / "out" / files.CSV).read_text()
    monkeypatch.setattr("congenial.releases.atomic_directory._exchange", lambda one, other: False)
    rename = os.rename

    def refuse(one, other):
        if str(one).endswith(".partial"):
            raise OSError(errno.EIO, "Input/output error")
        rename(one, other)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(ReleaseError, match="input/output error"):
        make(tmp_path, plan=plan, overwrite=True)
    assert (tmp_path / "out" / files.CSV).read_text() == before
    assert not [name for name in listing(tmp_path) if "partial" in name or ".old" in name]


def test_overwrite_never_deletes_what_is_not_a_release(tmp_path):
    plan = make_city(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(ReleaseError, match=r"thesis\.tex.*no part of a release"):
        make(tmp_path, tmp_path / "home", plan, overwrite=True)
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years of work"


def test_an_empty_directory_is_filled(tmp_path):
    (tmp_path / "out").mkdir()
    assert (make(tmp_path).directory / files.CERTIFICATE).exists()


@pytest.mark.parametrize("kind", ["file", "parent missing", "parent is a file", "dangling link"])
def test_a_place_that_cannot_be_written_is_refused_before_counting(tmp_path, monkeypatch, kind):
    plan = make_city(tmp_path)
    (tmp_path / "taken").write_text("here first")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    out = (
        tmp_path
        / {
            "file": "taken",
            "parent missing": "no/such/out",
            "parent is a file": "taken/out",
            "dangling link": "link",
        }[kind]
    )
    monkeypatch.setattr(
        "congenial.releases.making.make_release.open_source",
        lambda *a, **k: pytest.fail("rows were counted"),
    )
    before = listing(tmp_path)
    with pytest.raises(ReleaseError, match="another `out`"):
        make(tmp_path, out, plan)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_file_system_that_refuses_is_one_sentence(tmp_path, monkeypatch, code):
    plan = make_city(tmp_path)
    before = listing(tmp_path)

    def refuse(*_, **__):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files, "write_tables", refuse)
    with pytest.raises(ReleaseError, match=os.strerror(code).lower()):
        make(tmp_path, plan=plan)
    assert listing(tmp_path) == before


@pytest.mark.parametrize(
    "stage",
    [
        "making.make_release._counted",
        "making.make_release.files.write_tables",
        "making.make_release.certify",
        "atomic_directory._settle",
        "atomic_directory._put",
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, CongenialError])
def test_no_failure_leaves_files(tmp_path, monkeypatch, stage, error):
    plan = make_city(tmp_path)
    before = listing(tmp_path)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(f"congenial.releases.{stage}", fail)
    with pytest.raises(error):
        make(tmp_path, plan=plan)
    assert listing(tmp_path) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, CongenialError])
@pytest.mark.parametrize("stage", ["making.make_release._draw", "making.make_release._counted"])
def test_a_failure_after_the_debit_says_that_it_stays(tmp_path, monkeypatch, stage, error):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\nledger = "ledger"'
    plan, path = make_city(tmp_path, privacy=privacy), make_ledger(tmp_path)

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(f"congenial.releases.{stage}", fail)
    with pytest.raises(error) as caught:
        make(tmp_path, plan=plan, simulate=None)
    notes = getattr(caught.value, "__notes__", [])
    spent = [account.total() for account in read_ledger(path).accounts]
    if stage.endswith("_counted"):
        assert not notes
        assert not spent
    else:
        (amount,), (note,) = spent, notes
        assert str(amount) in note.lower()
        assert "another try is debited again" in notes[0]


def test_a_full_disk_is_found_before_the_debit(tmp_path, monkeypatch):
    privacy = 'neighbours = "substitute"\nepsilon = 1.0\nledger = "ledger"'
    plan, path = make_city(tmp_path, privacy=privacy), make_ledger(tmp_path)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=16543))
    kept = "has 16.5 kB left, and a release of 10 counts takes 16.5 kB or more"
    with pytest.raises(ReleaseError, match=kept) as found:
        make(tmp_path, plan=plan, simulate=None)
    assert not getattr(found.value, "__notes__", [])
    assert not [account.total() for account in read_ledger(path).accounts]
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=16544))
    assert make(tmp_path, plan=plan, simulate=None).nodes == 10
    assert (tmp_path / "out" / files.CERTIFICATE).stat().st_size > 4096


def test_a_draw_that_breaks_an_invariant_is_held_back(tmp_path, monkeypatch):
    plan = make_city(tmp_path)

    def off_by_one(self, x, size=None, rng=None):
        return x + np.eye(len(x), dtype=np.int64)[3]

    monkeypatch.setattr(Conditioned, "sample", off_by_one)
    with pytest.raises(NumericalError, match="nothing is released"):
        make(tmp_path, plan=plan)
    assert not (tmp_path / "out").exists()


def test_rows_that_break_a_bound_are_refused_with_a_method_that_takes_them(tmp_path):
    bounds = 'publish_exactly = ["root"]\nat_most = {"Arden/1" = 1}'
    plan = read_plan(make_city(tmp_path, method='name = "conditioning"', invariants=bounds))
    with pytest.raises(InvariantError, match=r"topdown.*A debit in a ledger stays") as found:
        release(plan, tmp_path / "out", base=tmp_path)
    assert not any(character.isdigit() for character in str(found.value))
    made = read_plan(make_city(tmp_path, method='name = "topdown"', invariants=bounds))
    release(made, tmp_path / "out", base=tmp_path)


def test_each_step_is_announced_without_a_number(tmp_path):
    steps = []
    make(tmp_path, notify=steps.append)
    assert steps == [
        "reading the domain",
        "counting rows",
        "preparing the sampler",
        "drawing",
        "writing",
    ]


def test_released_noise_has_the_planned_size(tmp_path):
    """Mean absolute error of a zone, bounds out of reach, against the law under equalities."""
    plan = read_plan(make_city(tmp_path, trips=dict.fromkeys(TRIPS, 4000)))
    counted = count(plan, base=tmp_path)
    model = build_model(plan, counted.domain)
    drawn = choose_method(model).sample(counted.counts, size=4000, rng=cg.seeded(11))
    zones = np.flatnonzero(counted.domain.level == 2)
    error = np.abs(drawn - counted.counts)[:, zones].mean()
    equalities = cg.consistent(counted.domain) & cg.exactly("root")

    def expected(factor):
        noise = cg.DiscreteLaplace(factor * model.mechanism.scales)
        law = cg.condition(cg.Additive(noise, counted.domain), equalities)
        zeros = np.zeros(len(counted.domain), dtype=np.int64)
        tables = [law.marginal(int(zone), zeros) for zone in zones]
        return np.mean([(np.abs(value) * weight).sum() for value, weight in tables])

    # 24,000 errors whose spread is about their mean: 5% is more than five standard errors, even
    # with as few as 10,000 of them independent
    assert error == pytest.approx(expected(1.0), rel=0.05)
    assert error != pytest.approx(expected(1.3), rel=0.05)
    assert error != pytest.approx(expected(0.7), rel=0.05)


# The release waits where the test asks it to, so that the signal comes in the middle of it.
HOLD = """
import sys, time
import importlib
from congenial.cli import main
def hold(*a, **k):
    print("holding", flush=True)
    time.sleep(30)
module, attribute = {stage!r}.rsplit(".", 1)
setattr(importlib.import_module("congenial.releases." + module), attribute, hold)
sys.argv = ["congenial", "release", *{arguments!r}]
main()
"""


def interrupt(place, stage, sent, *arguments):
    """Send a signal to a release that is in the middle of a stage; return code and output."""
    # a shell that runs us in the background may have made its children deaf to interrupts
    heard = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    )
    program = heard + HOLD.format(stage=stage, arguments=[str(v) for v in arguments])
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "holding\n"
            assert any("partial" in name for name in listing(place))
            process.send_signal(sent)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    return process.returncode, out, err


@pytest.mark.parametrize(
    "stage", ["making.make_release._counted", "directory.write_tables", "atomic_directory._settle"]
)
@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_an_interrupted_run_leaves_nothing(tmp_path, stage, sent, code):
    plan = make_city(tmp_path)
    before = listing(tmp_path)
    ended, out, err = interrupt(tmp_path, stage, sent, plan, "--out", tmp_path / "out")
    assert ended == code
    assert out == ""
    told = "Interrupted: no partial release is left behind." if sent == signal.SIGINT else ""
    said = [line for line in err.splitlines() if line and not line.startswith("Compiling")]
    assert "\n".join(said) == told
    assert listing(tmp_path) == before


def test_an_interrupted_replacement_keeps_the_older_release(tmp_path):
    plan, out = make_city(tmp_path), tmp_path / "out"
    release(read_plan(plan), out, base=tmp_path)
    before = (out / files.CSV).read_bytes()
    ended, _, _ = interrupt(
        tmp_path, "atomic_directory._settle", signal.SIGINT, plan, "--out", out, "--overwrite"
    )
    assert ended == 130
    assert (out / files.CSV).read_bytes() == before
    assert not [name for name in listing(tmp_path) if "partial" in name]
