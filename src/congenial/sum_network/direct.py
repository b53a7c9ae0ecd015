"""Splits without tables, for a sum of many equal siblings that is fixed at zero."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np

from congenial.kernels.network import descend, differences
from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.numerics import elementwise, laws
from congenial.randomness import Enclosure, Randomness, around, is_below, precision
from congenial.sum_network.network import Network
from congenial.types import FloatArray, IntArray

# Least variance of a sum that is split without tables; its tables would have 10,000 entries.
_WORTH = 2.0**18


def split_directly(network: Network) -> Network:
    """Split sums by `kernels.differences` instead of tables where that is faster.

    These are sums of equal geometric variables, upwards less downwards, that can only be zero
    because the sum or the variable above it is pinned. A draw would use their tables only once,
    and tables of a large variance are long.
    """
    candidates = _like_sums(network)
    owners, candidates = _only_at_zero(network, candidates)
    if not candidates.size:
        return network
    # given the pinned value, the sum below it only adds a factor
    instead = np.arange(network.ctype.size, dtype=np.int32)
    instead[owners] = network.left[owners]
    while (instead != instead[instead]).any():  # a variable may own several sums
        instead = instead[instead]
    direct = (network.op == descend.SPLIT) & np.isin(network.cls, candidates)
    op = np.where(direct, descend.DIFFERENCE, network.op).astype(network.op.dtype)
    order = np.argsort(np.where(op == descend.COMPOSE, 2, np.where(direct, 1, 0)), kind="stable")
    chosen = np.isin(op, (descend.ROOT, descend.SPLIT))
    cls = network.cls.copy()
    cls[chosen] = instead[cls[chosen]]
    uses = np.bincount(cls[chosen], minlength=instead.size)
    program = network.program._replace(op=op, cls=cls)
    # -1 stands for no part and stays
    left, right = (np.append(instead, np.int32(-1))[part] for part in (network.left, network.right))
    return replace(
        network,
        left=left,
        right=right,
        roots=instead[network.roots],
        fixed=instead[network.fixed[~np.isin(network.fixed, candidates)]],
        **{name: column[order] for name, column in program._asdict().items()},
        uses=uses.astype(network.uses.dtype),
        choices=network.choices - int(direct.sum()),
    )


def _like_sums(network: Network) -> IntArray:
    """Return the merges of equal geometric variables whose variance is at least `_WORTH`."""
    unary, count = network.unary, network.ctype.size
    summed = np.append(network.ctype == UNARY, False)
    summed[:count] &= unary.kind[np.maximum(network.variable, 0)] == laws.GEOMETRIC_SUM
    found = np.flatnonzero((network.ctype == MERGE) & summed[network.left] & summed[network.right])
    up = network.variable[network.left[found]]
    # a geometric variable has variance e / (e - 1)^2, e = exp(1 / scale)
    half = np.minimum(0.5 / unary.scale[up], 350.0)
    twice_sinh = elementwise.expm1(half) - elementwise.expm1(-half)
    return np.asarray(found[2.0 * unary.center[up] / twice_sinh**2 > _WORTH])


def _only_at_zero(network: Network, candidates: IntArray) -> tuple[IntArray, IntArray]:
    """Return (owners, those candidates) whose sums are needed at zero only.

    Owners are the products of a variable pinned at zero and such a sum.
    """
    pinned = (network.unary.lo == 0.0) & (network.unary.hi == 0.0)
    own = np.arange(network.ctype.size)
    while (inner := network.ctype[own] == PRODUCT).any():
        own = np.where(inner, network.left[own], own)
    at_zero = (network.ctype == PRODUCT) & (network.variable[own] >= 0)
    at_zero &= pinned[np.maximum(network.variable[own], 0)]
    made = network.ctype != UNARY
    elsewhere = np.concatenate((network.left[made], network.right[made & ~at_zero], network.roots))
    candidates = candidates[~np.isin(candidates, elsewhere)]
    owners = np.flatnonzero(at_zero & np.isin(network.right, candidates))
    used = np.concatenate((network.right[owners], network.fixed))
    return owners, candidates[np.isin(candidates, used)]


def sums_split(network: Network) -> tuple[IntArray, IntArray, FloatArray]:
    """Return (operations, numbers of variables, 1 / scale) of the splits without tables."""
    at = np.flatnonzero(network.op == descend.DIFFERENCE)
    v = network.variable[network.left[network.cls[at]]]
    return at, network.unary.center[v].astype(np.int64), 1.0 / network.unary.scale[v]


def is_accepted(network: Network, question: IntArray, rng: Randomness) -> bool:
    """Decide whether a split without tables accepts a place, see `kernels.network.differences`."""
    i, s, mode, block, j, word = question.tolist()
    at = np.flatnonzero(network.op == descend.DIFFERENCE)[i]
    v = network.variable[network.left[network.cls[at]]]
    n, scale = int(network.unary.center[v]), float(network.unary.scale[v])

    def probability(level: int) -> Enclosure:
        with precision(level):
            out = Decimal(1)
            for k in range(min(j, mode), max(j, mode)):
                out = out * ((k + n) * (k + s + n)) / ((k + 1) * (k + s + 1))
            out = out if j >= mode else 1 / out
            out *= (Decimal(2) * (mode - j) / Decimal(scale)).exp() * (1 << block)
            return around(out * Decimal(differences.SURE), level)

    return is_below(word % (1 << 64), probability, rng)
