"""A `DirichletTree` prior fitted from noisy measurements alone (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.domain.tree import Tree
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.messages import Evidence, split_law
from congenial.kernels.numerics import laws
from congenial.types import FloatArray, IntArray

# Nodes of a tree that is fitted whole; of larger ones parts with about as many nodes are, or with
# more nodes where they are few.
_NODES, _MOST_NODES = 12_000, 80_000
# Concentrations that a level may have, and where the search begins: one alpha a child.
_LOWEST, _HIGHEST = 1e-3, 1e5
# Steps of the search, the longest one, in nats, and the gain in log evidence that ends it.
_STEPS, _LONGEST, _GAIN = 12, 1.5, 0.02
# First step, and the least curvature that a step is judged by.
_FIRST, _FLAT = 0.7, 1e-9
# Standard deviation of the logarithm of an alpha before anything is measured: a split of few counts
# tells little of it, and a wider law would make small tables too uneven or too even.
_SPREAD = 1.0
# Nats below its largest weight where a message is cut off: a fit needs no more.
_NATS = 20.0
# Families of a level from which on they differ in their alpha, the least spread of its logarithm,
# and of families the rounds of steps, the step that tells a curvature, and the least curvature.
_MANY, _LEAST_SPREAD = 30, 0.05
# Parts of a large tree, so that the levels below them have families that tell how they differ.
_PARTS = 2 * _MANY
_ROUNDS, _STEP, _LEAST_CURVE = 3, 0.3, 1e-3
# Least expected share of a category.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, eq=False)
class LevelSplits:
    """How counts are split, a number a level."""

    # shape (levels,): Of each node of a level within its parent's split, on average over a family,
    # in a typical family; that of the roots is not read.
    alpha: FloatArray
    # shape (levels,): Standard deviation of the logarithm of alpha from family to family.
    spread: FloatArray


def fit_splits(evidence: Evidence) -> LevelSplits:
    """Return the splits under which the measurements are likeliest.

    Where every family of the leaves' level has the same categories, as cells of a table by block
    have, the expected shares of a family are those of its parent's parent, estimated down the tree,
    and one number says how much a family differs. The log evidence is maximised, by its exact
    gradient, over the whole tree or, where that is large, over its top and an even choice of parts.
    Levels of many families then have a law of their families' alpha, normal in its logarithm.

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
    """Return the prior of every node, given the numbers of its level, and about the counts' means.

    The means are those under the last prior but one, shape (n,).
    """
    level = evidence.tree.level
    alpha = _shape(evidence) * found.alpha[level]
    own, _, center = _families(evidence, alpha, level, found.spread, fit=False)
    at = _in_families(evidence.tree, alpha, own)
    return DirichletTree(np.maximum(at, _LOWEST**2)), center


def _in_families(tree: Tree, alpha: FloatArray, own: FloatArray) -> FloatArray:
    """Return the alpha of nodes whose families differ by the log factors given."""
    above = np.maximum(tree.parents, 0)
    return np.where(tree.parents >= 0, alpha * np.exp(own[above]), alpha)


def _families(
    evidence: Evidence, alpha: FloatArray, level: IntArray, spread: FloatArray, *, fit: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log factor of each family's alpha, each level's spread, and about the means.

    Newton steps to the mode under a normal law of the factors, by curvatures at the start. Where
    `fit`, the spreads of levels that have one are found from the same gradients.
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
        """Derivatives of the log evidence by the families' factors."""
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
        # the variance of gradients beyond that of the evidence itself
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
    """Return what alpha of each level is in units of `shape`: the mode of its log evidence."""
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
        # a secant of each level by itself, no longer than the last step and a half
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
    """Return the nodes that a fit looks at: all, or the top and an even choice of parts below."""
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
    return np.flatnonzero(taken | (tree.level < cut) | (tree.level == cut))


def _shape(evidence: Evidence) -> FloatArray:
    """Return alpha of each node up to a factor of its level: 1, or a category's expected share."""
    tree = evidence.tree
    out = np.ones(len(tree))
    size = _categories(tree)
    if size == 0:
        return out
    leaf = tree.leaves
    families = np.unique(tree.parents[leaf])
    starts, children = tree.children
    cells = children[starts[families][:, None] + np.arange(size)]
    out[cells] = _shares(evidence, families, cells) * size
    return out


def _categories(tree: Tree) -> int:
    """Return how many categories every family of leaves has, and 0 where they are not the same."""
    if not tree.labels:
        return 0
    leaf = np.flatnonzero(tree.level == tree.depth - 1)
    starts, children = tree.children
    families = np.unique(tree.parents[leaf])
    counts = (starts[1:] - starts[:-1])[families]
    size = int(counts[0])
    if leaf.size != tree.leaves.size or families.size < 2 or size < 2 or (counts != size).any():
        return 0
    first = [tree.labels[c] for c in children[starts[families[0]] : starts[families[0]] + size]]
    number = {label: i for i, label in enumerate(first)}
    if len(number) < size:
        return 0
    for f in families.tolist():
        for i, c in enumerate(children[starts[f] : starts[f] + size].tolist()):
            if tree.labels[c] != first[i]:
                return 0
    return size


def _shares(evidence: Evidence, families: IntArray, cells: IntArray) -> FloatArray:
    """Return the expected shares of categories in each family: those of its parent, shrunk.

    Measured cells are added up to every node above them. From the roots down, a node's shares are
    its parent's, moved towards its own sums as far as nodes of that level differ from their parents
    by more than noise does (Morris 1983).
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
