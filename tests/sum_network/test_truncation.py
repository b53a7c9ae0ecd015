"""The bound on the sampler's error: above the true loss of every window, and useful."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings

import congenial as cg
from congenial.errors import NumericalError
from congenial.invariants.written import resolve_invariant
from congenial.kernels.network import certify
from congenial.kernels.numerics import laws
from congenial.sum_network import fourier, windows
from congenial.sum_network import tables as exact
from congenial.sum_network import truncation as losses
from congenial.sum_network.cutset import sum_system
from congenial.sum_network.exact import envelopes
from congenial.sum_network.forest import of_tree
from congenial.sum_network.fourier import convolve_wide, cross_wide
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import SharedUnary, Unary
from support.conditioning_cases import INF, Case, open_cases
from support.sum_networks import tables_of

pytestmark = pytest.mark.kernels

KINDS = {"laplace": laws.LAPLACE, "gaussian": laws.GAUSSIAN}
# From hardly cut to cut in the bulk: (mass meant to be cut, width in proportion).
NARROW = ((1e-6, 1.0), (1e-3, 0.7), (1e-1, 0.5), (0.3, 0.15))


def every(unary: Unary) -> SharedUnary:
    return SharedUnary(unary, np.arange(unary.kind.size, dtype=np.int32))


def weights_of(one: Case) -> SharedUnary:
    n = one.n
    lo, hi = (np.array(np.broadcast_to(b, (n,)), dtype=float) - one.x for b in (one.lo, one.hi))
    lo[list(one.pinned)] = hi[list(one.pinned)] = 0.0
    measured = np.isfinite(one.scales)
    kind = np.where(measured, KINDS[one.kind], laws.FLAT).astype(np.int64)
    return every(Unary(kind, one.scales, np.zeros(n), lo, hi))


def filled(forest, unary, *, cut, generous):
    """Tables whose windows were placed for a cut; the bound; what each class lost."""
    theta = windows.tilts(forest, unary)
    network = compile_network(forest, unary, theta)
    place = windows.place_classes(network)
    lo, hi = windows.windows(network, place, cut=cut, generous=generous)
    kept = []

    def keep(network, messages, errors, place, small):
        apart = messages.offset, messages.table.size
        kept.append(losses.follow(network, messages, errors, place, small, apart).lost)
        return losses.cut_off(network, messages, errors, place, small)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "cut_off", keep)
        tables, bound = exact._fill(network, place, (lo, hi), cut)
    return tables, bound, kept[0]


# Of the reference: at scales below 3, what lies further out is below e-50 of all.
REACH = 150


def random_weights(seed):
    """A small forest, and weights of both laws with bounds, pins, and some of no measurement.

    All is 0 within the bounds.
    """
    draw = np.random.default_rng([31, seed])
    n = int(draw.integers(1, 9))
    parents = [-1, *(int(draw.integers(-1 if draw.random() < 0.1 else 0, i)) for i in range(1, n))]
    kind = draw.choice(list(KINDS.values()), n)
    scale = 10.0 ** draw.uniform(-1.0, 0.47, n)
    lo = -draw.choice([0.0, 1.0, 4.0, 12.0, INF, INF, INF], n)
    hi = draw.choice([1.0, 4.0, 12.0, INF, INF, INF], n)
    pinned = draw.random(n) < 0.15
    lo[pinned] = hi[pinned] = 0.0
    flat = (draw.random(n) < 0.15) & np.isfinite(lo) & np.isfinite(hi)
    kind[flat], scale[flat] = laws.FLAT, INF
    return parents, of_tree(cg.Tree.from_parents(parents)), Unary(kind, scale, np.zeros(n), lo, hi)


def sum_of_weights(parents, unary):
    """Summed product of all weights, by convolutions in extended precision."""
    u = np.arange(-REACH, REACH + 1).astype(np.longdouble)
    below, total = [None] * len(parents), np.longdouble(1.0)
    for v in reversed(range(len(parents))):
        off = np.abs(u) / np.longdouble(unary.scale[v])
        weight = np.exp(-off if unary.kind[v] == laws.LAPLACE else -off * off / 2)
        weight = np.where((u >= unary.lo[v]) & (u <= unary.hi[v]), weight, 0)
        message = weight if below[v] is None else weight * below[v]
        p = parents[v]
        if p < 0:
            total *= message.sum()
        else:
            below[p] = (
                message
                if below[p] is None
                else np.convolve(below[p], message)[REACH : 3 * REACH + 1]
            )
    return total


def test_the_bound_is_above_the_true_loss_of_the_windows_of_thousands_of_forests():
    cuts = 0
    for seed in range(2000):
        parents, forest, unary = random_weights(seed)
        truth = sum_of_weights(parents, unary)
        cut, generous = NARROW[seed % len(NARROW)]
        tables, bound, _ = filled(forest, every(unary), cut=cut, generous=generous)
        # what one operation rounds an entry by; the bound leaves rounding to `tables.error`
        rounding = 2.0**-52 * (len(parents) + abs(tables.log_sum())) + tables.error - bound
        loss = float(-np.expm1(tables.log_sum() - np.log(truth)))
        assert -rounding <= loss <= bound + rounding, seed
        cuts += loss > 1e3 * rounding
    assert cuts > 600


def test_an_infinite_loss_counts_as_one():
    one, inside = np.ones(1), np.array([0.0, 0.5, 0.0, 0.5])
    assert certify.root_loss(one, np.array([INF]), inside) == 1.0
    assert certify.root_loss(one, np.array([1.0]), inside) == 0.5


def wide_star(kind, scales, *, pinned, lo=-INF):
    tree = cg.Tree.from_parents([-1, *[0] * (len(scales) - 1)])
    x = tree.roll_up(np.zeros(len(scales) - 1, dtype=int))
    return tree, Case(kind, np.array(scales), x, pinned, lo, INF, tuple(tree.parents))


WIDE = {
    "laplace, pinned": wide_star("laplace", [30.0, 30.0, 30.0, 30.0], pinned=(0,)),
    "laplace, nothing pinned": wide_star("laplace", [30.0, 90.0, 10.0, 30.0], pinned=()),
    "gaussian": wide_star("gaussian", [40.0, 90.0, 20.0, 60.0, 60.0], pinned=()),
    "gaussian, bounds": wide_star("gaussian", [40.0, 90.0, 20.0], pinned=(), lo=-25.0),
    "laplace, bounds": wide_star("laplace", [40.0, 90.0, 20.0, 5.0], pinned=(0,), lo=-25.0),
}


def log_sum_by_convolution(one: Case) -> float:
    """Log of the summed weights of a star, by numpy on a window that cuts below 1e-18."""
    reach = int(50 * one.scales.max())
    u = np.arange(-reach, reach + 1, dtype=float)

    def weights(v):
        w = np.exp(-np.abs(u) / one.scales[v]) if one.kind == "laplace" else 0.0
        w = np.exp(-0.5 * (u / one.scales[v]) ** 2) if one.kind == "gaussian" else w
        return np.where(u == 0, w, 0.0) if v in one.pinned else np.where(u >= one.lo, w, 0.0)

    total = weights(1)
    for v in range(2, one.n):
        total = np.convolve(total, weights(v))
    middle = total.size // 2
    return float(np.log((total[middle - reach : middle + reach + 1] * weights(0)).sum()))


@pytest.mark.parametrize("name", WIDE)
def test_the_bound_of_wide_tables(name):
    tree, one = WIDE[name]
    forest, unary, truth = of_tree(tree), weights_of(one), log_sum_by_convolution(one)
    seen = []
    for cut, generous in NARROW:
        tables, bound, _ = filled(forest, unary, cut=cut, generous=generous)
        loss = -np.expm1(tables.log_sum() - truth)
        seen.append(loss)
        assert loss > -1e-11
        assert not bound < loss - 1e-11
    assert max(seen) > 1e-3  # the windows did cut
    tables = tables_of(forest, unary)
    assert abs(tables.log_sum() - truth) < tables.error + 1e-11
    assert tables.error < 1e-10  # and the certificate says something


@pytest.mark.parametrize("lo", [-INF, -15.0])
@pytest.mark.parametrize("scale", [2.0, 6.0])
def test_the_bound_is_within_ten_times_the_loss_after_many_merges(scale, lo):
    scales = scale * (1.0 + 0.2 * np.sin(np.arange(65)))
    tree, one = wide_star("laplace", list(scales), pinned=(0,), lo=lo)
    forest, unary = of_tree(tree), weights_of(one)
    wide, _, _ = filled(forest, unary, cut=1e-18, generous=1.5)
    for cut in (1e-6, 1e-4):
        tables, bound, _ = filled(forest, unary, cut=cut, generous=1.0)
        loss = -np.expm1(tables.log_sum() - wide.log_sum())
        assert loss > 1e-10
        assert 1.0 - 1e-3 < bound / loss < 10.0


@pytest.mark.parametrize("name", WIDE)
def test_the_loss_of_every_message_is_within_its_bound(name):
    tree, one = WIDE[name]
    forest, unary = of_tree(tree), weights_of(one)
    wide, _, _ = filled(forest, unary, cut=1e-18, generous=1.5)
    for cut, generous in NARROW:
        tables, _, lost = filled(forest, unary, cut=cut, generous=generous)
        for c in range(tables.lo.size):
            if tables.lo[c] > tables.hi[c]:
                continue
            at = slice(tables.offset[c], tables.offset[c] + tables.hi[c] - tables.lo[c] + 1)
            unit = np.exp(wide.log_scale[c] - tables.log_scale[c])
            first = tables.lo[c] - wide.lo[c]
            assert first >= 0
            true = unit * wide.of_class(c)[first : first + at.stop - at.start]
            assert (true <= (tables.table[at] + lost[at]) * (1 + 1e-10) + 1e-280).all()


def test_windows_far_too_narrow_are_not_accepted(monkeypatch):
    tree, one = WIDE["laplace, nothing pinned"]
    forest, unary = of_tree(tree), weights_of(one)
    assert tables_of(forest, unary).error < 1e-9
    place_windows = windows.windows

    def planted(network, place, *, cut, generous):
        return place_windows(network, place, cut=0.3, generous=0.1)

    monkeypatch.setattr(exact, "windows", planted)
    with pytest.raises(NumericalError, match="error bound"):
        tables_of(forest, unary)


def test_tables_that_wider_windows_make_worse_are_refused_at_once(monkeypatch):
    tree, one = WIDE["laplace, nothing pinned"]
    forest, unary = of_tree(tree), weights_of(one)
    fill, lost = exact._fill, []

    def planted(network, place, placed, wanted):
        # as transforms do: their errors grow with the windows
        tables, _ = fill(network, place, placed, wanted)
        lost.append(1e-6 * (1.0 + len(lost)))
        return replace(tables, error=2e-6 + lost[-1]), lost[-1]

    monkeypatch.setattr(exact, "_fill", planted)
    with pytest.raises(NumericalError, match="rounding error"):
        tables_of(forest, unary)
    assert len(lost) == 2


def test_the_bound_of_a_mechanism_is_above_the_distance_of_its_marginals():
    # two leaves under a pinned total: the law of one is known, so its distance is too
    scale = 50.0
    tree = cg.Tree.from_parents([-1, 0, 0])
    conditioned = cg.condition(
        cg.Additive(cg.DiscreteLaplace(scale), tree), cg.consistent(tree) & cg.exactly(0)
    )
    values, probabilities = conditioned.marginal(1, np.zeros(3, dtype=int))
    a = np.exp(-2.0 / scale)
    true = (1 - a) / (1 + a) * a ** np.abs(values)
    distance = 0.5 * (np.abs(probabilities - true).sum() + 1.0 - true.sum())
    assert distance < conditioned.error_bound + 1e-13
    assert conditioned.error_bound < 1e-9


def test_draws_from_a_forest_have_no_error():
    tree = cg.Tree.from_parents([-1, 0, 0])
    free = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree))
    bounded = cg.condition(
        cg.Additive(cg.DiscreteLaplace(2.0), tree), cg.consistent(tree) & cg.nonnegative()
    )
    for conditioned in (free, bounded):
        assert conditioned.error_bound == 0.0
        assert conditioned.guarantee("add-remove").delta == 0.0


def log_concave(rng_bits, size, kind):
    """A message as they occur: peaked anywhere, with tails down to nothing, perhaps cut off."""
    peak = rng_bits[0] % np.uint64(size)
    u = np.arange(size) - float(peak)
    scale = size * (0.002, 0.01, 0.05, 0.3)[int(rng_bits[1] % np.uint64(4))]
    w = -np.abs(u) / scale if kind == "laplace" else -0.5 * (u / scale) ** 2
    table = np.exp(w)
    return table / table.max()


@pytest.mark.parametrize(
    "kinds", [("laplace", "laplace"), ("laplace", "gaussian"), ("gaussian",) * 2]
)
@pytest.mark.parametrize("seed", range(4))
def test_transforms_stay_within_their_bound(kinds, seed):
    words = cg.seeded(seed).bits(6)
    a = log_concave(words[:2], 3000 + int(words[4] % np.uint64(500)), kinds[0])
    b = log_concave(words[2:4], 2000 + int(words[5] % np.uint64(500)), kinds[1])
    whole = np.convolve(a.astype(np.longdouble), b.astype(np.longdouble))
    # as windows are: without the entries that underflow
    found = np.flatnonzero(whole > 1e-250)
    first, width = int(found[0]), int(found[-1] - found[0] + 1)
    table, error, top = convolve_wide(a, b, first, width)
    true = whole[first : first + width]
    assert top == pytest.approx(float(true.max()), rel=1e-9)
    assert (np.abs(table * np.longdouble(top) - true) <= error * np.longdouble(top) + 1e-300).all()
    assert (error <= 1e-11 * table * (1 + 1e-6) + 1e-300).all()


@pytest.mark.parametrize("short", [0, 1024])
@pytest.mark.parametrize("seed", range(4))
def test_losses_of_wide_tables_are_bounded_from_above(monkeypatch, seed, short):
    monkeypatch.setattr(fourier, "_SHORT", short)
    words = cg.seeded(100 + seed).bits(8)
    a, b = log_concave(words[:2], 900, "laplace"), log_concave(words[2:4], 700, "gaussian")
    lost_a = 1e-13 * log_concave(words[4:6], 900, "laplace") + 1e-290
    lost_b = 1e-12 * log_concave(words[6:8], 700, "laplace") + 1e-290
    bound = cross_wide(a, b, lost_a, lost_b, 100, 1200)
    exactly = [v.astype(np.longdouble) for v in (a, b, lost_a, lost_b)]
    true = np.convolve(exactly[2], exactly[1] + exactly[3]) + np.convolve(exactly[0], exactly[3])
    assert (bound >= true[100:1300]).all()
    assert bound.sum() < 2 * float(true.sum()) + 1e-9  # not by an empty margin


def test_losses_of_a_narrow_table_among_zeros_take_no_transform(monkeypatch):
    monkeypatch.setattr(fourier, "_Transform", None)
    a = np.exp(-np.abs(np.arange(4000.0) - 1900.0) / 500.0)
    few = np.zeros(3000)
    few[1400:1403] = 1e-20, 1.0, 1e-30
    lost_a, lost_few = 1e-14 * a, 1e-16 * few + 1e-290
    for x, y in (((a, lost_a), (few, lost_few)), ((few, lost_few), (a, lost_a))):
        bound = cross_wide(x[0], y[0], x[1], y[1], 1000, 4000)
        true = np.convolve(x[1], y[0] + y[1]) + np.convolve(x[0], y[1])
        assert (bound >= true[1000:5000]).all()
        assert (bound <= true[1000:5000] * (1 + 1e-12) + 1e-32).all()


def test_a_narrow_part_is_added_to_a_wide_one_term_by_term(monkeypatch):
    monkeypatch.setattr("congenial.sum_network.tables.DIRECT_LIMIT", 1000)
    monkeypatch.setattr("congenial.sum_network.tables.convolve_wide", None)
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    noise = cg.DiscreteLaplace([30.0, 0.1, 0.1, 30.0])
    mechanism = cg.condition(cg.Additive(noise, tree), cg.consistent(tree))
    assert mechanism.error_bound < 1e-11


def test_sums_of_a_plain_vector_have_a_bound_too():
    resolved = resolve_invariant(cg.linear([[1, 1, -1, 0], [0, 0, 1, 1]], [0, 0]), 4)
    system = sum_system(resolved)
    forest, fixed = system.forest, system.fixed
    assert not fixed.any()
    n = 4
    unary = Unary(
        np.full(n, laws.GAUSSIAN),
        np.array([3.0, 40.0, 5.0, 7.0]),
        np.zeros(n),
        np.full(n, -INF),
        np.full(n, INF),
    )
    assert tables_of(forest, every(unary)).error < 1e-11


@given(open_cases(most=8))
@settings(max_examples=40, derandomize=True, deadline=None)
def test_reused_workspace_does_not_change_the_loss(one):
    assume(np.isfinite(one.scales).any())
    forest, unary = of_tree(cg.Tree.from_parents(one.parents)), weights_of(one)
    try:
        network = tables_of(forest, unary).network
    except cg.CongenialError:
        assume(False)
    width = np.random.default_rng(one.n).integers(1, 200, network.ctype.size)
    place, extent = losses.shared_rooms(network, width)
    # what each entry was last written by, when a class reads the rooms of its parts
    held = np.full(extent, -1)
    for c in range(width.size):
        for part in (network.left[c], network.right[c]):
            if part >= 0:
                assert (held[place[part] : place[part] + width[part]] == part).all()
        held[place[c] : place[c] + width[c]] = c
    for c in (*network.roots, *network.fixed):
        assert (held[place[c] : place[c] + width[c]] == c).all()


def test_the_workspace_of_a_large_tree_is_smaller_than_its_tables():
    tree = cg.Tree.from_parents([-1, *[0] * 40, *np.repeat(np.arange(1, 41), 25)])
    x = tree.roll_up(np.random.default_rng(3).poisson(3, 1000))
    resolved = cg.consistent(tree) & cg.nonnegative()
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(2.0), tree), resolved)
    tables = conditioned._prepare(x)
    width = tables.hi - tables.lo + 1
    _, extent = losses.shared_rooms(tables.network, width)
    assert extent < 0.6 * width.sum()


@pytest.mark.parametrize("scale", [2.0, 5.0, 20.0])
@pytest.mark.parametrize("noise", [cg.DiscreteLaplace, cg.DiscreteGaussian])
def test_the_first_windows_suffice(noise, scale, monkeypatch):
    # many leaves near 0 and few far from it, in one family and in a tree of three levels
    filled_so_far = []
    fill = envelopes._fill

    def counted(*args):
        filled_so_far.append(args)
        return fill(*args)

    monkeypatch.setattr(envelopes, "_fill", counted)
    leaves = np.random.default_rng(2).negative_binomial(0.3, 0.02, 400)
    branches = np.arange(1, 21)
    for parents in ([-1, *[0] * 400], [-1, *[0] * 20, *np.repeat(branches, 20)]):
        tree = cg.Tree.from_parents(parents)
        resolved = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
        cg.condition(cg.Additive(noise(scale), tree), resolved).sample(tree.roll_up(leaves))
    assert len(filled_so_far) == 2


def test_classes_without_a_window_are_no_sums_to_choose_among():
    # like siblings without bounds are split without tables; wide tables leave no room for others
    many, branches, leaves = 400, 1000, 30
    parents = [-1, 0, 0, *[1] * many, *[2] * branches]
    first = len(parents) - branches
    parents += np.repeat(np.arange(first, first + branches), leaves).tolist()
    tree = cg.Tree.from_parents(parents)
    below = np.arange(len(tree)) >= first + branches
    lo = np.where(below, 0.0, -INF)
    lo[2] = 0.0
    x = tree.roll_up(np.full(len(tree.leaves), 30))
    resolved = cg.consistent(tree) & cg.exactly([0, 1]) & cg.bounds(lo, INF)
    mechanism = cg.Additive(cg.DiscreteLaplace(300.0), tree)
    assert cg.condition(mechanism, resolved).sample(x, rng=cg.seeded(1))[below].min() >= 0


def test_unmeasured_leaves_beside_narrow_noise_are_certified():
    # a table is a peak of some entries far within its window, whose ends all lost more than they
    # have; this was refused after twelve fillings
    rng = np.random.default_rng(5)
    tree = cg.Tree.from_parents([-1, *[0] * 7, *(1 + np.arange(210) % 7)])
    leaves = np.floor(200.0 ** rng.random(210)).astype(int) * (rng.random(210) < 0.7)
    scales = 10.0 ** rng.uniform(-1, 0, len(tree))
    scales[rng.random(len(tree)) < 0.15] = np.inf
    invariant = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    conditioned = cg.condition(cg.Additive(cg.DiscreteLaplace(scales), tree), invariant)
    assert np.isfinite(conditioned.log_normalizer(tree.roll_up(leaves)))


@pytest.mark.parametrize("huge", [1e285, np.inf, np.nan])
@pytest.mark.parametrize("swapped", [False, True])
def test_losses_whose_products_overflow_bound_nothing_and_warn_of_nothing(huge, swapped):
    a, lost = np.ones(3000), np.full(3000, 1e-20)
    lost_huge = lost.copy()
    lost_huge[7] = huge
    first, second = (lost_huge, lost) if swapped else (lost, lost_huge)
    assert np.isinf(cross_wide(a, a, first, second, 0, 5000)).all()
    assert np.isfinite(cross_wide(a, a, lost, lost, 0, 5000)).all()
