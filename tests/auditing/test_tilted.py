"""Delta under Gaussian noise: a bound from draws, against exact laws and planted factors."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.auditing.space import space_of
from congenial.auditing.tilted import may_tilt, mean_at_least, tilted
from congenial.types import FloatArray

SURE = 1.0 - 1e-6
PAIR = cg.Tree.from_parents([-1, 0, 0])


def city(groups: int, leaves: int) -> cg.Tree:
    below = [1 + i // leaves for i in range(groups * leaves)]
    return cg.Tree.from_parents([-1] + [0] * groups + below)


def made(tree, sigma, *, image=False):
    mandates = cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
    queries = cg.Additive(cg.DiscreteGaussian(sigma), tree)
    return cg.image(queries, mandates, integer=True) if image else cg.condition(queries, mandates)


def exact_delta(x, other, scales, epsilon):
    """Delta of two leaves below a pinned total, from the law written out."""
    total = x[0]
    first = np.arange(total + 1.0)

    def law(at) -> FloatArray:
        away = (first - at[1]) / scales[1], (total - first - at[2]) / scales[2]
        log = -0.5 * (away[0] ** 2 + away[1] ** 2)
        log -= log.max()
        return log - np.log(np.exp(log).sum())

    p, q = law(x), law(other)
    return float(np.maximum(np.exp(p) - np.exp(epsilon + q), 0.0).sum())


@pytest.mark.parametrize("cell", [4, 20, 50])
def test_the_bound_is_just_below_the_exact_delta(cell):
    """At the bounds and far from them, at several epsilons."""
    scales = np.array([np.inf, 4.0, 6.0])
    mechanism = made(PAIR, scales)
    x, other = PAIR.roll_up(np.array([cell, 90 - cell])), PAIR.roll_up([cell - 1, 91 - cell])
    claim = mechanism.guarantee("substitute")
    space = space_of(mechanism)
    (finding,) = tilted(mechanism, space, claim, [(x, other)], 20_000, 1e-6, cg.seeded(cell))
    exact = exact_delta(*finding.worst, scales, claim.epsilon)
    assert 0.8 * exact < finding.found <= exact
    assert exact < claim.delta


def test_the_bound_on_a_mean_holds_and_is_near():
    """For skewed terms like those of delta, it is wrong at most as often as stated."""
    source, wrong, near = np.random.default_rng(1), 0, 0
    for _ in range(2000):
        terms = source.random(400) ** 4  # mean 1 / 5
        bound = mean_at_least(terms, 0.1)
        wrong += bound > 0.2
        near += bound > 0.12
    assert wrong <= 200
    assert near > 1900


@pytest.mark.parametrize(("size", "less"), [((2, 2), 0.9), ((5, 60), 0.8)])
@pytest.mark.parametrize("image", [False, True])
def test_too_little_gaussian_noise_is_refuted_by_delta(size, less, image):
    """Correct noise passes; the bound is about a fifth of the delta that follows from rho."""
    tree, sigma = city(*size), 6.0
    claim = made(tree, sigma, image=image).guarantee("substitute")
    for factor, passes in ((1.0, True), (less, False)):
        mechanism = made(tree, factor * sigma, image=image)
        space = space_of(mechanism)
        pairs = space.hard_pairs("substitute")
        (finding,) = tilted(mechanism, space, claim, pairs, 5000, 1e-6, cg.seeded(2))
        assert finding.passed is passes, str(finding)
        assert finding.found > 0.1 * claim.delta


def test_an_audit_compares_delta():
    claim = made(PAIR, 6.0).guarantee("substitute")
    for factor, passes in ((1.0, True), (0.85, False)):
        found = cg.audit(
            made(PAIR, factor * 6.0),
            neighbours="substitute",
            claim=claim,
            method="statistical",
            draws=4000,
            confidence=SURE,
        )
        checks = {finding.check: finding.passed for finding in found.findings}
        assert checks == {
            "delta, from draws": passes,
            "loss, from draws": True,
            "law, from draws": True,
            "invariant, from draws": True,
        }


def test_nothing_is_said_without_a_law_or_a_dataset_to_draw_at():
    laplace = cg.condition(
        cg.Additive(cg.DiscreteLaplace(6.0), PAIR), cg.consistent(PAIR) & cg.nonnegative()
    )
    assert not may_tilt(laplace, space_of(laplace), laplace.guarantee("substitute"))
    mechanism = made(PAIR, 6.0)
    claim, space = mechanism.guarantee("substitute"), space_of(mechanism)
    assert may_tilt(mechanism, space, claim)
    least = [(np.array([1, 1, 0]), np.array([1, 0, 1]))]
    assert tilted(mechanism, space, claim, least, 1000, 1e-6, cg.seeded(0)) == ()
