"""Blocked Gibbs for sums with many cycles: its law, its blocks, its diagnostics, its refusals."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.samplers.gibbs import GibbsConditioned, choose_blocks
from congenial.errors import ArgumentError, PrivacyError, UnsupportedError
from congenial.sum_network.cutset.systems import cycle_closers
from support.goodness_of_fit import FAILS, fit
from support.sum_networks import margins, scaled, table_case

SQUARE = [1, 2, 0, 0, 3, 1, 2, 2, 1]


def chained(case):
    mechanism = cg.Additive(
        {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}[case.kind](case.scales),
        case.n,
    )
    rows = np.array(case.rows)
    return cg.condition(mechanism, cg.linear(rows, rows @ case.x) & cg.bounds(case.lo), "gibbs")


CASES = {
    "laplace": table_case((3, 3), 0.6, SQUARE),
    "nonnegative": table_case((3, 3), 0.8, SQUARE, lo=0),
    "gaussian": table_case((3, 3), 0.8, SQUARE, kind="gaussian"),
}


@pytest.mark.parametrize("name", CASES)
def test_chains_follow_the_law_and_fail_at_a_wrong_scale(name):
    case = CASES[name]
    draw, info = chained(case).run(case.x, 5000, 4, cg.seeded(3))
    assert draw.values.shape == (4, 5000, 9)
    assert (draw.values @ case.all_rows.T == case.all_rows @ case.x).all()
    assert info.worst[0] < 1.01
    # far enough apart to be nearly independent
    apart = draw.values[:, :: 4 * int(np.ceil(20000 / info.worst[1]))].reshape(-1, 9)
    assert fit(apart, case.law(), range(9)) > FAILS
    thinned = draw.values.reshape(-1, 9)
    for off in (0.7, 1.3):
        assert fit(thinned, scaled(case, off), range(9)) < FAILS


def test_chains_draw_a_table_with_many_cycles():
    rng = cg.seeded(5)
    x = (rng.bits(25) % np.uint64(7)).astype(np.int64)
    rows = margins(5, 5)
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), 25),
        cg.linear(rows, rows @ x) & cg.nonnegative(),
        "gibbs",
    )
    assert isinstance(conditioned, GibbsConditioned)
    draws, info = conditioned.run(x, 200, 3, cg.seeded(1))
    assert (draws.values @ rows.T == rows @ x).all()
    assert draws.values.min() >= 0
    np.testing.assert_array_equal(info.noise, draws.values - x)
    assert info.irreducible is True
    assert not info.certified
    assert (np.isfinite(info.r_hat)).all()  # every entry moves
    assert conditioned.sample(x, 10, cg.seeded(1)).shape == (10, 25)
    assert conditioned.sample(x, rng=cg.seeded(1)).shape == (25,)
    again = conditioned.sample(x, 10, cg.seeded(1))
    np.testing.assert_array_equal(again, conditioned.sample(x, 10, cg.seeded(1)))


def test_blocks_are_forests_and_together_move_everything():
    system = chained(CASES["laplace"]).sums
    blocks = choose_blocks(system)
    assert len(blocks) > 1
    assert set.intersection(*map(set, blocks)) == set()
    for cut in blocks:
        rest = [{v: a for v, a in row.items() if v not in cut} for row in system.rows]
        assert cycle_closers(rest, range(system.size)) == []


def test_chains_neither_release_nor_state_a_guarantee():
    case = CASES["laplace"]
    conditioned = chained(case)
    for call in (
        lambda: conditioned.sample(case.x),
        lambda: conditioned.run(case.x, rng=cg.secure()),
        lambda: conditioned.guarantee("substitute"),
        lambda: conditioned.guarantee("add-remove"),
    ):
        with pytest.raises(PrivacyError, match="not certified") as caught:
            call()
        assert str(caught.value).endswith(".")
    for ask in (
        lambda: conditioned.log_normalizer(case.x),
        lambda: conditioned.log_prob(case.x, case.x),
        lambda: conditioned.marginal(0, case.x),
        lambda: conditioned.joint([0, 1], case.x),
        lambda: conditioned.interval(0),
    ):
        with pytest.raises(UnsupportedError, match="estimate it from run"):
            ask()
    with pytest.raises(ArgumentError):
        conditioned.run(case.x, 0, 4, cg.seeded(1))
    assert conditioned.error_bound == 1.0
    for told in (
        "Not certified",
        "multiplications",
        "iB and",
        "R-hat",
        "every solution is reached from every other",
    ):
        assert told in conditioned.explain()
