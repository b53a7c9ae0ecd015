"""What verify lets pass of intervals by another version, and names that would break a line."""

from __future__ import annotations

import duckdb
import pytest

from congenial.errors import PlanError
from congenial.plan.plan import parse_plan, read_plan
from congenial.preview.explanation import as_text, explain
from congenial.releases import directory as files
from congenial.releases.making import release
from congenial.report.write import report
from support.city import make_city
from support.edited import change, failed

EXACT = 'publish_exactly = ["root"]'


@pytest.mark.parametrize("part", ["lower + 1 AS lower", "upper - 1 AS upper", "both", "stated"])
@pytest.mark.parametrize("version", [None, "0.0.9"])
def test_simulated_ends_pass_for_every_version(tmp_path, part, version):
    made = make_city(tmp_path, method='name = "imaging"', invariants=EXACT)
    release(read_plan(made), tmp_path / "out", base=tmp_path)
    here = tmp_path / "out"
    if version:
        change(here, lambda stated: stated["versions"].update(congenial=version))
    assert failed(here) == []
    if part == "stated":

        def narrow(stated):
            stated["accuracy"]["levels"][2]["margin"] -= 1

        change(here, narrow)
    else:
        part = "lower + 1 AS lower, upper - 1 AS upper" if part == "both" else part
        query = f"SELECT * REPLACE ({part}) FROM t"
        with duckdb.connect(":memory:", config={"threads": 1}) as connection:
            connection.execute(f"CREATE TABLE t AS SELECT * FROM '{here / files.PARQUET}'")
            connection.execute(f"COPY ({query}) TO '{here / files.PARQUET}' (FORMAT parquet)")
            connection.execute(f"COPY ({query}) TO '{here / files.CSV}' (FORMAT csv, HEADER)")
        change(here, lambda stated: None)
    assert failed(here) == ["intervals"]


def test_names_of_sums_and_versions_break_no_line(tmp_path):
    asked = 'sums = { "x\\u001b[31m\\nred" = ["Arden"], plain = ["Brook"] }'
    plan = read_plan(make_city(tmp_path, accuracy=asked, invariants=EXACT))
    lines = as_text(explain(plan, tmp_path)).splitlines()
    assert any(line.startswith(r"The sum 'x\x1b[31m\nred': within ±") for line in lines)
    assert any(line.startswith("The sum plain: within ±") for line in lines)
    release(plan, tmp_path / "out", base=tmp_path)
    change(tmp_path / "out", lambda stated: stated["versions"].update(congenial="0.0\x1b[2J"))
    page = report(tmp_path / "out", tmp_path / "page.html").read_text()
    assert "\x1b" not in page
    assert r"x\x1b[31m\nred" in page and r"0.0\x1b[2J" in page
    text = (tmp_path / "plan.toml").read_text()
    text = text.replace('["Arden"]', "[]")
    with pytest.raises(PlanError) as told:
        parse_plan(text)
    assert "\x1b" not in str(told.value) and "\n" not in str(told.value)
