"""The posterior against enumeration: every law, every prior, bounds, pins, unmeasured nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import congenial as cg
from support.count_priors import HIGHEST, log_count
from support.notebook import facts
from support.plots import drawn, heights, legend, new_axes

INF = np.inf
LAWS = {"laplace": cg.DiscreteLaplace, "gaussian": cg.DiscreteGaussian}
SHAPES = ((-1,), (-1, 0, 0), (-1, 0, 0, 1, 1), (-1, 0, 0, 0), (-1, 0, 1, 1), (-1, -1, 0, 0))


def enumerate_posterior(tree, kind, scales, y, pinned, lo, hi, prior):
    """All counts that satisfy the constraints, and their probabilities."""
    axes = []
    for v in tree.leaves:
        least = max(lo[v], 0 if prior is not None else -HIGHEST)
        axes.append(np.arange(int(least), int(min(hi[v], HIGHEST)) + 1))
    leaves = np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)
    z = tree.roll_up(leaves)
    z = z[((z >= lo) & (z <= hi)).all(axis=1) & (z[:, pinned] == y[pinned]).all(axis=1)]
    log_w = np.zeros(len(z))
    for v in np.flatnonzero(np.isfinite(scales) & ~pinned):
        u = (y[v] - z[:, v]) / scales[v]
        log_w -= np.abs(u) if kind == "laplace" else 0.5 * u**2
    if prior is not None:
        for j, v in enumerate(tree.leaves):
            if not pinned[v]:
                table = [log_count(k, *(p[j] for p in prior)) for k in range(HIGHEST + 1)]
                log_w += np.array(table)[z[:, v]]
    w = np.exp(log_w - log_w.max())
    return z, w / w.sum()


@st.composite
def cases(draw):
    tree = cg.Tree.from_parents(draw(st.sampled_from(SHAPES)))
    n, leaves = len(tree), tree.leaves.size
    kind = draw(st.sampled_from(sorted(LAWS)))
    family = draw(st.sampled_from(("flat", "poisson", "negative-binomial")))
    widths = (0.3, 0.6, 1.0, 1.5) if kind == "laplace" else (0.4, 1.0, 2.0)
    scales = np.array([draw(st.sampled_from(widths)) for _ in range(n)])
    if family != "flat":
        scales[[draw(st.integers(0, 3)) == 0 for _ in range(n)]] = INF
    x = tree.roll_up(np.array([draw(st.integers(0, 6)) for _ in range(leaves)]))
    y = x + np.array([draw(st.integers(-4, 4)) for _ in range(n)])
    pinned = np.array([draw(st.integers(0, 6)) == 0 for _ in range(n)])
    y[pinned] = x[pinned]
    everywhere = draw(st.booleans())
    lo = np.full(n, 0.0 if everywhere else -INF)
    lo = np.maximum(lo, x - np.array([draw(st.sampled_from((1, 3, INF, INF))) for _ in range(n)]))
    hi = x + np.array([draw(st.sampled_from((1, 3, INF, INF))) for _ in range(n)])
    prior = None
    if family != "flat":
        mean = np.array([draw(st.sampled_from((0.3, 1.0, 5.0))) for _ in range(leaves)])
        r = np.array([draw(st.sampled_from((0.1, 0.7, 1.0, 4.0))) for _ in range(leaves)])
        zeros = np.array([draw(st.sampled_from((0.0, 0.0, 0.4, 0.9))) for _ in range(leaves)])
        prior = mean, np.full(leaves, INF) if family == "poisson" else r, zeros
    return tree, kind, scales, y, pinned, lo, hi, prior


def found(tree, kind, scales, y, pinned, lo, hi, prior):
    known = cg.consistent(tree) & cg.bounds(lo, hi)
    if pinned.any():
        known = known & cg.exactly(np.flatnonzero(pinned).tolist())
    shown = np.where(np.isfinite(scales) | pinned, y, np.nan)
    mechanism = cg.Additive(LAWS[kind](scales), tree)
    return cg.posterior(
        shown, mechanism, known, "flat" if prior is None else cg.inference.Prior(*prior)
    )


@given(cases())
@settings(max_examples=150, derandomize=True, deadline=None)
def test_marginals_means_and_intervals_against_enumeration(case):
    tree = case[0]
    if tree.leaves.size == 3 and np.isinf(case[2]).sum() > 1:
        return  # too many states
    z, p = enumerate_posterior(*case)
    law = found(*case)
    mean, lower_upper = law.mean(), law.intervals(0.2)
    assert np.abs(mean - p @ z).max() < 1e-6
    assert np.abs(law.standard_deviation() - np.sqrt(p @ (z - p @ z) ** 2)).max() < 1e-5
    for v in range(len(tree)):
        values, probabilities = law.marginal(v)
        wanted = np.array([p[z[:, v] == k].sum() for k in values])
        assert np.abs(wanted - probabilities).max() < 1e-8
        assert abs(wanted.sum() - 1.0) < 1e-8
        lo, hi = law.interval(v, 0.2)
        assert (lo, hi) == (lower_upper[0][v], lower_upper[1][v])
        inside = p[(z[:, v] >= lo) & (z[:, v] <= hi)].sum()
        assert inside >= 0.8 - 1e-8
        # no shorter interval holds as much
        for low in range(lo - 3, hi + 1):
            shorter = (z[:, v] >= low) & (z[:, v] <= low + (hi - lo) - 1)
            assert p[shorter].sum() < 0.8 + 1e-8


@given(cases())
@settings(max_examples=40, derandomize=True, deadline=None)
def test_draws_satisfy_the_invariants(case):
    tree, _, _, y, pinned, lo, hi, prior = case
    z = found(*case).sample(50, cg.seeded(7))
    assert tree.is_consistent(z)
    assert (z >= lo).all()
    assert (z <= hi).all()
    assert (z[:, pinned] == y[pinned]).all()
    if prior is not None:
        assert (z >= 0).all()


def chi_square(kind, factor, prior, seed):
    """P-value of draws against enumeration with scales a `factor` off."""
    stats = pytest.importorskip("scipy.stats")
    tree = cg.Tree.from_parents([-1, 0, 0])
    scales = np.array([0.8, 1.2, 1.5])
    y = np.array([6, 5, -1])
    lo, hi, pinned = np.zeros(3), np.full(3, INF), np.zeros(3, dtype=bool)
    z = found(tree, kind, scales, y, pinned, lo, hi, prior).sample(200_000, cg.seeded(seed))
    states, p = enumerate_posterior(tree, kind, scales * factor, y, pinned, lo, hi, prior)
    code = z[:, 1] * (HIGHEST + 1) + z[:, 2]
    counts = np.bincount(code, minlength=(HIGHEST + 1) ** 2)
    wanted = np.bincount(
        (states[:, 1] * (HIGHEST + 1) + states[:, 2]), weights=p, minlength=counts.size
    )
    often = wanted * len(z) >= 10
    rest = len(z) - counts[often].sum()
    expected = np.append(wanted[often], 1.0 - wanted[often].sum()) * len(z)
    return stats.chisquare(np.append(counts[often], rest), expected).pvalue


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize(
    "prior",
    [
        None,
        ([2.0, 3.0], [INF, INF]),
        ([2.0, 3.0], [0.4, 3.0]),
        ([2.0, 9.0], [0.4, 3.0], [0.3, 0.6]),
    ],
)
def test_draws_against_enumeration(kind, prior):
    assert chi_square(kind, 1.0, prior, 5) > 1e-6
    assert chi_square(kind, 1.3, prior, 5) < 1e-6
    assert chi_square(kind, 0.7, prior, 5) < 1e-6


@pytest.mark.parametrize("upwards", [True, False])
@pytest.mark.parametrize("root", [2.0, INF])
def test_draws_of_unmeasured_leaves_with_bounds(root, upwards):
    # two unmeasured siblings are any composition of their sum, whose weight is their number
    sign = 1 if upwards else -1
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    scales = np.array([root, 2.5, 1.5, INF, INF])
    y, pinned = sign * np.array([5, 3, 2, 0, 0]), np.arange(5) == (0 if root == INF else 9)
    lo, hi = np.full(5, 0.0 if upwards else -30.0), np.full(5, 30.0 if upwards else 0.0)
    states, p = enumerate_posterior(tree, "laplace", scales, y, pinned, lo, hi, None)
    bounded = (lo, np.full(5, INF)) if upwards else (np.full(5, -INF), hi)
    z = found(tree, "laplace", scales, y, pinned, *bounded, None).sample(40_000, cg.seeded(5))
    error = np.sqrt(p @ (states - p @ states) ** 2 / len(z))
    assert (np.abs(z.mean(axis=0) - p @ states) <= 5.0 * error + 1e-9).all()


def city(size=60, seed=3):
    """Skewed counts of three families, their measurements and what is known."""
    generator = np.random.default_rng(seed)
    tree = cg.Tree.from_parents([-1, 0, 0, 0] + [1 + i % 3 for i in range(size)])
    leaves = np.floor(np.exp(generator.normal(1.5, 2.0, size))).astype(np.int64)
    return tree, tree.roll_up(leaves).astype(np.int64)


def test_counts_drawn_from_the_prior_are_uniform_under_the_posterior():
    replicates = 400
    generator = np.random.default_rng(1)
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    prior = cg.inference.Prior(30.0, 0.8)
    mechanism = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    known = cg.consistent(tree) & cg.nonnegative()
    assumed = {f: cg.Additive(cg.DiscreteLaplace(2.0 * f), tree) for f in (1.0, 0.7, 1.3)}
    spread = {factor: [] for factor in assumed}
    covered = 0
    source = cg.seeded(2)
    for _ in range(replicates):
        x = tree.roll_up(generator.negative_binomial(0.8, 0.8 / 30.8, 3))
        y = mechanism.sample(x, rng=source)
        uniform = generator.random(4)
        for factor, given_noise in assumed.items():
            law = cg.posterior(y, given_noise, known, prior)
            found = 0.0
            for v in (1, 2, 3):
                values, p = law.marginal(v)
                # randomised between what is below and what is not above
                u = p[values < x[v]].sum() + uniform[v] * p[values == x[v]].sum()
                found += (u - 0.5) ** 2 / 3.0
            spread[factor].append(found)
            if factor == 1.0:
                low, high = law.interval(1, 0.1)
                covered += low <= x[1] <= high
    # of a uniform number (u - 1/2)^2 has the mean 1/12
    error = {f: np.std(found) / np.sqrt(replicates) for f, found in spread.items()}
    off = {f: (np.mean(found) - 1 / 12) / error[f] for f, found in spread.items()}
    assert abs(off[1.0]) < 4.9  # p = 1e-6
    assert off[0.7] > 4.9
    assert off[1.3] < -4.9
    assert covered / replicates > 0.9 - 4.8 * np.sqrt(0.09 / replicates)


@pytest.mark.parametrize("prior", ["flat", "negative-binomial"])
def test_points_are_consistent_and_best_among_neighbours(prior):
    tree, x = city()
    mechanism = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    y = mechanism.sample(x, rng=cg.seeded(1))
    law = cg.posterior(y, mechanism, cg.consistent(tree) & cg.nonnegative(), prior)
    draws = law.sample(101, cg.seeded(9))
    best = law.point("l1", size=101, rng=cg.seeded(9))
    means = law.point("l2", rng=cg.seeded(9))
    assert tree.is_consistent(best)
    assert tree.is_consistent(means)
    assert best.min() >= 0
    error = np.abs(draws - best).sum()
    assert error <= np.abs(draws - means).sum()
    for v in tree.leaves:
        for by in (-1, 1):
            leaves = best[tree.leaves].copy()
            leaves[tree.leaves == v] += by
            if leaves.min() >= 0:
                assert np.abs(draws - tree.roll_up(leaves)).sum() >= error
    assert np.abs(means - law.mean()).max() <= 2.0


def test_a_fitted_prior_removes_most_of_the_bias_of_the_flat_one():
    tree, x = city(240)
    mechanism = cg.Additive(cg.DiscreteLaplace(5.0), tree)
    known = cg.consistent(tree) & cg.nonnegative()
    empty = tree.leaves[x[tree.leaves] <= 1]
    bias = {"flat": [], "negative-binomial": []}
    for seed in range(4):
        y = mechanism.sample(x, rng=cg.seeded(seed))
        for prior, found_bias in bias.items():
            found_bias.append((cg.posterior(y, mechanism, known, prior).mean() - x)[empty].mean())
    assert np.mean(bias["negative-binomial"]) < 0.6 * np.mean(bias["flat"])


def test_probability_and_interval_of_a_sum_against_enumeration():
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    scales, y = np.array([1.0, 1.0, 1.0, 1.0]), np.array([9, 4, 3, 1])
    lo, hi, pinned = np.zeros(4), np.full(4, INF), np.zeros(4, dtype=bool)
    case = (tree, "laplace", scales, y, pinned, lo, hi, None)
    z, p = enumerate_posterior(*case)
    law = found(*case)
    estimate = law.probability(lambda t: t[:, 1] > t[:, 2], size=40_000, rng=cg.seeded(3))
    true = p[z[:, 1] > z[:, 2]].sum()
    assert abs(estimate.probability - true) < 5 * estimate.standard_error
    assert estimate.standard_error < 0.003
    low, high = law.interval_of_sum([1, 2], 0.1, size=40_000, rng=cg.seeded(3))
    total = z[:, 1] + z[:, 2]
    assert p[(total >= low) & (total <= high)].sum() > 0.89
    assert p[(total > low) & (total < high)].sum() < 0.9


@pytest.mark.parametrize("prior", ["flat", "poisson", "negative-binomial", "dirichlet-tree"])
def test_sums_of_many_nodes_drawn_alone_have_the_intervals_of_whole_draws(prior, monkeypatch):
    tree, x = city()
    mechanism = cg.Additive(cg.DiscreteLaplace(3.0), tree)
    y = mechanism.sample(x, rng=cg.seeded(1))
    law = cg.posterior(y, mechanism, cg.consistent(tree) & cg.nonnegative(), prior)
    nodes = [int(v) for v in tree.leaves[:3]]
    whole = law.interval_of_sum(nodes, rng=cg.seeded(2), size=20_000)
    monkeypatch.setattr("congenial.inference.posteriors.MANY_VALUES", 0)
    alone = law.interval_of_sum(nodes, rng=cg.seeded(2), size=20_000)
    assert np.abs(np.subtract(alone, whole)).max() <= 1
    twice = law.interval_of_sum([*nodes, nodes[0]], rng=cg.seeded(2), size=20_000)
    assert twice == alone


def test_the_same_seed_gives_the_same_draws():
    tree, x = city()
    mechanism = cg.Additive(cg.DiscreteGaussian(3.0), tree)
    y = mechanism.sample(x, rng=cg.seeded(1))
    law = cg.posterior(y, mechanism, cg.consistent(tree), "negative-binomial")
    one, two = (law.sample(5, cg.seeded(4)) for _ in range(2))
    assert (one == two).all()
    assert law.sample(rng=cg.seeded(4)).shape == (len(tree),)
    assert 0.0 < law.error_bound < 1e-6
    assert "no privacy" in law.explain()


def test_weights_of_a_point_are_positive_and_of_absolute_errors():
    tree = cg.Tree.from_parents([-1, 0, 0])
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    law = cg.posterior([7, 5, -1], mechanism, cg.consistent(tree) & cg.nonnegative())
    for loss, weights in (("l1", [1.0, 1.0, 0.0]), ("l1", [1.0, 1.0]), ("l2", [1.0, 1.0, 1.0])):
        with pytest.raises(cg.errors.ArgumentError, match="weights"):
            law.point(loss, weights=weights)


def test_a_posterior_is_shown_without_working_its_law_out():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noise = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    known = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    found = cg.posterior([7, 5, 2], noise, known)
    assert repr(found) == "Posterior(3 counts, 2 measurements, flat prior)"
    shown = facts(found._repr_html_())
    assert (shown["counts"], shown["exact counts"], shown["prior"]) == ("3", "1", "flat prior")
    assert shown["noise"] == "discrete-laplace"
    assert "_law" not in vars(found)
    fitted = cg.posterior([7, 5, 2], noise, known, "poisson")
    assert repr(fitted) == "Posterior(3 counts, 2 measurements, prior Prior)"


def test_the_plot_of_a_posterior_has_its_probabilities_and_its_interval():
    tree = cg.Tree.from_paths(["a/b", "a/c"])
    noise = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    law = cg.posterior([7, 5, 2], noise, cg.consistent(tree) & cg.nonnegative())
    ax = drawn(law.plot("b", alpha=0.2, ax=new_axes()))
    known = dict(zip(*(one.tolist() for one in law.marginal("b")), strict=True))
    found = heights(ax)
    assert sum(found.values()) > 0.99
    assert all(known[round(v)] == pytest.approx(p) for v, p in found.items())
    low, high = law.interval("b", 0.2)
    assert legend(ax) == [f"80% interval, {low} to {high}"]
    assert "count of a/b," in ax.get_title(loc="left")
    workload = cg.Workload.of(cg.Table({"sex": ("F", "M")}), [()])
    noise = cg.Additive(cg.DiscreteLaplace(1.0), workload)
    law = cg.posterior([7, 5, 2], noise, cg.consistent(workload) & cg.nonnegative())
    title = law.plot(1, ax=new_axes()).get_title(loc="left")
    assert "count of sex=F in table," in title
