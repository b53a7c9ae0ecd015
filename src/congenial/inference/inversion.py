"""Intervals of the true counts behind a release under lower bounds, proved for every dataset.

If a release was conditioned on lower bounds of leaves, its noise e has the law of the tree's noise
given that no leaf's noise is below c = bound - count. The law of e at a node is monotone in each c:

    Let every noise law be log-concave. Then the law of the noise of node v increases, in the order
    of likelihood ratios, in c of each leaf below v, and decreases in c of every other leaf.

First half: messages from below are products and convolutions of log-concave laws, hence
log-concave. Cutting a leaf's law at a larger c makes the law larger in this order. Adding
independent log-concave variables, and multiplying by the same function, keep the order
(Shanthikumar and Yao 1986; Karlin 1968). Second half: the message from outside v is a sum over s of
G(e + s) times the law of the siblings' sum s, where G is log-concave; a larger s makes e smaller.

Lower confidence bounds of the leaves' counts, which hold at once with probability 1 - beta,
therefore give a largest and a smallest law of each node's noise. The largest law is cut at the
bounds of the leaves below the node only; the smallest, at the bounds of all other leaves only. The
intervals are the released counts less the quantiles of these two laws.
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
from congenial.noise.additive import checked_alpha, checked_together
from congenial.sum_network import SharedUnary, Unary
from congenial.types import FloatArray, IntArray

# Fraction of alpha for the confidence bounds of the leaves' counts.
_BOUNDS = 0.1
# Largest confidence bound, in noise scales above the leaf's bound; larger cuts have no effect.
_FAR = 64.0


def inverted_intervals(
    mechanism: Conditioned, z: npt.ArrayLike, alpha: float = 0.1, *, together: int = 1
) -> tuple[IntArray, IntArray]:
    """Interval of every true count behind a release, with coverage proved for all counts.

    Parameters
    ----------
    mechanism : Conditioned
        On a tree with consistent(), any exact counts and any lower bounds of leaves.
    z : array_like of int, shape (n,)
        The release.
    alpha : float
        Between 0 and 1.
    together : int
        Number of intervals that must hold at once, for every choice of that many.

    Returns
    -------
    lower, upper : ndarray of int64, shape (n,)
        For every dataset, each interval contains its true count with probability at least
        1 - alpha over releases. The more leaves may be near their bounds, the wider the intervals.
        The truncation of the laws to windows is checked with wider windows; it is not proved.

    Raises
    ------
    ArgumentError
        If `z` violates the invariant, alpha is not between 0 and 1, or `together` is below 1.
    UnsupportedError
        If the mechanism or the invariant is of another kind, or tables would be too large.
    NumericalError
        If the laws need wider windows than the widest that is tried.

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
    alike = [checked_together(together)]
    resolved, _, bound = _checked(mechanism)
    value = np.asarray(z)
    if value.shape != bound.shape or value.dtype.kind not in "iu":
        raise ArgumentError(
            f"z has shape {value.shape} and dtype {value.dtype}; give {bound.size} integers."
        )
    value = value.astype(np.int64)
    if not resolved.adds_up(value) or (value < bound).any():
        raise ArgumentError("z does not add up, or is below a bound; give the released counts.")
    return invert(mechanism, value, alpha, alike)[0]


def invert(
    mechanism: Conditioned, value: IntArray, alpha: float, together: Sequence[int]
) -> list[tuple[IntArray, IntArray]]:
    """Return `inverted_intervals` of a release for several values of `together`."""
    resolved, tree, bound = _checked(mechanism)
    # if a leaf's bound is wrong, all intervals may be wrong at once
    tails = [0.5 * (1.0 - _BOUNDS) * alpha / count for count in together]
    if min(tails) < sum_network.LEAST_TAIL:
        raise NumericalError(
            f"alpha {alpha:g} for {max(together)} nodes at once needs smaller tail probabilities "
            "than are computed; give a larger alpha, or fewer nodes."
        )
    weights = _weights(mechanism, resolved, _cuts(mechanism, value, bound, _BOUNDS * alpha))
    least = tree.roll_up(np.where(resolved.pinned, value, bound)[tree.leaves])
    low, high = sum_network.extreme_tails(tree, weights, np.array(tails))
    lower = np.maximum((value[:, None] - high).astype(np.float64), least[:, None])
    upper = value[:, None] - low
    return list(zip(lower.astype(np.int64).T, upper.T, strict=True))


