"""The plan's row filter (`where`): one SQL condition on one row, parsed by DuckDB."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn

import duckdb

from congenial.durability.signals import uninterrupted
from congenial.errors import DataError
from congenial.plan.fields import refuse
from congenial.wording import show

# Parts of which a row filter may consist. Whether a row passes must depend on that row alone. With
# a subquery, a window or a clock, one record could move many others in or out of the counts.
_CLASSES = (
    "BETWEEN",
    "CASE",
    "CAST",
    "COLLATE",
    "COLUMN_REF",
    "COMPARISON",
    "CONJUNCTION",
    "CONSTANT",
    "FUNCTION",
    "OPERATOR",
    "TYPE",
)
# The functions that it may call, in every form that DuckDB has of them. None of them reads a clock,
# a setting or a file, and only those in _GROWING make a long value from a short one. DuckDB's own
# labels do not suffice: it labels `age` of one argument consistent, which reads the clock.
_LISTED = """
    + - * / // % ** ^ & | << >> ~ @ || ~~ !~~ ~~* !~~* ~~~ ^@ ->> !__postfix
    abs add cbrt ceil ceiling degrees divide even exp factorial fdiv floor fmod gcd
    greatest greatest_common_divisor isfinite isinf isnan lcm least least_common_multiple ln log
    log10 log2 mod multiply pi pow power radians round round_even sign signbit sqrt subtract trunc
    bit_count xor
    acos asin atan atan2 cos cot sin tan

    ascii bit_length char_length character_length chr concat concat_ws contains ends_with
    ilike_escape instr lcase left len length like_escape lower ltrim not_ilike_escape
    not_like_escape octet_length ord position prefix regexp_escape regexp_extract
    regexp_extract_all regexp_full_match regexp_matches regexp_split_to_array reverse right rtrim
    split split_part starts_with str_split str_split_regex string_split string_split_regex
    string_to_array strip_accents strlen strpos substr substring suffix translate trim ucase
    unicode upper nfc_normalize
    jaccard jaro_similarity jaro_winkler_similarity levenshtein
    hash md5 sha1 sha256
    lpad regexp_replace replace rpad

    century date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc
    day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch epoch_ms epoch_ns
    epoch_us era hour isodow isoyear julian last_day make_date make_time make_timestamp
    microsecond millennium millisecond minute month monthname nanosecond quarter second strftime
    strptime time_bucket timezone to_centuries to_days to_decades to_hours to_microseconds
    to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks
    to_years try_strptime week weekday weekofyear year yearweek

    array_contains array_extract array_has array_has_all array_has_any array_length
    array_position cardinality element_at if json_array_length json_contains json_exists
    json_extract json_extract_path json_extract_path_text json_extract_string json_type json_valid
    json_value list_contains list_element list_extract list_has list_has_all list_has_any
    list_indexof list_position list_value map_contains map_extract map_extract_value nullif row
    struct_extract struct_pack typeof
