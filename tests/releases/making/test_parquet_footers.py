"""Footers of Parquet files are read, written and moved without knowing all of their fields."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from congenial.errors import ReleaseError
from congenial.releases.making.parquet_footers import (
    decoded,
    encoded,
    end_of,
    piece_of,
    same_columns,
)


def write(place, query):
    """Write the rows of a query as Parquet; return the file's bytes."""
    duckdb.sql(f"COPY ({query}) TO '{place}' (FORMAT parquet)")
    return place.read_bytes()


def test_the_footer_of_a_file_is_written_as_it_was(tmp_path):
    for rows in (0, 1, 300_000):
        columns = "i, 'c' || i AS name, i / 3 AS part, NULL::BIGINT AS gone"
        content = write(tmp_path / "a.parquet", f"SELECT {columns} FROM range({rows}) r(i)")
        piece = piece_of(memoryview(content))
        assert piece.rows == rows
        begin = 4 + len(piece.pages)
        assert end_of(piece.footer, piece.groups(0), rows) == content[begin:]
        assert (piece.groups(5) != piece.groups(0)) == (rows > 0)
        assert end_of(piece.footer, piece.groups(0), rows + 1) != content[begin:]


def random_value(rng, kind, depth):
    if kind in (4, 5, 6):
        return int(rng.integers(0, 2**63)) >> int(rng.integers(0, 63))
    if kind == 12:
        return random_record(rng, depth + 1)
    if kind in (9, 10):
        inside = int(rng.choice([3, 5, 7, 8] if depth > 2 else [3, 5, 8, 9, 12]))
        size = int(rng.choice([0, 1, 3, 14, 15, 20]))
        return inside, [random_value(rng, inside, depth + 1) for _ in range(size)]
    return rng.bytes({3: 1, 7: 8}.get(kind, int(rng.integers(0, 200))))


def random_record(rng, depth=0):
    numbers = rng.choice([1, 2, 3, 7, 15, 16, 17, 18, 40, 3000], int(rng.integers(0, 6)), False)
    kinds = [1, 2, 3, 4, 5, 6, 7, 8] + ([9, 10, 12] if depth < 3 else [])
    found = {}
    for number in sorted(numbers.tolist()):
        kind = int(rng.choice(kinds))
        found[number] = kind, None if kind < 3 else random_value(rng, kind, depth)
    return found


def test_random_records_are_read_as_they_were_written():
    rng = np.random.default_rng(0)
    for _ in range(300):
        record = random_record(rng)
        assert decoded(encoded(record)) == record
    # field 1 as a 32-bit number -1, field 20 as true: the specification's own encoding
    assert encoded({1: (5, 1), 20: (1, None)}) == bytes([0x15, 0x01, 0x01, 0x28, 0x00])


def test_files_that_are_no_parquet_are_refused():
    for content in (b"", b"PAR1PAR1", b"PAR1" + bytes(20) + b"PARE"):
        with pytest.raises(ReleaseError, match="wrote no Parquet file"):
            piece_of(memoryview(content))
    with pytest.raises(ReleaseError, match="not known here"):
        decoded(b"\x1b\x00\x00")  # a map


def test_columns_are_compared_by_name_and_type(tmp_path):
    footers = [
        piece_of(memoryview(write(tmp_path / "a.parquet", f"SELECT {what}"))).footer
        for what in ("1 AS a", "2 AS a", "1 AS b", "1::BIGINT AS a", "1 AS a, 2 AS b")
    ]
    assert [same_columns(footers[0], other) for other in footers] == [
        True,
        True,
        False,
        False,
        False,
    ]
