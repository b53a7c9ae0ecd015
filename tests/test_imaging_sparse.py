"""Projections of long vectors under crossing sums: the same as the dense ones, and certified."""

from __future__ import annotations

import numpy as np
import pytest
from table_cases import counts
from test_imaging_general import cases
from test_table_laws import CASES, world

import congenial as cg
from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging import sparse
from congenial.imaging.general import round_general, solve_general
from congenial.imaging.problem import checked_weights
from congenial.invariants import requirements


def tables(count):
    """Noisy answers of small tables, with weights."""
    for name in CASES:
        workload, x, mechanism, more = world(name)
        need = requirements(cg.consistent(workload) & more, len(workload), workload)
        with np.errstate(divide="ignore"):
            precision = 1.0 / mechanism.noise.variances(mechanism.scales)
        weight = checked_weights(np.where(need.pinned, 0.0, precision), need.n)
        for seed in range(count):
            noisy = mechanism.sample(x, rng=cg.seeded(seed)).astype(float)
            yield need, np.where(need.pinned, x, noisy), weight


def mixed(count):
    """Random rows, inequalities and bounds."""
    for _, y, weight, _, need in cases(count, 12):
        yield need, y, weight


@pytest.mark.parametrize("world", [tables(4), mixed(30)], ids=["tables", "rows"])
def test_both_solvers_find_the_same_points(world):
    moved = 0
    for need, y, weight in world:
        dense, thin = solve_general(need, y, weight), sparse.solve_sparse(need, y, weight)
        np.testing.assert_allclose(thin, dense, atol=1e-4)
        far = [float(weight @ np.where(weight > 0, z - y, 0.0) ** 2) for z in (thin, dense)]
        assert abs(far[0] - far[1]) <= 1e-8 * (1.0 + np.abs(thin - y).max())
        words = cg.seeded(5).bits(need.n)
        try:
            whole = round_general(need, dense, words)
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                sparse.round_sparse(need, dense, words)
            continue
        again = sparse.round_sparse(need, dense, words)
        change = np.abs(whole - dense).sum()
        assert abs(np.abs(again - dense).sum() - change) < 1e-4
        moved += change > 0.1
    assert moved > 3


def test_a_result_that_is_not_the_closest_is_refused(monkeypatch):
    need, y, weight = next(iter(tables(1)))
    monkeypatch.setattr(sparse, "_ITERATIONS", 2)
    with pytest.raises(NumericalError, match="misses its conditions of optimality"):
        sparse.solve_sparse(need, y, weight)


def test_long_tables_with_crossing_margins_are_imaged():
    streets = [("town", f"{i}") for i in range(400)]
    axes = {"sex": ("F", "M"), "age": ("0", "1", "2")}
    table = cg.Table(axes, geography=cg.Tree.from_paths(streets))
    workload = cg.Workload.of(table, {0: ["sex", "age"], 1: ["sex"]})
    x = workload.answers(counts(table, np.random.default_rng(0)))
    scales = workload.scales({("sex", "age"): 1.0, 1: {"sex": 2.0}})
    invariant = (
        cg.consistent(workload) & cg.nonnegative() & cg.exactly_margins(["sex", "age"], level=0)
    )
    for whole in (False, True):
        made = cg.image(cg.Additive(cg.DiscreteLaplace(scales), workload), invariant, integer=whole)
        z = made.sample(x, rng=cg.seeded(3))
        assert (z >= 0).all()
        assert np.abs(workload.sums.gaps(z)).max() <= (0 if whole else 1e-7)
        assert (workload.array(z, "age") == workload.array(x, "age")).all()
        error = workload.array(z - x, ("sex", "age"), 1)
        assert 0.2 < np.abs(error).mean() < 1.0
