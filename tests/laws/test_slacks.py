"""Inequalities between several entries, as sums with a slack: exact laws and draws."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.accounting.loss.inequalities import TRIVIAL
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.samplers.gibbs import GibbsConditioned
from congenial.errors import InvariantError, PrivacyError, UnsupportedError
from support.enumeration import assert_same_law, enumerate_law, rows_of
from support.goodness_of_fit import fit

INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
FORKED = (-1, 0, 0, 1, 1, 2, 2)
FLAT = (-1, 0, 0, 0)


def cut(law, least, value):
    """A law given further inequalities, by leaving out the states that break one."""
    inside = (law.states @ np.atleast_2d(least).T >= np.atleast_1d(value)).all(axis=1)
    mass = law.probabilities[inside]
    return replace(
        law,
        states=law.states[inside],
        probabilities=mass / mass.sum(),
        log_total=law.log_total + np.log(mass.sum()),
    )


def pair(
    x,
    least,
    value,
    *,
    scales=0.4,
    kind="laplace",
    parents=None,
    rows=(),
    pinned=(),
    lo=-INF,
    hi=INF,
):
    """A conditioned mechanism, and its law by enumeration."""
    x = np.asarray(x)
    tree = None if parents is None else cg.Tree.from_parents(parents)
    scales = np.broadcast_to(np.asarray(scales, dtype=float), x.shape).copy()
    invariant = cg.at_least(least, value) & cg.bounds(lo, hi)
    every = np.asarray(rows, dtype=np.int64).reshape(-1, x.size)
    if every.size:
        invariant = invariant & cg.linear(every, every @ x)
    if tree is not None:
        invariant = invariant & cg.consistent(tree)
        every = np.vstack((every, rows_of(parents)))
    if pinned:
        invariant = invariant & cg.exactly(list(pinned))
    noise = LAWS[kind](scales)
    conditioned = cg.condition(cg.Additive(noise, x.size if tree is None else tree), invariant)
    law = enumerate_law(every, kind, scales, x, pinned, lo, hi)
    return conditioned, cut(law, least, value)


CASES = {
    "two entries": ({"x": [1, 2], "least": [1, 1], "value": 2}, Conditioned),
    "at the edge": ({"x": [1, 1], "least": [1, 1], "value": 2, "scales": [0.3, 0.6]}, Conditioned),
    "a difference": ({"x": [4, 1, 0], "least": [1, -1, 0], "value": 1}, Conditioned),
    "two rows": (
        {"x": [2, 1, 3], "least": [[1, 1, 0], [0, -1, 1]], "value": [2, 1]},
        Conditioned,
    ),
    "two rows on a cycle": (
        {"x": [2, 1, 3], "least": [[1, 1, -1], [1, -1, 1]], "value": [-1, 2]},
        CutConditioned,
    ),
    "a row twice": ({"x": [2, 1], "least": [[1, 1], [1, 1]], "value": [1, 2]}, None),
    "factors and fractions": ({"x": [2, 1], "least": [2, 2], "value": 4.5}, Conditioned),
    "a sum above it": (
        {"x": [2, 1, 1], "least": [1, 1, 0], "value": 2, "rows": [[1, 1, 1]]},
        Conditioned,
    ),
    "the fixed sum itself": (
        {"x": [2, 1, 1], "least": [1, 1, 1], "value": 3, "rows": [[1, 1, 1]]},
        Conditioned,
    ),
    "bounds and a pin": (
        {"x": [2, 1, 1], "least": [1, 1, -1], "value": 1, "pinned": (2,), "lo": 0},
        Conditioned,
    ),
    "pins alone": (
        {"x": [2, 1, 1], "least": [[1, 1, 0], [0, 1, 1]], "value": [1, 2], "pinned": (0, 1)},
        Conditioned,
    ),
    "siblings": (
        {"x": [6, 1, 2, 3], "least": [0, 1, 1, 0], "value": 2, "parents": FLAT, "lo": 0},
        None,
    ),
    "cousins": (
        {
            "x": [6, 3, 3, 1, 2, 2, 1],
            "least": [0, 0, 0, 1, 0, -1, 0],
            "value": -1,
            "parents": FORKED,
            "pinned": (0,),
            "scales": [1.0, 0.4, 0.4, 0.3, 0.4, 0.4, 0.3],
        },
        CutConditioned,
    ),
    "Gaussian": (
        {"x": [2, 1, 3], "least": [1, 1, -1], "value": 0, "kind": "gaussian", "scales": 0.9},
        Conditioned,
    ),
    "a total that is not measured": (
        {
            "x": [4, 1, 3],
            "least": [1, -1, 0],
            "value": 2,
            "parents": (-1, 0, 0),
            "scales": [INF, 0.4, 0.4],
        },
        None,
    ),
}


@pytest.mark.parametrize(("given", "way"), CASES.values(), ids=CASES)
def test_the_law_is_that_of_enumeration(given, way):
    conditioned, law = pair(**given)
    if way is not None:
        assert type(conditioned) is way
    x = np.asarray(given["x"])
    assert_same_law(conditioned, law, x)
    outside = x - 50 * np.atleast_2d(given["least"])[0].astype(np.int64)
    assert conditioned.log_prob(outside, x) == -INF


@pytest.mark.parametrize("seed", range(6))
def test_random_rows_have_the_enumerated_law(seed):
    rng = np.random.default_rng(seed)
    for _ in range(5):
        n = int(rng.integers(2, 5))
        x = rng.integers(-1, 4, n)
        least = rng.integers(-1, 2, (int(rng.integers(1, 3)), n))
        value = least @ x - rng.integers(0, 3, len(least))
        if (np.count_nonzero(least, axis=1) < 1).any():
            continue
        rows = rng.integers(0, 2, (1, n)) if n > 2 and rng.random() < 0.5 else ()
        lo = np.where(rng.random(n) < 0.3, x - rng.integers(0, 2, n), -INF)
        scales = rng.choice([0.25, 0.35, 0.45], n)
        conditioned, law = pair(x, least, value, scales=scales, rows=rows, lo=lo)
        assert_same_law(conditioned, law, x)


@pytest.mark.parametrize("case", ["two rows", "two rows on a cycle", "cousins", "siblings"])
def test_draws_have_the_law_and_fail_at_a_wrong_scale(case):
    given = CASES[case][0]
    scales = np.broadcast_to(given.get("scales", 0.4), (len(given["x"]),))
    x, least = np.asarray(given["x"]), np.atleast_2d(given["least"])
    wider = {**given, "scales": 2.0 * np.asarray(scales)}
    conditioned, _ = pair(**wider)
    draws = conditioned.sample(x, 20_000, cg.seeded(7))
    assert (draws @ least.T >= given["value"]).all()
    free = np.flatnonzero(draws.std(axis=0) > 0)[-3:]
    for factor, right in ((1.0, True), (0.7, False), (1.3, False)):
        _, law = pair(**{**wider, "scales": factor * wider["scales"]})
        assert (fit(draws, law, free) > 1e-6) == right


def test_chains_keep_the_inequalities_and_certify_nothing():
    x = np.array([2, 1, 3])
    invariant = cg.at_least([[1, 1, -1], [1, -1, 1]], [-1, 2])
    chained = cg.condition(cg.Additive(cg.DiscreteLaplace(0.8), 3), invariant, "gibbs")
    assert isinstance(chained, GibbsConditioned)
    draw, _ = chained.run(x, 4000, 4, cg.seeded(3))
    draws = draw.values.reshape(-1, 3)
    assert (draws @ np.array([[1, 1, -1], [1, -1, 1]]).T >= [-1, 2]).all()
    _, law = pair(x, [[1, 1, -1], [1, -1, 1]], [-1, 2], scales=0.8)
    for node in range(3):
        mean = sum(value * mass for value, mass in law.marginal(node).items())
        assert abs(draws[:, node].mean() - mean) < 0.15
    with pytest.raises(PrivacyError, match="not certified"):
        chained.guarantee("add-remove")


def test_the_guarantee_is_the_trivial_one_and_no_audit_refutes_it():
    tree = cg.Tree.from_parents(FLAT)
    whole = cg.consistent(tree) & cg.exactly(0) & cg.nonnegative()
    mechanism = cg.Additive(cg.DiscreteLaplace([INF, 2.0, 2.0, 2.0]), tree)
    box = cg.condition(mechanism, whole).guarantee("substitute")
    conditioned = cg.condition(mechanism, whole & cg.at_least([0, 1, -1, 0], 0))
    given = conditioned.guarantee("substitute")
    assert (given.gamma, given.gamma_source) == (1.0, TRIVIAL)
    assert given.epsilon == 2.0 * given.base_epsilon > box.epsilon
    assert "satisfy the bounds" in given.sentence
    found = cg.audit(conditioned, neighbours="substitute", confidence=1.0 - 1e-6)
    assert found.passed
    [loss] = [one for one in found.findings if one.check == "loss, enumerated"]
    assert 0.3 * given.epsilon < loss.found <= given.epsilon
    gaussian = cg.Additive(cg.DiscreteGaussian([INF, 2.0, 2.0, 2.0]), tree)
    with pytest.raises(PrivacyError):
        cg.condition(gaussian, whole & cg.at_least([0, 1, -1, 0], 0)).guarantee("substitute")


def test_data_outside_are_refused_without_a_count():
    conditioned, _ = pair([6, 1, 2, 3], [0, 1, 1, 0], 2, parents=FLAT)
    for ask in (conditioned.sample, conditioned.log_normalizer):
        with pytest.raises(InvariantError, match="violates an at_least") as caught:
            ask(np.array([731, 0, 1, 730]))
        assert "73" not in str(caught.value)


def test_inequalities_that_are_not_sums_are_refused():
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), 2)
    with pytest.raises(UnsupportedError, match="weighs its entries differently"):
        cg.condition(mechanism, cg.at_least([1, 2], 0))
    one = cg.bounds([0, -9], [1, 9]) & cg.at_least([1, 1], 0)
    with pytest.raises(UnsupportedError, match="alternative of a union"):
        cg.condition(mechanism, one | (cg.bounds([2, -9], [9, 9]) & cg.at_least([1, 1], 0)))


def test_a_grid_and_tables_have_slacks_too():
    x = np.array([1.5, 0.5])
    fine = cg.Additive(cg.DiscreteLaplace(0.4, granularity=0.5), 2)
    draws = cg.condition(fine, cg.at_least([1, 1], 2)).sample(x, 500, cg.seeded(2))
    assert draws.sum(axis=1).min() == 2.0
    table = cg.Table({"home": ("yes", "no"), "age": ("0-17", "18+")})
    workload = cg.Workload.of(table, [("home",)])
    whole = (
        cg.consistent(workload)
        & cg.nonnegative()
        & cg.at_least_as_many(
            (None, {"home": "yes", "age": "18+"}), (None, {"home": "no", "age": "18+"})
        )
    )
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), workload), whole)
    counts = workload.answers([[3, 2], [4, 2]])
    draws = conditioned.sample(counts, 300, cg.seeded(2))
    more, fewer = (workload.find({"home": h, "age": "18+"}) for h in ("yes", "no"))
    assert (draws[:, more] >= draws[:, fewer]).all()
    assert (draws[:, more] == draws[:, fewer]).any()
    assert "1 of the sums may be exceeded" in conditioned.explain()
