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

So lower confidence bounds of the leaves' counts, which hold at once with probability 1 - beta, give
a largest and a smallest law of each node's noise: cut at the bounds below it and nowhere else, and
the other way round. Their quantiles invert the release.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from congenial import sum_network
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.numerics import laws
from congenial.noise.additive import checked_alpha
from congenial.sum_network import SharedUnary, Unary
from congenial.types import FloatArray, IntArray

# Share of alpha that the bounds of the leaves' counts may miss.
_BOUNDS = 0.1
# Scales beyond which a larger count is of no use.
_FAR = 64.0


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
        Number of intervals that hold at once, for any choice of them.

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
    # an error of the leaves' bounds is an error for all nodes at once
    tails = [0.5 * (1.0 - _BOUNDS) * alpha / count for count in together]
    if min(tails) < sum_network.LEAST_TAIL:
        raise NumericalError(
            f"alpha {alpha:g} for {max(together)} nodes at once is beyond what laws are computed "
            "to; give a larger alpha, or fewer nodes."
        )
    weights = _weights(mechanism, resolved, _cuts(mechanism, value, bound, _BOUNDS * alpha))
    least = tree.roll_up(np.where(resolved.pinned, value, bound)[tree.leaves])
    low, high = sum_network.extreme_tails(tree, weights, np.array(tails))
    lower = np.maximum((value[:, None] - high).astype(np.float64), least[:, None])
    upper = value[:, None] - low
    return list(zip(lower.astype(np.int64).T, upper.T, strict=True))


def _whole(z: npt.ArrayLike, n: int) -> IntArray:
    value = np.asarray(z)
    if value.shape != (n,) or value.dtype.kind not in "iu":
        raise ArgumentError(
            f"z has shape {value.shape} and dtype {value.dtype}; give {n} integers."
        )
    return value.astype(np.int64)


def _checked(mechanism: Conditioned) -> tuple[ResolvedInvariant, Tree, FloatArray]:
    """Return the invariant, the tree, and the lower bound of every leaf, -inf elsewhere."""
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
