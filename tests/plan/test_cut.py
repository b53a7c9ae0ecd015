"""Plans that a release in parts does not cover are refused before anything is spent."""

from __future__ import annotations

import pytest

from congenial.errors import PlanError
from congenial.verification.verdict import verify
from support.city import make_city
from support.parts import PARTED, make


@pytest.mark.parametrize(
    ("changes", "level", "message"),
    [
        ({}, "zone", "parts is 'zone'; give 'borough', a level between"),
        ({}, "Borough", "did you mean 'borough'"),
        ({"method": 'name = "imaging"\nnorm = "l1"'}, "borough", "method.norm is 'l1'"),
        ({"invariants": ""}, "borough", "invariants.nonnegative is false"),
        (
            {"privacy": 'neighbours = "substitute"\nepsilon = 1.0\nsplit = { zone = 1.0 }'},
            "borough",
            "privacy.split.borough is 0",
        ),
        ({"accuracy": "simultaneous = true"}, "borough", "accuracy.simultaneous is given"),
        ({"accuracy": 'sums = { two = ["Arden", "Brook"] }'}, "borough", "accuracy.sums is given"),
        (
            {"invariants": "nonnegative = true\nat_most = { zone = 50 }"},
            "borough",
            "invariants.at_most holds 'zone', a level below 'borough'",
        ),
        (
            {"invariants": 'nonnegative = true\npublish_exactly = ["Arden/2"]'},
            "borough",
            "invariants.publish_exactly names 'Arden/2', which is no path from below the root",
        ),
        (
            {
                "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
                "invariants": 'nonnegative = true\npublish_exactly = ["root", "borough"]',
            },
            "borough",
            "a node has a single child, and the counts of both are the same",
        ),
    ],
)
def test_plans_that_parts_do_not_cover_are_refused_before_a_debit(
    changes, level, message, tmp_path
):
    make_city(tmp_path, **PARTED | changes)
    with pytest.raises(PlanError, match=message):
        make(tmp_path, parts=level)
    assert not (tmp_path / "out").exists()


DEEP = {
    "data": 'source = "rows.csv"',
    "hierarchy": 'root = "r"\nlevels = ["a", "b", "c"]\ndomain = "data"\nnames_repeat = true',
    "privacy": 'neighbours = "substitute"\nepsilon = 1.0',
}


@pytest.mark.parametrize(
    ("entry", "fits"), [("x", True), ("x/y", True), ("y", False), ("r", False)]
)
def test_a_node_is_named_by_its_path_since_a_deeper_one_may_have_its_name(tmp_path, entry, fits):
    make_city(
        tmp_path,
        **PARTED | DEEP,
        invariants=f"nonnegative = true\npublish_exactly = ['root', '{entry}']",
    )
    paths = [f"{a},{b},{c}" for a in "xz" for b in "yw" for c in "xyzrv"]
    (tmp_path / "rows.csv").write_text("\n".join(["a,b,c", *paths, ""]))
    if fits:
        make(tmp_path, parts="b")
        assert all(check.passed for check in verify(tmp_path / "out"))
        return
    with pytest.raises(PlanError, match="is no path from below the root down to 'b'"):
        make(tmp_path, parts="b")


def test_so_many_parts_are_refused(tmp_path):
    zones = {zone: f"b{zone // 2}" for zone in range(20_002)}
    make_city(tmp_path, zones=zones, trips={0: 1}, **PARTED)
    with pytest.raises(PlanError, match="makes 10,001 parts, and the limit is 10,000; cut at a"):
        make(tmp_path, parts="borough")


def test_a_plan_of_one_level_and_one_of_tables_have_no_parts(tmp_path):
    make_city(
        tmp_path,
        **PARTED,
        hierarchy='root = "City"\nlevels = ["zone"]\ndomain = "lookup"',
        data='source = "rows.csv"\nlookup = { source = "zones.csv", key = "zone_id", on = "zone" }',
        privacy='neighbours = "substitute"\nepsilon = 1.0',
    )
    with pytest.raises(PlanError, match="of one level; leave parts out"):
        make(tmp_path, parts="zone")
