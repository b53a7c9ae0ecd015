"""Row filters are translated where the result is DuckDB's, and only there."""

from __future__ import annotations

import duckdb
import narwhals as nw
import numpy as np
import polars as pl
import pytest

from congenial.data.pushed_filter import Column, translate
from congenial.plan.row_filter import parse_where
from support.random_plans import HARD, SIMPLE, draw_case

NOT_SIMPLE = (
    "age >= '18'",
    "sex >= 18",
    "day < DATE '2020-13-01'",
    "day < DATE '2020-1-1'",
    "score < 1e3",
    "score = 0.12345678901234567",
    "age < 1234567890123456789012",
    "TRY_CAST(sex AS INTEGER) = 1",
    "flag IS TRUE",
    "flag = 1",
    "age + 1 > 3",
    "(age > 3) = flag",
    "whole IN (1, NULL)",
    "age BETWEEN 1 AND whole",
    "other = 3",
)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    case = draw_case(np.random.default_rng(5), tmp_path_factory.mktemp("public"), size=2_000)
    return pl.from_arrow(case.rows)


def translated(text, rows, *, ordered_text=True, **declared):
    schema = nw.from_native(rows).schema
    columns = {c: Column(c, schema[c], declared.get(c)) for c in schema}
    with duckdb.connect() as connection:
        condition = parse_where(connection, text)
    found = [translate(c.tree, columns, ordered_text=ordered_text) for c in condition.conjuncts]
    return None if any(one is None for one in found) else found


def kept(rows, found):
    frame = nw.from_native(rows).filter(
        *(nw.when(one).then(True).otherwise(False) for one in found)
    )
    return frame["place_in_rows"].to_list()


@pytest.mark.parametrize("text", SIMPLE)
def test_a_simple_condition_has_the_result_of_duckdb(text, rows):
    rows = rows.with_row_index("place_in_rows")
    # NaN is a missing value in counting
    known = "SELECT * REPLACE (nullif(score, 'nan') AS score) FROM rows"
    for condition in (text, f"NOT ({text})", f"({text}) OR age = 50", f"{text} AND sex = 'f'"):
        sql = f"SELECT place_in_rows FROM ({known}) WHERE {condition} ORDER BY ALL"
        with duckdb.connect() as connection:
            connection.register("rows", rows.to_arrow())
            expected = [row[0] for row in connection.sql(sql).fetchall()]
        assert kept(rows, translated(condition, rows)) == expected


@pytest.mark.parametrize("text", [*HARD, *NOT_SIMPLE])
def test_any_other_condition_is_left_to_duckdb(text, rows):
    assert translated(text, rows) is None


def test_a_declared_type_is_cast_as_duckdb_casts(rows):
    rows = pl.DataFrame({"place_in_rows": range(4), "age": [3, 2**31, -(2**40), None]})
    assert kept(rows, translated("age <> 5", rows, age="INTEGER")) == [0]
    assert kept(rows, translated("age IS NULL", rows, age="INTEGER")) == [1, 2, 3]
    assert kept(rows, translated("age <> 5", rows, age="BIGINT")) == [0, 1, 2]
    assert translated("age <> 5", rows, age="DOUBLE") is None
    assert translated("age IS NULL", rows, age="VARCHAR") is None


def test_texts_are_ordered_only_where_the_engine_orders_them_by_bytes(rows):
    assert translated("sex < 'm'", rows, ordered_text=False) is None
    assert translated("sex = 'm'", rows, ordered_text=False) is not None
