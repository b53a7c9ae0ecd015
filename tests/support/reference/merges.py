"""Draws from envelopes of all merges (`congenial.sum_network.exact`), see `proofs/forest-draws.md`.

Compositions are integer arithmetic in the product, too, and are its own.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

from congenial.kernels.network import compositions, descend, differences
from congenial.kernels.network import envelopes as kernels
from congenial.kernels.network.messages import MERGE, PRODUCT
from congenial.kernels.numerics import laws
from support.reference.numbers import Words, below, decimal, many_digits, picked

BELOW = 1 - Decimal(2) ** -44
# Draws whose compositions read one tape.
_TOGETHER = 64


def draw(of, rows, words: Words):
    """Draw all variables `rows` times; the same as `exact.sample`."""
    out, left = {}, list(range(rows))
    while left:
        tried = _attempts(of, len(left), words)
        out |= {row: values for row, values in zip(left, tried, strict=True) if values is not None}
        left = [row for row in left if row not in out]
    return _finished(of, [out[row] for row in range(rows)], words)


def attempt(of, rows, words: Words, roots=None):
    """Try once to draw all variables, `rows` times; the same as `exact.attempt`."""
    tried = _attempts(of, rows, words, roots)
    accepted = np.array([values is not None for values in tried], dtype=np.bool_)
    return accepted, _finished(of, [values for values in tried if values is not None], words)


def _finished(of, chosen, words):
    """Compute the values that follow from choices; returns all variables, shape (rows, n)."""
    network = of.network
    if not chosen:
        return np.zeros((0, network.n), dtype=np.int64)
    values = np.array(chosen, dtype=np.int64).T.copy()
    _split(network, values, words)
    _compose(network, values, words)
    values[network.moved] += network.ends[:, None]
    if of.freed is not None:
        of.freed.add_up(values)
    return values[: network.n].T


def _attempts(of, columns, words, roots=None):
    """Values of every place for each draw; None if it is refused."""
    op = of.network.op[of.network.begin :]
    choices = int(((op == descend.ROOT) | (op == descend.SPLIT)).sum())
    every = words.take(choices * columns).reshape(choices, columns)
    with many_digits():
        given = [0] * columns if roots is None else roots.tolist()
        made = [
            _attempt(of, every[:, column].tolist(), words, root)
            for column, root in enumerate(given)
        ]
        last = words.take(columns).tolist()
        return [
            values if values is not None and below(word, p, words) else None
            for word, (values, p) in zip(last, made, strict=True)
        ]


def _attempt(of, given, words, root):
    """Make all choices of one draw; return the values and the probability of acceptance."""
    network, values, p = of.network, [root] + [0] * (of.network.places - 1), Decimal(1)
    if network.sent.size:  # the value of variable 0 is given, or that of the sum below it
        own, sent = int(network.slot_class[0]), int(network.sent[0])
        p = _settled(of, sent, root if sent == own else int(network.sign[own]) * root)
    else:
        for c in network.fixed.tolist():
            p *= _settled(of, c, 0)
    columns = (column[network.begin :].tolist() for column in network.program)
    for op, first, second, third, c in zip(*columns, strict=True):
        if op in (descend.DIFFERENCE, descend.COMPOSE):
            break
        if op == descend.LINK:
            values[first] = third * values[second]
            continue
        s = None if op == descend.ROOT else values[first]
        found = _chosen(of, c, s, given.pop(0), words)
        if found is None:
            return None, None
        x, chance = found
        p *= BELOW * decimal(_share(of, c, s, x)) / chance
        if s is None:
            values[first] = x
            p *= _settled(of, c, x)
            continue
        values[second], values[third] = x, s - x
        p *= _settled(of, int(network.left[c]), x) * _settled(of, int(network.right[c]), s - x)
    return values, p


def _chosen(of, c, s, word, words):
    """Choose a root's value, or the left part of a sum s; return it and its probability."""
    outcomes, weights = _inside(of, c, s)
    at, beyond = picked(weights, word)
    if at is not None:
        return int(outcomes[at]), decimal(Fraction(int(weights[at]), 1 << 62))
    one, other = words.take(2).tolist()
    target = (beyond << 128) + (one << 64) + other
    for x, weight, ratio, step in _outside(of, c, s, set(outcomes.tolist())):
        # rounded up, so that no possible value is lost
        whole = math.floor(weight * (1 << 190)) + 2 if weight else 0
        if target >= whole:
            target -= whole
            continue
        chance, k = decimal(Fraction(whole, 1 << 190)), 0
        if step:
            while below(words.word(), decimal(ratio), words):
                k += 1
            chance *= decimal(1 - ratio) * decimal(ratio) ** k
        return x + step * k, chance
    return None


