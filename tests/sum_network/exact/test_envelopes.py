"""Envelopes are nowhere below what they bound: inside windows and far beyond them, in decimals."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.kernels.network.messages import MERGE, PRODUCT
from congenial.sum_network.exact import envelopes, rare_draws
from support.random_networks import compiled_at_random

pytestmark = pytest.mark.kernels

# Values beyond which nothing is left to add up, for the scales that are tried.
FAR = 160


def at_random(seed, narrow, monkeypatch):
    """Envelopes of a random network, in windows that are narrower by a factor of nats."""
    windows = envelopes.windows

    def narrower(*of, cut, **_):
        return windows(*of, cut=cut, generous=narrow)

    with monkeypatch.context() as patched:
        patched.setattr(envelopes, "_MOST", np.inf)
        patched.setattr(envelopes, "windows", narrower)
        return envelopes.fill_envelopes(compiled_at_random(seed))


def values_to_try(of, c, rng):
    """Values at both ends of a window, inside it, and far beyond it."""
    lo, hi = int(of.lo[c]), int(of.hi[c])
    near = [lo, lo - 1, lo - 2, hi, hi + 1, hi + 2]
    return {*near, *rng.integers(lo - 40, hi + 41, 6).tolist(), lo - 90, hi + 90}


@pytest.mark.parametrize("narrow", [1.0, 0.2, 0.02])
@pytest.mark.parametrize("seed", range(40))
def test_envelopes_are_nowhere_exceeded(seed, narrow, monkeypatch):
    of, rng = at_random(seed, narrow, monkeypatch), np.random.default_rng(seed)
    network = of.network
    with localcontext(prec=60):
        for c in np.flatnonzero(of.lo <= of.hi).tolist():
            for x in values_to_try(of, c, rng):
                bound = rare_draws.value(of, c, x)
                assert bound >= 0
                if network.ctype[c] == MERGE:
                    a, b = int(network.left[c]), int(network.right[c])
                    first = min(int(of.lo[a]), x - int(of.hi[b])) - FAR
                    last = max(int(of.hi[a]), x - int(of.lo[b])) + FAR
                    found = sum(
                        rare_draws.value(of, a, left) * rare_draws.value(of, b, x - left)
                        for left in range(first, last + 1)
                    )
                    assert found <= bound * Decimal(float(of.factor[c]))
                elif bound or network.ctype[c] == PRODUCT:
                    assert bound or not both(of, c, x)
                    if bound:
                        assert rare_draws._share_of_class(of, c, x) <= 1 + Decimal(2) ** -44


@pytest.mark.parametrize("noise", [cg.DiscreteLaplace, cg.DiscreteGaussian])
@pytest.mark.parametrize("scale", [0.0005, 0.02, 0.05])
def test_noise_far_narrower_than_a_count_leaves_every_value_possible(noise, scale):
    # weights and ratios are smaller than any double
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    need = cg.consistent(tree) & cg.exactly(0)
    scales = scale * np.linspace(1.0, 1.5, len(tree))
    of = envelopes.fill_envelopes(
        cg.condition(cg.Additive(noise(scales), tree), need)._compiled(None)
    )
    network = of.network
    with localcontext(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX):
        for c in range(network.ctype.size):
            pinned = network.ctype[c] != MERGE and of.hi[c] == of.lo[c]
            for x in range(int(of.lo[c]) - 6, int(of.hi[c]) + 7):
                bound = rare_draws.value(of, c, x)
                assert bound > 0 or pinned
                if network.ctype[c] != MERGE and bound:
                    assert rare_draws._share_of_class(of, c, x) <= 1 + Decimal(2) ** -44
                elif network.ctype[c] == MERGE:
                    a, b = int(network.left[c]), int(network.right[c])
                    found = sum(
                        rare_draws.value(of, a, left) * rare_draws.value(of, b, x - left)
                        for left in range(x - 40, x + 41)
                    )
                    assert found <= bound * Decimal(float(of.factor[c]))


def both(of, c, x):
    """The product of the parts' envelopes."""
    network = of.network
    a, b = int(network.left[c]), int(network.right[c])
    return rare_draws.value(of, a, x) * rare_draws.value(of, b, int(network.sign[c]) * x)


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_integers_of_all_choices_fit_into_62_bits(seed, monkeypatch):
    of = at_random(seed, 0.3, monkeypatch)
    for c in np.flatnonzero((of.network.ctype == MERGE) & (of.lo <= of.hi)).tolist():
        for s in range(int(of.lo[c]), int(of.hi[c]) + 1):
            assert rare_draws._inside(of, c, s) <= 1 << 62
    for c in of.network.roots.tolist():
        assert rare_draws._row(of, c)[-1] <= 1 << 62


def test_most_envelopes_hardly_exceed_what_they_bound():
    for seed in range(40):
        of = envelopes.fill_envelopes(compiled_at_random(seed))
        assert of.rare <= envelopes._MOST * envelopes.AIM
        assert (of.raised < 1e-12).all()


def test_transforms_give_envelopes_too(monkeypatch):
    monkeypatch.setattr(envelopes, "DIRECT_LIMIT", 0)
    monkeypatch.setattr(envelopes, "NARROW", 0)
    for seed in range(0, 40, 8):
        test_envelopes_are_nowhere_exceeded(seed, 1.0, monkeypatch)


def test_multipliers_add_up_without_rounding():
    theta = envelopes.in_steps(np.random.default_rng(1).normal(size=1000) * 3.0)
    assert Fraction(float(theta.sum())) == sum(map(Fraction, theta.tolist()))
    large = envelopes.in_steps(np.array([1e6, -3.25]))
    assert large.tolist() == [1e6, -3.25]


def test_sums_that_no_windows_hold_are_refused(monkeypatch):
    monkeypatch.setattr(envelopes, "_fill", lambda *_: None)
    with pytest.raises(NumericalError, match="no windows of the exact sampler"):
        envelopes.fill_envelopes(compiled_at_random(1))
