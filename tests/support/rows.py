"""The same few rows in every kind of source, for tests of counting."""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from congenial.data.counts import Counted, count
from congenial.errors import CongenialError, DataError
from congenial.plan.plan import Plan, parse_plan

LOOKUP = [
    (1, "EWR"),
    (2, "Queens"),
    (3, "Bronx"),
    (7, "Queens"),
    (12, "Manhattan"),
    (13, "Manhattan"),
    (20, "Bronx"),
    (264, "Unknown"),
    (265, "N/A"),
]
BOROUGH = dict(LOOKUP)
Row = tuple[Any, ...]


def make_plan(
    source: str, *, where: str | None = "zone <= 263", extra: str = "", **keys: str
) -> Plan:
    types = keys.get("types", '{ zone = "BIGINT" }' if where == "zone <= 263" else "")
    lookup = keys.get("lookup", '{ source = "zones.csv", key = "LocationID", on = "zone" }')
    return parse_plan(
        f'[data]\nsource = "{source}"\n'
        + (f'where = """{where}"""\n' if where is not None else "")
        + (f"lookup = {lookup}\n" if lookup else "")
        + (f"types = {types}\n" if types else "")
        + (f'table = "{keys["table"]}"\n' if "table" in keys else "")
        + f'[hierarchy]\nroot = "City"\nlevels = {keys.get("levels", ["Borough", "zone"])}\n'
        f'domain = "{keys.get("domain", "lookup")}"\n{extra}\n'
        '[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )


def write_csv(file: Path, header: Sequence[str], rows: Sequence[Row]) -> None:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(header)
    writer.writerows(rows)
    raw = text.getvalue().encode()
    file.write_bytes(gzip.compress(raw) if file.suffix == ".gz" else raw)


HEADER = ("zone", "hour", "kind")


def arrow(rows: Sequence[Row]) -> pa.Table:
    types = (pa.int64(), pa.int32(), pa.string())
    return pa.table(
        {
            name: pa.array([row[i] for row in rows], type=types[i])
            for i, name in enumerate(HEADER[: len(rows[0]) if rows else 3])
        }
    )


def as_csv(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    write_csv(place / "rows.csv", HEADER, rows)
    return "rows.csv", {}


def as_gzip(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    write_csv(place / "rows.csv.gz", HEADER, rows)
    return "rows.csv.gz", {}


def as_parquet(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    with closing(duckdb.connect()) as connection:
        connection.register("t", arrow(rows))
        connection.execute(f"COPY t TO '{place / 'rows.parquet'}'")
    return "rows.parquet", {}


def as_glob(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    (place / "parts").mkdir(exist_ok=True)
    half = len(rows) // 2
    for name, part in (("one", rows[:half]), ("two", rows[half:])):
        as_parquet(place, part)
        (place / "rows.parquet").rename(place / "parts" / f"{name}.parquet")
    return "parts/*.parquet", {}


def as_duckdb(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    (place / "rows.duckdb").unlink(missing_ok=True)
    with closing(duckdb.connect(str(place / "rows.duckdb"))) as connection:
        connection.register("t", arrow(rows))
        connection.execute("CREATE TABLE trips AS SELECT * FROM t")
    return "rows.duckdb", {"table": "trips"}


def as_sqlite(place: Path, rows: Sequence[Row]) -> tuple[str, dict[str, str]]:
    (place / "rows.db").unlink(missing_ok=True)
    with closing(sqlite3.connect(place / "rows.db")) as database:
        database.execute("CREATE TABLE trips (zone INTEGER, hour INT, kind TEXT)")
        database.executemany("INSERT INTO trips VALUES (?, ?, ?)", rows)
        database.commit()
    return "rows.db", {"table": "trips"}


FILES = [as_csv, as_gzip, as_parquet, as_glob, as_duckdb, as_sqlite]
FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda t: t,
    "pandas": lambda t: t.to_pandas(),
    "polars": pl.from_arrow,
    "polars lazy": lambda t: pl.from_arrow(t).lazy(),
}


def everywhere(place: Path, rows: Sequence[Row], **keys: Any) -> Iterator[tuple[str, Counted]]:
    """Count the same rows from every kind of source."""
    for write in FILES:
        source, named = write(place, rows)
        yield write.__name__, count(make_plan(source, **keys, **named), base=place)
    plan = make_plan("rows.csv", **keys)
    for name, make in FRAMES.items():
        yield name, count(plan, frame=make(arrow(rows)), base=place)
    with closing(duckdb.connect()) as connection:
        table = arrow(rows)
        yield "relation", count(plan, frame=connection.from_arrow(table), base=place)


def refusal(act: Callable[[], object], kind: type[CongenialError] = DataError) -> str:
    with pytest.raises(kind) as caught:
        act()
    message = str(caught.value)
    assert "\n" not in message, message
    assert message.endswith("."), message
    assert ". " not in message, message
    return message


def counting(place: Path, source: str, **keys: Any) -> Callable[[], object]:
    return lambda: count(make_plan(source, **keys), base=place)
