"""Tables and workloads: answers, names and arrays against loops, and mistakes told."""

from __future__ import annotations

import time

import numpy as np
import pytest

import congenial as cg
from congenial.domain.nesting import nested_parents
from congenial.errors import (
    ArgumentError,
    StructureError,
)
from support.notebook import HOSTILE, texts
from support.table_cases import AGES, PAIR, TWO, counts, masks

AXES = {"sex": ("F", "M"), "age": ("0", "1", "2")}
GROUPS = {"grown": ("age", AGES)}
CHILD_MOTHERS = [{"age": "0", "mother": "yes"}, {"sex": "M", "mother": ["yes"]}]


def people(geography=TWO, **more):
    return cg.Table(AXES, GROUPS, geography, **{"name": "people", **more})


def mothers():
    axes = {"sex": ("F", "M"), "mother": ("yes", "no"), "age": ("0", "1", "2")}
    return cg.Table(axes, GROUPS, PAIR, impossible=CHILD_MOTHERS)


HOMES = cg.Table({"occupied": ("yes", "no")}, geography=TWO, name="homes")
WORKLOADS = {
    "total": cg.Workload.of(cg.Table(AXES), [()]),
    "cells alone": cg.Workload.of(cg.Table(AXES)),
    "groups": cg.Workload.of(people(None), [("sex", "grown"), ("grown",)]),
    "crossing": cg.Workload.of(people(None), [("sex",), ("age",)]),
    "levels": cg.Workload.of(people(), {0: [("sex",)], 1: [("sex", "grown")]}),
    "every level": cg.Workload.of(people(), [(), ("sex",), ("age", "sex")]),
    "impossible": cg.Workload.of(mothers(), [("mother",), ("mother", "grown")]),
    "two tables": cg.Workload.of(people(), {0: [()]}) + cg.Workload.of(HOMES, {1: [()]}),
}
# found by hand: whether of any two entries one holds the other or they share nothing
NESTED = {"total", "cells alone", "groups", "levels", "two tables"}


@pytest.mark.parametrize("name", WORKLOADS)
def test_answers_are_sums_over_the_cells_of_each_entry(name):
    workload = WORKLOADS[name]
    each = masks(workload)
    assert each.shape == (len(workload), workload.cells.size)
    rng = np.random.default_rng(5)
    for _ in range(3):
        data = [counts(table, rng) for table in workload.tables]
        flat = [
            x.reshape(t.possible.shape)[t.possible]
            for x, t in zip(data, workload.tables, strict=True)
        ]
        x = workload.answers(*data)
        np.testing.assert_array_equal(x, each.astype(int) @ np.concatenate(flat))
        assert workload.consistent_with(x)
        x[rng.integers(len(workload) - workload.cells.size or 1)] += 1
        assert workload.consistent_with(x) == (name == "cells alone")


@pytest.mark.parametrize("name", WORKLOADS)
def test_nested_entries_make_a_tree_with_the_same_sums(name):
    workload = WORKLOADS[name]
    assert (workload.tree is not None) == (name in NESTED)
    if workload.tree is None:
        return
    each = masks(workload)
    for entry, parent in enumerate(workload.tree.parents):
        above = [i for i in range(len(each)) if i != entry and (each[i] >= each[entry]).all()]
        larger = [each[i].sum() for i in above if each[i].sum() > each[entry].sum()]
        assert parent in [-1, *above]
        # equal sets stand in a chain, whose last is below the smallest larger one
        size = 0 if parent < 0 else each[parent].sum()
        assert size in (each[entry].sum(), min(larger, default=0))
    data = [counts(table, np.random.default_rng(1)) for table in workload.tables]
    assert workload.tree.is_consistent(workload.answers(*data))
    np.testing.assert_array_equal(workload.tree.leaves, workload.cells)


