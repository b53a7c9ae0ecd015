"""The compiled network of a forest against the forest: classes, program, weights, sharing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.kernels.network.descend import (
    COMPOSE,
    LINK,
    ROOT,
    SPLIT,
)
from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest, of_rows, of_tree
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import (
    SharedUnary,
    Unary,
    composable,
    share_noise,
)
from support.conditioning_cases import forests
from support.sum_networks import tables_of

pytestmark = pytest.mark.kernels

INF = np.inf
UP, DOWN = (0.0, INF), (-INF, 0.0)
QUICK = settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)


@st.composite
def rows(draw):
    """Rows over up to 30 entries without a cycle: each has at most one entry of those before."""
    n = draw(st.integers(2, 30))
    left, seen, out = list(draw(st.permutations(range(n)))), [], []
    while len(left) > 1 and draw(st.integers(0, 5)):
        fresh = [left.pop() for _ in range(draw(st.integers(1, min(9, len(left)))))]
        old = [draw(st.sampled_from(seen))] if seen and draw(st.integers(0, 3)) else []
        if len(fresh) + len(old) > 1:
            entries = draw(st.permutations(fresh + old))
            signs = [draw(st.sampled_from((1, 1, -1))) for _ in entries]
            out.append((np.array(entries), np.array(signs)))
        seen += fresh
    return of_rows(out, n)


@st.composite
def problems(draw):
    """A forest, few different weights, multipliers of its sums, and whether to compose."""
    if draw(st.booleans()):
        forest = of_tree(cg.Tree.from_parents(draw(forests(40))))
    else:
        forest = draw(rows())
    kinds = [(laws.LAPLACE, s, 0.0, -INF, INF) for s in (1.0, 2.0)]
    kinds = [kinds[0], (laws.LAPLACE, 1.0, 0.0, *UP), (laws.LAPLACE, 2.0, 0.0, *DOWN), kinds[1]]
    kinds += [(laws.GAUSSIAN, 1.0, 0.0, -INF, INF), (laws.LAPLACE, 1.0, 0.0, -3.0, INF)]
    kinds += [(laws.LAPLACE, 1.0, 1.0, -INF, INF), kinds[0], (laws.LAPLACE, 1.0, 0.0, 0.0, 0.0)]
    most = draw(st.integers(1, len(kinds)))
    code = [draw(st.integers(0, most - 1)) for _ in range(forest.n)]
    columns = [np.array(column) for column in zip(*kinds, strict=True)]
    weights = SharedUnary(Unary(*columns), np.array(code, dtype=np.int32))
    tilted = draw(st.booleans())
    theta = [draw(st.sampled_from((0.0, 0.25, -0.125))) * tilted for _ in range(forest.m)]
    return forest, weights, np.array(theta), draw(st.booleans())


def weight_of(network, c):
    """Weight of a UNARY class, its tilt with it."""
    v = network.variable[c]
    u = network.unary
    return (u.kind[v], u.scale[v], u.center[v], u.lo[v], u.hi[v], network.tilt[v])


def expected(forest: SumForest, weights: SharedUnary, theta):
    """Weight and tilt of every variable."""
    each = weights.each
    tilt = np.array([theta[k] if k >= 0 else 0.0 for k in forest.above])
    for k, v in enumerate(forest.owner):
        if v >= 0:
            tilt[v] -= forest.sign[k] * theta[k]
    columns = each.kind, each.scale, each.center, each.lo, each.hi, tilt
    return list(zip(*columns, strict=True))


class Walk:
    """Runs a program as a draw does, and notes what is the sum of what."""

    def __init__(self, network, forest, wanted):
        self.network, self.forest, self.wanted = network, forest, wanted
        self.ready = np.zeros(network.slots, dtype=bool)
        self.uses = np.zeros(len(network.ctype), dtype=int)
        self.held = {}  # slots that each slot is the sum of
        self.tops = {}  # the slot that is a sum of the forest: its owner
        self.linked = {}  # owner: (class, sign) of its sums
        columns = network.op, network.first, network.second, network.third, network.cls
        for op, *rest in zip(*(column.tolist() for column in columns), strict=True):
            {ROOT: self.root, LINK: self.link, SPLIT: self.split, COMPOSE: self.compose}[op](*rest)

    def set_now(self, *slots):
        assert not self.ready[list(slots)].any()
        self.ready[list(slots)] = True

    def root(self, first, _second, _third, cls):
        assert self.forest.above[first] < 0
        assert cls == self.network.slot_class[first]
        self.uses[cls] += 1
        self.set_now(first)

    def link(self, first, second, third, cls):
        self.tops[first] = second if third else -1
        if third:
            assert self.ready[second]
            below = int(self.network.slot_class[first]), third
            self.linked.setdefault(second, []).append(below)
        else:
            assert cls == self.network.slot_class[first]
            assert cls in self.network.fixed
        self.set_now(first)

    def split(self, first, second, third, cls):
        network = self.network
        assert self.ready[first]
        assert cls == network.slot_class[first]
        assert network.ctype[cls] == MERGE
        assert network.left[cls] == network.slot_class[second]
        assert network.right[cls] == network.slot_class[third]
        self.uses[cls] += 1
        self.held[first] = [second, third]
        self.set_now(second, third)

    def compose(self, first, second, third, cls):
        network = self.network
        sums = [(slot, ends) for slot, ends in ((first, UP), (second, DOWN)) if slot >= 0]
        own = UP if second < 0 else DOWN if first < 0 else (-INF, INF)
        run = network.members[third : third + cls].tolist()
        assert sums
        assert (network.slot_class[run] == -1).all()
        for slot, ends in sums:
            assert self.ready[slot]
            kind, scale, center, lo, hi, tilt = weight_of(network, network.slot_class[slot])
            assert (kind, center, lo, hi) == (laws.GEOMETRIC_SUM, cls, *ends)
            like = (laws.LAPLACE, scale, 0.0, *own, tilt)
            assert all(self.wanted[v] == like for v in run)
            self.held[slot] = run
        if len(sums) == 2:
            self.held[second] = []
        self.set_now(*run)

    def leaves(self, slot):
        if slot < self.forest.n:
            return [slot]
        return [v for part in self.held[slot] for v in self.leaves(part)]


def check(problem):
    """Check all of a network against its forest, and return it."""
    forest, weights, theta, compose = problem
    network = compile_network(forest, weights, theta, composable(weights.unary) * np.int8(compose))
    wanted = expected(forest, weights, theta)
    walk = Walk(network, forest, wanted)
    assert walk.ready.all()
    assert (walk.uses == network.uses).all()
    assert network.choices == walk.uses.sum()
    assert network.links == len(walk.tops)
    assert (np.diff(network.op == COMPOSE) <= (network.op == COMPOSE)[1:]).all()
    drawn = network.slot_class[network.slot_class >= 0]
    assert network.variables == (network.ctype[drawn] != MERGE).sum()
    for v in np.flatnonzero(network.slot_class[: forest.n] >= 0):
        c, below = network.slot_class[v], []
        while network.ctype[c] == PRODUCT:
            below.append((int(network.right[c]), int(network.sign[c])))
            c = network.left[c]
        assert network.ctype[c] == UNARY
        assert weight_of(network, c) == wanted[v]
        assert Counter(below) == Counter(walk.linked.get(int(v), []))
    families = [(above, sorted(walk.leaves(top))) for top, above in walk.tops.items()]
    members = [np.flatnonzero(forest.above == k).tolist() for k in range(forest.m)]
    assert sorted(families) == sorted(zip(forest.owner.tolist(), members, strict=True))
    return network


@QUICK
@given(problems())
def test_the_program_draws_the_sums_of_any_forest(problem):
    check(problem)


@QUICK
@given(problems())
def test_no_two_classes_are_the_same(problem):
    network = check(problem)
    seen = [
        weight_of(network, c)
        if network.ctype[c] == UNARY
        else tuple(
            int(column[c]) for column in (network.ctype, network.left, network.right, network.sign)
        )
        for c in range(len(network.ctype))
    ]
    assert len(set(seen)) == len(seen)
    made = network.ctype != UNARY
    assert (network.left[made] < np.flatnonzero(made)).all()
    assert (network.right[made] < np.flatnonzero(made)).all()


@QUICK
@given(problems())
def test_places_that_values_share_hold_each_while_it_is_needed(problem):
    forest, weights, theta, compose = problem
    ways = composable(weights.unary) * np.int8(compose)
    alone = compile_network(forest, weights, theta, ways)
    shared = compile_network(forest, weights, theta, ways, reused=True)
    assert alone.places == alone.slots == shared.slots >= shared.places
    assert alone.variables == shared.variables
    assert (alone.op == shared.op).all()
    assert (alone.cls == shared.cls).all()
    held = np.full(shared.places, -1)
    read = {ROOT: (), LINK: (1,), SPLIT: (0,), COMPOSE: (0, 1)}
    written = {ROOT: (0,), LINK: (0,), SPLIT: (1, 2), COMPOSE: ()}
    programs = [np.stack((net.first, net.second, net.third), axis=1) for net in (alone, shared)]
    for op, own, place in zip(alone.op.tolist(), *programs, strict=True):
        if op == LINK and own[2] == 0:
            assert place[2] == 0
        else:
            assert all(own[i] < 0 or held[place[i]] == own[i] for i in read[op])
        for i in written[op]:
            held[place[i]] = own[i]


def test_families_share_places():
    tree = cg.Tree.from_parents([-1] + [0] * 8 + [1 + i // 8 for i in range(64)])
    free = -np.array(INF), np.array(INF)
    weights = share_noise(laws.LAPLACE, np.array(2.0), free, np.zeros(73, dtype=bool), 73)
    ways = np.zeros(1, dtype=np.int8)
    network = compile_network(of_tree(tree), weights, np.zeros(9), ways, reused=True)
    assert (network.slots, network.places) == (73 + 9 * 7, 73 + 7)


def test_a_wrong_program_is_noticed(monkeypatch):
    forest = of_tree(cg.Tree.from_parents([-1, 0, 0, 0, 1, 1]))
    weights = share_noise(
        laws.LAPLACE,
        np.array([1.0, 2, 3, 4, 5, 6]),
        (-np.array(INF), np.array(INF)),
        np.zeros(6, dtype=bool),
        6,
    )
    problem = forest, weights, np.zeros(2), False
    network = check(problem)
    for column in (network.second, network.cls):
        split = int(np.flatnonzero(network.op == SPLIT)[0])
        kept = column[split]
        column[split] = 0
        monkeypatch.setitem(globals(), "compile_network", lambda *_: network)
        with pytest.raises((AssertionError, KeyError)):
            check(problem)
        column[split] = kept
    check(problem)


@QUICK
@given(st.data())
def test_weights_of_noise_are_listed_once(data):
    n = data.draw(st.integers(1, 40))
    numbers = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    scale = data.draw(st.sampled_from((np.array(2.0), numbers.choice([1.0, 2.0, INF], n))))
    lo = data.draw(st.sampled_from((np.array(-INF), np.array(0.5), numbers.choice([-INF, 1.0], n))))
    hi = data.draw(st.sampled_from((np.array(INF), np.array(7.5), numbers.choice([9.0, INF], n))))
    counts, orientation, dropped = None, None, None
    if data.draw(st.booleans()):
        counts = numbers.integers(-3, 4, n) * data.draw(st.sampled_from((1, 1000)))
    size = n + data.draw(st.integers(0, 3))
    if data.draw(st.booleans()):
        orientation = numbers.choice([-1, 1], size).astype(np.int8)
    if data.draw(st.booleans()):
        dropped = numbers.random(n) < 0.3
    fixed = numbers.random(n) < 0.2
    found = share_noise(
        laws.LAPLACE,
        scale,
        (lo, hi),
        fixed,
        size,
        counts=counts,
        dropped=dropped,
        orientation=orientation,
    )
    x = np.zeros(n) if counts is None else counts
    low = np.where(False if dropped is None else dropped, -INF, np.ceil(lo) - x)
    high = np.floor(hi) - x
    low, high = np.where(fixed, 0.0, low), np.where(fixed, 0.0, high)
    more = np.full(size - n, INF)
    low, high = np.append(low, -more), np.append(high, more)
    scales = np.append(np.broadcast_to(scale, (n,)), more)
    if orientation is not None:
        low, high = np.where(orientation < 0, -high, low), np.where(orientation < 0, -low, high)
    each = found.each
    assert (each.kind == np.where(np.isfinite(scales), laws.LAPLACE, laws.FLAT)).all()
    assert (each.scale == scales).all()
    assert (each.center == 0).all()
    assert (each.lo == low).all()
    assert (each.hi == high).all()
    assert len(found.unary.lo) == len(set(zip(scales, low, high, strict=True)))


def far(lo_of_second):
    """Two summands of zero, the first at least -800 and the second at least so much."""
    forest = of_tree(cg.Tree.from_parents([-1, 0, 0]))
    unary = Unary(
        np.full(3, laws.LAPLACE),
        np.full(3, 2.0),
        np.zeros(3),
        np.array([0.0, -800.0, lo_of_second]),
        np.array([0.0, INF, INF]),
    )
    return forest, SharedUnary(unary, np.arange(3, dtype=np.int32))


def test_a_bound_far_out_is_seen_where_it_binds():
    tables = tables_of(*far(798.0))
    assert tables.log_sum() == pytest.approx(-798 + np.log(np.exp(-np.arange(3)).sum()))


def test_a_bound_far_out_is_left_out_where_it_does_not_bind():
    forest, weights = far(0.0)
    network = tables_of(forest, weights).network
    assert np.isinf(network.unary.lo).any()


@QUICK
@given(problems())
def test_an_order_has_all_that_lies_below_first(problem):
    forest = problem[0]
    owners = np.unique(forest.owner[forest.owner >= 0])
    for order, variables in ((forest.order, np.arange(forest.n)), (forest.path, owners)):
        sums = np.arange(forest.n, forest.n + forest.m)
        assert (np.sort(order) == np.concatenate((variables, sums))).all()
        at = np.full(forest.n + forest.m, -1)
        at[order] = np.arange(order.size)
        for v in variables:
            assert forest.above[v] < 0 or at[v] < at[forest.n + forest.above[v]]
        for k, v in enumerate(forest.owner):
            assert v < 0 or at[forest.n + k] < at[v]
