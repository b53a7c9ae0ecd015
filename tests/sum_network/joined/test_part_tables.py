"""Tables of a part: the same bits each time, whatever is outside; draws below a given root."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import NumericalError
from congenial.sum_network import of_tree, share_noise
from congenial.sum_network.joined import attempt_part, message_of
from congenial.sum_network.joined.part_tables import Outside, PartSums, fill_part
from congenial.sum_network.windows import place_classes

ALONE = Outside(0.0, np.inf, 1e-5)


def part_of(scale=2.0, parents=(-1, 0, 0, 1, 1, 2, 2, 2), least=-3.0):
    tree = cg.Tree.from_parents(parents)
    n = len(tree)
    ends = np.full(n, least), np.full(n, np.inf)
    weights = share_noise(1, np.full(n, scale), ends, np.zeros(n, dtype=bool), n)
    return PartSums(of_tree(tree), weights, 0.5)


@pytest.mark.parametrize("outside", [Outside(7.0, 4.0, 1e-6), Outside(-4.0, 9.0, 1e-8)])
def test_what_is_outside_moves_windows_only(outside):
    for scale in (0.5, 2.0, 5.0):
        part = part_of(scale)
        alone, moved = message_of(part, ALONE), message_of(part, outside)
        assert not moved.same_as(alone)
        values = np.arange(max(alone.lo, moved.lo), min(alone.hi, moved.hi) + 1)
        one, other = (
            np.log(sent.table[values - sent.lo]) - sent.theta * values for sent in (alone, moved)
        )
        # the tables are divided by constants, and exceed the message at their ends
        apart = (one - other)[np.abs(values) <= 2 * scale]
        assert np.ptp(apart) < 1e-4


def test_tables_filled_again_have_the_same_bits():
    for outside in (ALONE, Outside(3.0, 4.0, 1e-6)):
        assert message_of(part_of(), outside).same_as(message_of(part_of(), outside))


def test_draws_add_up_to_the_given_roots():
    part = part_of()
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2, 2])
    roots = np.array([0, 4, -3, 8, 1])
    for outside in (ALONE, Outside(3.0, 4.0, 1e-6)):
        accepted, drawn = attempt_part(
            part, message_of(part, outside), outside, roots, cg.seeded(1)
        )
        assert accepted.all() and drawn.shape == (5, 8)
        np.testing.assert_array_equal(drawn[:, 0], roots)
        assert tree.is_consistent(drawn)
        assert (drawn[:, 3:] >= -3).all()


def test_a_message_of_other_counts_is_refused():
    part, sent = part_of(), message_of(part_of(2.5), ALONE)
    with pytest.raises(NumericalError, match="changed"):
        attempt_part(part, sent, ALONE, np.zeros(1, dtype=np.int64), cg.seeded(1))


def test_the_message_is_the_table_of_the_sum_below_the_root():
    tables = fill_part(part_of(), ALONE)
    network = tables.network
    np.testing.assert_array_equal(tables.message.table, tables.of_class(network.sent[0]))
    np.testing.assert_array_equal(tables.message.tails, tables.tails[network.sent[0]])


def test_a_part_of_a_million_counts_under_wide_noise_is_drawn():
    # Most counts are near 0, so their noise would carry the sum half a million away; with
    # multipliers from means of single weights, tables grew until they were refused.
    tracts, leaves, rng = 1000, 1000, np.random.default_rng(1)
    small = [np.full(3, 2), np.repeat(np.arange(3 + tracts, 6 + tracts), 4)]
    inner = [[-1, 0, 0], np.full(tracts, 1), small[0]]
    below = [np.repeat(np.arange(3, 3 + tracts), leaves), small[1]]
    tree = cg.Tree.from_parents(np.concatenate((*inner, *below)))
    size = tracts * leaves
    where = (size * rng.random(2 * size) ** 2).astype(np.int64)
    x = tree.roll_up(np.append(np.bincount(where, minlength=size), np.ones(12, dtype=np.int64)))
    scale = np.where(np.arange(len(tree)) == 0, np.inf, 6.5)
    noisy = cg.Additive(cg.DiscreteLaplace(scale), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative() & cg.exactly([0]), 1)
    z = parted.sample(x, rng=cg.seeded(1))
    assert z[0] == x[0] and z.min() == 0
    # the noise of both parts is about as large as alone: its standard deviation is 9
    assert np.abs(z[1:3] - x[1:3]).max() < 100


def test_a_message_states_the_moments_of_its_table_also_where_counts_press_against_bounds():
    rng, far = np.random.default_rng(7), 0
    for _ in range(300):
        # a root, nodes with noise of their own, and two leaves below each, all at least 0
        inner = int(rng.integers(1, 8))
        parents = [-1, *[0] * inner, *np.repeat(np.arange(1, inner + 1), 2)]
        part = part_of(float(rng.choice([0.5, 2.0, 10.0])), parents, least=0.0)
        message = message_of(part, ALONE)
        values = message.lo + np.arange(message.table.size)
        share = message.table / message.table.sum()
        mean = share @ values
        np.testing.assert_allclose(message.place[0], mean, rtol=1e-9, atol=1e-9)
        variance = share @ (values - mean) ** 2
        np.testing.assert_allclose(message.place[1], variance, rtol=1e-7, atol=1e-9)
        tables = fill_part(part, ALONE)
        placed = place_classes(tables.network)
        gaussian = float(placed.mean[tables.network.sent[0]])
        far += abs(gaussian - mean) > np.sqrt(variance)
    assert far > 30  # a Gaussian law in the place of each table has another mean
