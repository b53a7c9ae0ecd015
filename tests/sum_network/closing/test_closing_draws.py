"""Draws by rejection of closers: their law, their mass, and decisions in decimals."""

from __future__ import annotations

import math
from collections import Counter
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext

import numpy as np
import pytest

import congenial as cg
from congenial.errors import NumericalError
from congenial.kernels.numerics import laws
from congenial.sum_network import closing, exact
from congenial.sum_network.closing import closing_draws
from congenial.sum_network.exact import exact_draws
from support.attempts import probability
from support.closing_cases import crossing_at_random
from support.goodness_of_fit import FAILS, p_value
from support.narrow_windows import narrow_windows

pytestmark = pytest.mark.kernels

CLOSE = Decimal("1e-38")
SEEDS = range(48)


def drawn_from(seed):
    """A random table with rejection, and envelopes of its noise."""
    case = crossing_at_random(seed)
    made = case.by_rejection()
    of = next(each for each in made._draws(case.x) if each.closing.trees)
    return case, made, of


def noted(of, monkeypatch, rows, rng, **given):
    """All places of accepted attempts from envelopes, and their choices beyond windows."""
    seen, decide = [], exact_draws.Acceptance.accepted

    def noting(self, values, doubt, rare, rng):
        found = decide(self, values, doubt, rare, rng)
        seen.extend((values[:, i].copy(), rare.get(i, {})) for i in np.flatnonzero(found).tolist())
        return found

    with monkeypatch.context() as patched:
        patched.setattr(exact_draws.Acceptance, "accepted", noting)
        accepted, values = exact.attempt(of, rows, rng, **given)
    return accepted, values, seen


def weight_of(made, noise):
    """The product of the weights of all measured values, in decimals."""
    out, mechanism = Decimal(1), made.mechanism
    for u, scale in zip(noise.tolist(), mechanism.scales.tolist(), strict=True):
        if math.isfinite(scale):
            width = Decimal(scale)
            normal = mechanism.noise.kind == laws.GAUSSIAN
            out *= (-u * u / (2 * width * width) if normal else -abs(u) / width).exp()
    return out


def composed(of):
    """Whether some variables are drawn by compositions, whose choices have no weights."""
    return any(each.network.members.size for each in (of.free, *of.trees.values()))


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_an_attempt_leads_to_values_with_their_weight_over_the_mass(seed, narrow, monkeypatch):
    if narrow:
        narrow_windows(monkeypatch, 0.2)
    case, made, of = drawn_from(seed)
    if composed(of):
        return
    rng, part = cg.seeded(seed), of.closing.free
    low, high = closing.mass([of])(1)
    _, values, seen = noted(of.free, monkeypatch, 20, rng, first=part.forest.n)
    with localcontext(prec=90, Emin=MIN_EMIN, Emax=MAX_EMAX):
        assert Decimal(0) < low < high < low * (1 + Decimal("1e-50"))
        for row, (places, rare) in zip(values, seen, strict=True):
            noise = np.zeros(made.system.size, dtype=np.int64)
            noise[part.variables] = row * part.forest.orientation
            closers = of.closing.multiples @ noise[part.variables]
            share = closing_draws.share_of(of, closers)(1)[0]
            if not (share and closing_draws._possible(of, closers[None]).all()):
                continue
            noise[of.closing.closers] = closers
            p = probability(of.free, places, rare) * share
            for number, tree in of.trees.items():
                mine = of.closing.trees[number]
                roots = np.full(50, closers[number])
                given = {"first": mine.forest.n, "roots": roots}
                _, below, inside = noted(tree, monkeypatch, 50, rng, **given)
                if not inside:  # hardly possible values are refused
                    break
                noise[mine.variables] = below[0] * mine.forest.orientation
                p *= probability(tree, *inside[0])
            else:
                mine = np.zeros(case.x.size, dtype=np.int64)
                own = of.closing.variables[of.closing.variables < case.x.size]
                mine[own] = noise[own]
                found = p * low / weight_of(made, mine)
                assert abs(found - 1) < CLOSE


def test_these_tables_have_all_kinds_of_closers():
    kinds = Counter()
    for seed in SEEDS:
        case, made, of = drawn_from(seed)
        kinds["trees"] += bool(of.trees)
        kinds["alone"] += len(of.trees) < len(of.closing.trees)
        kinds["bounds"] += not made.data_free
        kinds["flat"] += bool((of.weights.kind == laws.FLAT).any())
        kinds["normal"] += case.kind == "gaussian"
        kinds["no composition"] += not composed(of)
        kinds["against bounds"] += not made.data_free and of.closing.owns_sums
        kinds["tilted"] += any(bool(tree.network.tilt.any()) for tree in of.trees.values())
    wanted = (
        "trees",
        "alone",
        "bounds",
        "flat",
        "normal",
        "no composition",
        "tilted",
        "against bounds",
    )
    assert all(kinds[kind] >= 3 for kind in wanted), kinds


