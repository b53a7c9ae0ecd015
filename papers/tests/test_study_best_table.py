"""The study of the table of least expected error: its groups, its comparison, and its page."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.domain.tree import Tree
from papers.studies import best_table
from papers.studies.best_table_worlds import (
    METHODS,
    NOISE,
    PROJECTIONS,
    RELEASED,
    TABLE,
    Found,
    Groups,
    World,
    groups,
    released,
)

TREE = Tree.from_parents([-1, 0, 0, 0, *[1, 2, 3] * 8])
X = TREE.roll_up(np.concatenate((np.zeros(12, np.int64), np.arange(12) ** 3)))
WORLD = World("made-up", "made-up counts", ("middle", "leaf"), lambda: (TREE, X), (1.0,), (2,))


def test_leaves_are_grouped_by_size_and_nodes_by_level():
    found = groups(WORLD, TREE, X)
    size = dict(zip(found.names, found.member.sum(axis=1).tolist(), strict=True))
    assert size == {
        "middle": 3,
        "leaf": 24,
        "leaf of 0": 13,
        "leaf of 1–9": 2,
        "leaf of 10–99": 2,
        "leaf of 100–999": 5,
        "leaf of 1,000 or more": 2,
    }
    assert not found.member[:, 0].any()


@pytest.fixture(scope="module")
def made():
    return released(WORLD, 1.0, range(60), 1)


def test_every_method_is_released_from_the_same_measurements(made):
    assert tuple(made.error) == METHODS
    assert made.scales == pytest.approx((4.0, 4.0))
    # noise alone is unbiased, whatever the count; the margin is 5 standard errors
    leaf = made.groups.names.index("leaf")
    assert abs(made.bias[NOISE][:, leaf].mean()) < 5 * 4 * np.sqrt(2.0 / (24 * 60))
    zero = made.groups.names.index("leaf of 0")
    assert made.error[TABLE][:, zero].mean() < made.error[NOISE][:, zero].mean()
    # intervals around the measurement hold in 90% whatever the size, here of 24 x 60
    assert made.covered[RELEASED].mean(axis=0)[leaf] > 0.9 - 5 * np.sqrt(0.09 / (24 * 60))
    again = released(WORLD, 1.0, range(60), 2)
    assert all((made.error[name] == again.error[name])[:, leaf].all() for name in METHODS)


def test_the_comparison_is_with_the_best_projection_on_the_same_measurements():
    names = (TABLE, *PROJECTIONS)
    errors = ([2.0], [4.0]), ([9.0], [9.0]), ([3.0], [5.0]), ([6.0], [6.0])
    as_arrays = {name: np.array(rows) for name, rows in zip(names, errors, strict=True)}
    squares = {name: np.array([[5.0], [5.0]]) for name in PROJECTIONS}
    leaves = Groups(("leaf",), TREE.is_leaf[None, :])
    one = Found((4.0,), leaves, as_arrays, as_arrays, squares, as_arrays, as_arrays)
    relative, error, best = best_table.excess(one)
    assert best == [PROJECTIONS[1]]
    assert relative[0] == pytest.approx(-1.0 / 4.0)
    # mean square 5 less the square of the mean, over 24 leaves twice
    assert error[0] == pytest.approx(np.sqrt((5.0 - 1.0) / 48) / 4.0)


def test_the_least_error_is_that_of_the_median_of_every_measurements_law():
    x, scale = np.array([0, 0, 0, 1, 2, 9]), 2.0
    q = np.exp(-1.0 / scale)
    least = 0.0
    for y in range(-60, 70):
        weight = (1 - q) / (1 + q) * q ** np.abs(y - x) / x.size
        least += min(float(weight @ np.abs(x - z)) for z in range(10))
    assert best_table.least_error(x, scale) == pytest.approx(least, rel=1e-9)
    assert best_table.least_error(np.full(5, 3), scale) == 0.0


def test_the_study_names_what_has_larger_errors_and_what_a_projection_trades(made):
    worse = {**made.error, TABLE: made.error[TABLE] + 5.0}
    worse["TopDown"] = worse["TopDown"] + np.where(np.array(made.groups.names) == "middle", 99, 0)
    found = Found(made.scales, made.groups, worse, made.bias, made.spread, made.covered, made.width)
    text = best_table.study_of([(WORLD, {1.0: found})]).findings[1]
    assert "in 2 of 2 pairs of a level and an epsilon: by middle at epsilon 1, +" in text
    assert "; by leaf at epsilon 1, +" in text
    assert " pairs of a class and an epsilon. The largest: " in text


def test_known_laws_leave_less_error_than_the_measurement(made):
    found = best_table.known_laws(WORLD, {1.0: made})
    known, ours = found.column("known laws")[0], found.column(TABLE)[0]
    assert 0.0 < known < ours
    assert found.column("scale") == pytest.approx((4.0,))


def test_the_study_says_what_its_tables_hold(made):
    study = best_table.study_of([(WORLD, {1.0: made})])
    table = study.tables[0]
    assert table.column("counts")[:2] == ("middle", "leaf")
    assert table.column("number")[:2] == (3, 24)
    leaf = made.groups.names.index("leaf")
    assert table.column(TABLE)[1] == pytest.approx(made.error[TABLE][:, leaf].mean(), rel=5e-3)
    assert any("| made-up counts | " in text and "ε = 1" in text for text in study.findings)
