"""Tilts of a sum forest: moments against sums, means of thousands of forests, the hard cases."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

import congenial as cg
from congenial.kernels.network import tilting
from congenial.kernels.network.records import Weights
from congenial.kernels.numerics import laws
from congenial.sum_network import windows
from congenial.sum_network.forest import of_rows, of_tree
from congenial.sum_network.weights import SharedUnary, Unary
from support.kernel_entries import entry

pytestmark = pytest.mark.kernels

INF = np.inf
unary_moments = entry("network.moments.unary_moments")
KINDS = {"laplace": laws.LAPLACE, "gaussian": laws.GAUSSIAN}


def summed(kind, scale, center, lo, hi, tilt):
    """Log-normaliser, mean and variance by summation over all that matters."""
    reach = 400.0 * scale + 40.0
    u = np.arange(max(lo, np.floor(center - reach)), min(hi, center + reach) + 1.0)
    off = np.abs(u - center) / scale
    log = tilt * u - (off if kind == laws.LAPLACE else 0.5 * off**2)
    w = np.exp(log - log.max())
    mean = (w * u).sum() / w.sum()
    return log.max() + np.log(w.sum()), mean, (w * (u - mean) ** 2).sum() / w.sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0, 1000.0])
def test_moments_are_those_of_the_sums(kind, scale):
    wide = np.ceil(3.0 * scale)
    boxes = [(-INF, INF), (0, INF), (-INF, 0), (-1, wide), (-wide, 2), (-wide, INF), (-7 * wide, 0)]
    for lo, hi in boxes:
        for tilt in np.array([-3.0, -0.97, -0.2, 0.0, 0.01, 0.6, 0.9, 5.0]) / scale:
            if kind == "laplace" and (
                (hi == INF and tilt >= 1.0 / scale) or (lo == -INF and tilt <= -1.0 / scale)
            ):
                continue
            mean, var = unary_moments(KINDS[kind], scale, 0.0, float(lo), float(hi), tilt)
            _, mean_, var_ = summed(KINDS[kind], scale, 0.0, lo, hi, tilt)
            assert mean == pytest.approx(mean_, abs=0.03 * np.sqrt(var_) + 1e-9)
            assert var == pytest.approx(var_, rel=0.03, abs=1e-9)


def test_a_pinned_weight_and_a_flat_one():
    assert unary_moments(laws.LAPLACE, 2.0, 0.0, 3.0, 3.0, 0.7) == (3.0, 0.0)
    assert unary_moments(laws.FLAT, INF, 0.0, -INF, INF, 0.0) == (0.0, INF)
    # beyond the tilts that can be normalised: something finite
    mean, var = unary_moments(laws.LAPLACE, 2.0, 0.0, 0.0, INF, 0.6)
    assert 1e3 < mean < INF
    assert 1e3 < var < INF


def every(unary):
    """The weights as of variables of which no two share theirs."""
    return SharedUnary(unary, np.arange(unary.kind.size, dtype=np.int32))


def solved(forest, unary, *, simple=False, rounds=100):
    """Multipliers and the number of rounds."""
    scale = windows.stand_in(unary, forest.n)[1]
    columns = (unary.kind, scale, unary.center, unary.lo, unary.hi)
    theta = np.empty(forest.m)
    shape = (forest.above, forest.owner, forest.sign, forest.order)
    none = np.empty((0, 4))
    taken = tilting.solve(Weights(*columns), none, every(unary).code, *shape, rounds, simple, theta)
    return theta, taken


def tilts_of(forest, theta):
    """The multiplier above each variable minus the signed multipliers below it."""
    tilt = np.where(forest.above >= 0, theta[forest.above], 0.0)
    owned = forest.owner >= 0
    np.subtract.at(tilt, forest.owner[owned], (forest.sign * theta)[owned])
    return tilt


def moments_of_leaf(unary, own, v, tilt):
    """Mean and variance of a leaf's tilted law under its prior, by summation."""
    a, b, base, _ = own
    k = np.arange(6000.0)
    log = np.concatenate(([0.0], np.cumsum(np.log((a + b * k[:-1]) / (k[:-1] + 1.0)))))
    off = np.abs(k - base - unary.center[v]) / unary.scale[v]
    log += tilt * k - (off if unary.kind[v] == laws.LAPLACE else 0.5 * off**2)
    w = np.exp(log - log.max())
    w /= w.sum()
    mean = w @ k
    return mean - base, w @ (k - mean) ** 2


