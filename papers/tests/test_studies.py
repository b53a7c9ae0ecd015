"""The records, files and command of the studies; what each study finds is tested beside it."""

from __future__ import annotations

import contextlib
import csv
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from click.testing import CliRunner

from congenial.errors import ArgumentError, ReleaseError
from congenial.exhibits import files as write_module
from congenial.exhibits.exhibit import Exhibit, Figure
from papers.__main__ import main
from papers.studies import NAMES, sources
from papers.studies.looks import line, shades
from papers.studies.openings import OPENINGS
from papers.studies.pages import with_errors, write
from papers.studies.study import Study, replicates

PAGES = Path(__file__).parents[2] / "docs" / "studies"


def a_study(value: float = 1.0 / 3.0) -> Study:
    table = Exhibit(
        "sizes",
        "Sizes",
        ("name", "size", "count"),
        (("a|b", value, 1200), ("c", None, 3)),
        ("Note.",),
    )

    def draw(canvas) -> None:
        canvas.subplots().plot([0, 1], [0, value])

    figure = Figure("line", "A line", draw, note="Bars are errors.")
    return Study("example", "An example", ("Found.",), (table,), (figure,))


def test_a_study_becomes_a_page_tables_and_pictures(tmp_path):
    written = write(a_study(), tmp_path / "new" / "out", seed=3, effort=1.0)
    assert [path.name for path in written] == [
        "example.md",
        "example-sizes.csv",
        "example-line.png",
        "example-line.svg",
    ]
    page = written[0].read_text(encoding="utf-8")
    assert "`python -m papers example --seed 3`" in page
    assert "| a\\|b | 0.333 | 1,200 |" in page
    assert "| c |  | 3 |" in page
    assert "![A line](example-line.svg)\n\nBars are errors.\n" in page
    with written[1].open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file))[1] == ["a|b", "0.333333", "1200"]
    assert written[2].read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in written[0].parent.iterdir()) == sorted(
        path.name for path in written
    )


def test_standard_errors_stand_beside_their_numbers_on_a_page():
    columns = ("name", "mean", "standard error", "n")
    table = Exhibit("t", "T", columns, (("a", 1.2345, 0.0123, 5), ("b", None, None, 6)))
    found = with_errors(table)
    assert found.columns == ("name", "mean", "n")
    assert found.rows == (("a", "1.23 ± 0.012", 5), ("b", None, 6))
    columns = ("method", "what", "0", "all")
    rows = (
        ("a", "coverage", 0.91234, None),
        ("a", "standard error", 0.00123, None),
        ("a", "mean width", 4.0, 5.0),
    )
    assert with_errors(Exhibit("t", "T", columns, rows)).rows == (
        ("a", "coverage", "0.912 ± 0.0012", None),
        ("a", "mean width", 4.0, 5.0),
    )
    percent = Exhibit("t", "T", ("a, %", "standard error, %"), ((-9.47, 2.8107),))
    assert with_errors(percent).rows == (("-9.47 ± 2.8",),)