def inverts(mechanism: Conditioned) -> bool:
    """Whether the invariant of a mechanism is one that inversion covers."""
    try:
        _checked(mechanism)
    except UnsupportedError:
        return False
    return True


def _checked(mechanism: Conditioned) -> tuple[ResolvedInvariant, Tree, FloatArray]:
    """Return the invariant, the tree, and the lower bound of every leaf, -inf elsewhere."""
    if not isinstance(mechanism, Conditioned):
        raise UnsupportedError(
            f"intervals by inversion are not for a {type(mechanism).__name__}; give a result of "
            "congenial.condition() with noise on the integers."
        )
    resolved = mechanism.resolved
    tree = resolved.tree
    if (
        tree is None
        or resolved.equalities[1].size
        or resolved.n_inequalities
        or resolved.relative.size
    ):
        raise UnsupportedError(
            "intervals by inversion are for the nodes of a tree that adds up; impose "
            "consistent(tree), exact counts and lower bounds of leaves."
        )
    free = ~resolved.pinned
    bound = np.where(tree.is_leaf & free, np.ceil(resolved.lo), -np.inf)
    # the bounds of sums that follow from those of their leaves
    least = tree.roll_up(np.ceil(resolved.lo)[tree.leaves])
    if (np.isfinite(resolved.hi) & free).any() or (free & (resolved.lo > least)).any():
        raise UnsupportedError(
            "intervals by inversion need an invariant without upper bounds, and without bounds of "
            "sums beyond those of their parts; leave these out, or use the posterior."
        )
    return resolved, tree, bound


def _cuts(mechanism: Conditioned, value: IntArray, bound: FloatArray, beta: float) -> FloatArray:
    """Return an upper bound of each leaf's cut; all hold at once with probability 1 - beta.

    A leaf's noise is largest if its count is at its bound and no other leaf's noise is cut. Its law
    is then the noise law on 0, 1, ... times a decreasing function, so it exceeds each quantile of
    that noise law with at most the same probability.
    """
    noise, scales = mechanism.mechanism.noise, mechanism.mechanism.scales
    bounded = np.isfinite(bound)
    each = beta / max(int(bounded.sum()), 1)
    scale = np.where(np.isfinite(scales), scales, np.inf)
    if noise.kind == laws.GAUSSIAN:
        # the sum over values above q is at most the integral from q; the sum over 0, 1, ... is at
        # least the integral from 0
        quantile = np.ceil(-NormalDist().inv_cdf(0.5 * each) * scale)
    else:
        # the probability of values above q is a^(q + 1)
        quantile = np.ceil(-np.log(each) * scale)
    with np.errstate(invalid="ignore"):
        most = np.where(np.isfinite(scale), np.floor(_FAR * scale), 0.0)
        surely = np.clip(value - bound - quantile, 0.0, most)
    return np.where(bounded, -np.where(np.isfinite(scale), surely, 0.0), -np.inf)


def _weights(mechanism: Conditioned, resolved: ResolvedInvariant, cut: FloatArray) -> SharedUnary:
    """Return the weights of the noise, cut from below."""
    scales = mechanism.mechanism.scales
    columns = [np.where(resolved.pinned, 0.0, column) for column in (cut, scales)]
    code, listed = sum_network.alike((columns[0], columns[1]))
    lo, scales = (column[listed] for column in columns)
    pinned = scales == 0.0
    kind = np.where(np.isfinite(scales), mechanism.mechanism.noise.kind, laws.FLAT)
    hi = np.where(pinned, 0.0, np.inf)
    scale = np.where(pinned, 1.0, scales)
    unary = Unary(kind.astype(np.int64), scale, np.zeros(pinned.size), lo, hi)
    return SharedUnary(unary, code)
