"""Entries determined by fixed entries and sums, against rational elimination of all at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.invariants import implied as implied_module
from congenial.invariants.implied import implied
from congenial.invariants.written import resolve_invariant
from support.table_cases import AGES, PAIR, TWO, masks

AXES = {"r": ("r1", "r2"), "c": ("c1", "c2", "c3")}


def rank(rows):
    """Rank of rows of fractions, by elimination."""
    rows = [list(row) for row in rows]
    found = 0
    for column in range(len(rows[0]) if rows else 0):
        at = next((i for i in range(found, len(rows)) if rows[i][column]), None)
        if at is None:
            continue
        rows[found], rows[at] = rows[at], rows[found]
        for i in range(found + 1, len(rows)):
            if rows[i][column]:
                share = rows[i][column] / rows[found][column]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[found], strict=True)]
        found += 1
    return found


def follows(each, known, matrix):
    """Whether each entry is a combination of known entries and sums, shape (n,)."""
    coefficients = [[Fraction(repr(float(v))) for v in row] for row in matrix]
    counts = [[Fraction(int(v)) for v in row] for row in each]
    fixed = [counts[i] for i in np.flatnonzero(known)]
    for row in coefficients:
        terms = [[a * b for b in entry] for a, entry in zip(row, counts, strict=True)]
        fixed.append([sum(column) for column in zip(*terms, strict=True)])
    plain = rank(fixed)
    return np.array([rank([*fixed, entry]) == plain for entry in counts])


def table(rng):
    """Return a workload of random margins of a small table."""
    margins = [(), ("sex",), ("age",), ("grown",), ("sex", "grown")]
    axes = {"sex": ("F", "M"), "age": ("0", "1", "2")}
    geography = (None, PAIR, TWO)[rng.integers(3)]
    made = cg.Table(axes, {"grown": ("age", AGES)}, geography)
    picked = [[m for m in margins if rng.random() < 0.6] for _ in made.level_names]
    return cg.Workload.of(made, dict(enumerate(picked)))


def test_determined_margins_of_random_tables_are_those_in_the_row_space():
    rng = np.random.default_rng(8)
    more = 0
    for _ in range(120):
        workload = table(rng)
        n = len(workload)
        pins = np.flatnonzero(rng.random(n) < rng.choice([0.2, 0.5])).tolist() or [0]
        invariant = cg.consistent(workload) & cg.exactly(pins)
        if rng.random() < 0.5:
            row = rng.choice([0, 0, 0, 1, 1, -1, 2, 0.5, 0.1], n)
            invariant = invariant & cg.linear(row, 1)
        resolved = resolve_invariant(invariant, n, workload)
        want = follows(masks(workload), resolved.pinned, resolved.equalities[0])
        np.testing.assert_array_equal(resolved.determined, want)
        more += want.sum() > resolved.pinned.sum()
    assert more >= 40


def test_determined_entries_of_random_vectors_and_trees_with_sums():
    rng = np.random.default_rng(9)
    tree = cg.Tree.from_paths(["city/a/x", "city/a/y", "city/b/z", "city/b/w", "city/c"])
    each = np.zeros((len(tree), tree.leaves.size), dtype=int)
    for k, leaf in enumerate(tree.leaves):
        at = int(leaf)
        while at >= 0:
            each[at, k] = 1
            at = int(tree.parents[at])
    more = 0
    for structure, counts in (
        (cg.consistent(tree), each),
        (cg.nonnegative(), np.eye(8, dtype=int)),
    ):
        n = len(counts)
        for _ in range(60):
            rows = rng.choice([0, 0, 1, -1, 3, 0.3], (int(rng.integers(1, 4)), n))
            pins = np.flatnonzero(rng.random(n) < 0.3).tolist() or [n - 1]
            invariant = structure & cg.exactly(pins) & cg.linear(rows, np.zeros(len(rows)))
            resolved = resolve_invariant(invariant, n)
            want = follows(counts, resolved.pinned, resolved.equalities[0])
            np.testing.assert_array_equal(resolved.determined, want)
            more += want.sum() > resolved.pinned.sum()
    assert more >= 40


def test_a_margin_that_follows_from_others_is_named():
    workload = cg.Workload.of(cg.Table(AXES), ["r", "c"])
    invariant = cg.consistent(workload) & cg.nonnegative() & cg.exactly([0, 1, 2, 3])
    released = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), workload), invariant)
    assert released.guarantee("substitute").unprotected == (
        "the exact counts of r in table",
        "the exact counts of c in table",
    )
    counts = workload.answers([[1, 2, 3], [4, 5, 6]])
    assert (released.sample(counts, 5, cg.seeded(1))[:, 4] == 9).all()


@pytest.mark.parametrize("limit", ["MOST_STEPS", "LARGEST", "EXACT"])
def test_beyond_the_limits_only_the_pinned_counts_are_listed(monkeypatch, limit):
    workload = cg.Workload.of(cg.Table(AXES), ["r", "c"])
    invariant = cg.consistent(workload) & cg.exactly([0, 1, 2, 3])
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), workload)
    full = cg.image(mechanism, invariant).guarantee("substitute")
    monkeypatch.setattr(implied_module, limit, 0)
    cut = cg.image(mechanism, invariant).guarantee("substitute")
    assert cut.unprotected[-1] == (
        "the count of c=c3 in table, which is the same in all neighbouring datasets"
    )
    assert cut.epsilon >= full.epsilon


def test_determined_margins_of_large_tables_are_found():
    labels = tuple(map(str, range(40)))
    workload = cg.Workload.of(cg.Table({"r": labels, "c": labels}), ["r", "c"])
    resolved = resolve_invariant(
        cg.consistent(workload) & cg.exactly(list(range(79))), len(workload), workload
    )
    assert resolved.determined.sum() == 80


def test_sums_of_numbers_too_large_are_left_out():
    cells = np.arange(3)
    known = np.array([True, False, False])
    big = np.array([[1.0, 2.0**40, 0.0]])
    assert implied(cells, cells[None], known, big).tolist() == [True, False, False]
    assert implied(cells, cells[None], known, np.minimum(big, 2.0**20)).tolist() == [
        True,
        True,
        False,
    ]
    third = np.array([[1.0, 1.0 / 3.0, 0.0]])
    assert implied(cells, cells[None], known, third).tolist() == [True, False, False]
