"""Intervals of counts behind a release under lower bounds, proved for every dataset.

The noise e of a release that was conditioned on lower bounds of leaves has the law of tree noise
given that no leaf's noise is below c = bound - count. Its law at a node is monotone in each c:

    Let every noise law be log-concave. Then the law of the noise of node v grows, in the order of
    likelihood ratios, with c of each leaf below v, and falls with that of each other leaf.

Messages from below are products of log-concave laws and of sums of such, hence log-concave. Cutting
a leaf's law at a larger c makes it larger in that order; adding independent log-concave variables
and multiplying by the same function keep the order (Shanthikumar and Yao 1986; Karlin 1968), which
gives the first half. The message from outside of v is a sum over s of G(e + s) times the law of its
siblings' sum s, where G is log-concave: the larger s, the smaller e. So the second half.

So lower confidence bounds of the leaves' counts, which hold at once with probability 1 - beta, tell
a largest and a smallest law of each node's noise: cut at the bounds below it and nowhere else, and
the other way round. Their quantiles invert the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.network import marginals as kernels
from congenial.kernels.network import supported
from congenial.kernels.network.messages import MERGE, PRODUCT
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest, of_tree
from congenial.sum_network.moments import OneSided, checked_alpha, one_sided
from congenial.sum_network.network import Network, compile_network
from congenial.sum_network.tables import Tables
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.sum_network.windows import place_classes, tilts, windows
from congenial.types import BoolArray, FloatArray, IntArray

# Share of alpha that the bounds of the leaves' counts may miss.
_BOUNDS = 0.1
# Scales beyond which a larger count is of no use.
_FAR = 64.0
# What windows are placed for, how far beyond that they reach at first, how much farther to see
# whether that changes anything, and then around what it changes, and how often.
_CUT, _FIRST, _WIDER, _FARTHER, _TIMES = 1e-12, 1.5, 1.2, 2.0, 12
# Share of its spread that a law may move by, and by which where it costs too much to ask for that;
# and of its weight that an end of its window may have.
_STILL, _HARDLY, _EDGE = 1e-8, 1e-5, 1e-12
# Entries of each of two tables, and products of all.
_MEMORY_LIMIT, _WORK_LIMIT = 1 << 26, 1 << 35
# Windows as wide as this have no end.
_ENDLESS = 1 << 45


def inverted_intervals(
    mechanism: Conditioned, z: npt.ArrayLike, alpha: float = 0.1, *, together: int = 1
) -> tuple[IntArray, IntArray]:
    """Interval of every count behind a release, proved to hold whatever the counts are.

    Parameters
    ----------
    mechanism : Conditioned
        On a tree that adds up, with any exact counts and lower bounds of leaves.
    z : array_like of int, shape (n,)
        The release.
    alpha : float
        Between 0 and 1.
    together : int
        How many of the intervals are to hold at once; any so many do.

    Returns
    -------
    lower, upper : ndarray of int64, shape (n,)
        Each holds its count with probability 1 - alpha at least over releases, for every dataset.
        The more leaves may be near their bounds, the wider. Laws are computed on windows that are
        checked on wider ones, not proved to lose nothing.

    Raises
    ------
    ArgumentError
        If `z` is no release, alpha is not between 0 and 1, or `together` no number of nodes.
    UnsupportedError
        If it is another mechanism, if anything else is imposed, or if tables would be too large.
    NumericalError
        If the laws need wider windows than are tried.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> K = cg.condition(
    ...     cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree) & cg.nonnegative()
    ... )
    >>> lower, upper = inverted_intervals(K, [9, 9, 0])
    >>> lower.tolist(), upper.tolist()
    ([8, 8, 0], [10, 10, 1])
    """
    checked_alpha(alpha)
    if isinstance(together, bool) or not isinstance(together, int | np.integer) or together < 1:
        raise ArgumentError(f"together is {together!r}; give a number of nodes of at least 1.")
    resolved, _, bound = _checked(mechanism)
    value = _whole(z, bound.size)
    if not resolved.adds_up(value) or (value < bound).any():
        raise ArgumentError("z does not add up, or is below a bound; give what was released.")
    return invert(mechanism, z, alpha, [int(together)])[0]


def invert(
    mechanism: Conditioned, z: npt.ArrayLike, alpha: float, together: Sequence[int]
) -> list[tuple[IntArray, IntArray]]:
    """Return `inverted_intervals` for several numbers of nodes that are to hold at once."""
    resolved, tree, bound = _checked(mechanism)
    value = _whole(z, bound.size)
    # what the bounds of the leaves miss, they miss for all nodes at once
    tails = [0.5 * (1.0 - _BOUNDS) * alpha / count for count in together]
    if min(tails) < 2.0 * kernels.TIE:
        raise NumericalError(
            f"alpha {alpha:g} for {max(together)} nodes at once is beyond what laws are computed "
            "to; give a larger alpha, or fewer nodes."
        )
    weights = _weights(mechanism, resolved, _cuts(mechanism, value, bound, _BOUNDS * alpha))
    least = tree.roll_up(np.where(resolved.pinned, value, bound)[tree.leaves])
    low, high = _settled(_Laws(of_tree(tree), weights), tree, np.array(tails))
    lower = np.maximum((value[:, None] - high).astype(np.float64), least[:, None])
    upper = value[:, None] - low
    return list(zip(lower.astype(np.int64).T, upper.T, strict=True))


def _settled(laws_of: _Laws, tree: Tree, tails: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the lower and upper ends of every node's noise, (n, tails), on windows that do.

    All are made wider once, those much wider that nodes take part in whose laws reach the ends of
    theirs, unless that is too much; and then those of nodes whose laws have moved, until none does.
    Where that is too much, windows do on which laws hardly moved.
    """
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
            # what has moved since is not settled
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
    """Return of which nodes an end has moved, or by more than a share a mean or a variance.

    Ends are whole numbers, and need not tell that a law still lacks some of its weight.
    """
    moved = np.zeros(found[0].mean.size, dtype=np.bool_)
    for one, other in zip(before, found, strict=True):
        moved |= (other.below != one.below).any(axis=1) | (other.above != one.above).any(axis=1)
        moved |= np.abs(other.mean - one.mean) > share * (1.0 + np.sqrt(other.variance))
        moved |= np.abs(other.variance - one.variance) > share * (1.0 + other.variance)
    return moved


