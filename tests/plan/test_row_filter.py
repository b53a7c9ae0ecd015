"""A row filter uses one row at a time, reads no clock, and is refused if it is too large."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from congenial.data.sources import connect
from congenial.errors import DataError, PlanError
from congenial.plan import row_filter as where
from congenial.plan.row_filter import parse_where

PAGE = Path(__file__).parents[2] / "docs" / "plan.md"


def refusal(text: str) -> str:
    with connect() as connection, pytest.raises(PlanError) as caught:
        parse_where(connection, text)
    said = str(caught.value)
    assert said.startswith("data.where ")
    assert said.endswith(".")
    assert len(said) < 500
    return said


CLOCKS = (
    "ago(INTERVAL 1 DAY) < day",
    "AGO(INTERVAL 1 DAY) < day",
    "age(day) > INTERVAL 18 YEAR",
    "current_localtime(stamp) > hour",
    "current_localtimestamp() > stamp",
    "get_current_timestamp() > stamp",
    "now() > stamp",
    "today() > day",
    "transaction_timestamp() > stamp",
    "pg_postmaster_start_time() > stamp",
    "pg_conf_load_time() > stamp",
    "system.main.ago(INTERVAL 1 DAY) < day",
    "day.ago() < day",
)
SURROUNDINGS = (
    "current_setting('threads') = kind",
    "getvariable('x') = kind",
    "version() = kind",
    "user() = kind",
    "current_query() = kind",
    "txid_current() > 1",
    "nextval('s') > 1",
    "random() < 0.5",
    "uuid() = kind",
    "sleep_ms(1000) IS NULL",
    "pg_sleep(1) IS NULL",
    "write_log('x') IS NULL",
    "get_block_size('memory') > 1",
    "format_type(1, 2) = kind",
    "stats(kind) = ''",
)


@pytest.mark.parametrize("text", CLOCKS + SURROUNDINGS)
def test_a_row_filter_may_not_read_clocks_or_settings(text: str) -> None:
    assert "which is not among the functions allowed" in refusal(text)


@pytest.mark.parametrize("word", ["current_date", "current_timestamp", "localtime", "user"])
def test_names_of_clocks_without_parentheses_are_columns(word: str) -> None:
    with connect() as connection:
        assert parse_where(connection, f"{word} > day").columns == tuple(sorted({word, "day"}))


def test_words_such_as_now_are_not_dates() -> None:
    words = ("now", "today", "yesterday", "tomorrow")
    with connect() as connection:
        for kind in ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ"):
            casts = ", ".join(f"TRY_CAST('{word}' AS {kind})" for word in words)
            assert set(connection.execute(f"SELECT {casts}").fetchall()[0]) == {None}


def faults(functions: frozenset[str]) -> list[str]:
    """Return functions that DuckDB has under no such name, or that depend on more than arguments.

    A macro is as good as the functions that it calls.
    """
    found = []
    with connect() as connection:
        for name in sorted(functions):
            rows = connection.execute(
                "SELECT function_type, stability, macro_definition, parameters, parameter_types "
                "FROM duckdb_functions() WHERE lower(function_name) = ?",
                [name],
            ).fetchall()
            if not rows and name != "row":  # the parser's own
                found.append(f"{name} is unknown")
            for kind, stability, definition, names, types in rows:
                # our connections have the zone UTC, which DuckDB 2.0.1 counts as a clock
                zoned = any("ZONE" in str(each) or "TZ" in str(each) for each in types)
                if kind == "scalar" and stability != "CONSISTENT" and not zoned:
                    found.append(f"{name} is {stability}")
                elif kind == "macro":
                    tree = connection.execute(
                        "SELECT json_serialize_sql(?)", [f"SELECT {definition}"]
                    ).fetchall()[0][0]
                    used = {
                        part.get("function_name", part.get("column_names", [""])[0])
                        for _, part in where._parts(json.loads(tree))
                        if part["class"] in ("FUNCTION", "COLUMN_REF")
                    }
                    # a word such as current_timestamp is written like a column
                    found += [f"{name} uses {v}" for v in used - functions - {*names}]
                elif kind != "scalar":
                    found.append(f"{name} is of kind {kind}")
    return found


def test_each_function_of_the_list_depends_on_its_arguments_alone() -> None:
    assert faults(where._FUNCTIONS) == []


def test_the_test_fails_for_a_clock_on_the_list() -> None:
    planted = frozenset(("ago", "now", "random", "sum", "nosuch", "pg_conf_load_time"))
    assert {fault.split()[0] for fault in faults(planted | {"-"})} == planted


def test_the_page_lists_the_functions() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.partition("<!-- functions -->")[2].partition("<!-- end -->")[0]
    named = set(re.findall(r"`([^`]+)`", table))
    signs = {v for v in where._FUNCTIONS if not v.replace("_", "").isalnum()}
    assert named == where._FUNCTIONS - signs


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (" AND ".join(f"a{i} = {i}" for i in range(20_000)), "characters, more than 100,000"),
        (" AND ".join("a=1" for _ in range(10_000)), "calls, more than 2,000"),
        (" OR ".join("a=1" for _ in range(10_000)), "calls, more than 2,000"),
        ("a = " + "1+" * 200 + "1", "nested more than 100 deep"),
        ("a = " + "1+" * 900 + "1", "nested more than 100 deep"),
        ("(" * 90_000 + "a" + ")" * 9_000, "nested more than 100 deep"),
        ("- " * 10_000, "nested more than 100 deep"),
        ("a[" * 1_000, "nested more than 100 deep"),
        ("lpad(kind, 2000000000, 'x') = 'b'", "2,000,000,000"),
        (f"lpad(kind, {'9' * 5000}, 'x') = 'b'", "the limit is 10,000"),
        (f"lpad(kind, {'0' * 30}2000000000, 'x') = 'b'", "the limit is 10,000"),
        ("RPAD(kind, 10001, 'x') = 'b'", "the limit is 10,000"),
        ("rpad(kind, hour, 'x') = 'b'", "of unknown length"),
        ("rpad(kind, 1000 * 1000, 'x') = 'b'", "of unknown length"),
        ("replace(kind, 'a', kind) = 'b'", "of unknown length"),
        ("replace(" * 5 + "kind" + ", 'a', 'aaaaaaaaaa')" * 5 + " = 'b'", "100,000 times"),
        ("regexp_replace(kind, '', repeat('a', 9)) = 'b'", "repeat()"),
        ("range(1000000000) IS NULL", "range()"),
        ("printf('%2000000000d', 3) = ''", "printf()"),
        ("bitstring('1', 2000000000) IS NULL", "bitstring()"),
        ("list_resize([1], 2000000000) IS NULL", "list_resize()"),
    ],
)
def test_too_large_a_row_filter_is_refused_with_its_size(text: str, told: str) -> None:
    assert told in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "lpad(kind, 10000, '0') = 'b'",
        f"kind = '{'(' * 1000}'",
        f"zone IN ({', '.join(map(str, range(10_000)))})",
        " OR ".join(f"a = {i}" for i in range(600)),
        "replace(replace(replace(kind, '-', ''), ' ', ''), '.', '') = 'ab'",
    ],
)
def test_large_useful_row_filters_are_accepted(text: str) -> None:
    with connect() as connection:
        assert parse_where(connection, text).columns


@pytest.mark.parametrize(
    "text", ["borough = Arden", 'borough = "Arden"', "borough in (Arden, 'B')"]
)
def test_text_without_single_quotes_is_named_as_it_is_written(text):
    with connect() as connection:
        condition = parse_where(connection, text)
    with pytest.raises(DataError) as caught:
        condition.check_columns(("borough", "zone"), "'rows.csv'")
    assert "names 'Arden', which is no column of 'rows.csv'" in str(caught.value)
    assert str(caught.value).endswith("; if you meant a value, put it in single quotes: 'Arden'.")


def test_text_of_two_words_without_quotes_is_no_condition():
    assert "with text in single quotes" in refusal("borough = New York")
