"""Unbiased rounding that keeps every sum: each family by systematic sampling, given its parent.

Places and families are those of `project_levels`. Values are whole numbers of grid steps of 2^-32,
so that fractions add up exactly.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.compiling import njit

STEPS = np.int64(1) << 32
DONE, UNEVEN = 0, 1


@njit()
def to_grid(
    rows: np.ndarray, z: np.ndarray, snap: int, slack: float, whole: np.ndarray, part: np.ndarray
) -> int:
    """Split values (n,), by place, into `whole` and `part` of `STEPS`, which then add up exactly.

    Parts within `snap` steps of a whole number become it; whole values stay. Returns the first
    place whose value is more than `slack` from the sum of its children, -1 where there is none.
    """
    first, at = rows[0], rows[3]
    n = z.size
    for c in range(n):
        whole[c] = np.floor(z[c])
        part[c] = np.int64(np.rint((z[c] - whole[c]) * STEPS))
        _snap(c, snap, whole, part)
    for k in range(at.size - 2, -1, -1):
        v = at[k]
        units, steps = 0.0, np.int64(0)
        for c in range(first[k], first[k + 1]):
            units += whole[c]
            steps += part[c]
        was = z[v]
        whole[v], part[v] = units + np.float64(steps // STEPS), steps % STEPS
        _snap(v, snap, whole, part)
        if was == np.rint(was) and abs(whole[v] + part[v] / STEPS - was) <= slack:
            whole[v], part[v] = was, 0
        if not abs(whole[v] + part[v] / STEPS - was) <= slack:
            return int(v)
    for k in range(at.size - 1):
        _share(first[k], first[k + 1], at[k], whole, part)
    return -1


@njit(inner=True)
def _snap(v: int, snap: int, whole: np.ndarray, part: np.ndarray) -> None:
    """Make a part within `snap` steps of a whole number that number."""
    if part[v] >= STEPS - snap:
        whole[v] += 1.0
        part[v] = 0
    elif part[v] <= snap:
        part[v] = 0


@njit(inner=True)
def _share(a: int, b: int, v: int, whole: np.ndarray, part: np.ndarray) -> None:
    """Let the parts of places a to b take what place v has beyond them; whole ones stay."""
    rest = part[v]
    units = whole[v]
    for c in range(a, b):
        rest -= part[c]
        units -= whole[c]
    rest += np.int64(units) * STEPS
    for c in range(a, b):
        if rest == 0:
            break
        if part[c] == 0:
            continue
        move = min(max(rest, -part[c]), STEPS - part[c])
        part[c] += move
        rest -= move
        if part[c] == STEPS:
            whole[c] += 1.0
            part[c] = 0


@njit(inner=True)
def _below(word: np.uint64, limit: int) -> int:
    """A number from 0 to limit - 1, each up to 2^-32 as likely as the others; limit <= 2^32."""
    return int(((word >> np.uint64(32)) * np.uint64(limit)) >> np.uint64(32))


@njit()
def round_down(
    rows: np.ndarray,
    whole: np.ndarray,
    part: np.ndarray,
    words: np.ndarray,
    order: np.ndarray,
    out: np.ndarray,
) -> int:
    """Fill `out` (n,), by place, from the roots down; each is `whole` or one more.

    A family in random order lies end to end on a line, each part as long as its fraction; those
    get a unit in which a point falls of a grid of step 1 that starts at a uniform place. Its
    number of points is the family's sum rounded down or up. Given which of the two the parent
    got, the place is uniform among those that lead to it, so over both it is uniform.

    `words` (n,) are random, and `order` (n,) is scratch. Returns UNEVEN where parts do not add up.
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
                # Fisher and Yates: the newcomer changes places with anyone, or with none
                j = a + _below(words[c], count + 1)
                order[a + count] = order[j]
                order[j] = c
                count += 1
        if count == 0:
            continue
        up = out[v] > whole[v]
        # the grid's points lie at offset, offset + 1, ... ; up where the last part reaches one more
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
