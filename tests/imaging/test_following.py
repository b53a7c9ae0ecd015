"""The test whether a release follows from measurements, against all releases near them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.imaging.following import follows
from congenial.imaging.top_down import topdown_image
from congenial.imaging.update import image
from congenial.invariants.written import bounds, consistent, exactly, nonnegative
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import seeded
from support.cross_tables import TOWN, plan_of
from support.seeds import for_each_seed

TREE = Tree.from_parents([-1, 0, 0, 0])
NOISE = Additive(DiscreteLaplace(2.0), TREE)
KNOWN = consistent(TREE) & exactly([0])
Y = np.array([14, 5, 4, 3])


def near():
    """All trees of counts with the total of `Y` whose leaves are up to 3 from its."""
    for leaves in itertools.product(*(range(v - 3, v + 4) for v in Y[1:])):
        if sum(leaves) == Y[0]:
            yield np.array([Y[0], *leaves])


@pytest.mark.parametrize("norm", ["l1", "l2", "topdown"])
def test_only_equally_close_tables_follow_from_the_measurements(norm):
    engine = (
        topdown_image(NOISE, KNOWN)
        if norm == "topdown"
        else image(NOISE, KNOWN, norm, integer=True)
    )
    # two units are missing: any leaves get them in L1, two of three get one each otherwise
    target = Y[1:] if norm == "l1" else Y[1:] + 2.0 / 3.0
    cost = {tuple(z): np.abs(z[1:] - target).sum() for z in near()}
    least = min(cost.values())
    wanted = {z for z, c in cost.items() if c < least + 1e-9}
    assert {z for z in cost if follows(engine, Y, np.array(z), seeded(1))} == wanted
    assert len(wanted) == (6 if norm == "l1" else 3)


@for_each_seed(60)
def test_any_rounding_of_crossing_tables_follows_and_no_other_table(seed):
    """Areas are rounded one after the other, so that two roundings may differ in cost."""
    workload = plan_of(margins='["total", "sex", "voting", "sex by age"]').domain(TOWN)
    rng = np.random.default_rng(seed)
    x = workload.roll_up(rng.poisson(4.0, workload.cells.size))
    high = np.full(len(workload), np.inf)
    some = rng.integers(1, len(workload), 12)
    high[some] = x[some] + 2.0
    known = consistent(workload) & exactly([0]) & nonnegative() & bounds(hi=high)
    mechanism = Additive(DiscreteLaplace(3.0), workload)
    engine = image(mechanism, known, integer=True)
    y = engine.measure(x, rng=seeded(seed))
    z = engine.apply(y, seeded(seed + 1))
    assert follows(engine, y, np.asarray(z), seeded(0))
    # two more people in one cell and two fewer in another
    cells = z[workload.cells]
    moved = cells.copy()
    moved[np.argmax(cells)] -= 2
    moved[rng.choice(np.delete(np.arange(cells.size), np.argmax(cells)))] += 2
    assert not follows(engine, y, workload.roll_up(moved), seeded(0))
