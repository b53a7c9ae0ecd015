"""A comparison as tables and text."""

from __future__ import annotations

import csv
from dataclasses import replace

import pytest

from congenial.errors import ArgumentError
from congenial.plan.plan import read_plan
from congenial.preview.comparison import pages as report
from congenial.preview.comparison.comparing import compare
from congenial.releases.directory import STAMP
from support.city import make_city
from support.plots import drawn, legend, new_axes


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


def test_the_plots_of_a_comparison_have_its_errors_and_its_bias(tmp_path):
    found = compare(read_plan(make_city(tmp_path)), tmp_path, total=500, replicates=3)
    ax = drawn(found.plot(ax=new_axes()))
    shown = [k for k in range(3) if any(r.levels[k].l1 for r in found.results)]
    means = [r.levels[k].l1 for r in found.results for k in shown]
    assert [bar.get_height() for bar in ax.patches] == means
    assert legend(ax) == [r.contender.name for r in found.results]
    assert ax.get_title(loc="left") == "Error by level"
    ax = drawn(replace(found, stamp=STAMP).plot("bias", ax=new_axes()))
    biases = [
        [size.bias for size in r.sizes if size.level == found.results[0].levels[-1].level]
        for r in found.results
    ]
    assert [container[0].get_ydata().tolist() for container in ax.containers] == biases
    assert ax.get_title(loc="left").startswith(STAMP)
    with pytest.raises(ArgumentError, match="what is 'times'; give 'errors' or 'bias'"):
        found.plot("times", ax=new_axes())
