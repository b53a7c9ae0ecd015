"""Splits without tables, put in the place of tables: where, with what law, at what error."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.kernels.network import descend
from congenial.sum_network import direct

pytestmark = pytest.mark.kernels

LEAST = 1e-6
# Root 0 over 1 and 2; five leaves below each.
TWO_FAMILIES = [-1, 0, 0, *[1] * 5, *[2] * 5]


@pytest.fixture
def always(monkeypatch):
    monkeypatch.setattr(direct, "_WORTH", 0.0)


def conditioned(parents, pins, scale=1.5):
    tree = cg.Tree.from_parents(parents)
    scales = np.full(len(parents), 1.0) * scale
    invariant = cg.consistent(tree) & cg.exactly(pins) if pins else cg.consistent(tree)
    return cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), invariant)


def count(released, op):
    return int((released._draw_tables.network.op == op).sum())


def p_value(draws, values, probabilities):
    expected = probabilities * draws.size
    kept = expected > 20
    observed = np.array([(draws == v).sum() for v in values[kept]])
    statistic = ((observed - expected[kept]) ** 2 / expected[kept]).sum()
    return stats.chi2.sf(statistic, kept.sum() - 1)


@pytest.mark.parametrize(
    ("parents", "pins", "splits"),
    [
        ([-1, *[0] * 6], [0], 1),
        ([-1, *[0] * 6], [], 0),  # the root is noisy: its sum is needed everywhere
        (TWO_FAMILIES, [1, 2], 2),
        (TWO_FAMILIES, [1], 0),  # its tables serve the other family, which is not pinned
        ([-1, 0, 0, *[1] * 5, *[2] * 4], [1], 1),
        (TWO_FAMILIES, [0], 0),
        ([-1, 0, 0, *[1] * 5, *[2] * 4], [0, 1, 2], 2),
        ([-1, *[0] * 7, *[1] * 5], [1], 1),
        ([-1, *[0] * 7, *[1] * 5], [0, 1], 1),  # the root's sum is merged with node 1
    ],
)
def test_pinned_families_are_split_without_tables(always, parents, pins, splits):
    released = conditioned(parents, pins)
    assert count(released, descend.DIFFERENCE) == splits
    x = np.zeros(len(parents), dtype=np.int64)
    draws = released.sample(x, 20_000, cg.seeded(1))
    tree = released.mechanism.tree
    for row in draws[:10]:
        assert tree.is_consistent(row)
    assert (draws[:, pins] == 0).all()
    wrong = [conditioned(parents, pins, 1.5 * share) for share in (0.7, 1.3)]
    for node in (len(parents) - 1, int(tree.leaves[0])):
        if node in pins:
            continue
        assert p_value(draws[:, node], *released.marginal(node, x)) > LEAST
        for other in wrong:
            assert p_value(draws[:, node], *other.marginal(node, x)) < LEAST


def test_pairs_of_siblings_have_their_joint_law(always):
    released = conditioned([-1, *[0] * 5], [0])
    x = np.zeros(6, dtype=np.int64)
    draws = released.sample(x, 60_000, cg.seeded(2))
    (first, second), joint = released.joint([1, 4], x)
    expected = joint * len(draws)
    observed = np.zeros_like(expected)
    inside = np.isin(draws[:, 1], first) & np.isin(draws[:, 4], second)
    np.add.at(observed, (draws[inside, 1] - first[0], draws[inside, 4] - second[0]), 1)
    kept = expected > 10
    statistic = ((observed - expected)[kept] ** 2 / expected[kept]).sum()
    assert stats.chi2.sf(statistic, kept.sum() - 1) > LEAST


def test_small_sums_keep_their_tables():
    assert count(conditioned([-1, *[0] * 6], [0]), descend.DIFFERENCE) == 0


def test_a_large_flat_sum_takes_no_tables_at_any_scale():
    n = 2**14
    for scale in (30.0, 1e4, 1e7):
        released = conditioned([-1, *[0] * n], [0], scale)
        tables = released._draw_tables
        assert count(released, descend.DIFFERENCE) == 1
        assert tables.table.size < 10
        assert "MiB" not in released.explain()
        assert released.error_bound == 0.0
        x = np.zeros(n + 1, dtype=np.int64)
        draw = released.sample(x, rng=cg.seeded(3))[1:]
        assert draw.sum() == 0
        # noise of this scale has mean size close to it
        assert np.abs(draw).mean() == pytest.approx(scale, rel=0.06)
