"""Choices beyond windows, and the last acceptance: draws from envelopes leave them open.

Proof: `proofs/forest-draws.md`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction

import numpy as np

from congenial.kernels.network import descend
from congenial.kernels.network import envelopes as kernels
from congenial.kernels.network.messages import MERGE, PRODUCT
from congenial.kernels.numerics import laws
from congenial.randomness import (
    Enclosure,
    Probability,
    Randomness,
    around,
    geometric,
    precision,
)
from congenial.sum_network.draws import Chosen
from congenial.sum_network.exact.envelopes import Envelopes
from congenial.types import IntArray

# Further bits of a word whose choice is left open, so that weights are rounded up by little.
_MORE_BITS = 128
CHOICE = 62
# Factor of all shares: doubles make some of them exceed 1 by less.
BELOW = 1 - Decimal(2) ** -44
# Digits with which weights beyond windows are rounded up to integers.
_DIGITS = 80


def chance(of: Chosen) -> Decimal:
    """Return the probability with which a value was chosen, in the current precision."""
    weight = Decimal(of.weight.numerator) / Decimal(of.weight.denominator)
    if not of.ratio:
        return weight
    ratio = Decimal(of.ratio.numerator) / Decimal(of.ratio.denominator)
    return weight * (1 - ratio) * ratio**of.steps


def choose(of: Envelopes, op: int, c: int, s: int, word: int, rng: Randomness) -> Chosen | None:
    """Repeat a choice that a kernel left open: a root's value, or the left part of a sum s.

    Returns None if the word chooses no value; the draw then begins again.
    """
    more, last = rng.bits(2).tolist()
    more = more << 64 | last
    target = (word >> int(descend.UNUSED) << _MORE_BITS) + more
    if op == descend.ROOT:
        inside, beyond = int(_row(of, c)[-1]), _beyond_root(of, c)
    else:
        inside, beyond = _inside(of, c, s), _beyond_split(of, c, s)
    target -= inside << _MORE_BITS
    if target < 0:
        raise AssertionError("the kernel's row ends before the word")
    with localcontext(prec=_DIGITS, Emin=MIN_EMIN, Emax=MAX_EMAX):
        for first, p, ratio, step in beyond:
            # rounded up: decimals err by less than one unit; impossible values have no weight
            weight = int(p * (1 << CHOICE + _MORE_BITS)) + 2 if p else 0
            if target >= weight:
                target -= weight
                continue
            share = Fraction(weight, 1 << CHOICE + _MORE_BITS)
            if not step:
                return Chosen(first, share)
            steps = geometric(ratio, rng)
            return Chosen(first + step * steps, share, ratio, steps)
    return None


def _beyond_root(of: Envelopes, c: int) -> Iterator[tuple[int, Decimal, Fraction, int]]:
    """Yield (first value, probability, ratio, step) of the values beyond a root's table."""
    unit = Decimal(root_unit(of, c)) / (1 << CHOICE)
    for i, end, step in ((0, of.lo[c] - 1, -1), (2, of.hi[c] + 1, 1)):
        edge, ratio = of.tails[c, i : i + 2].tolist()
        if edge:
            r = Decimal(ratio)
            yield int(end), Decimal(edge) * r / (1 - r) * unit, Fraction(ratio), step


def _beyond_split(of: Envelopes, c: int, s: int) -> Iterator[tuple[int, Decimal, Fraction, int]]:
    """Yield (first value, probability, ratio, step) of left parts beyond the windows.

    A step of 0 stands for the first value alone.
    """
    a, b = int(of.network.left[c]), int(of.network.right[c])
    whole = value(of, c, s) * Decimal(float(of.factor[c]))
    ends = [int(of.lo[a]), int(of.hi[a]), s - int(of.hi[b]), s - int(of.lo[b])]
    first, last = min(ends[0], ends[2]), max(ends[1], ends[3])
    inside = range(0)
    if of.lo[c] <= s <= of.hi[c]:
        inside = range(max(ends[0], ends[2]), min(ends[1], ends[3]) + 1)
    for at, step in ((first - 1, -1), (last + 1, 1)):
        p = value(of, a, at) * value(of, b, s - at)
        if p:
            near, far = (0, 2) if step < 0 else (2, 0)
            ratio = Fraction(float(of.tails[a, near + 1])) * Fraction(float(of.tails[b, far + 1]))
            rest = 1 - Decimal(ratio.numerator) / Decimal(ratio.denominator)
            yield at, p / whole / rest, ratio, step
    for left in range(first, last + 1):
        if left not in inside:
            yield left, value(of, a, left) * value(of, b, s - left) / whole, Fraction(0), 0


