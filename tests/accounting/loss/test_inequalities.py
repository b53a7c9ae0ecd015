"""What bounds cost, as `proofs/inequalities.md` states it, against normalizers enumerated exactly.

Noise has a rational weight `a` per step at every node, 1 if it is not measured, so that ratios of
normalizers are fractions and nothing is rounded. The enumeration shares no code with the package.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.guarantee import conditioned_guarantee
from congenial.accounting.loss.inequalities import (
    NONE,
    PROVED,
    TRIVIAL,
    bounded_loss,
    charged,
)
from congenial.accounting.neighbours.single_moves import costs_through, one_sided_costs
from congenial.invariants.written import resolve_invariant

INF = math.inf
NO, HALF, TENTH = Fraction(1), Fraction(1, 2), Fraction(1, 10)
FLAT2, FLAT3, FLAT4 = [-1, 0, 0], [-1, 0, 0, 0], [-1, 0, 0, 0, 0]
FLAT5 = [-1, 0, 0, 0, 0, 0]
RAGGED = [-1, 0, 0, 1, 1]
THREE = [-1, 0, 0, 1, 1, 2, 2]
DEEP = [-1, 0, 0, 1, 1, 3, 3]
# two parents with an only child each, and with two children for one of them
ONLY, ONLY_ONE = [-1, 0, 0, 1, 2], [-1, 0, 0, 1, 2, 2]
# a chain where the leaf is bounded by its parent alone
CHAIN = [-1, 0, 1]


class Case(NamedTuple):
    """A tree, the weight per step of each level or node, and the invariants of the release."""

    parents: list[int]
    weights: list[Fraction]
    total: int | None = None
    pins: tuple[int, ...] = ()
    lo: list[float] | None = None
    hi: list[float] | None = None
    largest: int = 4
    relation: str = "substitute"
    steps: int = 1


def levels(parents):
    depth = [0] * len(parents)
    for v in range(1, len(parents)):
        depth[v] = depth[parents[v]] + 1
    return depth


def by_level(parents, weights):
    return [weights[d] for d in levels(parents)]


A3, A6, A8, A9 = (Fraction(k, 10) for k in (3, 6, 8, 9))
ADD = "add-remove"
CASES = {
    "two cells": Case(FLAT2, by_level(FLAT2, [NO, HALF]), total=10, largest=10),
    "two cells, much noise": Case(FLAT2, by_level(FLAT2, [NO, A9]), total=10, largest=10),
    "three cells": Case(FLAT3, by_level(FLAT3, [NO, A8]), total=10, largest=10),
    "three cells, little noise": Case(FLAT3, by_level(FLAT3, [NO, TENTH]), total=10, largest=10),
    "four cells": Case(FLAT4, by_level(FLAT4, [NO, A9]), total=10, largest=10),
    "five cells": Case(FLAT5, by_level(FLAT5, [NO, HALF]), total=7, largest=7),
    "five cells, much noise": Case(FLAT5, by_level(FLAT5, [NO, A9]), total=7, largest=7),
    "measured unlike": Case(FLAT3, [NO, HALF, A8, TENTH], total=10, largest=10),
    "a box": Case(FLAT3, by_level(FLAT3, [NO, HALF]), total=6, hi=[INF, 2, 3, 4]),
    "upper bounds": Case(FLAT3, [NO, HALF, TENTH, A8], total=6, lo=[-INF] * 4, hi=[INF, 2, 3, 4]),
    "two levels": Case(THREE, by_level(THREE, [NO, HALF, A8]), total=6, largest=6),
    "two levels, leaves well": Case(THREE, by_level(THREE, [NO, A9, A3]), total=4),
    "leaves not measured": Case(THREE, by_level(THREE, [NO, A9, NO]), total=8, largest=8),
    "a pinned inner node": Case(THREE, by_level(THREE, [NO, HALF, A6]), total=6, pins=(1,)),
    "leaves at two levels": Case(RAGGED, by_level(RAGGED, [NO, HALF, A8]), total=8, largest=8),
    "three levels": Case(DEEP, by_level(DEEP, [NO, HALF, A6, A8]), total=5, largest=5),
    "nothing pinned": Case(THREE, by_level(THREE, [HALF, HALF, A8]), largest=3),
    "a bounded inner node": Case(
        RAGGED, [HALF, A6, HALF, TENTH, TENTH], lo=[-INF, 1, 0, 0, 0], hi=[5, 4, INF, INF, INF]
    ),
    "implied from two below": Case(
        RAGGED, [HALF, A6, HALF, A3, TENTH], lo=[0, -INF, 0, 0, 0], hi=[9, INF, 3, 3, 3]
    ),
    "added": Case(FLAT2, [HALF, A6, A8], largest=7, relation=ADD),
    "added, three levels": Case(
        DEEP, by_level(DEEP, [A9, HALF, HALF, HALF]), largest=3, relation=ADD
    ),
    "a bounded parent": Case(CHAIN, [A9, A6, NO], largest=10, lo=[-INF, 0, -3], relation=ADD),
    "two steps": Case(FLAT3, by_level(FLAT3, [NO, A8]), total=10, largest=10, steps=2),
    "three steps": Case(RAGGED, [NO, HALF, HALF, A9, NO], total=7, largest=7, steps=3),
    "three steps added": Case(FLAT2, [NO, A9, HALF], largest=9, relation=ADD, steps=3),
    "two cells, two steps": Case(FLAT2, by_level(FLAT2, [NO, A8]), total=12, largest=12, steps=2),
    "an only child": Case(ONLY, [NO, HALF, A8, A6, A8], total=9, largest=9),
    "an only child, measured alone": Case(ONLY, [NO, NO, A8, NO, HALF], total=9, largest=9),
    "an only child beside two": Case(ONLY_ONE, [NO, HALF, A8, A6, A9, A8], total=7, largest=7),
    "an only child, added": Case(ONLY_ONE, [A8, HALF, A8, A6, A9, A8], largest=4, relation=ADD),
    "a pair below a pin": Case(THREE, by_level(THREE, [NO, HALF, A6]), total=8, pins=(1, 2)),
}


def paths(parents):
    """The nodes that a record of each leaf counts in."""
    found = {}
    for leaf in range(len(parents)):
        if leaf not in parents:
            path, v = set(), leaf
            while v >= 0:
                path.add(v)
                v = parents[v]
            found[leaf] = path
    return found


def limits(case):
    n = len(case.parents)
    lo = [0.0] * n if case.lo is None else case.lo
    hi = [INF] * n if case.hi is None else case.hi
    # what is enumerated is bounded at every leaf
    return lo, [min(h, case.largest) if v not in case.parents else h for v, h in enumerate(hi)]


def tables(case):
    """Every vector within the bounds; with the total, where one is pinned."""
    lo, hi = limits(case)
    of_leaf = paths(case.parents)
    spans = [range(int(max(lo[v], -3)), int(hi[v]) + 1) for v in of_leaf]
    for counts in itertools.product(*spans):
        whole = [0] * len(case.parents)
        for leaf, count in zip(of_leaf, counts, strict=True):
            for v in of_leaf[leaf]:
                whole[v] += count
        if case.total in (None, whole[0]) and all(
            low <= z <= high for low, z, high in zip(lo, whole, hi, strict=True)
        ):
            yield tuple(whole)


def pinned(case):
    return set(case.pins) | ({0} if case.total is not None else set())


def changes(case):
    """The change of every neighbouring pair."""
    of_leaf, n = paths(case.parents), len(case.parents)
    if case.relation == "add-remove":
        moved = [(path, set()) for path in of_leaf.values()]
        moved += [(set(), path) for path in of_leaf.values()]
    else:
        moved = list(itertools.permutations(of_leaf.values(), 2))
    for gains, loses in moved:
        v = [case.steps * ((i in gains) - (i in loses)) for i in range(n)]
        if not any(v[p] for p in pinned(case)):
            yield v


def normalizers(case):
    """Sums of weights around every table, times one common number, by what is pinned."""
    states = np.array(list(tables(case)))
    size = int(states.max() - states.min()) + 1
    common = math.lcm(*[a.denominator for a in case.weights])
    power = [
        np.array([int(a**d * common**size) for d in range(size + 1)], dtype=object)
        for a in case.weights
    ]
    found = {}
    kept = sorted(pinned(case))
    for group in np.unique(states[:, kept], axis=0) if kept else [None]:
        near = states if group is None else states[(states[:, kept] == group).all(axis=1)]
        for x in near:
            weight = np.ones(len(near), dtype=object)
            for m in range(len(case.parents)):
                weight = weight * power[m][np.abs(near[:, m] - x[m])]
            found[tuple(x.tolist())] = int(weight.sum())
    return found


def binding(case):
    """Entries with a bound that the bounds of entries below do not imply."""
    lo, hi = limits(case)
    sides = (lo, [-h for h in hi])

    def least(side, v):
        return max(side[v], from_below(side, v))

    def from_below(side, v):
        below = [c for c, p in enumerate(case.parents) if p == v]
        return sum(least(side, c) for c in below) if below else -INF

    return {
        v
        for side in sides
        for v in range(len(case.parents))
        if side[v] > -INF and from_below(side, v) < side[v]
    }


def rank(rows):
    return np.linalg.matrix_rank(np.array(rows, dtype=np.float64)) if len(rows) else 0


def linked(case):
    """For each node, the nodes that the sums and the pins move by as much, up or down."""
    n = len(case.parents)
    one = np.eye(n, dtype=int)
    rows = [
        one[v] - sum(one[c] for c, p in enumerate(case.parents) if p == v)
        for v in sorted(set(case.parents) - {-1})
    ]
    rows += [one[v] for v in pinned(case)]
    fixed = {v for v in range(n) if rank([*rows, one[v]]) == rank(rows)}
    return {
        v: {v}
        | {
            m
            for m in set(range(n)) - fixed
            if rank([*rows, one[v] - one[m]]) == rank(rows)
            or rank([*rows, one[v] + one[m]]) == rank(rows)
        }
        for v in set(range(n)) - fixed
    }


def stated(case, v, together):
    """The pair's exp(-E), and the theorem's bound on the ratio of normalizers."""
    touched = [m for m in range(len(v)) if v[m]]
    step = math.prod((case.weights[m] for m in touched), start=NO)
    bounded = [
        math.prod((case.weights[i] for i in together[m]), start=NO)
        for m in touched
        if m in binding(case)
    ]
    if not bounded:
        return step**case.steps, NO
    rise = max(bounded) ** 2 / step
    return step**case.steps, 1 + (1 - step) * sum(rise**i for i in range(1, case.steps + 1))


def claim(case):
    """The library's claim for noise with these weights, if one record changes `steps`."""
    with np.errstate(divide="ignore"):
        scales = -1.0 / np.log(np.array([float(a) for a in case.weights]))
    tree = cg.Tree.from_parents(case.parents)
    mechanism = cg.Additive(cg.DiscreteLaplace(np.abs(scales)), tree, per_record=float(case.steps))
    invariant = cg.consistent(tree) & cg.bounds(*limits(case))
    for node in sorted(pinned(case)):
        invariant &= cg.exactly(node)
    resolved = resolve_invariant(invariant, len(tree), tree)
    return conditioned_guarantee(mechanism, resolved, case.relation, sampler_error=0.0)


