"""Samplers by proposals: their laws, the bound on their error, and refused releases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import congenial as cg
from congenial.errors import (
    ArgumentError,
    NumericalError,
    PrivacyError,
    UnsupportedError,
)
from support.conditioning_cases import Case
from support.goodness_of_fit import FAILS, fit
from support.proposal_cases import ALL, DRAWS, made
from support.sum_networks import scaled
from support.tree_cases import CASES, make

SAMPLERS = ("rejection", "perfect", "independence")


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", ALL)
def test_draws_follow_the_law_and_fail_at_a_wrong_scale(name, sampler):
    case = ALL[name]
    conditioned = made(case, sampler)
    if sampler == "independence":  # far enough apart to be nearly independent
        apart = int(np.ceil(20 * np.exp(conditioned.log_ratio(case.x))))
        draw, _ = conditioned.run(case.x, DRAWS // 4, 4, cg.seeded(11), thin=apart)
        draws = draw.values.reshape(-1, case.n)
    else:
        draws = conditioned.sample(case.x, DRAWS, cg.seeded(11))
    assert draws.dtype == np.int64
    assert fit(draws, case.law(), range(case.n)) > FAILS
    for off in (0.7, 1.3):
        assert fit(draws, scaled(case, off), range(case.n)) < FAILS


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("factor", [0.8, 1.5])
def test_another_scale_of_the_proposal_gives_the_same_law(sampler, factor):
    case = CASES["star"]
    if factor < 1 and sampler != "independence":
        with pytest.raises(ArgumentError, match="narrower than the noise"):
            made(case, sampler, scale=case.scales * factor)
        return
    conditioned = made(case, sampler, scale=case.scales * factor)
    if sampler == "independence":
        draws = conditioned.run(case.x, 5000, 4, cg.seeded(5), thin=40)[0].values.reshape(-1, 4)
    else:
        draws = conditioned.sample(case.x, DRAWS, cg.seeded(5))
    assert fit(draws, case.law(), range(4)) > FAILS
    assert fit(draws, scaled(case, 1.3), range(4)) < FAILS


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_release_has_the_law_too(sampler):
    """By the code of a release: a fixed number of proposals, from the system's entropy."""
    case = make((-1, 0, 0, 0), 0.5, [3, 0, 1])
    conditioned = made(case, sampler)
    draws = conditioned.sample(case.x, 3000, cg.secure())
    assert fit(draws, case.law(), range(4)) > FAILS
    assert 1e-13 < conditioned.error_bound < 1e-9
    told = conditioned.guarantee("substitute")
    assert told.sampler_error == conditioned.error_bound
    assert told.delta == pytest.approx((1 + np.exp(told.epsilon)) * conditioned.error_bound)
    assert told.gamma == 0.0
    assert f"{conditioned.steps} proposals for every dataset" in conditioned.explain()
    chance = np.exp(-conditioned.log_ratio(case.x))
    assert (1 - chance) ** conditioned.steps < conditioned.error_bound
    assert (1 - chance) ** (conditioned.steps - 3) > 2.0**-40


def test_the_mechanism_itself_may_be_proposed():
    case = Case("laplace", np.full(3, 0.6), np.array([2, 1, 3]), rows=((1, 1, -1),))
    conditioned = made(case, "rejection", index=range(3))
    draws = conditioned.sample(case.x, DRAWS, cg.seeded(3))
    assert fit(draws, case.law(), range(3)) > FAILS
    assert fit(draws, scaled(case, 1.3), range(3)) < FAILS
    # the acceptance is then the probability of the invariant
    assert conditioned.acceptance(case.x) == pytest.approx(np.exp(case.law().log_total))
    with pytest.raises(PrivacyError, match="may miss the equalities every time"):
        conditioned.sample(case.x)
    for sampler in ("independence", "perfect"):
        with pytest.raises(ArgumentError, match="index of all entries"):
            made(case, sampler, index=range(3))


def test_trace_acceptance_and_thinning_are_of_one_chain():
    case = CASES["star, pinned total"]
    conditioned = made(case, "independence")
    whole, info = conditioned.run(case.x, 600, 3, cg.seeded(8), warmup=0)
    few, thinned = conditioned.run(case.x, 200, 3, cg.seeded(8), warmup=0, thin=3)
    np.testing.assert_array_equal(whole.values[:, 2::3], few.values)
    np.testing.assert_array_equal(info.acceptance, thinned.acceptance)
    moved = (np.diff(whole.values, axis=1) != 0).any(axis=2).mean(axis=1)
    assert (moved <= info.acceptance + 1e-9).all()
    assert info.tv_bound == thinned.tv_bound
    late, _ = conditioned.run(case.x, 400, 3, cg.seeded(8), warmup=200)
    np.testing.assert_array_equal(whole.values[:, 200:], late.values)
    assert info.tail_ess.shape == info.bulk_ess.shape == info.r_hat.shape == (case.n,)
    assert not info.certified


def test_blocks_of_candidates_change_nothing_but_the_order(monkeypatch):
    case = CASES["star"]
    monkeypatch.setattr("congenial.conditioning.proposing._BLOCK", 64 * 4)
    conditioned = made(case, "independence")
    draw, _ = conditioned.run(case.x, 2500, 7, cg.seeded(8), thin=3)
    assert fit(draw.values.reshape(-1, 4)[::5], case.law(), range(4)) > FAILS
    for sampler in ("rejection", "perfect"):
        draws = made(case, sampler).sample(case.x, 4000, cg.seeded(9))
        assert fit(draws, case.law(), range(4)) > FAILS
    wide = made(make((-1, 0, 0, 0, 0), 3.0, [3, 0, 1, 2]), "rejection")
    assert wide.steps > 64  # more than a block, for each of the draws
    assert wide.sample([6, 3, 0, 1, 2], 20).shape == (20, 5)


