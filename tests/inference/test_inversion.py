"""Intervals by inversion: the order of laws, their quantiles, and coverage of every dataset."""

import itertools

import numpy as np
import pytest

import congenial as cg
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.inference import inversion
from congenial.kernels.network import marginals as kernels
from congenial.sum_network import extremes
from congenial.sum_network.marginals import one_sided
from support import cut_noise
from support.leaf_bounds import LAWS, released_by

INF = np.inf


def random_parents(rng, most, *, roots=0.0):
    """Parents in scrambled order, some of several roots."""
    n = int(rng.integers(1, most + 1))
    parents = [-1] + [int(rng.integers(-1 if rng.random() < roots else 0, v)) for v in range(1, n)]
    place = rng.permutation(n)
    out = np.empty(n, dtype=np.int64)
    out[place] = [-1 if p < 0 else place[p] for p in parents]
    return out


# the theorem


def out_of_order(parents, kind, scales, pinned, cuts, leaf, *, reach):
    """Return by how much the laws of nodes fail the order as the cut of one leaf grows by one."""
    more = np.array(cuts)
    more[leaf] += 1
    worst = np.zeros(len(parents))
    before, after = (
        cut_noise.listed(parents, kind, scales, pinned, c, reach) for c in (cuts, more)
    )
    for v in range(len(parents)):
        u, below = leaf, False
        while u >= 0:
            below |= u == v
            u = parents[u]
        smaller, larger = (before[v], after[v]) if below else (after[v], before[v])
        # larger[t] smaller[s] >= larger[s] smaller[t] for t > s
        product = np.outer(larger, smaller)
        gap = np.tril(product.T - product) / np.maximum(np.maximum(product, product.T), 1e-300)
        worst[v] = gap.max()
    return worst


@pytest.mark.parametrize("seed", range(12))
def test_noise_grows_with_cuts_below_and_falls_with_others(seed):
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, 6)
    while np.isin(np.arange(parents.size), parents).sum() + 4 < parents.size:
        parents = random_parents(rng, 6)
    n, leaves = parents.size, np.flatnonzero(~np.isin(np.arange(parents.size), parents))
    kind = ("laplace", "gaussian")[seed % 2]
    for _ in range(4):
        scales = rng.choice([0.4, 1.0, 3.0, INF], n)
        pinned = rng.random(n) < 0.15
        cuts = np.full(n, -INF)
        cuts[leaves] = rng.integers(-3, 0, leaves.size)
        leaf = int(rng.choice(leaves))
        gaps = out_of_order(parents.tolist(), kind, scales, pinned, cuts, leaf, reach=4)
        assert gaps.max() < 1e-9


def test_the_order_fails_for_noise_that_is_not_log_concave():
    cuts = np.array([-INF, -2.0, -3.0])
    gaps = out_of_order([-1, 0, 0], "heavy", np.full(3, 0.7), np.zeros(3, bool), cuts, 1, reach=6)
    assert gaps.max() > 1e-3


# ends


def random_case(rng):
    """Draw a mechanism, what describes it and a release."""
    parents = random_parents(rng, 7, roots=0.1)
    n = parents.size
    leaf = ~np.isin(np.arange(n), parents)
    kind = str(rng.choice(sorted(LAWS)))
    scales = rng.choice([0.3, 0.7, 1.3, 2.5], n)
    scales = np.where(~leaf & (rng.random(n) < 0.2), INF, scales)
    pinned = np.flatnonzero(rng.random(n) < 0.15)
    lo = np.zeros(n)
    if rng.random() < 0.4:
        lo = np.where(rng.random(n) < 0.3, -INF, rng.integers(-2, 3, n))
    mechanism = released_by(parents, kind, scales, pinned=pinned, lo=lo)
    tree = mechanism.mechanism.tree
    above = rng.integers(0, 7, n) * (rng.random(n) < 0.5)
    z = tree.roll_up((np.where(np.isfinite(lo), lo, 0.0) + above)[leaf].astype(np.int64))
    return mechanism, z, np.where(leaf, lo, -INF)