def value(of: Envelopes, c: int, x: int) -> Decimal:
    """Return the envelope of a class, in the current precision."""
    lo, hi = int(of.lo[c]), int(of.hi[c])
    if lo <= x <= hi:
        return Decimal(float(of.table[of.offset[c] + x - lo]))
    i, steps = (0, lo - x) if x < lo else (2, x - hi)
    edge, ratio = of.tails[c, i : i + 2].tolist()
    return Decimal(edge) * Decimal(ratio) ** steps if edge else Decimal(0)


def root_unit(of: Envelopes, c: int) -> float:
    """Return the factor by which the kernel multiplies a root's table."""
    table = of.of_class(c)
    total = float(np.cumsum(np.append(of.beyond[c], table))[-1])
    return float(descend.WHOLE / (total * (1.0 + (table.size + 16.0) * 2.0**-52)))


def _row(of: Envelopes, c: int) -> IntArray:
    """Return the cumulated integer weights of a root's table, as the kernel has them."""
    return np.cumsum((of.of_class(c) * root_unit(of, c)).astype(np.int64) + 1)


def _weights(of: Envelopes, c: int, s: int, first: int, last: int) -> IntArray:
    """Return the integer weights of left parts of a sum, as the kernel has them."""
    a, b = of.network.left[c], of.network.right[c]
    unit = descend.BELOW / (of.table[of.offset[c] + s - of.lo[c]] * of.factor[c])
    x = of.table[of.offset[a] + first - of.lo[a] : of.offset[a] + last + 1 - of.lo[a]]
    y = of.table[of.offset[b] + s - last - of.lo[b] : of.offset[b] + s - first + 1 - of.lo[b]]
    return np.asarray((x * y[::-1] * unit).astype(np.int64) + 1)


def _inside(of: Envelopes, c: int, s: int) -> int:
    """Return the sum of the integer weights inside all windows."""
    if not of.lo[c] <= s <= of.hi[c]:
        return 0
    a, b = of.network.left[c], of.network.right[c]
    first, last = max(of.lo[a], s - of.hi[b]), min(of.hi[a], s - of.lo[b])
    return int(_weights(of, c, s, int(first), int(last)).sum()) if first <= last else 0


def share(of: Envelopes, values: IntArray, rare: Mapping[int, Chosen]) -> Probability:
    """Return the weight of a draw over that of the envelopes that led to it, at most 1.

    `values` (places,) are those after the last choice, and `rare` has the choices beyond windows,
    by operation. What lies above a message that is sent on, or below one that is received, belongs
    to other networks.
    """
    chosen, seen = Counter[tuple[int, ...]](), Counter[tuple[int, int]]()
    beyond = list[tuple[tuple[int, ...], Chosen]]()
    if of.network.sent.size:
        own, sent, given = int(of.network.slot_class[0]), int(of.network.sent[0]), int(values[0])
        seen.update(_parts(of, sent, given if sent == own else int(of.network.sign[own]) * given))
    else:
        seen.update(each for c in of.network.fixed.tolist() for each in _parts(of, c, 0))
    for i, *key in _choices(of, values):
        if i in rare:
            beyond.append((tuple(key), rare[i]))
        else:
            chosen[tuple(key)] += 1
        seen.update(_below(of, *key))

    def probability(level: int) -> Enclosure:
        with precision(level):
            out = Decimal(1)
            for key, times in chosen.items():
                out *= (BELOW * _share_of_choice(of, *key)) ** times
            for key, found in beyond:
                out *= BELOW * _envelopes(of, *key) / chance(found)
            for (c, x), times in seen.items():
                out *= (BELOW * _share_of_class(of, c, x)) ** times
            return around(out, level)

    return probability


def _choices(of: Envelopes, values: IntArray) -> Iterator[tuple[int, ...]]:
    """Yield (operation, class, value) of a root, and (operation, class, sum, left part) of a split.

    Places are used again, so the program is read backwards, and sums are added up from their parts.
    """
    at = values.tolist()
    columns = (column.tolist() for column in of.network.program)
    program = list(enumerate(zip(*columns, strict=True)))[of.network.begin :]
    for i, (op, first, second, third, c) in reversed(program):
        if op == descend.ROOT:
            yield i, c, at[first]
        elif op == descend.SPLIT:
            left = at[second]
            at[first] = left + at[third]
            yield i, c, at[first], left