"""
_FUNCTIONS = frozenset(_LISTED.split())
# Functions that can make a long text from a short one, with the argument that gives the length.
_GROWING = {"lpad": 1, "rpad": 1, "replace": 2, "regexp_replace": 2}
# Limits of a row filter: DuckDB would take minutes to parse a larger one.
_LONGEST = 100_000  # Characters.
_MOST = 2_000  # Columns, comparisons and calls.
_DEEPEST = 100  # Levels of nesting.
# Factor, or number of characters, by which calls may lengthen a text; it must fit in memory.
_WIDEST = 10_000
_SIMPLER = "give the lookup a column that says which rows count, and compare that"
_REMEDY = (
    "give one condition on the columns of a row, with text in single quotes, such as "
    "\"hour < 12 AND borough = 'New York'\""
)


@dataclass(frozen=True)
class Conjunct:
    """One of the conditions that are joined by AND."""

    sql: str
    columns: frozenset[str]  # The columns it names, in lower case.
    tree: Mapping[str, Any] = field(compare=False, repr=False)  # As DuckDB's parser writes it.


@dataclass(frozen=True)
class Condition:
    """A plan's `where`."""

    text: str  # As the plan writes it.
    conjuncts: tuple[Conjunct, ...]  # Split at the outermost ANDs; empty without a row filter.

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column named, in lower case, sorted."""
        return tuple(sorted(set().union(*(c.columns for c in self.conjuncts))))

    @property
    def sql(self) -> str:
        """The whole condition."""
        return _join(self.conjuncts)

    def on(self, known: Collection[str]) -> str:
        """The conjuncts that use `known` columns only."""
        folded = {c.casefold() for c in known}
        return _join(c for c in self.conjuncts if c.columns <= folded)

    def check_columns(self, known: Collection[str], holder: str) -> None:
        """Refuse columns that are not among `known`."""
        folded = {c.casefold() for c in known}
        for column in self.columns:
            if column not in folded:
                spelt = re.search(rf"(?<!\w){re.escape(column)}(?!\w)", self.text, re.IGNORECASE)
                name = column if spelt is None else spelt[0]
                raise DataError(
                    f"data.where is {show(self.text)} and names {name!r}, which is no column of "
                    f"{holder}; its columns are {', '.join(known)}; if you meant a "
                    f"value, put it in single quotes: '{name}'."
                )


@uninterrupted()
def parse_where(connection: duckdb.DuckDBPyConnection, text: str | None) -> Condition:
    """Parse a `where`; refuse all that does not depend on one row alone."""
    if text is None:
        return Condition("", ())
    if len(text) > _LONGEST:
        _too_large(text, f"has {len(text):,} characters, more than {_LONGEST:,}")
    if _depth(text) > _DEEPEST:
        _too_large(text, f"is nested more than {_DEEPEST} deep")
    node = _parse(connection, text)
    clause = None if node is None else node["statements"][0]["node"]["where_clause"]
    if node is None or clause is None:
        refuse("data.where", f"is {show(text)}, which is not one SQL condition", _REMEDY)
    parts = list(_parts(clause))
    count = sum(part["class"] != "CONSTANT" for _, part in parts)
    if count > _MOST:
        _too_large(text, f"has {count:,} columns, comparisons and calls, more than {_MOST:,}")
    if max(depth for depth, _ in parts) > _DEEPEST:
        _too_large(text, f"is nested more than {_DEEPEST} deep")
    for _, part in parts:
        kind = part["class"]
        if kind not in _CLASSES:
            what = kind.replace("_", " ").casefold()
            refuse("data.where", f"is {show(text)} and contains a {what}", _REMEDY)
        if kind == "FUNCTION":
            _check_function(connection, text, part["function_name"])
        if kind == "CASE":
            _try_cases(part)
    _check_growth(text, [part for _, part in parts if part["class"] == "FUNCTION"])
    conjuncts = []
    for piece in _conjuncts(clause):
        node["statements"][0]["node"]["where_clause"] = piece
        (sql,) = connection.execute(
            "SELECT json_deserialize_sql(?)", [json.dumps(node)]
        ).fetchall()[0]
        columns = frozenset(
            p["column_names"][0].casefold() for _, p in _parts(piece) if p["class"] == "COLUMN_REF"
        )
        conjuncts.append(Conjunct(sql.removeprefix("SELECT 1 WHERE "), columns, piece))
    return Condition(text, tuple(conjuncts))


def _parse(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any] | None:
    """Syntax tree of ``SELECT 1 WHERE (text)``, or None where `text` is not one expression."""
    try:
        duckdb.SQLExpression(text)  # refuses text that closes the bracket below and opens another
        row = connection.execute(
            "SELECT json_serialize_sql(?)", [f"SELECT 1 WHERE ({text}\n)"]
        ).fetchall()[0]
    except (duckdb.Error, TypeError):  # TypeError: text that UTF-8 cannot encode
        return None
    try:
        tree: dict[str, Any] = json.loads(row[0])
    except RecursionError:
        tree = {}
    if not tree:
        _too_large(text, f"is nested more than {_DEEPEST} deep")
    return None if tree["error"] or len(tree["statements"]) != 1 else tree


def _depth(text: str) -> int:
    """Depth of nested brackets and repeated signs; DuckDB would parse deep ones for minutes."""
    bare = re.sub(r"'[^']*'|\"[^\"]*\"", "", text)
    brackets = re.findall(r"[([{)\]}]", bare)
    signs = re.findall(r"[-+][-+\s]*", bare)
    depths = accumulate((1 if sign in "([{" else -1 for sign in brackets), initial=0)
    return max([*depths, *(len(run) - len(re.findall(r"\s", run)) for run in signs)])


def _parts(tree: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every expression in a syntax tree with its depth, outer expressions first."""
    left = [(0, tree)]
    while left:
        depth, found = left.pop()
        if isinstance(found, dict):
            if "class" in found:
                yield depth, found
                depth += 1
            found = list(found.values())
        if isinstance(found, list):
            left += [(depth, value) for value in reversed(found)]


