"""Normal vectors on a sum forest, by one pass up and one pass down (Hay et al. 2010).

Variables have independent normal weights exp(-weight * u**2 / 2), weight 0 where there is none, and
each sum of the forest adds up to `sign` times its owner, or to zero; `fixed` variables are zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial.kernels.numerics import elementary
from congenial.kernels.numerics.compiling import njit


class SumArrays(NamedTuple):
    """A sum forest: arrays of that name of `SumForest`."""

    above: np.ndarray
    owner: np.ndarray
    sign: np.ndarray
    order: np.ndarray


class Climbed(NamedTuple):
    """Weights of everything below a variable or a sum.

    Below variable v they multiply to exp(-precision[v] * u[v]**2 / 2) times a constant, below sum k
    likewise with 1 / (widest[k] + rest[k]): the largest variance of a summand, and the sum of all
    others. Shapes (n,), (m,) and (m,).
    """

    precision: np.ndarray
    widest: np.ndarray
    rest: np.ndarray


@njit()
def climb(
    sums: SumArrays, weight: np.ndarray, fixed: np.ndarray, climbed: Climbed
) -> tuple[float, int]:
    """Fill the arrays of `climbed`.

    Returns the log of the integral of all weights over the solutions, and the number of dimensions.
    The coordinates have one integer solution per unit of volume. The log is inf if the integral
    diverges.
    """
    above, owner, _, order = sums
    precision, widest, rest = climbed
    n = above.size
    log_volume = 0.0
    dimension = 0
    unit = elementary.log(2.0 * np.pi)
    precision[:] = weight
    widest[:] = 0.0
    rest[:] = 0.0
    members = np.zeros(owner.size, dtype=np.int64)
    flat = np.zeros(owner.size, dtype=np.int64)
    for i in order:
        if i >= n:
            k = i - n
            if flat[k] > 1:
                return np.inf, dimension
            spread = widest[k] + rest[k]
            if members[k] > 0:
                dimension += members[k] - 1
                log_volume += 0.5 * (members[k] - 1) * unit
                if flat[k] == 0:
                    log_volume -= 0.5 * elementary.log(spread)
            v = owner[k]
            if v >= 0:
                if members[k] == 0:
                    precision[v] = np.inf
                elif flat[k] == 0:
                    precision[v] += 1.0 / spread
            continue
        if fixed[i]:
            precision[i] = np.inf
        p = precision[i]
        if p == np.inf:
            continue
        k = above[i]
        if k < 0:
            if p == 0.0:
                return np.inf, dimension
            dimension += 1
            log_volume += 0.5 * (unit - elementary.log(p))
            continue
        members[k] += 1
        if p == 0.0:
            flat[k] += 1
            rest[k] += widest[k]
            widest[k] = np.inf
            continue
        log_volume -= 0.5 * elementary.log(p)
        variance = 1.0 / p
        if variance > widest[k]:
            rest[k] += widest[k]
            widest[k] = variance
        else:
            rest[k] += variance
    return log_volume, dimension


@njit()
def respond(sums: SumArrays, climbed: Climbed, pull: np.ndarray, u: np.ndarray) -> None:
    """Fill `u` (n,) with the solution that minimises ``sum(weight * u**2 / 2 - pull * u)``.

    It is the covariance of the normal law times `pull`; with ``pull = weight * y`` it is the
    closest solution to y.
    """
    above, owner, sign, order = sums
    precision, widest, rest = climbed
    n, m = above.size, owner.size
    total = np.zeros(m)
    lost = np.zeros(m)  # rounding errors of `total` (Neumaier 1974)
    slope = np.zeros(m)  # pull on the summand without a weight
    u[:] = pull
    for i in order:
        if i >= n:
            k = i - n
            total[k] += lost[k]
            v = owner[k]
            if v < 0:
                continue
            if widest[k] == np.inf:
                u[v] += sign[k] * slope[k]
            elif widest[k] > 0.0:
                u[v] += sign[k] * total[k] / (widest[k] + rest[k])
            continue
        k, p = above[i], precision[i]
        if p == 0.0:
            slope[k] = u[i]
            continue
        u[i] /= p  # 0 where fixed
        if k >= 0:
            after = total[k] + u[i]
            if abs(total[k]) >= abs(u[i]):
                lost[k] += (total[k] - after) + u[i]
            else:
                lost[k] += (u[i] - after) + total[k]
            total[k] = after
    for j in range(order.size - 1, -1, -1):
        i = order[j]
        if i >= n:
            k = i - n
            v = owner[k]
            total[k] = (sign[k] * u[v] if v >= 0 else 0.0) - total[k]  # the rest to distribute
            if widest[k] == np.inf:
                total[k] += slope[k] * rest[k]
            continue
        k, p = above[i], precision[i]
        if k < 0 or p == np.inf:
            continue
        if widest[k] < np.inf:
            u[i] += total[k] / p / (widest[k] + rest[k])
        elif p == 0.0:
            u[i] = total[k]
        else:
            u[i] -= slope[k] / p


@njit()
def variances(sums: SumArrays, climbed: Climbed, out: np.ndarray) -> None:
    """Fill `out` (n,) with the variance of each variable given the sums."""
    above, owner, _, order = sums
    precision, widest, rest = climbed
    n = above.size
    for j in range(order.size - 1, -1, -1):
        i = order[j]
        if i >= n:
            continue
        p = precision[i]
        if p == np.inf:
            out[i] = 0.0
            continue
        k = above[i]
        if k < 0:
            out[i] = 1.0 / p
            continue
        v = owner[k]
        outer = out[v] if v >= 0 else 0.0
        if widest[k] == np.inf:
            out[i] = outer + rest[k] if p == 0.0 else 1.0 / p
            continue
        own, spread = 1.0 / p, widest[k] + rest[k]
        others = rest[k] if own == widest[k] else spread - own
        share = own / spread
        out[i] = share * share * outer + share * others