def off_by(forest, unary, theta, prior=None, moments=None):
    """How far every sum's mean is from its owner's, and the deviation of the two together."""
    tilt = tilts_of(forest, theta)
    scale = windows.stand_in(unary, forest.n)[1]
    columns = zip(unary.kind, scale, unary.center, unary.lo, unary.hi, tilt, strict=True)
    mean, var = np.array(moments or [unary_moments(*row) for row in columns]).T
    for v in () if prior is None else np.flatnonzero(prior[:, 0] >= 0.0):
        mean[v], var[v] = moments_of_leaf(unary, prior[v], v, tilt[v])
    missing, spread = np.zeros(forest.m), np.zeros(forest.m)
    held = forest.above >= 0
    np.add.at(missing, forest.above[held], mean[held])
    np.add.at(spread, forest.above[held], var[held])
    owned = forest.owner >= 0
    missing[owned] -= forest.sign[owned] * mean[forest.owner[owned]]
    spread[owned] += var[forest.owner[owned]]
    return missing, np.sqrt(spread)


def random_forest(seed):
    """Sums grown one at a time, each of new variables and mostly one that is there.

    Laws are mixed, and sizes of scales, centres and bounds lie far apart.
    """
    rng = np.random.default_rng([77, seed])
    n, rows = 0, []
    for _ in range(rng.integers(1, 6)):
        fresh = rng.integers(1 if n else 2, 6)
        members = np.arange(n, n + fresh)
        if n and rng.random() < 0.9:
            members = np.append(members, rng.integers(n))
        n += fresh
        rows.append((members.astype(np.int64), rng.choice([-1, 1], members.size)))
    lo = -rng.choice([0.0, 0.0, 1.0, 5.0, 300.0, INF], n)
    # a sum of nothing but pins is no tilt's to move
    hi = rng.choice([0.0, 2.0, 9.0, 300.0, INF, INF], n) + 4.0 * (lo == 0.0)
    scale = 10.0 ** rng.uniform(-0.5, 2.0, n)
    # measurements are within two deviations of values that satisfy every sum
    center = np.where(rng.random(n) < 0.3, np.rint(scale * rng.uniform(-2.0, 2.0, n)), 0.0)
    return of_rows(rows, n), Unary(rng.choice(list(KINDS.values()), n), scale, center, lo, hi)


def is_tight(forest, unary):
    """Whether bounds leave no values that satisfy every sum and lie off all ends."""
    rows = np.zeros((forest.m, forest.n + 1))
    held, owned = forest.above >= 0, forest.owner >= 0
    rows[forest.above[held], np.flatnonzero(held)] = 1.0
    rows[owned, forest.owner[owned]] = -forest.sign[owned]
    eye, room = np.eye(forest.n), np.ones((forest.n, 1))
    most = np.append(np.zeros(forest.n), -1.0)
    ends = np.vstack((np.hstack((-eye, room)), np.hstack((eye, room))))
    found = linprog(
        most,
        A_ub=ends,
        b_ub=np.nan_to_num(np.concatenate((-unary.lo, unary.hi)), posinf=1e6),
        A_eq=rows,
        b_eq=np.zeros(forest.m),
        bounds=(None, None),
    )
    return found.fun > -1e-6


