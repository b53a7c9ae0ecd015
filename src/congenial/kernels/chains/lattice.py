"""Moves along the vectors of a lattice: shorten a basis, and draw the distance along each sum."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import elementary, laws
from congenial.kernels.numerics.compiling import njit

# Largest distance of a move: doubles represent all integers up to it exactly.
_FURTHEST = 2.0**45


@njit()
def shorten(basis, weight):
    """Replace vectors of `basis` (k, n) by shorter ones of the same lattice, in place.

    The length of v is the root of ``weight @ v**2``, with positive weights. While it makes a vector
    shorter, a multiple of another vector is subtracted from it (the pairwise step of Lenstra,
    Lenstra and Lovasz 1982).
    """
    k, n = basis.shape
    product = np.zeros((k, k))
    for i in range(k):
        for j in range(k):
            for v in range(n):
                product[i, j] += weight[v] * basis[i, v] * basis[j, v]
    going = True
    while going:
        going = False
        for i in range(k):
            for j in range(k):
                times = np.rint(product[i, j] / product[j, j])
                gain = times * (2.0 * product[i, j] - times * product[j, j])
                if i == j or gain <= 1e-9 * product[i, i]:
                    continue
                going = True
                for v in range(n):
                    basis[i, v] -= np.int64(times) * basis[j, v]
                product[i, i] -= gain
                for h in range(k):
                    if h != i:
                        product[i, h] -= times * product[j, h]
                        product[h, i] = product[i, h]


@njit(inner=True)
def _uniform(word):
    """Return a number within (0, 1)."""
    return (float(word >> np.uint64(11)) + 0.5) * 2.0**-53


@njit(inner=True)
def _log_weight(t, u, at, by, kind, scale, center):
    total = 0.0
    for i in range(at.size):
        v = at[i]
        total += laws.log_weight(kind[v], scale[v], u[v] + t * by[i] - center[v])
    return total


@njit(inner=True)
def _reach(way, room, level, u, at, by, kind, scale, center):
    """Return the largest d up to `room` whose log weight, at ``way * d``, is at least `level`."""
    near, far = 0.0, 1.0
    while far <= room and _log_weight(way * far, u, at, by, kind, scale, center) >= level:
        near, far = far, 2.0 * far
    far = min(far, room + 1.0)
    while far - near > 1.0:
        middle = np.floor(0.5 * (near + far))
        if _log_weight(way * middle, u, at, by, kind, scale, center) >= level:
            near = middle
        else:
            far = middle
    return near


@njit(inner=True)
def _move(u, at, by, kind, scale, center, lo, hi, first, second):
    """Move `u` along the vector with entries `by` at `at`, by two words.

    The first word draws a level below the weight of the present point. Weights are log-concave
    along the line, so the points of at least this weight are an interval; the second word chooses
    one of them. This is slice sampling (Neal 2003): the law is invariant, and every point of the
    line has positive probability.
    """
    up = down = _FURTHEST
    for i in range(at.size):
        above, below = hi[at[i]] - u[at[i]], u[at[i]] - lo[at[i]]
        if by[i] < 0:
            above, below = below, above
        size = abs(by[i])
        up = min(up, np.floor(above / size))
        down = min(down, np.floor(below / size))
    level = _log_weight(0.0, u, at, by, kind, scale, center) + elementary.log(_uniform(first))
    right = _reach(1.0, up, level, u, at, by, kind, scale, center)
    left = _reach(-1.0, down, level, u, at, by, kind, scale, center)
    t = np.int64(np.floor(_uniform(second) * (left + right + 1.0)) - left)
    for i in range(at.size):
        u[at[i]] += t * by[i]


@njit()
def walk(start, at, by, basis, law, bounds, words, direction, grows, state):
    """Move every chain along random sums of vectors of a lattice.

    Vector j has the entries `by` at `at`, from ``start[j]`` to ``start[j + 1]``; the first `basis`
    of them are a basis. `law` is (kind, scale, center) and `bounds` (lo, hi) of every variable,
    shape (n,). Each row of `words`, `direction`, `grows` and `state` is a chain: uint64 words,
    which are used up; int64 noise (n,), changed in place; the sum from which the next call
    continues; and whether another vector is added to it. A sum has at least one vector, and one
    more with probability 1/2 each time. Each vector has a random sign and comes from the basis or
    from the others with equal probability. Every lattice vector therefore has positive probability
    as the sum, from every state.
    """
    kind, scale, center = law
    lo, hi = bounds
    others = start.size - 1 - basis
    where, steps = np.empty(lo.size, dtype=np.int64), np.empty(lo.size, dtype=np.int64)
    for c in range(state.shape[0]):
        u, whole = state[c], direction[c]
        used = 0
        while used < words.shape[1]:
            word = words[c, used]
            if grows[c]:
                used += 1
                j = int(_uniform(word) * basis)
                if others and word & np.uint64(1):
                    j = basis + int(_uniform(word) * others)
                sign = 1 if word & np.uint64(2) else -1
                for i in range(start[j], start[j + 1]):
                    whole[at[i]] += sign * by[i]
                grows[c] = word & np.uint64(4) != 0
                continue
            if used + 2 > words.shape[1]:
                break
            count = 0
            for v in range(whole.size):
                if whole[v] != 0:
                    where[count], steps[count] = v, whole[v]
                    count += 1
            if count:
                one, two = where[:count], steps[:count]
                _move(u, one, two, kind, scale, center, lo, hi, word, words[c, used + 1])
                whole[:] = 0
            used += 2
            grows[c] = True
