"""The tree of a domain's ordered paths is the one that `Tree.from_paths` builds."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.data.counts import build_domain, open_source
from congenial.data.public_domain import Paths, tree_of
from congenial.domain.names import Names
from congenial.domain.tree import Tree
from congenial.errors import DataError
from congenial.plan.plan import parse_plan, read_plan
from support.city import make_city, plan_text

PRIVACY = 'neighbours = "substitute"\nepsilon = 1.0'
KINDS = 'root = "all"\nlevels = ["borough", "kind"]\ndomain = "lookup"'


def test_ordered_paths_make_the_tree_of_any_paths():
    source = np.random.default_rng(4)
    for _ in range(500):
        depth = int(source.integers(1, 5))
        levels = [f"l{at}" for at in range(depth)]
        plan = parse_plan(
            plan_text(
                hierarchy=f'root = "all"\nlevels = {levels}\ndomain = "lookup"',
                privacy='neighbours = "substitute"\nepsilon = 1.0',
            )
        )
        paths = sorted(
            {
                tuple("abc"[source.integers(3)] for _ in range(depth))
                for _ in range(source.integers(1, 41))
            }
        )
        pairs = zip([(None,) * depth, *paths], paths, strict=False)
        apart = [
            next(at for at in range(depth) if before[at] != path[at]) for before, path in pairs
        ]
        columns = zip(*paths, strict=True)
        names = tuple(
            Names.of(name for name, first in zip(column, apart, strict=True) if first <= at)
            for at, column in enumerate(columns)
        )
        made = tree_of(plan, Paths(np.array(apart, dtype=np.int16), names))
        known = Tree.from_paths(("all", *path) for path in paths)
        assert made.names == known.names
        assert made.parents.tolist() == known.parents.tolist()


@pytest.mark.parametrize(
    ("given", "right"),
    [
        (["zone", "borough"], ["borough", "zone"]),
        (["zone", "borough", "city"], ["city", "borough", "zone"]),
        (["city", "zone", "borough"], ["city", "borough", "zone"]),
    ],
)
def test_levels_in_the_wrong_order_are_given_in_the_right_one(tmp_path, given, right):
    hierarchy = f'root = "all"\nlevels = {given}\ndomain = "lookup"'
    plan = read_plan(
        make_city(tmp_path, hierarchy=hierarchy, privacy='neighbours = "substitute"\nepsilon = 1.0')
    )
    zones = (tmp_path / "zones.csv").read_text(encoding="utf-8").splitlines()
    lines = [f"{line},{'city' if at == 0 else 'C'}" for at, line in enumerate(zones)]
    (tmp_path / "zones.csv").write_text("\n".join(lines) + "\n")
    with pytest.raises(DataError) as caught:
        build_domain(plan, base=tmp_path)
    assert f"hierarchy.levels = {right}" in str(caught.value)
    assert "every zone has one borough" in str(caught.value) or "has one city" in str(caught.value)


def test_a_name_under_two_parents_with_several_parts_is_no_wrong_order(tmp_path):
    plan = read_plan(make_city(tmp_path, hierarchy=KINDS, privacy=PRIVACY))
    places = ["Arden,a", "Arden,b", "Brook,a", "Brook,b", "Brook,c", "Combe,d"]
    lines = [f"{zone},{place}\n" for zone, place in enumerate(places, start=1)]
    zones = "".join(["zone_id,borough,kind\n", *lines])
    (tmp_path / "zones.csv").write_text(zones)
    with pytest.raises(DataError, match=r"give it one, or say hierarchy\.names_repeat = true"):
        build_domain(plan, base=tmp_path)


def test_places_below_each_node_of_a_level_are_those_of_the_file(tmp_path):
    make_city(
        tmp_path,
        hierarchy='root = "all"\nlevels = ["b", "k", "z"]\ndomain = "places.csv"',
        privacy='neighbours = "substitute"\nepsilon = 1.0',
    )
    (tmp_path / "places.csv").write_text("b,k,z\nx,1,p\nx,1,q\nx,2,p\ny,1,p\n,1,p\n")
    plan = read_plan(tmp_path / "plan.toml")
    with open_source(plan, base=tmp_path) as rows:
        assert rows.places_below(1) == {("x",): 3, ("y",): 1}
        assert rows.places_below(2) == {("x", "1"): 2, ("x", "2"): 1, ("y", "1"): 1}
