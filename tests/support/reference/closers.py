"""Draws that leave closers out (`congenial.sum_network.closing`), see `proofs/closing-draws.md`."""

from __future__ import annotations

from decimal import Decimal

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network.closing import closing_draws
from support.reference import merges
from support.reference.numbers import Words, below, decimal, many_digits


def draw(every, size, rows, words: Words):
    """Draw all variables `rows` times; the same as `closing_draws.sample`."""
    out = np.zeros((rows, size), dtype=np.int64)
    for one in every:
        count, drawn = rows * one.variables.shape[0], []
        at_once = count
        while len(drawn) < count:
            drawn += _attempts(one, at_once, words)
            at_once *= 2
        out[:, one.variables] = np.array(drawn[:count]).reshape(rows, *one.variables.shape)
    return out


def _attempts(one, rows, words):
    """Try to draw the variables of connected sums; return those that are accepted."""
    forest = one.closing.free.forest
    _, values = merges.attempt(one.free, rows, words)
    values = values * forest.orientation
    closers = values @ one.closing.multiples.T
    if closers.shape[1]:
        given = words.take(closers.shape[0]).tolist()
        with many_digits():
            kept = [
                below(word, _share(one, row.tolist()), words)
                for word, row in zip(given, closers, strict=True)
            ]
        values, closers = values[kept], closers[kept]
    for number, part in enumerate(one.closing.trees):
        own = closers[:, number]
        if number in one.trees:
            tree = one.trees[number]
            kept, below_it = merges.attempt(tree, own.size, words, roots=own)
            values, closers = values[kept], closers[kept]
            added = below_it[:, : part.forest.n] * part.forest.orientation
        else:
            added = own[:, None]
        values = np.hstack((values, added))
    return list(values)


def _share(one, closers):
    """Probability with which closers are accepted."""
    p = Decimal(1)
    for number, x in enumerate(closers):
        unary = one.weights
        if not unary.lo[number] <= x <= unary.hi[number]:
            return Decimal(0)
        if number in one.trees:
            tree = one.trees[number]
            c = int(tree.network.slot_class[0])
            highest = closing_draws.height(tree)
            p *= decimal(merges._envelope(tree, c, x)) / Decimal(highest)
            continue
        width, u = Decimal(float(unary.scale[number])), abs(x - int(unary.center[number]))
        if unary.kind[number] != laws.FLAT:
            normal = unary.kind[number] == laws.GAUSSIAN
            p *= (-(u * u / (2 * width * width) if normal else u / width)).exp()
    return p
