"""A comparison as tables and text."""

from __future__ import annotations

import csv
from dataclasses import replace

from congenial.plan.plan import read_plan
from congenial.preview.comparison import pages as report
from congenial.preview.comparison.comparing import compare
from congenial.releases.directory import STAMP
from support.city import make_city


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
