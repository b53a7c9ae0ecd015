"""No record decides how the row filter reads another: the plan or a file's schema gives types."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from congenial.data.counts import (
    Counted,
    build_domain,
    count,
)
from congenial.errors import PlanError
from congenial.plan.plan import Plan, parse_plan
from support.rows import refusal

# Each person has a zone; whatever the last one's value is, the others' outcomes must stay.
DOMAIN = "zone\n1\n2\n3\n4\n5\n"
Values = Sequence[Any]


def plan_of(source: str, where: str, types: str = "", **keys: str) -> Plan:
    return parse_plan(
        f'[data]\nsource = "{source}"\nwhere = """{where}"""\n'
        + (f"types = {types}\n" if types else "")
        + "".join(f'{key} = "{value}"\n' for key, value in keys.items())
        + '[hierarchy]\nroot = "all"\nlevels = ["zone"]\ndomain = "zones.csv"\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )


def from_csv(place: Path, values: Values, where: str, types: str = "") -> Counted:
    lines = [f"{zone},{'' if v is None else v}" for zone, v in enumerate(values, 1)]
    (place / "rows.csv").write_text("\n".join(["zone,x", *lines, ""]))
    return count(plan_of("rows.csv", where, types), base=place)


def sqlite_of(declared: str) -> Callable[..., Counted]:
    def from_sqlite(place: Path, values: Values, where: str, types: str = "") -> Counted:
        (place / "rows.sqlite").unlink(missing_ok=True)
        with closing(sqlite3.connect(place / "rows.sqlite")) as database:
            database.execute(f"CREATE TABLE t (zone, {declared})")
            database.executemany("INSERT INTO t VALUES (?, ?)", enumerate(values, 1))
            database.commit()
        return count(plan_of("rows.sqlite", where, types, table="t"), base=place)

    return from_sqlite


def from_objects(place: Path, values: Values, where: str, types: str = "") -> Counted:
    zones = pd.Series(range(1, len(values) + 1), dtype=object)
    frame = pd.DataFrame({"zone": zones, "x": pd.Series(values, dtype=object)})
    return count(plan_of("rows.csv", where, types), frame=frame, base=place)


def from_categories(place: Path, values: Values, where: str, types: str = "") -> Counted:
    x = pd.Series(values, dtype=object).astype("category")
    frame = pd.DataFrame({"zone": range(1, len(values) + 1), "x": x})
    return count(plan_of("rows.csv", where, types), frame=frame, base=place)


SOURCES = {
    "csv": from_csv,
    "sqlite": sqlite_of("x"),
    "sqlite integer": sqlite_of("x INTEGER"),
    "objects": from_objects,
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "zones.csv").write_text(DOMAIN)
    return tmp_path


# the rule, the declared types, the others' values, and whatever the last may be
NUMBERS: tuple[Values, Values] = ([9, 7, 12, 10], [50, "none", 8.5, None, 9007199254740993, "1e3"])
DATES: tuple[Values, Values] = (
    ["02/11/2020", "11/02/2020", "2020-01-05", "2020-03-01"],
    ["13/01/2020", "01/13/2020", "01/01/2020", "2020-01-20", "unknown"],
)
WORDS: tuple[Values, Values] = (["true", "TRUE", "t", "1"], ["false", "maybe", "2", ""])
RULES = [
    ("x > '10'", "", NUMBERS),
    ("typeof(x) = 'BIGINT'", "", NUMBERS),
    ("length(x) = 1", "", NUMBERS),
    ("x || '' > '10'", "", NUMBERS),
    ("x BETWEEN '10' AND '99'", "", NUMBERS),
    ("TRY_CAST(x AS DOUBLE) > 9", "", NUMBERS),
    ("CAST(x AS INTEGER) > 9 OR x = '7'", "", NUMBERS),
    ("CAST(x AS INTEGER) = 9 OR CAST(x AS INTEGER) = 7", "", NUMBERS),
    ("x IN (9, 12)", "", NUMBERS),
    ("x = 9", "", NUMBERS),
    ("CASE WHEN x = '9' OR CAST(x AS INTEGER) = 12 THEN true ELSE false END", "", NUMBERS),
    ("x >= 9", '{ x = "INTEGER" }', NUMBERS),
    ("x / 2 = 4.5", '{ x = "DOUBLE" }', NUMBERS),
    ("x + 9223372036854775000 > 0", '{ x = "BIGINT" }', NUMBERS),
    ("x IS NULL", '{ x = "INTEGER" }', NUMBERS),
    ("x < DATE '2020-02-01'", '{ x = "DATE" }', DATES),
    ("month(x) = 3", '{ x = "DATE" }', DATES),
    ("x < '2020-1-20'", "", DATES),
    ("strptime(x, '%d/%m/%Y') < DATE '2020-06-01'", "", DATES),
    ("x = 'TRUE'", "", WORDS),
    ("x", '{ x = "BOOLEAN" }', WORDS),
    ("x AND true", "", WORDS),
    ("x IS NULL", "", WORDS),
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("where", "types", "values"), RULES)
def test_no_record_decides_whether_another_is_counted(
    place: Path, source: str, where: str, types: str, values: tuple[Values, Values]
) -> None:
    others, lasts = values
    outcomes = set()
    for last in lasts:
        counted = SOURCES[source](place, [*others, last], where, types)
        by_zone = dict(zip(counted.domain.names, counted.counts.tolist(), strict=True))
        outcomes.add(tuple(by_zone[str(zone)] for zone in range(1, len(others) + 1)))
    assert len(outcomes) == 1


@pytest.mark.parametrize("source", SOURCES)
def test_row_filters_use_text_or_declared_types(place: Path, source: str) -> None:
    def kept(where: str, types: str = "") -> list[int]:
        counted = SOURCES[source](place, [9, "none", 12, None, "8"], where, types)
        return [int(n) for n in counted.counts[1:]]

    assert kept("x > '10'") == [1, 1, 1, 0, 1]  # as texts
    assert kept("x > 10", '{ x = "INTEGER" }') == [0, 0, 1, 0, 0]
    assert kept("x IS NULL", '{ x = "INTEGER" }') == [0, 1, 0, 1, 0]
    assert kept("CAST(x AS INTEGER) > 8") == [1, 0, 1, 0, 0]
    assert kept("NOT CAST(x AS INTEGER) > 8") == [0, 0, 0, 0, 1]


def test_a_name_is_one_record_s_own(place: Path) -> None:
    """Levels, too: '01' stays '01' for all values of other records."""
    (place / "zones.csv").write_text("zone\n01\n1\n1.0\nz\n")
    plan = plan_of("rows.csv", "zone <> 'x'")
    for last in ("1", "1.0", "z", "x", "2020-01-01x"):
        (place / "rows.csv").write_text(f"zone\n01\n01\n1.0\n{last}\n".replace("2020-01-01x", "1"))
        counted = count(plan, base=place)
        by_zone = dict(zip(counted.domain.names, counted.counts.tolist(), strict=True))
        assert by_zone["01"] == 2
        assert by_zone["1.0"] >= 1


def test_a_row_filter_that_needs_types_is_refused_before_reading(place: Path) -> None:
    for where in ("x >= 18", "x < DATE '2020-06-01'", "month(x) = 2", "abs(x) = 1"):
        message = refusal(lambda w=where: from_csv(place, ["9"], w), PlanError)
        assert "x VARCHAR" in message
        assert "data.types" in message
        assert refusal(lambda w=where: from_csv(place, ["none"], w), PlanError) == message


def test_a_constant_of_the_wrong_type_is_refused_as_a_fault_of_the_row_filter(place: Path) -> None:
    """The zones of the public file are integers, and 'z' is not."""
    (place / "rows.csv").write_text("zone\n1\nz\n")
    message = refusal(lambda: count(plan_of("rows.csv", "zone <> 'z'"), base=place), PlanError)
    assert message.startswith("data.where is ")
    assert "zone BIGINT" in message
    plan = plan_of("rows.csv", "zone <> 'z'", '{ zone = "VARCHAR" }')
    assert count(plan, base=place).counts[0] == 1


def test_types_are_a_table_of_known_columns_and_types(place: Path) -> None:
    for types, words in (
        ('{ x = "INT" }', "data.types.x is 'INT'"),
        ('{ x = "int" }', "give 'BOOLEAN', 'INTEGER'"),
        ("{ x = 3 }", "data.types.x is 3; give 'BOOLEAN'"),
        ('"INTEGER"', "data.types is 'INTEGER'; give a table"),
        ('{ x = "DATE", X = "DATE" }', "holds 'X' twice"),
    ):
        assert words in refusal(lambda t=types: plan_of("rows.csv", "x", t), PlanError)
    message = refusal(lambda: from_csv(place, ["1"], "x = '1'", '{ y = "DATE" }'))
    assert "data.types names the column 'y'" in message


def test_declared_types_hold_in_typed_sources_and_public_files(place: Path) -> None:
    plan = plan_of("rows.csv", "zone <= 3 AND x < 10", '{ zone = "DOUBLE", x = "INTEGER" }')
    frame = pd.DataFrame({"zone": ["1.0", "2", "x"], "x": ["7", "no", "3"]})
    assert build_domain(plan, base=place).leaves.size == 3
    assert count(plan, frame=frame, base=place).counts.tolist() == [1, 1, 0, 0]


def test_a_lookup_s_keys_have_the_type_of_the_rows(place: Path) -> None:
    (place / "look.csv").write_text("id,zone\n01,1\n02,2\n")
    (place / "rows.csv").write_text("place\n1\n01\n2\nz\n")
    plan = parse_plan(
        '[data]\nsource = "rows.csv"\nlookup = { source = "look.csv", key = "id", on = "place" }\n'
        'types = { place = "INTEGER" }\nwhere = "place < 9"\n'
        '[hierarchy]\nroot = "all"\nlevels = ["zone"]\ndomain = "lookup"\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )
    assert count(plan, base=place).counts.tolist() == [3, 2, 1]


def test_parquet_files_of_one_glob_have_one_schema(place: Path) -> None:
    def write(name: str, kind: str, more: str = "") -> None:
        with closing(duckdb.connect()) as connection:
            connection.execute(
                f"COPY (SELECT 1 AS zone, CAST(7 AS {kind}) AS x{more}) TO '{place / name}.parquet'"
            )

    plan = plan_of("p*.parquet", "x < 10")
    write("p1", "INTEGER")
    write("p2", "INTEGER")
    assert count(plan, base=place).counts[0] == 2
    for kind, more in (("BIGINT", ""), ("VARCHAR", ""), ("INTEGER", ", 1 AS y")):
        write("p2", kind, more)
        message = refusal(lambda: count(plan, base=place))
        assert "'p2.parquet' has other columns or types than 'p1.parquet'" in message


def test_a_folder_name_does_not_give_a_column_a_type(place: Path) -> None:
    """A partition folder made by one record does not turn the others' numbers into text."""
    plan = plan_of("rows/*/r.csv", "age > '10'")
    for last in ("50", "none"):
        for age in ("9", last):
            folder = place / "rows" / f"age={age}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "r.csv").write_text("zone\n1\n" if age == "9" else "zone\n2\n")
        assert count(plan, base=place).counts[1] == 1