@pytest.mark.parametrize("name", CASES)
def test_no_pair_loses_more_than_the_theorem_states(name):
    case = CASES[name]
    found = normalizers(case)
    pairs, most, together = 0, -INF, linked(case)
    for v in changes(case):
        shrink, bound = stated(case, v, together)
        most = max(most, math.log(bound / shrink))
        assert bound <= 1 / shrink
        for x, mine in found.items():
            theirs = found.get(tuple(p + d for p, d in zip(x, v, strict=True)))
            if theirs is not None:
                pairs += 1
                assert Fraction(theirs, mine) <= bound
    assert pairs > 5
    # the library states the largest of these bounds, over all pairs that could be
    given = claim(case)
    assert given.epsilon == pytest.approx(most, rel=1e-12)
    assert given.epsilon == pytest.approx((1 + given.gamma) * given.base_epsilon, rel=1e-15)
    assert given.gamma_source == (TRIVIAL if given.gamma == 1.0 else PROVED)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("two cells", 0.99),
        ("two cells, two steps", 0.99),
        ("three cells", 0.84),
        ("four cells", 0.86),
        ("leaves not measured", 0.79),
        ("added, three levels", 0.75),
        ("three steps added", 0.98),
    ],
)
def test_the_bound_is_nearly_reached(name, part):
    case = CASES[name]
    found = normalizers(case)
    reached, together = 0.0, linked(case)
    for v in changes(case):
        _, bound = stated(case, v, together)
        for x, mine in found.items():
            theirs = found.get(tuple(p + d for p, d in zip(x, v, strict=True)))
            if theirs is not None and bound > 1:
                reached = max(reached, float((Fraction(theirs, mine) - 1) / (bound - 1)))
    assert part < reached <= 1.0


