"""Finite mechanisms: their privacy against a search through all events, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import congenial as cg
from congenial.belief import (
    Belief,
    FiniteMechanism,
    cyclic_geometric,
    cyclic_mechanism,
    double_geometric,
    hamming,
    neighbourhood,
)
from congenial.errors import ArgumentError, EmptyNeighbourhoodError

PAIR = (("x", "y"),)


@st.composite
def mechanisms(draw, size=4):
    weights = st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any)
    return FiniteMechanism(
        {d: Belief.from_weights(dict(enumerate(draw(weights)))) for d in ("x", "y")}
    )


def events(size=4):
    return [{w for w in range(size) if mask >> w & 1} for mask in range(2**size)]


@given(mechanisms())
def test_ratio_and_excess_are_those_of_the_worst_event(mechanism):
    laws = mechanism.laws
    both = [(p, q) for p in laws for q in laws if p is not q]
    seen = [(p.probability(e), q.probability(e)) for p, q in both for e in events()]
    worst = max((a / b if b else math.inf) for a, b in seen if a)
    assert mechanism.ratio(PAIR) == worst
    factor = Fraction(3, 2)
    assert mechanism.excess(factor, PAIR) == max(a - factor * b for a, b in seen)
    assert mechanism.delta(math.log(1.5), PAIR) == pytest.approx(
        float(mechanism.excess(factor, PAIR))
    )
    assert mechanism.epsilon(PAIR) == pytest.approx(math.log(worst))


def test_operations_follow_the_laws():
    m = FiniteMechanism(
        {
            "x": Belief({0: Fraction(1, 2), 1: Fraction(1, 2)}),
            "y": Belief({0: Fraction(1, 4), 1: Fraction(3, 4)}),
        }
    )
    assert m.then(lambda z: -z)["y"] == Belief({0: Fraction(1, 4), -1: Fraction(3, 4)})
    assert m.condition({1})["x"] == m.image({1}, lambda _: 1)["x"] == Belief({1: 1})
    twice = m.product(m)
    assert twice["y"][1, 1] == Fraction(9, 16)
    assert twice.ratio(PAIR) == m.ratio(PAIR) ** 2 == 4
    mixed = FiniteMechanism.mixture([m, m.then(lambda z: 1 - z)], [Fraction(1, 2), Fraction(1, 2)])
    assert mixed.ratio(PAIR) == 1
    assert m == FiniteMechanism(dict(zip("yx", reversed(m.laws), strict=True)))
    assert m != mixed
    assert m != 0
    assert hash(m) == hash(FiniteMechanism({"y": m["y"], "x": m["x"]}))


def test_noise_on_a_circle_stays_additive():
    noise = cyclic_geometric(Fraction(1, 2), 5)
    assert noise.probabilities == tuple(Fraction(w, 10) for w in (4, 2, 1, 1, 2))
    m = cyclic_mechanism(noise, {"x": (0, 4), "y": (1, 4)}, size=5)
    assert m["x"].then(lambda z: ((z[0] + 1) % 5, z[1])) == m["y"]
    assert m.ratio(PAIR) == 2


def test_neighbourhoods():
    """Gong and Meng (2020), section 5.1."""
    cube = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    whole = neighbourhood(cube, hamming)
    assert (whole.state, whole.distance, len(whole.pairs)) == ("intact", 1, 12)
    fixed = neighbourhood([x for x in cube if sum(x) == 1], hamming)
    assert (fixed.state, fixed.distance, len(fixed.pairs)) == ("disrupted", 2, 3)
    assert set(fixed.isolated) == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}
    alone = neighbourhood([x for x in cube if sum(x) == 3], hamming)
    assert (alone.state, alone.distance, alone.pairs) == ("destroyed", None, ())
    # one dataset without neighbours, others with: the formula says intact, the sentence disrupted
    partly = neighbourhood([(0, 0, 0), (0, 0, 1), (1, 1, 0)], hamming)
    assert (partly.state, partly.isolated) == ("intact", ((1, 1, 0),))


@pytest.mark.parametrize("lo", [-math.inf, 0])
def test_conditioning_agrees_with_the_finite_law(lo):
    """The same two-bin release, by messages along the tree and by enumeration."""
    tree, scale, total, reach = cg.Tree.from_parents([-1, 0, 0]), 0.8, 4, 60
    a = math.exp(-1 / scale)
    x = np.array([total, 3, 1])
    noise = cg.DiscreteLaplace([math.inf, scale, scale])
    engine = cg.condition(
        cg.Additive(noise, tree), cg.consistent(tree) & cg.exactly("root") & cg.bounds(lo)
    )
    bins = [double_geometric(a, range(-reach, reach + 1), centre=c) for c in (3, 1)]
    m = FiniteMechanism({"x": bins[0]}).product(FiniteMechanism({"x": bins[1]}))
    law = m.condition(lambda z: sum(z) == total and min(z) >= lo)["x"]
    for first in range(-3, 8):
        want = float(law[first, total - first])
        if want:
            assert math.exp(engine.log_prob([total, first, total - first], x)) == pytest.approx(
                want, abs=1e-12
            )
    values, probabilities = engine.marginal(1, x)
    for value, p in zip(values.tolist(), probabilities, strict=True):
        assert float(law[value, total - value]) == pytest.approx(p, abs=1e-11)


def test_a_union_reveals_which_part_it_is_in():
    """Two Views, Theorem 3.5, part 2, by the exact sampler: the loss exceeds that of each part."""
    tree, scale, whole = cg.Tree.from_parents([-1, 0, 0]), 2.0, 4
    fixed = cg.consistent(tree) & cg.exactly("root")
    low = cg.bounds([-math.inf, 0, -math.inf], [math.inf, 1, math.inf])
    high = cg.bounds([-math.inf, 3, -math.inf], [math.inf, 4, math.inf])
    noise = cg.DiscreteLaplace([math.inf, scale, scale])
    engine = cg.condition(cg.Additive(noise, tree), (fixed & low) | (fixed & high))
    # both cells move together, so that one count carries the noise of two
    b = math.exp(-2 / scale)
    finite = FiniteMechanism({x: double_geometric(b, (0, 1, 3, 4), centre=x) for x in (3, 4)})
    for x in (3, 4):
        for z in (0, 1, 3, 4):
            told = engine.log_prob([whole, z, whole - z], [whole, x, whole - x])
            assert math.exp(told) == pytest.approx(finite[x][z], abs=1e-11)
    pair = [(3, 4)]
    parts = finite.condition({0, 1}), finite.condition({3, 4})
    assert max(part.epsilon(pair) for part in parts) == pytest.approx(1.0)
    assert 1.07 < finite.epsilon(pair) <= engine.guarantee("substitute").epsilon


def test_imaging_agrees_with_the_finite_law():
    """Clipping at 0, as an image and as the closest world."""
    noise, x = cg.DiscreteLaplace(0.7), 1
    engine = cg.image(cg.Additive(noise, 1), cg.nonnegative(), integer=True)
    law = double_geometric(math.exp(-1 / 0.7), range(-60, 61), centre=x)
    clipped = law.image(lambda z: z >= 0, lambda z: max(z, 0))
    draws = engine.sample([x], 40_000, cg.seeded(5)).ravel()
    for value in range(4):
        p = clipped[value]
        # six standard errors
        assert abs((draws == value).mean() - p) < 6 * math.sqrt(p * (1 - p) / draws.size)
        assert abs((draws == value).mean() - law[value]) > 0.01 or value


@pytest.mark.parametrize(
    ("wrong", "error", "told"),
    [
        (lambda m: FiniteMechanism({}), ArgumentError, "at least 1"),
        (lambda m: m["z"], ArgumentError, "'z' is not one of the 2"),
        (lambda m: m.ratio(()), EmptyNeighbourhoodError, "would say nothing"),
        (lambda m: FiniteMechanism.mixture([], []), ArgumentError, "no mechanisms"),
        (lambda m: double_geometric(1, [0]), ArgumentError, "between 0 and 1"),
    ],
)
def test_invalid_arguments_are_refused(wrong, error, told):
    with pytest.raises(error, match=told):
        wrong(FiniteMechanism({"x": Belief({0: 1}), "y": Belief({0: 1})}))