def expected(mechanism, z, lo, alpha, together=1, reach=45):
    """Return the intervals by convolutions, with cuts as they were worked out."""
    tree, resolved = mechanism.mechanism.tree, mechanism.resolved
    bound = np.where(resolved.pinned, -INF, lo)
    cut = inversion._cuts(mechanism, z, bound, 0.1 * alpha)
    kind = "laplace" if isinstance(mechanism.mechanism.noise, cg.DiscreteLaplace) else "gaussian"
    about = tree.parents.tolist(), kind, mechanism.mechanism.scales, resolved.pinned
    low, high = cut_noise.extremes(*about, cut, 0.45 * alpha / together, reach)
    least = tree.roll_up(np.where(resolved.pinned, z, lo)[tree.leaves])
    return np.maximum(z - high, least), z - low


@pytest.mark.parametrize("seed", range(60))
def test_ends_are_quantiles_of_the_extreme_laws(seed):
    rng = np.random.default_rng(seed)
    mechanism, z, lo = random_case(rng)
    alpha, together = float(rng.choice([0.02, 0.1, 0.3])), int(rng.integers(1, 4))
    found = cg.inference.inverted_intervals(mechanism, z, alpha, together=together)
    assert np.array_equal(found, expected(mechanism, z, lo, alpha, together))


@pytest.mark.parametrize("seed", range(10))
def test_intervals_contain_the_release_and_grow_with_confidence_and_together(seed):
    mechanism, z, lo = random_case(np.random.default_rng(1000 + seed))
    before = z, z
    for alpha, together in ((0.5, 1), (0.2, 1), (0.2, 3), (0.05, 3), (0.05, 10)):
        lower, upper = cg.inference.inverted_intervals(mechanism, z, alpha, together=together)
        assert (lower <= before[0]).all()
        assert (upper >= before[1]).all()
        before = lower, upper
    tree = mechanism.mechanism.tree
    assert (lower >= tree.roll_up(lo[tree.leaves])).all()
    fixed = mechanism.resolved.pinned
    assert np.array_equal(lower[fixed], z[fixed])
    assert np.array_equal(upper[fixed], z[fixed])


@pytest.mark.parametrize("kind", sorted(LAWS))
def test_leaves_are_cut_at_bounds_with_the_stated_error(kind):
    scales = np.array([4.0, 0.6, 5.0, 0.6])
    mechanism = released_by([-1, 0, 0, 0], kind, scales, pinned=[0])
    z, bound = np.array([1600, 30, 100, 1470]), np.array([-INF, 0.0, -3.0, 0.0])
    cut = inversion._cuts(mechanism, z, bound, 0.03)
    for v in (1, 2):
        # noise that is cut at 0 lies beyond this seldom enough, and not beyond much less
        quantile = int(z[v] - bound[v] + cut[v])
        law = cut_noise.weight(kind, scales[v], np.arange(400))
        assert law[quantile + 1 :].sum() <= 0.01 * law.sum() < law[quantile - 1 :].sum()
    # a bound that is far away is not put farther
    assert cut[0] == -INF
    assert cut[3] == -np.floor(64 * 0.6)


# coverage of every dataset


