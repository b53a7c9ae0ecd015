"""The plan's `where`: one condition on one row, understood by DuckDB's own parser."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb

from congenial.errors import DataError
from congenial.fields import refuse, show

# What a condition may be made of. A row must pass or fail by itself alone: were it judged by a
# subquery, a window or a clock, one record could move many others in or out of the counts.
_ALLOWED = (
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
_REMEDY = "give one condition on the columns of a row, such as 'hour < 12 AND zone <= 263'"


@dataclass(frozen=True)
class Conjunct:
    """One of the conditions that a row must meet together.

    Attributes
    ----------
    sql : str
    columns : frozenset of str
        The columns it names, in lower case.
    """

    sql: str
    columns: frozenset[str]


@dataclass(frozen=True)
class Condition:
    """A plan's `where`.

    Attributes
    ----------
    text : str
        As the plan writes it.
    conjuncts : tuple of Conjunct
        Split at the outermost ANDs; none where the plan has no `where`.
    """

    text: str
    conjuncts: tuple[Conjunct, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column named, in lower case, sorted."""
        return tuple(sorted(set().union(*(c.columns for c in self.conjuncts))))

    @property
    def sql(self) -> str:
        """The whole condition."""
        return _join(self.conjuncts)

    def on(self, known: Collection[str]) -> str:
        """The part that speaks of `known` columns only: the conjuncts that name no other."""
        folded = {c.casefold() for c in known}
        return _join(c for c in self.conjuncts if c.columns <= folded)

    def check_columns(self, known: Collection[str], holder: str) -> None:
        """Refuse columns that are not among `known`.

        Raises
        ------
        DataError
        """
        folded = {c.casefold() for c in known}
        for column in self.columns:
            if column not in folded:
                raise DataError(
                    f"data.where is {show(self.text)} and names {column!r}, which is no column of "
                    f"{holder}; its columns are {', '.join(known)}."
                )


def parse_where(connection: duckdb.DuckDBPyConnection, text: str | None) -> Condition:
    """Understand a `where`.

    Raises
    ------
    PlanError
        If it is not one condition on one row.
    """
    if text is None:
        return Condition("", ())
    node = _parse(connection, text)
    clause = None if node is None else node["statements"][0]["node"]["where_clause"]
    if node is None or clause is None:
        refuse("data.where", f"is {show(text)}, which is not one SQL condition", _REMEDY)
    for part in list(_parts(clause)):
        kind = part["class"]
        if kind not in _ALLOWED:
            what = kind.replace("_", " ").casefold()
            refuse("data.where", f"is {show(text)} and contains a {what}", _REMEDY)
        if kind == "FUNCTION":
            _check_function(connection, text, part["function_name"])
        if kind == "CASE":
            _try_cases(part)
    conjuncts = []
    for piece in _conjuncts(clause):
        node["statements"][0]["node"]["where_clause"] = piece
        (sql,) = connection.execute(
            "SELECT json_deserialize_sql(?)", [json.dumps(node)]
        ).fetchall()[0]
        columns = frozenset(
            p["column_names"][0].casefold() for p in _parts(piece) if p["class"] == "COLUMN_REF"
        )
        conjuncts.append(Conjunct(sql.removeprefix("SELECT 1 WHERE "), columns))
    return Condition(text, tuple(conjuncts))


def _parse(connection: duckdb.DuckDBPyConnection, text: str) -> dict[str, Any] | None:
    """Syntax tree of ``SELECT 1 WHERE (text)``, or None where `text` is not one expression."""
    try:
        duckdb.SQLExpression(text)  # refuses what merely closes our bracket and opens another
        row = connection.execute(
            "SELECT json_serialize_sql(?)", [f"SELECT 1 WHERE ({text}\n)"]
        ).fetchall()[0]
    except (duckdb.Error, TypeError):  # TypeError: text that UTF-8 cannot write
        return None
    tree: dict[str, Any] = json.loads(row[0])
    return None if tree["error"] or len(tree["statements"]) != 1 else tree


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Every expression in a syntax tree."""
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        for value in tree.values():
            yield from _parts(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _parts(value)


def _try_cases(case: dict[str, Any]) -> None:
    """Evaluate each WHEN whole, under TRY.

    DuckDB orders the parts of a WHEN by how fast they were on other rows and skips the later ones,
    so that it would depend on those rows whether a part that fails is reached.
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
    found = connection.execute(
        "SELECT bool_and(function_type IN ('scalar', 'macro') AND coalesce(stability, 'CONSISTENT')"
        " = 'CONSISTENT') FROM duckdb_functions() WHERE function_name = ?",
        [name.casefold()],
    ).fetchall()[0][0]
    if found is False or (found is None and name.isidentifier()):
        refuse(
            "data.where",
            f"is {show(text)} and calls {name}(), "
            + ("which is unknown" if found is None else "which depends on more than its arguments"),
            _REMEDY,
        )
