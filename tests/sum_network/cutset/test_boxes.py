"""Windows of cut sets: what lies beyond them, by convolution."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.errors import UnsupportedError
from congenial.kernels.numerics import laws
from congenial.sum_network.cutset.boxes import place_box, sum_of, summable
from congenial.sum_network.weights import Unary
from support.seeds import for_each_seed

INF = np.inf


def noise(rng, n):
    kind = rng.choice([laws.LAPLACE, laws.GAUSSIAN], n)
    scale, lo = rng.choice([0.5, 1.0, 4.0], n), rng.choice([-INF, 0.0, -3.0], n)
    return Unary(kind, scale, np.zeros(n), lo, np.where(rng.random(n) < 0.5, INF, 5.0))


def law_of(unary, v, reach=200):
    u = np.arange(max(unary.lo[v], -reach), min(unary.hi[v], reach) + 1)
    away = np.abs(u) / unary.scale[v]
    p = np.exp(-away if unary.kind[v] == laws.LAPLACE else -0.5 * away**2)
    return u.astype(int), p / p.sum()


@for_each_seed(150)
def test_a_signed_sum_leaves_its_reach_with_at_most_the_budget(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    unary, budget = noise(rng, n), float(rng.choice([3.0, 8.0, 15.0]))
    box = place_box((), unary, np.zeros(n, dtype=bool), budget)
    signs = rng.choice([-1, 1], n)
    low, high = box.reach(dict(enumerate(signs.tolist())))
    first, law = 0, np.ones(1)
    for v in range(n):
        u, p = law_of(unary, v)
        first += min(signs[v] * u[0], signs[v] * u[-1])
        law = np.convolve(law, p if signs[v] > 0 else p[::-1])
    s = first + np.arange(law.size)
    for mass, end in ((law[s < low].sum(), low), (law[s > high].sum(), high)):
        assert mass <= np.exp(-budget)
        # not needlessly far, where values go on: a third of the way more than the budget has left
        near = law[s < end / 3].sum() if end < 0 else law[s > end / 3].sum()
        assert near > np.exp(-budget) or abs(end) < 13 or not s[0] < 3 * end < s[-1]


@for_each_seed(100)
def test_summed_losses_leave_their_ball_with_at_most_the_budget(seed):
    rng = np.random.default_rng(seed)
    unary = noise(rng, 2)
    box = place_box((), unary, np.zeros(2, dtype=bool), 6.0)
    limit, _ = box.ball([0, 1])
    (_, p), (_, q) = law_of(unary, 0), law_of(unary, 1)
    with np.errstate(divide="ignore"):
        loss = np.log(p.max()) - np.log(p)[:, None] + np.log(q.max()) - np.log(q)
    assert np.outer(p, q)[loss > limit].sum() <= np.exp(-6.0)


def test_an_unmeasured_variable_follows_from_its_sum():
    kind = np.array([laws.LAPLACE, laws.LAPLACE, laws.FLAT])
    ends = np.full(3, INF)
    unary = Unary(kind, np.ones(3), np.zeros(3), -ends, ends)
    none = np.zeros(3, dtype=bool)
    box = place_box(({0: 1, 1: 1, 2: -1},), unary, none, 30.0)
    assert box.spans[2] == ({0: 1, 1: 1}, 0, 0)
    assert box.reach({0: 1, 1: 1}) == (box.lo[2], box.hi[2])
    assert box.hi[2] > box.hi[0]
    with pytest.raises(UnsupportedError, match="do not determine a query that is not measured"):
        place_box((), unary, none, 30.0)
    assert summable(unary, none)
    assert not summable(Unary(kind, np.full(3, 1e6), np.zeros(3), -ends, ends), none)


def test_signed_sums_lose_what_cancels():
    assert sum_of(({1: 1, 2: 1}, -1, 2), ({1: -1, 3: 2}, 0, 1)) == ({2: 1, 3: 2}, -1, 3)