def test_random_sets_are_nested_where_every_two_are():
    rng = np.random.default_rng(8)
    seen = set()
    for _ in range(400):
        k, n = rng.integers(1, 6), rng.integers(0, 5)
        sets = [np.eye(k, dtype=bool)[i] for i in range(k)]
        sets = [m for m in rng.random((n, k)) < 0.5 if m.any()] + sets
        chain = np.where(np.array(sets), np.arange(len(sets))[:, None], -1)
        want = all((a & b).sum() in (0, a.sum(), b.sum()) for a in sets for b in sets)
        parents = nested_parents(chain, len(sets))
        assert (parents is not None) == want
        seen.add(want)
        if parents is not None:
            for i, parent in enumerate(parents):
                above = [j for j, m in enumerate(sets) if j != i and (m >= sets[i]).all()]
                strict = [j for j in above if sets[j].sum() > sets[i].sum()]
                assert (parent in above) or (parent < 0 and not strict)
    assert seen == {True, False}


@pytest.mark.parametrize("name", WORKLOADS)
def test_every_entry_has_a_name_of_its_own(name):
    workload = WORKLOADS[name]
    assert len(set(workload.names)) == len(workload)
    assert list(workload.names) == [workload.name(v) for v in range(len(workload))]


def test_arrays_names_and_scales_by_margin():
    table = people(levels=("region", "place"))
    workload = cg.Workload.of(table, {"region": [("sex",)], "place": [("sex", "grown")]})
    data = counts(table, np.random.default_rng(2), 50)
    x = workload.answers(data)
    region = np.stack([data[:2].sum(axis=(0, 2)), data[2].sum(axis=1)])
    np.testing.assert_array_equal(workload.array(x, "sex"), region)
    grown = np.stack([data[..., 0], data[..., 1:].sum(axis=-1)], axis=1)
    np.testing.assert_array_equal(workload.array(x, ("grown", "sex"), "place"), grown)
    np.testing.assert_array_equal(workload.array([x, x], ("sex", "age"), 1), [data, data])
    assert x[workload.find({"sex": "M"}, at="north")] == region[0, 1]
    entry = workload.find({"grown": "adult", "sex": "F"}, at="north/b")
    assert x[entry] == grown[1, 1, 0]
    assert workload.name(entry) == "sex=F, grown=adult in people at north/b"
    scales = workload.scales({("sex",): 3.0, "place": {("grown", "sex"): 2.0, ("sex", "age"): 1.0}})
    assert scales.tolist() == [3.0] * 4 + [2.0] * 12 + [1.0] * 18
    assert np.isinf(workload.scales({("sex",): 3.0})[4:]).all()
    block = workload.block(("sex",))
    assert (block.start, block.stop) == (0, 4)
    assert block.text == "sex in people at level region"


def test_impossible_cells_are_no_entries():
    table, workload = mothers(), WORKLOADS["impossible"]
    assert (~table.possible[0]).sum() == 4
    data = counts(table, np.random.default_rng(0), 9)
    x = workload.answers(data)
    np.testing.assert_array_equal(workload.array(x, ("sex", "mother", "age"), 1), data)
    with pytest.raises(ArgumentError, match="declared impossible there"):
        workload.find({"mother": "yes", "grown": "minor"}, at="town")
    data[0, 1, 0, 1] = 123456
    with pytest.raises(ArgumentError, match="cell that was declared impossible") as caught:
        workload.answers(data)
    assert "123456" not in str(caught.value)
    somewhere = np.zeros((2, 3), dtype=bool)
    somewhere[1, 2] = True
    here = np.zeros((3, 2, 3), dtype=bool)
    here[0, 1, 2] = True
    assert len(cg.Workload.of(people(impossible=somewhere))) == 15
    assert len(cg.Workload.of(people(impossible=here))) == 17


