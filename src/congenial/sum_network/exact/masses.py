"""Masses of envelopes: how likely one attempt leads to a draw, as constants in decimals.

Proof: `proofs/forest-draws.md`.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal, localcontext

import numpy as np

from congenial.kernels.network import descend
from congenial.kernels.network.messages import MERGE
from congenial.kernels.numerics import laws
from congenial.randomness import Enclosure, Probability, around, precision
from congenial.sum_network.exact import rare_draws
from congenial.sum_network.exact.envelopes import Envelopes
from congenial.sum_network.network import Network
from congenial.types import FloatArray, IntArray

# Sigma above which the sum of a normal law's weights is that of the transformed weights.
_WIDE = 1.0


def mass(of: Envelopes) -> Probability:
    """Return the mass of envelopes, which encloses it at each level; it may exceed 1.

    An attempt leads to values, and is accepted, with the product of their weights over the mass.
    Weights are 1 at their mode, and no sum is split without tables. In a network that sends the
    message of variable 0, whose value is given, the product is over the mass and this message.
    """
    times, found = _occurrences(of.network), dict[int, Enclosure]()

    def enclosed(level: int) -> Enclosure:
        if level not in found:
            with precision(level):
                found[level] = around(_mass(of, times), level)
        return found[level]

    return enclosed


def without_noise(kind: int, scales: FloatArray) -> Probability:
    """Return the probability that the noise of all entries is 0; 1 where nothing is measured."""
    measured, times = np.unique(scales[np.isfinite(scales)], return_counts=True)
    each = list(zip(measured.tolist(), times.tolist(), strict=True))

    def probability(level: int) -> Enclosure:
        with precision(level):
            out = Decimal(1)
            for scale, count in each:
                total = _normal_sum(Decimal(scale)) if kind == laws.GAUSSIAN else _sum(scale)
                out /= total**count
            return around(out, level)

    return probability


def _mass(of: Envelopes, times: IntArray) -> Decimal:
    """Return the mass of envelopes in the current precision; classes occur `times` times."""
    network = of.network
    drawn = [] if network.sent.size else network.roots.tolist()
    settled = int(times[network.ctype != MERGE].sum()) + int(network.uses.sum())
    out = 1 / rare_draws.BELOW ** (settled - network.roots.size + len(drawn))
    for c, count in Counter(drawn).items():
        out *= ((1 << rare_draws.CHOICE) / Decimal(rare_draws.root_unit(of, c))) ** count
    for c, count in Counter(network.fixed.tolist()).items():
        out *= rare_draws.value(of, c, 0) ** count
    # factors are powers of two, or few numbers times one
    used = np.flatnonzero(times)
    mantissa, exponent = np.frexp(of.factor[used])
    out *= Decimal(2) ** int(exponent.astype(np.int64) @ times[used])
    for part, count in _counted(mantissa, times[used]):
        out *= Decimal(part) ** count
    weighed = used[network.variable[used] >= 0]
    summed = network.unary.kind[network.variable[weighed]] == laws.GEOMETRIC_SUM
    for c in weighed[summed].tolist():
        out *= _scale_of_geometric_sum(of, c) ** int(times[c])
    plain = weighed[~summed]
    log = sum(
        (Decimal(scale) * count for scale, count in _counted(of.log_scale[plain], times[plain])),
        start=Decimal(0),
    )
    return out * log.exp() * _composed(network)


def _counted(numbers: FloatArray, times: IntArray) -> list[tuple[float, int]]:
    """Return each different number, and how often it occurs."""
    different, at = np.unique(numbers, return_inverse=True)
    counts = np.zeros(different.size, dtype=np.int64)
    np.add.at(counts, at.ravel(), times)
    return list(zip(different.tolist(), counts.tolist(), strict=True))


def _occurrences(network: Network) -> IntArray:
    """Return how often each class occurs below all roots and fixed sums, shape (c,)."""
    times = np.zeros(network.ctype.size, dtype=np.int64)
    np.add.at(times, network.roots, 1)
    np.add.at(times, network.fixed, 1)
    counts, left, right = times.tolist(), network.left.tolist(), network.right.tolist()
    for c in range(len(counts) - 1, -1, -1):
        if counts[c] and left[c] >= 0:
            counts[left[c]] += counts[c]
            counts[right[c]] += counts[c]
    return np.array(counts, dtype=np.int64)


def _scale_of_geometric_sum(of: Envelopes, c: int) -> Decimal:
    """Return the number by which the weights C(k + n - 1, k) q^k of a class were divided."""
    v = int(of.network.variable[c])
    n, tilt = int(of.network.unary.center[v]), Decimal(float(of.network.tilt[v]))
    inverse = rare_draws.inverse_of(float(of.network.unary.scale[v]))
    x, above = rare_draws.largest_entry(of, c, inverse)
    k, out = abs(x), Decimal(1)
    for j in range(1, min(k, n - 1) + 1):
        out = out * (k + n - j) / j
    return out * (tilt * x - inverse * k).exp() * above / rare_draws.value(of, c, x)


def _composed(network: Network) -> Decimal:
    """Return the product of all 1 - exp(-2 / scale) of variables drawn as differences.

    Pairs of geometric weights with one difference u add up to exp(-abs(u) / scale) over this.
    """
    both = (network.op == descend.COMPOSE) & (network.first >= 0) & (network.second >= 0)
    v = network.variable[network.slot_class[network.first[both]]]
    out = Decimal(1)
    for scale, count in _counted(network.unary.scale[v], network.cls[both].astype(np.int64)):
        out *= _fallen(2 / Decimal(scale)) ** count
    return out


def _sum(scale: float) -> Decimal:
    """Return the sum of exp(-abs(u) / scale) over all integers."""
    inverse = 1 / Decimal(scale)
    return (1 + (-inverse).exp()) / _fallen(inverse)


def _fallen(x: Decimal) -> Decimal:
    """Return 1 - exp(-x), with as many digits of a small x as of a large one."""
    with localcontext() as context:
        context.prec += max(0, -x.adjusted()) + 2
        return 1 - (-x).exp()


def _normal_sum(sigma: Decimal) -> Decimal:
    """Return the sum of exp(-u^2 / (2 sigma^2)) over all integers.

    By Poisson's formula, it is sigma sqrt(2 pi) times the sum with 1 / (2 pi sigma) for sigma.
    """
    if sigma <= _WIDE:
        rate, factor = 1 / (2 * sigma * sigma), Decimal(1)
    else:
        pi = _pi()
        rate, factor = 2 * (pi * sigma) ** 2, sigma * (2 * pi).sqrt()
    total, u = Decimal(1), 1
    while True:
        more = 2 * (-rate * u * u).exp()
        if total + more == total:
            return factor * total
        total, u = total + more, u + 1


def _pi() -> Decimal:
    """Return pi, by Machin's formula."""
    with localcontext() as context:
        context.prec += 5
        return 16 * _arctan_of_inverse(5) - 4 * _arctan_of_inverse(239)


def _arctan_of_inverse(n: int) -> Decimal:
    """Return the arctangent of 1 / n, n at least 2."""
    out, power, k = Decimal(0), 1 / Decimal(n), 1
    while True:
        more = power / (k if k % 4 == 1 else -k)
        if out + more == out:
            return out
        out, power, k = out + more, power / (n * n), k + 2