def _inside(of, c, s):
    """Values of a root or left parts inside windows, those near the mean first, and integers."""
    network, lo, hi = of.network, of.lo, of.hi
    if s is None:
        table = of.of_class(c)
        unit = _root_unit(of, c)
        return np.arange(lo[c], hi[c] + 1), (table * unit).astype(np.int64) + 1
    a, b = network.left[c], network.right[c]
    low, high = max(lo[a], s - hi[b]), min(hi[a], s - lo[b])
    if not lo[c] <= s <= hi[c] or low > high:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    near = int(np.rint(of.near.middle[c] + of.near.share[c] * float(s)))
    near = min(max(near, low), high)
    begin, end = max(low, near - of.near.reach[c]), min(high, near + of.near.reach[c]) + 1
    outcomes = np.r_[begin:end, low:begin, end : high + 1]
    unit = descend.BELOW / (of.of_class(c)[s - lo[c]] * of.factor[c])
    products = of.of_class(a)[outcomes - lo[a]] * of.of_class(b)[s - outcomes - lo[b]]
    return outcomes, (products * unit).astype(np.int64) + 1


def _outside(of, c, s, inside):
    """Values beyond windows: (first value, weight, ratio, step), where a step of 0 is one value."""
    if s is None:
        for side, at, step in ((0, of.lo[c] - 1, -1), (2, of.hi[c] + 1, 1)):
            edge, ratio = (Fraction(x) for x in of.tails[c, side : side + 2].tolist())
            if edge:
                yield int(at), edge * ratio / (1 - ratio) * _unit_of_root(of, c), ratio, step
        return
    a, b = int(of.network.left[c]), int(of.network.right[c])
    ends = of.lo[a], of.hi[a], s - of.hi[b], s - of.lo[b]
    first, last = int(min(ends[0], ends[2])), int(max(ends[1], ends[3]))
    for at, step, mine, others in ((first - 1, -1, 1, 3), (last + 1, 1, 3, 1)):
        ratio = Fraction(of.tails[a, mine]) * Fraction(of.tails[b, others])
        weight = _share(of, c, s, at)
        if weight:
            yield at, weight / (1 - ratio), ratio, step
    for left in range(first, last + 1):
        if left not in inside:
            yield left, _share(of, c, s, left), Fraction(0), 0


def _share(of, c, s, x):
    """Probability by the envelopes of a root's value, or of the left part of a sum s."""
    if s is None:
        return _envelope(of, c, x) * _unit_of_root(of, c)
    a, b = int(of.network.left[c]), int(of.network.right[c])
    whole = _envelope(of, c, s) * Fraction(of.factor[c])
    return _envelope(of, a, x) * _envelope(of, b, s - x) / whole


def _root_unit(of, c):
    total = float(of.beyond[c])
    for entry in of.of_class(c).tolist():
        total += entry
    return 2.0**62 / (total * (1.0 + (of.of_class(c).size + 16.0) * 2.0**-52))


def _unit_of_root(of, c):
    return Fraction(_root_unit(of, c)) / (1 << 62)


def _envelope(of, c, x):
    lo, hi = int(of.lo[c]), int(of.hi[c])
    if lo <= x <= hi:
        return Fraction(of.of_class(c)[x - lo])
    side, steps = (0, lo - x) if x < lo else (2, x - hi)
    edge, ratio = of.tails[c, side : side + 2].tolist()
    return Fraction(edge) * Fraction(ratio) ** steps


def _settled(of, c, x):
    """Weights and products that a value settles, over their envelopes."""
    network = of.network
    if network.ctype[c] == MERGE:  # its own choice comes later
        return Decimal(1)
    if network.ctype[c] == PRODUCT:
        a, b, y = int(network.left[c]), int(network.right[c]), int(network.sign[c]) * x
        both = _envelope(of, a, x) * _envelope(of, b, y)
        own = both / (_envelope(of, c, x) * Fraction(of.factor[c]))
        return BELOW * decimal(own) * _settled(of, a, x) * _settled(of, b, y)
    return BELOW * _weight(of, c, x) / decimal(_envelope(of, c, x))