def test_counties_compile_in_less_than_a_second():
    paths = [("us", f"s{i % 51}", f"c{i}") for i in range(3143)]
    ages = tuple(map(str, range(23)))
    table = cg.Table({"sex": ("F", "M"), "age": ages}, geography=cg.Tree.from_paths(paths))
    start = time.process_time()
    workload = cg.Workload.of(table, {1: [("sex",)]})
    assert workload.tree is not None
    assert len(workload.tree) == 3143 * 46 + 102
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: cg.Table({}), "no axis"),
        (lambda: cg.Table({"sex": "FM"}), "axis 'sex' has no list"),
        (lambda: cg.Table({"sex": ("F", "F")}), "'F' twice"),
        (lambda: cg.Table(AXES, {"grown": ("ages", AGES)}), "of axis 'ages'"),
        (lambda: cg.Table(AXES, {"grown": ("age", {"minor": ["0"]})}), "the value '1'"),
        (lambda: cg.Table(AXES, {"grown": ("age", {"m": ["0", "1", "2", "3"]})}), "value '3'"),
        (lambda: cg.Table(AXES, {"grown": ("age", {"m": "012"})}), "no mapping of names"),
        (lambda: cg.Table(AXES, {"sex": ("age", AGES)}), "'sex' stands for two"),
        (lambda: people(levels=("a",)), "levels names 1"),
        (lambda: people(geography=cg.Tree.from_paths(["a/b", "c"])), "different depths"),
        (lambda: people(impossible=np.ones((2, 3), dtype=bool)), "every cell is impossible"),
        (lambda: people(impossible=np.ones((3, 2), dtype=bool)), "shape \\(3, 2\\)"),
        (lambda: people(impossible={"age": "7"}), "names the value '7'"),
        (lambda: people().margin(("age", "grown")), "an axis twice"),
        (lambda: people().margin(("race",)), "'race' is no axis or group"),
        (lambda: people().level("state"), "'state' is no level"),
        (lambda: cg.Workload.of(people(), ["sex", 3]), "3 is no margin"),
        (lambda: cg.Workload.of(people()) + cg.Workload.of(people()), "two tables are named"),
        (lambda: WORKLOADS["two tables"].block(()), "give one of people, homes"),
        (lambda: WORKLOADS["groups"].block("sex"), "does not count margin"),
        (lambda: WORKLOADS["groups"].find({"grown": "old"}), "'old' is no value"),
        (lambda: WORKLOADS["groups"].scales({"sex": 1.0}), "'sex' names no block"),
        (lambda: WORKLOADS["groups"].answers(np.zeros((3, 2), dtype=int)), "shape \\(2, 3\\)"),
        (lambda: WORKLOADS["groups"].answers(np.zeros((2, 3))), "dtype float64"),
        (lambda: WORKLOADS["groups"].array(np.zeros(3), "grown"), "values a row"),
        (lambda: cg.Table(AXES, None), "groups is None"),
        (lambda: cg.Table(AXES, {"grown": "age"}), "group 'grown' is 'age'"),
        (lambda: cg.Table(AXES, geography="north"), "geography is 'north'"),
        (lambda: people(impossible={"age": 3}), "gives 'age' as 3"),
        (lambda: people(impossible={"age": None}), "gives 'age' as None"),
        (lambda: WORKLOADS["groups"].answers([[1], [2, 3]]), "different lengths"),
        (lambda: WORKLOADS["groups"].name(999), "entry is 999"),
        (lambda: WORKLOADS["groups"].name(-1), "entry is -1"),
        (lambda: WORKLOADS["groups"].consistent_with([1, 2]), "values a row"),
        (lambda: WORKLOADS["groups"].find(["grown"]), "axes with a value each"),
        (lambda: WORKLOADS["groups"].scales(None), "None was given for margins"),
        (lambda: WORKLOADS["groups"].scales({"grown": "2x"}), "scale of grown in people is '2x'"),
        (lambda: WORKLOADS["groups"].scales({"grown": [1.0, 2.0, 3.0]}), "as many as it has"),
        (lambda: cg.bounds(margin="sex", lo="a"), "lo='a'; give a number"),
        (lambda: cg.bounds(margin="sex", hi=[[1], [2, 3]]), "or an array of them"),
        (lambda: people().tally(["F"]), "no mapping; give one column"),
    ],
)
def test_mistakes_are_refused_with_a_message(make, told):
    with pytest.raises((StructureError, ArgumentError), match=told):
        make()


