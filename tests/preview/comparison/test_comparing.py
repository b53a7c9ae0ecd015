"""Methods compared by simulation: which counts are used, what is summed up, what is written."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace

import pytest

from congenial.cli import command_line as cli
from congenial.data.counts import count
from congenial.errors import (
    ArgumentError,
    DataError,
    EmptyNeighbourhoodError,
    ReleaseError,
)
from congenial.exhibits import files as write_module
from congenial.plan.plan import read_plan
from congenial.preview.comparison import comparing as compare_module
from congenial.preview.comparison import pages as report
from congenial.preview.comparison.comparing import compare
from congenial.preview.comparison.methods import (
    WAYS,
)
from congenial.preview.comparison.outcome import Contender
from congenial.releases.directory import STAMP
from congenial.releases.making import release
from support.city import ZONES, listing, make_city

SMALL = dict(zip(ZONES, (0, 0, 1, 2, 0, 40), strict=True))
EQUALITIES = 'publish_exactly = ["root"]'
NAMES = [name for name, _, _ in WAYS]


def plan_at(place, **sections):
    """Return the plan of the small city, whose rows are not there."""
    plan = read_plan(make_city(place, **sections))
    (place / "rows.csv").unlink()
    return plan


def run(*arguments):
    """Run the command line in this process and return its exit code."""
    return cli.run([str(argument) for argument in arguments])


def public_counts(place, trips=SMALL):
    """Write public counts of the zones and return the file."""
    file = place / "public.csv"
    rows = "".join(f"{ZONES[zone]},{zone},{n}\n" for zone, n in trips.items())
    file.write_text("borough,zone,count\n" + rows)
    return file


def by_name(found):
    """Return results by the name of their method."""
    return {r.contender.name: r for r in found.results}


def test_no_row_is_read_by_default(tmp_path):
    plan = plan_at(tmp_path, privacy='neighbours = "substitute"\nepsilon = 1.0\nledger = "none"')
    before = listing(tmp_path)
    found = compare(plan, tmp_path, replicates=4)
    assert [r.contender.name for r in found.results] == NAMES
    assert (found.stamp, found.refused) == (None, ())
    assert "no row was read" in found.basis
    # nothing is written, and no ledger is opened or made
    assert listing(tmp_path) == before
    for rows in ("public", "confidential"):
        with pytest.raises(DataError, match="no such file"):
            compare(plan, tmp_path, rows=rows, replicates=4)


def test_names_of_nodes_that_come_from_the_rows_are_told(tmp_path):
    hierarchy = 'root = "City"\nlevels = ["borough", "zone"]\ndomain = "data"'
    plan = read_plan(make_city(tmp_path, hierarchy=hierarchy))
    found = compare(plan, tmp_path, replicates=2)
    assert found.basis.endswith("but for the names of the nodes, which the plan leaves unprotected")
    assert found.stamp is None


@pytest.mark.parametrize("method", ["total", "counts", "public", "truth"])
def test_confidential_counts_come_in_on_demand_alone(tmp_path, monkeypatch, method):
    """A spy stands where rows are counted."""
    plan = read_plan(make_city(tmp_path))
    read = []
    monkeypatch.setattr(
        "congenial.preview.comparison.trial_counts.count",
        lambda *a, **k: read.append(1) or count(*a, **k),
    )
    given = {
        "total": {"total": 50},
        "counts": {"counts": public_counts(tmp_path)},
        "public": {"rows": "public"},
        "truth": {"rows": "confidential"},
    }[method]
    found = compare(plan, tmp_path, **given, replicates=2)
    assert bool(read) is (method in ("public", "truth"))
    assert found.stamp == (STAMP if method == "truth" else None)


def test_every_method_has_the_same_final_epsilon(tmp_path):
    privacy = 'neighbours = "substitute"\nepsilon = 1.5\nsplit = { borough = 0.4, zone = 0.6 }'
    found = compare(plan_at(tmp_path, privacy=privacy), tmp_path, delta=1e-6, replicates=2)
    assert len(found.results) + len(found.refused) == 2 * len(WAYS)
    assert all(r.epsilon == pytest.approx(1.5, rel=1e-9) for r in found.results)
    gaussian = [r for r in found.results if r.contender.noise == "discrete-gaussian"]
    assert {r.delta for r in gaussian} == {1e-6}
    assert all(r.delta < 1e-7 for r in found.results if r not in gaussian)
    obeys = {r.contender.name: r.obeys for r in found.results}
    assert obeys == {name: name != "noise alone" for name in NAMES}
    # bounds are charged to conditioning alone, by more of this noise
    scale = {r.contender.name: r.levels[2].scale for r in found.results if r not in gaussian}
    assert scale["exact conditioning"] > scale["imaging L2"] == scale["noise alone"]


def test_without_bounds_no_method_is_biased(tmp_path):
    plan = plan_at(tmp_path, invariants=EQUALITIES)
    file = public_counts(tmp_path)
    found = compare(plan, tmp_path, counts=file, replicates=600)
    for name, result in by_name(found).items():
        for size in result.sizes:
            # L1 images are not unbiased where several are as close
            if name != "imaging L1":
                assert abs(size.bias) < 5.0 * size.standard_error, (name, size)


@pytest.mark.parametrize("name", [n for n in NAMES if n != "noise alone"])
def test_bounds_bias_empty_zones_upwards(tmp_path, name):
    plan = plan_at(tmp_path)
    file = public_counts(tmp_path)
    results = by_name(compare(plan, tmp_path, counts=file, replicates=400))
    empty = {key: r.sizes[-3] for key, r in results.items()}
    assert {(s.level, s.low, s.high, s.nodes) for s in empty.values()} == {("zone", 0, 0, 3)}
    assert empty[name].bias > 8.0 * empty[name].standard_error
    assert abs(empty["noise alone"].bias) < 5.0 * empty["noise alone"].standard_error


def test_the_same_seed_gives_the_same_files_but_for_times(tmp_path):
    plan = plan_at(tmp_path)
    one, two = (compare(plan, tmp_path, replicates=5, seed=3) for _ in "ab")
    assert report.as_json(one) == report.as_json(two)
    other = compare(plan, tmp_path, replicates=5, seed=4)
    assert report.as_json(one) != report.as_json(other)
    files = [report.write(c, tmp_path / n, command="c") for n, c in (("a", one), ("b", two))]
    differ = {p.name for p, q in zip(*files, strict=True) if p.read_bytes() != q.read_bytes()}
    assert differ <= {"comparison.md", "comparison-times.csv"}
    assert [p.name for p in files[0]] == [
        "comparison.md",
        "comparison.json",
        "comparison-methods.csv",
        "comparison-errors.csv",
        "comparison-bias.csv",
        "comparison-times.csv",
        "comparison-methods.png",
        "comparison-methods.svg",
    ]
    plain = json.loads(report.as_json(one))
    assert plain["format"] == 1
    assert plain["plan"]["privacy"]["epsilon"] == 1.0
    assert [r["contender"]["name"] for r in plain["results"]] == NAMES
    assert "seconds" not in plain["results"][0]
    page = files[0][0].read_text(encoding="utf-8")
    assert "| zone | 6 | topdown | discrete-laplace |" in page
    assert "## Time per release" in page


def test_progress_never_goes_back(tmp_path):
    said = []
    compare(plan_at(tmp_path), tmp_path, replicates=25, notify=said.append)
    shares = [int(m[1]) for m in (re.match(r"(\d+)% of all releases", s) for s in said) if m]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 100)
    assert len(set(shares)) > 20


def test_a_method_that_does_not_fit_is_left_out_and_said(tmp_path):
    """The numerical error of a conditioned draw is above what this delta leaves for it."""
    found = compare(plan_at(tmp_path), tmp_path, delta=1e-10, replicates=2)
    (refused,) = found.refused
    assert refused.contender == Contender("exact conditioning", "conditioning", "discrete-gaussian")
    assert "delta" in refused.reason
    text = str(found)
    assert "Left out: exact conditioning, Gaussian. privacy.delta is 1e-10" in text
    page = report.as_markdown(found, "c")
    assert "not drawn" in page


def test_where_nothing_fits_that_is_the_answer(tmp_path):
    zones = ", ".join(f'"{borough}/{zone}"' for zone, borough in ZONES.items())
    plan = plan_at(
        tmp_path,
        invariants=f"publish_exactly = [{zones}]",
        privacy='neighbours = "substitute"\nepsilon = 1.0',
    )
    with pytest.raises(EmptyNeighbourhoodError):
        compare(plan, tmp_path, replicates=2)


def test_bad_numbers_are_refused(tmp_path):
    plan = plan_at(tmp_path)
    for given, message in (
        ({"replicates": 1}, "replicates is 1"),
        ({"total": 0}, "total is 0"),
        ({"spread": -1.0}, "spread is -1.0"),
        ({"spread": float("nan")}, "spread is nan"),
        ({"rows": "mine"}, "rows is 'mine'; give 'public' or 'confidential'"),
        ({"total": 3, "rows": "public"}, "total and rows both say"),
    ):
        with pytest.raises(ArgumentError, match=message):
            compare(plan, tmp_path, **given)


def test_the_stamp_is_everywhere(tmp_path):
    plan = read_plan(make_city(tmp_path))
    found = compare(plan, tmp_path, rows="confidential", replicates=2, seed=5)
    assert found.options.endswith("--with-truth --replicates 2 --simulate 5")
    written = report.write(found, tmp_path / "out", command="c")
    assert {p.name for p in written} >= {report.MARKER}
    for path in written:
        if path.suffix not in {".png", ".svg"}:
            assert STAMP in path.read_text(encoding="utf-8"), path
        if path.suffix == ".csv":
            rows = list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))
            assert {row["note"] for row in rows} == {STAMP}
    assert str(found).startswith(STAMP)
    clean = replace(found, stamp=None)
    assert STAMP not in str(clean)
    report.write(clean, tmp_path / "out", command="c")
    assert not (tmp_path / "out" / report.MARKER).exists()


def test_the_command(tmp_path, capsys):
    path = make_city(tmp_path)
    (tmp_path / "rows.csv").unlink()
    out = tmp_path / "out"
    assert run("compare", path, "--replicates", 4, "--total", 900, "--out", out) == 0
    said = capsys.readouterr()
    assert "900 records in all" in said.out
    assert "topdown" in said.out
    assert "Nothing was spent" in said.out
    assert STAMP not in said.out
    assert "Error" not in said.err
    page = (out / "comparison.md").read_text(encoding="utf-8")
    shown = re.search(r"`congenial (compare .*?)`", page)[1].split()
    assert shown[:4] == ["compare", "plan.toml", "--total", "900"]
    assert shown[4:] == ["--spread", "1.5", "--replicates", "4", "--seed", "1"]
    assert "earlier comparison" not in said.out
    assert run(*[path if a == "plan.toml" else a for a in shown], "--out", out) == 0
    again = capsys.readouterr().out
    numbers = [s for s in said.out.splitlines() if "±" in s]
    assert numbers
    assert numbers == [s for s in again.splitlines() if "±" in s]
    assert "in place of an earlier comparison." in again


def test_the_command_on_confidential_counts_needs_both_options(tmp_path, capsys):
    path = make_city(tmp_path)
    for given in (["--with-truth"], ["--simulate", 3]):
        assert run("compare", path, *given) == 2
        assert "go together" in capsys.readouterr().err.replace("\n", " ")
    assert run("compare", path, "--with-truth", "--simulate", 0, "--replicates", 2) == 0
    assert capsys.readouterr().out.startswith(STAMP)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--total", "5", "--public"], "--total and --public name different counts"),
        (["--public", "--simulate", "0", "--with-truth"], "--public and --simulate"),
        (["--simulate", "1", "--with-truth", "--seed", "2"], "leave out --seed"),
        (["--total", "0"], "'--total'"),
        (["--replicates", "1"], "'--replicates'"),
        (["--spread", "nan"], "'--spread'|spread is nan"),
        (["--delta", "0.5"], "'--delta'"),
        (["--counts", "none.csv"], "--counts is 'none.csv', and there is no such file"),
    ],
)
def test_wrong_usage_of_the_command_is_one_sentence(tmp_path, capsys, monkeypatch, given, message):
    monkeypatch.chdir(tmp_path)
    path = make_city(tmp_path)
    assert run("compare", path, *given) == 2
    said = capsys.readouterr()
    assert re.search(message, said.err)
    assert "Traceback" not in said.err
    assert said.out == ""


def test_what_cannot_be_written_is_told(tmp_path, capsys, monkeypatch):
    path = make_city(tmp_path)
    (tmp_path / "file").write_text("")
    found = compare(read_plan(path), tmp_path, replicates=2)
    with pytest.raises(ReleaseError, match="cannot be written"):
        report.write(found, tmp_path / "file", command="c")
    # all this is told before anything is drawn
    monkeypatch.setattr(compare_module, "simulate", None)
    for out in ("file", "file/new"):
        assert run("compare", path, "--out", tmp_path / out) == 2
        assert "cannot be written" in (said := capsys.readouterr()).err
        assert "'file' is no directory" in said.err.replace("\n", " ")
    monkeypatch.setattr(write_module.importlib.util, "find_spec", lambda _: None)
    assert run("compare", path, "--out", tmp_path / "new") == 2
    said = capsys.readouterr().err
    assert "a figure needs matplotlib" in said
    assert "congenial[studies]" in said
    assert not (tmp_path / "new").exists()


def test_an_earlier_release_may_be_what_is_compared_on(tmp_path):
    plan = read_plan(make_city(tmp_path))
    release(plan, tmp_path / "out", base=tmp_path)
    found = compare(plan, tmp_path, counts=tmp_path / "out/release.csv", replicates=2)
    assert found.basis.startswith("public counts of level zone from release.csv;")
    release(plan, tmp_path / "sham", base=tmp_path, simulate=1, with_truth=True)
    for name in ("release.csv", "release.parquet"):
        with pytest.raises(DataError, match="is stamped 'SIMULATION"):
            compare(plan, tmp_path, counts=tmp_path / "sham" / name, replicates=2)