@pytest.mark.parametrize("a", [TENTH, HALF, Fraction(9, 10)])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_one_cell_and_added_records_reach_the_bound(a, steps):
    # sums of a geometric series: from 0, and from `steps`
    at_zero = 1 / (1 - a)
    further = sum(a**j for j in range(1, steps + 1)) + at_zero
    scale = -1.0 / math.log(a)
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), 1, per_record=float(steps))
    resolved = resolve_invariant(cg.nonnegative(), 1)
    given = conditioned_guarantee(mechanism, resolved, "add-remove", sampler_error=0.0)
    loss = math.log(a**-steps * further / at_zero)
    assert given.epsilon == pytest.approx(loss, rel=1e-12)
    if steps == 1:
        assert further / at_zero == 1 + a - a**2
    else:
        # several steps a record cost more than one step of the same loss
        assert further / at_zero > 1 + a**steps - a ** (2 * steps)


@pytest.mark.parametrize("a", [Fraction(3, 5), Fraction(4, 5)])
def test_the_formula_for_cells_fails_if_leaves_are_not_measured(a):
    """ln(2 e^E - 1) with the loss of the pair as E is no bound for trees: two free leaves."""
    case = Case(RAGGED, [NO, a, a, NO, NO], total=12, largest=12)
    found = normalizers(case)
    q = a**2
    ratio = Fraction(found[12, 1, 11, 1, 0], found[12, 0, 12, 0, 0])
    assert ratio == pytest.approx(float(2 - q + q * (1 - q) ** 2), abs=0.05)
    assert ratio > 2 - q
    assert claim(case).gamma == 1.0
    assert claim(case).gamma_source == TRIVIAL


