"""Tables of a release that are not those of its plan are refused as they are read."""

from __future__ import annotations

import shutil

import pytest

from congenial.errors import ReleaseError
from congenial.plan.plan import read_plan
from congenial.releases.certificate import read_certificate
from congenial.releases.contents import read_contents
from congenial.releases.directory import CERTIFICATE, MEASUREMENTS
from congenial.releases.making import release
from support.city import make_city
from support.edited import rewrite

DAMAGE = {
    "SELECT * EXCLUDE (value) FROM t": "the plan gives",
    "SELECT *, value AS truth FROM t": "truth BIGINT; the plan gives",
    "SELECT * REPLACE (CASE WHEN level = 2 THEN NULL ELSE value END AS value) FROM t": (
        "a row without a value"
    ),
    "SELECT * REPLACE (value + (1::BIGINT << 60) AS value) FROM t": r"a value beyond 2\^53",
    "SELECT * REPLACE ('Elsewhere' AS root) FROM t": "does not start at the plan's root",
}
MEASURED = {
    "SELECT * REPLACE (measurement * 0 + (1::BIGINT << 60) AS measurement) FROM t": (
        r"a measurement beyond 2\^53"
    ),
    "SELECT * FROM t LIMIT 3": "does not have the nodes of",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("city")
    plan = read_plan(
        make_city(place, method='name = "imaging"', release='publish = ["table", "measurements"]')
    )
    release(plan, place / "out", base=place)
    return place / "out", plan


def read(place, plan):
    return read_contents(place, read_certificate(place / CERTIFICATE), plan)


def test_a_whole_release_is_read(made):
    found = read(*made)
    assert found.value.tolist() == [int(text) for text in found.csv.column("value")]
    assert found.tree.is_consistent(found.value)
    assert len(found.measurements[1].rows) == len(found.tree)


@pytest.mark.parametrize("query", [*DAMAGE, *MEASURED])
def test_other_tables_are_refused(made, tmp_path, query):
    place, plan = shutil.copytree(made[0], tmp_path / "out"), made[1]
    if query in DAMAGE:
        rewrite(place, query)
    else:
        rewrite(place, query, MEASUREMENTS)
    with pytest.raises(ReleaseError, match=DAMAGE.get(query) or MEASURED[query]):
        read(place, plan)
