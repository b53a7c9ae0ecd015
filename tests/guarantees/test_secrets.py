"""No failure shows a row, no file is left behind, and memory does not grow with the rows."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest

from congenial.data.counts import count
from congenial.errors import CongenialError, DataError
from support.rows import (
    FILES,
    FRAMES,
    HEADER,
    LOOKUP,
    Row,
    arrow,
    as_csv,
    as_parquet,
    as_sqlite,
    counting,
    make_plan,
    write_csv,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_csv(tmp_path / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    return tmp_path


KEY, TIMES, WORD = 987654321, 4321, "Sentinel-Street"


def everything_said(error: BaseException | None) -> str:
    """All text that an exception carries, hidden context included."""
    texts = []
    while error is not None:
        texts += [str(error), repr(error), *map(str, getattr(error, "__notes__", ()))]
        texts += traceback.format_exception_only(error)
        texts.append(everything_said(error.__cause__))
        error = error.__context__
    return "\n".join(texts)


def assert_secret(act: Callable[[], object], words: str) -> None:
    with pytest.raises(CongenialError) as caught:
        act()
    said = everything_said(caught.value)
    assert words in said
    for secret in (str(KEY), str(TIMES), WORD):
        assert secret not in said


def test_the_search_for_secrets_can_fail() -> None:
    def leak() -> None:
        try:
            int(WORD)
        except ValueError:
            raise DataError("words") from None

    with pytest.raises(AssertionError):
        assert_secret(leak, "words")


STRAY = [(2, 3, "a")] * 5 + [(KEY, 3, WORD)] * TIMES


def test_a_key_that_the_lookup_lacks_is_not_shown(place: Path) -> None:
    for write in FILES:
        source, named = write(place, STRAY)
        act = counting(place, source, where="kind <> 'x'", **named)
        assert_secret(act, "'zone' the lookup lacks")
    plan = make_plan("rows.csv", where="kind <> 'x'")
    for make in FRAMES.values():
        frame = make(arrow(STRAY))
        assert_secret(lambda f=frame: count(plan, frame=f, base=place), "'zone' the lookup lacks")


def test_a_node_that_the_domain_lacks_is_not_shown(place: Path) -> None:
    write_csv(place / "nodes.csv", ("kind", "hour"), [("a", 3)])
    source, _ = as_csv(place, STRAY)
    keys = {"levels": ["kind", "hour"], "lookup": "", "where": None, "domain": "nodes.csv"}
    assert_secret(counting(place, source, **keys), "the domain lacks")


def test_two_parents_in_the_data_are_not_shown(place: Path) -> None:
    source, _ = as_csv(place, [(KEY, 3, WORD), (KEY, 3, "a")] * TIMES)
    keys = {"levels": ["kind", "zone"], "lookup": "", "where": None, "domain": "data"}
    assert_secret(counting(place, source, **keys), "puts a zone under two parents")


def test_a_blank_level_is_reported_without_its_row(place: Path) -> None:
    source, _ = as_parquet(place, [(KEY, None, WORD)] * TIMES)
    keys = {"levels": ["kind", "hour"], "lookup": "", "where": None, "domain": "data"}
    assert_secret(counting(place, source, **keys), "without a value in 'hour'")
    source, _ = as_parquet(place, [(None, 3, WORD)] * TIMES)
    # the end is a line of a plan, to be copied
    line = (
        "'zone'; fill it in, or leave such rows out, "
        """under [data]: where = '"zone" IS NOT NULL'."""
    )
    assert_secret(counting(place, source, where=None), line)


def test_a_value_of_another_type_is_not_shown(place: Path) -> None:
    rows: list[Row] = [(2, 3, "a")] * 60_000
    write_csv(place / "rows.csv", HEADER, [*rows, (WORD, 3, "a")])
    assert_secret(counting(place, "rows.csv", where=None), "'zone' the lookup lacks")
    types = '{ zone = "BIGINT" }'
    assert_secret(counting(place, "rows.csv", where=None, types=types), "a value in 'zone'")
    write_csv(place / "rows.csv", HEADER, [*rows, (2, 3, "a", WORD, KEY)])
    assert_secret(counting(place, "rows.csv"), "could not be read to its end")


def test_a_mixed_column_of_a_frame_is_not_shown(place: Path) -> None:
    frame = pd.DataFrame({"zone": np.array([2, WORD, KEY, b"x", object], dtype=object)})
    plan = make_plan("rows.csv", where=None)
    assert_secret(lambda: count(plan, frame=frame, base=place), "'zone' the lookup lacks")
    frame = pd.DataFrame({"zone": pd.Series([2, WORD], dtype="category")})
    assert_secret(lambda: count(plan, frame=frame, base=place), "'zone' the lookup lacks")


def test_a_relation_that_fails_is_not_shown(place: Path) -> None:
    plan = make_plan("rows.csv")
    with closing(duckdb.connect()) as connection:
        rows = connection.sql(f"SELECT CAST(v AS BIGINT) AS zone FROM (VALUES ('{WORD}')) AS t(v)")
        assert_secret(lambda: count(plan, frame=rows, base=place), "the frame")


def test_invalid_sqlite_text_is_not_shown(place: Path) -> None:
    source, named = as_sqlite(place, [(2, 3, "a")])
    with closing(sqlite3.connect(place / source)) as database:
        database.execute(
            "INSERT INTO trips VALUES (2, 3, CAST(? AS TEXT))", [WORD.encode() + b"\xff\xfe"]
        )
        database.commit()
    assert_secret(counting(place, source, where="kind <> 'x'", **named), "SQLite database")


def test_no_temporary_file_remains_on_the_disk(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = place / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    for variable in ("TMPDIR", "HOME"):
        monkeypatch.setenv(variable, str(work))
    for write in FILES:
        source, named = write(place, [(2, 3, "a")] * 1000)
        before = sorted(place.rglob("*"))
        count(make_plan(source, **named), base=place)
        assert sorted(place.rglob("*")) == before


MEASURE = """
import resource, sys
from pathlib import Path
from congenial.data.counts import count
from congenial.plan.plan import parse_plan
place = Path(sys.argv[1])
counted = count(parse_plan((place / sys.argv[2]).read_text()), base=place)
print(int(counted.counts[0]), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
PLAN = """
[data]
source = "{}.parquet"
where = "zone < 990"
[hierarchy]
root = "all"
levels = ["zone"]
domain = "data"
[privacy]
neighbours = "substitute"
epsilon = 1.0
"""


def peak(tmp_path: Path, rows: int) -> int:
    """Count rows in a process of their own, and return the most memory that it held, in MiB."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path), f"{rows}.toml"],
        capture_output=True,
        text=True,
        check=True,
    )
    total, used = map(int, done.stdout.split())
    assert total == rows * 0.99
    assert not done.stderr
    return used


def test_memory_stays_flat_as_rows_grow(tmp_path: Path) -> None:
    """Five million rows need about as much as a tenth; held in Python they would need far more."""
    for rows in (500_000, 5_000_000):
        with closing(duckdb.connect()) as connection:
            connection.execute(
                f"COPY (SELECT range % 1000 AS zone, range AS id, hash(range) AS more FROM "
                f"range({rows})) TO '{tmp_path / str(rows)}.parquet'"
            )
        (tmp_path / f"{rows}.toml").write_text(PLAN.format(rows))
    # MiB; one column of integers is 38, as objects 190
    assert peak(tmp_path, 5_000_000) < peak(tmp_path, 500_000) + 64


def test_memory_stays_flat_behind_a_lookup(tmp_path: Path) -> None:
    """The lookup is hashed, and not the rows, also of a file that does not tell how many it has."""
    (tmp_path / "zones.csv").write_text(
        "zone,borough\n" + "".join(f"{zone},b{zone % 7}\n" for zone in range(1000))
    )
    for rows in (300_000, 3_000_000):
        with closing(duckdb.connect()) as connection:
            connection.execute(
                f"COPY (SELECT range % 1000 AS zone, repeat('x', 40) AS more FROM range({rows})) "
                f"TO '{tmp_path / str(rows)}.csv'"
            )
        lookup = 'lookup = { source = "zones.csv", key = "zone", on = "zone" }'
        text = PLAN.format(rows).replace(".parquet", ".csv").replace('"data"', '"lookup"')
        text = text.replace('["zone"]', '["borough", "zone"]')
        typed = f'types = {{ zone = "BIGINT" }}\n{lookup}\n[hierarchy]'
        (tmp_path / f"{rows}.toml").write_text(text.replace("[hierarchy]", typed))
    # MiB; hashed, three million rows are 250 more, and in buffers of 32 MiB over 100
    assert peak(tmp_path, 3_000_000) < peak(tmp_path, 300_000) + 64
