"""Dataframes as tables of an embedded DuckDB."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import duckdb
import narwhals as nw

from congenial.data.sources import Connection, Relation, describe
from congenial.errors import ArgumentError, DataError

# Exceptions of engines, by the modules that define them; their texts may quote a cell.
_FAILURES = (
    ("pyspark.errors", "PySparkException"),
    ("py4j.protocol", "Py4JError"),
    ("grpc", "RpcError"),
    ("ibis.common.exceptions", "IbisError"),
    ("psycopg", "Error"),
    ("sqlite3", "Error"),
    ("pyarrow", "ArrowException"),
)


def failures() -> tuple[type[Exception], ...]:
    """Exceptions that a frame or its engine may raise; their texts may quote a cell."""
    own = (
        duckdb.Error,
        nw.exceptions.NarwhalsError,
        ValueError,
        TypeError,
        NotImplementedError,
        OverflowError,
    )
    loaded = ((sys.modules.get(module), name) for module, name in _FAILURES)
    return (*own, *(getattr(module, name) for module, name in loaded if module is not None))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep PySpark from writing the error of a query, which may quote a cell, to the terminal."""
    module = sys.modules.get("pyspark.logger")
    if module is None:
        yield
        return
    logger = module.PySparkLogger.getLogger("SQLQueryContextLogger")
    before, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = before


def unfit(shown: str) -> str:
    """Return the error for a frame whose values cannot be read."""
    return f"a column of {shown} cannot be given to Arrow; give each column values of one type"


def check_arrow(frame: nw.DataFrame[Any] | nw.LazyFrame[Any]) -> None:
    """Refuse a frame that needs pyarrow, if pyarrow is not installed."""
    if not frame.implementation.is_polars() and find_spec("pyarrow") is None:
        raise ArgumentError(
            f"a frame of {frame.implementation} is counted through Arrow; install pyarrow."
        )


def register(
    connection: Connection, frame: nw.DataFrame[Any], names: Sequence[str], shown: str
) -> Relation:
    """Register a frame that lies in memory."""
    check_arrow(frame)
    failed = False
    try:
        connection.register("frame", with_text(frame, names))
    except failures():
        failed = True
    if failed:
        raise DataError(f"{unfit(shown)}.")
    return describe(connection, "frame", shown, unfit(shown))


def with_text(frame: nw.DataFrame[Any], names: Sequence[str]) -> Any:
    """Turn pandas columns of objects into text, value by value.

    Arrow would guess the type of such a column from its values, so that one record would decide
    how the others are read.
    """
    if not frame.implementation.is_pandas_like():
        return frame
    native = frame.to_native()
    for name in names:
        column = native[name]
        if str(getattr(column.dtype, "categories", column).dtype) == "object":
            texts = column.astype(object).map(_text, na_action="ignore")
            native = native.assign(**{name: texts.astype("string")})
    return nw.from_native(native, eager_only=True)


def _text(value: object) -> str:
    """Write a value as text; integers without a decimal point."""
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