def test_records_are_counted_where_they_are():
    table = people()
    rng = np.random.default_rng(6)
    leaves = np.array(["north/a", "b", "c"])
    place, sex, age = rng.integers(0, 3, 500), rng.integers(0, 2, 500), rng.integers(0, 3, 500)
    columns = {"age": age, "sex": np.array(["F", "M"])[sex]}
    found = table.tally(columns, leaves[place])
    want = np.zeros(table.shape, dtype=int)
    for at in zip(place, sex, age, strict=True):
        want[at] += 1
    np.testing.assert_array_equal(found, want)
    assert table.tally({"sex": [], "age": []}, []).sum() == 0
    for wrong, areas, told in (
        ({"sex": ["F"]}, ["b"], "one column for each of sex, age"),
        ({"sex": ["F"], "age": [77]}, ["b"], "value of 'age' that the table lacks"),
        ({"sex": ["F"], "age": [1]}, ["north"], "value of 'areas' that the table lacks"),
        ({"sex": ["F"], "age": [1]}, None, "has a geography"),
        ({"sex": ["F", "M"], "age": [1, 0]}, ["b"], "different lengths"),
    ):
        with pytest.raises(ArgumentError, match=told) as caught:
            table.tally(wrong, areas)
        assert "77" not in str(caught.value)


def test_the_total_of_a_table_without_a_geography_is_a_number():
    table = cg.Table(AXES)
    workload = cg.Workload.of(table, [()])
    x = workload.answers([[1, 2, 0], [0, 4, 1]])
    assert workload.array(x, ()).shape == ()
    assert workload.array(x, ()) == 8
    np.testing.assert_array_equal(workload.array([x, 2 * x], ()), [8, 16])
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), workload)
    most = cg.bounds(margin=(), hi=8)
    assert most.parts[0].limits(workload)[1].tolist() == [8.0] + [np.inf] * 6
    made = cg.condition(mechanism, cg.consistent(workload) & most)
    assert made.sample(x, 100, cg.seeded(1))[:, 0].max() == 8


def test_values_as_lists_are_compared_as_arrays_are():
    workload = WORKLOADS["groups"]
    x = workload.answers([[1, 2, 0], [0, 4, 1]])
    assert workload.consistent_with(list(x))
    assert workload.consistent_with([x.tolist(), (x + 1).tolist()]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("cell", "dtype"),
    [(2**64 - 1, np.uint64), (2**63, np.uint64), (2**62, np.int64), (2**63 - 1, np.int64)],
)
def test_counts_too_large_for_their_sums_are_refused_and_not_shown(cell, dtype):
    table = cg.Table(AXES)
    for margins in ([()], []):
        with pytest.raises(ArgumentError, match=r"add up to 2\^63 or more") as caught:
            cg.Workload.of(table, margins).answers(np.full(table.shape, cell, dtype=dtype))
        assert str(cell) not in str(caught.value)
    largest = np.zeros(table.shape, dtype=dtype)
    largest[0] = [2**62, 2**62 - 1, 0]
    assert cg.Workload.of(table, [()]).answers(largest)[0] == 2**63 - 1


def test_counts_below_zero_are_refused_and_not_shown():
    with pytest.raises(ArgumentError, match="hold one below 0") as caught:
        WORKLOADS["groups"].answers([[1, 2, 3], [4, -717, 6]])
    assert "717" not in str(caught.value)


def test_an_unreadable_column_is_refused_without_showing_a_record():
    table = cg.Table({"sex": ("F", "M")})
    secret = np.array([b"F", b"\xff717"])
    for column, told in (
        (secret, "decode them"),
        ([["F"], ["717", "M"]], "different lengths"),
        ([["717", "M"]], r"shape \(1, 2\)"),
        ("717", r"shape \(\)"),
    ):
        with pytest.raises(ArgumentError, match=told) as caught:
            table.tally({"sex": column})
        assert "717" not in str(caught.value)
        assert caught.value.__context__ is None or caught.value.__suppress_context__
    assert table.tally({"sex": np.array([b"F", b"M", b"F"])}).tolist() == [2, 1]


def test_a_table_is_shown_by_its_axes_and_groups():
    assert repr(people(None)) == "Table('people': sex (2) × age (3))"
    assert repr(mothers()) == "Table('table': sex (2) × mother (2) × age (3) at 2 places)"
    found = texts(mothers()._repr_html_())
    assert found[4:7] == ["axis", "sex", "F, M"] or found[3:6] == ["axis", "sex", "F, M"]
    possible = int(mothers().possible.sum())
    assert (
        found[-1]
        == f"{possible} cells at 2 places; {24 - possible} more cells cannot hold a record."
    )
    assert texts(cg.Table({HOSTILE: (HOSTILE,)})._repr_html_())[-3:-1] == [HOSTILE, HOSTILE]
