"""Values of a drawing program with equal laws, because their parts and ancestors are alike.

Benchmark row: `summaries`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.descend import LINK, ROOT
from congenial.kernels.numerics.compiling import njit


@njit(inner=True)
def _by_number(slot, number, known, twin):
    """Make a slot the twin of the first one of its number, which ``known`` holds, or that one."""
    if slot < number.size:
        if known[number[slot]] < 0:
            known[number[slot]] = slot
        else:
            twin[slot] = known[number[slot]]


@njit()
def pair(op, first, second, third, slot_class, left, right, alike, number, twin):
    """Fill ``twin`` (slots,) with the slot whose law each slot shares: itself or another.

    The two parts of a sum are twins if they have one class, because each is the sum minus the
    other. The corresponding parts of twins are twins, too. Twins need classes that are ``alike``
    (c,), bool, with all their parts; `alike` is set to false where a part is not. Of the first
    slots, those of one ``number`` (n,) are twins, too; ``number`` may be empty.

    The program is that of a tree: ROOT, LINK and SPLIT, see `descend.draw`.
    """
    for c in range(alike.size):
        for part in (left[c], right[c]):
            if part >= 0 and not alike[part]:
                alike[c] = False
    most = -1
    for v in range(number.size):
        most = max(most, number[v])
    known = np.full(most + 1, -1)
    where = np.full(twin.size, -1)
    for s in range(twin.size):
        twin[s] = s
    for i in range(op.size):
        if op[i] != ROOT:
            where[second[i] if op[i] == LINK else first[i]] = i
    for i in range(op.size):
        if op[i] == ROOT:
            continue
        source = second[i] if op[i] == LINK else first[i]
        other = twin[source]
        if other == source:
            if op[i] != LINK:
                _by_number(second[i], number, known, twin)
                c = slot_class[second[i]]
                if c == slot_class[third[i]] and alike[c]:
                    twin[third[i]] = second[i]
                else:
                    _by_number(third[i], number, known, twin)
            else:
                _by_number(first[i], number, known, twin)
            continue
        j = where[other]
        if op[i] == LINK:
            twin[first[i]] = first[j]
        else:
            twin[second[i]], twin[third[i]] = second[j], third[j]
    for s in range(twin.size):
        end = s
        while twin[end] != end:
            end = twin[end]
        twin[s] = end
