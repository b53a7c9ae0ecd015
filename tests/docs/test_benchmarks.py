"""The benchmarks' harness on tiny sizes: it runs, reports correctly and names no machine.

No number of a timing is asserted here.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import congenial as cg
from support.locks import PROJECT, lock_faults, needed, pins

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import (  # noqa: E402
    machine,
    plot,
    record,
    report,
    runner,
    spark_growth,
    timing,
    worker,
    worlds,
)
from benchmarks.__main__ import _without, main  # noqa: E402
from benchmarks.peers import geometric, target, tree_mh  # noqa: E402
from benchmarks.rows import ROWS, cases  # noqa: E402

BELOW = record.Measure("time", "×", 3.0)
ABOVE = record.Measure("rate", "draws/s", 50.0, "higher")


@pytest.fixture
def case():
    return record.Case("flat", "a case", (BELOW, ABOVE), 1.0, lambda: iter(()))


def test_a_target_is_met_on_its_side_only():
    assert [BELOW.met(value) for value in (2.9, 3.0, 3.1, None)] == [True, True, False, False]
    assert [ABOVE.met(value) for value in (49.0, 50.0, 51.0)] == [False, True, True]
    assert record.Measure("a", "b").met(1.0) is None


def test_a_measure_without_a_number_says_why(case):
    seen = {"time": record.Seen("time", 2.0, low=1.5, high=2.5)}
    lines = runner.to_lines(case, seen, "over its limit of 1 s")
    assert [(line.value, line.met, line.note) for line in lines] == [
        (2.0, True, ""),
        (None, False, "over its limit of 1 s"),
    ]
    text = report.table(lines)
    assert "2× (1.5 to 2.5)  [≤ 3×: met]" in text
    assert "over its limit of 1 s  [≥ 50 draws/s: not met]" in text
    assert "1 of 2 targets met." in text


def test_steps_take_turns_and_the_cold_round_is_left_out(monkeypatch):
    order = []
    ticks = iter(range(100))
    monkeypatch.setattr(timing, "clock", lambda: float(next(ticks)))
    steps = {name: lambda name=name: order.append(name) for name in ("ours", "peer")}
    times = timing.rounds(steps, repeats=3, budget=60.0)
    assert order == ["ours", "peer"] * 3
    assert {name: seconds.tolist() for name, seconds in times.items()} == {
        "ours": [1.0] * 2,
        "peer": [1.0] * 2,
    }


def test_one_round_is_made_however_little_time_there_is():
    done = []
    timing.rounds({"a": lambda: done.append(1)}, repeats=5, budget=0.0)
    assert done == [1]


def test_a_ratio_is_the_median_of_the_rounds():
    seen = timing.ratio("m", np.array([2.0, 9.0, 4.0]), np.array([1.0, 1.0, 4.0]))
    assert (seen.value, seen.low, seen.high) == (2.0, 1.0, 9.0)
    assert seen.detail == {"ours_best_s": 2.0, "peer_best_s": 1.0, "rounds": 3.0}


@pytest.mark.parametrize("quick", [True, False])
def test_every_row_has_cases_with_measures(quick):
    for row in ROWS:
        found = cases(row, quick=quick)
        assert found
        assert all(case.row == row and case.measures for case in found)
        assert len({case.name for case in found}) == len(found)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (cg.CongenialError("too large; use less."), "refused: too large; use less."),
        (MemoryError(), "over its memory, 70% of the machine's"),
        (ModuleNotFoundError("no", name="hopsy"), "not run: hopsy is not installed"),
    ],
)
def test_a_case_that_cannot_go_on_says_why_after_what_it_saw(error, told, monkeypatch, capsys):
    def run():
        yield record.Seen("time", 1.0)
        raise error

    monkeypatch.setattr(worker, "pin", lambda: None)
    monkeypatch.setattr(worker, "spare_memory", lambda share: None)
    monkeypatch.setattr(
        worker, "cases", lambda row, quick: (record.Case(row, "c", (BELOW,), 1.0, run),)
    )
    worker.main("flat", 0, quick=True)
    first, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["measure"], first["value"]) == ("time", 1.0)
    assert last == {"why": told}


@pytest.mark.skipif(sys.platform != "linux", reason="told by Linux alone")
def test_a_case_over_its_limit_is_stopped():
    program = "print(1, flush=True)\nwhile True: pass"
    for limit, wait, told in ((0.2, 60.0, "over its limit"), (60.0, 0.2, "by the clock")):
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL) as busy:
            assert told in runner._stopped(busy, limit, wait)
        assert busy.returncode


@pytest.mark.skipif(sys.platform != "linux", reason="told by Linux alone")
def test_the_resources_of_a_process_are_reported():
    assert 0.0 < machine.used_seconds(os.getpid()) <= 0.1 + sum(os.times()[:2])


def test_no_case_begins_when_the_time_is_spent():
    lines = runner.run(["flat"], quick=True, budget=0.0, tell=lambda text: None)
    assert {line.note for line in lines} == {"not run: the time of the whole run was spent"}


def test_the_command_writes_every_field_and_no_name_of_the_machine(tmp_path):
    with pytest.raises(SystemExit) as ended:
        main(["--quick", "--only", "growth", "--out", str(tmp_path)])
    assert ended.value.code == 0
    text = (tmp_path / "results.json").read_text(encoding="utf-8")
    content = json.loads(text)
    assert content["quick"] is True
    assert {"processor", "cores", "memory", "Python", "congenial", "numpy"} <= set(
        content["machine"]
    )
    if len(platform.node()) > 3:
        assert platform.node() not in text
    lines, described = runner.read_json(tmp_path / "results.json")
    assert described == content["machine"]
    wanted = [measure.name for each in cases("growth", quick=True) for measure in each.measures]
    assert [line.measure for line in lines] == wanted
    assert set(content["lines"][0]) == {field.name for field in fields(record.Line)}
    assert [line.note for line in lines if line.value is None] == []
    assert [len(seen) for seen in plot.points(lines).values()] == [2, 2]
    written = report.page(lines, described, plot="a.svg")
    assert "### Growth" in written
    assert "(a.svg)" in written


def test_a_page_is_for_real_sizes_of_all_rows_on_one_machine(capsys, tmp_path):
    def refused(*options):
        with pytest.raises(SystemExit) as ended:
            main(["--page", *options])
        assert ended.value.code == 2
        return capsys.readouterr().err

    assert "leave out --quick" in refused("--quick")
    again = "--only", "growth", "--out", str(tmp_path)
    assert "no results of other rows" in refused(*again)
    found, here = tmp_path / "results.json", machine.described()
    runner.write_json(found, [], here | {"processor": "another"}, quick=False)
    assert "on another machine" in refused(*again)
    runner.write_json(found, [], here, quick=False)
    assert "lacks some rows" in refused(*again)


def test_rows_that_are_measured_anew_are_named_once():
    before = "0.1.0, commit b (flat, bounded, table); other rows: 0.1.0, commit a"
    wanted = "0.1.0, commit b (flat, table); other rows: 0.1.0, commit a"
    assert _without(["bounded"], before) == wanted
    assert _without(["table_of"], before) == before


def test_the_trees_are_those_that_are_named():
    assert np.bincount(worlds.grown((50, 40, 25)).level).tolist() == [1, 50, 2_000, 50_000]
    tree, x = worlds.taxi()
    assert (len(tree), tree.leaves.size, int(x[0])) == (270, 263, 2_944_056)
    tree, x = worlds.washington()
    assert np.bincount(tree.level)[[0, 1, 4]].tolist() == [1, 39, 195_574]
    assert (int(x[0]), int((x[tree.leaves] == 0).sum())) == (6_724_540, 76_800)


def test_the_peer_draws_discrete_laplace_noise():
    scale, n = 2.0, 200_000
    noise = geometric.noise(n, scale)()
    a = np.exp(-1.0 / scale)
    variance = 2.0 * a / (1.0 - a) ** 2
    assert abs(np.mean(noise**2) / variance - 1.0) < 5.0 * np.sqrt(6.0 / n)


def absolute_noise(scale: float, *, bounded: bool, step: float = 0.1) -> np.ndarray:
    """Mean sizes of the first leaf's and the root's noise of a root with two leaves, by a grid."""
    u = np.arange(-40.0, 40.0, step) + 0.5 * step
    a, b = u[:, None], u[None, :]
    weight = np.exp(-(np.abs(a) + np.abs(b) + np.abs(a + b)) / scale)
    if bounded:
        weight = weight * (a >= -1.0) * (b >= 0.0)
    weight = weight / weight.sum()
    return np.array([(np.abs(a) * weight).sum(), (np.abs(a + b) * weight).sum()])


@pytest.mark.parametrize("bounded", [False, True])
def test_the_tree_chain_has_the_law_it_is_compared_on(bounded):
    tree = cg.Tree.from_parents([-1, 0, 0])
    law = target.target(tree, np.array([1, 1, 0]), 2.0, nonnegative=bounded)
    draws = tree_mh.run(law, seconds=1.0, every=40).draws
    u = draws.reshape(-1, 2)
    assert not bounded or ((u >= -law.x).all() and (u.min(axis=0) < 0.2 - law.x).all())
    seen = np.array([np.abs(u[:, 0]).mean(), np.abs(u.sum(axis=1)).mean()])
    # 8,000 states, far apart
    assert np.abs(seen / absolute_noise(2.0, bounded=bounded) - 1.0).max() < 0.15
    assert np.abs(seen / absolute_noise(2.6, bounded=bounded) - 1.0).max() > 0.15


def test_a_target_refuses_a_child_before_its_parent():
    tree = cg.Tree.from_parents([1, -1])
    with pytest.raises(ValueError, match="comes after its child"):
        target.target(tree, np.array([0, 0]), 1.0, nonnegative=False)


def test_the_benchmarks_lock_is_sound_and_holds_the_run():
    text = (ROOT / "requirements" / "benchmark.lock").read_text(encoding="utf-8")
    assert lock_faults(text) == []
    locked = {(package, version) for package, version, _ in pins("benchmark")}
    assert {(package, version) for package, version, _ in pins("run")} <= locked
    extra = needed(PROJECT["optional-dependencies"]["benchmark"])
    assert extra <= {package for package, _ in locked}


def test_a_line_without_a_target_shows_no_verdict(case):
    (line,) = runner.to_lines(
        replace(case, measures=(record.Measure("time", "ms"),)),
        {"time": record.Seen("time", 1234.5)},
        "",
    )
    assert report.result(line) == "1,234 ms"
    assert (line.met, report.wanted(line)) == (None, "")


def run_of(millions, driver, java, worker):
    seconds = dict(zip(spark_growth.KINDS, (driver, java, worker), strict=True))
    sizes = dict.fromkeys(spark_growth.KINDS, 500.0)
    return spark_growth.Run(millions * 1_000_000, 99.0, seconds, sizes, 0)


def test_the_slope_of_spark_is_that_of_the_two_largest_sizes(tmp_path):
    # 20 s and 0.2 s a million in the driver, 30 s and 4 s in Java and workers; a first run is slow
    runs = (run_of(100, 40.0, 110.0, 320.0), run_of(1, 90.0, 90.0, 90.0), run_of(10, 22, 20, 50))
    slope = spark_growth.slope_of(runs)
    assert np.allclose([slope.driver, slope.others, slope.begin], [0.2, 4.0, 50.0])
    assert np.isclose(slope.balance, 20.0)
    assert np.allclose(slope.on_workers(2_000_000_000, 80), [400.0, 100.0])
    found = spark_growth.Record({"cores": "2"}, "2026-01-31", "a command", runs)
    spark_growth.write(found, tmp_path / "record.json")
    assert spark_growth.read(tmp_path / "record.json") == found
    lines = spark_growth.table(found)
    assert lines[2] == "| 100,000,000 | 40 s | 110 s | 320 s | 500 MB | 500 MB | 500 MB |"
    assert len(lines) == 5 and "| driver, alone | 0.20 s | 0.9 hours |" in spark_growth.estimate(
        found
    )
    assert [path.stat().st_size > 1000 for path in spark_growth.draw(found, tmp_path / "a")] == [
        True,
        True,
    ]


@pytest.mark.parametrize("method", spark_growth.RECORDS)
def test_the_page_about_spark_has_the_numbers_of_its_records(method):
    found = spark_growth.read(spark_growth.RECORDS[method])
    page = spark_growth.PAGE.read_text(encoding="utf-8")
    assert spark_growth.with_section(page, spark_growth.section(found), method) == page
    assert spark_growth.with_section(page, "other numbers", method) != page
    assert [run.wrong for run in found.runs] == [0] * len(found.runs)
