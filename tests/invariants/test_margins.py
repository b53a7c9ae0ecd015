"""Invariants on the margins of tables."""

from __future__ import annotations

import pytest

import congenial as cg
from congenial.errors import (
    ArgumentError,
    InvariantError,
)
from support.table_cases import AGES, TWO

AXES = {"sex": ("F", "M"), "age": ("0", "1", "2")}


GROUPS = {"grown": ("age", AGES)}


def people(geography=TWO, **more):
    return cg.Table(AXES, GROUPS, geography, **{"name": "people", **more})


def test_invariants_on_margins_need_a_workload_that_counts_them():
    noise = cg.DiscreteLaplace(1.0)
    exact = cg.exactly(margins=[("sex",)])
    with pytest.raises(InvariantError, match="has a workload"):
        cg.condition(cg.Additive(noise, 6), exact & cg.nonnegative())
    workload = cg.Workload.of(people(), {1: ["sex"]})
    with pytest.raises(ArgumentError, match=r"does not count margin \('sex',\).*level 'level 0'"):
        cg.condition(cg.Additive(noise, workload), cg.consistent(workload) & exact)
    with pytest.raises(ArgumentError, match="no list of margins"):
        cg.exactly(margins="sex")
