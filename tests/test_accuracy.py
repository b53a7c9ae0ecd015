"""Margins of error: the quantiles of the noise, and of each node's law given equalities."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.model import build_model
from congenial.plan import parse_plan
from congenial.randomness import seeded
from congenial.report.margins import SHARE, expected_errors, margins, noise_margin
from congenial.sections import GAUSSIAN, LAPLACE
from congenial.tree import Tree

PLAN = """
[data]
source = "rows.csv"
[hierarchy]
root = "all"
levels = ["town", "block"]
domain = "nodes.csv"
names_repeat = true
[privacy]
neighbours = "substitute"
epsilon = 0.8
split = { town = 0.4, block = 0.6 }
[invariants]
publish_exactly = EXACT
nonnegative = BOUND
[method]
name = "conditioning"
"""


def made(fans, *, exact=("root",), bound=False):
    """Return the model of a plan whose towns have so many blocks."""
    paths = [("all", f"t{t}", f"b{k}") for t, fan in enumerate(fans) for k in range(fan)]
    text = PLAN.replace("EXACT", str(list(exact)).replace("'", '"'))
    plan = parse_plan(text.replace("BOUND", str(bound).lower()))
    return build_model(plan, Tree.from_paths(paths))


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("scale", [0.1, 0.3, 0.7, 1.0, 3.3, 12.5, 100.0])
def test_the_margin_of_noise_is_the_least_that_holds(noise, scale):
    size = np.arange(0, int(60 * scale) + 60)
    rate = size / scale if noise == LAPLACE else 0.5 * (size / scale) ** 2
    weights = np.exp(-rate)
    weights[1:] *= 2.0
    within = np.cumsum(weights) / weights.sum()
    margin = noise_margin(scale, noise)
    assert within[margin] >= SHARE - 1e-12
    assert margin == 0 or within[margin - 1] < SHARE


def test_the_normal_quantile_takes_over_without_a_jump():
    below, above = noise_margin(9_999.0, GAUSSIAN), noise_margin(10_001.0, GAUSSIAN)
    assert abs(above - below) <= 6


@pytest.mark.parametrize("exact", [(), ("root",), ("root", "t1"), ("root", "t0", "t2/b0")])
@pytest.mark.parametrize("fans", [(1, 2, 3), (2, 2, 1, 4), (3, 3, 3)])
def test_under_equalities_margins_are_the_exact_intervals_of_the_nodes(fans, exact):
    model = made(fans, exact=exact)
    found = margins(model)
    assert found.kind == "exact"
    asked = [model.engine.interval(v, 1.0 - SHARE)[1] for v in range(len(model.tree))]
    assert found.margin.tolist() == asked


def test_draws_stay_within_margins_as_often_as_stated_and_not_within_smaller_ones():
    model = made((2, 5, 1))
    found, x = margins(model).margin, np.zeros(len(model.tree), dtype=np.int64)
    drawn = np.abs(model.engine.sample(x, size=20_000, rng=seeded(1)))
    # five standard deviations of a share of 20,000 draws
    slack = 5 * np.sqrt(0.09 / 20_000)
    assert ((drawn <= found).mean(axis=0) >= SHARE - slack).all()
    noisy = found > 0
    assert ((drawn <= 0.7 * found).mean(axis=0)[noisy] < SHARE - slack).all()


def test_under_bounds_margins_are_those_of_the_noise():
    model = made((2, 3), bound=True)
    found = margins(model)
    assert found.kind == "noise"
    scales = model.mechanism.scales
    for v in range(1, len(model.tree)):
        assert found.margin[v] == noise_margin(float(scales[v]), LAPLACE)
    assert found.margin[0] == 0


def test_expected_errors_are_those_of_the_law():
    model = made((2, 3))
    x = np.zeros(len(model.tree), dtype=np.int64)
    errors = expected_errors(model, x)
    for v in range(len(model.tree)):
        values, weights = model.engine.marginal(v, x)
        mean = float(np.abs(values) @ weights)
        spread = float(np.sqrt(max(0.0, (values**2) @ weights - mean**2) / 200))
        assert abs(errors[v] - mean) <= 5 * spread
