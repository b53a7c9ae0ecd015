"""Parts of a family's message, against their definitions."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from congenial.kernels.network.split_families import (
    FamilyMessages,
    Splits,
    cut_off,
    leaf_message,
    tilt_family,
)
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.laws import FLAT, GAUSSIAN, LAPLACE
from support.seeds import for_each_seed

NATS = 40.0


@njit()
def leaf(kind, inverse, y, lowest, highest, alpha, odds, p):
    """Return the message of a leaf; kernels that are compiled into others need a caller."""
    return leaf_message(kind, inverse, y, lowest, highest, alpha, odds, p, NATS, 0, np.empty(8))


@njit()
def cut(values, begin, stop, nats, more, lowest, highest):
    return cut_off(values, begin, stop, nats, more, lowest, highest)


@njit()
def tilted(splits, messages):
    return tilt_family(0, splits, messages, NATS)


@for_each_seed(300)
def test_a_leafs_message_is_its_weights_within_the_nats(seed):
    rng = np.random.default_rng(seed)
    kind = int(rng.choice([FLAT, GAUSSIAN, LAPLACE]))
    scale, alpha, p = (
        10.0 ** rng.uniform(-0.5, 0.8),
        10.0 ** rng.uniform(-2, 2),
        rng.uniform(0.05, 0.9),
    )
    inverse = 0.5 / scale**2 if kind == GAUSSIAN else 1.0 / scale
    y, odds = float(rng.integers(-5, 60)), float(rng.choice([0.0, 2.0]))
    out, first, size, log = leaf(kind, inverse, y, 0.0, 1e6, alpha, odds, p)
    k = np.arange(20_000.0)
    weight = gammaln(k + alpha) - gammaln(alpha) - gammaln(k + 1.0) + k * np.log(p)
    if kind != FLAT:
        weight -= inverse * (k - y) ** 2 if kind == GAUSSIAN else inverse * abs(k - y)
    weight[0] += np.log1p(odds)
    found = np.full(k.size, -np.inf)
    with np.errstate(divide="ignore"):
        found[first : first + size] = np.log(out[:size]) + log
    np.testing.assert_allclose(found[first : first + size], weight[first : first + size], atol=1e-8)
    if kind != FLAT:  # that of an unmeasured leaf is checked with the whole law
        lost = np.delete(weight, np.arange(first, first + size)).max()
        assert lost <= weight.max() - NATS + 1e-6


@for_each_seed(300)
def test_a_message_is_cut_where_its_weights_are_small(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    values = np.exp(-0.5 * ((np.arange(n) - rng.uniform(0, n)) / rng.uniform(0.3, 5.0)) ** 2)
    nats, more = float(rng.uniform(1.0, 30.0)), int(rng.integers(0, 4))
    lowest, highest = sorted(rng.integers(0, n + 1, size=2).tolist())
    if lowest == highest:
        lowest, highest = 0, n
    begin, stop, top = cut(values, 0, n, nats, more, lowest, highest)
    inside = values[lowest:highest]
    assert top == inside.max()
    large = lowest + np.flatnonzero(inside >= top * np.exp(-nats))
    assert begin == max(lowest, large[0] - more)
    assert stop == min(highest, large[-1] + 1 + more)


@for_each_seed(2_000)
def test_messages_of_inner_nodes_are_moved_to_the_center(seed):
    """Under Laplace noise their sum rises in steps with the tilt, and a step may be overshot."""
    rng = np.random.default_rng(seed)
    k, scale = int(rng.integers(2, 12)), rng.uniform(2.0, 40.0)
    room = int(rng.integers(5, 35) * scale)
    i = np.arange(2.0 * room + 1.0)
    wide, slope = rng.uniform(3.0, 100.0) * scale, rng.uniform(-1.5, 1.5) / scale
    logs = slope * (i - room) - abs(i - room) / scale - 0.5 * ((i - room) / wide) ** 2
    weight = np.exp(np.maximum(logs - logs.max(), -600.0))
    first = rng.integers(0, 1_000, k + 1)
    center = (first[1:] + room).sum() + rng.uniform(-0.4, 0.4) * room * k
    one, none = np.ones(k + 1), np.full(k + 1, -1.0)
    splits = Splits(
        np.r_[0, np.full(k + 1, k)], np.arange(1, k + 1), none, one, one, one, one.copy(), one,
        np.r_[center, none[1:]],
    )  # fmt: skip
    sizes, places = np.full(k + 1, i.size), np.r_[0, i.size * np.arange(k)]
    messages = FamilyMessages(first, sizes, places, np.tile(weight, k))
    log = tilted(splits, messages)
    tilt = np.log(splits.p[0])
    moved = weight * np.exp(tilt * i - (tilt * i + np.log(weight)).max())
    np.testing.assert_allclose(messages.table, np.tile(moved, k), rtol=1e-9, atol=1e-300)
    divisor = k * (np.log(weight) + tilt * i).max() + tilt * first[1:].sum()
    np.testing.assert_allclose(log, divisor, rtol=1e-9, atol=1e-9)
    mean = moved @ i / moved.sum()
    variance = k * (moved @ (i - mean) ** 2 / moved.sum())
    assert (first[1:].sum() + k * mean - center) ** 2 <= 0.5 * NATS * variance