def _whole(z: npt.ArrayLike, n: int) -> IntArray:
    value = np.asarray(z)
    if value.shape != (n,) or value.dtype.kind not in "iu":
        raise ArgumentError(
            f"z has shape {value.shape} and dtype {value.dtype}; give {n} integers."
        )
    return value.astype(np.int64)


def _checked(mechanism: Conditioned) -> tuple[ResolvedInvariant, Tree, FloatArray]:
    """Return what is imposed, the tree, and the lower bound of every leaf, -inf elsewhere."""
    if not isinstance(mechanism, Conditioned):
        raise UnsupportedError(
            f"intervals by inversion are not for a {type(mechanism).__name__}; give what "
            "congenial.condition() makes of noise on the integers."
        )
    resolved = mechanism.resolved
    tree = resolved.tree
    if (
        tree is None
        or resolved.equalities[1].size
        or resolved.inequalities[1].size
        or resolved.relative.size
    ):
        raise UnsupportedError(
            "intervals by inversion are for the nodes of a tree that adds up; impose "
            "consistent(tree), exact counts and lower bounds of leaves."
        )
    free = ~resolved.pinned
    bound = np.where(tree.is_leaf & free, np.ceil(resolved.lo), -np.inf)
    # exact counts lie within their bounds too
    least = tree.roll_up(np.ceil(resolved.lo)[tree.leaves])
    if (np.isfinite(resolved.hi) & free).any() or (free & (resolved.lo > least)).any():
        raise UnsupportedError(
            "intervals by inversion know no upper bounds, nor bounds of sums beyond those of their "
            "parts; leave these out, or take the posterior."
        )
    return resolved, tree, bound


def _cuts(mechanism: Conditioned, value: IntArray, bound: FloatArray, beta: float) -> FloatArray:
    """Return what each leaf's noise is at least cut at, with probability 1 - beta for all at once.

    A leaf's noise is largest where its count is at its bound and no other is cut: its law is then
    that of the noise on 0, 1, ... times a decreasing function, and so is beyond no quantile of that
    noise more often than it is.
    """
    noise, scales = mechanism.mechanism.noise, mechanism.mechanism.scales
    bounded = np.isfinite(bound)
    each = beta / max(int(bounded.sum()), 1)
    scale = np.where(np.isfinite(scales), scales, np.inf)
    if noise.kind == laws.GAUSSIAN:
        # the sum beyond q is below the integral from q on, the whole one at least that from 0
        quantile = np.ceil(-NormalDist().inv_cdf(0.5 * each) * scale)
    else:
        # a^(q + 1) lies beyond q
        quantile = np.ceil(-np.log(each) * scale)
    with np.errstate(invalid="ignore"):
        most = np.where(np.isfinite(scale), np.floor(_FAR * scale), 0.0)
        surely = np.clip(value - bound - quantile, 0.0, most)
    return np.where(bounded, -np.where(np.isfinite(scale), surely, 0.0), -np.inf)


