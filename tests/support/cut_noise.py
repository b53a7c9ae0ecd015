"""Tree noise whose leaves are cut from below: every node's law, by listing and by convolutions.

It shares no code with the package. Leaves lie on -reach..reach; nodes' noise is the sum of theirs.
"""

from __future__ import annotations

import itertools

import numpy as np


def weight(kind, scale, t, *, pinned=False):
    """Weight of noise t, 1 everywhere where nothing is measured."""
    t = np.asarray(t, dtype=float)
    if pinned:
        return (t == 0.0).astype(float)
    if np.isinf(scale):
        return np.ones_like(t)
    if kind == "heavy":  # not log-concave
        return 1.0 / (1.0 + (t / scale) ** 2)
    return np.exp(-np.abs(t) / scale if kind == "laplace" else -0.5 * (t / scale) ** 2)


def listed(parents, kind, scales, pinned, cut, reach):
    """Return the law of every node's noise, shape (n, .), on -reach * n..reach * n, by listing."""
    parents = np.asarray(parents)
    n = parents.size
    leaves = [v for v in range(n) if v not in parents]
    noise = np.zeros((2 * reach + 1) ** len(leaves) * n, dtype=np.int64).reshape(-1, n)
    each = itertools.product(range(-reach, reach + 1), repeat=len(leaves))
    below = np.array(list(each), dtype=np.int64)
    for column, leaf in enumerate(leaves):
        v = leaf
        while v >= 0:
            noise[:, v] += below[:, column]
            v = parents[v]
    w = (noise >= cut).all(axis=1).astype(float)
    for v in range(n):
        w *= weight(kind, scales[v], noise[:, v], pinned=pinned[v])
    width = 2 * reach * n + 1
    counts = [np.bincount(noise[:, v] + reach * n, weights=w, minlength=width) for v in range(n)]
    return np.array(counts) / w.sum()


def convolved(parents, kind, scales, pinned, around, below, reach):
    """Return the values and the law of every node's noise, by convolutions.

    Leaves below the node are cut at `below`, all others at `around`.
    """
    n = len(parents)
    children = [[c for c in range(n) if parents[c] == v] for v in range(n)]
    down = [v for v in range(n) if parents[v] < 0]
    for v in down:
        down.extend(children[v])
    inside = _upwards(children, down, kind, scales, pinned, below, reach)
    outside = _upwards(children, down, kind, scales, pinned, around, reach)
    above, out = [None] * n, [None] * n
    for v in down:
        lo, own = inside[v]
        p, message = parents[v], np.ones(own.size)
        if p >= 0:
            first, rest = 0, np.ones(1)
            for c in children[p]:
                if c != v:
                    first, rest = first + outside[c][0], np.convolve(rest, outside[c][1])
            top = outside[p][0] + np.arange(above[p].size)
            around_sum = above[p] * weight(kind, scales[p], top, pinned=pinned[p])
            # of what is above less what is beside
            message = np.convolve(around_sum, rest[::-1])
            at = lo - (top[0] - first - rest.size + 1)
            message = message[at : at + own.size]
        above[v] = message / message.max()
        law = above[v] * own
        out[v] = lo + np.arange(own.size), law / law.sum()
    return out


def _upwards(children, down, kind, scales, pinned, cut, reach):
    found = [None] * len(children)
    for v in reversed(down):
        lo, sums = 0, np.ones(1)
        for c in children[v]:
            lo, sums = lo + found[c][0], np.convolve(sums, found[c][1])
        if not children[v]:
            lo, sums = -reach, (np.arange(-reach, reach + 1) >= cut[v]).astype(float)
        t = lo + np.arange(sums.size)
        message = sums * weight(kind, scales[v], t, pinned=pinned[v])
        found[v] = lo, message / message.max()
    return found


def extremes(parents, kind, scales, pinned, cut, tail, reach):
    """Return what every node's noise lies below, and above, with probability `tail` at most."""
    free = np.full(len(parents), -np.inf)
    shape = parents, kind, scales, pinned
    least = [t[np.cumsum(p) > tail][0] for t, p in convolved(*shape, cut, free, reach)]
    most = [t[::-1][np.cumsum(p[::-1]) > tail][0] for t, p in convolved(*shape, free, cut, reach)]
    return np.array(least), np.array(most)
