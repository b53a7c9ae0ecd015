"""Unbiased rounding that keeps every sum: each family by systematic sampling, given its parent.

Benchmark row: `rounding`.

Places and families are those of `levels`. Values are whole numbers of grid steps of 2^-32,
so that fractions add up exactly.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics.compiling import njit

STEPS = np.int64(1) << 32
# Resolution at which sums of fractions are compared: 2^-52.
FINE = np.int64(1) << 52
DONE, UNEVEN = 0, 1


@njit()
def to_grid(rows, z, snap, slack, whole, part):
    """Split values (n,), by place, into `whole` and `part` of `STEPS`, which then add up exactly.

    From the roots down, a family gets exactly its parent's value; each child is at most one step
    from its value plus its share of the family's gap. Integers are unchanged. Values within `snap`
    steps of an integer become it, if that shifts no other value by more than `snap` steps. Returns
    the first place whose value differs by more than `slack` from the sum of its children, or whose
    neighbouring integers cannot be the sum of integers next to its children's values; -1 if none.
    """
    first, at = rows[0], rows[3]
    for c in range(z.size):
        whole[c] = np.floor(z[c])
        part[c] = 1 if z[c] > whole[c] else 0  # for now: whether the value may be one unit larger
    for k in range(at.size - 2, -1, -1):
        v = at[k]
        units, room, fine = np.int64(0), np.int64(0), np.int64(0)
        over = np.int64(0)
        for c in range(first[k], first[k + 1]):
            units += np.int64(whole[c])
            room += part[c]
            floor = np.floor(z[c])
            fine += np.int64((z[c] - floor) * FINE + 0.5)
            over += np.int64(floor - whole[c]) + (fine >> np.int64(52))
            fine &= FINE - np.int64(1)
        own = np.int64(np.floor(z[v]))
        away = np.float64(units + over - own) + (np.float64(fine) / FINE - (z[v] - own))
        low, high = max(own, units), min(own + part[v], units + room)
        if not abs(away) <= slack or low > high:
            return int(v)
        whole[v], part[v] = low, high - low
    for c in range(first[0]):
        part[c] = _near(min(max(z[c] - whole[c], 0.0), np.float64(part[c])) * STEPS, snap)
        _carry(c, whole, part)
    for k in range(at.size - 1):
        _share(first[k], first[k + 1], at[k], snap, z, whole, part)
    return -1


@njit(inner=True)
def _near(steps, snap):
    """Return the nearest number of steps; within `snap` steps of an integer, the integer's."""
    if steps <= snap:
        return 0
    if steps >= STEPS - snap:
        return int(STEPS)
    return int(np.rint(steps))


@njit(inner=True)
def _carry(v, whole, part):
    if part[v] == STEPS:
        whole[v] += 1.0
        part[v] = 0


@njit(inner=True)
def _share(a, b, v, snap, z, whole, part):
    """Distribute the units of place v to places a to b; those of part 1 may get one more."""
    units, room = np.int64(whole[v]), np.int64(0)
    for c in range(a, b):
        units -= np.int64(whole[c])
        room += part[c]
    total = units * STEPS + part[v]
    if room == 0:
        return
    # values near an integer first, if the others can make up for it
    near, moved, given = np.int64(0), 0.0, np.int64(0)
    for c in range(a, b):
        steps = (z[c] - whole[c]) * STEPS
        if part[c] == 1 and (steps <= snap or steps >= STEPS - snap):
            near += 1
            moved += _near(steps, snap) - steps
            given += _near(steps, snap)
    held = snap
    if near == room:
        held = snap if given == total else -1
    elif not abs(moved) <= snap * (room - near):
        held = -1
    _spread(a, b, held, total, z, whole, part)


@njit(inner=True)
def _spread(a, b, snap, total, z, whole, part):
    """Round places a to b to steps that add up to `total`, each with the error of those before."""
    count, whole_steps, rest_steps = np.int64(0), np.int64(0), 0.0
    for c in range(a, b):
        if part[c] == 1:
            steps = (z[c] - whole[c]) * STEPS
            if steps <= snap or steps >= STEPS - snap:
                whole_steps += _near(steps, snap)
            else:
                count += 1
                whole_steps += np.int64(np.floor(steps))
                rest_steps += steps - np.floor(steps)
    each = (np.float64(total - whole_steps) - rest_steps) / count if count > 0 else 0.0
    error, rest = 0.0, total
    for c in range(a, b):
        if part[c] == 1:
            steps = (z[c] - whole[c]) * STEPS
            if steps <= snap or steps >= STEPS - snap:
                part[c] = _near(steps, snap)
            else:
                steps += each + error
                part[c] = np.int64(min(max(np.rint(steps), 0.0), np.float64(STEPS)))
                error = steps - part[c]
            rest -= part[c]
            part[c] = -1 - part[c]  # a negative part marks a value with room
    # units that the ends excluded; values near an integer change last
    for last in range(2):
        for c in range(a, b):
            if rest != 0 and part[c] < 0:
                steps = -1 - part[c]
                if last == 1 or 0 < steps < STEPS:
                    move = min(max(rest, -steps), STEPS - steps)
                    part[c] -= move
                    rest -= move
    for c in range(a, b):
        if part[c] < 0:
            part[c] = -1 - part[c]
        _carry(c, whole, part)


@njit(inner=True)
def _below(word, limit):
    """A uniform number from 0 to limit - 1, up to 2^-32 in probability; limit <= 2^32."""
    return int(((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@njit()
def round_down(rows, whole, part, words, order, out):
    """Fill `out` (n,), by place, from the roots down; each is `whole` or one more.

    The fractions of a family, in random order, lie end to end on a line. A child gets a unit if a
    point of a grid of step 1 falls in its fraction. The grid's start is uniform, so the number of
    points is the family's sum rounded down or up. Given the parent's value, the start is uniform
    among the starts that lead to it.

    `words` (n,) are random, and `order` (n,) is scratch. Returns UNEVEN if parts do not add up.
    """
    first, at = rows[0], rows[3]
    for c in range(first[0]):
        out[c] = whole[c]
        if _below(words[c], STEPS) < part[c]:
            out[c] += 1.0
    for k in range(at.size - 1):
        a, b, v = first[k], first[k + 1], at[k]
        count = 0
        for c in range(a, b):
            out[c] = whole[c]
            if part[c] > 0:
                # Fisher and Yates: each entry changes places with a random one up to itself
                j = a + _below(words[c], count + 1)
                order[a + count] = order[j]
                order[j] = c
                count += 1
        if count == 0:
            continue
        up = out[v] > whole[v]
        # the grid's points are offset, offset + 1, ...; `up` if the last part reaches one more
        low, wide = (0, part[v]) if up else (part[v], STEPS - part[v])
        offset = low + _below(words[v] << np.uint64(32), wide)
        passed = np.int64(0)
        given = 0.0
        for i in range(count):
            c = order[a + i]
            # points strictly before `passed` and before `passed` + part
            before = (passed - offset + STEPS - 1) // STEPS
            passed += part[c]
            if (passed - offset + STEPS - 1) // STEPS > before:
                out[c] += 1.0
                given += 1.0
        total = out[v]
        for c in range(a, b):
            total -= out[c]
        if total != 0.0:
            return UNEVEN
    return DONE
