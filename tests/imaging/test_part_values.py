"""Values of parts are kept by their kind and number, and weights are those of all counts."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.imaging.part_values import PartValues, noisy_piece
from congenial.invariants.written import resolve_invariant

TREE = cg.Tree.from_parents([-1, 0, 0, 0])


def piece(number, scales=(np.inf, 1e6, 1e6, 1e6)):
    resolved = resolve_invariant(cg.consistent(TREE) & cg.exactly([3]), 4, TREE)
    mechanism = cg.Additive(cg.DiscreteLaplace(np.array(scales)), TREE)
    y = np.array([0, 5, -2, 4])
    return noisy_piece(TREE, mechanism, resolved, y, 0.5, np.array([number]))


def test_values_are_kept_by_kind_and_part(tmp_path):
    kept = PartValues(tmp_path)
    kept.storing("one")(piece(0), np.arange(4.0))
    kept.keep("other", 0, np.ones(4))
    kept.keep("one", 1, np.zeros(4))
    assert kept.values("one", 0).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert kept.values("other", 0).tolist() == [1.0] * 4
    kept.keep_measured(2, TREE, np.array([0, 5, -2, 4]))
    tree, measured = kept.measured(2)
    assert tree.parents.tolist() == TREE.parents.tolist()
    assert measured.tolist() == [0, 5, -2, 4]


def test_a_piece_has_weights_relative_to_the_largest_of_all_counts():
    found = piece(7)
    assert found.nodes.tolist() == [7] and found.whole
    assert found.y.tolist() == [0.0, 5.0, -2.0, 4.0]
    # no weight without a measurement, nor for an exact count
    assert found.weight[[0, 3]].tolist() == [0.0, 0.0]
    # the variance of discrete Laplace noise is 2 scale^2, nearly
    np.testing.assert_allclose(found.weight[1:3], 1 / (2 * 1e12) / 0.5, rtol=1e-9)
