"""Kernels that compare with a tolerance: thousands of random problems, of numbers of any sizes.

A tolerance that depends on one number of a problem fails if another number is far larger, possibly
on some processors only. The tests therefore use sizes that differ by ten orders of magnitude, and
compare results with the rounding errors of the inputs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.domain.tree import Tree
from congenial.imaging.closest import Projector
from congenial.imaging.solvers.problem import checked_weights
from congenial.invariants.written import (
    bounds,
    consistent,
    exactly,
    nonnegative,
    resolve_invariant,
)
from congenial.kernels.network import marginals
from support.kernel_entries import entry

pytestmark = [pytest.mark.kernels, pytest.mark.uncompiled]


def family(seed):
    """One family under a pinned sum, its measurements of all sizes, some of which cancel."""
    draw = np.random.default_rng(seed)
    size = int(draw.integers(2, 30))
    tree = Tree.from_parents([-1, *[0] * size])
    y = draw.normal(0.0, 1.0, size + 1) * 10.0 ** draw.integers(0, 7, size + 1)
    half = size // 2
    if seed % 2:
        y[1 : half + 1] = draw.normal(0.0, 1.0, half) - y[half + 1 : 2 * half + 1]
    y[0] = draw.choice([0.0, 5.0, 1e4])
    invariant = consistent(tree) & exactly([0])
    invariant &= nonnegative() if seed % 3 else bounds(-3.0, 1e9)
    return tree, y, invariant, draw


def projector(tree, invariant, *, norm, integer):
    """A projection as `cg.project` makes it, which refuses a total of 0 over large values."""
    resolved = resolve_invariant(invariant, len(tree), tree)
    return Projector(resolved, np.ones(len(tree)), norm, integer)


def test_closest_points_of_thousands_of_families():
    for seed in range(3000):
        tree, y, invariant, draw = family(seed)
        weight = draw.choice([0.5, 1.0, 4.0], len(tree))
        lo = resolve_invariant(invariant, len(tree)).lo[1:]
        made = Projector(
            resolve_invariant(invariant, len(tree), tree),
            checked_weights(weight, y.size),
            "l2",
            False,
        )
        z = made.active_set.solve(y)  # finds it by itself, without the slower way
        size = np.abs(y[1:]) + np.abs(z[1:])
        close = 2.0**-50 * size.sum()
        assert abs(z[1:].sum() - z[0]) <= y.size * close
        # one price moves all, by their weights, but for those that it would take below their ends
        price, free = (z[1:] - y[1:]) * weight[1:], z[1:] > lo
        assert (price >= price[free].max(initial=-np.inf) - 4.0 * close).all()


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_integers_of_thousands_of_families_add_up(norm):
    for seed in range(1000):
        tree, y, invariant, _ = family(seed)
        made = projector(tree, invariant, norm=norm, integer=True)
        z = made.apply(y, cg.seeded(seed))
        assert z[0] == y[0]
        assert z[1:].sum() == y[0]
        assert (z[1:] >= resolve_invariant(invariant, len(tree)).lo[1:]).all()


def test_projections_are_rounded_for_noise_of_any_size():
    for seed in range(2000):
        tree, y, invariant, _ = family(seed)
        z = projector(tree, invariant, norm="l2", integer=False).apply(y, cg.seeded(seed))
        rounded = cg.imaging.round_unbiased(z, tree, cg.seeded(seed))
        assert tree.is_consistent(rounded)
        assert (np.abs(rounded - z) < 1.0 + 1e-6).all()


def exact_sums(a, b):
    """Convolution of floating-point numbers from 2^-60 to 1, in units of 2^-240."""
    a, b = ([int(Fraction(x) * 2**120) for x in values] for values in (a, b))
    out = [0] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


CONVOLVE = {
    name: entry(f"numerics.convolution.{name}") for name in ("convolve_plainly", "convolve_closely")
}


@pytest.mark.parametrize("name", CONVOLVE)
def test_convolutions_are_within_their_units_whether_products_are_fused_or_not(name):
    draw = np.random.default_rng(5)
    worst = 0.0
    for _ in range(400):
        na, nb = (int(n) for n in draw.integers(1, 40, 2))
        a, b = (2.0 ** -np.minimum(draw.exponential(6.0, n), 60.0) for n in (na, nb))
        out = np.empty(na + nb - 1)
        work = np.zeros((4, 2 * out.size + 16))
        CONVOLVE[name](a, 0, na, b, 0, nb, 0, out, 0, out.size, work)
        more = (min(na, nb) + 7) // 8 - 1 if name == "convolve_plainly" else 0
        for got, true in zip(out, exact_sums(a, b), strict=True):
            off = abs(int(Fraction(got) * 2**240) - true) * 2**53 / true
            assert off <= 4.0 + 2.0**-8 + more
            worst = max(worst, off)
    assert worst > 0.5  # it is rounding that is seen


def test_doubled_precision_is_exact_on_every_processor():
    # a product that is fused with a sum would take these apart
    product, total = entry("numerics.doubled.two_product"), entry("numerics.doubled.two_sum")
    draw = np.random.default_rng(6)
    xs, ys = (draw.normal(size=5000) * 2.0 ** draw.integers(-40, 40, 5000) for _ in range(2))
    for x, y in zip(xs.tolist(), ys.tolist(), strict=True):
        p, low = product(x, y)
        assert Fraction(p) + Fraction(low) == Fraction(x) * Fraction(y)
        s, low = total(x, y)
        assert Fraction(s) + Fraction(low) == Fraction(x) + Fraction(y)


def test_summaries_of_thousands_of_laws_do_not_depend_on_rounding():
    draw = np.random.default_rng(7)
    ties = 0
    for _ in range(3000):
        half = draw.integers(1, 9, int(draw.integers(1, 6)))
        p = np.concatenate((half, half[::-1])) if draw.random() < 0.7 else half
        lo, alpha = float(-draw.integers(0, p.size)), float(draw.choice([0.05, 0.1, 0.2, 0.5]))
        seen = []
        for scale in (1.0, 1.0 / 3.0, 0.1, 1e-7 / 7.0):
            out = np.empty(marginals.SUMMARIES)
            moved = p * scale * (1.0 + draw.integers(-4, 5, p.size) * 2.0**-52)
            marginals.summarise(moved, lo, alpha, out)
            seen.append([int(v) for v in out[2:6]])
        assert all(found == seen[0] for found in seen)
        below, total = np.cumsum(p), p.sum()
        median, low, high, reach = seen[0]
        assert median - lo == np.flatnonzero(2 * below >= total)[0]
        ties += (2 * below == total).any()
        wanted = (1 - Fraction(str(alpha))) * int(total)
        inside = int(p[int(low - lo) : int(high - lo) + 1].sum())
        assert inside >= wanted
        held = np.abs(np.arange(p.size) + lo) <= reach
        assert int(p[held].sum()) >= wanted
    assert ties > 500


def test_margins_of_equally_likely_counts_do_not_depend_on_rounding():
    tails = np.array([0.1, 0.25])
    for scale in (1.0, 1.0 / 3.0, 0.1):
        p, below, above = np.full(20, scale), np.empty(2, np.int64), np.empty(2, np.int64)
        total = 0.0
        for value in p:
            total += value
        marginals.one_sided(p, total, 0.0, tails, below, above)
        assert below.tolist() == [1, 4]
        assert above.tolist() == [18, 15]
