"""The test whether a release follows from measurements, against all releases near them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from congenial.domain.tree import Tree
from congenial.imaging.following import follows
from congenial.imaging.top_down import topdown_image
from congenial.imaging.update import image
from congenial.invariants.written import consistent, exactly
from congenial.noise.additive import Additive
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.randomness import seeded

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