def _weights(mechanism: Conditioned, resolved: ResolvedInvariant, cut: FloatArray) -> SharedUnary:
    """List the weights of the noise, cut below."""
    scales = mechanism.mechanism.scales
    columns = np.column_stack(
        (np.where(resolved.pinned, 0.0, scales), np.where(resolved.pinned, 0.0, cut))
    )
    rows, code = np.unique(columns, axis=0, return_inverse=True)
    pinned = rows[:, 0] == 0.0
    kind = np.where(np.isfinite(rows[:, 0]), mechanism.mechanism.noise.kind, laws.FLAT)
    hi = np.where(pinned, 0.0, np.inf)
    scale = np.where(pinned, 1.0, rows[:, 0])
    unary = Unary(kind.astype(np.int64), scale, np.zeros(pinned.size), rows[:, 1].copy(), hi)
    return SharedUnary(unary, code.ravel().astype(np.int32))


class _Laws:
    """Networks of the noise with its leaves cut, and with none cut, which have the same classes."""

    def __init__(self, forest: SumForest, weights: SharedUnary) -> None:
        self.n = forest.n
        theta = tilts(forest, weights)
        composed = np.zeros(weights.unary.kind.size, dtype=np.int8)
        self.cut = compile_network(forest, weights, theta, composed)
        unary = self.cut.unary
        open_below = np.where(unary.lo == unary.hi, unary.lo, -np.inf)
        tilt = np.zeros_like(self.cut.tilt)
        free = replace(self.cut, unary=replace(unary, lo=open_below), tilt=tilt)
        self.places = [(one, place_classes(one)) for one in (self.cut, free)]

    def around(self, tree: Tree, nodes: BoolArray) -> BoolArray:
        """Return the classes of all that adds up to some of the nodes, or to their parents."""
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
        self.n = laws_of.n
        (cut, _), (free, _) = laws_of.places
        (lo, hi), (low, high) = (
            windows(one, place, cut=_CUT, generous=generous) for one, place in laws_of.places
        )
        used = lo <= hi
        self.lo = np.where(used, np.minimum(lo, low), lo)
        self.hi = np.where(used, np.maximum(hi, high), hi)
        width = np.maximum(self.hi - self.lo + 1, 0)
        merge = cut.ctype == MERGE
        left, right = width[cut.left] * merge, width[cut.right] * merge
        self.work = float((np.minimum(width, left + right) * np.minimum(left, right)).sum())
        if width.max(initial=0) > _ENDLESS:
            raise UnsupportedError(
                "the noise of a count that is not measured may be anything without its bound; "
                "measure all but one of the parts of every sum."
            )
        if width.sum() > _MEMORY_LIMIT or self.work > _WORK_LIMIT:
            raise UnsupportedError(
                f"the intervals would need {2 * float(width.sum()) * 8 / 2**30:.1f} GiB of tables "
                f"and {self.work:.0g} products; use less noise, or fewer leaves near their bounds."
            )
        self.offset = np.concatenate(([0], np.cumsum(width)))[:-1].astype(np.int64)
        self.size = int(width.sum())
        self.lost = np.zeros(width.size)
        self.cut, self.free = self._filled(cut), self._filled(free)

    def _filled(self, network: Network) -> Tables:
        v = np.maximum(network.variable, 0)
        unary = network.unary.at(v)
        gaussian = unary.kind == laws.GAUSSIAN
        inverse = np.where(gaussian, 0.5 / unary.scale**2, 1.0 / unary.scale)
        least = np.maximum(unary.lo, -(2.0**60)).astype(np.int64)
        most = np.minimum(unary.hi, 2.0**60).astype(np.int64)
        table = np.zeros(self.size)
        shape = network.ctype, network.left, network.right, network.sign
        # tilts place windows; without them numbers hold both messages where they meet
        law = unary.kind, inverse, unary.center, np.zeros(v.size), least, most
        lost = np.zeros(v.size)
        supported.fill(*shape, *law, self.lo, self.hi, self.offset, table, lost)
        np.maximum(self.lost, lost, out=self.lost)
        none, whole = np.empty(0), np.empty(0, dtype=np.int64)
        where = self.lo, self.hi, self.offset, table
        return Tables(network, *where, none, none, none, none, whole, 0.0)

    def extremes(self, is_leaf: BoolArray, tails: FloatArray) -> tuple[OneSided, OneSided]:
        """Return what the smallest and the largest law of each node's noise leave beyond."""
        lowest = one_sided(self.cut, self.free.table, self.lost, is_leaf, tails)
        highest = one_sided(self.free, self.cut.table, self.lost, is_leaf, tails)
        # what is lost is less than what tails are kept clear of
        if not (np.maximum(lowest.lost, highest.lost) < 0.5 * kernels.TIE).all():
            raise NumericalError(
                "the laws of the noise lie too far apart to be weighed; use less noise."
            )
        return lowest, highest