def _too_large(text: str, why: str) -> NoReturn:
    refuse("data.where", f"is {show(text)} and {why}", _SIMPLER)


def _check_growth(text: str, calls: Iterable[dict[str, Any]]) -> None:
    """Refuse calls that could make a text too long for the memory."""
    times = 1
    for call in calls:
        name = call["function_name"].casefold()
        if name not in _GROWING:
            continue
        given = dict(enumerate(call["arguments"])).get(_GROWING[name], {})
        literal = given.get("expression", {}).get("literal", {})
        kind, value = literal.get("kind"), literal.get("text", "")
        known = kind == "STRING" or (kind == "INTEGER" and value.isdigit())
        if given.get("name") or not known:
            refuse(
                "data.where",
                f"is {show(text)}, where {name}() makes texts of unknown length",
                "give it a constant there",
            )
        # 18 digits exceed the limit already
        size = len(value) if kind == "STRING" else int(value.lstrip("0")[:18] or "0")
        times *= max(1, size)
        if times > _WIDEST:
            refuse(
                "data.where",
                f"is {show(text)}, where {name}() could make texts {times:,} times as long, or "
                f"{times:,} characters long; the limit is {_WIDEST:,}",
                "give it a shorter text or a smaller width",
            )


def _try_cases(case: dict[str, Any]) -> None:
    """Evaluate each WHEN whole, under TRY.

    DuckDB orders the parts of a WHEN by their speed on earlier rows, and may skip the later parts.
    Without TRY, other rows would decide whether a part that fails is evaluated.
    """
    for check in case["case_checks"]:
        check["when_expr"] = {
            "class": "OPERATOR",
            "type": "OPERATOR_TRY",
            "alias": "",
            "query_location": 0,
            "children": [check["when_expr"]],
        }


def _conjuncts(clause: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if clause["type"] == "CONJUNCTION_AND":
        for child in clause["children"]:
            yield from _conjuncts(child)
    else:
        yield clause


def _join(conjuncts: Iterable[Conjunct]) -> str:
    return " AND ".join(f"({c.sql})" for c in conjuncts) or "true"


def _check_function(connection: duckdb.DuckDBPyConnection, text: str, name: str) -> None:
    if name.casefold() in _FUNCTIONS:
        return
    known = connection.execute(
        "SELECT 1 FROM duckdb_functions() WHERE function_name = ? LIMIT 1", [name.casefold()]
    ).fetchall()
    why = (
        "which is not among the functions allowed (docs/plan.md lists them)"
        if known
        else "which is unknown"
    )
    refuse("data.where", f"is {show(text)} and calls {name}(), {why}", _REMEDY)
