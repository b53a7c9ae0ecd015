"""Releases with one altered cell, with digests that fit again."""

from __future__ import annotations

import json

import duckdb

from congenial.releases import directory as files
from congenial.releases.certificate import plan_digest

TABLES = (files.TABLE, files.MEASUREMENTS)


def spoil(directory, rng):
    """Alter one cell of a table, or one number of the certificate; return a description."""
    kinds = [names for names in TABLES if (directory / names[0]).exists()]
    at = int(rng.integers(len(kinds) + 1))
    what = (
        _spoil_certificate(directory, rng) if at == len(kinds) else _cell(directory, kinds[at], rng)
    )
    path = directory / files.CERTIFICATE
    stated = json.loads(path.read_text())
    stated["files"] = {name: files.sha256(directory / name) for name in stated["files"]}
    stated["plan_sha256"] = plan_digest(stated["plan"])
    path.write_text(json.dumps(stated))
    return what


def _cell(directory, names, rng):
    """Alter a cell in both files of a table, or in one of them."""
    csv, parquet = (directory / name for name in names)
    with duckdb.connect(":memory:", config={"threads": 1}) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT *, row_number() OVER () AS n FROM '{parquet}'"
        )
        described = connection.execute("SELECT * EXCLUDE (n) FROM t LIMIT 0").description
        columns = [(name, str(kind)) for name, kind, *_ in described]
        if rng.random() < 0.7:  # numbers matter more than names
            columns = [column for column in columns if column[1] != "VARCHAR"][1:]
        name, kind = columns[int(rng.integers(len(columns)))]
        [[rows]] = connection.execute("SELECT count(*) FROM t").fetchall()
        row, column = int(rng.integers(rows)) + 1, '"' + name.replace('"', '""') + '"'
        if kind == "VARCHAR":
            next_one = f"(SELECT {column} FROM t WHERE n = {row % rows + 1})"
            other = rng.choice(["''", "'x'", "NULL", next_one])
        else:
            changes = [f"{column} + 1", f"{column} - 1", f"{column} * 2", f"-{column}"]
            other = rng.choice([*2 * changes[:2], *changes, "NULL", "0", "1", str(10**16)])
        changed = f"CASE WHEN n = {row} THEN {other} ELSE {column} END AS {column}"
        query = f"SELECT * EXCLUDE (n) REPLACE ({changed}) FROM t"
        both = [(csv, "csv, HEADER"), (parquet, "parquet")]
        targets = both if rng.random() < 0.8 else [both[int(rng.integers(2))]]
        for target, form in targets:
            connection.execute(f"COPY ({query}) TO '{target}' (FORMAT {form})")
    return f"{[target.name for target, _ in targets]}: row {row}, {name} = {other}"


def _spoil_certificate(directory, rng):
    path = directory / files.CERTIFICATE
    stated = json.loads(path.read_text())
    places = []

    def walk(here, where):
        items = here.items() if isinstance(here, dict) else enumerate(here)
        for key, value in items:
            if isinstance(value, dict | list):
                walk(value, (*where, key))
            elif where[:1] not in (("files",), ("versions",)) and key != "plan_sha256":
                places.append((here, key, (*where, key)))

    walk(stated, ())
    here, key, where = places[int(rng.integers(len(places)))]
    old = here[key]
    if isinstance(old, bool):
        new = not old
    elif isinstance(old, int | float):
        new = [old + 1, old * 2, old / 2, 0][int(rng.integers(4))]
    elif isinstance(old, str):
        new = [old + "x", ""][int(rng.integers(2))]
    else:
        new = [0, 1, "x"][int(rng.integers(3))]
    here[key] = new
    path.write_text(json.dumps(stated))
    return f"{'.'.join(map(str, where))} = {new!r}, was {old!r}"