def test_sums_of_thousands_of_forests_have_their_means():
    tight = moved = 0
    for seed in range(2000):
        forest, unary = random_forest(seed)
        theta, rounds = solved(forest, unary, rounds=1000)
        assert np.isfinite(theta).all()
        tilt = tilts_of(forest, theta)
        columns = zip(unary.kind, unary.scale, unary.center, unary.lo, unary.hi, tilt, strict=True)
        moments = [summed(*row)[1:] for row in columns]
        missing, deviation = off_by(forest, unary, theta, moments=moments)
        # a multiplier's tolerance, another for those next to it, and how rough moments are
        allowed = (2.0 * tilting._TOLERANCE + 0.05) * np.maximum(deviation, 1.0)
        if (np.abs(missing) > allowed).any():
            # only where the multipliers are at infinity
            assert is_tight(forest, unary), seed
            tight += 1
        else:
            assert rounds < 100
        moved += theta.any()
    assert tight < 5
    assert moved > 1900


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lo", [0.0, -(10.0**6)])
@pytest.mark.parametrize("depth", [1, 3])
def test_a_variable_follows_the_one_pressed_to_its_bound_below_it(kind, lo, depth):
    # one bounded leaf below narrow counts measured far outside of its bound
    forest = of_tree(cg.Tree.from_parents([-1, 0, 0, *range(2, depth + 2)]))
    n = forest.n
    scale, center = np.full(n, 40.0), np.full(n, lo)
    center[1] = 0.0
    scale[2:-1], center[2:-1], scale[-1] = 0.46, lo - 9.0, 1.0
    ends = np.full(n, -INF), np.full(n, INF)
    ends[0][-1] = lo
    law = np.full(n, laws.GAUSSIAN)
    law[-1] = KINDS[kind]
    unary = Unary(law, scale, center, *ends)
    theta, rounds = solved(forest, unary)
    assert rounds < 100
    missing, deviation = off_by(forest, unary, theta)
    assert (np.abs(missing) <= 0.25 * np.maximum(deviation, 1.0)).all()


def tree_case(fans, leaves, *, scale, kind="laplace", lo=0.0, root="pinned", unmeasured=()):
    """A tree with leaf counts, every count at least `lo`, and some levels not measured."""
    parents, start, width = [np.array([-1])], 0, 1
    for fan in fans:
        parents.append(start + np.repeat(np.arange(width), fan))
        start += width
        width *= fan
    tree = cg.Tree.from_parents(np.concatenate(parents))
    x = tree.roll_up(np.asarray(leaves))
    n = len(tree)
    below, above = lo - x.astype(float), np.full(n, INF)
    below[~tree.is_leaf] = -INF
    law = np.full(n, KINDS[kind])
    scales = np.broadcast_to(np.asarray(scale, dtype=float), (n,)).copy()
    flat = np.isin(tree.level, unmeasured)
    law[flat], scales[flat] = laws.FLAT, INF
    if root == "pinned":
        below[0] = above[0] = 0.0
    return of_tree(tree), Unary(law, scales, np.zeros(n), below, above)


def mixed_scales(fans):
    """Scales of the nodes of a tree, from one to ten thousand."""
    sizes = np.cumprod([1, *fans]).sum()
    return 10.0 ** np.random.default_rng(5).integers(0, 5, sizes)


COUNTS = np.random.default_rng(6).poisson(3.0, 60)
HARD = {
    "a total of zero": tree_case([3, 4, 5], np.zeros(60, int), scale=2.0),
    "a total of zero, gaussian": tree_case(
        [3, 4, 5], np.zeros(60, int), scale=2.0, kind="gaussian"
    ),
    "a wide total of zero": tree_case([300], np.zeros(300, int), scale=1e4),
    "no people, root free": tree_case([3, 4, 5], np.zeros(60, int), scale=2.0, root="free"),
    "one huge leaf": tree_case([400], [10**6, *[0] * 399], scale=2.0),
    "one huge leaf, two levels": tree_case([20, 20], [10**6, *[0] * 399], scale=1.0),
    "one huge leaf, gaussian": tree_case([400], [10**6, *[0] * 399], scale=3.0, kind="gaussian"),
    "wide": tree_case([3, 4, 5], COUNTS, scale=1e4),
    "wide, gaussian": tree_case([3, 4, 5], COUNTS, scale=1e4, kind="gaussian"),
    "scales that differ": tree_case([3, 4, 5], COUNTS, scale=mixed_scales([3, 4, 5])),
    "unmeasured inside": tree_case([3, 4, 5], COUNTS, scale=2.0, unmeasured=(1,)),
    "unmeasured above": tree_case([3, 4, 5], COUNTS, scale=2.0, root="free", unmeasured=(0, 1)),
    "unmeasured leaves": tree_case([3, 4, 5], COUNTS, scale=2.0, unmeasured=(3,)),
    "only the root measured": tree_case(
        [3, 4, 5], 1000 * COUNTS, scale=2.0, root="free", unmeasured=(1, 2, 3)
    ),
    "far bounds": tree_case([3, 4, 5], COUNTS, scale=2.0, lo=-1e9),
}


