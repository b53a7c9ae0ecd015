"""A column of weights: each row stands for so many records, and one record is one unit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.accounting.amounts import Amount
from congenial.data.counts import check_columns, count
from congenial.errors import DataError, PlanError
from congenial.ledger.ledger_file import init_ledger
from congenial.plan.plan import Plan, parse_plan
from congenial.preview.explanation import explain
from congenial.releases.making.make_release import release
from congenial.releases.sentences import records_of_rows
from congenial.verification.verdict import verify
from support.rows import write_csv

SECRET = 48_611


def weighted_plan(source: str, *, weight: str = "people", data: str = "") -> Plan:
    return parse_plan(
        f'[data]\nsource = "{source}"\nweight = "{weight}"\n{data}\n'
        '[hierarchy]\nroot = "City"\nlevels = ["zone"]\ndomain = "data"\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )


def write_rows(folder: Path, weights: list[object], zones: list[str] | None = None) -> None:
    zones = zones or ["a", "b", "c"]
    rows = [(zones[i % len(zones)], w) for i, w in enumerate(weights)]
    write_csv(folder / "rows.csv", ("zone", "people"), rows)


def counted(folder: Path, plan: Plan, **frame: object) -> dict[str, int]:
    found = count(plan, base=folder, **frame)
    return dict(zip(found.domain.names, found.counts.tolist(), strict=True))


@settings(max_examples=10, deadline=None)
@given(rows=st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 10**6)), min_size=1))
def test_every_source_adds_up_the_weights(
    rows: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    rows = [*rows, ("a", 1)]
    expected = {"City": sum(w for _, w in rows)}
    expected |= {z: sum(w for y, w in rows if y == z) for z in "abcd"}
    expected = {z: n for z, n in expected.items() if n}
    write_csv(folder / "rows.csv", ("zone", "people"), rows)
    table = pa.table({"zone": [z for z, _ in rows], "people": [w for _, w in rows]})
    with duckdb.connect(str(folder / "rows.duckdb")) as connection:
        connection.register("t", table)
        connection.execute("CREATE TABLE t1 AS SELECT * FROM t")
        connection.execute(f"COPY t TO '{folder / 'rows.parquet'}'")
    assert counted(folder, weighted_plan("rows.csv")) == expected
    assert counted(folder, weighted_plan("rows.parquet")) == expected
    assert counted(folder, weighted_plan("rows.duckdb", data='table = "t1"')) == expected
    frames = [table, pd.DataFrame(rows, columns=["zone", "people"]), pl.from_arrow(table).lazy()]
    frames.append(pd.DataFrame(rows, columns=["zone", "people"]).astype({"people": "object"}))
    for frame in frames:
        assert counted(folder, weighted_plan("rows.csv"), frame=frame) == expected


@pytest.mark.parametrize("bad", [f"-{SECRET}", f"{SECRET}.5", "", "many", "nan", "inf", "1e300"])
def test_a_weight_that_is_no_whole_number_is_refused_without_being_shown(
    bad: str, tmp_path: Path
) -> None:
    write_rows(tmp_path, [3, bad, 5])
    with pytest.raises(DataError, match=r"'people' \(data\.weight\) is no whole number") as caught:
        count(weighted_plan("rows.csv"), base=tmp_path)
    assert str(SECRET) not in str(caught.value)


@pytest.mark.parametrize("bad", [-1.0, 2.5, np.nan, np.inf])
def test_a_frame_with_such_a_weight_is_refused(bad: float, tmp_path: Path) -> None:
    frame = pd.DataFrame({"zone": ["a", "b"], "people": [1.0, bad]})
    with pytest.raises(DataError, match="no whole number"):
        count(weighted_plan("rows.csv"), base=tmp_path, frame=frame)


def test_such_a_weight_may_be_left_out_by_another_column(tmp_path: Path) -> None:
    write_rows(tmp_path, [3, "many", 5])
    plan = weighted_plan("rows.csv", data="where = \"zone <> 'b'\"")
    assert counted(tmp_path, plan) == {"City": 8, "a": 3, "c": 5}


def test_a_node_whose_rows_all_weigh_nothing_does_not_occur(tmp_path: Path) -> None:
    write_rows(tmp_path, [3, 0, 5])
    assert counted(tmp_path, weighted_plan("rows.csv")) == {"City": 8, "a": 3, "c": 5}


def test_weights_that_add_up_to_too_much_are_refused_without_their_sum(tmp_path: Path) -> None:
    write_rows(tmp_path, [2**51, 2**51 - SECRET])
    with pytest.raises(DataError, match="adds up to more than 2,251,799,813,685,248"):
        count(weighted_plan("rows.csv"), base=tmp_path)


def test_a_row_filter_on_the_weight_is_refused(tmp_path: Path) -> None:
    write_rows(tmp_path, [3, 4, 5])
    plan = weighted_plan("rows.csv", data="where = \"zone <> 'b' AND PEOPLE > 3\"")
    with pytest.raises(PlanError, match="the guarantee for one record would not hold"):
        count(plan, base=tmp_path)


@pytest.mark.parametrize(
    ("weight", "data", "message"),
    [
        ("Zone", "", "is 'Zone', which is a level, too"),
        ("people", 'types = { People = "BIGINT" }', "which data.types names too"),
        (
            "key",
            'lookup = { source = "z.csv", key = "k", on = "key" }',
            "which data.lookup.on names too",
        ),
    ],
)
def test_a_weight_with_another_use_is_refused(weight: str, data: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        weighted_plan("rows.csv", weight=weight, data=data)


@pytest.mark.parametrize("by", [count, check_columns])
def test_a_weight_that_is_no_column_or_no_number_is_refused(
    tmp_path: Path, by: Callable[..., object]
) -> None:
    write_rows(tmp_path, [3, 4, 5])
    with pytest.raises(DataError, match=r"data\.weight names the column 'persons'"):
        by(weighted_plan("rows.csv", weight="persons"), base=tmp_path)
    frame = pl.DataFrame({"zone": ["a"], "people": [True]})
    with pytest.raises(DataError, match="whose type is BOOLEAN; name a column of whole numbers"):
        by(weighted_plan("rows.csv"), base=tmp_path, frame=frame)


def test_columns_are_checked_without_a_look_at_rows(tmp_path: Path) -> None:
    write_rows(tmp_path, ["many"])
    plan = weighted_plan("rows.csv")
    check_columns(plan, base=tmp_path)
    with pytest.raises(DataError, match="is no whole number"):
        count(plan, base=tmp_path)


def test_a_column_with_the_name_of_a_count_is_told_before_a_release(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_rows(tmp_path, [3, 4, 5])
    plan = weighted_plan("rows.csv")
    rows = msgspec.structs.replace(plan, data=msgspec.structs.replace(plan.data, weight=None))
    told = "Each row is counted as one record. If the column 'people' says how many"
    assert explain(rows, tmp_path).odd[0].startswith(told)
    assert told in str(explain(rows, tmp_path))
    assert not explain(plan, tmp_path).odd
    release(rows, tmp_path / "by_rows", base=tmp_path, simulate=1)
    assert [record.message.startswith(told) for record in caplog.records] == [True]
    caplog.clear()
    made = release(plan, tmp_path / "by_weight", base=tmp_path, simulate=1)
    assert not caplog.records
    assert made.certificate.domain.weight == "people"
    assert all(check.passed for check in verify(tmp_path / "by_weight"))
    assert "as many records as its column 'people' says" in records_of_rows(made.certificate)


def test_the_ledger_tells_releases_of_rows_from_those_of_their_weights(tmp_path: Path) -> None:
    write_rows(tmp_path, [3, 4, 5])
    init_ledger(
        tmp_path / "ledger.sqlite", budget=Amount(9 * 10**12, 10**15), neighbours="substitute"
    )
    plan = weighted_plan("rows.csv")
    plan = msgspec.structs.replace(
        plan, privacy=msgspec.structs.replace(plan.privacy, ledger="ledger.sqlite")
    )
    rows = msgspec.structs.replace(plan, data=msgspec.structs.replace(plan.data, weight=None))
    adds_up = []
    for i, one in enumerate([plan, plan, rows]):
        debit = release(one, tmp_path / f"release{i}", base=tmp_path).debit
        assert debit is not None
        adds_up.append(debit.adds_up)
    assert adds_up == [True, True, False]
