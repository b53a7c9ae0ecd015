"""Infeasible invariants are detected, and an irreducible infeasible subset is named."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
import congenial.releases.making.make_release
from congenial.errors import InfeasibleError
from congenial.invariants.feasibility.feasible import (
    check_pinned,
    find_infeasible_subset,
)
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


def possible(holds, some):
    """Whether one point satisfies all these statements."""
    return not some or np.logical_and.reduce([holds[m] for m in some]).any()


@pytest.mark.parametrize(("case", "seed", "least"), [(tree_case, 1, 40), (row_case, 2, 40)])
def test_an_irreducible_infeasible_subset_is_found_if_enumeration_finds_no_point(case, seed, least):
    rng = np.random.default_rng(seed)
    clashes = 0
    for _ in range(220):
        n, tree, parts = case(rng)
        try:
            resolved = resolve_invariant(joined(parts), n, tree)
        except InfeasibleError:
            continue
        holds = statements_hold(resolved, joined(parts))
        found = find_infeasible_subset(resolved, joined(parts), whole=True, domain=tree)
        assert (found is None) == possible(holds, set(holds))
        if found is not None:
            members = set(found.members)
            assert not possible(holds, members)
            assert all(possible(holds, members - {m}) for m in members)
            clashes += 1
    assert clashes > least


def test_sums_that_are_not_needed_are_not_named():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    lo, hi = [-INF, 4, 0, 3, 2], [3, INF, INF, INF, INF]
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.bounds(lo, hi)
    found = find_infeasible_subset(resolve_invariant(invariant, 5), invariant, whole=True)
    kinds = [m.kind for m in found.members]
    assert kinds.count("lower") == 2
    assert len(found.members) == 6


TREE = cg.Tree.from_paths(["city/north/a", "city/north/b", "city/south"])


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
def test_every_method_refuses_infeasible_invariants_before_reading_data(call):
    with pytest.raises(InfeasibleError, match=r"these 4 .* the bound of 'city' \(at most 5\)"):
        call()


def test_counts_published_exactly_are_checked_alone():
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
        assert "the exact counts of 'city' and 'city/south'" in text
        assert "the bounds of 'city/north/a' and 'city/north/b' (at most 8 together)" in text
        assert "10" not in text.replace("10 invariants", "")


def test_a_pair_with_an_exact_count_is_checked_with_the_data():
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
    assert "the bound of 'total in people at town' (at most 20)" in text
    assert "at least as many of 'total in people at town/a' as of 'occupied=yes in homes" in text
    assert not any(secret in text for secret in ("13", "14", "27"))


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

    monkeypatch.setattr(congenial.releases.making.make_release, "build_model", bounded)
    with pytest.raises(InfeasibleError, match=r"the exact count of 'City'"):
        congenial.releases.making.make_release.release(
            read_plan(plan), tmp_path / "out", base=tmp_path
        )
    assert all(not account.entries for account in read_ledger(tmp_path / "ledger").accounts)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("by", [cg.condition, cg.image])
def test_a_mechanism_on_a_tree_without_consistent_says_that_counts_need_not_add_up(by):
    tree = cg.Tree.from_paths(["all/a", "all/b"])
    on_tree, plain = (cg.Additive(cg.DiscreteLaplace(2.0), over) for over in (tree, 3))
    said = "Released counts need not add up, because the invariant has no consistent(domain)."
    bounded, row = cg.nonnegative(), cg.linear([[1, -1, -1]], [0])
    assert said in by(on_tree, bounded).explain()
    assert said in by(on_tree, cg.exactly("root")).explain()
    assert said not in by(on_tree, bounded & cg.consistent(tree)).explain()
    assert said not in by(on_tree, bounded & row).explain()
    assert said not in by(plain, bounded).explain()