def _below(of: Envelopes, c: int, s: int, left: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield the weights and products, with their values, that a choice has settled."""
    if left is None:
        yield from _parts(of, c, s)
        return
    yield from _parts(of, int(of.network.left[c]), left)
    yield from _parts(of, int(of.network.right[c]), s - left)


def _parts(of: Envelopes, c: int, x: int) -> Iterator[tuple[int, int]]:
    """Yield a class of weights, or a product and its factors, with their values."""
    network, open_parts = of.network, [(c, x)]
    while open_parts:
        c, x = open_parts.pop()
        if network.ctype[c] == MERGE or c in network.received:  # its own choice settles it
            continue
        yield c, x
        if network.ctype[c] == PRODUCT:
            open_parts.append((int(network.left[c]), x))
            open_parts.append((int(network.right[c]), int(network.sign[c]) * x))


def _envelopes(of: Envelopes, c: int, s: int, left: int | None = None) -> Decimal:
    """Return the probability by the envelopes of a root's value, or of the left part of a sum."""
    if left is None:
        return value(of, c, s) * Decimal(root_unit(of, c)) / (1 << CHOICE)
    a, b = int(of.network.left[c]), int(of.network.right[c])
    whole = value(of, c, s) * Decimal(float(of.factor[c]))
    return value(of, a, left) * value(of, b, s - left) / whole


def _share_of_choice(of: Envelopes, c: int, s: int, left: int | None = None) -> Decimal:
    """Return the probability by the envelopes over that of the kernel's choice."""
    if left is None:
        row, k = _row(of, c), s - int(of.lo[c])
        weight = int(row[k]) - (int(row[k - 1]) if k else 0)
    else:
        weight = int(_weights(of, c, s, left, left)[0])
    given = (c, s) if left is None else (c, s, left)
    return _envelopes(of, *given) * (1 << CHOICE) / weight


def _share_of_class(of: Envelopes, c: int, x: int) -> Decimal:
    """Return a weight over its envelope, or a product of envelopes over that of the product."""
    network = of.network
    if network.ctype[c] == PRODUCT:
        a, b, sign = int(network.left[c]), int(network.right[c]), int(network.sign[c])
        both = value(of, a, x) * value(of, b, sign * x)
        return both / (value(of, c, x) * Decimal(float(of.factor[c]))) if both else both
    v = int(network.variable[c])
    weight = network.unary.at(np.array([v]))
    (kind,), (center,), (scale,) = weight.kind, weight.center, weight.scale
    if not weight.lo[0] <= x <= weight.hi[0]:
        return Decimal(0)
    tilt = Decimal(float(network.tilt[v]))
    if kind == laws.GEOMETRIC_SUM:
        return _share_of_geometric_sum(of, c, x, int(center), float(scale), tilt)
    d, width = abs(x - int(center)), Decimal(float(scale)) if kind != laws.FLAT else Decimal(1)
    fall = d * d / (2 * width * width) if kind == laws.GAUSSIAN else d / width
    log = tilt * x - (fall if kind != laws.FLAT else 0) - Decimal(float(of.log_scale[c]))
    return log.exp() / value(of, c, x)


def _share_of_geometric_sum(
    of: Envelopes, c: int, x: int, n: int, scale: float, tilt: Decimal
) -> Decimal:
    """Return the weight C(k + n - 1, k) q^k of k = abs(x) over its envelope.

    Both are taken relative to the largest entry, which exceeds its weight by little.
    """
    inverse = inverse_of(scale)
    x1, above = largest_entry(of, c, inverse)
    k, k1, sign = abs(x), abs(x1), 1 if of.hi[c] > 0 else -1
    out = Decimal(1)
    for j in range(min(k, k1), max(k, k1)):
        out = out * (j + n) / (j + 1)
    out = out if k >= k1 else 1 / out
    out *= ((k - k1) * (sign * tilt - inverse)).exp()
    return out * value(of, c, x1) / above / value(of, c, x)


def inverse_of(scale: float) -> Decimal:
    """Return 1 / scale, in the current precision."""
    return 1 / Decimal(scale) if math.isfinite(scale) else Decimal(0)


def largest_entry(of: Envelopes, c: int, inverse: Decimal) -> tuple[int, Decimal]:
    """Return where a sum of geometric variables has its largest entry, and a bound.

    In the scale of its table, that entry over the bound is at most the weight there.
    """
    x = int(of.lo[c]) + int(of.of_class(c).argmax())
    raised = Decimal(kernels.ABOVE + kernels.NAT * (float(inverse) * abs(x) + 4.0))
    return x, 1 + 2 * raised
