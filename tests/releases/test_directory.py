"""Tables of a release: any names come back, and other rows, lines and bytes are seen."""

from __future__ import annotations

import random

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.errors import ReleaseError
from congenial.releases.directory import (
    CSV,
    PARQUET,
    CsvRows,
    compare_csv,
    compare_lines,
    open_table,
    read_table,
    write_tables,
)

LEVELS = ("root", "zone")


def small(place):
    """Write a small table and return its tree."""
    tree = Tree.from_paths([("all", "a"), ("all", "b")])
    write_tables(place, LEVELS, tree, np.array([3, 1, 2]))
    return tree


def test_the_csv_file_is_compared_by_its_bytes_and_otherwise_by_its_lines(tmp_path):
    tree, file = small(tmp_path), tmp_path / CSV
    table, written = read_table(tmp_path), file.read_text()
    assert compare_csv(file, table, LEVELS, tree) == CsvRows(same=True, not_integers=0)
    # other bytes for the same rows
    file.write_text(written.replace("zone,all,a", 'zone,"all",a').replace("\n", "\r\n"))
    assert compare_csv(file, table, LEVELS, tree) == CsvRows(same=True, not_integers=0)
    for new, bad in (
        (written.replace(",3\n", ",4\n"), 0),
        (written.replace(",3\n", ",3.0\n"), 1),
        (written.replace("all,b", "all,c"), 0),
        (written + "1,zone,all,c,5\n", 0),
        (written.rsplit("\n", 2)[0] + "\n", 0),
    ):
        file.write_text(new)
        assert compare_csv(file, table, LEVELS, tree) == CsvRows(same=False, not_integers=bad)
    file.write_text(written)
    other = table.take(np.array([0, 2, 1]))
    assert not compare_lines(file, other.columns, [other]).same


@pytest.mark.parametrize(
    ("line", "why"),
    [("1,zone\n", "different lengths"), ('1,zone,all,"b"c,3\n', "cannot be read as a table")],
)
def test_lines_that_are_no_rows_are_refused(tmp_path, line, why):
    tree = small(tmp_path)
    with (tmp_path / CSV).open("a") as file:
        file.write(line)
    with pytest.raises(ReleaseError, match=why):
        compare_csv(tmp_path / CSV, read_table(tmp_path), LEVELS, tree)
    (tmp_path / CSV).write_text("")
    with pytest.raises(ReleaseError, match="at most 0"):
        read_table(tmp_path)


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
                read_table(tmp_path)
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
        table = read_table(tmp_path)
        assert compare_csv(tmp_path / CSV, table, LEVELS, tree).same
        assert compare_lines(tmp_path / CSV, table.columns, [table]).same
        assert table.column("zone")[1:] == sorted(names)


def test_some_rows_and_columns_are_read_with_their_numbers_in_the_file(tmp_path):
    small(tmp_path)
    with open_table(tmp_path) as table:
        some = table.selected("zone IS NULL OR zone = 'b'", ["zone", "value"])
        assert (some.rows, some.row_numbers().tolist()) == (3, [0, 2])
        assert some.read().columns == (("zone", "VARCHAR"), ("value", "BIGINT"))
        assert some.read().column("value") == [3, 2]
        assert some.selected("level = 1").read(1).column("zone") == ["b"]
        assert some.row_numbers(1, 2).size == len(some.read(1, 2)) == 0
        assert [len(set(table.hashes(name).tolist())) for name in LEVELS] == [1, 3]
        numbers, rows = table.down_to(0)
        assert (numbers.tolist(), rows.column("value")) == ([0], [3])
    assert read_table(tmp_path, where="level = 1").column("value") == [1, 2]
