"""Equal subtrees get equal numbers: the classes of a sum forest, and the program that draws it.

Benchmark rows: `everywhere`, `bounded`.

Classes are hash-consed (Ershov 1958; Goto 1974). One walk over the sums, lower sums first, looks up
every weight, merge and product in one hash table, and makes a new class only if it is not there.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.descend import COMPOSE, LINK, ROOT, SPLIT
from congenial.kernels.network.families import common, sort
from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.numerics.compiling import njit

# Kinds of keys used only here: a sum of geometric variables, a fixed number.
GEOMETRIC = 3
POINT = 4
# Kinds of composition of like siblings: none, as differences, upwards or downwards from bounds
# (unmeasured siblings), upwards or downwards from zero (measured siblings).
NOT, BOTH_WAYS, UPWARDS, DOWNWARDS, FROM_ZERO, TO_ZERO = range(6)
# Entries of the smallest hash table.
FEWEST = 256
LOW = (1 << 32) - 1
# Integers of one type, so that a kernel is compiled once.
_int = np.int64
# Places in `state`.
CLASSES, MASK, SLOTS, BEGIN, STOP, COMPOSED, ROOTS, AGAIN, MOST = range(9)
# The last composed run: its class, its length and the three classes made from it.
RUN = 9
STATE = 14
# Fewest like members in a row that are drawn as compositions.
LEAST_RUN = 4


@njit(inner=True)
def _place(a, b, c, d, mask):
    """Return where the search for a key begins in a hash table."""
    x = np.uint64(np.uint32(a)) | np.uint64(np.uint32(b)) << np.uint64(32)
    y = np.uint64(np.uint32(c)) | np.uint64(np.uint32(d)) << np.uint64(32)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(32)) ^ y) * np.uint64(0xBF58476D1CE4E5B9)
    return np.int64((x ^ (x >> np.uint64(32))) & np.uint64(mask))


@njit(inner=True)
def _found(keys, held, state, a, b, c, d):
    """Return the number of a key; a new one is entered."""
    at = _place(a, b, c, d, state[MASK])
    while held[at] > 0:
        k = held[at] - 1
        if keys[k, 0] == a and keys[k, 1] == b and keys[k, 2] == c and keys[k, 3] == d:
            return np.int64(k)
        at = (at + 1) & state[MASK]
    count = state[CLASSES]
    keys[count, 0], keys[count, 1], keys[count, 2], keys[count, 3] = a, b, c, d
    keys[count, 4] = 0
    state[CLASSES] += 1
    held[at] = count + 1
    if 2 * count < state[MASK]:
        return count
    # spread the table over more of `held`
    mask = 4 * state[MASK] + 3
    for i in range(mask + 1):
        held[i] = 0
    for k in range(count + 1):
        at = _place(_int(keys[k, 0]), _int(keys[k, 1]), _int(keys[k, 2]), _int(keys[k, 3]), mask)
        while held[at] > 0:
            at = (at + 1) & mask
        held[at] = k + 1
    state[MASK] = mask
    return count


@njit(inner=True)
def _unary(row, tilt, keys, held, state):
    """Return the class of a weight with a tilt."""
    bits = np.float64(tilt).view(np.int64)
    low, high = _int(np.int32(bits & LOW)), bits >> 32
    return _found(keys, held, state, _int(UNARY), _int(row), low, high)


@njit(inner=True)
def _split(left, right, made, slot_class, keys, op, program, state):
    """Write the choice of class `made` that gives slots `left` and `right`; return its slot."""
    slot = state[SLOTS]
    begin = state[BEGIN] - 1
    op[begin] = SPLIT
    program[0, begin], program[1, begin] = slot, left
    program[2, begin], program[3, begin] = right, made
    slot_class[slot] = made
    keys[made, 4] += 1
    state[SLOTS] = slot + 1
    state[BEGIN] = begin
    return slot


@njit(inner=True)
def _lasting(state):
    """Stop reusing slots: compositions run last and still read them."""
    over = max(state[MOST] - state[SLOTS], _int(0))
    state[SLOTS] += over
    state[AGAIN] -= over


@njit(inner=True)
def _compose_into(up, down, length, op, program, state):
    """Write the composition of the next members, from the slots of both their totals, or -1."""
    stop = state[STOP]
    op[stop] = COMPOSE
    program[0, stop], program[1, stop] = up, down
    program[2, stop], program[3, stop] = state[COMPOSED], length
    state[COMPOSED] += length
    state[STOP] = stop + 1


@njit(inner=True)
def _run(c, length, kind, slot_class, keys, held, op, program, state):
    """Write the composition of the next members, all of class `c`; return its class and slot."""
    if state[RUN] != c or state[RUN + 1] != length:
        up = down = made = np.int64(-1)
        if kind != TO_ZERO:
            made = up = _found(keys, held, state, _int(GEOMETRIC), c, length, _int(1))
        if kind != FROM_ZERO:
            made = down = _found(keys, held, state, _int(GEOMETRIC), c, length, _int(-1))
        if kind == BOTH_WAYS:
            made = _found(keys, held, state, _int(MERGE), up, down, _int(1))
        state[RUN], state[RUN + 1], state[RUN + 2], state[RUN + 3] = c, length, up, down
        state[RUN + 4] = made
    _lasting(state)
    above = below = np.int64(-1)
    if state[RUN + 2] >= 0:
        above, slot_class[state[SLOTS]] = state[SLOTS], state[RUN + 2]
        state[SLOTS] += 1
    if state[RUN + 3] >= 0:
        below, slot_class[state[SLOTS]] = state[SLOTS], state[RUN + 3]
        state[SLOTS] += 1
    _compose_into(above, below, length, op, program, state)
    made = state[RUN + 4]
    if kind == BOTH_WAYS:
        return made, _split(above, below, made, slot_class, keys, op, program, state)
    return made, max(above, below)


@njit(inner=True)
def _bounded_run(c, length, bounds, upwards, slot_class, keys, held, op, program, state):
    """Write the composition of the next members, each of which has a bound and no weight.

    The members minus their bounds, whose sum is `bounds`, are a uniform composition of their sum,
    as for geometric variables. Returns the class and the slot of the sum.
    """
    low, high = _int(np.int32(bounds & LOW)), _int(np.int32(bounds >> 32))
    point = _found(keys, held, state, _int(POINT), c, low, high)
    # not shared by runs with other bounds, whose sums have other windows
    side = point + 1 if upwards else -point - 1
    whole = _found(keys, held, state, _int(GEOMETRIC), c, length, side)
    made = _found(keys, held, state, _int(MERGE), whole, point, _int(1))
    _lasting(state)
    parts, none = state[SLOTS], _int(-1)
    slot_class[parts], slot_class[parts + 1] = whole, point
    state[SLOTS] = parts + 2
    up, down = (parts, none) if upwards else (none, parts)
    _compose_into(up, down, length, op, program, state)
    return made, _split(parts, parts + 1, made, slot_class, keys, op, program, state)


@njit(inner=True)
def _compose(family, size, weights, slot_class, members, keys, held, op, program, state):
    """Replace each run of like members by one, and note the classes of all other members.

    The members of the family are sorted. Returns the number of members that remain.
    """
    code, row, way, bound = weights
    i = kept = 0
    while i < size:
        c = family[i] >> 32
        j = i + 1
        while j < size and family[j] >> 32 == c:
            j += 1
        kind = _int(way[keys[c, 1]]) if keys[c, 0] == UNARY else _int(NOT)
        bounded = UPWARDS <= kind <= DOWNWARDS
        if bounded:
            low, high = _int(keys[c, 2]), _int(keys[c, 3])
            composed = (high < 0) == (kind == UPWARDS) and (low | high) != 0
            if composed and j - i == 1:  # a single member keeps its own weight
                r = _int(row[code[family[i] & LOW]])
                c = _found(keys, held, state, _int(UNARY), r, low, high)
                composed = False
        else:
            composed = kind != NOT and j - i >= LEAST_RUN
        if not composed:
            for p in range(i, j):
                slot_class[family[p] & LOW] = c
                family[kept] = c << 32 | family[p] & LOW
                kept += 1
            i = j
            continue
        bounds = _int(0)
        for p in range(i, j):
            members[state[COMPOSED] + p - i] = family[p] & LOW
            bounds += bound[code[family[p] & LOW]]
        if bounded:
            made, slot = _bounded_run(
                c, j - i, bounds, kind == UPWARDS, slot_class, keys, held, op, program, state
            )
        else:
            made, slot = _run(c, j - i, kind, slot_class, keys, held, op, program, state)
        family[kept] = made << 32 | slot
        kept += 1
        i = j
    return kept


@njit(inline="always", inner=True)
def _merge(family, spare, size, slot_class, keys, held, op, program, state):
    """Merge the members of a family in rounds of pairs until there is one; return it.

    They are sorted by class first, so that equal subtrees meet equal subtrees and their merges
    coincide.
    """
    while size > 1:
        sort(family, spare, size)
        made = left = right = np.int64(-1)
        for i in range(size // 2):
            one, two = family[2 * i], family[2 * i + 1]
            if one >> 32 != left or two >> 32 != right:
                left, right = one >> 32, two >> 32
                made = _found(keys, held, state, _int(MERGE), left, right, _int(1))
            slot = _split(one & LOW, two & LOW, made, slot_class, keys, op, program, state)
            family[i] = made << 32 | slot
        if size % 2:
            family[size // 2] = family[size - 1]
        size = (size + 1) // 2
    return family[0]


@njit()
def compile_program(forest, first, weights, theta, shift, made_of, reused):
    """Fill the classes and the program of a forest, see `congenial.sum_network.network`."""
    above, owner, sign, start, member, bottom_up = forest
    code, row, way, _ = weights
    slot_class, sum_class, members, op, program, keys, held, state = made_of
    n, m = above.size, owner.size
    for i in range(state.size):
        state[i] = 0
    state[RUN] = -1
    state[MASK], state[SLOTS], state[BEGIN], state[STOP] = FEWEST - 1, n, n, n
    for i in range(FEWEST):
        held[i] = 0
    for v in range(n):
        slot_class[v] = -1
    most = 0
    for k in range(m):
        most = max(most, start[k + 1] - start[k])
    # the members of one family, and scratch to sort them
    family, spare = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    tilted = theta.size > 0
    known, known_tilt = np.empty(row.size, dtype=np.int32), np.empty(row.size)
    tilt = 0.0
    # variables composed from a bound share one class for all bounds
    alike = np.empty(row.size, dtype=np.int32)
    up, down = np.int32(-1), np.int32(-1)
    for i in range(row.size):
        known[i], known_tilt[i] = -1, 0.0
        alike[i] = row[i]
        if way[row[i]] == UPWARDS:
            up = row[i] if up < 0 else up
            alike[i] = up
        elif way[row[i]] == DOWNWARDS:
            down = row[i] if down < 0 else down
            alike[i] = down
    for step in range(m):
        k = bottom_up[step]
        size = start[k + 1] - start[k]
        sum_class[k] = -1
        if size == 0:
            continue
        if tilted:
            tilt = theta[k] + 0.0
        slots, stop = state[SLOTS], state[STOP]
        begin = first + start[k] if first >= 0 else start[k]
        r = np.int32(-1)
        if size >= LEAST_RUN:
            r = common(begin, size, member if first < 0 else member[:0], code, slot_class)
        kind = _int(way[row[r]]) if r >= 0 else _int(NOT)
        if kind == BOTH_WAYS or kind >= FROM_ZERO:
            c = _unary(row[r], tilt, keys, held, state)
            at = state[COMPOSED]
            for i in range(size):
                members[at + i] = begin + i if first >= 0 else member[begin + i]
            made, slot = _run(c, size, kind, slot_class, keys, held, op, program, state)
        else:
            for i in range(size):
                v = begin + i if first >= 0 else member[begin + i]
                c = np.int64(slot_class[v])
                if c < 0:
                    r = code[v]
                    c = np.int64(known[r])
                    if c < 0 or known_tilt[r] != tilt:
                        kind = _int(way[row[r]])
                        shared = kind == UPWARDS and tilt < 0.0
                        shared |= kind == DOWNWARDS and tilt > 0.0
                        which = alike[r] if shared else row[r]
                        c = _unary(which, tilt, keys, held, state)
                        known[r], known_tilt[r] = c, tilt
                family[i] = c << 32 | v
            sort(family, spare, size)
            size = _compose(
                family, size, weights, slot_class, members, keys, held, op, program, state
            )
            made = _merge(family, spare, size, slot_class, keys, held, op, program, state)
            made, slot = made >> 32, made & LOW
        sum_class[k] = made
        v = owner[k]
        state[BEGIN] -= 1
        begin = state[BEGIN]
        op[begin] = LINK
        program[0, begin], program[1, begin] = slot, max(np.int64(v), 0)
        program[2, begin], program[3, begin] = 0, made  # zero times any slot
        if v >= 0:
            program[2, begin], program[3, begin] = sign[k], -1
            c = np.int64(slot_class[v])
            if c < 0:
                if tilted:
                    tilt = (theta[above[v]] if above[v] >= 0 else 0.0) - shift[k] + 0.0
                c = _unary(row[code[v]], tilt, keys, held, state)
            slot_class[v] = _found(keys, held, state, _int(PRODUCT), c, made, _int(sign[k]))
        if reused and state[STOP] == stop:  # no composition follows
            state[MOST] = max(state[MOST], state[SLOTS])
            state[AGAIN] += state[SLOTS] - slots
            state[SLOTS] = slots
    tilt = 0.0
    for v in range(n - 1, -1, -1):
        if above[v] >= 0:
            continue
        if slot_class[v] < 0:
            slot_class[v] = _unary(row[code[v]], tilt, keys, held, state)
        state[BEGIN] -= 1
        state[ROOTS] += 1
        begin = state[BEGIN]
        op[begin] = ROOT
        keys[slot_class[v], 4] += 1
        program[0, begin], program[1, begin] = v, -1
        program[2, begin], program[3, begin] = -1, slot_class[v]
