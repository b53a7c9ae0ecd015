"""Windows of intervals by inversion: widened where laws need it, until they do not move."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError, UnsupportedError
from congenial.inference import inversion
from congenial.sum_network import extremes
from papers.studies.sources import blocks
from support.leaf_bounds import released_by


def small_beside_a_family(*, size, scale):
    """Return a mechanism and a release whose largest family is nearly empty."""
    mechanism = released_by([-1, 0, 0] + [1] * size + [2] * 3, "laplace", np.full(size + 6, scale))
    tree = mechanism.mechanism.tree
    return mechanism, tree.roll_up(np.where(np.arange(size + 3) % 7 == 6, 5, 0))


@pytest.mark.parametrize(("size", "scale"), [(25, 3.0), (40, 2.0)])
@pytest.mark.parametrize("first", [0.05, 0.2])
def test_windows_that_are_far_too_narrow_are_widened_until_they_do(size, scale, first, monkeypatch):
    mechanism, z = small_beside_a_family(size=size, scale=scale)
    right = cg.inference.inverted_intervals(mechanism, z)
    monkeypatch.setattr(extremes, "_FIRST", first)
    assert np.array_equal(cg.inference.inverted_intervals(mechanism, z), right)


def test_windows_with_small_ends_are_still_widened_if_laws_move(monkeypatch):
    mechanism, z = small_beside_a_family(size=25, scale=3.0)
    right = cg.inference.inverted_intervals(mechanism, z)
    monkeypatch.setattr(extremes, "_FIRST", 0.1)
    assert np.array_equal(cg.inference.inverted_intervals(mechanism, z), right)
    monkeypatch.setattr(extremes, "_STILL", np.inf)
    monkeypatch.setattr(extremes, "_EDGE", np.inf)
    assert not np.array_equal(cg.inference.inverted_intervals(mechanism, z), right)


def test_only_windows_around_nodes_that_moved_are_widened():
    # two families of unlike leaves, so that no two nodes have one class
    scales = np.arange(1.0, 12.0)
    mechanism = released_by([-1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "laplace", scales)
    tree = mechanism.mechanism.tree
    resolved, _, bound = inversion._checked(mechanism)
    cut = inversion._cuts(mechanism, np.zeros(11, dtype=np.int64), bound, 0.01)
    laws = extremes._Laws(extremes.of_tree(tree), inversion._weights(mechanism, resolved, cut))
    place = laws.cut.slot_class[:11]

    def near(*nodes):
        return set(np.flatnonzero(laws.around(tree, np.isin(np.arange(11), nodes))[place]).tolist())

    assert near(4) == {1, 3, 4, 5, 6}
    assert near(2) == {0, 1, 2, 7, 8, 9, 10}
    assert near(0) == {0, 1, 2}
    assert near() == set()
    # sums of some of a family are among what is widened: classes of no node
    assert laws.around(tree, np.arange(11) == 4).sum() > 5 + 1


def test_too_much_work_is_refused(monkeypatch):
    mechanism, z = small_beside_a_family(size=25, scale=3.0)
    monkeypatch.setattr(extremes, "_FIRST", 0.1)
    monkeypatch.setattr(extremes, "_TIMES", 2)
    with pytest.raises(NumericalError, match="wider tables"):
        cg.inference.inverted_intervals(mechanism, z)


def test_windows_that_would_be_too_large_are_widened_less(monkeypatch):
    # nearly all laws reach the ends of their windows, and none needs wider ones
    mechanism = released_by(
        [-1, 0, 0] + [1] * 30 + [2] * 30, "laplace", np.full(63, 20.0), pinned=[0]
    )
    z = np.zeros(63, dtype=np.int64)
    work = []

    class Spied(extremes._Messages):
        def __init__(self, laws_of, generous):
            super().__init__(laws_of, generous)
            work.append(self.work)

    monkeypatch.setattr(extremes, "_Messages", Spied)
    right = cg.inference.inverted_intervals(mechanism, z)
    doubled = work[1]
    assert doubled > 1.5 * 1.2**2 * work[0]
    monkeypatch.setattr(extremes, "_WORK_LIMIT", int(doubled) - 1)
    work.clear()
    assert np.array_equal(cg.inference.inverted_intervals(mechanism, z), right)
    assert len(work) == 2
    assert work[1] < doubled
    # where the first windows are too much already, nothing helps
    monkeypatch.setattr(extremes, "_WORK_LIMIT", int(work[0]) - 1)
    limits = rf"products, and the limits are 1\.0 GiB and {int(work[0]) - 1:.0g}; use less noise"
    with pytest.raises(UnsupportedError, match=limits.replace("+", r"\+")):
        cg.inference.inverted_intervals(mechanism, z)


def test_laws_that_moved_after_they_had_hardly_moved_are_not_settled(monkeypatch):
    mechanism, z = small_beside_a_family(size=25, scale=3.0)
    answers = []

    def moved(before, found, share):
        # the last try moves an end again, and there is no other
        answers.append(share)
        return np.array([share == extremes._STILL or len(answers) > 2])

    monkeypatch.setattr(extremes, "_moved", moved)
    monkeypatch.setattr(extremes._Laws, "around", lambda *_: np.zeros(1, dtype=np.int64))
    monkeypatch.setattr(extremes, "_TIMES", 2)
    cg.inference.inverted_intervals(mechanism, z)
    answers.clear()
    monkeypatch.setattr(extremes, "_TIMES", 3)
    with pytest.raises(NumericalError, match="wider tables"):
        cg.inference.inverted_intervals(mechanism, z)


def test_all_blocks_of_a_state_are_refused_under_much_noise():
    # as the pages say; under noise of scale 1 they are not, as the study of inversion shows
    tree, x = blocks()
    mechanism = cg.condition(
        cg.Additive(cg.DiscreteLaplace(4.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    z = np.asarray(mechanism.sample(x, rng=cg.seeded(1)))
    with pytest.raises(NumericalError, match="too far apart"):
        cg.inference.inverted_intervals(mechanism, z)


def test_a_county_that_needs_wider_windows_in_few_places_is_answered():
    tree, x = blocks("53023")
    mechanism = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    z = np.asarray(mechanism.sample(x, rng=cg.seeded(1)))
    lower, upper = cg.inference.inverted_intervals(mechanism, z)
    assert ((lower <= z) & (z <= upper)).all()
    assert ((lower <= x) & (x <= upper)).mean() > 0.9
