"""Laws, evidence, gradients and draws under a Dirichlet-tree prior, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, logsumexp

import congenial as cg
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.inference.splits.messages import split_law, verified_law
from support.seeds import for_each_seed
from support.split_trees import log_sum_weight, random_case

# Share of laws that may lie beyond their windows, as `verified_law` allows, and the largest count.
CLOSE = 1e-7 * 70.0


@for_each_seed(300)
def test_laws_evidence_and_gradients_are_those_of_all_counts(seed):
    case = random_case(seed)
    if not case.listed:
        return
    law = cg.posterior(*case.given, cg.inference.DirichletTree(case.alpha, case.odds))
    found, p = law.summary(), case.probability
    np.testing.assert_allclose(found.mean, p @ case.counts, atol=CLOSE)
    square = p @ (case.counts - p @ case.counts) ** 2
    np.testing.assert_allclose(found.standard_deviation**2, square, atol=70.0 * CLOSE)
    measured = np.isfinite(case.mechanism.scales)
    measured[law.problem.pinned] = False
    at_mode = case.mechanism.noise.log_pmf(np.zeros(len(case.tree)), case.mechanism.scales)
    log = logsumexp(case.log_weight) + at_mode[measured].sum()
    assert law.log_evidence() == pytest.approx(log, abs=CLOSE)
    gradient = law.log_evidence_gradient().alpha
    total = law.prior.totals(case.tree)
    for v in np.flatnonzero(case.tree.parents >= 0):
        u, a, step = case.tree.parents[v], case.alpha[v], 1e-5 * case.alpha[v]
        # expectations over the law of one count each, of which there are few values
        own_law, above_law = (np.bincount(case.counts[:, w], p) for w in (v, u))
        every = np.arange(above_law.size)
        own = own_law @ (digamma(np.arange(own_law.size) + a) - digamma(a))
        if case.odds[u] == 0.0:
            above = digamma(every + total[u]) - digamma(total[u])
        else:  # one of k children that are alike: a kth of the slope by the alpha of all
            k = (case.tree.parents == u).sum()
            ends = [
                log_sum_weight(total[u] + by * k, k, case.odds[u], every) for by in (-step, step)
            ]
            above = (ends[1] - ends[0]) / (2.0 * step * k)
        # derivatives of log Gamma are of the size of 1 / alpha
        wanted = own - above_law @ above
        assert gradient[v] == pytest.approx(wanted, abs=CLOSE * (1.0 + 1.0 / a) + 1e-6)
    for v in range(len(case.tree)):
        values, chance = law.marginal(v)
        want = np.bincount(case.counts[:, v], p, int(values[-1]) + 1)[values]
        np.testing.assert_allclose(chance, want, atol=CLOSE)


@for_each_seed(40)
def test_draws_have_the_law(seed):
    case = random_case(seed)
    if not case.listed:
        return
    law = cg.posterior(*case.given, cg.inference.DirichletTree(case.alpha, case.odds))
    drawn = law.sample(4000, cg.seeded(seed))
    assert case.tree.are_consistent(drawn).all()
    for v in range(len(case.tree)):
        values, chance = law.marginal(v)
        seen = np.bincount(
            np.clip(drawn[:, v] - values[0], 0, values.size - 1), minlength=values.size
        )
        # like values together, until each cell holds ten draws
        cells = np.minimum(np.cumsum(chance) * 4000 // 25, 3999 // 25).astype(int)
        want, got = np.bincount(cells, chance * 4000), np.bincount(cells, seen)
        want, got = want[want > 5.0], got[want > 5.0]
        if want.size > 1:
            chi = ((got - want) ** 2 / want).sum()
            assert stats.chi2.sf(chi, want.size - 1) > 1e-6


def test_the_test_of_draws_fails_at_a_wrong_scale():
    tree = cg.Tree.from_parents([-1, 0, 0])
    y, known, prior = [40, 21, 20], cg.consistent(tree), cg.inference.DirichletTree(np.ones(3))
    one, other = (
        cg.posterior(y, cg.Additive(cg.DiscreteLaplace(s), tree), known, prior) for s in (3.0, 3.9)
    )
    drawn = one.sample(4000, cg.seeded(1))[:, 1]
    for law, fits in ((one, True), (other, False)):
        values, chance = law.marginal(1)
        inside = chance > 0.005
        want = chance[inside] * 4000
        got = np.bincount(np.clip(drawn - values[0], 0, None), minlength=values.size)[: values.size]
        chi = ((got[inside] - want) ** 2 / want).sum()
        assert (stats.chi2.sf(chi, inside.sum() - 1) > 1e-6) == fits


@for_each_seed(60)
def test_the_law_does_not_depend_on_where_messages_are_placed(seed):
    case = random_case(seed)
    problem = pose(*case.given, nonnegative_leaves=True)
    known, prior = evidence_of(problem), cg.inference.DirichletTree(case.alpha, case.odds)
    found = verified_law(known, prior)
    center = known.estimate()
    nats = found.messages.nats
    totals = [split_law(known, prior, center + by, nats).log_total for by in (0.0, 2.0, 9.0)]
    assert max(totals) - min(totals) < 1e-6 + found.error


def test_large_contradicting_counts_have_laws():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    given = [50_000, 49_990, -12, 3], mechanism, cg.consistent(tree)
    found = cg.posterior(*given, cg.inference.DirichletTree([1.0, 30.0, 3.0, 0.01])).summary()
    assert abs(found.mean[0] - 50_000) < 50
    assert found.mean[1:].sum() == pytest.approx(found.mean[0], abs=1e-2)
    # the prior is thousands of its deviations off what was measured; means of a dense grid
    even = cg.posterior(*given, cg.inference.DirichletTree([1.0, 1000.0, 1000.0, 0.01])).summary()
    assert even.mean[:3] == pytest.approx([50_051.10, 48_138.22, 1_912.83], abs=0.02)


def test_impossible_counts_are_refused():
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    known = cg.consistent(tree) & cg.bounds(hi=[np.inf, 1.0, 1.0]) & cg.exactly([0])
    with pytest.raises(cg.errors.InfeasibleError):
        cg.posterior([5, 1, 1], mechanism, known, cg.inference.DirichletTree(np.ones(3)))


def test_many_empty_leaves_add_up_to_their_own_measurement():
    """Leaves' measurements alone put the sum some 150 counts, or noise scales, above it."""
    tree = cg.Tree.from_parents([-1, 0, 0] + [1] * 640)
    x = np.zeros(640, dtype=np.int64)
    x[:7] = 900, 60, 20, 3, 1, 1, 1
    counts = np.concatenate(([1500, 986, 514], x))
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    y = mechanism.sample(counts, rng=cg.seeded(1))
    y[0] = 1500
    known = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    found = cg.posterior(y, mechanism, known, cg.inference.DirichletTree(np.full(643, 0.5)))
    assert found.error_bound < 1e-7
    summary = found.summary()
    assert summary.mean[3:].sum() == pytest.approx(summary.mean[1], abs=1e-4)
    assert abs(summary.mean[1] - 986.0) < 20.0


