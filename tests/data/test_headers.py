"""Headers of CSV files: requirements, and that a row in their place is never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from congenial.data.counts import count
from support.rows import LOOKUP, counting, make_plan, refusal, write_csv

TELLTALE = "7351"
ROWS = [(2, 3), (12, 4), (12, 5)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_csv(tmp_path / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    return tmp_path


def test_a_first_row_is_never_shown_as_the_names_of_columns(place: Path) -> None:
    (place / "rows.csv").write_text(f"{TELLTALE},Mary,booked\n2,3,4\n12,4,5\n", encoding="utf-8")
    message = refusal(counting(place, "rows.csv"))
    assert "header" in message
    assert TELLTALE not in message
    assert "Mary" not in message


@pytest.mark.parametrize("line", [f"{TELLTALE},3\n", f"{TELLTALE},3\n12,{TELLTALE}\n"])
def test_a_file_of_a_glob_without_the_header_is_refused(place: Path, line: str) -> None:
    write_csv(place / "a.csv", ("zone", "hour"), ROWS)
    (place / "b.csv").write_text(line, encoding="utf-8")
    message = refusal(counting(place, "[ab].csv", where="hour >= 0"))
    assert "'b.csv'" in message
    assert TELLTALE not in message


def test_a_repeated_name_is_refused(place: Path) -> None:
    (place / "rows.csv").write_text("zone,hour,zone\n2,3,12\n", encoding="utf-8")
    assert "one name to two columns" in refusal(counting(place, "rows.csv"))


@pytest.mark.parametrize("extra", ["name", "parent", "fate", "key", "n0", "times", "l", "r"])
def test_a_lookup_may_have_any_other_column(tmp_path: Path, extra: str) -> None:
    named = [(key, borough, f"text {key}") for key, borough in LOOKUP]
    write_csv(tmp_path / "zones.csv", ("LocationID", "Borough", extra), named)
    write_csv(tmp_path / "rows.csv", ("zone", "hour"), ROWS)
    counted = count(make_plan("rows.csv"), base=tmp_path)
    assert counted.counts[counted.domain.roots[0]] == len(ROWS)


def test_a_glob_beside_a_plan_in_a_folder_with_brackets(tmp_path: Path) -> None:
    place = tmp_path / "my plans [2024]"
    place.mkdir()
    write_csv(place / "zones.csv", ("LocationID", "Borough"), LOOKUP)
    for name in ("a.csv", "b.csv"):
        write_csv(place / name, ("zone", "hour"), ROWS)
    counted = count(make_plan("[ab].csv"), base=place)
    assert counted.counts[counted.domain.roots[0]] == 2 * len(ROWS)
