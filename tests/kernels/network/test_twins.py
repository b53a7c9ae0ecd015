"""Values of one law, against the ways that lead to them from the root."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.kernels.network.descend import LINK, ROOT, SPLIT
from congenial.kernels.network.messages import MERGE, PRODUCT, UNARY
from congenial.kernels.network.twins import pair
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(200)
def test_values_are_twins_if_their_paths_differ_only_in_like_parts(seed):
    rng = np.random.default_rng(seed)
    ctype, left, right = [UNARY] * 2, [-1] * 2, [-1] * 2
    for _ in range(int(rng.integers(1, 6))):
        ctype.append(int(rng.choice([MERGE, MERGE, PRODUCT])))
        last = len(left) - 1
        product = ctype[-1] == PRODUCT
        left.append(0 if product else int(rng.integers(max(0, last - 1), last + 1)))
        right.append(last if product else int(rng.choice([left[-1], last])))
    given = rng.random(len(ctype)) < 0.9
    alike = given.copy()
    # the root is one of the last class; the way to a value tells like parts not apart
    slot_class, way = [len(ctype) - 1], [()]
    program = [(ROOT, 0, -1, -1)]
    whole = given.copy()
    for c in range(2, len(ctype)):
        whole[c] = given[c] and whole[left[c]] and whole[right[c]]
    for s in range(200):
        if s == len(slot_class):
            break
        c = slot_class[s]
        if ctype[c] == PRODUCT:
            program.append((LINK, len(slot_class), s, 1))
            slot_class.append(right[c])
            way.append((*way[s], "below"))
        elif ctype[c] == MERGE:
            program.append((SPLIT, s, len(slot_class), len(slot_class) + 1))
            slot_class += [left[c], right[c]]
            like = left[c] == right[c] and whole[left[c]]
            way += [(*way[s], "part"), (*way[s], "part" if like else "other")]
    op, first, second, third = (np.array(x) for x in zip(*program, strict=True))
    twin = np.empty(len(slot_class), dtype=np.int64)
    of_classes = np.array(slot_class), np.array(left), np.array(right)
    pair(op, first, second, third, *of_classes, alike, np.zeros(0, dtype=np.int64), twin)
    assert alike.tolist() == whole.tolist()
    assert twin.tolist() == [way.index(w) for w in way]
