"""Tails of laws between two extremes: with the lower bounds of all leaves, and without them.

`congenial.inference.inversion` shows that all laws between these have tails between theirs.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import NumericalError, UnsupportedError
from congenial.kernels.network import marginals as kernels
from congenial.kernels.network import supported
from congenial.kernels.network.messages import MERGE, PRODUCT
from congenial.kernels.network.records import Near, TiltedWeights
from congenial.sum_network.forest import SumForest, of_tree
from congenial.sum_network.marginals import OneSided, one_sided
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.tables import Tables
from congenial.sum_network.truncation import Messages
from congenial.sum_network.weights import SharedUnary
from congenial.sum_network.windows import place_classes, tilts, windows
from congenial.types import BoolArray, FloatArray, IntArray

# Windows: the mass that they truncate, their first width as a factor, the factor by which all are
# widened once, the factor for windows around ends that moved, and the most rounds.
_CUT, _FIRST, _WIDER, _FARTHER, _TIMES = 1e-12, 1.5, 1.2, 2.0, 12
# Tolerances: the move of an end relative to the law's spread, the same if a smaller move costs too
# much, and the probability of the end of a window.
_STILL, _HARDLY, _EDGE = 1e-8, 1e-5, 1e-12
# Limits: entries of each of the two tables, and products of both.
_MEMORY_LIMIT, _WORK_LIMIT = 1 << 26, 1 << 35
# Width from which a window counts as unbounded.
_ENDLESS = 1 << 45
# Smallest tail probability that is computed.
LEAST_TAIL = 2.0 * kernels.TIE


def extreme_tails(tree: Tree, weights: SharedUnary, tails: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the ends of the noise of every node, (n, tails) each, for tails of each probability.

    The lower ends belong to the smallest law and the upper ends to the largest law between two
    extremes: the law of `weights`, and the law without lower bounds. Laws between them keep all
    lower bounds below a node, or none.

    All windows are widened once, and windows on whose ends a law has weight by a larger factor, if
    that is affordable. Then windows around laws that moved are widened until no law moves. If that
    costs too much, windows on which the laws hardly moved are accepted.

    Raises UnsupportedError if tables would be too large, NumericalError if the laws need wider
    windows than are tried.
    """
    laws_of = _Laws(of_tree(tree), weights)
    generous = np.full(laws_of.cut.ctype.size, _FIRST)
    before: tuple[OneSided, OneSided] | None = None
    settled, spent = None, 0.0
    for done in range(_TIMES):
        try:
            messages = _Messages(laws_of, generous)
        except UnsupportedError:
            if settled is not None:
                break
            if done != 1:
                raise
            generous = np.full(generous.size, _FIRST * _WIDER)
            messages = _Messages(laws_of, generous)
        spent += messages.work
        found = messages.extremes(tree.is_leaf, tails)
        if before is None:
            # a law on one value does not reach beyond it
            reaching = np.maximum(found[0].edge, found[1].edge) > _EDGE
            reaching &= np.maximum(found[0].variance, found[1].variance) > 0.0
            generous *= _WIDER
            generous[laws_of.around(tree, reaching)] *= _FARTHER
        else:
            moved = _moved(before, found, _STILL)
            hardly = not _moved(before, found, _HARDLY).any()
            # an end that has moved again has not converged
            settled = (found[0].below, found[1].above) if hardly else None
            if settled is not None and not moved.any():
                return settled
            generous[laws_of.around(tree, moved)] *= _FARTHER
        if spent > _WORK_LIMIT:
            break
        before = found
    if settled is not None:
        return settled
    raise NumericalError(
        "the intervals need wider tables than are tried; use less noise, or fewer leaves near "
        "their bounds."
    )


def _moved(
    before: tuple[OneSided, OneSided], found: tuple[OneSided, OneSided], share: float
) -> BoolArray:
    """Return the nodes where an end moved, or the mean or variance by more than `share`.

    Ends are integers, so they may stay although a law still lacks some of its weight.
    """
    moved = np.zeros(found[0].mean.size, dtype=np.bool_)
    for one, other in zip(before, found, strict=True):
        moved |= (other.below != one.below).any(axis=1) | (other.above != one.above).any(axis=1)
        moved |= np.abs(other.mean - one.mean) > share * (1.0 + np.sqrt(other.variance))
        moved |= np.abs(other.variance - one.variance) > share * (1.0 + other.variance)
    return moved


