"""Tables and figures as files: every cell is there, and the same figure is the same bytes."""

from __future__ import annotations

import csv
import io

import pytest

from congenial.errors import UnsupportedError
from congenial.exhibits.exhibit import Exhibit, Figure
from congenial.exhibits.files import as_csv, as_image, as_rows, check_installed

TABLE = Exhibit("loss", "A title", ("name", "x"), (("a", 0.25), ("c", None), ("d", 3)))


def test_every_cell_is_in_the_csv_and_in_the_rows():
    rows = list(csv.reader(io.StringIO(as_csv(TABLE))))
    assert rows[0] == ["name", "x"]
    assert [row[0] for row in rows[1:]] == ["a", "c", "d"]
    assert float(rows[1][1]) == 0.25
    assert rows[2][1] == ""
    text = as_rows(TABLE)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(lines) == 5
    assert all(len(line.strip("|").split("|")) == 2 for line in lines)


@pytest.mark.parametrize(("form", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_a_figure_is_the_same_bytes_each_time(form, begins):
    def draw(canvas):
        canvas.add_subplot().plot([0, 1], [0, 1])

    one, same = (as_image(Figure("f", "t", draw), form) for _ in range(2))
    assert one.startswith(begins)
    assert one == same


def test_missing_libraries_are_reported_before_work_begins():
    check_installed("a study", ("json",))
    with pytest.raises(UnsupportedError, match="no_such_library"):
        check_installed("a study", ("json", "no_such_library"))
