"""A `DirichletTree` prior fitted from noisy measurements alone (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from congenial.domain.tree import Tree
from congenial.imaging.part_values import PartValues
from congenial.inference.splits.categories import (
    categories_of,
    keep_shapes,
    number_of_categories,
)
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.messages import Evidence, Laws, split_law
from congenial.inference.splits.sample import MANY, sample
from congenial.inference.splits.tree_pieces import (
    CENTER,
    LEAST_ALPHA,
    TOP,
    Pieces,
    View,
    prior_of,
)
from congenial.types import FloatArray, IntArray

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
# Least deviation of log alpha over the families of a level.
_LEAST_SPREAD = 0.05
# Rounds of Newton steps for families, the step by which curvatures are measured, in nats, and the
# least curvature.
_ROUNDS, _STEP, _LEAST_CURVE = 3, 0.3, 1e-3
# Kinds of values that are kept of each piece: alpha of a typical family, of each family, and of
# each a step away; the log of each family's factor, its slope, and its curvature.
_TYPICAL, ALPHA, _NEARBY = "typical", "alpha", "nearby"
_OWN, _SLOPE, _CURVE = "own", "slope", "curve"


@dataclass(frozen=True, eq=False)
class LevelSplits:
    """How counts are split, one number for each level."""

    # shape (levels,): Mean alpha over the children of a typical family; that of roots is not used.
    alpha: FloatArray
    # shape (levels,): Standard deviation of log alpha over families.
    spread: FloatArray


def fit_splits(evidence: Evidence) -> LevelSplits:
    """Return the splits of largest likelihood of a whole tree, see `fit_pieces`."""
    return fit_pieces(whole(evidence))


def fit_pieces(pieces: Pieces) -> LevelSplits:
    """Return the splits of largest likelihood; `pieces` has approximate counts as `CENTER`.

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
    keep_shapes(pieces)
    small, shape, level = sample(pieces)
    alpha = _maximise(small, shape, level)
    families = np.bincount(level[~small.tree.is_leaf] + 1, minlength=alpha.size)
    start = np.where(families >= MANY, 1.0, 0.0)
    own, spread = _fit_families(small, shape * alpha[level], level, start)
    inner = np.flatnonzero(~small.tree.is_leaf)
    middle = np.bincount(level[inner] + 1, own[inner], alpha.size) / np.maximum(families, 1)
    return LevelSplits(alpha * np.exp(middle), spread)


def splits_at(evidence: Evidence, found: LevelSplits) -> tuple[DirichletTree, FloatArray]:
    """Return the prior of every node, given its level's splits, and approximate counts, shape (n,).

    The counts are the means under the last prior but one.
    """
    pieces = whole(evidence)
    place_splits(pieces, found)
    return prior_at(pieces, TOP), pieces.values(CENTER, TOP)


def whole(evidence: Evidence) -> Pieces:
    """Return a whole tree as a top without parts, with approximate counts."""

    def none(number: int) -> Evidence:
        raise AssertionError(f"a whole tree has no part {number}")

    categories = number_of_categories([categories_of(evidence.tree)])
    no_roots = np.zeros(0, dtype=np.int64)
    pieces = Pieces.of(evidence, no_roots, none, PartValues(Path()), categories)
    pieces.keep(CENTER, TOP, evidence.estimate())
    return pieces


def place_splits(pieces: Pieces, found: LevelSplits) -> None:
    """Work out the prior of each piece, given its level's splits.

    Newton steps, with the curvatures at the start, go to the mode under a normal law of the log
    factors by which families differ from their level. Approximate counts, `CENTER`, are needed, and
    are moved with the prior.
    """
    keep_shapes(pieces)
    _keep_typical(pieces, TOP, found)
    pieces.run("beginning with", _keep_typical, dict.fromkeys(pieces.numbers[1:], (found,)))
    if not (found.spread[1:] > 0.0).any():
        return
    pieces.laws(ALPHA, _NATS, _Slopes(found.spread))
    pieces.laws(_NEARBY, _NATS, _FirstStep(found.spread))
    for _ in range(_ROUNDS - 1):
        pieces.laws(ALPHA, _NATS, _NextStep(found.spread))


def prior_at(pieces: Pieces, number: int) -> DirichletTree:
    """Return the prior of a piece, after `place_splits`."""
    return prior_of(pieces.values(ALPHA, number))


def _keep_typical(view: View, number: int, found: LevelSplits) -> None:
    """Keep the prior of a piece whose families are all typical."""
    level = view.level(number, view.evidence(number))
    alpha = view.shape(number) * found.alpha[level]
    nearby = np.where(found.spread[level] > 0.0, alpha * np.exp(_STEP), alpha)
    own = np.zeros(alpha.size)
    for kind, values in ((_TYPICAL, alpha), (ALPHA, alpha), (_NEARBY, nearby), (_OWN, own)):
        view.keep(kind, number, values)


