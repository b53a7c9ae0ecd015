"""Tables of a release: the names of a path are held once, and lines of any length are seen."""

from __future__ import annotations

import random

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.releases.directory import (
    CSV,
    PARQUET,
    FileRows,
    read_tables,
    same_rows,
    write_tables,
)


def test_tables_of_many_rows_hold_each_name_of_a_path_once(tmp_path):
    tree = Tree.from_paths(("all", f"borough {b}", f"{b}.{z}") for b in range(3) for z in range(50))
    levels = ("root", "borough", "zone")
    write_tables(tmp_path, levels, tree, np.arange(len(tree)))
    csv, parquet = read_tables(tmp_path)
    assert same_rows(csv, parquet) and not same_rows(
        csv, FileRows(parquet.columns, parquet.rows[1:])
    )
    other = [*parquet.rows[:-1], (*parquet.rows[-1][:-1], -1)]
    assert not same_rows(csv, FileRows(parquet.columns, other))
    for table in (csv, parquet):
        assert len({id(row[2]) for row in table.rows}) == 1
        assert len({id(row[3]) for row in table.rows if row[4]}) == 3


def test_lines_of_different_lengths_are_still_seen(tmp_path):
    tree = Tree.from_paths([("all", "a"), ("all", "b")])
    write_tables(tmp_path, ("root", "zone"), tree, np.array([3, 1, 2]))
    with (tmp_path / CSV).open("a") as file:
        file.write("1,zone\n")
    with pytest.raises(ReleaseError, match="different lengths"):
        read_tables(tmp_path)


def test_damaged_bytes_of_a_parquet_table_are_refused_whatever_they_belong_to(tmp_path):
    # DuckDB raises errors of its own and, for names that are not UTF-8, a RuntimeError
    tree = Tree.from_paths([("all", "a"), ("all", "b")])
    write_tables(tmp_path, ("root", "zone"), tree, np.array([3, 1, 2]))
    whole = (tmp_path / PARQUET).read_bytes()
    causes = set()
    for name in (b"zone", b"level", b"value"):
        for at in (i for i in range(len(whole)) if whole.startswith(name, i)):
            (tmp_path / PARQUET).write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
            try:
                read_tables(tmp_path)
            except ReleaseError as error:
                causes.add(type(error.__cause__))
    assert RuntimeError in causes and len(causes) > 1


def test_names_of_any_characters_come_back(tmp_path):
    draw = random.Random(1)  # noqa: S311 -- protects nobody
    for case in range(20):
        alphabet = "ab1" if case % 2 else "ab1=+-'\"@,\r\n\t \u00a0\uff1d\u0085_."
        names = {"".join(draw.choices(alphabet, k=draw.randint(1, 4))) for _ in range(20)}
        tree = Tree.from_paths([("all", name) for name in sorted(names)])
        write_tables(tmp_path, ("root", "zone"), tree, np.arange(len(tree)))
        csv, parquet = read_tables(tmp_path)
        assert same_rows(csv, parquet)
        assert [row[3] for row in parquet.rows[1:]] == sorted(names)