def test_messages_of_many_empty_subtrees_are_placed_about_their_sum():
    """Blocks' messages alone put their sum some 80 noise scales above its measurement."""
    tree = cg.Tree.from_parents(
        [-1, 0, 0] + [1] * 400 + [3 + j for j in range(400) for _ in "c" * 16]
    )
    cells = np.zeros((400, 16), dtype=np.int64)
    cells[:12, 0] = 80, 60, 50, 40, 30, 25, 20, 15, 10, 5, 3, 1
    counts = tree.roll_up(np.concatenate(([1200], cells.ravel())))
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    y = mechanism.sample(counts, rng=cg.seeded(3))
    alpha = np.where(tree.is_leaf, 2.8, 0.4)
    known = evidence_of(
        pose(y, mechanism, cg.consistent(tree) & cg.nonnegative(), nonnegative_leaves=True)
    )
    prior = cg.inference.DirichletTree(alpha)
    near, far = (split_law(known, prior, known.estimate(), nats) for nats in (34.0, 150.0))
    # 18 nats apart where messages are not placed
    assert near.log_total == pytest.approx(far.log_total, abs=1e-3)
    assert near.laws(kept=True).error < 1e-3


def test_a_leaf_that_its_family_draws_to_zero_keeps_its_low_counts():
    """Leaves measured to be 82 in a family measured to be 0: without 0 and 1, a share of 0.04."""
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(10.0), tree)
    given = np.array([0, 75, 11, -4]), mechanism, cg.consistent(tree) & cg.nonnegative()
    known = evidence_of(pose(*given, nonnegative_leaves=True))
    prior = cg.inference.DirichletTree([1.0, 55.0, 20.0, 3.0])
    center = np.where(tree.is_leaf, known.estimate(), 160.0)
    assert split_law(known, prior, center, 34.0).laws(kept=True).error < 1e-10


@for_each_seed(100)
def test_some_nodes_drawn_alone_have_their_law(seed):
    case = random_case(seed)
    if not case.listed:
        return
    prior = cg.inference.DirichletTree(case.alpha, case.odds)
    law = verified_law(evidence_of(pose(*case.given, nonnegative_leaves=True)), prior)
    every = np.random.default_rng(seed).permutation(len(case.tree))
    # the same words give the same draw of all nodes, in any order
    one, other = law.draws_of(every)(1, cg.seeded(seed)), law.sample(1, cg.seeded(seed))
    assert np.array_equal(one, other[:, every])
    some = every[: 1 + seed % (every.size - 1)]
    drawn = law.draws_of(some)(4_000, cg.seeded(seed)) @ np.arange(1, some.size + 1)
    total = case.counts[:, some] @ np.arange(1, some.size + 1)
    mean = case.probability @ total
    deviation = np.sqrt(case.probability @ (total - mean) ** 2)
    assert abs(drawn.mean() - mean) <= 5.0 * deviation / np.sqrt(drawn.size) + 1e-9
    # the deviation of 4,000 draws is off by a few per cent; 30% would show
    if deviation > 1.0:
        assert abs(drawn.std() / deviation - 1.0) < 0.25


def test_draws_of_some_nodes_hold_no_others(monkeypatch):
    tree = cg.Tree.from_parents([-1, *[0] * 40, *np.repeat(np.arange(1, 41), 50)])
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    y = tree.roll_up(np.random.default_rng(1).poisson(2.0, 2_000))
    prior = cg.inference.DirichletTree(np.ones(len(tree)))
    law = cg.posterior(y, mechanism, cg.consistent(tree), prior)._law
    asked = []

    class Counted:
        def bits(self, size):
            asked.append(size)
            return cg.seeded(len(asked)).bits(size)

    nodes = np.array([41, 1, 42])
    drawn = law.draws_of(nodes)(300, Counted())
    assert asked == [300 * (1 + 39 + 49)]
    # the two leaves are parts of the node
    assert (drawn[:, 0] + drawn[:, 2] <= drawn[:, 1]).all()
    monkeypatch.setattr("congenial.inference.splits.messages._VALUES", 1)
    assert law.draws_of(nodes)(5, Counted()).shape == (5, 3)
    assert asked[1:] == [1 + 39 + 49] * 5
