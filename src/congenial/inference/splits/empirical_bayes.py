"""A `DirichletTree` prior fitted from noisy measurements alone (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.domain.tree import Tree
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.messages import Evidence, split_law
from congenial.kernels.numerics import laws
from congenial.types import FloatArray, IntArray

# Most nodes of a tree that is fitted whole, and the number of nodes of the parts of a larger tree
# that are fitted; the second number is the limit if parts are few.
_NODES, _MOST_NODES = 12_000, 80_000
# Smallest and largest alpha of a level.
_LOWEST, _HIGHEST = 1e-3, 1e5
# Most steps of the search, the longest step in nats, and the gain in log evidence that ends it.
_STEPS, _LONGEST, _GAIN = 12, 1.5, 0.02
# First step in nats, and the least curvature by which a gradient is divided.
_FIRST, _FLAT = 0.7, 1e-9
# Prior standard deviation of log alpha: splits of few counts have little information about it, and
# a wider prior would make small tables too uneven or too even.
_SPREAD = 1.0
# Nats below its largest weight where a message is truncated. With 20 the log of a level's alpha
# changes by less than 1e-3, and messages are longer.
_NATS = 14.0
# Least number of families of a level that differ in alpha, and the least deviation of log alpha.
_MANY, _LEAST_SPREAD = 30, 0.05
# Least number of parts of a large tree, so that the levels below have enough families.
_PARTS = 2 * _MANY
# Rounds of Newton steps for families, the step by which curvatures are measured, in nats, and the
# least curvature.
_ROUNDS, _STEP, _LEAST_CURVE = 3, 0.3, 1e-3
# Least expected proportion of a category.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class LevelSplits:
    """How counts are split, one number for each level."""

    # shape (levels,): Mean alpha over the children of a typical family; that of roots is not used.
    alpha: FloatArray
    # shape (levels,): Standard deviation of log alpha over families.
    spread: FloatArray


def fit_splits(evidence: Evidence) -> LevelSplits:
    """Return the splits of largest likelihood.

    If all families of leaves have the same categories, such as cells of a table by block, the
    expected proportions of a family are those of its parent's parent, estimated down the tree. One
    number then says how much families differ from these. The log evidence is maximised by its exact
    gradient over the whole tree, or over the top and an even choice of parts if the tree is large.
    Levels of many families then get a log-normal law of their families' alpha.

    References
    ----------
    Robbins (1956) for empirical Bayes; Minka (2000), "Estimating a Dirichlet distribution"; Kass
    and Steffey (1989) for families' numbers by Laplace's method.
    """
    part = _chosen(evidence.tree)
    level = evidence.tree.level[part]
    shape = _shape(evidence)[part]
    small = evidence if part.size == len(evidence.tree) else evidence.part(part)
    alpha = _maximise(small, shape, level)
    families = np.bincount(level[~small.tree.is_leaf] + 1, minlength=alpha.size)
    start = np.where(families >= _MANY, 1.0, 0.0)
    own, spread, _ = _families(small, shape * alpha[level], level, start, fit=True)
    inner = np.flatnonzero(~small.tree.is_leaf)
    middle = np.bincount(level[inner] + 1, own[inner], alpha.size) / np.maximum(families, 1)
    return LevelSplits(alpha * np.exp(middle), spread)


def splits_at(evidence: Evidence, found: LevelSplits) -> tuple[DirichletTree, FloatArray]:
    """Return the prior of every node, given its level's splits, and approximate counts, shape (n,).

    The counts are the means under the last prior but one.
    """
    level = evidence.tree.level
    alpha = _shape(evidence) * found.alpha[level]
    own, _, center = _families(evidence, alpha, level, found.spread, fit=False)
    at = _in_families(evidence.tree, alpha, own)
    return DirichletTree(np.maximum(at, _LOWEST**2)), center


def _in_families(tree: Tree, alpha: FloatArray, own: FloatArray) -> FloatArray:
    """Return alpha times the factor of each node's family, whose logarithm is `own`."""
    above = np.maximum(tree.parents, 0)
    return np.where(tree.parents >= 0, alpha * np.exp(own[above]), alpha)


