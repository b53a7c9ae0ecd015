"""Assignments of a cut set are drawn in proportion to their weights."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.sum_network.cutset.assignments import draw_assignments, evaluated
from congenial.sum_network.cutset.branches import compile_branches
from support.cut_cases import cut_case, listed

pytestmark = pytest.mark.kernels
MANY = 400


@pytest.mark.parametrize("seed", range(40))
def test_evenly_spaced_words_give_each_assignment_its_share(seed):
    rows, unary, box, cut, _ = cut_case(seed)
    branches = compile_branches(tuple(rows), box, list(range(unary.lo.size)), cut)
    values, log_own = listed(unary, box, cut)
    found = evaluated(box, branches, values, log_own)
    # fewer than a block: the second word alone decides
    words = np.zeros((MANY, 2), dtype=np.uint64)
    words[:, 1] = [(2 * i + 1) * (2**63 // MANY) for i in range(MANY)]
    counts = np.bincount(draw_assignments(found, words), minlength=values.shape[0])
    share = np.exp(found.log_weight - found.log_total)
    np.testing.assert_allclose(np.cumsum(counts), MANY * np.cumsum(share), atol=1.0)
