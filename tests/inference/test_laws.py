"""The evidence about each node: bounds that follow from the children's bounds."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.kernels.numerics import laws


def test_bounds_of_parents_are_no_wider_than_their_childrens():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    mechanism = cg.Additive(cg.DiscreteLaplace([2.0, np.inf, 2.0, 2.0, 2.0]), tree)
    known = cg.consistent(tree) & cg.bounds(
        lo=[-np.inf, -np.inf, 2, 1, -np.inf], hi=[np.inf, 20, 5, 3, 4]
    )
    found = evidence_of(pose([9, 0, 3, 2, 4], mechanism, known, nonnegative_leaves=True))
    assert found.lo.tolist() == [3.0, 1.0, 2.0, 1.0, 0.0]
    assert found.hi.tolist() == [12.0, 7.0, 5.0, 3.0, 4.0]
    assert found.kind.tolist() == [laws.LAPLACE, laws.FLAT, *[laws.LAPLACE] * 3]
