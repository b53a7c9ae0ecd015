"""The page about the taxi trips: its tables are reproducible and support its text."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from congenial.accounting.guarantee import with_sampler_error
from congenial.plan.plan import read_plan
from congenial.preview.comparison.comparing import compare
from papers.studies import sources

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "docs" / "compare"
NOISES = ("discrete-laplace", "discrete-gaussian")


def results(comparison):
    """Return plain results by method and noise."""
    return {(r["contender"]["name"], r["contender"]["noise"]): r for r in comparison["results"]}


@pytest.fixture(scope="module")
def shown():
    """Return what the page shows."""
    return json.loads((PLACE / "comparison.json").read_text(encoding="utf-8"))


def test_the_tables_are_reproduced(shown, tmp_path):
    """The same counts from a file; releases may differ where a sampler has changed, errors not."""
    tree, x = sources.taxi()
    lines = [f"{','.join(tree.path(int(v))[1:])},{x[v]}\n" for v in tree.leaves]
    file = tmp_path / "counts.csv"
    file.write_text("Borough,PULocationID,count\n" + "".join(lines), encoding="utf-8")
    example = ROOT / "examples" / "taxi"
    plan = read_plan(example / "plan.toml")
    again = compare(plan, example, counts=file, delta=1e-7, replicates=60)
    pages = results(shown)
    assert list(pages) == [(r.contender.name, r.contender.noise) for r in again.results]
    assert shown["refused"] == []
    for r in again.results:
        page = pages[r.contender.name, r.contender.noise]
        assert page["epsilon"] == pytest.approx(r.epsilon)
        assert page["delta"] == pytest.approx(r.delta, rel=1e-6)
        assert page["satisfied"] == r.satisfied
        for level, other in zip(page["levels"], r.levels, strict=True):
            assert (level["level"], level["nodes"]) == (other.level, other.nodes)
            assert level["scale"] == pytest.approx(other.scale)
            apart = (level["l1_error"] ** 2 + other.l1_error**2) ** 0.5
            assert abs(level["l1"] - other.l1) <= 5.5 * apart
        sizes = [(s["level"], s["low"], s["nodes"]) for s in page["sizes"]]
        assert sizes == [(s.level, s.low, s.nodes) for s in r.sizes]


def test_the_numbers_on_the_page_are_those_of_the_comparison(shown):
    found = results(shown)

    def zone(name, noise):
        return found[name, noise]["levels"][2]

    def borough(name, noise):
        return found[name, noise]["levels"][1]["l1"]

    for noise in NOISES:
        empty = {}
        for name in ("exact conditioning", "imaging L2", "imaging L1", "topdown", "noise alone"):
            size = next(s for s in found[name, noise]["sizes"] if s["high"] == 0)
            assert (size["level"], size["low"]) == ("PULocationID", 0)
            empty[name] = size["bias"]
            biased = size["bias"] > 5 * size["standard_error"]
            assert biased is (name != "noise alone")
        assert max(empty, key=empty.get) == "exact conditioning"
        assert zone("imaging L1", noise)["l1"] == pytest.approx(
            zone("imaging L2", noise)["l1"], rel=0.03
        )
        assert borough("imaging L1", noise) > 2 * borough("imaging L2", noise)
        assert zone("topdown", noise)["l1"] < zone("noise alone", noise)["l1"]
    laplace, gaussian = NOISES
    assert zone("exact conditioning", laplace)["scale"] > 1.5 * zone("imaging L2", laplace)["scale"]
    ratio = zone("exact conditioning", gaussian)["scale"] / zone("imaging L2", gaussian)["scale"]
    assert 1.0 <= ratio < 1.01
    ratio = zone("exact conditioning", gaussian)["l1"] / zone("imaging L2", gaussian)["l1"]
    assert 1.0 < ratio < 1.05
    assert zone("imaging L2", laplace)["l1"] < zone("imaging L2", gaussian)["l1"]


def test_the_files_agree(shown):
    with (PLACE / "comparison-errors.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = results(shown)
    assert len(rows) == 3 * len(found)
    for row in rows:
        levels = found[row["method"], row["noise"]]["levels"]
        level = next(v for v in levels if v["level"] == row["level"])
        assert float(row["L1"]) == pytest.approx(level["l1"], rel=1e-5)
    page = (PLACE / "comparison.md").read_text(encoding="utf-8")
    assert f"`congenial compare plan.toml {shown['options']}`" in page
    told = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    command = "congenial compare examples/taxi/plan.toml --public --delta 1e-7 --out docs/compare"
    assert command in told
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert command.replace("examples/taxi", "$(TAXI)") in makefile


def test_the_numbers_of_the_decision_are_right():
    tree, x = sources.taxi()
    logs = []
    for borough in np.flatnonzero(tree.level == 1):
        zones = x[tree.parents == borough]
        if zones.size > 1:
            logs.append(float(np.log(zones[zones > 0]).std()))
    assert (round(min(logs), 1), round(max(logs), 1)) == (1.1, 2.2)
    assert round(float(np.log(x[tree.level == 1]).std()), 1) == 3.4
    doubles = 1e6 * (24.0 * 11.0 + 20.0) * 2.0**-51  # a table's entries, on a running sum
    assert 0.45 < with_sampler_error(1.0, 0.0, doubles) / 1e-6 < 0.5


def test_the_table_of_the_page_on_choosing_is_that_of_the_comparison():
    def rows(name):
        with (PLACE / f"comparison-{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    page = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    _, counts = sources.taxi()
    assert f"{counts[0]:,} taxi trips" in page
    _, table = page.split("| method | noise | error of a borough |", 1)
    lines = table.split("\n\n", 1)[0].splitlines()[2:]
    assert len(lines) == 10
    for line in lines:
        method, noise, borough, zone, bias = (cell.strip() for cell in line.strip("|").split("|"))
        own = method, f"discrete-{noise.lower()}"
        errors = {r["level"]: r["L1"] for r in rows("errors") if (r["method"], r["noise"]) == own}
        (empty,) = (
            r["bias"]
            for r in rows("bias")
            if (r["method"], r["noise"], r["true count"]) == (*own, "0")
        )
        assert borough == f"{float(errors['Borough']):.2f}"
        assert zone == f"{float(errors['PULocationID']):.2f}"
        assert float(bias) == pytest.approx(float(empty), abs=0.0051)
        assert bias[0] in "+-"


def test_the_table_of_choosing_is_that_of_the_comparison(shown):
    found, rows = results(shown), 0
    for line in (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8").splitlines():
        name, noise, *numbers = [cell.strip() for cell in line.strip("|").split("|")] + [""] * 2
        key = name, f"discrete-{noise.lower()}"
        if key in found:
            _, borough, zone = (level["l1"] for level in found[key]["levels"])
            bias = next(s["bias"] for s in found[key]["sizes"] if s["high"] == 0)
            assert numbers[:3] == [f"{borough:.2f}", f"{zone:.2f}", f"{bias:+.2f}"]
            rows += 1
    assert rows == 10
