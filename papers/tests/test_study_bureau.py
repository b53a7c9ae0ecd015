"""The study of the Census Bureau's passes: each pass beside ours or enumeration, and its page."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import congenial as cg
from papers.studies import bureau
from papers.studies.bureau_passes import (
    TOLERANCE,
    Margins,
    Siblings,
    _least_squares,
    _program,
    _totals,
    descend,
    fitted,
)

pytest.importorskip("piqp")
pytest.importorskip("scipy")

# two races by two ages
MARGINS = Margins(
    (np.zeros(4, np.int64), np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1]), np.arange(4))
)
USED = np.arange(4)


def family(seed, children=3, scale=4.0):
    """Children with noisy margins, and their parent's cells."""
    rng = np.random.default_rng(seed)
    x = rng.poisson(3.0, (children, 4)) * rng.integers(0, 2, (children, 4))
    target = tuple(x @ m.T + rng.normal(0, scale, (children, len(m))) for m in MARGINS.sums(USED))
    weight = tuple(
        np.full(one.shape, w) for one, w in zip(target, (1.0, 2.0, 0.5, 0.7), strict=True)
    )
    return Siblings(x.sum(axis=0), weight, target)


def test_the_first_pass_is_the_closest_point_of_a_simplex():
    tree = cg.Tree.from_paths([("all", str(k)) for k in range(5)])
    y = np.array([20.0, 12.5, -3.0, 9.0, 0.5, 8.0])
    known = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    ours = np.asarray(cg.project(y, known, integer=False))
    found = _totals(np.ones(5), y[1:], 20.0)
    assert found == pytest.approx(ours[1:], abs=1e-5)
    assert (found < 1e-5).any()


@pytest.mark.parametrize("seed", range(5))
def test_one_pass_of_least_squares_is_that_of_congenial(seed):
    one = family(seed)
    geography = cg.Tree.from_paths([("all", str(k)) for k in range(3)])
    table = cg.Table(
        {"race": ("a", "b"), "age": ("c", "d")}, geography=geography, levels=("top", "low")
    )
    workload = cg.Workload.of(table, {"top": [("race", "age")], "low": list(bureau._MARGINS)})
    invariant = (
        cg.consistent(workload)
        & cg.nonnegative()
        & cg.exactly(margins=[("race", "age")], level="top")
    )
    parts = {(): 0, ("age",): 1, ("race",): 2, ("race", "age"): 3}
    y, weight = np.zeros(len(workload)), np.zeros(len(workload))
    for block in workload.blocks:
        at = parts[block.margin]
        y[block.ids] = one.whole[None, :] if block.level == 0 else one.target[at]
        weight[block.ids] = 1.0 if block.level == 0 else one.weight[at]
    ours = cg.topdown(y, workload, invariant, cg.seeded(1), integer=False, weights=weight)
    used = np.flatnonzero(one.whole)
    found = np.zeros((3, 4))
    found[:, used] = _least_squares(MARGINS.sums(used), used, one, one.whole[used], None)
    assert found.ravel() == pytest.approx(np.asarray(ours)[workload.cells], abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
def test_a_later_pass_keeps_the_totals(seed):
    one = family(seed)
    used = np.flatnonzero(one.whole)
    totals = _totals(one.weight[0][:, 0], one.target[0][:, 0], float(one.whole.sum()))
    x = _least_squares(MARGINS.sums(used), used, one, one.whole[used], totals)
    assert np.abs(x.sum(axis=1) - totals).max() <= TOLERANCE + 1e-5
    assert x.sum(axis=0) == pytest.approx(one.whole[used], abs=1e-5)
    free = _least_squares(MARGINS.sums(used), used, one, one.whole[used], None)
    assert np.abs(free.sum(axis=1) - totals).max() > 2 * TOLERANCE


@pytest.mark.parametrize("seed", range(5))
def test_a_rounding_changes_the_margins_least(seed):
    rng = np.random.default_rng(seed)
    share = rng.random((2, 4))
    share[1] = 1.0 - share[0]
    base, whole, sums = np.zeros((2, 4)), np.ones(4), MARGINS.sums(USED)
    bits = [np.array([b, 1 - np.array(b)]) for b in product((0, 1), repeat=4)]

    def cost(some, b):
        return sum(np.abs((b - share) @ m.T).sum() for m in some)

    for some in (sums, sums[:1]):
        found = _program(some, share, base, whole, None)
        assert (found.sum(axis=0) == whole).all()
        assert cost(some, found) == pytest.approx(min(cost(some, b) for b in bits), abs=1e-4)
    totals = np.array([1.0, 3.0])
    found = _program(sums[1:], share, base, whole, totals)
    least = min(cost(sums[1:], b) for b in bits if (b.sum(axis=1) == totals).all())
    assert cost(sums[1:], found) == pytest.approx(least, abs=1e-4)


def test_children_add_up_to_their_parent():
    one = family(7)
    for passes in (1, 2):
        cells = fitted(MARGINS, one, passes)
        assert (cells >= 0).all()
        assert (cells.sum(axis=0) == one.whole).all()


def test_processes_do_not_change_what_is_found():
    parts = [family(seed, 1 if seed == 3 else 4) for seed in (3, 4)]
    weight, target = ([list(getattr(one, name)) for one in parts] for name in ("weight", "target"))
    levels = [np.zeros(1, np.int64), np.zeros(4, np.int64)]
    one, two = (descend(MARGINS, levels, 20, weight, target, workers=w) for w in (1, 2))
    assert all((a == b).all() for a, b in zip(one, two, strict=True))
    assert one[0].sum() == one[1].sum() == 20


@pytest.fixture(scope="module")
def made():
    return bureau.released(bureau.World("garfield", "Garfield County", ("53023",)), 2, 1)


def test_both_algorithms_keep_the_exact_total_and_near_the_counts(made):
    assert ("state", "total") not in made.names
    assert made.number[made.names.index(("county", "race"))] == 8
    for name in (bureau.OURS, bureau.TWO):
        mean = dict(zip(made.names, made.error[name].mean(axis=0), strict=True))
        # one county: its total is the state's
        assert mean["county", "total"] == 0.0
        assert 0.0 < mean["block", "race by age"] < mean["block", "total"]
        assert (made.seconds[name] > 0.0).all()


def test_the_study_names_where_two_passes_are_better(made):
    better = dict(made.error)
    better[bureau.TWO] = better[bureau.OURS] + np.array([[-1.0], [-1.01]])
    found = bureau.Found(made.names, made.number, better, made.bias, made.seconds)
    text = bureau.study_of([(bureau.World("g", "Garfield", ()), found)]).findings[2]
    assert f"smaller errors in {len(made.names)}: state, age" in text
    better[bureau.TWO] = better[bureau.OURS] + np.array([[1.0], [1.01]])
    study = bureau.study_of([(bureau.World("g", "Garfield", ()), found)])
    assert "smaller errors in 0." in study.findings[2]
    assert study.tables[0].column("difference")[0] == pytest.approx(1.0, abs=0.01)