UNRELEASED = {
    "inequalities": (CASES["star, pinned total, nonnegative"], {}, "confidential data"),
    "narrower": (CASES["star"], {"scale": 0.5}, "narrower than the noise"),
}


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("name", UNRELEASED)
def test_nothing_uncertified_is_released(name, sampler):
    case, proposal, why = UNRELEASED[name]
    if proposal and sampler != "independence":
        return
    conditioned = made(case, sampler, **proposal)
    for call in (
        lambda: conditioned.sample(case.x),
        lambda: conditioned.sample(case.x, 5, cg.secure()),
        lambda: conditioned.guarantee("substitute"),
    ):
        with pytest.raises(PrivacyError, match=why):
            call()
    assert conditioned.error_bound == 1.0
    assert "not for releases" in conditioned.explain()
    if sampler == "independence":
        with pytest.raises(PrivacyError, match="a chain's run is not a release"):
            conditioned.run(case.x)


def test_a_narrower_proposal_has_no_bound_and_says_so():
    conditioned = made(CASES["star"], "independence", scale=0.5)
    x = CASES["star"].x
    assert conditioned.log_ratio(x) == np.inf
    _, info = conditioned.run(x, 20, 2, cg.seeded(1))
    assert info.tv_bound is None and "narrower" in info.unbounded
    assert "narrower than the noise" in conditioned.explain()
    assert conditioned.sample(x, 6, cg.seeded(1)).shape == (6, 4)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("noise", [cg.Laplace, cg.Gaussian])
def test_continuous_noise_is_for_studies(noise, sampler):
    tree = cg.Tree.from_parents([-1, 0, 0])
    x = np.array([3.5, 2.0, 1.5])
    for invariant in (cg.consistent(tree), cg.consistent(tree) & cg.nonnegative()):
        conditioned = cg.condition(cg.Additive(noise(0.8), tree), invariant, sampler)
        if sampler == "independence":
            draws = conditioned.run(x, 2500, 4, cg.seeded(3), thin=20)[0].values.reshape(-1, 3)
        else:
            draws = conditioned.sample(x, 10_000, cg.seeded(3))
        np.testing.assert_allclose(draws[:, 0], draws[:, 1] + draws[:, 2], atol=1e-12)
        # the first child's law, summed over a grid of both children
        axis = np.linspace(-9.0, 9.0, 721)
        first, second = np.meshgrid(axis, axis, indexing="ij")
        inside = (first >= -2.0) & (second >= -1.5) if len(invariant.parts) > 1 else True
        for factor, right in ((1.0, True), (0.7, False), (1.3, False)):
            cost = sum(
                np.abs(u) if noise is cg.Laplace else u * u / 1.6
                for u in (first, second, first + second)
            )
            law = (np.exp(-cost / (0.8 * factor)) * inside).sum(axis=1)
            law = np.cumsum(law / law.sum())
            ends = np.interp(np.arange(1, 20) / 20, law, axis + 0.0125)
            share = np.bincount(np.searchsorted(ends, draws[:, 1] - 2.0), minlength=20)
            statistic = ((share - 500.0) ** 2 / 500.0).sum()
            assert (chi2.sf(statistic, 19) > FAILS) == right
        with pytest.raises(PrivacyError, match="for studies only"):
            conditioned.sample(x)
        with pytest.raises(PrivacyError, match="for studies only"):
            conditioned.guarantee("substitute")


def test_a_grid_has_chains_and_proposals_too():
    mechanism = cg.Additive(cg.DiscreteLaplace(0.8, granularity=0.25), 3)
    invariant = cg.linear([[1, 1, 1]], 2.5)
    x = np.array([1.0, 0.75, 0.75])
    given = cg.conditioning.Proposal(index=[0, 2], scale=1.0)
    conditioned = cg.condition(mechanism, invariant, "independence", proposal=given)
    assert conditioned.inner.placed.scales.tolist() == [4.0, 4.0]
    draw, info = conditioned.run(x, 50, 2, cg.seeded(1))
    assert (draw.values.sum(axis=2) == 2.5).all()
    assert (draw.values * 4 == np.rint(draw.values * 4)).all()
    assert info.tv_bound is not None
    assert conditioned.sample(x, 4).sum(axis=1).tolist() == [2.5] * 4
    assert conditioned.guarantee("substitute").delta > 0


def test_a_study_that_gives_up_shows_no_count(monkeypatch):
    monkeypatch.setattr("congenial.conditioning.proposing._ATTEMPTS", 64)
    tree = cg.Tree.from_parents([-1] + [0] * 40)
    mechanism = cg.Additive(cg.DiscreteLaplace(50.0), tree)
    x = tree.roll_up(np.arange(40))
    for sampler in ("rejection", "perfect"):
        with pytest.raises(NumericalError) as caught:
            cg.condition(mechanism, cg.consistent(tree) & cg.nonnegative(), sampler).sample(
                x, rng=cg.seeded(1)
            )
        assert not any(c.isdigit() for c in str(caught.value))
    many = cg.Tree.from_parents([-1] * 40 + [*range(40)] * 2)
    deep = cg.condition(cg.Additive(cg.DiscreteLaplace(9.0), many), cg.consistent(many), "perfect")
    for call in (
        lambda: deep.guarantee("substitute"),
        lambda: deep.sample(np.zeros(120, dtype=int)),
    ):
        with pytest.raises(UnsupportedError, match="one release would take"):
            call()
    assert "too many proposals" in deep.explain()