@dataclass(frozen=True, eq=False)
class _Slopes:
    """Keeps the slopes of a piece's families, and the means of its counts."""

    spread: FloatArray
    of = ALPHA  # Where slopes are taken.

    def __call__(self, view: View, number: int, law: Laws, known: Evidence) -> None:
        view.keep(_SLOPE, number, self.found(view, number, law, known)[1])

    def found(
        self, view: View, number: int, law: Laws, known: Evidence
    ) -> tuple[_Families, FloatArray]:
        """Return the families of a piece, and their slopes."""
        families = _Families.of(known.tree, view.level(number, known), self.spread)
        view.keep(CENTER, number, law.mean)
        return families, families.slopes(view.values(self.of, number), law)

    def step(
        self, view: View, number: int, families: _Families, by: FloatArray, curve: FloatArray
    ) -> None:
        """Move the factors of a piece's families by a Newton step."""
        own = families.stepped(view.values(_OWN, number), by, curve, self.spread**2)
        view.keep(_OWN, number, own)
        typical = view.values(_TYPICAL, number)
        view.keep(ALPHA, number, _in_families(families.tree, typical, own))


class _FirstStep(_Slopes):
    """Keeps curvatures, by slopes a step away, and takes the first step."""

    of = _NEARBY

    def __call__(self, view: View, number: int, law: Laws, known: Evidence) -> None:
        families, near = self.found(view, number, law, known)
        by = view.values(_SLOPE, number)
        curve = _curves(by, near)
        view.keep(_CURVE, number, curve)
        self.step(view, number, families, by, curve)


class _NextStep(_Slopes):
    """Takes another step."""

    def __call__(self, view: View, number: int, law: Laws, known: Evidence) -> None:
        families, by = self.found(view, number, law, known)
        self.step(view, number, families, by, view.values(_CURVE, number))


def _in_families(tree: Tree, alpha: FloatArray, own: FloatArray) -> FloatArray:
    """Return alpha times the factor of each node's family, whose logarithm is `own`."""
    above = np.maximum(tree.parents, 0)
    return np.where(tree.parents >= 0, alpha * np.exp(own[above]), alpha)


@dataclass(frozen=True, eq=False)
class _Families:
    """The families of a tree, or of a piece, that differ in alpha from others of their level."""

    tree: Tree
    nodes: IntArray  # The parents of the families.
    level: IntArray  # The level of their children.

    @classmethod
    def of(cls, tree: Tree, level: IntArray, spread: FloatArray) -> _Families:
        varies = spread[np.minimum(level + 1, spread.size - 1)] > 0.0
        nodes = np.flatnonzero(~tree.is_leaf & varies)
        return cls(tree, nodes, level[nodes] + 1)

    def slopes(self, at: FloatArray, law: Laws) -> FloatArray:
        """Derivatives of the log evidence with respect to the families' log factors."""
        child = np.flatnonzero(self.tree.parents >= 0)
        above = self.tree.parents[child]
        by = at[child] * (law.rises[child, 0] - law.rises[above, 1])
        found = np.bincount(above, by, len(self.tree))
        return np.asarray(found[self.nodes], dtype=np.float64)

    def room(self, curve: FloatArray, variance: FloatArray) -> FloatArray:
        """Return the variance of each factor, given that of its level."""
        return np.asarray(1.0 / (curve + 1.0 / variance[self.level]))

    def stepped(
        self, own: FloatArray, by: FloatArray, curve: FloatArray, variance: FloatArray
    ) -> FloatArray:
        """Return the log factors, shape (n,), after a Newton step."""
        out = own.copy()
        step = (by - own[self.nodes] / variance[self.level]) * self.room(curve, variance)
        out[self.nodes] += np.clip(step, -_LONGEST, _LONGEST)
        return out


def _curves(by: FloatArray, near: FloatArray) -> FloatArray:
    """Return curvatures, from the slopes here and a step away."""
    return np.maximum((by - near) / _STEP, _LEAST_CURVE)


def _fit_families(
    evidence: Evidence, alpha: FloatArray, level: IntArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the log factor of each family's alpha, and each level's spread.

    As `place_splits`, but positive spreads are estimated from the same gradients.
    """
    own, center, size = np.zeros(alpha.size), evidence.estimate(), spread.size
    families = _Families.of(evidence.tree, level, spread)
    if not families.nodes.size:
        return own, spread
    below = families.level
    count = np.maximum(np.bincount(below, minlength=size), 1)

    def slopes(at: FloatArray) -> FloatArray:
        nonlocal center
        found = split_law(evidence, prior_of(at), center, _NATS).laws(kept=False)
        center = found.mean
        return families.slopes(at, found)

    def estimated(squares: FloatArray) -> FloatArray:
        return np.where(spread > 0.0, np.maximum(squares, _LEAST_SPREAD**2), 0.0)

    by = slopes(alpha)
    curve = _curves(by, slopes(np.where(spread[level] > 0.0, alpha * np.exp(_STEP), alpha)))
    # the variance of gradients in excess of their own curvature
    excess = np.bincount(below, by**2 - curve, size)
    variance = estimated(excess / np.bincount(below, curve**2, size).clip(1e-9))
    for done in range(_ROUNDS):
        room = families.room(curve, variance)
        own = families.stepped(own, by, curve, variance)
        if done == _ROUNDS - 1:
            break
        variance = estimated(np.bincount(below, own[families.nodes] ** 2 + room, size) / count)
        by = slopes(_in_families(evidence.tree, alpha, own))
    return own, np.sqrt(variance)


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
        alpha = np.maximum(shape * np.exp(at)[level], LEAST_ALPHA)
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
