"""A random walk of the noise of a tree, which moves all leaves at once."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary, laws
from congenial.kernels.numerics.compiling import njit
from congenial.kernels.numerics.trees import add_up


@njit()
def walk(words, shape, law, spread, limits, matrix, whole, thin, done, state, out):
    """Take one step for each row of `words`, and return how many steps were accepted.

    `words` is uint64 (steps, 2 * ceil(leaves / 2) + 1). `shape` is (parents, bottom_up, leaves) of
    the tree, see `trees.add_up`; `law` is (kind, scales (n,)), and `spread`, float64 (leaves,), has
    the standard deviation of each leaf's step, rounded if `whole`. `limits` is (lo, hi,
    least): noise lies between lo and hi (n,), and ``matrix @ u >= least``. `state` is float64 (n,),
    and every `thin`-th state is written to `out`, float64 (draws, n); `done` steps came before.
    """
    parents, bottom_up, leaves = shape
    kind, scales = law
    lo, hi, least = limits
    n, m = parents.size, leaves.size
    step = np.empty(m + 1)
    proposed = np.empty(n)
    here = _log_density(kind, scales, state)
    accepted = 0
    for t in range(words.shape[0]):
        for j in range(0, m, 2):
            # two normal variables from two words (Box and Muller 1958)
            first = (float(words[t, j] >> np.uint64(11)) + 1.0) * 2.0**-53
            angle = float(words[t, j + 1] >> np.uint64(11)) * (2.0**-53 * 2.0 * np.pi)
            radius = np.sqrt(-2.0 * elementary.log(first))
            cos, sin = elementary.cos_sin(angle)
            step[j], step[j + 1] = radius * cos, radius * sin
        proposed[:] = 0.0
        for j in range(m):
            move = step[j] * spread[j]
            proposed[leaves[j]] = state[leaves[j]] + (np.rint(move) if whole else move)
        add_up(parents, bottom_up, proposed)
        if _inside(lo, hi, least, matrix, proposed):
            there = _log_density(kind, scales, proposed)
            uniform = (float(words[t, words.shape[1] - 1]) + 1.0) * 2.0**-64
            if elementary.log(uniform) <= there - here:
                state[:] = proposed
                here = there
                accepted += 1
        if (done + t + 1) % thin == 0:
            out[(done + t) // thin] = state
    return accepted


@njit()
def _log_density(kind, scales, u):
    total = 0.0
    for i in range(u.size):
        if scales[i] < np.inf:
            total += laws.log_weight(kind, scales[i], u[i])
    return total


@njit()
def _inside(lo, hi, least, matrix, u):
    for i in range(u.size):
        if u[i] < lo[i] or u[i] > hi[i]:
            return False
    for k in range(least.size):
        total = 0.0
        for i in range(u.size):
            total += matrix[k, i] * u[i]
        if total < least[k]:
            return False
    return True
