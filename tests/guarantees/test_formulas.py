"""Names that a spreadsheet would run are text in `release.csv`, and themselves everywhere else."""

from __future__ import annotations

import csv
import random

import duckdb
import pytest

from congenial.domain.tree import Tree
from congenial.plan.plan import parse_plan
from congenial.releases import directory as files
from congenial.releases.making.make_release import release
from congenial.releases.reading import read_release
from congenial.verification.verdict import verify

FORMULAS = (
    "=cmd|' /C calc'!A0",
    "=1+1",
    "+1 week",
    "-x",
    "@SUM(A1)",
    "\t=1",
    " =1",
    "\n=1",
    "'=1",
    "''=1",
    "\uff1d1",
    "\uff0ba",
    "-1e5",
    "--1",
    "-1\n",
)
TEXTS = ("plain", "'s-Gravenhage", "-5", "+3.25", "-0.1", "'-5", "'", "a=b", "1-2", '"', "é")


def written(names, place):
    """Write a table of nodes and read it back; return the lines of the CSV file as they are."""
    tree = Tree.from_parents([-1] + [0] * len(names), ["root", *names])
    value = tree.roll_up([1] * len(names))
    files.write_tables(place, ("=all", "-level"), tree, value)
    with (place / files.CSV).open(encoding="utf-8", newline="") as file:
        raw = list(csv.reader(file))
    table = files.read_table(place)
    assert files.compare_lines(place / files.CSV, table.columns, [table]).same
    assert table.column("-level")[1:] == list(names)
    assert set(table.column("level_name")) == {"=all", "-level"}
    return raw


def test_formulas_are_text_and_are_read_back(tmp_path):
    raw = written(FORMULAS + TEXTS, tmp_path)
    assert raw[0][2:4] == ["'=all", "'-level"]
    cells = [row[3] for row in raw[2:]]
    assert cells == [*(f"'{name}" for name in FORMULAS), *TEXTS]


def test_no_cell_begins_like_a_formula_and_all_names_are_read_back(tmp_path):
    draw = random.Random(5)  # noqa: S311 -- protects nobody
    signs = "='+-@ \t\n\r1.a\uff1d\"',;"
    names = {"".join(draw.choices(signs, k=draw.randrange(1, 8))) for _ in range(3000)}
    for row in written(sorted(names), tmp_path):
        for cell in row:
            digits = cell[1:] if cell[:1] in ("+", "-") else cell
            number = digits.replace(".", "", 1).isdigit() and cell[-1:] != "."
            first = cell.lstrip(" \t\r\n")[:1]
            assert number or first not in ("=", "@", "\uff1d", "+", "-"), cell


@pytest.mark.parametrize("columns", [["=a", "@b"], ["a", "b"]])
def test_a_release_with_formulas_verifies(tmp_path, columns):
    pairs = [("=x", "-a"), ("=x", "@b"), ("'=x", "-5"), ("'s", "+1 d")]
    with duckdb.connect() as connection:
        named = ", ".join(f'"{c}" VARCHAR' for c in columns)
        connection.execute(f"CREATE TABLE t ({named})")
        connection.executemany("INSERT INTO t VALUES (?, ?)", pairs)
        connection.execute(f"COPY t TO '{tmp_path / 'x.parquet'}'")
    plan = parse_plan(
        f'[data]\nsource = "x.parquet"\n[hierarchy]\nroot = "=r"\nlevels = {columns}\n'
        'domain = "data"\n[privacy]\nneighbours = "substitute"\nepsilon = 1.0\n'
    )
    release(plan, tmp_path / "out", base=tmp_path)
    assert all(check.passed for check in verify(tmp_path / "out"))
    assert set(read_release(tmp_path / "out").names) == {"=r"}.union(*pairs)