def least_coverage(parents, kind, scale, most, wide, *, pinned=(), lo=0, together=1, told=1.0):
    """Return the least probability, over datasets, that each interval holds, and that all do.

    Counts of leaves are at most `most` above their bounds, releases below `wide`; what lies beyond
    counts as missed. The noise is 1 / `told` times as wide as the intervals take it to be.
    """
    mechanism = released_by(parents, kind, np.full(len(parents), scale), pinned=pinned, lo=lo)
    tree = mechanism.mechanism.tree
    lo = np.broadcast_to(lo, (len(parents),))[tree.leaves]
    box = lo + np.array(list(itertools.product(range(3 * wide), repeat=tree.leaves.size)))
    z = tree.roll_up(box)
    inside = np.flatnonzero((box < lo + wide).all(axis=1))
    data = np.flatnonzero((box <= lo + most).all(axis=1))
    each, whole, cache = 1.0, 1.0, {}
    held = list(pinned)
    for x in z[data]:
        weights = np.ones(z.shape[0])
        for v in range(len(parents)):
            noise = z[:, v] - x[v]
            weights *= cut_noise.weight(kind, scale / told, noise, pinned=v in held)
        total, holds, together_holds = weights.sum(), np.zeros(len(parents)), 0.0
        for i in inside[weights[inside] > 1e-7 * total]:
            if i not in cache:
                cache[i] = cg.inference.inverted_intervals(mechanism, z[i], 0.1, together=together)
            lower, upper = cache[i]
            good = (lower <= x) & (x <= upper)
            holds += weights[i] * good
            together_holds += weights[i] * good.all()
        each = min(each, holds.min() / total)
        whole = min(whole, together_holds / total)
    return each, whole


EVERY = [
    ([-1, 0, 0], "laplace", 1.5, 6, 16, {}),
    ([-1, 0, 0], "gaussian", 1.5, 6, 14, {}),
    ([-1, 0, 0], "laplace", 1.5, 5, 16, {"lo": np.array([-9, 2, -4])}),
    ([-1, 0, 0, 1, 1], "laplace", 0.6, 2, 7, {}),
    ([-1, 0, 0, 1, 1], "laplace", 1.5, 3, 9, {"pinned": [0]}),
    ([-1, 0, 0, 1, 1], "gaussian", 1.5, 3, 9, {"pinned": [0]}),
    ([-1, 0, 0, 0], "gaussian", 1.0, 2, 7, {"pinned": [1]}),
]


@pytest.mark.parametrize("case", EVERY)
def test_intervals_have_the_stated_coverage_for_every_dataset(case):
    *about, further = case
    assert least_coverage(*about, **further)[0] >= 0.9


@pytest.mark.parametrize("case", EVERY[:2])
def test_noise_wider_than_stated_lowers_coverage_visibly(case):
    *about, further = case
    assert least_coverage(*about, **further, told=0.7)[0] < 0.9


@pytest.mark.parametrize("case", EVERY[3:5])
def test_intervals_of_all_counts_hold_at_once(case):
    (parents, *about, further) = case
    assert least_coverage(parents, *about, **further, together=len(parents))[1] >= 0.9


# the pass down the messages


@pytest.mark.parametrize("seed", range(20))
def test_shown_messages_give_the_laws_of_networks_that_differ_below(seed):
    rng = np.random.default_rng(2000 + seed)
    mechanism, z, _lo = random_case(rng)
    resolved, tree, bound = inversion._checked(mechanism)
    cut = inversion._cuts(mechanism, z, bound, 0.01)
    weights = inversion._weights(mechanism, resolved, cut)
    laws = extremes._Laws(extremes.of_tree(tree), weights)
    messages = extremes._Messages(laws, np.full(laws.cut.ctype.size, 1.5))
    kind = "laplace" if isinstance(mechanism.mechanism.noise, cg.DiscreteLaplace) else "gaussian"
    about = tree.parents.tolist(), kind, mechanism.mechanism.scales, resolved.pinned
    free = np.full(cut.size, -INF)
    for around, below, cuts in (
        (messages.cut, messages.free, (cut, free)),
        (messages.free, messages.cut, (free, cut)),
        (messages.cut, messages.cut, (cut, cut)),
    ):
        given = below.table, messages.lost, tree.is_leaf
        found = one_sided(around, *given, np.array([0.3, 0.02]))
        assert (found.lost == 0.0).all()
        for v, (t, p) in enumerate(cut_noise.convolved(*about, *cuts, 45)):
            for i, tail in enumerate((0.3, 0.02)):
                assert found.below[v, i] == t[np.cumsum(p) > tail][0]
                assert found.above[v, i] == t[::-1][np.cumsum(p[::-1]) > tail][0]


