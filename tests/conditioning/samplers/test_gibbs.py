"""Blocked Gibbs for sums with many cycles: its law, its blocks, its diagnostics, its refusals."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.chains import bulk_ess, split_rhat, tail_ess
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
def test_chains_follow_the_law_and_no_other(name):
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


def test_a_table_with_many_cycles_is_chained_by_itself():
    rng = cg.seeded(5)
    x = (rng.bits(25) % np.uint64(7)).astype(np.int64)
    rows = margins(5, 5)
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(1.0), 25), cg.linear(rows, rows @ x) & cg.nonnegative()
    )
    assert isinstance(conditioned, GibbsConditioned)
    draws, info = conditioned.run(x, 200, 3, cg.seeded(1))
    assert (draws.values @ rows.T == rows @ x).all()
    assert draws.values.min() >= 0
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


def test_nothing_is_released_and_nothing_certified():
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


def series(kind: str, chains: int, draws: int) -> np.ndarray:
    """Chains by formula, so that other programs can be given the same."""
    i = np.arange(chains * draws, dtype=np.float64).reshape(chains, draws)
    wave = np.sin(i * i * 0.7 + 3 * i) * np.cos(5.1 * i) + 0.3 * np.sin(1.7 * i**1.5)
    sticky = np.zeros_like(wave)
    for t in range(1, draws):
        sticky[:, t] = 0.9 * sticky[:, t - 1] + wave[:, t]
    return {
        "independent": wave,
        "sticky": sticky,
        "shifted": wave + np.arange(chains)[:, None] * 0.5,
        "integers": np.rint(2 * sticky),
        "alternating": 0.3 * wave + (-1.0) ** np.arange(draws),
        "wide": wave * np.arange(1, chains + 1)[:, None],
        "walk": np.cumsum(wave, axis=1),
    }[kind]


# split rank-normalised R-hat, bulk and tail ESS by ArviZ (arviz-stats 0.8.0)
ARVIZ = [
    ("independent", 4, 101, 1.004931617705292, 401.7464850876077, 335.6805128303635),
    ("independent", 2, 40, 1.00092466375101, 100.86071517602463, 87.99838904550947),
    ("sticky", 4, 101, 1.0473885114760957, 49.94163205233067, 54.445329038364896),
    ("sticky", 2, 40, 1.5491997230737762, 4.3327843863608235, 30.881755383990257),
    ("shifted", 4, 101, 1.4262799755451188, 8.98966153873435, 69.52958090084267),
    ("integers", 4, 101, 1.0403920343669224, 53.58681512957564, 65.07915765801113),
    ("integers", 2, 40, 1.5141845980683342, 4.570264856956389, 8.84471129358379),
    ("alternating", 4, 101, 0.992481391469077, 1040.823996531185, 408.69230140473354),
    ("wide", 4, 101, 1.1829172401484336, 366.7576520607906, 234.05676539308286),
    ("walk", 4, 101, 1.4793828263139206, 8.408437665274025, 28.54305337135344),
    ("walk", 2, 40, 2.0050637040908232, 3.307671113500942, 19.63316972358565),
]


@pytest.mark.parametrize(("kind", "chains", "draws", "r_hat", "bulk", "tail"), ARVIZ)
def test_diagnostics_agree_with_arviz(kind, chains, draws, r_hat, bulk, tail):
    values = series(kind, chains, draws)[:, :, None]
    assert split_rhat(values)[0] == pytest.approx(r_hat, rel=1e-9)
    assert bulk_ess(values)[0] == pytest.approx(bulk, rel=1e-9)
    assert tail_ess(values)[0] == pytest.approx(tail, rel=1e-9)


def test_diagnostics_take_entries_one_by_one():
    both = np.stack([series("sticky", 4, 101), np.ones((4, 101)), series("walk", 4, 101)], axis=2)
    for measure in (split_rhat, bulk_ess, tail_ess):
        alone = [measure(both[:, :, [i]])[0] for i in range(3)]
        np.testing.assert_allclose(measure(both), alone, rtol=1e-12)
        assert np.isnan(alone[1])
        assert np.isnan(measure(both[:, :7])).all()
