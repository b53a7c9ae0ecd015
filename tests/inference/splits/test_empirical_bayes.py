"""Fitted splits: the evidence they reach, and that they find what counts were made with."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import congenial as cg
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.inference.splits import empirical_bayes as module
from congenial.inference.splits import sample as samples
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.empirical_bayes import fit_splits, splits_at
from congenial.inference.splits.messages import split_law, verified_law
from support.seeds import for_each_seed

CELLS = 4


def made(seed, *, groups, blocks, alpha, shares=None, scale=4.0, cells="abcd"):
    """Counts split by known laws below one root, and their noisy measurements."""
    rng = np.random.default_rng(seed)
    parents, labels, counts = [-1], ["all"], [40 * groups * blocks]

    def split(node, number, size, names):
        share = rng.dirichlet(size)
        for name, k in zip(names, rng.multinomial(counts[node], share), strict=True):
            parents.append(node)
            labels.append(name)
            counts.append(int(k))
        return range(len(parents) - number, len(parents))

    for g in split(0, groups, np.full(groups, alpha[0]), map(str, range(groups))):
        for b in split(g, blocks, np.full(blocks, alpha[1]), map(str, range(blocks))):
            if shares is not None:
                split(b, CELLS, alpha[2] * np.array(shares), cells)
    tree = cg.Tree.from_parents(parents, labels)
    mechanism = cg.Additive(cg.DiscreteLaplace(scale), tree)
    x = np.array(counts)
    return tree, x, mechanism, mechanism.sample(x, rng=cg.seeded(seed))


def test_alpha_of_each_level_is_found():
    tree, _, mechanism, y = made(1, groups=60, blocks=30, alpha=(5.0, 0.6))
    law = cg.posterior(y, mechanism, cg.consistent(tree), "dirichlet-tree")
    found = [law.prior.alpha[tree.level == level][0] for level in (1, 2)]
    # some 60 and 1,800 splits tell their logarithms within a quarter and a twentieth
    assert np.log(found[0] / 5.0) == pytest.approx(0.0, abs=1.0)
    assert np.log(found[1] / 0.6) == pytest.approx(0.0, abs=0.25)


def test_categories_share_strength_and_one_alpha():
    shares = [0.7, 0.2, 0.08, 0.02]
    tree, x, mechanism, y = made(
        2, groups=40, blocks=20, alpha=(5.0, 0.6, 8.0), shares=shares, scale=6.0
    )
    law = cg.posterior(y, mechanism, cg.consistent(tree), "dirichlet-tree")
    cells = np.flatnonzero(tree.level == 3)
    alpha = law.prior.alpha[cells].reshape(-1, CELLS)
    np.testing.assert_allclose(alpha.mean(axis=0) / alpha.sum(axis=1).mean(), shares, atol=0.05)
    assert np.log(alpha.sum(axis=1).mean() / 8.0) == pytest.approx(0.0, abs=0.4)
    alike = cg.Tree.from_parents(tree.parents)  # without labels nobody knows of categories
    flat = cg.posterior(
        y, cg.Additive(cg.DiscreteLaplace(6.0), alike), cg.consistent(alike), "dirichlet-tree"
    )
    assert law.log_evidence() > flat.log_evidence() + 50.0
    errors = [np.abs(found.median() - x)[cells].mean() for found in (law, flat)]
    assert errors[0] < 0.85 * errors[1]


def test_no_other_alpha_of_a_level_is_much_likelier():
    tree, _, mechanism, y = made(3, groups=25, blocks=12, alpha=(2.0, 0.4))
    law = cg.posterior(y, mechanism, cg.consistent(tree), "dirichlet-tree")
    best = law.log_evidence()
    for level in (1, 2):
        for by in (0.5, 0.8, 1.25, 2.0):
            alpha = np.where(tree.level == level, by, 1.0) * law.prior.alpha
            other = cg.posterior(
                y, mechanism, cg.consistent(tree), cg.inference.DirichletTree(alpha)
            )
            # the prior of log alpha has a deviation of 3: it costs these little
            assert other.log_evidence() < best + 0.3


def test_a_sample_of_a_large_tree_gives_nearly_the_same_fit(monkeypatch):
    tree, _, mechanism, y = made(4, groups=60, blocks=40, alpha=(5.0, 0.6))
    known = evidence_of(pose(y, mechanism, cg.consistent(tree), nonnegative_leaves=True))
    whole = splits_at(known, fit_splits(known))[0].alpha
    monkeypatch.setattr(samples, "_NODES", 900)
    monkeypatch.setattr(samples, "_MOST_NODES", 900)
    part = splits_at(known, fit_splits(known))[0].alpha
    for level, off in ((1, 0.05), (2, 0.4)):
        at = int(np.flatnonzero(tree.level == level)[0])
        assert np.log(part[at] / whole[at]) == pytest.approx(0.0, abs=off)


@for_each_seed(150)
def test_longer_messages_hardly_change_a_fit(seed):
    rng = np.random.default_rng(seed)
    sizes = {"groups": int(rng.integers(2, 12)), "blocks": int(rng.integers(2, 15))}
    alpha = 10.0 ** rng.uniform(-0.5, 1.5), 10.0 ** rng.uniform(-0.7, 1.0)
    tree, _, mechanism, y = made(seed, **sizes, alpha=alpha, scale=10.0 ** rng.uniform(0.0, 1.4))
    known = evidence_of(pose(y, mechanism, cg.consistent(tree), nonnegative_leaves=True))
    found = fit_splits(known).alpha
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NATS", 20.0)
        longer = fit_splits(known).alpha
        patch.setattr(module, "_NATS", 3.0)
        shorter = fit_splits(known).alpha
    # the fit's own steps end within some 0.1 of the mode
    np.testing.assert_allclose(np.log(found), np.log(longer), rtol=0.0, atol=1e-3)
    assert np.abs(np.log(shorter / longer)).max() > 0.0


def shortest(chances, alpha=0.1):
    """The shortest interval of probability 1 - alpha, from probabilities of 0, 1, ..."""
    total = np.append(0.0, np.cumsum(chances))
    last = np.searchsorted(total, total + (1.0 - alpha - 1e-12) * total[-1]) - 1
    first = np.arange(total.size)
    size = np.where(last < chances.size, last - first, chances.size)
    return int(np.argmin(size)), int(last[np.argmin(size)])


def test_a_mixture_over_the_alphas_of_levels_hardly_changes_the_intervals():
    """Decision 0020: alpha of a level of few families is taken as known.

    The mixture weighs 3 values of each level's log alpha by the evidence: its mode, and 1.73
    deviations to either side.
    """
    step, lengths, held, deviations = 0.3, [], [], []
    for seed in range(6):
        tree, x, mechanism, y = made(20 + seed, groups=6, blocks=40, alpha=(2.0, 0.4), scale=8.0)
        known = evidence_of(pose(y, mechanism, cg.consistent(tree), nonnegative_leaves=True))
        fitted, level = fit_splits(known), tree.level
        start = np.log(fitted.alpha)

        def log_density(at, known=known, level=level):
            prior = DirichletTree(np.exp(at)[level])
            law = split_law(known, prior, known.estimate(), 20.0)
            return law.log_total - float((at**2).sum()) / 2.0

        mode, axes = log_density(start), np.eye(start.size)
        bent = [
            (2.0 * mode - log_density(start + step * e) - log_density(start - step * e)) / step**2
            for e in axes
        ]
        deviation = 1.0 / np.sqrt(np.maximum(bent, 1.0))
        deviations.append(deviation[1])
        points, weights = [], []
        for signs in product((-1, 0, 1), repeat=start.size - 1):
            at = start + np.append(0.0, signs) * np.sqrt(3.0) * deviation
            # Gauss and Hermite's weights, over the normal density that they are for
            own = sum(np.log(1 / 6) + 1.5 if s else np.log(2 / 3) for s in signs)
            points.append(verified_law(known, DirichletTree(np.exp(at)[level])))
            weights.append(own + log_density(at) - mode)
        weights = np.exp(np.array(weights) - max(weights))
        assert 0.1 < (weights / weights.sum()).max() < 0.9  # not one point alone
        middle = len(points) // 2
        for v in range(1, len(tree)):
            mixed = np.zeros(int(y.max()) + 1000)
            for weight, law in zip(weights, points, strict=True):
                values, chances = law.marginal(v)
                mixed[values] += weight * chances
            values, chances = points[middle].marginal(v)
            alone = np.zeros(mixed.size)
            alone[values] = chances
            ends = [shortest(law) for law in (alone, mixed)]
            lengths.append([last - first for first, last in ends])
            held.append([first <= x[v] <= last for first, last in ends])
    assert np.mean(deviations) > 0.2  # of the level of one family, which is known least
    short, long = np.mean(lengths, axis=0)
    assert abs(long / short - 1.0) < 0.01
    assert abs(np.diff(np.mean(held, axis=0))[0]) < 0.01