class _Laws:
    """Networks of the noise with its lower bounds, and without them; their classes are equal."""

    def __init__(self, forest: SumForest, weights: SharedUnary) -> None:
        self.cut = compile_network(forest, weights, tilts(forest, weights))
        unary = self.cut.unary
        open_below = np.where(unary.lo == unary.hi, unary.lo, -np.inf)
        tilt = np.zeros_like(self.cut.tilt)
        free = replace(self.cut, unary=replace(unary, lo=open_below), tilt=tilt)
        self.places = [(one, place_classes(one)) for one in (self.cut, free)]

    def around(self, tree: Tree, nodes: BoolArray) -> BoolArray:
        """Return the classes of the parts of some nodes, and of their parents."""
        network, parents = self.cut, np.asarray(tree.parents)
        above = parents[nodes]
        tops = np.concatenate((np.flatnonzero(nodes), above[above >= 0]))
        reached = np.zeros(network.ctype.size, dtype=np.bool_)
        front = np.unique(network.slot_class[tops]).astype(np.int64)
        reached[front] = True
        # a node's own weight and the sum below it; then its parts, down to the next nodes
        front = _parts(network, front[network.ctype[front] == PRODUCT])
        while front.size:
            reached[front] = True
            front = _parts(network, front[network.ctype[front] == MERGE])
        return reached


def _parts(network: Network, classes: IntArray) -> IntArray:
    both = np.concatenate((network.left[classes], network.right[classes]))
    return np.unique(both).astype(np.int64)


class _Messages:
    """Messages of both networks, on the same windows."""

    def __init__(self, laws_of: _Laws, generous: FloatArray) -> None:
        (cut, _), (free, _) = laws_of.places
        (lo, hi), (low, high) = (
            windows(one, place, cut=_CUT, generous=generous) for one, place in laws_of.places
        )
        used = lo <= hi
        self.lo = np.where(used, np.minimum(lo, low), lo)
        self.hi = np.where(used, np.maximum(hi, high), hi)
        width = np.maximum(self.hi - self.lo + 1, 0)
        self.work = float(cut.products(width.astype(np.float64)).sum())
        if width.max(initial=0) > _ENDLESS:
            raise UnsupportedError(
                "a count that is not measured may have any value without its bound; measure all "
                "but one of the parts of every sum."
            )
        if width.sum() > _MEMORY_LIMIT or self.work > _WORK_LIMIT:
            raise UnsupportedError(
                f"the intervals need {2 * float(width.sum()) * 8 / 2**30:.1f} GiB of tables and "
                f"{self.work:.0g} products, and the limits are {2 * _MEMORY_LIMIT * 8 / 2**30:.1f} "
                f"GiB and {_WORK_LIMIT:.0g}; use less noise, or fewer leaves near their bounds."
            )
        self.lost = np.zeros(width.size)
        self.cut, self.free = self._filled(cut), self._filled(free)

    def _filled(self, network: Network) -> Tables:
        v = np.maximum(network.variable, 0)
        unary = network.unary.at(v)
        least = np.maximum(unary.lo, -(2.0**60)).astype(np.int64)
        most = np.minimum(unary.hi, 2.0**60).astype(np.int64)
        filled = Messages.empty(self.lo, self.hi)
        filled.table[:] = 0.0
        # tilts only place windows; without them neither message underflows where both meet
        law = TiltedWeights(unary.kind, unary.inverse, unary.center, np.zeros(v.size))
        lost = np.zeros(v.size)
        supported.fill(network.classes, law, least, most, filled.windows, filled.table, lost)
        np.maximum(self.lost, lost, out=self.lost)
        return Tables(**vars(filled), network=network, near=Near(*np.empty((3, 0))), error=0.0)

    def extremes(self, is_leaf: BoolArray, tails: FloatArray) -> tuple[OneSided, OneSided]:
        """Return the tails of the smallest and of the largest law of each node's noise."""
        found = []
        for one, other in ((self.cut, self.free), (self.free, self.cut)):
            found.append(one_sided(one, other.table, self.lost, is_leaf, tails))
            # the lost mass is below the margin kept around tails
            if not (found[-1].lost < 0.5 * kernels.TIE).all():
                raise NumericalError(
                    "the distributions of the noise are too far apart to be compared; use less "
                    "noise."
                )
        return found[0], found[1]
