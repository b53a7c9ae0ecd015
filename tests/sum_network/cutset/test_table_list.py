"""Windows of the tables of a cut forest: their truncation, by convolution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from congenial.kernels.network import cutset
from congenial.kernels.numerics import laws
from congenial.sum_network.cutset.boxes import place_box
from congenial.sum_network.cutset.table_list import Compiler
from congenial.sum_network.weights import Unary
from support.seeds import for_each_seed

INF = np.inf
BUDGET = 8.0


def compiler(rng, n):
    scale = rng.choice([0.5, 1.0, 4.0], n)
    lo = rng.choice([-INF, 0.0, -3.0], n)
    unary = Unary(np.full(n, laws.LAPLACE), scale, np.zeros(n), lo, np.full(n, INF))
    return Compiler(place_box((), unary, np.zeros(n, dtype=bool), BUDGET)), unary


def law_of(unary, v, flip, reach=200):
    """Return the least value and the probabilities of ``flip * value``."""
    u = np.arange(max(unary.lo[v], -reach), reach + 1)
    p = np.exp(-np.abs(u) / unary.scale[v])
    p /= p.sum()
    return (int(u[0]), p) if flip > 0 else (-int(u[-1]), p[::-1])


@for_each_seed(60)
def test_a_sum_leaves_its_window_with_at_most_the_budget_of_its_events(seed):
    rng = np.random.default_rng([103, seed])
    n = int(rng.integers(1, 7))
    made, unary = compiler(rng, n)
    flips = rng.choice([-1, 1], n).tolist()
    top = made.merge_all([made.unary(v, flip) for v, flip in enumerate(flips)])
    first, law = 0, np.ones(1)
    for v, flip in enumerate(flips):
        low, p = law_of(unary, v, flip)
        first, law = first + low, np.convolve(law, p)
    s = first + np.arange(law.size)
    lo, hi = made.columns["lo"][top], made.columns["hi"][top]
    own = [(made.columns["lo"][t], made.columns["hi"][t]) for t in range(n)]
    # no wider than its parts, which is all that two wide ones would need
    assert sum(low for low, _ in own) <= lo <= hi <= sum(high for _, high in own)
    events = 2 * (len(made.sums) + n)
    assert law[(s < lo) | (s > hi)].sum() <= events * np.exp(-BUDGET)
    assert made.columns["op"].count(cutset.MERGE) == n - 1


@for_each_seed(60)
def test_a_tally_holds_the_signed_sum_of_the_values_that_entered(seed):
    rng = np.random.default_rng([104, seed])
    n = int(rng.integers(2, 5))
    made, unary = compiler(rng, n)
    signs = rng.choice([-1, 1], n).tolist()
    entered = [made.enter(made.unary(v, 1), sign) for v, sign in enumerate(signs)]
    top = made.merge_all(entered)
    first, law = 0, np.ones(1)
    for v, sign in enumerate(signs):
        low, p = law_of(unary, v, sign)
        first, law = first + low, np.convolve(law, p)
    s = first + np.arange(law.size)
    lo, hi = made.columns["tally_lo"][top], made.columns["tally_hi"][top]
    assert lo < hi
    assert law[(s < lo) | (s > hi)].sum() <= 2 * (len(made.sums) + n) * np.exp(-BUDGET)
    closed = made.close(entered, 0, shifted=True)
    # the first one's value is left, and no tally
    assert (made.columns["lo"][closed], made.columns["hi"][closed]) == (
        made.columns["lo"][entered[0]],
        made.columns["hi"][entered[0]],
    )
    assert made.columns["tally_lo"][closed] == made.columns["tally_hi"][closed] == 0
    assert made.moving[closed] and not made.moving[top]


def test_tables_that_never_change_are_merged_first():
    made, _ = compiler(np.random.default_rng(1), 5)
    parts = [made.unary(v, 1) for v in range(5)]
    moving = [made.read(t, parts[4], 1, 0, shifted=True) for t in parts[:2]]
    top = made.merge_all([moving[0], parts[2], moving[1], parts[3]])
    left, right = made.columns["left"][top], made.columns["right"][top]
    assert made.moving[top] and made.moving[right] and not made.moving[left]
    assert {made.columns[side][left] for side in ("left", "right")} == {parts[2], parts[3]}
    nothing = made.merge_all([])
    assert made.columns["op"][nothing] == cutset.POINT


def test_the_window_of_a_determined_value_covers_the_moves_of_the_others():
    made, _ = compiler(np.random.default_rng(2), 3)
    spans = [({1: 1}, -2, 5), ({1: 1, 2: -1}, 0, 0), ({2: 1}, 0, 0)]
    made = Compiler(replace(made.box, spans=spans))
    one, two = made.unary(0, -1), made.unary(1, 1)
    assert made.spans[one] == ({1: -1}, -5, 2)
    assert made.spans[made.merge(one, two)] == ({2: -1}, -5, 2)
