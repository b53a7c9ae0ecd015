"""Each method of releases in parts is a module with the same functions."""

from __future__ import annotations

import inspect

import pytest

import congenial as cg
from congenial.plan.cut import METHODS
from congenial.releases.making.method_choice import method_of
from congenial.releases.making.part_method import PartMethod
from support.city import make_city


def plan_of(name, place):
    make_city(place, method=f'name = "{name}"')
    return cg.read_plan(place / "plan.toml")


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_the_functions_of_all_methods(name, tmp_path):
    found = method_of(plan_of(name, tmp_path))
    assert found.__name__.rpartition(".")[2].startswith(name.replace("ing", ""))
    for function in ("claims", "draw_top", "draw_below"):
        [_, *expected] = inspect.signature(getattr(PartMethod, function)).parameters
        assert list(inspect.signature(getattr(found, function)).parameters) == expected