def _weight(of, c, x):
    """True weight of a variable at x, in the scale of its table."""
    network, v = of.network, int(of.network.variable[c])
    unary, tilt = network.unary, Decimal(float(of.network.tilt[v]))
    kind, scale, center = unary.kind[v], float(unary.scale[v]), int(unary.center[v])
    if not unary.lo[v] <= x <= unary.hi[v]:
        return Decimal(0)
    inverse = 1 / Decimal(scale) if math.isfinite(scale) else Decimal(0)
    if kind == laws.GEOMETRIC_SUM:
        # in the scale in which the largest entry is a bound on the weight there
        top = int(of.lo[c]) + int(of.of_class(c).argmax())
        raised = kernels.ABOVE + kernels.NAT * (float(inverse) * abs(top) + 4.0)
        ways = Fraction(math.comb(abs(x) + center - 1, abs(x)))
        ways /= math.comb(abs(top) + center - 1, abs(top))
        steps = abs(x) - abs(top)
        fall = tilt * (x - top) - inverse * steps
        highest = decimal(_envelope(of, c, top)) / (1 + 2 * Decimal(raised))
        return decimal(ways) * fall.exp() * highest
    away = Decimal(abs(x - center))
    fall = {laws.LAPLACE: away * inverse, laws.GAUSSIAN: away * away * inverse * inverse / 2}
    log_scale = Decimal(float(of.log_scale[c]))
    return (tilt * x - fall.get(int(kind), Decimal(0)) - log_scale).exp()


def _split(network, values, words):
    """Split sums of many like variables without tables, see `kernels.network.differences`."""
    at = np.flatnonzero(network.op == descend.DIFFERENCE)
    if not at.size:
        return
    tape = words.take(20 * at.size * values.shape[1] + 60).tolist()
    for i in at.tolist():
        first, second, third, c = (int(column[i]) for column in network.program[1:])
        v = network.variable[network.left[c]]
        n, scale = int(network.unary.center[v]), float(network.unary.scale[v])
        for column in range(values.shape[1]):
            s = int(values[first, column])
            j = _difference(abs(s), n, scale, tape, words)
            values[second, column], values[third, column] = j + max(s, 0), -(j + max(-s, 0))


def _difference(s, n, scale, tape, words):
    """Draw the smaller of two sums of n geometric variables that differ by s."""
    mode, above, low = (int(k) for k in differences.place_blocks(s, n, 1.0 / scale))
    while True:
        total = above + low
        while True:
            u, rest = divmod(tape.pop(0) * total, 1 << 64)
            if rest >= (1 << 64) % total:
                break
        block, coins = 0, tape.pop(0)
        while coins & 1:
            block, coins = block + 1, coins >> 1
            assert block < 64
        word = tape.pop(0)
        j = mode + block * above + u if u < above else mode - 1 - (block * low + u - above)
        if j < 0:
            continue
        ways = [math.comb(k + n - 1, k) * math.comb(k + s + n - 1, k + s) for k in (j, mode)]
        with many_digits():
            p = decimal(Fraction(*ways)) * (2 * (mode - j) / Decimal(scale)).exp() * (1 << block)
            if below(word, p * (1 - Decimal(2) ** -40), words):
                return j


def _compose(network, values, words):
    at = np.flatnonzero(network.op == descend.COMPOSE)
    if not at.size:
        return
    first, second, third, size = (np.ascontiguousarray(c[at]) for c in network.program[1:])
    begins = range(0, values.shape[1], _TOGETHER)
    parts = [values[:, begin : begin + _TOGETHER].copy() for begin in begins]
    counts = [
        int(compositions.count_words(first, second, size, part, 0, part.shape[1])) for part in parts
    ]
    tapes = np.split(words.take(sum(counts)), np.cumsum(counts)[:-1])
    for begin, part, first_words in zip(begins, parts, tapes, strict=True):
        tape = first_words
        while True:
            tape.setflags(write=False)
            part[network.members] = 0
            args = first, second, third, size, network.members, tape, part, 0, part.shape[1]
            if compositions.compose(*args) <= tape.size:
                break
            tape = np.append(tape, words.take(tape.size // 8 + 64))
        values[:, begin : begin + _TOGETHER] = part
