"""Values of parts are kept by their kind and number, and weights are those of all counts."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.imaging.part_values import PartValues, SteppedValues, Storing, noisy_piece
from congenial.invariants.written import resolve_invariant
from support.sent import sent

TREE = cg.Tree.from_parents([-1, 0, 0, 0])


def piece(number, scales=(np.inf, 1e6, 1e6, 1e6)):
    resolved = resolve_invariant(cg.consistent(TREE) & cg.exactly([3]), 4, TREE)
    mechanism = cg.Additive(cg.DiscreteLaplace(np.array(scales)), TREE)
    y = np.array([0, 5, -2, 4])
    return noisy_piece(TREE, mechanism, resolved, y, 0.5, np.array([number]))


def test_values_are_kept_by_kind_and_part(tmp_path):
    kept = PartValues(tmp_path)
    Storing(kept, "one")(piece(0), np.arange(4.0))
    kept.keep("other", 0, np.ones(4))
    kept.keep("one", 1, np.zeros(4))
    assert kept.values("one", 0).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert kept.values("other", 0).tolist() == [1.0] * 4
    kept.keep_measured(2, TREE, np.array([0, 5, -2, 4]))
    tree, measured = kept.measured(2)
    assert tree.parents.tolist() == TREE.parents.tolist()
    assert measured.tolist() == [0, 5, -2, 4]


def test_values_change_for_readers_when_a_step_is_done(tmp_path):
    kept = SteppedValues(tmp_path)
    for step, value in (("one", 1.0), ("two", 2.0)):
        kept.begin(step)
        for number in range(2):
            kept.keep("a", number, np.full(3, value + number))
        kept.end()
    kept.begin("three")
    again = sent(kept)  # in another process
    for attempt in (kept, again, again):
        assert attempt.values("a", 0).tolist() == [2.0] * 3
        attempt.keep("a", 1, attempt.values("a", 0) * 5)
        assert attempt.values("a", 1).tolist() == [10.0] * 3  # its own
        assert PartValues(tmp_path).values("a", 1).tolist() == [3.0] * 3
    assert kept.digest() == again.digest()
    again.keep("a", 1, np.zeros(3))
    assert kept.digest() != again.digest()
    kept.keep("a", 1, np.full(3, 10.0))
    kept.end()
    assert PartValues(tmp_path).values("a", 1).tolist() == [10.0] * 3
    assert {path.name for path in tmp_path.iterdir()} == {"a-0", "a-1"}


def test_a_piece_has_weights_relative_to_the_largest_of_all_counts():
    found = piece(7)
    assert found.nodes.tolist() == [7] and found.whole
    assert found.y.tolist() == [0.0, 5.0, -2.0, 4.0]
    # no weight without a measurement, nor for an exact count
    assert found.weight[[0, 3]].tolist() == [0.0, 0.0]
    # the variance of discrete Laplace noise is 2 scale^2, nearly
    np.testing.assert_allclose(found.weight[1:3], 1 / (2 * 1e12) / 0.5, rtol=1e-9)
