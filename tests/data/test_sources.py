"""Every mistake in files, columns and conditions is answered by one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from congenial.data import sources
from congenial.data.counts import count
from congenial.errors import ArgumentError, DataError, PlanError
from support.rows import (
    FILES,
    FRAMES,
    LOOKUP,
    Row,
    arrow,
    as_csv,
    as_duckdb,
    as_gzip,
    as_parquet,
    as_sqlite,
    counting,
    make_plan,
    refusal,
    write_csv,
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_csv(tmp_path / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    return tmp_path


def test_missing_files_are_named(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    assert "'gone.csv'" in refusal(counting(place, "gone.csv"))
    assert "'gone*.csv'" in refusal(counting(place, "gone*.csv"))
    assert "'gone.duckdb'" in refusal(counting(place, "gone.duckdb", table="t"))
    lookup = '{ source = "gone.csv", key = "a", on = "b" }'
    assert "data.lookup.source" in refusal(counting(place, "rows.csv", lookup=lookup))
    assert "hierarchy.domain" in refusal(counting(place, "rows.csv", domain="gone.csv"))
    (place / "dir.csv").mkdir()
    assert "not a file" in refusal(counting(place, "dir.csv"))
    (place / "void.csv").touch()
    assert "empty file" in refusal(counting(place, "void.csv"))


def test_missing_columns_are_named_with_those_there(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    message = refusal(counting(place, "rows.csv", where="hours = 3"))
    assert "data.where" in message
    assert "'hours'" in message
    assert "zone, hour, kind" in message
    message = refusal(counting(place, "rows.csv", levels=["Boro", "zone"]))
    assert "'Boro'" in message
    assert "did you mean 'Borough'?" in message
    lookup = '{ source = "zones.csv", key = "LocationID", on = "PULocationID" }'
    message = refusal(counting(place, "rows.csv", lookup=lookup))
    assert "data.lookup.on names the column 'PULocationID'" in message
    lookup = '{ source = "zones.csv", key = "Location", on = "zone" }'
    message = refusal(counting(place, "rows.csv", lookup=lookup))
    assert "data.lookup.key names the column 'Location'" in message
    assert "LocationID, Borough" in message
    message = refusal(counting(place, "rows.csv", levels=["Borough", "kind"]))
    assert "'kind'" in message
    assert message.endswith("its columns are LocationID, Borough.")  # not the rows' key, zone
    (place / "nodes.csv").write_text("zone\n2\n")
    message = refusal(counting(place, "rows.csv", domain="nodes.csv", levels=["kind", "zone"]))
    assert "the domain 'nodes.csv' lacks" in message


def test_missing_tables_are_named_with_those_there(place: Path) -> None:
    for write in (as_duckdb, as_sqlite):
        source, _ = write(place, [(2, 3, "a")])
        message = refusal(counting(place, source, table="trip"))
        assert "data.table is 'trip'" in message
        assert "trips" in message


def test_files_of_another_format_are_refused(place: Path) -> None:
    for name in ("bad.parquet", "bad.csv.gz", "bad.duckdb", "bad.sqlite"):
        (place / name).write_bytes(b"SQLite format 3\0 7654321 and so on" * 40)
        table = {"table": "t"} if name.endswith(("duckdb", "sqlite")) else {}
        message = refusal(counting(place, name, **table))
        assert name in message
        assert "cannot be" in message
        assert "7654321" not in message


@pytest.mark.parametrize("write", FILES)
def test_an_empty_table(place: Path, write: Callable[..., tuple[str, dict[str, str]]]) -> None:
    source, named = write(place, [])
    assert "holds no rows" in refusal(counting(place, source, **named))


def test_an_empty_frame(place: Path) -> None:
    plan = make_plan("rows.csv")
    for make in FRAMES.values():
        assert "holds no rows" in refusal(
            lambda m=make: count(plan, frame=m(arrow([])), base=place)
        )


def test_rows_that_are_all_left_out_are_counted_as_none(place: Path) -> None:
    source, _ = as_parquet(place, [(264, 3, "a")])
    counted = count(make_plan(source), base=place)
    assert not counted.counts.any()
    assert counted.excluded == 1


def test_a_key_twice_is_a_node_under_two_parents(place: Path) -> None:
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [*LOOKUP, (7, "Bronx")])
    as_csv(place, [(2, 3, "a")])
    message = refusal(counting(place, "rows.csv"))
    assert "'7' 2 times, under the Borough 'Bronx' and 'Queens'" in message


def test_a_node_under_two_parents(place: Path) -> None:
    as_csv(place, [(2, 3, "a"), (2, 3, "b")])
    write_csv(place / "nodes.csv", ("kind", "hour"), [("a", 3), ("b", 3)])
    keys: dict[str, Any] = {"levels": ["kind", "hour"], "lookup": "", "where": None}
    message = refusal(counting(place, "rows.csv", domain="nodes.csv", **keys))
    assert "the hour '3' under two parents ('a' and 'b')" in message
    assert "names_repeat = true" in message
    keys["extra"] = "names_repeat = true"
    counted = count(make_plan("rows.csv", domain="nodes.csv", **keys), base=place)
    assert counted.domain.leaves.size == 2


def test_blanks_in_public_tables_are_refused(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [*LOOKUP, ("", "Bronx")])
    assert "key 'LocationID'" in refusal(counting(place, "rows.csv"))
    write_csv(place / "zones.csv", ("LocationID", "Borough"), [*LOOKUP, (8, "")])
    assert "without a value in 'Borough'" in refusal(counting(place, "rows.csv"))
    write_csv(place / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    write_csv(place / "nodes.csv", ("zone",), [(2,), (99,)])
    message = refusal(counting(place, "rows.csv", domain="nodes.csv"))
    assert "not in the lookup" in message


def test_a_domain_that_where_empties(place: Path) -> None:
    as_csv(place, [(2, 3, "a")])
    assert "no node that meets data.where" in refusal(counting(place, "rows.csv", where="zone < 0"))


def test_a_column_in_both_tables_is_ambiguous(place: Path) -> None:
    frame = pd.DataFrame({"zone": [2], "Borough": ["Bronx"]})
    message = refusal(lambda: count(make_plan("rows.csv"), frame=frame, base=place))
    assert "'Borough' is both in the frame and in the lookup" in message
    frame = pd.DataFrame({"zone": [2], "LocationID": [3]})
    assert count(make_plan("rows.csv"), frame=frame, base=place).counts[0] == 1


@pytest.mark.parametrize(
    "frame", [3, [1, 2], {"zone": [1]}, pd.DataFrame([[1, 2]]), pd.DataFrame()]
)
def test_an_object_that_is_not_a_frame_is_refused(place: Path, frame: object) -> None:
    plan = make_plan("rows.csv")
    message = refusal(lambda: count(plan, frame=frame, base=place), ArgumentError)
    assert type(frame).__name__ in message


@pytest.mark.parametrize(
    "where",
    [
        "zone <=",
        "zone < 3; DROP TABLE domain",
        "zone < 3) OR (hour < 3",
        "zone < 3) GROUP BY (zone",
        "zone < 3 LIMIT 1",
        "zone < 3, hour < 3",
        "zone IN (SELECT 1)",
        "EXISTS (FROM read_text('/etc/hostname'))",
        "count(*) > 1",
        "row_number() OVER () < 5",
        "random() < 0.5",
        "now() > '2022-01-01'",
        "error(kind)",
        "nosuch(zone)",
        "$1 < zone",
        "#1 < 3",
        "COLUMNS(*) > 3",
        "list_filter([1], x -> x > 0) = [1]",
        "zone",
        "zone + 1",
        "zone < 'a' + 1",
        "kind < 3",
        "kind + 1 < 3",
    ],
)
def test_where_is_one_condition_on_one_row(place: Path, where: str) -> None:
    source, _ = as_parquet(place, [(2, 3, "a")])
    message = refusal(counting(place, source, where=where), PlanError)
    assert message.startswith("data.where is ")
    assert where[:40] in message


def test_a_connection_reads_nothing_but_its_files(place: Path) -> None:
    source, _ = as_csv(place, [(2, 3, "a")])
    with sources.connect() as connection:
        sources.restrict(connection, [(place / source).resolve()])
        read = f"SELECT count(*) FROM read_csv('{place / source}')"
        assert connection.execute(read).fetchall() == [(1,)]
        for forbidden in (
            f"SELECT * FROM read_csv('{place / 'zones.csv'}')",
            f"COPY (SELECT 1) TO '{place / 'out.csv'}'",
            "SET enable_external_access = true",
            "INSTALL httpfs",
        ):
            with pytest.raises(duckdb.Error):
                connection.execute(forbidden)


def test_interruption_and_lack_of_memory_are_distinguished() -> None:
    class Failing:
        def __init__(self, error: Exception) -> None:
            self.error = error

        def execute(self, sql: str) -> None:
            raise self.error

        def interrupt(self) -> None:
            pass

    def run(error: Exception) -> None:
        sources.ask(Failing(error), "SELECT 1", "no; do better")  # type: ignore[arg-type]

    for interruption in (RuntimeError("Query interrupted"), duckdb.InterruptException("x")):
        with pytest.raises(KeyboardInterrupt):
            run(interruption)
    assert "memory" in refusal(lambda: run(duckdb.OutOfMemoryException("x")))
    assert refusal(lambda: run(duckdb.ConversionException("x"))) == "no; do better."
    assert refusal(lambda: run(RuntimeError("x"))) == "no; do better."


@pytest.mark.parametrize("kept", [0.01, 0.5, 0.999])
def test_a_truncated_file_is_refused(place: Path, kept: float) -> None:
    rows: list[Row] = [(2, i % 24, f"{i * 2654435761 % 2**32:x}") for i in range(20_000)]
    for write in (as_gzip, as_parquet):
        source, _ = write(place, rows)
        whole = (place / source).read_bytes()
        (place / source).write_bytes(whole[: int(kept * len(whole))])
        message = refusal(counting(place, source))
        assert source in message


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_a_file_that_a_glob_matches_twice_is_not_counted_twice(tmp_path: Path, link: str) -> None:
    (tmp_path / "part_a.csv").write_text("zone\n1\n2\n")
    (tmp_path / "part_b.csv").write_text("zone\n1\n")
    assert len(sources.locate(tmp_path, "part_*.csv", "data.source")) == 2
    getattr(tmp_path / "part_c.csv", link)(tmp_path / "part_a.csv")
    with pytest.raises(DataError, match=r"'part_a.csv' and 'part_c.csv' are the same file"):
        sources.locate(tmp_path, "part_*.csv", "data.source")
