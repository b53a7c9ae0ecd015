"""The certified error of the exact sampler against the true distance of its draws' law.

The law of a draw is read off the tables: the program is run for every outcome of every choice.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import assume, given, settings

import congenial as cg
from congenial.errors import NumericalError
from congenial.kernels.network import descend
from congenial.sum_network import tables as exact
from support.conditioning_cases import INF, Case, boxed_cases, open_cases

# Losses to plan windows for: with the largest ones much is cut, with the usual one nothing is seen.
CUTS = (3.0, 0.9, 0.1)
MOST = 400_000
# Below this the arithmetic of the comparison itself is seen.
ROUNDING = 1e-13


def split(tables, c, s):
    """Both parts of a merge of class c with sum s, shape (k, 2), and their probabilities."""
    network = tables.network
    a, b = int(network.left[c]), int(network.right[c])
    one = np.arange(max(tables.lo[a], s - tables.hi[b]), min(tables.hi[a], s - tables.lo[b]) + 1)
    weight = tables.of_class(a)[one - tables.lo[a]] * tables.of_class(b)[s - one - tables.lo[b]]
    share = weight / (tables.of_class(c)[s - tables.lo[c]] * tables.factor[c])
    share[int(np.argmax(weight))] += max(0.0, 1.0 - math.fsum(share))
    return np.column_stack((one, s - one)), share


def law_of_draws(tables, n):
    """Every vector that the program can draw, shape (k, n), and its probability."""
    network = tables.network
    values, mass = np.zeros((1, network.slots), dtype=np.int64), np.ones(1)
    columns = (network.op, network.first, network.second, network.third, network.cls)
    for op, first, second, third, c in zip(*(col.tolist() for col in columns), strict=True):
        if op == descend.LINK:
            values[:, first] = third * values[:, second]
            continue
        read, slots = [first], [second, third]
        if op == descend.ROOT:
            read, slots = [], [first]
        keys, at = np.unique(values[:, read], axis=0, return_inverse=True)
        states, masses = [], []
        for k, key in enumerate(keys.tolist()):
            if op == descend.ROOT:
                t = tables.of_class(c)
                outcomes, shares = np.arange(tables.lo[c], tables.hi[c] + 1)[:, None], t / t.sum()
            else:
                outcomes, shares = split(tables, c, key[0])
            here = np.flatnonzero(at.ravel() == k)
            fresh = values[np.repeat(here, len(outcomes))]
            fresh[:, slots] = np.tile(outcomes, (here.size, 1))
            weight = np.outer(mass[here], shares).ravel()
            states.append(fresh[weight > 1e-22])
            masses.append(weight[weight > 1e-22])
        values, mass = np.vstack(states), np.concatenate(masses)
        if mass.size > MOST:
            raise MemoryError("too many draws; take a smaller case")
    return values[:, :n], mass


def distance(one: Case, law, tables) -> float:
    """Total variation between the law of a case and that of draws from tables."""
    values, mass = law_of_draws(tables, one.n)
    values = values * one.condition().forest.orientation[: one.n]
    both = np.vstack((law.states - one.x, values))
    _, at = np.unique(both, axis=0, return_inverse=True)
    gap = np.bincount(at.ravel(), weights=np.concatenate((law.probabilities, -mass)))
    return 0.5 * math.fsum(np.abs(gap))


def prepared(one: Case, *, cut=None):
    """Tables as for a draw; `cut` plans for another loss, and accepts it."""
    conditioned = one.condition()
    with pytest.MonkeyPatch.context() as patch:
        if cut is not None:
            patch.setattr(exact, "_CUT", cut)
            patch.setattr(exact, "ERROR_LIMIT", 1.0)
        return conditioned._prepare(one.x)


def tree_case(parents, scales, leaves, *, kind="laplace", pinned=(), lo=-INF):
    tree = cg.Tree.from_parents(parents)
    scales = np.broadcast_to(np.asarray(scales, dtype=float), (len(tree),)).copy()
    return Case(kind, scales, tree.roll_up(np.array(leaves)), pinned, lo, INF, tuple(parents))


BINARY = (-1, 0, 0, 1, 1)
CASES = {
    "two leaves": tree_case((-1, 0, 0), 3.0, [2, 5], pinned=(0,)),
    "star": tree_case((-1, 0, 0, 0), 0.7, [3, 0, 1]),
    "star, pinned": tree_case((-1, 0, 0, 0), 1.5, [3, 0, 1], pinned=(0,)),
    "star, scales apart": tree_case((-1, 0, 0, 0), [5.0, 0.2, 0.5, 4.0], [3, 0, 1]),
    "binary": tree_case(BINARY, 0.7, [3, 1, 2]),
    "binary, nonnegative": tree_case(BINARY, 1.5, [3, 1, 2], pinned=(0,), lo=0),
    "binary, one not measured": tree_case(BINARY, [0.8, INF, 0.6, 0.9, 0.7], [3, 1, 2]),
    "gaussian": tree_case(BINARY, 1.2, [3, 1, 2], kind="gaussian"),
    "two sums of a vector": Case(
        "laplace",
        np.array([1.0, 0.5, 2.0, 0.7, 1.5]),
        np.array([1, 2, 0, 4, 1]),
        rows=((1, 1, -1, 0, 0), (0, 0, 0, 1, 1)),
    ),
    "gaussian, pinned": tree_case((-1, 0, 0, 0), 3.0, [3, 0, 1], kind="gaussian", pinned=(0,)),
}


def claims(one: Case):
    """True distance and certified error for each loss planned for that is not refused."""
    law = one.law()
    found = []
    for cut in CUTS:
        with suppress(NumericalError):
            found.append(prepared(one, cut=cut))
    return [(distance(one, law, tables), tables.error) for tables in found]


@pytest.mark.parametrize("name", CASES)
def test_the_certificate_is_above_the_true_distance(name):
    one = CASES[name]
    for true, claimed in claims(one):
        assert true <= claimed + ROUNDING
    tables = prepared(one)
    assert distance(one, one.law(), tables) <= tables.error + ROUNDING
    assert tables.error < 1e-11


def test_the_truncation_of_narrow_windows_is_detected():
    largest = [max((true for true, _ in claims(one)), default=0.0) for one in CASES.values()]
    assert sum(true > 1e-8 for true in largest) >= 5
    # and other scales are further away than what is certified of these draws
    one, wrong = CASES["star"], tree_case((-1, 0, 0, 0), 0.75, [3, 0, 1])
    tables = prepared(one)
    assert distance(one, wrong.law(), tables) > 1e6 * tables.error


def check_any(one):
    try:
        found = claims(one)
    except MemoryError:
        assume(False)
    for true, claimed in found:
        assert true <= claimed + ROUNDING


@settings(max_examples=40, derandomize=True, deadline=None)
@given(open_cases(most=5))
def test_the_certificate_of_any_open_case(one):
    check_any(one)


@settings(max_examples=40, derandomize=True, deadline=None)
@given(boxed_cases(most=6))
def test_the_certificate_of_any_boxed_case(one):
    check_any(one)