def _families(
    evidence: Evidence, alpha: FloatArray, level: IntArray, spread: FloatArray, *, fit: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log factor of each family's alpha, each level's spread, and approximate means.

    Newton steps, with the curvatures at the start, go to the mode under a normal law of the log
    factors. If `fit`, positive spreads are estimated from the same gradients.
    """
    tree = evidence.tree
    n, own, center = len(tree), np.zeros(len(tree)), evidence.estimate()
    varied = np.flatnonzero(~tree.is_leaf & (spread[np.minimum(level + 1, spread.size - 1)] > 0.0))
    if not varied.size:
        return own, spread, center
    below, size = level[varied] + 1, spread.size
    count = np.maximum(np.bincount(below, minlength=size), 1)
    child = np.flatnonzero(tree.parents >= 0)
    above = tree.parents[child]

    def slopes(at: FloatArray) -> FloatArray:
        """Derivatives of the log evidence with respect to the families' log factors."""
        nonlocal center
        law = split_law(evidence, DirichletTree(np.maximum(at, _LOWEST**2)), center, _NATS)
        found = law.laws(kept=False)
        center = found.mean
        by = at[child] * (found.rises[child, 0] - found.rises[above, 1])
        return np.asarray(np.bincount(above, by, n)[varied], dtype=np.float64)

    nearby = np.where(spread[level] > 0.0, alpha * np.exp(_STEP), alpha)
    by = slopes(alpha)
    curve = np.maximum((by - slopes(nearby)) / _STEP, _LEAST_CURVE)
    variance = spread**2
    if fit:
        # the variance of gradients in excess of their own curvature
        more = np.bincount(below, by**2 - curve, size) / np.bincount(below, curve**2, size).clip(
            1e-9
        )
        variance = np.where(spread > 0.0, np.maximum(more, _LEAST_SPREAD**2), 0.0)
    for done in range(_ROUNDS):
        room = 1.0 / (curve + 1.0 / variance[below])
        step = (by - own[varied] / variance[below]) * room
        own[varied] += np.clip(step, -_LONGEST, _LONGEST)
        if done == _ROUNDS - 1:
            break
        if fit:
            both = own[varied] ** 2 + room
            found = np.bincount(below, both, size) / count
            variance = np.where(spread > 0.0, np.maximum(found, _LEAST_SPREAD**2), 0.0)
        by = slopes(_in_families(tree, alpha, own))
    return own, np.sqrt(variance), center


def _maximise(evidence: Evidence, shape: FloatArray, level: IntArray) -> FloatArray:
    """Return the alpha of each level in units of `shape`, at the mode of the log evidence."""
    parents = evidence.tree.parents
    child = np.flatnonzero(parents >= 0)
    depth = int(level.max()) + 1
    count = np.bincount(level[child], minlength=depth)
    center = evidence.estimate()
    at = np.zeros(depth)
    step = np.full(depth, _FIRST)
    best, best_at, slope = -np.inf, at, np.zeros(depth)
    for _ in range(_STEPS):
        alpha = np.maximum(shape * np.exp(at)[level], _LOWEST**2)
        law = split_law(evidence, DirichletTree(alpha), center, _NATS)
        found = law.laws(kept=False)
        center = found.mean
        value = law.log_total - float((at**2).sum()) / (2.0 * _SPREAD**2)
        by = alpha[child] * (found.rises[child, 0] - found.rises[parents[child], 1])
        new = np.bincount(level[child], by, depth) - at / _SPREAD**2
        gain = float(np.abs(new * step).sum())
        if value > best:
            best, best_at = value, at
        # a secant step for each level by itself, at most 1.5 times as long as the last step
        curve = (slope - new) / np.where(step == 0.0, 1.0, step)
        longest = np.minimum(np.abs(step) * 1.5 + 0.05, _LONGEST)
        newton = np.abs(new) / np.where(curve > _FLAT, curve, _FLAT)
        to = np.sign(new) * np.minimum(newton if slope.any() else _FIRST, longest)
        to[count == 0] = 0.0
        bounded = np.clip(at + to, np.log(_LOWEST), np.log(_HIGHEST))
        step, slope = bounded - at, new
        at = bounded
        if gain < _GAIN or float(np.abs(new * step).sum()) < _GAIN:
            break
    return np.exp(best_at)


def _chosen(tree: Tree) -> IntArray:
    """Return the nodes that are fitted: all, or the top and an even choice of parts below it."""
    n = len(tree)
    if n <= _NODES:
        return np.arange(n)
    sizes = np.bincount(tree.level)
    fits = np.flatnonzero(np.cumsum(sizes) <= _NODES // 3)
    cut = int(fits[-1]) if fits.size else 0
    tops = np.flatnonzero(tree.level == cut)
    below = n / max(tops.size, 1)
    wanted = max(int((_NODES - np.cumsum(sizes)[cut]) / below), 1)
    wanted = max(wanted, min(_PARTS, int(_MOST_NODES / below)))
    taken = np.zeros(n, dtype=np.bool_)
    taken[tops[:: max(tops.size // wanted, 1)]] = True
    for depth in range(cut + 1, tree.depth):
        at = np.flatnonzero(tree.level == depth)
        taken[at] = taken[tree.parents[at]]
    return np.flatnonzero(taken | (tree.level <= cut))


def _shape(evidence: Evidence) -> FloatArray:
    """Return each node's alpha up to a factor of its level: 1, or its category's proportion."""
    out = np.ones(len(evidence.tree))
    cells = _categories(evidence.tree)
    if cells is not None:
        families = evidence.tree.parents[cells[:, 0]]
        out[cells] = _shares(evidence, families, cells) * cells.shape[1]
    return out


def _categories(tree: Tree) -> IntArray | None:
    """Return the leaves, shape (families, categories); None if categories differ."""
    leaf = np.flatnonzero(tree.level == tree.depth - 1)
    starts, children = tree.children
    families = np.unique(tree.parents[leaf])
    counts = np.diff(starts)[families]
    size = int(counts[0])
    alike = leaf.size == tree.leaves.size and families.size >= 2 and (counts == size).all()
    if not (tree.labels and alike and size >= 2):
        return None
    cells = children[starts[families][:, None] + np.arange(size)]
    first = [tree.labels[c] for c in cells[0]]
    same = all(tree.labels[c] == first[i % size] for i, c in enumerate(cells.ravel().tolist()))
    return cells if same and len(set(first)) == size else None


def _shares(evidence: Evidence, families: IntArray, cells: IntArray) -> FloatArray:
    """Return the expected proportions of categories in each family.

    Measured cells are added up to every node above them. From the roots down, a node's proportions
    are those of its parent, moved towards its own sums as far as the level's nodes differ from
    their parents in excess of noise (Morris 1983).
    """
    tree, size = evidence.tree, cells.shape[1]
    n = len(tree)
    known = evidence.kind[cells] != laws.FLAT
    noise = np.where(evidence.kind == laws.GAUSSIAN, 1.0, 2.0) * evidence.scale**2
    sums, variance = np.zeros((n, size)), np.zeros((n, size))
    sums[families] = np.where(known, evidence.y[cells], 0.0)
    variance[families] = np.where(known, noise[cells], 0.0)
    for depth in range(tree.depth - 2, 0, -1):
        at = np.flatnonzero(tree.level == depth)
        np.add.at(sums, tree.parents[at], sums[at])
        np.add.at(variance, tree.parents[at], variance[at])
    total = np.maximum(evidence.estimate(), 1.0)
    out = np.zeros((n, size))
    roots = np.flatnonzero(tree.parents < 0)
    out[roots] = np.maximum(sums[roots], 0.5)
    out[roots] /= out[roots].sum(axis=1, keepdims=True)
    for depth in range(1, tree.depth - 2):
        at = np.flatnonzero(tree.level == depth)
        above = out[tree.parents[at]]
        error = variance[at] / total[at, None] ** 2
        off = sums[at] / total[at, None] - above
        sure = 1.0 / np.maximum(error, 1e-300) ** 2
        room = above * (1.0 - above)
        differ = ((off**2 - error) * sure).sum() / max(float((room * sure).sum()), 1e-300)
        own = max(float(differ), 1e-6) * room
        out[at] = np.maximum(above + own / (own + error) * off, _LEAST_SHARE)
        out[at] /= out[at].sum(axis=1, keepdims=True)
    of = tree.parents[families]
    return np.where((of >= 0)[:, None], out[np.maximum(of, 0)], 1.0 / size)
