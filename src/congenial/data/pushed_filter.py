"""Parts of a row filter that another engine evaluates with the same result as DuckDB.

Only comparisons of a column with constants of its own type, tests for NULL, and AND, OR and NOT of
these. They cannot fail on a row. All else stays with DuckDB.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

import narwhals as nw

# A value of a literal that Python and DuckDB read alike: of up to 15 digits, a double is exact.
_DECIMAL = re.compile(r"-?(?=.{1,16}$)\d+\.\d+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_WHOLE = re.compile(r"-?\d{1,18}")
_COMPARED: dict[str, Callable[[Any, Any], nw.Expr]] = {
    "COMPARE_EQUAL": eq,
    "COMPARE_NOTEQUAL": ne,
    "COMPARE_LESSTHAN": lt,
    "COMPARE_LESSTHANOREQUALTO": le,
    "COMPARE_GREATERTHAN": gt,
    "COMPARE_GREATERTHANOREQUALTO": ge,
}
_JOINED = {"CONJUNCTION_AND": and_, "CONJUNCTION_OR": or_}
_REVERSED = {lt: gt, le: ge, gt: lt, ge: le}
# Bits of the values of types that data.types may declare.
_BITS = {"INTEGER": 31, "BIGINT": 63}


@dataclass(frozen=True)
class Column:
    """A column of the rows, as the engine knows it."""

    name: str
    dtype: nw.dtypes.DType
    declared: str | None  # Its type in the plan's data.types.

    @property
    def value(self) -> nw.Expr | None:
        """Its value, cast to its declared type; None if only DuckDB casts so."""
        bits = _BITS.get(self.declared or "")
        value = nw.col(self.name)
        if self.dtype == nw.Float64:  # a number that is none is missing
            value = nw.when(~value.is_nan()).then(value)
        if self.declared is None or _SAME.get(self.declared) == self.dtype:
            return value
        if bits is None or not _in_64_bits(self.dtype):
            return None
        wide = value.cast(nw.Int64)  # the limits of a narrow type may not fit the column's
        return nw.when((wide >= -(2**bits)) & (wide <= 2**bits - 1)).then(wide)


_SAME = {"VARCHAR": nw.String, "DATE": nw.Date, "BOOLEAN": nw.Boolean, "DOUBLE": nw.Float64}
_PLAIN: tuple[type[nw.dtypes.DType], ...] = (nw.String, nw.Date, nw.Boolean, nw.Float64)


def translate(
    tree: Mapping[str, Any], columns: Mapping[str, Column], *, ordered_text: bool
) -> nw.Expr | None:
    """Translate a condition of DuckDB's parser; None if the engine's result could differ.

    Parameters
    ----------
    tree : dict
        As DuckDB writes an expression in JSON.
    columns : mapping
        Columns by their names in lower case.
    ordered_text : bool
        Whether the engine orders texts by their bytes, as DuckDB does.
    """
    return _Translator(columns, ordered_text).condition(tree)


@dataclass(frozen=True)
class _Translator:
    columns: Mapping[str, Column]
    ordered_text: bool

    def condition(self, tree: Mapping[str, Any]) -> nw.Expr | None:
        """Translate an expression that is true, false or NULL."""
        kind = tree["type"]
        found = None
        if kind in _JOINED:
            found = self._joined(tree["children"], _JOINED[kind])
        elif kind == "OPERATOR_NOT":
            inner = self.condition(tree["children"][0])
            found = None if inner is None else ~inner
        elif kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            found = self._is_null(tree["children"][0], kind == "OPERATOR_IS_NULL")
        elif kind == "COMPARE_IN":
            tested, *listed = tree["children"]
            found = self._any(tested, listed)
        elif kind == "COMPARE_BETWEEN":
            found = self._between(tree)
        elif kind in _COMPARED:
            found = self._either_way(tree["left"], tree["right"], _COMPARED[kind])
        elif kind == "COLUMN_REF":
            column = self._column(tree)
            found = None if column is None or column.dtype != nw.Boolean else column.value
        return found

    def _between(self, tree: Mapping[str, Any]) -> nw.Expr | None:
        lower = self._compared(tree["input"], tree["lower"], ge)
        upper = self._compared(tree["input"], tree["upper"], le)
        return None if lower is None or upper is None else lower & upper

    def _joined(
        self, trees: list[Any], join: Callable[[nw.Expr, nw.Expr], nw.Expr]
    ) -> nw.Expr | None:
        found = [part for part in map(self.condition, trees) if part is not None]
        return reduce(join, found) if len(found) == len(trees) else None

    def _is_null(self, tree: Mapping[str, Any], wanted: bool) -> nw.Expr | None:
        column = self._column(tree)
        if column is None or column.value is None or not _is_plain(column.dtype):
            return None
        return column.value.is_null() if wanted else ~column.value.is_null()

    def _any(self, tested: Mapping[str, Any], listed: list[Any]) -> nw.Expr | None:
        column = self._column(tested)
        if column is None or column.value is None:
            return None
        constants = [_constant(one, column.dtype) for one in listed]
        if any(constant is None for constant in constants):
            return None
        wide = any(_exceeds(constant, column.dtype) for constant in constants)
        value = column.value.cast(nw.Int64) if wide else column.value
        # unknown for NULL, whatever the engine's own rule is
        return nw.when(~value.is_null()).then(value.is_in(constants))

    def _either_way(
        self, left: Mapping[str, Any], right: Mapping[str, Any], compare: Callable[[Any, Any], Any]
    ) -> nw.Expr | None:
        if right["type"] == "COLUMN_REF":
            left, right, compare = right, left, _REVERSED.get(compare, compare)
        return self._compared(left, right, compare)

    def _compared(
        self, left: Mapping[str, Any], right: Mapping[str, Any], compare: Callable[[Any, Any], Any]
    ) -> nw.Expr | None:
        column = self._column(left)
        if column is None or column.value is None:
            return None
        constant = _constant(right, column.dtype)
        if constant is None or (
            column.dtype == nw.String and compare not in (eq, ne) and not self.ordered_text
        ):
            return None
        value = column.value.cast(nw.Int64) if _exceeds(constant, column.dtype) else column.value
        found: nw.Expr = compare(value, constant)
        return found

    def _column(self, tree: Mapping[str, Any]) -> Column | None:
        names: list[str] = tree.get("column_names", []) if tree["type"] == "COLUMN_REF" else []
        return self.columns.get(names[0].casefold()) if len(names) == 1 else None


def _is_plain(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_integer() or dtype in _PLAIN


def _exceeds(constant: object, dtype: nw.dtypes.DType) -> bool:
    """Whether a whole number may exceed the column's type, so that the engine has to widen it."""
    return dtype.is_integer() and dtype != nw.Int64 and not -128 <= int(str(constant)) <= 127


