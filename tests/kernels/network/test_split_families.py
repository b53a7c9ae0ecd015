"""Parts of a family's message, against their definitions."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from congenial.kernels.network.split_families import cut_off, leaf_message
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