def test_many_unmeasured_leaves_reach_the_trivial_bound():
    q = HALF
    ratio = {d: q * (1 - q) ** d + (1 - (1 - q) ** d) / q for d in (1, 2, 40)}
    assert ratio[1] == 1 + q - q**2
    assert ratio[2] == 2 - q + q * (1 - q) ** 2
    assert 0 < 1 / q - ratio[40] < Fraction(1, 10**9)


def test_bounds_of_entries_that_never_change_cost_nothing():
    # substituting a record leaves the root as it is
    case = Case(FLAT3, [HALF] * 4, lo=[0, -INF, -INF, -INF], hi=[9, INF, INF, INF])
    tree = cg.Tree.from_parents(FLAT3)
    invariant = cg.consistent(tree) & cg.bounds(case.lo, case.hi)
    resolved = resolve_invariant(invariant, 4, tree)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    given = conditioned_guarantee(mechanism, resolved, "substitute", sampler_error=0.0)
    assert (given.gamma, given.gamma_source) == (0.0, PROVED)
    assert given.epsilon == pytest.approx(1.0)
    free = resolve_invariant(cg.consistent(tree), 4, tree)
    assert (
        conditioned_guarantee(mechanism, free, "substitute", sampler_error=0.0).gamma_source == NONE
    )


def test_bounds_that_follow_from_others_do_not_count():
    tree = cg.Tree.from_parents(THREE)
    held = cg.consistent(tree)
    leaves = [False] * 3 + [True] * 4
    for invariant, expected in [
        (held & cg.nonnegative(), leaves),
        (held & cg.nonnegative() & cg.exactly(3), [False] * 4 + [True] * 3),
        (held & cg.bounds([-5, -INF, 0, 0, 0, 0, 0]), leaves),
        (held & cg.bounds([1, 0, 0, 0, 0, 0, 0]), [True, *leaves[1:]]),
        (held & cg.bounds(0, [INF, 9, 10, 5, 5, 5, 5]), [False, True, False, *leaves[3:]]),
        (cg.nonnegative(), [True] * 7),
    ]:
        resolved = resolve_invariant(invariant, 7, tree)
        assert charged(resolved).tolist() == expected
    # entries that are at least 1/5 are at least 1/4 on a grid of 1/4, and 1 among integers
    resolved = resolve_invariant(
        cg.consistent(tree) & cg.bounds([0, 0.9, 0, 0.2, 0.2, 0, 0]), 7, tree
    )
    assert charged(resolved).tolist() == leaves
    assert charged(resolved, 0.25).tolist() == [False, True, *leaves[2:]]


