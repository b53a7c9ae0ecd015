"""Values and bounds from public files: a plan that names files is the plan that lists them."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import PlanError
from congenial.plan.plan import bounds_by_node, parse_plan, read_plan
from congenial.plan.public_files import with_files
from congenial.releases.sentences import mandate
from support.city import TRIPS, ZONES, make_city
from support.cross_tables import AREAS, TOWN, random_rows, text_of, write_rows

BLOCKS = [(area, block) for area, held in AREAS.items() for block in held]
LISTED = 'publish_exactly = ["root: total"]\nnonnegative = true\nat_most = '


def written(place, name, *lines):
    (place / name).write_text("\n".join(lines) + "\n")


def as_plan(place, text):
    (place / "plan.toml").write_text(text)
    return read_plan(place / "plan.toml")


def test_bounds_of_a_level_are_those_of_the_file(tmp_path):
    path = make_city(
        tmp_path,
        invariants='publish_exactly = ["root"]\nnonnegative = true\n'
        'at_most = { Combe = 50, zone = { file = "capacity.csv", column = "most" } }',
        method='name = "imaging"',
    )
    most = {zone: 20 + 5 * zone for zone in ZONES}
    rows = [f"{ZONES[zone]},{zone},{number}" for zone, number in most.items()]
    written(tmp_path, "capacity.csv", "borough,zone,most", *rows)
    plan = read_plan(path)
    named = {f"City/{ZONES[zone]}/{zone}": number for zone, number in most.items()}
    assert plan.invariants.at_most == {"Combe": 50, **named}
    cg.release(plan, tmp_path / "out", base=tmp_path)
    # the certificate needs no file
    (tmp_path / "capacity.csv").unlink()
    assert all(check.passed for check in cg.verify(tmp_path / "out"))
    found = cg.read_release(tmp_path / "out")
    for zone, number in most.items():
        assert found.values[found.domain.find(str(zone))] <= number
    # 31 people are in zone 1, which has room for 25
    assert TRIPS[1] > most[1]


@pytest.mark.parametrize(
    ("query", "columns", "name"),
    [
        ("area: total", ("area",), "Town/{0}: total"),
        ("block: sex", ("area", "block", "sex"), "Town/{0}/{1}: sex={2}"),
        ("block: sex by age", ("area", "block", "sex", "age"), "Town/{0}/{1}: sex={2}, age={3}"),
        ("area: voting", ("area", "voting"), "Town/{0}: voting={1}"),
        ("root: sex", ("sex",), "Town: sex={0}"),
    ],
)
def test_bounds_of_a_query_name_its_places_and_values(tmp_path, query, columns, name):
    known = {
        "sex": ("F", "M"),
        "age": ("0-17", "18-64", "65+"),
        "voting": ("minor", "adult"),
        "area": tuple(AREAS),
    }
    margin = [known[column] for column in columns if column in ("sex", "age", "voting")]
    places = BLOCKS if "block" in columns else [(area,) for area in AREAS]
    places = places if "area" in columns else [()]
    cells = [()]
    for values in margin:
        cells = [(*cell, value) for cell in cells for value in values]
    keys = [(*place, *cell) for place in places for cell in cells]
    lines = [",".join((*key, str(100 + i))) for i, key in enumerate(keys)]
    written(tmp_path, "most.csv", ",".join((*columns, "most")), *lines)
    limits = f'{{ "{query}" = {{ file = "most.csv", column = "most" }} }}'
    text = text_of(margins='["total", "sex", "voting", "sex by age"]', invariants=LISTED + limits)
    plan = as_plan(tmp_path, text)
    want = {name.format(*key): 100 + i for i, key in enumerate(keys)}
    assert plan.invariants.at_most == want
    _, high = bounds_by_node(plan, plan.domain(TOWN))
    assert np.isfinite(high).sum() == len(want)
    assert sorted(high[np.isfinite(high)]) == sorted(want.values())


def test_a_query_of_several_tables_names_its_table(tmp_path):
    written(tmp_path, "most.csv", "area,block,sex,most", "North,N1,F,9")
    written(tmp_path, "sexes.csv", "sex", "F", "M")
    of = {"file": "most.csv", "column": "most"}
    raw = {
        "hierarchy": {"root": "Town", "levels": ["area", "block"], "domain": "blocks.csv"},
        "tables": {
            "people": {"attributes": {"sex": {"file": "sexes.csv", "column": "sex"}}},
            "homes": 3,
        },
        "invariants": {"at_least": {"block: people: sex": of, "Town: homes: total": 4}},
    }
    found = with_files(raw, tmp_path)
    assert found["tables"] == {"people": {"attributes": {"sex": ["F", "M"]}}, "homes": 3}
    assert found["invariants"]["at_least"] == {
        "Town: homes: total": 4,
        "Town/North/N1: people: sex=F": 9,
    }


def test_values_of_a_file_are_those_listed(tmp_path):
    written(tmp_path, "ages.csv", "note,age", "x,0-17", 'y,"18-64"', ",65+")
    text = text_of()
    from_file = text.replace(
        "age = ['0-17', '18-64', '65+']", 'age = { file = "ages.csv", column = "age" }'
    )
    assert from_file != text
    with pytest.raises(PlanError, match=r"^table\.attributes\.age names the file 'ages\.csv'"):
        parse_plan(from_file)
    assert as_plan(tmp_path, from_file) == parse_plan(text)


def test_many_bounds_are_stated_by_their_number(tmp_path):
    names = [f"z{i}" for i in range(30)]
    written(tmp_path, "rows.csv", "zone", *names)
    written(tmp_path, "zones.csv", "zone,most", *(f"{name},{i}" for i, name in enumerate(names)))
    plan = as_plan(
        tmp_path,
        """
        data.source = "rows.csv"
        hierarchy = { root = "City", levels = ["zone"], domain = "zones.csv" }
        privacy = { neighbours = "substitute", epsilon = 1.0 }
        [invariants]
        publish_exactly = ["root"]
        at_most.zone = { file = "zones.csv", column = "most" }
        """,
    )
    certificate = cg.release(plan, tmp_path / "out", base=tmp_path, simulate=1).certificate
    assert mandate(certificate.invariants[-1]) == (
        "upper bounds hold (30 counts: each at most its own public number; the plan in the "
        "certificate lists them)"
    )
    assert all(check.passed for check in cg.verify(tmp_path / "out"))


MISTAKES = {
    "no file": ("zone", [], "cannot be read"),
    "no column": (
        "zone",
        ["borough,zone,least", "A,1,3"],
        "of which 'capacity.csv' has 0; give a file",
    ),
    "no place": ("zone", ["zone,most", "1,3"], "needs one column 'borough'"),
    "a fraction": ("zone", ["borough,zone,most", "Arden,1,3.5"], "holds '3.5' in row 1"),
    "nothing": ("zone", ["borough,zone,most", "Arden,1,"], "holds '' in row 1"),
    "negative": ("zone", ["borough,zone,most", "Arden,1,-2"], "holds '-2' in row 1"),
    "short": ("zone", ["borough,zone,most", "Arden,1"], "row 1 has more or fewer values than"),
    "long": ("zone", ["borough,zone,most", "Arden,1,2,3"], "row 1 has more or fewer values than"),
    "twice": ("zone", ["borough,zone,most", "Arden,1,2", "Arden,1,2"], "a second bound"),
    "a node": ("Arden", ["borough,zone,most", "Arden,1,2"], "'Arden' is not a level"),
    "two columns": ("zone", ["borough,zone,most,most", "Arden,1,2,3"], "has 2"),
    "huge": ("zone", ["borough,zone,most", f"Arden,1,{10**15 * 99}"], "holds"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_in_files_are_one_sentence(tmp_path, mistake):
    level, lines, message = MISTAKES[mistake]
    path = make_city(
        tmp_path,
        invariants=f'at_most.{level} = {{ file = "capacity.csv", column = "most" }}',
    )
    if lines:
        written(tmp_path, "capacity.csv", *lines)
    with pytest.raises(PlanError) as raised:
        read_plan(path)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"invariants.at_most.{level}")
    assert str(raised.value).count("\n") == 0


def test_a_place_that_the_plan_does_not_have_is_refused(tmp_path):
    path = make_city(
        tmp_path, invariants='at_most.zone = { file = "capacity.csv", column = "most" }'
    )
    written(tmp_path, "capacity.csv", "borough,zone,most", "Arden,9,3")
    with pytest.raises(PlanError, match=r"City/Arden/9.*neither a level nor a node"):
        cg.explain(read_plan(path), base=tmp_path)


def test_files_need_a_directory_and_public_places(tmp_path):
    path = make_city(
        tmp_path, invariants='at_most.zone = { file = "capacity.csv", column = "most" }'
    )
    with pytest.raises(PlanError, match=r"congenial\.read_plan"):
        parse_plan(path.read_text())
    written(tmp_path, "capacity.csv", "borough,zone,most", "Arden,1,3")
    path.write_text(path.read_text().replace('domain = "lookup"', 'domain = "data"'))
    with pytest.raises(PlanError, match="the places are not public"):
        read_plan(path)
    (tmp_path / "capacity.csv").write_bytes(b"borough,zone,most\n\xff,1,3\n")
    path.write_text(path.read_text().replace('domain = "data"', 'domain = "lookup"'))
    with pytest.raises(PlanError, match="not UTF-8"):
        read_plan(path)


def test_confidential_rows_are_no_public_file(tmp_path):
    """No value of them is shown, and none is taken for a public one."""
    write_rows(tmp_path, random_rows(3))
    text = text_of().replace("age = ['0-17', '18-64', '65+']", "age = { file = FILE }")
    for file in ("people.csv", "./people.csv", "../" + tmp_path.name + "/people.csv"):
        limits = f'{{ "block: total" = {{ file = "{file}", column = "people" }} }}'
        for plan in (
            text_of(invariants=LISTED + limits),
            text.replace("FILE", f'"{file}", column = "age"'),
        ):
            with pytest.raises(PlanError, match="holds the confidential rows") as raised:
                as_plan(tmp_path, plan)
            assert "row " not in str(raised.value)
    several = {"homes": {"rows": {"source": "*.csv"}, "attributes": {}}, "odd": 3}
    raw = {"tables": several, "hierarchy": {"root": "Town", "levels": [], "domain": None}}
    limits = {"root: homes: total": {"file": "people.csv", "column": "people"}}
    with pytest.raises(PlanError, match="holds the confidential rows"):
        with_files(raw | {"invariants": {"at_least": limits}}, tmp_path)


def test_other_tables_of_a_plan_are_left_to_its_checks(tmp_path):
    path = make_city(tmp_path, invariants='at_most.zone = { file = "c.txt", column = "most" }')
    with pytest.raises(PlanError, match=r"at_most\.zone\.file is 'c\.txt'.*CSV"):
        read_plan(path)
    path.write_text("table = 3\n[invariants]\nat_most = 4\n")
    with pytest.raises(PlanError):
        read_plan(path)
