"""Invariants on the margins of tables."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import (
    ArgumentError,
    InvariantError,
    UnsupportedError,
)
from congenial.invariants.margins import AtLeastAsMany, MarginBounds, on_entries
from congenial.invariants.resolved import difference_rows
from support.table_cases import AGES, TWO

AXES = {"sex": ("F", "M"), "age": ("0", "1", "2")}


INF = np.inf
SEEN = {"F": ("1", "2"), "M": ("0", "1")}  # ages of which there may be people
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


def test_a_count_beside_one_that_holds_no_record_is_compared_with_zero():
    impossible = np.zeros((2, 3), dtype=bool)
    impossible[1, 2] = impossible[0, 0] = True
    workload = cg.Workload.of(cg.Table(AXES, impossible=impossible), [("sex", "age")])
    sides = ((None, {"sex": sex, "age": None}) for sex in ("F", "M"))
    none, lo, hi, pairs = on_entries(AtLeastAsMany(*sides, None), workload)
    women, men = ([workload.find({"sex": s, "age": a}) for a in ages] for s, ages in SEEN.items())
    assert none.size == 0
    # women of age 1 are at least as many as men; of age 2 there are no men, of age 0 no women
    assert pairs.tolist() == [[women[0], men[1]]]
    assert [v for v in range(len(workload)) if lo[v] == 0.0] == [women[1]]
    assert [v for v in range(len(workload)) if hi[v] == 0.0] == [men[0]]
    z = np.arange(len(workload)) ** 2.0
    matrix, least = difference_rows(pairs, len(workload))
    assert (matrix @ z - least).tolist() == [z[women[0]] - z[men[1]]]
    with pytest.raises(UnsupportedError, match="conditions on 1000000 entries"):
        difference_rows(np.zeros((70, 2), dtype=np.int64), 10**6)


def test_bounds_are_laid_out_as_a_released_margin_is():
    workload = cg.Workload.of(cg.Table(AXES), [(), ("sex", "age")])
    given = np.arange(6.0).reshape(2, 3)
    bounds = MarginBounds(("sex", "age"), np.asarray(-INF), given, None, None)
    lo, hi = bounds.limits(workload)
    for i, sex in enumerate(AXES["sex"]):
        for j, age in enumerate(AXES["age"]):
            assert hi[workload.find({"sex": sex, "age": age})] == given[i, j]
    assert hi[workload.find({})] == INF and (lo == -INF).all()
    wrong = MarginBounds(("sex", "age"), given.T, np.asarray(INF), None, None)
    with pytest.raises(InvariantError, match=r"have shape \(3, 2\).* of shape \(2, 3\)"):
        wrong.limits(workload)
