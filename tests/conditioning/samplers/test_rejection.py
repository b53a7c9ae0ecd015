"""Rejection: how often candidates are accepted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.samplers.rejection import Rejection
from support.proposal_cases import ALL, made
from support.tree_cases import CASES


@pytest.mark.parametrize("name", ALL)
def test_the_acceptance_follows_from_the_normaliser(name):
    case = ALL[name]
    conditioned = made(case, "rejection")
    batch = conditioned.batch(case.x, 1, 40_000, cg.seeded(7))
    share = float((batch.log_uniforms <= batch.log_weights).mean())
    chance = conditioned.acceptance(case.x)
    assert abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / 40_000)


def test_the_ratio_of_continuous_gaussian_noise_is_its_acceptance():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    mechanism = cg.Additive(cg.Gaussian([1.0, 0.5, 2.0, 1.5]), tree)
    conditioned = cg.condition(mechanism, cg.consistent(tree), "rejection")
    x = np.array([6.0, 1.0, 2.0, 3.0])
    batch = conditioned.batch(x, 1, 40_000, cg.seeded(2))
    share = float((batch.log_uniforms <= batch.log_weights).mean())
    assert share == pytest.approx(conditioned.acceptance(x), abs=0.0125)
    assert conditioned.acceptance(x) > 0.1


@pytest.fixture
def batches(monkeypatch):
    """The batches of candidates that are drawn, each of a few."""
    made, draw = [], Rejection.batch

    def recorded(self, counts, rows, steps, source):
        made.append(draw(self, counts, rows, steps, source))
        return made[-1]

    monkeypatch.setattr(Rejection, "batch", recorded)
    monkeypatch.setattr(Rejection, "_most_at_once", 5)
    return made


def test_a_study_returns_accepted_candidates_in_order(batches):
    case = CASES["star"]
    found = made(case, "rejection").sample(case.x, 20, cg.seeded(3))
    noise, weights, uniforms = (
        np.concatenate([part[0] for part in parts]) for parts in zip(*batches, strict=True)
    )
    np.testing.assert_array_equal(found, case.x + noise[uniforms <= weights][:20])


def test_fixed_work_returns_the_first_accepted_or_the_last_candidate(batches):
    case, rows, steps = CASES["star"], 60, 7
    conditioned = replace(made(case, "rejection"))
    object.__setattr__(conditioned, "steps", steps)
    found = conditioned._fixed_work(case.x, rows, cg.seeded(4))
    # each row has its batches one after another
    parts = [np.concatenate(p, axis=1) for p in zip(*batches, strict=True)]
    noise, weights, uniforms = (part.reshape(rows, steps, *part.shape[2:]) for part in parts)
    accepted = uniforms <= weights
    first = np.where(accepted.any(axis=1), accepted.argmax(axis=1), steps - 1)
    np.testing.assert_array_equal(found, noise[np.arange(rows), first])
    assert not accepted.any(axis=1).all()
    assert (first[accepted.any(axis=1)] > 4).any()