@pytest.mark.parametrize("seed", range(20))
def test_one_sided_bounds_have_at_most_alpha_beyond(seed):
    rng = np.random.default_rng(seed)
    p = rng.random(int(rng.integers(1, 30))) * (rng.random() < 0.8) + 1e-3
    p[rng.random(p.size) < 0.2] = 0.0
    p[int(rng.integers(p.size))] = 1.0
    tails = np.array([0.01, 0.1, 0.49])
    low, high = (np.empty(tails.size, dtype=np.int64) for _ in range(2))
    kernels.one_sided(p, p.sum(), -7, tails, low, high)
    below, above = np.cumsum(p) / p.sum(), np.cumsum(p[::-1]) / p.sum()
    for i, tail in enumerate(tails):
        assert low[i] == -7 + np.argmax(below > tail)
        assert high[i] == -7 + p.size - 1 - np.argmax(above > tail)


def test_a_bound_with_exactly_alpha_beyond_moves_to_the_next_value():
    low, high = (np.empty(1, dtype=np.int64) for _ in range(2))
    kernels.one_sided(np.array([0.1, 0.2, 0.4, 0.2, 0.1]), 1.0, 0, np.array([0.3]), low, high)
    assert (low[0], high[0]) in {(1, 3), (2, 2)}


# extreme cases


CASES = [
    ([-1], 3.0, [5], ()),
    ([-1], 3.0, [0], ()),
    ([-1, 0, 1, 2], 1.5, [4, 4, 4, 4], ()),
    ([-1, 0, 1, 2], np.array([INF, 1.0, INF, 3.0]), [0, 0, 0, 0], ()),
    ([-1, 0, 0, 0, 0, 0], 2.0, [900, 900, 0, 0, 0, 0], ()),
    ([-1, 0, 0, 0, 0, 0], 2.0, [900, 900, 0, 0, 0, 0], (0,)),
    ([-1, 0, 0, 0], np.array([0.3, 6.0, 6.0, 6.0]), [3, 1, 2, 0], ()),
    ([-1, 0, 0, 0], np.array([9.0, 0.3, 0.3, 0.3]), [3, 1, 2, 0], ()),
    ([-1, 0, 0, 1, 1], np.array([0.1, 10.0, 10.0, 0.4, 3.0]), [4, 2, 2, 0, 2], ()),
    ([-1, 0, 0, 1, 1], np.array([1.0, 1.0, INF, 2.0, INF]), [4, 2, 2, 0, 2], ()),
]


@pytest.mark.parametrize("kind", sorted(LAWS))
@pytest.mark.parametrize("case", CASES)
def test_extreme_cases(kind, case):
    parents, scale, z, pinned = case
    scales = np.broadcast_to(np.asarray(scale, dtype=float), (len(parents),))
    mechanism, z = released_by(parents, kind, scales, pinned=pinned), np.array(z)
    lo = np.where(mechanism.mechanism.tree.is_leaf, 0.0, -INF)
    found = cg.inference.inverted_intervals(mechanism, z, 0.1)
    assert np.array_equal(found, expected(mechanism, z, lo, 0.1, reach=150))


def test_intervals_in_a_family_of_many_zeros_equal_those_of_dense_laws():
    # the sum of the others is as large as their bounds allow, and that of a leaf as small
    parents = [-1] + [0] * 25
    mechanism = released_by(parents, "laplace", np.full(26, 3.0))
    z = np.zeros(26, dtype=np.int64)
    lower, upper = cg.inference.inverted_intervals(mechanism, z, 0.1)
    ends = expected(mechanism, z, np.where(np.arange(26) > 0, 0.0, -INF), 0.1, reach=90)
    assert np.array_equal((lower, upper), ends)
    assert (lower == 0).all()


def test_laws_too_far_apart_for_floating_point_are_refused():
    # the others' sum, cut, has no weight to speak of where a single leaf can make up for it
    mechanism = released_by([-1] + [0] * 800, "gaussian", np.full(801, 10.0))
    with pytest.raises(NumericalError, match="too far apart"):
        cg.inference.inverted_intervals(mechanism, np.zeros(801, dtype=np.int64), 0.1)


