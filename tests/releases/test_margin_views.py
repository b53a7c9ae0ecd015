"""One margin of a release at one level: the same numbers as the rows of its files."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, UnsupportedError
from congenial.plan.plan import read_plan
from congenial.releases import margin_views
from congenial.releases.file_table import Numbers
from congenial.releases.making.make_release import release
from support import two_tables
from support.city import make_city
from support.cross_tables import plan_of, random_rows, write_rows
from support.plots import drawn, legend, lines, new_axes, widths

# So much noise that no count is likely to be right by chance.
NOISY = 'neighbours = "substitute"\nepsilon = 0.2'


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    place = tmp_path_factory.mktemp("city")
    release(read_plan(make_city(place)), place / "out", base=place, simulate=4)
    return cg.read_release(place / "out")


@pytest.fixture(scope="module")
def town(tmp_path_factory):
    place = tmp_path_factory.mktemp("town")
    write_rows(place, random_rows(1))
    margins = '{ root = ["total", "sex by age"], area = ["total"], block = ["age by status"] }'
    plan = plan_of(margins=margins, privacy=NOISY, more='[method]\nname = "imaging"')
    release(plan, place / "out", base=place, simulate=2)
    return cg.read_release(place / "out")


def lines_of(found):
    with (found.directory / "release.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_level_of_a_tree_has_a_row_for_each_node(city):
    found = city.table(level="zone")
    assert found.columns == ("root", "borough", "zone", "value")
    lines = [line for line in lines_of(city) if line["level_name"] == "zone"]
    assert found.rows == tuple(
        (line["root"], line["borough"], line["zone"], int(line["value"])) for line in lines
    )
    assert city.table(level=2).rows == found.rows


def test_the_coarsest_level_with_several_counts_comes_first(city, town):
    assert city.table().columns == ("root", "borough", "value")
    assert len(city.table().rows) == 3
    assert town.table().columns == ("root", "area", "total")
    assert town.table("sex by age").columns[:1] == ("root",)
    assert len(town.table("sex by age").rows) == 1


@pytest.mark.parametrize("margin", ["age by status", ("age", "status"), ["status", "age"]])
def test_a_margin_has_a_column_for_each_cell_that_can_hold_a_record(town, margin):
    found = town.table(margin, "block")
    cells = found.columns[3:]
    # a child is not married
    assert cells == (
        "0-17, single",
        "18-64, single",
        "18-64, married",
        "65+, single",
        "65+, married",
    )
    value = {
        (line["block"], f"{line['age']}, {line['status']}"): int(line["value"])
        for line in lines_of(town)
        if line["margin"] == "age by status"
    }
    assert len(found.rows) == 5
    for row in found.rows:
        assert row[3:] == tuple(value[row[2], cell] for cell in cells)


def test_cells_add_up_to_the_margin_at_every_place(town):
    total = {row[:2]: row[2] for row in town.table(level="area").rows}
    found = dict.fromkeys(total, 0)
    for row in town.table("age by status", "block").rows:
        found[row[:2]] += sum(row[3:])
    assert found == total


def test_a_table_prints_and_shows_its_first_rows(town):
    found = town.table("sex by age")
    assert str(found).splitlines()[0] == "sex by age, level root"
    assert "F, 0-17" in found._repr_html_()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"level": "block"}, "no 'block: total'; it has 'root: total', 'root: sex by age'"),
        ({"margin": "sex by hair"}, "'hair' is no axis or group"),
        ({"margin": "sex", "level": "street"}, "level is 'street'; give 'root', 'area' or 'block'"),
        ({"level": 3}, "or a depth from 0 to 2"),
        ({"level": True}, "level is true"),
        ({"table": "homes"}, "table is 'homes'; give one of table"),
        ({"margin": 5}, "is no margin"),
    ],
)
def test_what_a_release_of_a_table_does_not_have_is_refused(town, given, said):
    with pytest.raises(ArgumentError, match=said):
        town.table(**given)


@pytest.mark.parametrize("given", [{"margin": ("sex",)}, {"table": "table"}])
def test_a_tree_has_neither_margins_nor_tables(city, given):
    with pytest.raises(ArgumentError, match="counts the nodes of a tree; leave both out"):
        city.table(**given)


def ends_of(found, where):
    """Return the value and the interval of the rows of a file that satisfy a condition."""
    kept = [line for line in lines_of(found) if where(line)]
    numbers = ([int(line[name]) for line in kept] for name in ("value", "lower", "upper"))
    return tuple(numbers)


def test_a_plot_has_the_counts_and_the_intervals_of_the_files(city):
    ax = drawn(city.plot(level="zone", ax=new_axes()))
    values, lower, upper = ends_of(city, lambda line: line["level_name"] == "zone")
    assert widths(ax) == values
    assert lines(ax) == list(zip(lower, upper, strict=True))
    assert legend(ax) == ["90% interval of the true count"]
    assert ax.get_title(loc="left") == "SIMULATION: NOT PRIVATE: counts, level zone"


def test_a_margin_at_one_place_has_a_bar_for_each_cell(town):
    ax = drawn(town.plot("sex by age", ax=new_axes()))
    found = town.table("sex by age")
    assert [text.get_text() for text in ax.get_yticklabels()] == list(found.columns[1:])
    assert widths(ax) == list(found.rows[0][1:])


def test_a_margin_at_several_places_has_a_colour_for_each_cell(town):
    ax = drawn(town.plot("age by status", "block", ax=new_axes()))
    found = town.table("age by status", "block")
    assert widths(ax) == [row[3 + k] for k in range(5) for row in found.rows]
    assert set(found.columns[3:]) <= set(legend(ax))


def test_only_the_largest_of_many_counts_are_drawn(city, town, monkeypatch):
    monkeypatch.setattr(margin_views, "MOST_BARS", 4)
    ax = drawn(city.plot(level="zone", ax=new_axes()))
    rows = city.table(level="zone").rows
    least = sorted(row[-1] for row in rows)[-4]
    assert len(widths(ax)) == 4
    assert min(widths(ax)) == least
    assert ax.get_title(loc="left").endswith("the 4 largest of 6")
    with pytest.raises(UnsupportedError, match="5 cells at each place, and a plot can show 4"):
        town.plot("age by status", "block", ax=new_axes())


def test_an_icicle_has_the_totals_of_every_level(city, town):
    ax = drawn(city.plot_errors(ax=new_axes()))
    assert len(ax.collections) == 3
    _, lower, upper = ends_of(city, lambda line: line["level_name"] == "zone")
    median = np.median([0.5 * (b - a) for a, b in zip(lower, upper, strict=True)])
    assert ax.get_yticklabels()[2].get_text() == f"zone\n± {median:.3g}"
    # blocks have no total in this plan
    ax = drawn(town.plot_errors(ax=new_axes()))
    assert [text.get_text().partition("\n")[0] for text in ax.get_yticklabels()] == ["root", "area"]


def test_an_icicle_ends_before_a_level_of_too_many_places(city, monkeypatch):
    monkeypatch.setattr(margin_views, "MOST_BOXES", 3)
    assert len(city.plot_errors(ax=new_axes()).collections) == 2


def test_an_icicle_without_intervals_says_why(city):
    rows = city.rows
    none = Numbers(np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.bool_))
    data = tuple(
        none if name in ("lower", "upper") else column
        for (name, _), column in zip(rows.columns, rows.data, strict=True)
    )
    with pytest.raises(UnsupportedError, match="no interval for any total"):
        replace(city, rows=replace(rows, data=data)).plot_errors(ax=new_axes())


def test_a_release_without_the_total_of_all_places_has_no_icicle(tmp_path):
    write_rows(tmp_path, random_rows(1))
    nested = '{ root = ["sex"], area = ["sex"], block = ["sex"] }'
    plan = plan_of(
        margins=nested, invariants="nonnegative = true", more='[method]\nname = "imaging"'
    )
    release(plan, tmp_path / "out", base=tmp_path, simulate=1)
    with pytest.raises(ArgumentError, match="the release has no 'root: total'; it has 'root: sex'"):
        cg.read_release(tmp_path / "out").plot_errors(ax=new_axes())


def test_several_tables_are_named_by_their_titles(tmp_path):
    two_tables.write_rows(tmp_path, *two_tables.random_rows(1))
    release(two_tables.plan_of(), tmp_path / "out", base=tmp_path, simulate=1)
    found = cg.read_release(tmp_path / "out")
    with pytest.raises(ArgumentError, match="table is None; give one of people, homes"):
        found.table("status")
    assert found.table("status", table="homes").title == "homes: status, level root"
    title = found.plot_errors(table="people", ax=new_axes()).get_title(loc="left")
    assert "people" in title


def test_places_of_one_name_are_told_apart(tmp_path):
    zones = {1: "Arden", 2: "Brook", 3: "Brook"}
    hierarchy = (
        'root = "City"\nlevels = ["borough", "kind"]\ndomain = "lookup"\nnames_repeat = true'
    )
    lookup = "zone_id,borough,kind\n1,Arden,old\n2,Brook,old\n3,Brook,new\n"
    privacy = 'neighbours = "substitute"\nepsilon = 1.0'
    plan = make_city(
        tmp_path, zones=zones, trips={1: 5, 2: 8, 3: 1}, hierarchy=hierarchy, privacy=privacy
    )
    (tmp_path / "zones.csv").write_text(lookup)
    release(read_plan(plan), tmp_path / "out", base=tmp_path, simulate=1)
    ax = cg.read_release(tmp_path / "out").plot(level="kind", ax=new_axes())
    assert sorted(text.get_text() for text in ax.get_yticklabels()) == [
        "Arden/old",
        "Brook/old",
        "new",
    ]
