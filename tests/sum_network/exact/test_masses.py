"""Masses of envelopes: what every attempt at a draw tells about them, in decimals."""

from __future__ import annotations

import math
from collections import Counter
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.network import descend
from congenial.kernels.numerics import laws
from congenial.sum_network import exact
from congenial.sum_network.exact import exact_draws
from support.attempts import probability, weight
from support.enumeration import enumerate_law, rows_of
from support.narrow_windows import narrow_windows
from support.random_networks import (
    composed_at_random,
    conditioned_at_random,
    linear_at_random,
    with_larger_factors,
)

pytestmark = pytest.mark.kernels

CLOSE = Decimal("1e-38")
EVERY = [conditioned_at_random, composed_at_random, linear_at_random]
MADE = pytest.mark.parametrize("made", EVERY)


def narrower(monkeypatch, generous):
    """Make windows so narrow that many draws leave them."""
    narrow_windows(monkeypatch, generous)


def noted(of, rows, seed, monkeypatch):
    """Values of all places at the end of some draws, with their choices beyond windows."""
    seen, accepted = [], exact_draws.Acceptance.accepted

    def noting(self, values, doubt, rare, rng):
        found = accepted(self, values, doubt, rare, rng)
        seen.extend((values[:, i].copy(), rare.get(i, {})) for i in np.flatnonzero(found).tolist())
        return found

    with monkeypatch.context() as patched:
        patched.setattr(exact_draws.Acceptance, "accepted", noting)
        _, drawn = exact.attempt(of, rows, cg.seeded(seed))
    return list(zip(seen, drawn, strict=True))


def follows(compiled):
    """Variables that follow from others."""
    freed = compiled.freed
    return [] if freed is None else np.flatnonzero(freed.follows).tolist()


@MADE
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("seed", range(48))
def test_every_accepted_attempt_has_its_weight_over_the_mass(seed, made, narrow, monkeypatch):
    if narrow:
        narrower(monkeypatch, 0.02 if made is conditioned_at_random else 0.2)
    released, x = made(seed)
    compiled = released._compiled(None if released.data_free else x)
    of = released.weighed_envelopes(x)
    if seed % 2:
        of = with_larger_factors(of, seed)
    low, high = exact.mass(of)(1)
    cases = noted(of, 30, seed, monkeypatch)
    with localcontext(prec=90, Emin=MIN_EMIN, Emax=MAX_EMAX):
        assert Decimal(0) < low < high < low * (1 + Decimal("1e-50"))
        for (values, rare), drawn in cases:
            found = (
                probability(of, values, rare)
                * low
                / weight(of, values, drawn, left_out=follows(compiled))
            )
            assert abs(found - 1) < CLOSE
    assert cases or narrow


def test_these_cases_have_all_kinds_of_classes(monkeypatch):
    kinds = Counter()
    for made in EVERY:
        for seed in range(48):
            released, x = made(seed)
            network = released.weighed_envelopes(x).network
            assert not (network.op == descend.DIFFERENCE).any()
            both = (network.op == descend.COMPOSE) & (network.first >= 0) & (network.second >= 0)
            kinds["differences"] += both.any()
            kinds["one way"] += (~both & (network.op == descend.COMPOSE)).any()
            kinds["moved"] += network.moved.size > 0
            kinds["freed"] += released._compiled(x).freed is not None
            kinds["tilted"] += bool(network.tilt.any())
            kinds["fixed"] += network.fixed.size > 0
            kinds["roots"] += network.roots.size > 0
            kinds["flat"] += bool((network.unary.kind == laws.FLAT).any())
            kinds["normal"] += bool((network.unary.kind == laws.GAUSSIAN).any())
    assert len(kinds) == 9
    assert min(kinds.values()) >= 3, kinds
    narrower(monkeypatch, 0.02)
    beyond = 0
    for seed in range(48):
        released, x = conditioned_at_random(seed)
        found = noted(released.weighed_envelopes(x), 30, seed, monkeypatch)
        beyond += sum(bool(rare) for (_, rare), _ in found)
    assert beyond > 40


def test_the_mass_times_the_part_accepted_is_the_enumerated_sum():
    rng, refused = np.random.default_rng(4), 0
    for number in range(12):
        n = int(rng.integers(3, 6))
        parents = [-1] + [int(rng.integers(0, v)) for v in range(1, n)]
        tree = cg.Tree.from_parents(parents)
        x = np.asarray(tree.roll_up(rng.integers(0, 5, tree.leaves.size)))
        scales = rng.choice([0.5, 1.0, 2.0], size=n)
        kind, law = (("laplace", cg.DiscreteLaplace), ("gaussian", cg.DiscreteGaussian))[number % 2]
        need = cg.consistent(tree) & cg.nonnegative() & cg.exactly(0)
        made = cg.condition(cg.Additive(law(scales), tree), need)
        of, rows = with_larger_factors(made.weighed_envelopes(x), number), 20_000
        accepted, _ = exact.attempt(of, rows, cg.seeded(number))
        p = accepted.mean()
        total = enumerate_law(rows_of(parents), kind, scales, x, [0], 0.0).log_total
        total -= float(made.log_mode)
        off = abs(p - math.exp(total) / float(exact.mass(of)(0)[0]))
        assert off < 5.0 * math.sqrt(max(p * (1.0 - p), 1e-6) / rows)
        refused += p < 0.95
    assert refused >= 4


@pytest.mark.parametrize("scale", [1e-3, 0.3, 1.0, 5.5, 1e9, 1e40])
def test_the_probability_of_no_laplace_noise(scale):
    low, high = exact.without_noise(laws.LAPLACE, np.array([scale, np.inf, scale]))(1)
    with localcontext(prec=250):
        fall = (-1 / Decimal(scale)).exp()
        p = ((1 - fall) / (1 + fall)) ** 2
        assert low < p < high < low * (1 + Decimal("1e-55"))


@pytest.mark.parametrize("sigma", [1e-3, 0.3, 0.999, 1.0, 1.001, 5.5, 40.0])
def test_the_probability_of_no_normal_noise(sigma):
    low, high = exact.without_noise(laws.GAUSSIAN, np.array([sigma]))(1)
    with localcontext(prec=120):
        rate, total = 1 / (2 * Decimal(sigma) ** 2), Decimal(1)
        for u in range(1, 10 + int(25 * sigma)):
            total += 2 * (-rate * u * u).exp()
        assert low < 1 / total < high < low * (1 + Decimal("1e-55"))


def test_the_probability_of_no_wide_normal_noise_is_that_of_its_density():
    low, high = exact.without_noise(laws.GAUSSIAN, np.array([1e40]))(0)
    assert float(low) == pytest.approx(1 / (1e40 * math.sqrt(2 * math.pi)), rel=1e-15)
    assert low < high


def test_closer_enclosures_lie_within_wider_ones():
    released, x = composed_at_random(1)
    mass = exact.mass(released.weighed_envelopes(x))
    ends = [mass(level) for level in range(3)]
    for (low, high), (closer_low, closer_high) in pairwise(ends):
        assert low < closer_low < closer_high < high
    assert Fraction(ends[0][1]) - Fraction(ends[0][0]) < Fraction(ends[0][0]) / 10**39