def chi_square(draws, law):
    """p-value of draws of one value; values of little expectation are taken together."""
    values, probabilities = law
    expected = np.append(probabilities * draws.size, 0.0)
    observed = np.append([(draws == v).sum() for v in values], 0)
    observed[-1] = draws.size - observed.sum()
    order = np.argsort(expected)
    rare = order[np.cumsum(expected[order]) < 10.0]
    rare = order[: rare.size + 1]  # at least 10 together
    common = np.setdiff1d(order, rare)
    of = [np.append(each[common], each[rare].sum()) for each in (observed, expected)]
    return p_value(*of)


def smallest_p(draws, law, x):
    """The smallest p-value of some nodes' draws under their laws."""
    nodes = np.random.default_rng(x.size).choice(x.size, 4, replace=False)
    return min(chi_square(draws[:, v], law.marginal(int(v), x)) for v in nodes)


def test_draws_have_the_law_that_a_cut_set_computes():
    told = 0
    for seed in SEEDS:
        case, made, _ = drawn_from(seed)
        law = case.by_cut()
        assert smallest_p(made.sample(case.x, 10_000, cg.seeded(seed)), law, case.x) > FAILS, seed
        wider = case.by_rejection(1.3).sample(case.x, 10_000, cg.seeded(seed))
        told += smallest_p(wider, law, case.x) < FAILS
    # bounds may leave hardly any noise
    assert told >= 0.75 * len(SEEDS)


def test_values_beyond_windows_have_their_law(monkeypatch):
    laws_of = [crossing_at_random(seed).by_cut() for seed in SEEDS[:12]]
    narrow_windows(monkeypatch, 0.2)
    for seed, law in zip(SEEDS, laws_of, strict=False):
        case, made, _ = drawn_from(seed)
        assert smallest_p(made.sample(case.x, 3_000, cg.seeded(seed)), law, case.x) > FAILS, seed


def test_the_mass_times_the_part_accepted_is_the_summed_weight():
    for seed in SEEDS:
        case, made, _ = drawn_from(seed)
        rows = 20_000
        every = made._draws(case.x)
        accepted, _ = closing.attempt(every, made.system.size, rows, cg.seeded(seed))
        p = accepted.mean()
        total = case.by_cut().log_normalizer(case.x) - float(made.log_mode)
        off = abs(p - math.exp(total) / float(closing.mass(every)(0)[0]))
        assert off < 5.0 * math.sqrt(max(p * (1.0 - p), 1e-5) / rows), seed


def test_decimals_decide_as_doubles_do(monkeypatch):
    for seed in SEEDS:
        case, made, _ = drawn_from(seed)
        draws = made.sample(case.x, 40, cg.seeded(seed))
        with monkeypatch.context() as patched:
            patched.setattr(closing_draws, "_OFF", 1.0)  # no double is sure
            patched.setattr(closing_draws, "_LEAST", 1.0)
            np.testing.assert_array_equal(made.sample(case.x, 40, cg.seeded(seed)), draws)


def test_shares_in_doubles_are_those_in_decimals():
    for seed in range(200):
        _, _, of = drawn_from(seed)
        rng = np.random.default_rng(seed)
        closers = rng.integers(-40, 41, (20, len(of.closing.trees)))
        inside = closing_draws._possible(of, closers)
        for x, share in zip(
            closers[inside], closing_draws._shares(of, closers[inside]), strict=True
        ):
            low, high = closing_draws.share_of(of, x)(1)
            assert 0 <= low <= high <= 1 + Decimal("1e-50")
            if share > 2.0**-90:
                assert abs(Decimal(float(share)) / high - 1) < Decimal(2.0**-42)
            else:
                assert high < Decimal(2.0**-89)


def test_a_draw_that_no_attempt_reaches_ends_with_a_remedy(monkeypatch):
    case, made, _ = drawn_from(0)
    size = made._draws(case.x)[0].size
    nothing = np.zeros(1, dtype=np.bool_), np.empty((0, size), dtype=np.int64)
    monkeypatch.setattr(closing_draws, "_attempt", lambda *_: nothing)
    monkeypatch.setattr(closing_draws, "MOST_VALUES", 1_000)
    with pytest.raises(NumericalError, match="leave out bounds"):
        made.sample(case.x, rng=cg.seeded(1))