# refusals


def refused(invariant=None, *, noise=None, parents=(-1, 0, 0)):
    tree = cg.Tree.from_parents(parents)
    noise = cg.DiscreteLaplace(1.0) if noise is None else noise
    more = cg.consistent(tree) if invariant is None else cg.consistent(tree) & invariant
    return cg.condition(cg.Additive(noise, tree), more)


def image():
    tree = cg.Tree.from_parents([-1, 0, 0])
    noisy = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    return cg.image(noisy, cg.consistent(tree) & cg.nonnegative())


@pytest.mark.parametrize(
    ("mechanism", "says"),
    [
        (lambda: refused(cg.bounds(hi=9.0)), "upper bounds"),
        (lambda: refused(cg.bounds(lo=[1.0, 0.0, 0.0])), "beyond those of their parts"),
        (lambda: refused(cg.bounds(lo=[-3.0, 0.0, -INF])), "beyond those of their parts"),
        (lambda: refused(cg.linear([[0, 1, -1]], [0])), "consistent"),
        (lambda: refused(cg.at_least([[0, 1, 1]], [0])), "consistent"),
        (lambda: refused(noise=cg.DiscreteGaussian(2.0, granularity=0.5)), "OnGrid"),
        (lambda: refused(noise=cg.Laplace(2.0)), "ConditionedLaplace"),
        (
            lambda: cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), 3), cg.nonnegative()),
            "consistent",
        ),
        (lambda: cg.Additive(cg.DiscreteLaplace(1.0), 3), "Additive"),
        (image, "not for a"),
    ],
)
def test_unsupported_cases_are_refused(mechanism, says):
    with pytest.raises(UnsupportedError, match=says):
        cg.inference.inverted_intervals(mechanism(), [2, 1, 1])


@pytest.mark.parametrize(
    ("z", "alpha", "together", "says"),
    [
        ([2, 1], 0.1, 1, r"shape \(2,\)"),
        ([[2, 1, 1]], 0.1, 1, r"shape \(1, 3\)"),
        ([2.0, 1.0, 1.0], 0.1, 1, "float64"),
        ([2, 1, 0], 0.1, 1, "does not add up"),
        ([2, 3, -1], 0.1, 1, "below a bound"),
        ([2, 1, 1], 0.0, 1, "alpha is 0.0"),
        ([2, 1, 1], 1.0, 1, "alpha is 1.0"),
        ([2, 1, 1], 1, 1, "alpha is 1"),
        ([2, 1, 1], np.nan, 1, "alpha is nan"),
        ([2, 1, 1], 0.1, 0, "together is 0"),
        ([2, 1, 1], 0.1, 1.0, "together is 1.0"),
        ([2, 1, 1], 0.1, True, "together is true"),
    ],
)
def test_arguments_are_checked(z, alpha, together, says):
    with pytest.raises(ArgumentError, match=says):
        cg.inference.inverted_intervals(refused(cg.nonnegative()), z, alpha, together=together)


@pytest.mark.parametrize("alpha", [4e-9, 1e-12, 1e-300, 5e-324])
def test_an_alpha_lost_in_rounding_is_refused(alpha):
    with pytest.raises(NumericalError, match="give a larger alpha"):
        cg.inference.inverted_intervals(refused(cg.nonnegative()), [2, 1, 1], alpha)
    cg.inference.inverted_intervals(refused(cg.nonnegative()), [2, 1, 1], 1e-8)


@pytest.mark.parametrize("roots", [1, 2])
def test_unmeasured_leaves_are_refused(roots):
    # without its bounds, one of two such siblings may be anything
    parents = [-1, 0, 0] if roots == 1 else [-1, -1, 1]
    noise = cg.DiscreteLaplace([1.0, INF, INF] if roots == 1 else [INF, 1.0, 1.0])
    with pytest.raises(UnsupportedError, match="measure"):
        cg.inference.inverted_intervals(
            refused(cg.nonnegative(), noise=noise, parents=parents), [0, 0, 0]
        )
