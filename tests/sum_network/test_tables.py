"""Sums of messages: the error of a convolution, and bounds that lie out of reach."""

from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.sum_network import tables as exact
from congenial.sum_network.fourier import convolve_directly

pytestmark = pytest.mark.kernels

UNITS = 4.0 + 2.0**-8


def exactly(a, b, first, size):
    """Return the entries of a convolution as fractions."""
    x, y = [Fraction(t) for t in a], [Fraction(t) for t in b]
    return [
        sum((x[i] * y[s - i] for i in range(len(x)) if 0 <= s - i < len(y)), Fraction(0))
        for s in range(first, first + size)
    ]


def tables(rng):
    """Yield pairs of tables of many shapes and widths."""
    for n, m in ((1, 1), (1, 9), (5, 3), (8, 8), (17, 40), (70, 33), (90, 101)):
        for rate in (0.01, 0.5, 3.0, 7.0):
            u, v = np.arange(n) - rng.integers(n), np.arange(m) - rng.integers(m)
            yield np.exp(-rate * abs(u)), np.exp(-rate * abs(v))
            yield np.exp(-0.02 * rate * u**2), np.exp(-rate * abs(v)) * rng.uniform(0.1, 1.0, m)
        yield rng.uniform(size=n), rng.uniform(size=m) ** 40
    # one entry that a guess from a few rows does not see
    spike = np.full(64, 1e-30)
    spike[13] = 1.0
    yield spike, np.exp(-np.abs(np.arange(80) - 40.0))


WAYS = {
    "closely": (False, lambda terms: UNITS),
    "plainly": (True, lambda terms: 3.0 + np.ceil(terms / 8) + 2.0**-8),
}


@pytest.mark.parametrize("way", WAYS)
def test_convolutions_are_within_their_units(way):
    plain, units_of = WAYS[way]
    rng = np.random.default_rng(11)
    for a, b in tables(rng):
        full = a.size + b.size - 1
        first = int(rng.integers(full))
        for begin, size in ((0, full), (first, int(rng.integers(1, full - first + 1)))):
            out = convolve_directly(a, b, begin, size, plain=plain)
            for got, truth in zip(out.tolist(), exactly(a, b, begin, size), strict=True):
                error = abs(Fraction(got) - truth)
                # where products underflow, the certificate has 1e-290
                units = Fraction(units_of(min(a.size, b.size)) * 2.0**-53)
                assert error <= units * truth or truth < 1e-290


def test_longer_sums_without_compensation_have_larger_errors():
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.5, 1.0, 3000), rng.uniform(0.5, 1.0, 3000)
    worst = []
    for plain in (False, True):
        out = convolve_directly(a, b, 2998, 3, plain=plain)
        truth = exactly(a, b, 2998, 3)
        off = [abs(Fraction(x) - t) / t for x, t in zip(out.tolist(), truth, strict=True)]
        worst.append(float(max(off)) * 2.0**53)
    assert worst[0] < 4.0 < worst[1] < 3.0 + 375


def test_a_convolution_of_empty_and_tiny_entries_ends():
    a, b = np.array([0.0, 0.0, 1e-300]), np.array([0.0, 1e-300, 1.0, 0.0])
    out = convolve_directly(a, b, 0, 6)
    assert np.allclose(out, np.convolve(a, b), rtol=1e-15, atol=0.0)
    a, b = np.array([np.nan, 1.0]), np.array([1.0, 1.0])
    assert np.isnan(convolve_directly(a, b, 0, 3)[:2]).all()


def family(lows, scale, wide):
    """Return the law of the noise of a sum, of weight 1 at zero, times that of its summands."""
    u = np.arange(-wide, wide + 1)
    own = np.exp(-np.abs(u) / scale)
    below = np.ones(1)
    for low in lows:
        below = np.convolve(below, np.where(u >= low, own, 0.0))
    middle = below.size // 2
    return own * below[middle - wide : middle + wide + 1]


