"""Files of parts that are joined are read as one table, with the rows in order."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from congenial.releases import directory as files
from congenial.releases.file_table import every
from congenial.releases.making.joined_tables import PartFiles, joining

COLUMNS = (("name", "VARCHAR"), ("value", "BIGINT"), ("scale", "DOUBLE"))


def part(place, names, values, columns=COLUMNS):
    """Write a part as a worker does; return its files."""
    place.mkdir()
    own = {"value": every(values), "scale": every(values / 4)}
    with files.writing(place, files.TABLE, columns) as write:
        write(files.csv_lines((f"{name}," for name in names), own))
    text, parquet = ((place / name).read_bytes() for name in files.TABLE)
    return PartFiles(memoryview(text)[len(files.header_of(columns)) :], memoryview(parquet))


def joined(place, parts, columns=COLUMNS):
    place.mkdir()
    with joining(place, files.TABLE, columns) as append:
        for one in parts:
            append(one)
    return place


def test_joined_parts_are_one_table(tmp_path):
    rng = np.random.default_rng(0)
    # more rows than a group has, one row, a name like a formula, a name without letters of ASCII
    sizes, parts, names = (130_000, 1, 7, 2_000), [], []
    for number, size in enumerate(sizes):
        own = [f"n{number} {i // 3}" for i in range(size)]
        if number == 2:
            own[:3] = ["'=1+1", "Ähre", '"x, y"']
        names += own
        parts.append(part(tmp_path / str(number), own, rng.integers(0, 2**62, size)))
    place = joined(tmp_path / "out", parts)
    at_once = tmp_path / "once"
    at_once.mkdir()
    with files.writing(at_once, files.TABLE, COLUMNS) as write:
        write(bytes(one.lines) for one in parts)
    assert (place / files.CSV).read_bytes() == (at_once / files.CSV).read_bytes()
    tables = [files.read_table(where) for where in (place, at_once)]
    assert tables[0].columns == tables[1].columns == COLUMNS
    for name in ("value", "scale"):
        one, other = (table.numbers(name) for table in tables)
        assert np.array_equal(one.values, other.values) and one.known.all()
    texts = [table.texts("name").texts() for table in tables]
    assert texts[0] == texts[1] and "=1+1" in texts[0] and "x, y" in texts[0]
    # filters use the bounds of each group of rows
    for name in ("n0 17", "n1 0", "n3 600", "Ähre", "n3 0", "n9"):
        counts = [
            duckdb.sql(
                f"SELECT count(*), sum(value) FROM '{where}/{files.PARQUET}' WHERE name = '{name}'"
            )
            for where in (place, at_once)
        ]
        assert counts[0].fetchall() == counts[1].fetchall()
    with files.open_table(place) as table:
        assert table.rows == sum(sizes)
        assert table.row_numbers(129_998, 130_003).tolist() == list(range(129_998, 130_003))
        assert table.selected("name = 'n3 0'").row_numbers().tolist() == [130_008, 130_009, 130_010]


def test_another_reader_reads_the_joined_file(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    parts = [
        part(tmp_path / str(number), [f"n{i}" for i in range(500)], np.arange(500) + number)
        for number in range(40)
    ]
    place = joined(tmp_path / "out", parts)
    table = parquet.read_table(place / files.PARQUET)
    assert table.num_rows == 20_000 and table["name"][19_999].as_py() == "n499"
    assert table["value"].to_pylist() == [i + n for n in range(40) for i in range(500)]
    assert [path.name for path in sorted(place.iterdir())] == [files.CSV, files.PARQUET]
