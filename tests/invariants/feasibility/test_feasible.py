"""Invariants that no release can satisfy: found, and the fewest that clash are named."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
import congenial.releases.making
from congenial.errors import InfeasibleError
from congenial.invariants.feasibility import programs as system
from congenial.invariants.feasibility.bounds_on_trees import on_hierarchy
from congenial.invariants.feasibility.feasible import (
    check_pinned,
    find_infeasible_subset,
    not_tried,
)
from congenial.invariants.feasibility.irreducible import fewest, hitting_set
from congenial.invariants.feasibility.single_invariants import SingleInvariant, take_apart
from congenial.invariants.written import resolve_invariant
from congenial.ledger.debits import read_ledger
from congenial.plan.plan import read_plan
from congenial.releases.model import build_model
from support.city import SECTIONS, make_city
from support.ledgers import make_ledger

INF = np.inf
# Solutions of up to three small integers, if there are any, lie within this of zero.
REACH = 13


def joined(parts):
    whole = parts[0]
    for part in parts[1:]:
        whole = whole & part
    return whole


def random_bounds(rng, n):
    lo = np.where(rng.random(n) < 0.5, rng.integers(-2, 4, n), -INF)
    hi = np.where(rng.random(n) < 0.5, rng.integers(-2, 4, n), INF)
    return cg.bounds(lo, np.maximum(lo, hi))


def random_tree(rng, n):
    return cg.Tree.from_parents([-1, *(int(rng.integers(-1, i)) for i in range(1, n))])


def tree_case(rng):
    """Bounds of all kinds on a tree, now and then a row of a single entry."""
    n = int(rng.integers(2, 4))
    tree = random_tree(rng, n)
    parts = [cg.consistent(tree), random_bounds(rng, n)]
    if rng.random() < 0.4:
        parts.append(cg.nonnegative())
    if rng.random() < 0.4:
        parts.append(cg.bounds(hi=float(rng.integers(0, 4))))
    if rng.random() < 0.3:
        row = np.zeros(n)
        row[rng.integers(n)] = rng.choice([1, -1, 2])
        parts.append(rng.choice([cg.linear, cg.at_least])(row, int(rng.integers(-2, 4))))
    return n, tree, parts


def row_case(rng):
    """Rows over several entries, mostly with bounds, sometimes with a tree."""
    n = int(rng.integers(2, 4))
    tree = random_tree(rng, n)
    parts = [cg.linear(rng.integers(-1, 2, (2, n)), rng.integers(-2, 4, 2))]
    if rng.random() < 0.5:
        parts.append(cg.at_least(rng.integers(-1, 2, n), int(rng.integers(-1, 4))))
    if rng.random() < 0.5:
        parts.append(cg.consistent(tree))
    if rng.random() < 0.7:
        parts.append(random_bounds(rng, n))
    if rng.random() < 0.4:
        parts.append(cg.nonnegative())
    return n, tree, parts


def statements_hold(resolved, invariant):
    """Every statement by name, and at which points of a large box it holds."""
    points = np.array(list(itertools.product(range(-REACH, REACH + 1), repeat=resolved.n)))
    single = take_apart(resolved, invariant, whole=True)
    out = {}
    if np.isfinite(single.every[0]):
        out[SingleInvariant("every", 0)] = (points >= single.every[0]).all(axis=1)
    if np.isfinite(single.every[1]):
        out[SingleInvariant("every", 1)] = (points <= single.every[1]).all(axis=1)
    for v in range(resolved.n):
        if resolved.lo[v] > single.every[0]:
            out[SingleInvariant("lower", v)] = points[:, v] >= resolved.lo[v]
        if resolved.hi[v] < single.every[1]:
            out[SingleInvariant("upper", v)] = points[:, v] <= resolved.hi[v]
    for k, (row, value) in enumerate(zip(*resolved.equalities, strict=True)):
        out[SingleInvariant("linear", k)] = points @ row == value
    for k, (row, value) in enumerate(zip(*resolved.inequalities, strict=True)):
        out[SingleInvariant("at_least", k)] = points @ row >= value
    if resolved.tree is not None:
        for v in np.flatnonzero(~resolved.tree.is_leaf):
            below = points[:, resolved.tree.parents == v].sum(axis=1)
            out[SingleInvariant("sum", int(v))] = points[:, v] == below
    return out


def smallest(holds):
    """All sets of the fewest statements that no point satisfies; none where one satisfies all."""
    for size in range(1, len(holds) + 1):
        found = [
            set(some)
            for some in itertools.combinations(holds, size)
            if not np.logical_and.reduce([holds[m] for m in some]).any()
        ]
        if found:
            return found
    return []


@pytest.mark.parametrize(("case", "seed", "least"), [(tree_case, 1, 40), (row_case, 2, 40)])
def test_the_fewest_are_found_wherever_enumeration_finds_no_point(case, seed, least):
    rng = np.random.default_rng(seed)
    clashes = 0
    for _ in range(220):
        n, tree, parts = case(rng)
        try:
            resolved = resolve_invariant(joined(parts), n, tree)
        except InfeasibleError:
            continue
        want = smallest(statements_hold(resolved, joined(parts)))
        found = find_infeasible_subset(resolved, joined(parts), whole=True, domain=tree)
        assert (found is None) == (not want)
        if found is not None:
            assert found.fewest
            assert set(found.members) in want
            clashes += 1
    assert clashes > least


def test_a_larger_tree_gives_as_few_as_the_solver():
    rng = np.random.default_rng(3)
    sizes = []
    for _ in range(150):
        n = int(rng.integers(5, 14))
        tree = cg.Tree.from_parents([-1, *(int(rng.integers(0, i)) for i in range(1, n))])
        lo = np.where(rng.random(n) < 0.7, rng.integers(-1, 4, n), -INF)
        hi = np.maximum(lo, np.where(rng.random(n) < 0.5, rng.integers(0, 9, n), INF))
        parts = [cg.consistent(tree), cg.bounds(lo, hi)] + [cg.nonnegative()] * (n % 2)
        invariant = joined(parts)
        resolved = resolve_invariant(invariant, n)
        single = take_apart(resolved, invariant, whole=True)
        rows = system.as_rows(single)
        every = frozenset(range(len(rows.members)))
        oracle = system.Solver(rows)
        found = on_hierarchy(single)
        assert (found is None) == (oracle.holds(every) is not None)
        if found is not None:
            members, proved = found
            answer = fewest(oracle, len(rows.members), every)
            assert proved
            assert answer.fewest
            assert len(members) == len(answer.members)
            assert oracle.holds(frozenset(rows.members.index(m) for m in members)) is None
            sizes.append(len(members))
    assert len(sizes) > 50
    assert max(sizes) > 5


def test_a_set_that_is_not_the_smallest_would_be_seen(monkeypatch):
    # the trace alone, as for very large trees, names more than the fewest here
    monkeypatch.setattr("congenial.invariants.feasibility.bounds_on_trees._MOST_INNER", 0)
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    invariant = cg.consistent(tree) & cg.bounds([-INF, 4, 0, 3, 2], [3, INF, INF, INF, INF])
    resolved = resolve_invariant(invariant, 5)
    traced = find_infeasible_subset(resolved, invariant, whole=True)
    assert not traced.fewest
    assert "a smaller set may be infeasible" in traced.sentence
    monkeypatch.undo()
    found = find_infeasible_subset(resolved, invariant, whole=True)
    assert found.fewest
    assert len(found.members) == 4 < len(traced.members) == 6


TREE = cg.Tree.from_paths(["city/north/a", "city/north/b", "city/south"])
NAMED = [
    (
        cg.consistent(TREE) & cg.bounds([-INF, 3, -INF, -INF, 4], [5, INF, INF, INF, INF]),
        "these 4 invariants together: bounds() of 'city' (at most 5), bounds() of 'city/north' and "
        "'city/south' (at least 7 together) and the sum of the tree at 'city'; relax one",
    ),
    (
        cg.consistent(TREE) & cg.nonnegative() & cg.linear([1, 0, 0, 0, 0], -2),
        "these 2 invariants together: nonnegative() and row 0 of linear(), counted from 0;",
    ),
    (
        cg.consistent(TREE) & cg.bounds(hi=2) & cg.bounds([9, *[-INF] * 4], [9, *[INF] * 4]),
        "node 'city' is bounded",
    ),
    (
        cg.bounds(0, 4) & cg.at_least([1, 1, 1, 0, 0], 13),
        "these 2 invariants together: bounds() of every entry (at most 4) and row 0 of at_least(),",
    ),
    (cg.linear([2, 4, 0, 0, 0], 3), "satisfy row 0 of linear(), counted from 0; correct it"),
    (cg.at_least([0, 0, 0, 0, 0], 3), "satisfy row 0 of at_least(), counted from 0; correct it"),
]


@pytest.mark.parametrize(("invariant", "text"), NAMED)
def test_members_are_told_in_the_words_of_the_invariant(invariant, text):
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), TREE)
    with pytest.raises(InfeasibleError) as caught:
        cg.condition(mechanism, invariant)
    assert text in str(caught.value)


INFEASIBLE = cg.consistent(TREE) & cg.bounds([-INF, 3, -INF, -INF, 4], [5, INF, INF, INF, INF])
LAPLACE = cg.Additive(cg.DiscreteLaplace(1.0), TREE)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cg.condition(LAPLACE, INFEASIBLE),
        lambda: cg.condition(LAPLACE, INFEASIBLE, "rejection"),
        lambda: cg.condition(LAPLACE, INFEASIBLE | (INFEASIBLE & cg.bounds(lo=-99))),
        lambda: cg.condition(cg.mixture([LAPLACE, LAPLACE], [0.5, 0.5]), INFEASIBLE),
        lambda: cg.image(LAPLACE, INFEASIBLE),
        lambda: cg.image(LAPLACE, INFEASIBLE, norm="l1", integer=True),
        lambda: cg.project(np.zeros(5), INFEASIBLE),
        lambda: cg.topdown(np.zeros(5), TREE, INFEASIBLE),
    ],
)
def test_every_way_to_a_release_refuses_before_data_are_seen(call):
    with pytest.raises(InfeasibleError, match=r"these 4 .* bounds\(\) of 'city' \(at most 5\)"):
        call()


def test_bounds_on_a_grid_are_told_as_they_were_given():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0, granularity=0.5), TREE)
    with pytest.raises(InfeasibleError, match=r"at most 5\).*at least 7 together"):
        cg.condition(mechanism, INFEASIBLE)


def test_real_numbers_may_do_where_integers_clash():
    invariant = cg.linear([[1, 1, 0], [0, 1, 1], [1, 0, 1]], [1, 1, 1])
    resolved = resolve_invariant(invariant, 3)
    assert find_infeasible_subset(resolved, invariant, whole=False) is None
    found = find_infeasible_subset(resolved, invariant, whole=True)
    assert {m.kind for m in found.members} == {"linear"}
    assert len(found.members) == 3


def test_a_million_nodes_take_a_fraction_of_a_second():
    parents = np.concatenate(([-1], np.repeat(np.arange(10101), 100))).astype(np.int64)
    tree = cg.Tree.from_parents(parents)
    x = np.asarray(tree.roll_up(np.full(tree.leaves.size, 7)), dtype=float)
    hi = x.copy()
    hi[1] -= 1
    for high, number in ((x, None), (hi, 102)):
        invariant = cg.consistent(tree) & cg.nonnegative() & cg.bounds(np.minimum(x, high), high)
        resolved = resolve_invariant(invariant, len(tree))
        find_infeasible_subset(resolved, invariant, whole=True)
        before = time.process_time()
        found = find_infeasible_subset(resolved, invariant, whole=True)
        assert time.process_time() - before < 2.0
        assert (None if found is None else len(found.members)) == number


def test_without_the_solver_bounds_are_carried_from_row_to_row(monkeypatch):
    chain = cg.linear([[1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, 1]], [2, 2, 1])
    infeasible = chain & cg.bounds([9, -INF, -INF, 0], INF)
    hidden = cg.linear([[1, 1, 1, 0], [1, 1, 0, 1]], [4, 4]) & cg.at_least([0, 0, 1, -1], 1)
    for invariant in (infeasible, hidden):
        resolved = resolve_invariant(invariant, 4)
        assert find_infeasible_subset(resolved, invariant, whole=True).fewest
        assert not_tried(resolved) == ""
    monkeypatch.setattr(system, "SOLVER", "no_such_solver")
    found = find_infeasible_subset(resolve_invariant(infeasible, 4), infeasible, whole=True)
    assert not found.fewest
    assert {m.at for m in found.members if m.kind == "lower"} == {0, 3}
    assert {m.at for m in found.members if m.kind == "linear"} == {0, 1, 2}
    resolved = resolve_invariant(hidden, 4)
    assert find_infeasible_subset(resolved, hidden, whole=True) is None
    assert "install congenial[imaging]" in not_tried(resolved)
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 4), chain & cg.bounds(-50, 50))
    assert "install congenial[imaging]" in conditioned.explain()


def test_what_is_published_exactly_is_looked_at_alone():
    invariant = (
        cg.consistent(TREE)
        & cg.exactly(["city", "city/south"])
        & cg.bounds([-INF] * 5, [INF, INF, 4, 4, INF])
    )
    resolved = resolve_invariant(invariant, 5)
    inside = TREE.roll_up([3, 3, 1000])
    check_pinned(resolved, inside, invariant, whole=True)
    # what is not published may be anything at all
    check_pinned(resolved, inside + np.array([0, 77, -5, 10**6, 0]), invariant, whole=True)
    for outside in (TREE.roll_up([9, 9, 1000]), TREE.roll_up([0, 18, 1000])):
        with pytest.raises(InfeasibleError) as caught:
            check_pinned(resolved, outside, invariant, whole=True)
        text = str(caught.value)
        assert "exactly() of 'city' and 'city/south'" in text
        assert "bounds() of 'city/north/a' and 'city/north/b' (at most 8 together)" in text
        assert "10" not in text.replace("10 invariants", "")


PEOPLE = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18+")}, name="people")
CROSSING = cg.Workload.of(PEOPLE, [(), ("sex",), ("age",)])
TABLES = [
    (
        cg.bounds([3, 4], margin=("sex",)) & cg.bounds(hi=[2, 4], margin=("age",)),
        "bounds() of 'age=0-17 in people' and 'age=18+ in people' (at most 6 together), "
        "bounds() of 'sex=F in people' and 'sex=M in people' (at least 7 together)",
    ),
    (
        cg.bounds([3, 0], margin=("age",))
        & cg.bounds(hi=[2, 3], margin=("sex",))
        & cg.at_least_as_many(("people", {"age": "18+"}), ("people", {"age": "0-17"})),
        "at_least_as_many() of 'age=18+ in people' as 'age=0-17 in people' and the sum",
    ),
    (
        cg.at_least(np.eye(9)[0], -5)
        & cg.at_least(-np.eye(9)[[0, 1]], [-3, -9])
        & cg.at_least(np.eye(9)[0], 4),
        "these 2 invariants together: rows 1 and 3 of at_least(), counted from 0;",
    ),
]


@pytest.mark.parametrize(("invariant", "text"), TABLES)
def test_counts_of_tables_are_named(invariant, text):
    whole = cg.consistent(CROSSING) & cg.nonnegative() & invariant
    with pytest.raises(InfeasibleError) as caught:
        cg.image(cg.Additive(cg.DiscreteLaplace(1.0), CROSSING), whole)
    assert text in str(caught.value)


def test_a_pair_with_a_count_published_exactly_is_looked_at_with_the_data():
    streets = cg.Tree.from_paths([("town", "a"), ("town", "b")])
    homes = cg.Table({"occupied": ("yes", "no")}, geography=streets, name="homes")
    people = cg.Table({"age": ("0-17", "18+")}, geography=streets, name="people")
    workload = cg.Workload.of(people, [()]) + cg.Workload.of(homes, [()])
    assert workload.tree is not None
    whole = (
        cg.consistent(workload)
        & cg.nonnegative()
        & cg.at_least_as_many((people, ()), (homes, {"occupied": "yes"}), level=1)
        & cg.exactly(margins=[("occupied",)], level=1, table=homes)
        & cg.bounds(hi=20, margin=(), level=0, table=people)
    )
    resolved = resolve_invariant(whole, len(workload), workload)
    assert find_infeasible_subset(resolved, whole, whole=True) is None
    some = workload.answers([[0, 9], [1, 8]], [[3, 1], [4, 0]])
    check_pinned(resolved, some, whole, whole=True)
    many = workload.answers([[0, 9], [1, 8]], [[13, 1], [14, 0]])
    with pytest.raises(InfeasibleError) as caught:
        check_pinned(resolved, many, whole, whole=True)
    text = str(caught.value)
    assert "bounds() of 'total in people at town' (at most 20)" in text
    assert "at_least_as_many() of 'total in people at town/a' as 'occupied=yes in homes" in text
    assert not any(secret in text for secret in ("13", "14", "27"))


def test_tables_without_bounds_above_hold_at_once(monkeypatch):
    whole = cg.consistent(CROSSING) & cg.nonnegative() & cg.exactly(margins=[("sex",)])
    resolved = resolve_invariant(whole, len(CROSSING), CROSSING)
    x = CROSSING.answers([[1, 2], [3, 4]])
    check_pinned(resolved, x, whole, whole=True)
    monkeypatch.setattr(system.Solver, "holds", None)
    assert find_infeasible_subset(resolved, whole, whole=True) is None


def test_hitting_sets_are_smallest_by_enumeration():
    rng = np.random.default_rng(4)
    for _ in range(60):
        sets = [
            frozenset(rng.choice(7, rng.integers(1, 4), replace=False).tolist())
            for _ in range(rng.integers(1, 7))
        ]
        least = next(
            size
            for size in range(8)
            for some in itertools.combinations(range(7), size)
            if all(one & set(some) for one in sets)
        )
        found = hitting_set(sets, 8)
        assert len(found) == least
        assert all(one & found for one in sets)


def test_counts_published_exactly_are_refused_before_the_debit(tmp_path, monkeypatch):
    make_ledger(tmp_path)
    plan = make_city(tmp_path, privacy=SECTIONS["privacy"] + '\nledger = "ledger"\n')

    def bounded(plan, tree):
        model = build_model(plan, tree)
        most = np.where(tree.is_leaf, 2.0, INF)
        invariant = model.invariant & cg.bounds(hi=most)
        return replace(
            model, invariant=invariant, resolved=resolve_invariant(invariant, len(tree), tree)
        )

    monkeypatch.setattr(congenial.releases.making, "build_model", bounded)
    with pytest.raises(InfeasibleError, match=r"exactly\(\) of 'City'"):
        congenial.releases.making.release(read_plan(plan), tmp_path / "out", base=tmp_path)
    assert all(not account.entries for account in read_ledger(tmp_path / "ledger").accounts)
    assert not (tmp_path / "out").exists()
