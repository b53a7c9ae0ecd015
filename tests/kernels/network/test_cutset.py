"""Beliefs about one variable over all values of a cut set."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.sum_network.cutset.assignments import evaluate
from congenial.sum_network.cutset.branches import compile_branches
from support.cut_cases import cut_case, listed, log_weights
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(150)
def test_beliefs_are_the_summed_weights_of_the_solutions(seed):
    rows, unary, box, cut, solutions = cut_case(seed)
    free = [v for v in range(unary.lo.size) if v not in cut]
    last = free[seed % len(free)]
    branches = compile_branches(tuple(rows), box, list(range(unary.lo.size)), cut, last)
    values, log_own = listed(unary, box, cut)
    root = branches.roots[-1]
    belief = np.zeros((1, int(branches.width[root])))
    group, out = np.zeros(values.shape[0], dtype=np.int64), np.empty(values.shape[0])
    evaluate(branches, values, log_own, out, 0.0, group, belief)
    weights = np.exp(log_weights(unary, solutions))
    for i, found in enumerate(belief[0]):
        own = weights[solutions[:, last] == branches.windows.lo[root] + i].sum()
        assert found == pytest.approx(own, rel=1e-10, abs=1e-15)
    assert belief.sum() == pytest.approx(weights.sum(), rel=1e-10)