def _constant(tree: Mapping[str, Any], dtype: nw.dtypes.DType) -> object | None:
    """Return the constant if DuckDB compares it with the column's own type; else None."""
    if tree["type"] == "OPERATOR_CAST":
        if tree["type_expr"]["type_name"] != "DATE" or dtype != nw.Date:
            return None
        tree = tree["child"]
    if tree["type"] != "VALUE_CONSTANT":
        return None
    kind, text = tree["literal"]["kind"], tree["literal"]["text"]
    found: object | None = None
    if kind == "STRING" and dtype == nw.String:
        found = None if "\0" in text else text
    elif kind == "STRING" and dtype == nw.Date:
        found = _day(text)
    elif kind == "BOOLEAN" and dtype == nw.Boolean:
        found = text == "true"
    elif kind == "INTEGER" and _WHOLE.fullmatch(text) and _in_64_bits(dtype):
        found = int(text)
    elif dtype == nw.Float64 and (
        (kind == "INTEGER" and _WHOLE.fullmatch(text))
        or (kind == "NUMERIC" and _DECIMAL.fullmatch(text))
    ):
        found = float(text)
    return found


def _in_64_bits(dtype: nw.dtypes.DType) -> bool:
    return dtype.is_integer() and dtype not in (nw.UInt64, nw.Int128, nw.UInt128)


def _day(text: str) -> date | None:
    if not _DAY.fullmatch(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
