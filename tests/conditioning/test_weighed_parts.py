"""Draws of mixtures and unions have their law, whatever the envelopes of their parts exceed."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.conditioning import weighed_parts
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.unions import ConditionedMixture
from congenial.conditioning.weighed_parts import WeighedPart, draw_weighed
from congenial.errors import NumericalError
from congenial.randomness import around
from congenial.sum_network import exact
from support.enumeration import enumerate_law
from support.narrow_windows import narrow_windows
from support.random_mixtures import mixture_at_random
from support.random_networks import composed_at_random, with_larger_factors

pytestmark = pytest.mark.kernels

INF = np.inf
LEAST = 1e-6
ROWS = 4000
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}


@pytest.fixture(params=["plain", "refused", "narrow"])
def crippled(request, monkeypatch):
    """Leave envelopes as they are; or make them larger, part by part; or make windows narrow."""
    if request.param == "refused":
        fill, seen = Conditioned.weighed_envelopes, []

        def larger(self, x):
            seen.append(self)
            return with_larger_factors(fill(self, x), len(seen))

        monkeypatch.setattr(Conditioned, "weighed_envelopes", larger)
    if request.param == "narrow":
        narrow_windows(monkeypatch)


def p_value(drawn, laws, weights):
    """The p-value of draws by the laws of parts, whose states have the most probability."""
    masses = [w * np.exp(law.log_total) for w, law in zip(weights, laws, strict=False)]
    expected = dict[tuple[int, ...], float]()
    for law, mass in zip(laws, masses, strict=True):
        for state, p in zip(law.states.tolist(), law.probabilities.tolist(), strict=True):
            if p * mass / sum(masses) * len(drawn) > 0.01:
                expected[tuple(state)] = expected.get(tuple(state), 0.0) + p * mass / sum(masses)
    seen = dict[tuple[int, ...], int]()
    for state in map(tuple, drawn.tolist()):
        seen[state] = seen.get(state, 0) + 1
    cells = [(seen.get(s, 0), p * len(drawn)) for s, p in expected.items() if p * len(drawn) > 8]
    rest = [len(drawn) - sum(each) for each in zip(*cells, strict=True)]
    if rest[1] > 8:
        cells.append(tuple(rest))
    if len(cells) < 2:
        return 1.0
    statistic = sum((got - want) ** 2 / want for got, want in cells)
    return float(stats.chi2.sf(statistic, len(cells) - 1))


@pytest.mark.parametrize("seed", range(16))
def test_draws_have_the_enumerated_law(seed, crippled):
    made, x, laws, weights = mixture_at_random(seed)
    drawn = made.sample(x, ROWS, cg.seeded(seed))
    assert made.error_bound == 0.0
    assert p_value(drawn, laws, weights) > LEAST


def test_the_test_of_the_law_refuses_weights_that_are_off():
    tried = 0
    for seed in range(1, 40, 2):  # the alternatives of a union are seen in a draw
        made, x, laws, _ = mixture_at_random(seed)
        masses = [np.exp(law.log_total) for law in laws]
        if len(laws) < 2 or not 0.06 < masses[0] / sum(masses) < 0.94:
            continue
        drawn = made.sample(x, 10 * ROWS, cg.seeded(seed))
        assert p_value(drawn, laws, (1.3, 1.0)) < LEAST < p_value(drawn, laws, (1.0, 1.0))
        tried += 1
    assert tried > 3


@pytest.mark.parametrize("seed", range(1, 16, 2))
def test_a_part_that_is_chosen_before_its_tables_are_filled_has_its_law(seed, monkeypatch):
    made, x, laws, weights = mixture_at_random(seed)
    near, *others = made._weighed(x)
    masses = [float(part.mass(0)[0]) for part in (near, *others)]
    small = min(2.0, 1.5 * max(masses) / masses[0])
    monkeypatch.setattr(weighed_parts, "_SMALL", int(small * weighed_parts._LARGEST))
    far = [WeighedPart(part.part, part.weight, x, far=True) for part in others]
    if not others or small == 2.0:
        return
    drawn = draw_weighed([near, *far], x, ROWS, cg.seeded(seed))
    assert p_value(drawn, laws, weights) > LEAST


def test_a_part_far_from_the_data_takes_no_tables(monkeypatch):
    tree = cg.Tree.from_parents([-1, 0, 0])
    x = np.array([5000, 0, 5000])
    lo, hi = np.full((2, 3), -INF), np.full((2, 3), INF)
    hi[0, 1], lo[1, 1] = 300, 301
    base = cg.consistent(tree) & cg.nonnegative() & cg.exactly(0)
    one, other = (base & cg.bounds(*ends) for ends in zip(lo, hi, strict=True))
    made = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), one | other)
    near, far = made._weighed(x)
    assert (near.far, far.far) == (False, True)
    assert made.sample(x, 500, cg.seeded(1))[:, 1].max() <= 300
    assert "envelopes" not in vars(far)
    # if it is chosen, it is kept with its exact probability over that of the choice
    low, high = far.mass(0)
    assert Decimal(0) < low < high < near.mass(0)[0].scaleb(-40)
    kept = weighed_parts._kept(far, 2 * low, np.array([0, 1 << 62, 3 << 62], np.uint64), None)
    assert kept.tolist() == [True, True, False]
    with pytest.raises(NumericalError, match="far from the counts"):
        weighed_parts._kept(far, low / 2, np.zeros(1, np.uint64), None)


def test_words_at_the_end_of_a_ratio_are_decided_in_decimals():
    third = Decimal(1) / 3

    class Third:
        def mass(self, level):
            return around(Decimal(1), level)

    words = np.array([0, (1 << 64) // 3 - 1, (1 << 64) // 3 + 1, (1 << 64) - 1], np.uint64)
    kept = weighed_parts._kept(Third(), 1 / third, words, None)
    assert kept.tolist() == [True, True, False, False]


def mixture_of_runs(seed, shares):
    """A mixture of two scales of noise over runs of like siblings, and counts."""
    first, x = composed_at_random(seed)
    scales, tree = first.mechanism.scales, first.mechanism.tree
    parts = tuple(
        Conditioned(
            cg.Additive(cg.DiscreteLaplace(rise * scales), tree),
            first.resolved,
            first.forest,
            first.fixed,
        )
        for rise in (1.0, 1.4)
    )
    return ConditionedMixture(parts, shares, (first.resolved,)), x


def least_p_value(drawn, released, x):
    """The least p-value of the values of all nodes, by the laws that tables give."""
    values, rows = [1.0], len(drawn)
    for v in range(x.size):
        law, p = released.marginal(v, x)
        at = np.clip(drawn[:, v] - law[0] + 1, 0, law.size + 1)
        seen = np.bincount(at, minlength=law.size + 2)[1:-1]
        kept = p * rows > 8
        cells = np.append(seen[kept], rows - seen[kept].sum())
        wanted = np.append(p[kept], 1 - p[kept].sum()) * rows
        if wanted[-1] < 8:
            cells[-2] += cells[-1]
            wanted[-2] += wanted[-1]
            cells, wanted = cells[:-1], wanted[:-1]
        if cells.size > 1:
            statistic = ((cells - wanted) ** 2 / wanted).sum()
            values.append(float(stats.chi2.sf(statistic, cells.size - 1)))
    return min(values)


@pytest.mark.parametrize("seed", [0, 1, 3, 4, 6, 7, 8, 9, 12])
def test_mixtures_with_runs_of_like_siblings_have_their_law(seed):
    made, x = mixture_of_runs(seed, (0.5, 0.5))
    drawn = made.sample(x, ROWS, cg.seeded(seed))
    assert least_p_value(drawn, made, x) > LEAST / x.size


def test_the_test_of_runs_refuses_other_weights():
    made, x = mixture_of_runs(7, (0.5, 0.5))
    other, _ = mixture_of_runs(7, (0.5 * 1.3, 0.5 * 0.7))
    drawn = other.sample(x, 20 * ROWS, cg.seeded(1))
    assert least_p_value(drawn, made, x) < LEAST < least_p_value(drawn, other, x) * x.size


def test_no_draw_and_one_draw():
    made, x, _, _ = mixture_at_random(4)
    assert made.sample(x, 0, cg.seeded(1)).shape == (0, x.size)
    assert made.sample(x, rng=cg.seeded(1)).shape == x.shape


def test_attempts_are_in_the_orientation_of_the_counts():
    # two differences, whose forest turns some entries
    x = np.array([3, 1, 2, 0])
    need = cg.linear([[1, -1, -1, 0], [0, 1, 0, -1]], [0, 1])
    parts = [cg.Additive(cg.DiscreteLaplace(s), 4) for s in (0.7, 2.0)]
    made = cg.condition(cg.mixture(parts, [0.5, 0.5]), need)
    assert made.parts[0].forest.turned
    rows = np.array([[1, -1, -1, 0], [0, 1, 0, -1]])
    laws = [enumerate_law(rows, "laplace", s, x) for s in (0.7, 2.0)]
    assert p_value(made.sample(x, ROWS, cg.seeded(2)), laws, (0.5, 0.5)) > LEAST
    assert exact.mass(made.parts[0].weighed_envelopes(x))(0)[0] > 0
