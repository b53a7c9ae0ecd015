"""A sum carried along a forest as a tally: laws, joint laws and draws against enumeration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.conditioning.laws.closing_sampler import ClosingConditioned
from congenial.conditioning.laws.cutset_sampler import CutConditioned
from congenial.kernels.network import tallies
from congenial.sum_network.cutset import assignments as cutset
from congenial.sum_network.cutset.systems import on_cycles
from support.conditioning_cases import INF, LAWS
from support.crossed_trees import crossed_trees
from support.enumeration import assert_same_law, enumerate_law, rows_of
from support.goodness_of_fit import FAILS, fit
from support.joint_laws import assert_same_joint
from support.kernel_entries import entry
from support.seeds import for_each_seed
from support.sum_networks import margins, networks, scaled, table_case

pytestmark = pytest.mark.kernels

QUICK = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),  # to make a failing example smaller takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
SQUARE = [1, 2, 0, 0, 3, 1, 2, 2, 1]


def carrying(made, k):
    """The same law by another way: row k of the system is carried, whatever that costs."""
    cost = replace(made.cost, tally=k)
    return replace(made, cost=cost)


def every_way(made):
    return [carrying(made, k) for k in range(len(made.sums.rows))]


@QUICK
@given(networks(), st.data())
def test_any_row_of_any_network_may_be_carried(case, data):
    made = case.condition()
    if not isinstance(made, CutConditioned):
        return
    law = case.law()
    for way in every_way(made):
        assert_same_law(way, law, case.x, most=100)
    way = carrying(made, data.draw(st.integers(0, len(made.sums.rows) - 1)))
    nodes = data.draw(st.lists(st.integers(0, case.n - 1), min_size=2, max_size=3, unique=True))
    assert_same_joint(way, law, case.x, nodes)
    draws = way.sample(case.x, 2000, cg.seeded(5))
    assert (draws @ case.all_rows.T == case.all_rows @ case.x).all()
    assert fit(draws, law, range(case.n)) > FAILS


@QUICK
@given(networks(unmeasured=True))
def test_any_row_may_be_carried_if_an_entry_is_not_measured(case):
    made = case.condition() if case.proper else None
    if isinstance(made, CutConditioned):
        law = case.law()
        for way in every_way(made):
            assert_same_law(way, law, case.x, most=100)


@QUICK
@given(crossed_trees())
def test_any_row_of_a_tree_with_further_sums_may_be_carried(case):
    tree, kind, scales, rows, x, lo = case
    invariant = cg.consistent(tree) & cg.linear(rows, rows @ x) & cg.bounds(lo)
    made = cg.condition(cg.Additive(LAWS[kind](scales), tree), invariant)
    if not isinstance(made, CutConditioned):
        return
    law = enumerate_law(np.vstack((rows_of(tree.parents), rows)), kind, scales, x, lo=lo)
    for way in every_way(made):
        assert_same_law(way, law, x, most=100)
        assert fit(way.sample(x, 200, cg.seeded(2)), law, range(x.size)) > FAILS


TABLES = {
    "laplace": table_case((3, 3), 0.6, SQUARE),
    "nonnegative": table_case((3, 3), 0.8, SQUARE, lo=0),
    "gaussian": table_case((3, 3), np.linspace(0.6, 0.9, 9), SQUARE, kind="gaussian"),
}


@pytest.mark.parametrize("name", TABLES)
def test_draws_of_a_table_with_a_tally_follow_the_law_and_fail_at_a_wrong_scale(name):
    case = TABLES[name]
    for way in every_way(case.condition())[:2]:
        draws = way.sample(case.x, 20_000, cg.seeded(8))
        assert fit(draws, case.law(), range(9)) > FAILS
        for off in (0.7, 1.3):
            assert fit(draws, scaled(case, off), range(9)) < FAILS


def across(families, leaves, scale, *, lo=-INF):
    """A tree whose families each give one leaf to a further sum."""
    inner = np.arange(1, families + 1)
    tree = cg.Tree.from_parents([-1, *[0] * families, *np.repeat(inner, leaves)])
    x = tree.roll_up(np.arange(families * leaves) % 5)
    row = np.zeros(len(tree), dtype=int)
    row[1 + families :: leaves] = 1
    invariant = cg.consistent(tree) & cg.linear(row, row @ x) & cg.bounds(lo)
    return tree, row, x, cg.condition(cg.Additive(cg.DiscreteLaplace(scale), tree), invariant)


@pytest.mark.parametrize("lo", [-INF, 0])
def test_a_sum_across_eight_families_is_drawn_exactly(lo):
    """Values held to open these seven cycles would be far too many together."""
    tree, row, x, made = across(8, 3, 0.5, lo=lo)
    assert isinstance(made, CutConditioned)
    assert made.cost.tally is not None
    assert "carried along" in made.explain()
    assert made.error_bound == 0.0
    draws = made.sample(x, 3000, cg.seeded(1))
    assert (draws @ row == row @ x).all()
    assert (tree.roll_up(draws[:, tree.leaves]) == draws).all()
    assert draws.min() >= lo
    values, p = made.marginal(9, x)
    (first, _), table = made.joint([9, 1], x)
    kept = np.isin(values, first)
    np.testing.assert_allclose(table.sum(axis=1)[np.isin(first, values)], p[kept], atol=1e-11)
    assert p[~kept].sum() < 1e-11
    for v, q in zip(values[p > 0.02], p[p > 0.02], strict=True):
        assert (draws[:, 9] == v).mean() == pytest.approx(q, abs=5 * np.sqrt(q / 3000))
    # probabilities of draws are in proportion to those of the noise
    noise = made.mechanism.log_prob(draws[:9], x)
    np.testing.assert_allclose(made.log_prob(draws[:9], x) - noise, -made.log_normalizer(x))


def test_without_a_tally_the_same_law_costs_more():
    _, _, x, made = across(3, 2, 0.25)
    held = replace(made, cost=replace(made.cost, tally=None))
    carried = carrying(made, on_cycles(made.sums.rows, 1)[0])
    assert carried.log_normalizer(x) == pytest.approx(held.log_normalizer(x), abs=1e-12)
    for v in (0, 1, 4):
        (a, p), (b, q) = carried.marginal(v, x), held.marginal(v, x)
        table = dict(zip(a.tolist(), p, strict=True))
        for value, mass in zip(b.tolist(), q, strict=True):
            assert table.get(value, 0.0) == pytest.approx(mass, abs=1e-12)


def test_cases_that_need_rejection():
    for made in (
        across(8, 3, 20.0)[3],  # tallies as wide as the noise is
        cg.condition(
            cg.Additive(cg.DiscreteLaplace(2.0), 36), cg.linear(margins(6, 6), np.zeros(12))
        ),
    ):
        assert isinstance(made, ClosingConditioned)


def test_the_estimated_cost_is_that_of_the_tables():
    _, _, x, made = across(6, 3, 0.5)
    found = made._weighed(x)
    assert found.branches.state.table.size == found.branches.width.sum()
    assert 0.2 < found.branches.width.sum() / made.cost.entries < 5
    assert (
        cutset._priced(made.sums, found.box, made.cost.tally, cutset.MOST_WORK).tally
        == made.cost.tally
    )


def random_table(rng, *shape):
    """Entries that span up to hundreds of powers of 2, some of them 0."""
    out = np.maximum(2.0 ** -rng.exponential(rng.choice([1.0, 40.0, 200.0]), shape), tallies.FLOOR)
    return out * (rng.random(shape) < 0.9)


def test_thousands_of_pairs_of_tables_are_merged_as_two_dimensional_sums():
    for seed in range(2000):
        rng = np.random.default_rng([83, seed])
        a, b = (random_table(rng, *rng.integers(1, 8, 2)) for _ in range(2))
        whole = np.zeros(np.add(a.shape, b.shape) - 1, dtype=np.longdouble)
        for i, s in np.ndindex(a.shape):
            whole[i : i + b.shape[0], s : s + b.shape[1]] += np.longdouble(a[i, s]) * b
        first = [int(rng.integers(0, n)) for n in whole.shape]
        want = whole[first[0] :, first[1] :][: rng.integers(1, 15), : rng.integers(1, 15)]
        out = np.full(want.shape, np.nan)
        tallies.merge(a, b, *first, out)
        # entries below 1e-150 may be left out; each other term is rounded twice
        missing = a.size * 1e-150 * b.max()
        assert (np.abs(out - want) <= (a.size + 2) * 2.0**-52 * want + missing).all(), seed


def labelled(table, lo, lo_tally):
    """The entries of a table by value and tally, in extended precision."""
    return {(lo + i, lo_tally + s): np.longdouble(w) for (i, s), w in np.ndenumerate(table)}


def assert_holds(out, lo, lo_tally, want, off, missing):
    """The table holds `want` at its own values and tallies, each within a share `off`."""
    for (i, s), w in np.ndenumerate(out):
        exact = want.get((lo + i, lo_tally + s), 0.0)
        assert abs(w - exact) <= off * exact + missing


@for_each_seed(1500)
def test_a_table_below_is_read_at_the_value_that_its_sum_takes(seed):
    rng = np.random.default_rng([84, seed])
    own, below = (random_table(rng, *rng.integers(1, 7, 2)) for _ in range(2))
    lo, lo_tally, lo_below, tally_below, shift = map(int, rng.integers(-4, 5, 5))
    sign, lo_out = int(rng.choice([-1, 1])), lo_tally + tally_below + int(rng.integers(-3, 4))
    out = np.full((len(own), int(rng.integers(1, 12))), np.nan)
    first_tally = lo_out - lo_tally - tally_below
    tallies.read(own, below, sign, shift, lo, lo_below, first_tally, out)
    want = {}
    for (u, s), w in labelled(own, lo, lo_tally).items():
        for (v, t), z in labelled(below, lo_below, tally_below).items():
            if v == sign * u - shift:
                want[u, s + t] = want.get((u, s + t), 0.0) + w * z
    terms = own.shape[1]
    assert_holds(out, lo, lo_out, want, (terms + 2) * 2.0**-52, 0.0)


@for_each_seed(1500)
def test_a_value_enters_its_own_tally(seed):
    rng = np.random.default_rng([85, seed])
    own = random_table(rng, *rng.integers(1, 7, 2))
    lo, lo_tally, lo_out = map(int, rng.integers(-4, 5, 3))
    sign, out = int(rng.choice([-1, 1])), np.full((len(own), int(rng.integers(1, 12))), np.nan)
    tallies.enter(own, sign, lo, lo_tally, lo_out, out)
    want = {(u, s + sign * u): w for (u, s), w in labelled(own, lo, lo_tally).items()}
    assert_holds(out, lo, lo_out, want, 0.0, 0.0)


@for_each_seed(1500)
def test_a_tally_is_closed_where_the_rest_of_its_total_is(seed):
    rng = np.random.default_rng([86, seed])
    own, rest = random_table(rng, *rng.integers(1, 7, 2)), random_table(rng, rng.integers(1, 7))
    total, lo_tally, lo_rest = map(int, rng.integers(-6, 7, 3))
    out = np.full(len(own), np.nan)
    tallies.close(own, rest, total, lo_tally, lo_rest, out)
    left = labelled(rest[:, None], lo_rest, 0)
    want = {}
    for (u, s), w in labelled(own, 0, lo_tally).items():
        want[u, 0] = want.get((u, 0), 0.0) + w * left.get((total - s, 0), 0.0)
    assert_holds(out[:, None], 0, 0, want, (own.shape[1] + 2) * 2.0**-52, 1e-320)


pick_merge = entry("network.tallies.pick_merge")


@for_each_seed(300)
def test_parts_of_a_sum_are_chosen_by_the_product_of_their_weights(seed):
    rng = np.random.default_rng([87, seed])
    a, b = (rng.random(rng.integers(1, 5, 2)) for _ in range(2))
    i, s = (int(rng.integers(0, m + n - 1)) for m, n in zip(a.shape, b.shape, strict=True))
    terms = {
        (u, k): a[u, k] * b[i - u, s - k]
        for u, k in np.ndindex(a.shape)
        if 0 <= i - u < b.shape[0] and 0 <= s - k < b.shape[1]
    }
    total = sum(terms.values()) * (1.0 + 2.0**-50)
    if not terms:
        assert pick_merge(a, b, i, s, 1.0, np.uint64(5))[2] == 0
        return
    # words at equal distances: shares are within one word of the weights
    words = np.arange(97, dtype=np.uint64) * np.uint64(2**64 // 97)
    found = [pick_merge(a, b, i, s, total, w) for w in words]
    weights = {(u, k): weight for u, k, weight in found}
    for at, w in terms.items():
        assert abs(sum(at == each[:2] for each in found) / 97 - w / total) <= 1 / 97
    for at, weight in weights.items():
        share = terms[at] / total
        assert share * (1.0 - 2.0**-34) <= weight / 2**62 <= share * (1.0 + 2.0**-50) + 2.0**-62


@for_each_seed(200)
def test_as_many_words_choose_an_index_as_its_integer_weight_says(seed):
    """The first and the last word of each index, and of the words that are left over."""
    rng = np.random.default_rng([89, seed])
    weights = np.maximum(rng.random(rng.integers(1, 7)) ** rng.choice([1, 30, 200]), 1e-200)
    weights[rng.random(weights.size) < 0.2] = 0.0
    total = max(weights.sum(), 1e-200) * (1.0 + 2.0 ** -float(rng.integers(1, 50)))
    begin = 0
    while begin < 2**62:
        k, weight = tallies.pick(weights, total, np.uint64(4 * begin))
        if weight == 0:
            assert k == weights.size
            assert tallies.pick(weights, total, np.uint64(2**64 - 1)) == (k, 0)
            break
        last = np.uint64(4 * (begin + int(weight)) - 1)
        assert tallies.pick(weights, total, last) == (k, weight)
        assert weights[k] > 0.0
        begin += int(weight)
    # all of them, but for what a choice leaves to rounding
    assert begin / 2**62 == pytest.approx(weights.sum() / total, abs=2.0**-33)
    assert begin <= 2**62


def test_choices_have_their_weights():
    weights = np.array([0.0, 1.0, 5.0, 0.25, 3.0])
    words = np.arange(9251, dtype=np.uint64) * np.uint64(2**64 // 9251)
    picked = np.bincount([tallies.pick(weights, 9.25, w)[0] for w in words], minlength=5)
    np.testing.assert_allclose(picked / 9251, weights / weights.sum(), atol=2e-4)