@pytest.mark.parametrize("name", HARD)
def test_sums_have_their_means_in_the_hard_cases(name):
    forest, unary = HARD[name]
    theta, rounds = solved(forest, unary)
    assert np.isfinite(theta).all()
    assert rounds < 60
    missing, deviation = off_by(forest, unary, theta)
    measured = np.isfinite(deviation)
    assert (np.abs(missing) <= 0.25 * np.maximum(deviation, 1.0))[measured].all()
    # a variable without weight is never tilted: it has no law of its own to tilt
    free = (unary.kind == laws.FLAT) & np.isneginf(unary.lo) & np.isposinf(unary.hi)
    for rounded in (theta, windows.tilts(forest, every(unary))):
        assert (tilts_of(forest, rounded)[free] == 0.0).all()


@pytest.mark.parametrize("name", HARD)
def test_rounding_keeps_multipliers_where_weights_can_be_normalised(name):
    forest, unary = HARD[name]
    theta, simple = solved(forest, unary)[0], windows.tilts(forest, every(unary))
    assert np.isfinite(simple).all()
    scale = windows.stand_in(unary, forest.n)[1]
    rate = np.where(unary.kind == laws.GAUSSIAN, INF, 1.0 / scale)
    free = (unary.kind == laws.FLAT) & np.isneginf(unary.lo) & np.isposinf(unary.hi)
    exact, rounded = tilts_of(forest, theta)[~free], tilts_of(forest, simple)[~free]
    up = np.where(np.isposinf(unary.hi), rate, INF)[~free]
    down = np.where(np.isneginf(unary.lo), -rate, -INF)[~free]
    assert (up - rounded >= 0.5 * (up - exact)).all()
    assert (rounded - down >= 0.5 * (exact - down)).all()


def test_like_families_share_their_multipliers():
    leaves = np.tile(COUNTS[:12], 50)
    forest, unary = tree_case([50, 3, 4], leaves, scale=2.0)
    theta = windows.tilts(forest, every(unary))
    assert np.unique(theta[forest.depth == 1]).size == 1
    assert np.unique(theta).size <= 5
    assert theta.any()


def test_equalities_alone_need_no_tilt():
    forest, unary = tree_case([3, 4, 5], COUNTS, scale=2.0, lo=-INF)
    assert not windows.tilts(forest, every(unary)).any()


def counted(seed, families, kind):
    """A tree of measured families, some leaves with far more counts than their prior expects."""
    rng = np.random.default_rng([78, seed])
    sizes = rng.integers(1, 15, families)
    above = np.repeat(np.arange(families) + 1, sizes)
    tree = cg.Tree.from_parents(np.concatenate(([-1], np.zeros(families, dtype=np.int64), above)))
    forest = of_tree(tree)
    leaf = tree.is_leaf
    counts = np.where(rng.random(sizes.sum()) < 0.15, rng.integers(20, 1500, sizes.sum()), 0)
    x = np.asarray(tree.roll_up(counts))
    scale = np.full(len(tree), 4.0)
    y = x + np.rint(rng.laplace(0.0, scale)).astype(np.int64)
    base = np.asarray(tree.roll_up(np.maximum(y[leaf], 0)))
    lo = np.where(leaf, -base, -INF).astype(float)
    shape = np.full(len(tree), KINDS[kind]), scale, (y - base).astype(float), lo
    unary = Unary(*shape, np.full(len(tree), INF))
    mean, r = rng.uniform(1.0, 9.0), rng.uniform(0.15, 2.0)
    b = mean / (mean + r)
    rows = np.column_stack([np.full(len(tree), b * r), np.full(len(tree), b), base])
    prior = np.column_stack([np.where(leaf[:, None], rows, [-1.0, 0.0, 0.0]), np.zeros(len(tree))])
    return forest, unary, prior


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(25))
def test_sums_have_their_means_under_skewed_priors_of_leaves(seed, kind):
    # laws of these leaves have two modes, at 0 and at the measurement, and tilts move between them
    forest, unary, prior = counted(seed, 12, kind)
    theta = windows.tilts(forest, every(unary), prior)
    missing, deviation = off_by(forest, unary, theta, prior)
    assert (np.abs(missing) <= np.maximum(deviation, 1.0)).all()
