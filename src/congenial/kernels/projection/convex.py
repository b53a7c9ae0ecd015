"""The tree of integers of least cost, if every node's cost is convex in its own value.

A cost is given by its increments, ascending: ``slopes[offset[v] + i]`` is the cost for node v of
going from ``first[v] + i`` to the next value. The least cost of a family, as a function of its sum,
has the children's increments in ascending order (infimal convolution; Rockafellar 1970, section
5). Increments are therefore merged from the leaves upwards, and assigned from the roots downwards.
The benchmark row "point_table" times it.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit


@njit(inner=True)
def _merge(start, stop, children, first, offset, slopes, work):
    """Sort the increments of a family into `work`; return their number and the least sum."""
    size, least = 0, np.int64(0)
    for j in range(start, stop):
        c = children[j]
        least += first[c]
        for i in range(offset[c], offset[c + 1]):
            work[size] = slopes[i]
            size += 1
    work[:size].sort()
    return size, least


@njit()
def minimise(roots, starts, children, bottom_up, first, offset, slopes, out):
    """Fill `out` (n,) with the tree of least cost; `slopes` is overwritten.

    Children of node v are ``children[starts[v]:starts[v + 1]]``; among equal increments, those of
    the first child come first. `bottom_up` (n,) lists children before parents. All arrays are int64
    except `slopes`, float64. The ranges of values must contain some tree that adds up.
    """
    most = 0
    for v in range(first.size):
        size = 0
        for j in range(starts[v], starts[v + 1]):
            size += offset[children[j] + 1] - offset[children[j]]
        most = max(most, size)
    work = np.empty(most)
    for v in bottom_up:
        begin, stop = starts[v], starts[v + 1]
        if begin == stop:
            continue
        size, least = _merge(begin, stop, children, first, offset, slopes, work)
        k = first[v] - least
        for i in range(offset[v], offset[v + 1]):
            # a family cannot have a sum outside the ranges of its children
            if k < 0:
                slopes[i] = -np.inf
            elif k >= size:
                slopes[i] = np.inf
            else:
                slopes[i] += work[k]
            k += 1
    for v in roots:
        out[v] = first[v]
        for i in range(offset[v], offset[v + 1]):
            if slopes[i] < 0.0:
                out[v] += 1
    for v in bottom_up[::-1]:
        begin, stop = starts[v], starts[v + 1]
        if begin == stop:
            continue
        _, least = _merge(begin, stop, children, first, offset, slopes, work)
        taken = out[v] - least
        dearest = work[taken - 1] if taken > 0 else -np.inf
        cheaper = 0
        while cheaper < taken and work[cheaper] < dearest:
            cheaper += 1
        ties = taken - cheaper
        for j in range(begin, stop):
            c = children[j]
            out[c] = first[c]
            for i in range(offset[c], offset[c + 1]):
                if slopes[i] < dearest:
                    out[c] += 1
                elif slopes[i] == dearest and ties > 0:
                    out[c] += 1
                    ties -= 1
