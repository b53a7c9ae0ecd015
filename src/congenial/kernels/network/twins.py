"""Values of a drawing program with equal laws, because their parts and ancestors are alike.

Benchmark row: `summaries`.
"""

from __future__ import annotations

import numpy as np

from congenial.kernels.network.descend import LINK, ROOT
from congenial.kernels.numerics.compiling import njit


@njit()
def pair(op, first, second, third, slot_class, left, right, alike, twin):
    """Fill ``twin`` (slots,) with the slot whose law each slot shares: itself or another.

    The two parts of a sum are twins if they have one class, because each is the sum minus the
    other. The corresponding parts of twins are twins, too. Twins need classes that are ``alike``
    (c,), bool, with all their parts; `alike` is set to false where a part is not.

    The program is that of a tree: ROOT, LINK and SPLIT, see `descend.draw`.
    """
    for c in range(alike.size):
        for part in (left[c], right[c]):
            if part >= 0 and not alike[part]:
                alike[c] = False
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
                c = slot_class[second[i]]
                if c == slot_class[third[i]] and alike[c]:
                    twin[third[i]] = second[i]
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
