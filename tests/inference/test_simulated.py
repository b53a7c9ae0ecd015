"""Margins by simulation: with many counts, few simulated releases still give valid margins."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError
from congenial.inference import simulated
from congenial.inference.error_law import error_margin_of_sum, error_margins_of_sums
from congenial.inference.simulated import cautious_alpha, in_batches, largest, rank, truths
from congenial.randomness import seeded
from congenial.releases.accuracy import RISK, margins, simulated_releases
from congenial.releases.model import choose_method
from congenial.releases.sentences import about_intervals
from support.margins_of_plans import SHARE, SLACK, ends_of, made


@pytest.mark.parametrize("alpha", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("size", [17, 100, 256])
def test_a_cautious_quantile_is_the_least_that_is_too_small_with_small_probability(size, alpha):
    share = 1 - Fraction(str(alpha))
    chances = [math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)]
    found = cautious_alpha(alpha, size, RISK)
    # the k-th smallest is below the quantile where k values are
    tails = list(accumulate(reversed(chances)))[::-1]
    fit = [k for k in range(size + 1) if tails[k] <= RISK]
    assert (found is None) == (not fit)
    if found is not None:
        assert rank(size, found) == fit[0]
        assert found < alpha


@pytest.mark.parametrize("batch", [1, 7, 1000])
@pytest.mark.parametrize("kept", [1, 3, 40])
def test_the_largest_values_of_parts_are_those_of_the_whole(batch, kept):
    whole = (np.arange(40 * 9).reshape(40, 9) * 7919) % 211 - 105
    parts = (whole[at : at + batch] for at in range(0, 40, batch))
    assert (largest(parts, kept) == np.sort(np.abs(whole), axis=0)[40 - kept]).all()


def test_batches_do_not_change_margins(monkeypatch):
    model = made((2, 3), method="imaging")
    whole = cg.inference.error_margins(choose_method(model), size=999, rng=seeded(3))
    monkeypatch.setattr(simulated, "_VALUES", 50)
    assert (
        cg.inference.error_margins(choose_method(model), size=999, rng=seeded(3)) == whole
    ).all()
    assert (whole[1:] > 0).all() and whole[0] == 0


def test_sums_share_a_simulation():
    model = made((2, 3), method="topdown")
    sums = [[1], [3, 4], ["t0", "all/t1/b1"]]
    found = error_margins_of_sums(choose_method(model), sums, 0.1, size=500, rng=seeded(2))
    alone = [error_margin_of_sum(choose_method(model), at, size=500, rng=seeded(2)) for at in sums]
    assert found == alone
    with pytest.raises(ArgumentError, match="no node is named"):
        error_margins_of_sums(choose_method(model), [[1], []], 0.1, size=500, rng=seeded(2))


@pytest.mark.parametrize(("draws", "method"), [(100, "imaging"), (256, "topdown")])
def test_margins_from_few_simulated_releases_hold_and_state_their_number(
    monkeypatch, draws, method
):
    asked = 'simultaneous = true\nsums = { some = ["t0", "t1/b0"] }'
    model = made((2, 5), accuracy=asked, method=method)
    usual = margins(model, choose_method(model))
    text = about_intervals(usual.basis, 0.9)
    assert "9,999 simulated releases" in text and "More" not in text
    n = len(model.tree)
    monkeypatch.setattr("congenial.releases.accuracy.VALUES", n)
    monkeypatch.setattr("congenial.releases.accuracy.MOST_VALUES", draws * n)
    assert simulated_releases(model) == draws
    counts = model.tree.roll_up(np.array([0, 3, 40, 0, 900, 1, 7]))
    found, releases = ends_of(model, counts, 1_000)
    text = about_intervals(found.basis, 0.9)
    assert f"{draws} simulated releases" in text and "More simulated releases would" in text
    assert found.margin.mean() > 1.1 * usual.margin.mean()
    slack = 2 * SLACK
    holds = np.array([(r.lower <= counts) & (counts <= r.upper) for r in releases])
    assert (holds.mean(axis=0) >= SHARE - slack).all()
    together = np.array([(r.lower_all <= counts) & (counts <= r.upper_all) for r in releases])
    for depth in range(3):
        assert together[:, model.tree.level == depth].all(axis=1).mean() >= SHARE - slack
    total = counts[list(found.sums[0].nodes)].sum()
    held = np.mean([r.sums[0].lower <= total <= r.sums[0].upper for r in releases])
    assert held >= SHARE - slack
    # a third of them would not do
    near = [
        np.abs(r.upper + r.lower - 2 * counts)[1:] <= found.margin[1:] * 2 / 3 for r in releases
    ]
    assert np.mean(near) < SHARE - slack


def test_results_are_those_of_all_draws_in_order():
    drawn = []

    def sample(size, _):
        first = len(drawn)
        drawn.extend(range(first, first + size))
        return np.repeat(np.arange(first, first + size)[:, None], 50_000, axis=1)

    answers = in_batches(sample, 50_000, 700, seeded(1), lambda z: z[:, 0] * 2)
    assert answers.tolist() == [2 * i for i in range(700)]
    assert drawn == list(range(700))


def test_an_event_is_true_or_false_of_every_draw():
    z = np.arange(6).reshape(3, 2)
    assert truths(lambda z: z[:, 0] > 1)(z).tolist() == [0, 1, 1]
    for wrong in (lambda z: z[:, 0], lambda z: z > 1, lambda z: True):
        with pytest.raises(ArgumentError):
            truths(wrong)(z)