@pytest.mark.parametrize("near", [exact._NEAR, 0.02])
def test_bounds_that_windows_do_not_reach_are_left_out_and_others_hold(near, monkeypatch):
    # counts on both sides of where windows end, in two families with different tilts
    leaves = np.array([0, 3, 40, 70, 95, 110, 150, 151, 300, 700, 1, 2, 90, 130, 130, 130])
    tree = cg.Tree.from_parents([-1, 0, 0, *[1] * 10, *[2] * 6])
    x, scale = tree.roll_up(leaves), 2.0
    held, filled = [], []
    out_of_reach, fill = exact.bounds_out_of_reach, exact._fill

    def watched(*args):
        held.append(out_of_reach(*args))
        return held[-1]

    def counted(*args):
        filled.append(1)
        return fill(*args)

    monkeypatch.setattr(exact, "_NEAR", near)
    monkeypatch.setattr(exact, "bounds_out_of_reach", watched)
    monkeypatch.setattr(exact, "_fill", counted)
    invariant = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    conditioned = cg.condition(mechanism, invariant)
    one, other = family(-leaves[:10], scale, 500), family(-leaves[10:], scale, 500)
    at_mode = mechanism.noise.log_pmf(np.zeros(len(tree)), mechanism.scales).sum()
    truth = np.log((one * other[::-1]).sum()) + at_mode
    assert abs(conditioned.log_normalizer(x) - truth) < 1e-10
    assert held == ([True] if near > 1.0 else [False, True])
    assert filled == [1]  # not where windows reach bounds that were left out
    draws = conditioned.sample(x, 300, cg.seeded(5))
    assert (draws >= 0).all()
    if near > 1.0:
        used = conditioned._prepare(x).network.unary
        assert np.isneginf(used.lo).any()
        assert (-used.lo[np.isfinite(used.lo)]).max() < 150


def test_networks_of_many_classes_begin_with_wider_windows_and_have_the_same_law(monkeypatch):
    rng = np.random.default_rng(3)
    tree = cg.Tree.from_parents([-1, *[0] * 6, *np.repeat(np.arange(1, 7), 5)])
    mechanism = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    x = tree.roll_up(rng.poisson(2.0, 30))
    known = cg.consistent(tree) & cg.nonnegative()
    laws = []
    for most in (exact._MANY_CLASSES, 0):
        monkeypatch.setattr(exact, "_MANY_CLASSES", most)
        laws.append(cg.posterior(mechanism.sample(x, rng=cg.seeded(1)), mechanism, known))
        laws[-1].summary()
        assert laws[-1].error_bound < 1e-9
    one, other = (law._law.tables[0] for law in laws)
    assert other.table.size > 1.2 * one.table.size
    for v in (0, 1, 7):
        (values, p), (others, q) = (law.marginal(v) for law in laws)
        shared = np.isin(values, others), np.isin(others, values)
        assert np.abs(p[shared[0]] - q[shared[1]]).max() < 1e-10
    # wider windows that do not fit in memory are not tried
    monkeypatch.setattr(exact, "_MEMORY_LIMIT", one.table.size)
    narrow = cg.posterior(laws[0].problem.y, mechanism, known)
    assert narrow._law.tables[0].table.size == one.table.size


def test_windows_are_not_widened_for_errors_of_transforms():
    # 200,401 nodes at epsilon 0.01: this was refused after twelve fillings
    tree = cg.Tree.from_parents([-1, *[0] * 200, *(1 + np.arange(200_000) // 1000)])
    pinned = cg.consistent(tree) & cg.exactly([0])
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(400.0), tree), pinned)
    assert conditioned.error_bound < 1e-10


def test_tables_beyond_the_limit_are_refused_with_the_limit(monkeypatch):
    monkeypatch.setattr(exact, "_MEMORY_LIMIT", 1 << 8)
    tree = cg.Tree.from_parents([-1, 0, 0])
    law = cg.condition(cg.Additive(cg.DiscreteLaplace(20.0), tree), cg.consistent(tree))
    limit = r"needs \d+\.\d GiB of tables, and the limit is 0\.0 GiB; use smaller noise scales"
    with pytest.raises(cg.errors.UnsupportedError, match=limit):
        law.sample([5, 2, 3])
