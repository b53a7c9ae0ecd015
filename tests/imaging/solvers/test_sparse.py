"""Projections of long vectors under crossing sums: the same as the dense ones, and certified."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import congenial as cg
from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.solvers import sparse
from congenial.imaging.solvers.general import solve_general
from congenial.imaging.solvers.problem import checked_weights
from congenial.imaging.solvers.rounding_general import round_general
from congenial.invariants.written import resolve_invariant
from support.crossing_problems import cases
from support.table_cases import counts
from support.table_worlds import CASES, world


def tables(count):
    """Noisy answers of small tables, with weights."""
    for name in CASES:
        workload, x, mechanism, more = world(name)
        resolved = resolve_invariant(cg.consistent(workload) & more, len(workload), workload)
        with np.errstate(divide="ignore"):
            precision = 1.0 / mechanism.noise.variances(mechanism.scales)
        weight = checked_weights(np.where(resolved.pinned, 0.0, precision), resolved.n)
        for seed in range(count):
            noisy = mechanism.sample(x, rng=cg.seeded(seed)).astype(float)
            yield resolved, np.where(resolved.pinned, x, noisy), weight


def mixed(count):
    """Random rows, inequalities and bounds."""
    for _, y, weight, _, resolved in cases(count, 12):
        yield resolved, y, weight


@pytest.mark.parametrize("world", [tables(4), mixed(30)], ids=["tables", "rows"])
def test_both_solvers_find_the_same_points(world):
    for resolved, y, weight in world:
        dense, thin = solve_general(resolved, y, weight), sparse.solve_sparse(resolved, y, weight)
        np.testing.assert_allclose(thin, dense, atol=1e-4)
        far = [float(weight @ np.where(weight > 0, z - y, 0.0) ** 2) for z in (thin, dense)]
        assert abs(far[0] - far[1]) <= 1e-8 * (1.0 + np.abs(thin - y).max())


def least_change(resolved, z):
    """Least summed change of integers that satisfy every condition: a programme of its own.

    None where there are none. Changes are bounded from both sides, in the place of units.
    """
    n = z.size
    rows, values, lower, least = sparse.systems(resolved)
    lo, hi = (np.where(resolved.pinned, z, bound) for bound in (resolved.lo, resolved.hi))
    eye = np.eye(n)
    found = milp(
        np.concatenate((np.zeros(n), np.ones(n))),
        integrality=np.concatenate((np.ones(n), np.zeros(n))),
        bounds=Bounds(np.append(lo, np.zeros(n)), np.append(hi, np.full(n, np.inf))),
        constraints=[
            LinearConstraint(np.hstack((eye, eye)), z, np.inf),
            LinearConstraint(np.hstack((-eye, eye)), -z, np.inf),
            LinearConstraint(np.hstack((rows.toarray(), np.zeros(rows.shape))), values, values),
            LinearConstraint(np.hstack((lower.toarray(), np.zeros(lower.shape))), least, np.inf),
        ],
        # with its presolve HiGHS finds a case of real sides infeasible that is not
        options={"mip_rel_gap": 0.0, "presolve": False},
    )
    return None if found.status == 2 else found.fun


@pytest.mark.parametrize("world", [tables(4), mixed(30)], ids=["tables", "rows"])
def test_integers_are_of_least_change(world):
    moved = 0
    for resolved, y, weight in world:
        z = solve_general(resolved, y, weight)
        words = cg.seeded(5).bits(resolved.n)
        best = least_change(resolved, z)
        if best is None:
            with pytest.raises(InfeasibleError, match="no integers satisfy the sums"):
                round_general(resolved, z, words)
            continue
        whole = round_general(resolved, z, words)
        change = np.abs(whole - z).sum()
        assert abs(change - best) < 1e-4
        moved += change > 0.1
    assert moved > 3


def test_a_result_that_is_not_the_closest_is_refused(monkeypatch):
    resolved, y, weight = next(iter(tables(1)))
    monkeypatch.setattr(sparse, "_ITERATIONS", 2)
    with pytest.raises(NumericalError, match="misses its conditions of optimality"):
        sparse.solve_sparse(resolved, y, weight)


def test_long_tables_with_crossing_margins_are_imaged():
    streets = [("town", f"{i}") for i in range(400)]
    axes = {"sex": ("F", "M"), "age": ("0", "1", "2")}
    table = cg.Table(axes, geography=cg.Tree.from_paths(streets))
    workload = cg.Workload.of(table, {0: ["sex", "age"], 1: ["sex"]})
    x = workload.answers(counts(table, np.random.default_rng(0)))
    scales = workload.scales({("sex", "age"): 1.0, 1: {"sex": 2.0}})
    invariant = (
        cg.consistent(workload) & cg.nonnegative() & cg.exactly(margins=["sex", "age"], level=0)
    )
    for whole in (False, True):
        made = cg.image(cg.Additive(cg.DiscreteLaplace(scales), workload), invariant, integer=whole)
        z = made.sample(x, rng=cg.seeded(3))
        assert (z >= 0).all()
        assert np.abs(workload.sums.gaps(z)).max() <= (0 if whole else 1e-7)
        assert (workload.array(z, "age") == workload.array(x, "age")).all()
        error = workload.array(z - x, ("sex", "age"), 1)
        assert 0.2 < np.abs(error).mean() < 1.0
