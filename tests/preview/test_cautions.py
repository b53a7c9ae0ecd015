"""Cautions about plans: each for the mistake it names, none for what looks like it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from congenial.data.counts import build_domain
from congenial.domain.tree import Tree
from congenial.plan.plan import read_plan
from congenial.preview.cautions import (
    nested_sums,
    reversed_levels,
    source_missing,
    unused_levels,
)
from congenial.releases.model import build_model
from support.city import make_city
from support.seeds import for_each_seed


def model_of(place, **sections):
    plan = read_plan(make_city(place, **sections))
    return build_model(plan, build_domain(plan, base=place))


def test_a_root_that_no_substitution_changes_is_unused(tmp_path):
    split = "split = { root = 0.5, borough = 0.25, zone = 0.25 }"
    free = "nonnegative = true"
    for neighbours, wanted in (("substitute", ("root",)), ("add-remove", ())):
        privacy = f'neighbours = "{neighbours}"\nepsilon = 1.0\n{split}'
        model = model_of(tmp_path, privacy=privacy, invariants=free)
        assert unused_levels(model) == wanted


def levels_of(paths):
    """A tree of three levels and their names, as `reversed_levels` reads them."""
    plan = SimpleNamespace(place_names=("root", "upper", "lower"))
    return SimpleNamespace(domain=Tree.from_paths(paths), plan=plan)


def test_a_finer_level_above_a_coarser_one_is_reversed():
    towns = [("root", f"town {i}", f"county {i % 2}") for i in range(6)]
    assert reversed_levels(levels_of(towns)) == ("upper",)
    right = [("root", f"county {i % 2}", f"town {i}") for i in range(6)]
    assert reversed_levels(levels_of(right)) == ()
    # attributes that cross: each county has both sexes
    crossed = [("root", f"county {i}", sex) for i in range(6) for sex in ("f", "m")]
    assert reversed_levels(levels_of(crossed)) == ()


@for_each_seed(100)
def test_sums_are_nested_where_a_node_lies_below_another(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, n))]
    above = []
    for v in range(n):
        above.append(set() if parents[v] < 0 else above[parents[v]] | {parents[v]})
    model = SimpleNamespace(domain=SimpleNamespace(parents=parents))
    sums = [
        SimpleNamespace(name=str(i), nodes=tuple(rng.choice(n, rng.integers(1, min(n, 4)), False)))
        for i in range(20)
    ]
    wanted = tuple(s.name for s in sums if any(above[v] & set(s.nodes) for v in s.nodes))
    assert nested_sums(model, SimpleNamespace(sums=sums)) == wanted


def test_a_missing_source_is_reported(tmp_path):
    plan = read_plan(make_city(tmp_path))
    assert not source_missing(plan, tmp_path)
    (tmp_path / "rows.csv").unlink()
    assert source_missing(plan, tmp_path)