def kept(name: str) -> dict[str, Exhibit]:
    """Return the tables of a study from their files among the documents."""

    def cell(text: str) -> str | int | float | None:
        for kind in (int, float):
            with contextlib.suppress(ValueError):
                return kind(text)
        return text or None

    tables = {}
    for path in PAGES.glob(f"{name}-*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            columns, *rows = csv.reader(file)
        own = path.stem.removeprefix(f"{name}-")
        tables[own] = Exhibit(own, own, tuple(columns), tuple(tuple(map(cell, r)) for r in rows))
    return tables


@pytest.mark.parametrize("name", NAMES)
def test_a_page_opens_with_its_question_its_answer_and_its_figure(name):
    blocks = (PAGES / f"{name}.md").read_text(encoding="utf-8").split("\n\n")
    assert blocks[0].startswith("# ")
    assert blocks[1] == f"**Question.** {OPENINGS[name].question}"
    assert blocks[3].startswith("![") and f"({name}-" in blocks[3]
    answer = OPENINGS[name].answer(kept(name))
    assert blocks[2] == f"**Answer.** {answer}"
    assert len(re.findall(r"[.:;] [A-Z]|\.$", answer)) == 2


def test_the_index_has_the_question_of_every_page():
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    asked = [f"| [{name}]({name}.md) | {OPENINGS[name].question} |" for name in NAMES]
    assert [line for line in asked if line not in index] == []


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_a_page_are_folded_and_have_three_digits(name):
    text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
    folded = text[text.index("\n## Tables\n") :]
    assert folded.count("\n<details>\n<summary>") == folded.count("\n</details>")
    assert folded.count("\n| ---") == len(kept(name)) == folded.count("\n<details>")
    cells = [
        c.strip() for line in folded.splitlines() if line[:2] == "| " for c in line.split(" | ")
    ]
    # whole numbers have all their digits, with commas
    long = [c for c in cells if re.fullmatch(r"-?\d+\.\d+", c) and len(c.strip("-0.")) > 4]
    assert long == []


def test_lines_of_a_panel_differ_in_grey_or_in_mark_and_dashes():
    looks = [line(place) for place in range(6)]
    for name in ("color", "marker", "linestyle"):
        assert len({str(each[name]) for each in looks}) == len(looks)
    grey = [mpl.colors.to_rgb(each["color"]) @ np.array([0.2126, 0.7152, 0.0722]) for each in looks]
    first = np.sort(grey[:4])
    assert (np.diff(first) > 0.1).all()
    shade = [np.mean(colour[:3]) for colour in shades(5)]
    assert (np.diff(shade) < -0.05).all()


def test_the_same_study_gives_the_same_bytes(tmp_path):
    one, two = (write(a_study(), tmp_path / name, seed=3, effort=1.0) for name in "ab")
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]
    other = write(a_study(0.5), tmp_path / "c", seed=3, effort=1.0)
    assert all(p.read_bytes() != q.read_bytes() for p, q in zip(one, other, strict=True))


def test_a_directory_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ReleaseError, match="cannot be written"):
        write(a_study(), tmp_path / "file", seed=1, effort=1.0)


def test_rows_have_a_cell_for_each_column():
    with pytest.raises(ArgumentError, match="1 cells for 2"):
        Exhibit("t", "T", ("a", "b"), ((1,),))
    assert Exhibit("t", "T", ("a", "b"), ((1, 2.0),)).column("b") == (2.0,)


@pytest.mark.parametrize("effort", [0.0, -1.0, float("nan"), float("inf")])
def test_effort_is_a_positive_share(effort):
    with pytest.raises(ArgumentError, match="effort"):
        replicates(100, effort)


def test_effort_scales_the_replicates():
    assert [replicates(1000, e) for e in (1.0, 0.25, 1e-6)] == [1000, 250, 2]


def test_the_taxi_counts_are_those_of_the_source():
    tree, x = sources.taxi()
    assert len(tree) == 270
    assert np.bincount(tree.level).tolist() == [1, 6, 263]
    assert x[tree.level == 0].tolist() == [2_944_056]
    assert tree.is_consistent(x)


def test_the_county_tables_are_those_of_the_source():
    every = sources.counties()
    assert every.cells.shape == (3143, 46)
    assert int(every.cells.sum()) == 308_745_538
    assert every.codes[0] == "01001"
    # females first: the first cell of the first county is its girls under five
    assert every.cells[0, [0, 22, 23]].tolist() == [1713, 392, 1866]
    theirs = sources.california_topdown()
    assert theirs.cells.shape == (58, 46)
    assert set(theirs.codes) <= set(every.codes)


def run(*arguments: str) -> tuple[int, str]:
    """Return the exit code and what `python -m papers` prints."""
    done = CliRunner().invoke(main, arguments)
    return done.exit_code, done.output


def test_an_unknown_study_is_refused():
    code, text = run("nonsense")
    assert code == 2
    assert all(name in text for name in NAMES)


def test_a_study_is_written(tmp_path):
    code, text = run("two-bin", "--effort", "0.001", "--out", str(tmp_path / "out"))
    assert code == 0, text
    assert f"Wrote {tmp_path / 'out' / 'two-bin.md'}" in text.replace("\n", "")


def test_every_study_is_made_by_make_studies():
    text = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")
    assert f"for study in {' '.join(NAMES)};" in text


def test_what_is_not_installed_is_said_before_a_study_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(write_module, "NEEDED", ("no_such_library",))
    code, text = run("two-bin", "--out", str(tmp_path / "out"))
    assert code == 2
    assert "pip install no_such_library" in text.replace("\n", " ")
    assert not (tmp_path / "out").exists()
