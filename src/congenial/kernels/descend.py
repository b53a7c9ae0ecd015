"""Draws from a sum network: one pass from the roots down, integer arithmetic in every choice."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from congenial.kernels.compose import add_composition
from congenial.kernels.tape import scaled

ROOT = 0
LINK = 1
SPLIT = 2
COMPOSE = 3

# Words at the end of a row that only rare events use.
SPARE = 8


@njit(cache=True)
def choose(a, lo_a, b, lo_b, s, total, word):
    """Return l with probability a[l] * b[s - l] / total, but for width * 2^-61 in all.

    Weights become integers, by a power of two, and are compared with a uniform integer exactly.
    Where `total` exceeds the sum of the weights, the rest goes to the largest weight. Every l is
    visited whatever the outcome.
    """
    first = max(lo_a, s - lo_b - b.size + 1)
    last = min(lo_a + a.size - 1, s - lo_b)
    unit = math.ldexp(1.0, 62 - math.frexp(total)[1])
    target, _ = scaled(word, np.int64(total * unit))
    below = np.int64(0)
    passed = np.int64(0)
    best, best_weight = first, -1.0
    j = s - lo_b
    for l in range(first, last + 1):
        w = a[l - lo_a] * b[j - l]
        if w > best_weight:
            best, best_weight = l, w
        below += np.int64(w * unit)
        passed += below <= target
    chosen = first + passed
    return chosen if chosen <= last else best


@njit(cache=True)
def choose_near(a, lo_a, b, lo_b, s, total, word, start):
    """Return what `choose` returns in law, visiting l from `start` outwards until the choice.

    The work tells how far the choice lies from `start`: for studies, not for releases.
    """
    first = max(lo_a, s - lo_b - b.size + 1)
    last = min(lo_a + a.size - 1, s - lo_b)
    unit = math.ldexp(1.0, 62 - math.frexp(total)[1])
    target, _ = scaled(word, np.int64(total * unit))
    j = s - lo_b
    up = min(max(start, first), last)
    down = up - 1
    below = np.int64(0)
    while up <= last or down >= first:
        if up <= last:
            below += np.int64(a[up - lo_a] * b[j - up] * unit)
            if below > target:
                return up
            up += 1
        if down >= first:
            below += np.int64(a[down - lo_a] * b[j - down] * unit)
            if below > target:
                return down
            down -= 1
    return choose(a, lo_a, b, lo_b, s, total, word)


@njit(cache=True)
def draw(
    op,
    first,
    second,
    third,
    cls,
    members,
    left,
    right,
    lo,
    hi,
    offset,
    table,
    factor,
    middle,
    share,
    words,
    values,
):
    """Fill `values` (rows, slots) by running the program of a network once for each row.

    The program's operations are ROOT (slot `first` from class `cls`), LINK (slot `first` is
    `third` times slot `second`), SPLIT (slot `first` into slots `second` and `third`, a merge of
    class `cls`) and COMPOSE (slot `first`, and slot `second` that is not positive, each composed
    uniformly over the `cls` slots members[third], ...). `words` is uint64, one a ROOT or SPLIT and
    2 (cls - 1) a COMPOSE, used in order; those left over are spare. Where `middle` is not empty,
    the left part of a sum s of class c is looked for around ``middle[c] + share[c] * s``.
    """
    spare = np.empty(1, dtype=np.int64)
    for r in range(values.shape[0]):
        used = 0
        row = values[r]
        spare[0] = words.shape[1] - SPARE
        for i in range(op.size):
            if op[i] == LINK:
                row[first[i]] = third[i] * row[second[i]]
                continue
            if op[i] == COMPOSE:
                n = cls[i]
                up, down = row[first[i]], -row[second[i]]
                add_composition(up, n, 1, words[r], used, spare, row, members, third[i])
                used += n - 1
                add_composition(down, n, -1, words[r], used, spare, row, members, third[i])
                used += n - 1
                continue
            c = cls[i]
            word = words[r, used]
            used += 1
            if op[i] == ROOT:
                t = table[offset[c] : offset[c] + hi[c] - lo[c] + 1]
                row[first[i]] = _choose_root(t, lo[c], word)
                continue
            a, b = left[c], right[c]
            s = row[first[i]]
            total = table[offset[c] + s - lo[c]] * factor[c]
            wide_a = table[offset[a] : offset[a] + hi[a] - lo[a] + 1]
            wide_b = table[offset[b] : offset[b] + hi[b] - lo[b] + 1]
            if middle.size:
                start = np.int64(np.rint(middle[c] + share[c] * s))
                l = choose_near(wide_a, lo[a], wide_b, lo[b], s, total, word, start)
            else:
                l = choose(wide_a, lo[a], wide_b, lo[b], s, total, word)
            row[second[i]] = l
            row[third[i]] = s - l


@njit(cache=True)
def _choose_root(t, lo, word):
    """Return an index with probability in proportion to t, but for size * 2^-61 * size."""
    top = 0.0
    for k in range(t.size):
        top = max(top, t[k])
    room = math.frexp(float(t.size))[1]
    unit = math.ldexp(1.0, 62 - room - math.frexp(top)[1])
    total = np.int64(0)
    for k in range(t.size):
        total += np.int64(t[k] * unit)
    target, _ = scaled(word, total)
    below = np.int64(0)
    passed = 0
    for k in range(t.size):
        below += np.int64(t[k] * unit)
        passed += int(below <= target)
    return lo + passed
