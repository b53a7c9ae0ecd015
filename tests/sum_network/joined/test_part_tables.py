"""Tables of a part: the same bits each time, whatever is outside; draws below a given root."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.sum_network import of_tree, share_noise
from congenial.sum_network.joined import draw_part
from congenial.sum_network.joined.part_tables import Outside, PartSums, fill_part, message_of

ALONE = Outside(0.0, np.inf, 0.15)


def part_of(scale=2.0, parents=(-1, 0, 0, 1, 1, 2, 2, 2), least=-3.0):
    tree = cg.Tree.from_parents(parents)
    n = len(tree)
    ends = np.full(n, least), np.full(n, np.inf)
    weights = share_noise(1, np.full(n, scale), ends, np.zeros(n, dtype=bool), n)
    return PartSums(of_tree(tree), weights, 1e-9)


def untilted(message, values):
    entries = message.table[values - message.lo]
    return np.log(entries) + message.log_scale - message.theta * values


@pytest.mark.parametrize("outside", [Outside(7.0, 4.0, 0.01), Outside(-4.0, 9.0, 1e-4)])
def test_what_is_outside_moves_windows_only(outside):
    for scale in (0.5, 2.0, 5.0):
        part = part_of(scale)
        alone, moved = message_of(part, ALONE), message_of(part, outside)
        assert not moved.same_as(alone)
        values = np.arange(max(alone.lo, moved.lo), min(alone.hi, moved.hi) + 1)
        lost = np.maximum(*(m.lost[values - m.lo] / m.table[values - m.lo] for m in (alone, moved)))
        sure = lost < 1e-9
        assert sure.sum() > 3
        apart = untilted(alone, values[sure]) - untilted(moved, values[sure])
        assert np.abs(apart).max() < 1e-8


def test_tables_filled_again_have_the_same_bits():
    for outside in (ALONE, Outside(3.0, 4.0, 0.01)):
        assert message_of(part_of(), outside).same_as(message_of(part_of(), outside))


def test_draws_add_up_to_the_given_roots():
    part = part_of()
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
    roots = np.array([0, 4, -3, 8, 1])
    for outside in (ALONE, Outside(3.0, 4.0, 0.01)):
        drawn = draw_part(part, message_of(part, outside), outside, roots, cg.seeded(1))
        assert drawn.shape == (5, 8)
        np.testing.assert_array_equal(drawn[:, 0], roots)
        assert tree.is_consistent(drawn)
        assert (drawn[:, 3:] >= -3).all()


def test_a_message_of_other_counts_is_refused():
    part, sent = part_of(), message_of(part_of(2.5), ALONE)
    with pytest.raises(NumericalError, match="changed"):
        draw_part(part, sent, ALONE, np.zeros(1, dtype=np.int64), cg.seeded(1))


def test_the_message_is_the_table_of_the_sum_below_the_root():
    tables = fill_part(part_of(), ALONE)
    network = tables.network
    np.testing.assert_array_equal(tables.message.table, tables.of_class(network.sent[0]))
    assert 0 < tables.message.error < tables.error