def test_unproved_cases_are_charged_twice_the_loss():
    tree = cg.Tree.from_parents(FLAT3)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    held = cg.consistent(tree) & cg.exactly(0)
    row = cg.at_least([0, 1, -1, 0], 0)
    for invariant in (held & row, held & row & cg.nonnegative()):
        resolved = resolve_invariant(invariant, 4, tree)
        given = conditioned_guarantee(mechanism, resolved, "substitute", sampler_error=0.0)
        assert (given.gamma, given.gamma_source) == (1.0, TRIVIAL)
        assert given.epsilon == 2.0 * given.base_epsilon == pytest.approx(2.0)
    # noise without a grid is for studies and not covered either
    real = cg.Additive(cg.Laplace(2.0), tree)
    resolved = resolve_invariant(held & cg.nonnegative(), 4, tree)
    assert conditioned_guarantee(real, resolved, "substitute", sampler_error=0.0).gamma == 1.0


def test_a_mixture_under_bounds_is_charged_twice_the_loss():
    # its weights depend on the data, which the bound of its parts says nothing about
    tree = cg.Tree.from_parents(FLAT3)
    parts = [cg.Additive(cg.DiscreteLaplace(s), tree) for s in (2.0, 3.0)]
    mixed = cg.mixture(parts, [0.5, 0.5])
    held = cg.consistent(tree) & cg.exactly(0)
    given = cg.condition(mixed, held & cg.nonnegative()).guarantee("substitute")
    assert (given.epsilon, given.base_epsilon, given.gamma) == pytest.approx((2.0, 1.0, 1.0))
    assert given.gamma_source == TRIVIAL
    free = cg.condition(mixed, held).guarantee("substitute")
    assert (free.epsilon, free.gamma) == pytest.approx((1.0, 0.0))


def test_the_bound_rises_with_the_base_and_falls_with_alpha():
    base = np.linspace(0.01, 8.0, 60)[:, None]
    share = np.linspace(0.0, 1.0, 50)[None, :]
    for steps in (1.0, 2.0, 64.0, 2.0**20):
        found = bounded_loss(base, base * share, steps)
        assert (np.diff(found, axis=1) <= 1e-12).all()
        assert (found >= base).all()
        assert (found <= 2 * base).all()
        fixed = bounded_loss(base, 0.005, steps)
        assert (np.diff(fixed, axis=0) > 0).all()
    assert bounded_loss(1.0, 0.5) == pytest.approx(math.log(2 * math.e - 1), rel=1e-15)
    assert bounded_loss(1e4, 1.0) == pytest.approx(2e4 - 2.0, rel=1e-12)
    assert bounded_loss(1e4, 5e3) == pytest.approx(1e4 + math.log(2), rel=1e-15)
    assert bounded_loss(0.0, 0.0) == 0.0
    # steps without end: the bound for real-number noise, 2 - exp(-E) in one cell
    assert bounded_loss(1.0, 1.0, 2.0**40) == pytest.approx(1 + math.log(2 - 1 / math.e), rel=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_costs_through_every_entry(seed):
    """The most expensive pair through each node, against all pairs of leaves."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 14))
    parents = [-1] + [int(rng.integers(-1 if v > 3 else 0, v)) for v in range(1, n)]
    tree = cg.Tree.from_parents(parents)
    invariant = cg.consistent(tree)
    pins = [int(v) for v in rng.choice(n, size=int(rng.integers(0, 3)), replace=False)]
    if pins:
        invariant &= cg.exactly(pins)
    resolved = resolve_invariant(invariant, n, tree)
    cost = np.where(resolved.pinned, 0.0, rng.uniform(0.1, 2.0, n))
    of_leaf = paths(parents)
    for relation in ("substitute", "one-sided"):
        expected = np.full(n, -INF)
        sets = (
            [a ^ b for a, b in itertools.combinations(of_leaf.values(), 2)]
            if relation == "substitute"
            else list(of_leaf.values())
        )
        for touched in sets:
            if not touched & set(pins):
                for v in touched:
                    expected[v] = max(expected[v], sum(cost[m] for m in touched))
        if relation == "one-sided":
            found = one_sided_costs(cost, resolved, tree)
            if not pins:
                assert (costs_through(cost, resolved, tree, "add-remove") == found).all()
        else:
            found = costs_through(cost, resolved, tree, "substitute")
        assert found == pytest.approx(expected, rel=1e-13)
