"""Margins and intervals of releases: against laws, draws, and what the plan asks for."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, PlanError, UnsupportedError
from congenial.inference.noise_intervals import error_margin_of_noise_sum, noise_margin
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.plan.plan import parse_plan
from congenial.preview.comparison.expected import NotSimulated, draws_of, simulated_errors
from congenial.randomness import seeded
from congenial.releases import accuracy
from congenial.releases.accuracy import (
    FEWER,
    NO_MARGINS_OF_CROSSING,
    RISK,
    UNKNOWN,
    BySimulation,
    NoIntervals,
    levels,
    margins,
    simulated_releases,
)
from congenial.releases.model import build_model, choose_method
from support.margins_of_plans import SHARE, SLACK, ends_of, made

NOISES = [DiscreteLaplace(1.0), DiscreteGaussian(1.0)]
BOTH = ("table", "measurements")


def size_law(noise, scale, count):
    """Return the law of the absolute value of noise, tabulated."""
    size = np.arange(count)
    rate = size / scale if noise.name == "discrete-laplace" else 0.5 * (size / scale) ** 2
    weights = np.exp(-rate)
    weights[1:] *= 2.0
    return weights / weights.sum()


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize("scale", [0.1, 0.3, 0.7, 1.0, 3.3, 12.5, 100.0])
@pytest.mark.parametrize("alpha", [0.1, 1e-4])
def test_the_margin_of_noise_is_the_least_valid_one(noise, scale, alpha):
    within = np.cumsum(size_law(noise, scale, int(60 * scale) + 60))
    margin = noise_margin(noise, scale, alpha)
    assert within[margin] >= 1.0 - alpha - 1e-12
    assert margin == 0 or within[margin - 1] < 1.0 - alpha


def test_the_normal_quantile_takes_over_without_a_jump():
    gauss = NOISES[1]
    below, above = noise_margin(gauss, 9_999.0, 0.1), noise_margin(gauss, 10_001.0, 0.1)
    assert abs(above - below) <= 6


@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: noise.name)
@pytest.mark.parametrize(
    ("scales", "times"),
    [([3.0, 3.0], 1), ([0.4, 2.0, 5.0], 1), ([2.0, 2.0, 1.0], [1, 3, 2]), ([4.0] * 7, 1)],
)
def test_the_margin_of_a_sum_is_the_least_valid_one(noise, scales, times):
    """Against the law of the sum by plain convolution."""
    law = np.ones(1)
    for scale, factor in zip(scales, np.broadcast_to(times, len(scales)), strict=True):
        half = size_law(noise, scale, 400)
        half[1:] /= 2.0
        spread = np.zeros(2 * 399 * factor + 1)
        spread[::factor] = np.concatenate((half[:0:-1], half))
        law = np.convolve(law, spread)
    middle = law.size // 2
    within = law[middle] + np.concatenate(([0.0], np.cumsum(2.0 * law[middle + 1 :])))
    margin = error_margin_of_noise_sum(noise, scales, 0.1, times=times)
    assert within[margin] >= 0.9 and within[margin - 1] < 0.9


def test_a_sum_beyond_the_grid_has_a_larger_margin_and_nonsense_is_refused():
    noise = NOISES[0]
    wide = error_margin_of_noise_sum(noise, [1e6, 1e6], 0.1)
    assert wide == 2 * noise_margin(noise, 1e6, 0.05)
    assert error_margin_of_noise_sum(noise, [], 0.1) == 0
    assert error_margin_of_noise_sum(noise, [0.0, 2.0], 0.1, times=[1, 0]) == 0
    with pytest.raises(ArgumentError, match="finite"):
        error_margin_of_noise_sum(noise, [np.inf], 0.1)


@pytest.mark.parametrize("exact", [(), ("root",), ("root", "t1"), ("root", "t0", "t2/b0")])
@pytest.mark.parametrize("fans", [(1, 2, 3), (2, 2, 1, 4), (3, 3, 3)])
def test_under_equalities_margins_are_the_exact_intervals_of_the_nodes(fans, exact):
    model = made(fans, exact=exact)
    found = margins(model, choose_method(model))
    assert found.basis.source == "law"
    asked = [choose_method(model).interval(v, 1.0 - SHARE)[1] for v in range(len(model.tree))]
    assert found.margin.tolist() == asked


# Five standard deviations of a share of 4,000 releases.
CASES = [
    {},
    {"method": "imaging"},
    {"method": "topdown"},
    {"method": "imaging", "bound": True, "publish": BOTH},
    {"method": "topdown", "bound": True, "publish": BOTH, "split": "block = 1.0"},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_intervals_hold_as_often_as_stated_by_each_count_by_level_and_by_sum(case):
    asked = 'simultaneous = true\nsums = { some = ["t0", "t1/b0", "t1/b3"] }'
    model = made((2, 5, 1), accuracy=asked, **case)
    counts = model.tree.roll_up(np.array([0, 3, 40, 0, 0, 1, 900, 7]))
    found, releases = ends_of(model, counts, 4_000)
    assert (found.margin != UNKNOWN).all()
    holds = np.array([(r.lower <= counts) & (counts <= r.upper) for r in releases])
    share = holds.mean(axis=0)
    assert (share >= SHARE - SLACK).all() and share[0] == 1.0
    together = np.array([(r.lower_all <= counts) & (counts <= r.upper_all) for r in releases])
    for depth in range(3):
        assert together[:, model.tree.level == depth].all(axis=1).mean() >= SHARE - SLACK
    total = counts[list(found.sums[0].nodes)].sum()
    held = np.mean([r.sums[0].lower <= total <= r.sums[0].upper for r in releases])
    assert held >= SHARE - SLACK
    # margins a third smaller hold too seldom, so these are not wide for nothing
    big = int(np.flatnonzero(counts == 900)[0])
    short = [
        abs((r.upper[big] + r.lower[big]) / 2 - 900) <= 0.6 * found.margin[big] for r in releases
    ]
    assert np.mean(short) < SHARE - SLACK


def test_unmeasured_levels_have_the_margins_of_the_sums_below():
    model = made((2, 3), bound=True, method="topdown", publish=BOTH, split="block = 1.0")
    found, scale = (
        margins(model, choose_method(model)),
        float(model.mechanism.scales[model.tree.leaves[0]]),
    )
    noise = model.mechanism.noise
    for town, fan in zip(np.flatnonzero(model.tree.level == 1), (2, 3), strict=True):
        assert found.margin[town] == error_margin_of_noise_sum(noise, [scale] * fan, 0.1)


def test_margins_of_measurements_are_those_of_each_estimate_worked_out_alone():
    """Among many counts, each different margin is worked out once."""
    rng = np.random.default_rng(4)
    for split in ("block = 1.0", "town = 0.3, block = 0.7"):
        for exact in (("root",), ("root", "t1")):
            fans = tuple(int(k) for k in rng.integers(1, 6, size=6))
            asked = 'simultaneous = true\nsums = { some = ["t0", "t1", "t4/b0"] }'
            of = {"method": "topdown", "bound": True, "publish": BOTH, "accuracy": asked}
            model = made(fans, exact=exact, split=split, **of)
            found = margins(model, choose_method(model))
            tree, scales, fixed = model.tree, model.mechanism.scales, model.determined
            summed = [
                []
                if fixed[v]
                else [v]
                if np.isfinite(scales[v])
                else np.flatnonzero((tree.parents == v) & ~fixed)
                for v in range(len(tree))
            ]
            noisy = np.bincount(tree.level[[len(of) > 0 for of in summed]], minlength=tree.depth)
            for v, parts in enumerate(summed):
                law = model.mechanism.noise, scales[parts]
                assert found.margin[v] == error_margin_of_noise_sum(*law, 0.1)
                alpha = -np.expm1(np.log1p(-0.1) / max(noisy[tree.level[v]], 1))
                assert found.together[v] == error_margin_of_noise_sum(*law, alpha)
            alone = margins(model, choose_method(model), sums_only=True)
            assert alone.sums == found.sums and alone.basis == found.basis
            assert alone.margin.tolist() == np.where(fixed, 0, UNKNOWN).tolist()


def test_confidence_and_required_margins_are_the_plans():
    asked = "confidence = 0.99\nrequired = { town = 1000, block = 0 }"
    model, usual = made((2, 3), accuracy=asked), made((2, 3))
    found = margins(model, choose_method(model))
    assert (found.margin[1:] > margins(usual, choose_method(usual)).margin[1:]).all()
    assert [v.met for v in levels(model, found)] == [None, True, False]
    assert [v.required for v in levels(model, found)] == [None, 1000.0, 0.0]
    hidden = made((2, 3), accuracy=asked, bound=True)
    assert [v.met for v in levels(hidden, margins(hidden, choose_method(hidden)))] == [
        None,
        None,
        None,
    ]


def test_too_many_counts_to_simulate_have_no_intervals(monkeypatch):
    model = made((2, 3), method="imaging")
    assert simulated_releases(model) == 9_999
    monkeypatch.setattr("congenial.releases.accuracy.VALUES", 99 * len(model.tree))
    monkeypatch.setattr("congenial.releases.accuracy.MOST_VALUES", 99 * len(model.tree))
    assert simulated_releases(model) == 0
    found = margins(model, choose_method(model))
    assert found.basis == NoIntervals(("too-many-counts",))


def test_margins_of_imaging_refuse_unsupported_cases():
    tree = Tree.from_parents([-1, 0, 0])
    noisy = cg.Additive(DiscreteLaplace(2.0), tree)
    imaged = cg.image(noisy, cg.consistent(tree), integer=True)
    with pytest.raises(ArgumentError, match="beyond the limit of memory"):
        cg.inference.error_margins(imaged, size=10**9)
    with pytest.raises(ArgumentError, match="at least 9"):
        cg.inference.error_margins(imaged, size=5)
    stated = cg.image(noisy, cg.consistent(tree) & cg.linear([[1, 0, 0]], [7]))
    with pytest.raises(UnsupportedError, match="violate the sums"):
        cg.inference.error_margins(stated)
    own = cg.inference.error_margins(imaged, rng=seeded(1))
    assert cg.inference.error_margin_of_sum(imaged, [1], rng=seeded(1)) == own[1]
    assert (cg.inference.simultaneous_error_margins(imaged, rng=seeded(1)) >= own).all()


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("confidence = 1.0", "accuracy.confidence is 1.0; give a number from 0.5 to 0.999"),
        ("required = { city = 3 }", "accuracy.required.city names no level; give 'root', 'town'"),
        ("required = { town = -1 }", "accuracy.required.town is -1; give the largest margin"),
        ("sums = { a = [] }", r"accuracy.sums.a is empty; give a list of nodes"),
        ("sums = { a = ['t0', 't0'] }", "accuracy.sums.a holds 't0' twice; name each node once"),
        ("sums = { a = 't0' }", "accuracy.sums.a is 't0'; give a list of nodes"),
        ("sums = ['t0']", "accuracy.sums is .*; give a table of lists of nodes"),
        ("simultaneous = 1", "accuracy.simultaneous is 1; give true or false"),
    ],
)
def test_mistakes_in_requested_accuracy_are_refused(asked, told):
    with pytest.raises(PlanError, match=told):
        made((2, 3), accuracy=asked)


def test_a_sum_of_a_node_that_is_not_there_is_refused():
    model = made((2, 3), accuracy='sums = { a = ["t9"] }')
    with pytest.raises(PlanError, match=r"accuracy.sums.a names 't9', which is neither"):
        margins(model, choose_method(model))


@pytest.mark.parametrize(
    ("method", "publish", "told"),
    [
        (
            "conditioning",
            BOTH,
            "without measurements, .* again; give another method.name",
        ),
        ("imaging", ("measurements",), "does not hold 'table'"),
        ("imaging", ("table", "table"), "holds 'table' twice"),
        ("imaging", ("table", "measurement"), "did you mean 'measurements'"),
    ],
)
def test_mistakes_in_release_publish_are_refused(method, publish, told):
    with pytest.raises(PlanError, match=f"release.publish .*{told}"):
        made((2, 3), method=method, publish=publish)


@pytest.mark.simulated
def test_expected_errors_are_those_of_the_law():
    model = made((2, 3))
    x = np.zeros(len(model.tree), dtype=np.int64)
    found = simulated_errors(choose_method(model), x, seed=20_230_301, draws=draws_of(model))
    assert not isinstance(found, NotSimulated)
    errors = found.totals / found.draws
    for v in range(len(model.tree)):
        values, weights = choose_method(model).marginal(v, x)
        mean = float(np.abs(values) @ weights)
        spread = float(np.sqrt(max(0.0, (values**2) @ weights - mean**2) / 200))
        assert abs(errors[v] - mean) <= 5 * spread


CROSSING = """
[data]
source = "rows.csv"
[hierarchy]
root = "City"
levels = ["half"]
domain = "domain.csv"
[table]
attributes = { part = ["night", "day", "evening"], place = ["near", "far", "other"] }
margins = { root = ["part", "place", "part by place"] }
[privacy]
neighbours = "substitute"
epsilon = EPSILON
[invariants]
publish_exactly = ["root: part", "root: place"]
nonnegative = BOUND
[method]
name = "conditioning"
"""


def crossing(epsilon, bound="false"):
    plan = parse_plan(CROSSING.replace("EPSILON", str(epsilon)).replace("BOUND", bound))
    domain = plan.domain(cg.Tree.from_paths([("City", "h1"), ("City", "h2")]))
    return build_model(plan, domain)


@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_margins_of_crossing_tables_are_simulated_and_cover(epsilon):
    model = crossing(epsilon)
    mechanism = choose_method(model)
    found = margins(model, mechanism)
    assert isinstance(found.basis, BySimulation)
    zeros = np.zeros(len(model.domain), dtype=np.int64)
    errors = np.abs(mechanism.sample(zeros, 4_000, seeded(1)))
    held = (errors <= found.margin).mean(axis=0)
    assert (held > 0.9 - 5.0 * np.sqrt(0.09 / 4_000)).all()
    exact = model.determined
    assert (found.margin[exact] == 0).all()
    assert (found.margin[~exact] > 0).all()
    # a release that states no margins is read as it is
    stated = margins(model, mechanism, without_crossing=True)
    assert stated.basis == NO_MARGINS_OF_CROSSING


def test_crossing_tables_with_bounds_or_costly_draws_have_no_margins(monkeypatch):
    bounded = crossing(8.0, "true")
    assert margins(bounded, choose_method(bounded)).basis == NO_MARGINS_OF_CROSSING
    model = crossing(0.2)
    mechanism = choose_method(model)
    monkeypatch.setattr(accuracy, "_MOST_WORK", 1_000 * mechanism.values)
    few = margins(model, mechanism)
    assert few.basis == BySimulation(1_000, RISK)
    monkeypatch.setattr(accuracy, "_MOST_WORK", 1_000)
    assert margins(model, choose_method(model)).basis == NO_MARGINS_OF_CROSSING


@pytest.mark.parametrize("method", ["imaging", "topdown"])
def test_few_releases_of_crossing_tables_are_simulated_without_conditioning(method, monkeypatch):
    text = CROSSING.replace('"conditioning"', f'"{method}"').replace("EPSILON", "1.0")
    plan = parse_plan(text.replace("BOUND", "false"))
    domain = plan.domain(cg.Tree.from_paths([("City", "h1"), ("City", "h2")]))
    model = build_model(plan, domain)
    mechanism = choose_method(model)
    found = margins(model, mechanism)
    assert found.basis == BySimulation(FEWER, RISK)
    zeros = np.zeros(len(model.domain), dtype=np.int64)
    errors = np.abs(mechanism.sample(zeros, 1_000, seeded(1)))
    held = (errors <= found.margin).mean(axis=0)
    assert (held > 0.9 - 5.0 * np.sqrt(0.09 / 1_000)).all()
    assert (found.margin[~model.determined] > 0).all()
    monkeypatch.setattr(accuracy, "_MOST_CROSSING", len(model.domain) - 1)
    assert margins(model, mechanism).basis == NO_MARGINS_OF_CROSSING
