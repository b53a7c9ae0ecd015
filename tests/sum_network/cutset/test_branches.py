"""Forests left by a cut set, against all solutions."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.sum_network.cutset.assignments import evaluated
from congenial.sum_network.cutset.branches import compile_branches, draw_forest
from support.cut_cases import cut_case, listed, log_weights
from support.seeds import for_each_seed

pytestmark = pytest.mark.kernels


@for_each_seed(150)
def test_each_assignment_weighs_what_its_solutions_do(seed):
    rows, unary, box, cut, solutions = cut_case(seed)
    branches = compile_branches(tuple(rows), box, list(range(unary.lo.size)), cut)
    values, log_own = listed(unary, box, cut)
    found = evaluated(box, branches, values, log_own, tuple(rows))
    logs = log_weights(unary, solutions)
    for held, log in zip(values, found.log_weight, strict=True):
        own = logs[(solutions[:, list(cut)] == held).all(axis=1)]
        if own.size:
            assert log == pytest.approx(np.logaddexp.reduce(own), abs=1e-10)
        else:
            assert log == -np.inf
    assert found.log_total == pytest.approx(np.logaddexp.reduce(logs), abs=1e-10)


@pytest.mark.parametrize("seed", range(60))
def test_draws_are_solutions_with_the_values_of_the_cut_set(seed):
    rows, unary, box, cut, solutions = cut_case(seed)
    branches = compile_branches(tuple(rows), box, list(range(unary.lo.size)), cut)
    held, _ = listed(unary, box, cut)
    words = np.random.default_rng(seed).integers(
        0, 2**64, (held.shape[0], branches.choices), dtype=np.uint64
    )
    words.setflags(write=False)  # as drawn ones are, for which the kernel is compiled
    weights = np.zeros(words.shape, dtype=np.int64)
    made = draw_forest(branches, unary.lo.size, held, words, weights=weights)
    known = {tuple(u) for u in solutions.tolist()}
    completed = {tuple(u[v] for v in cut) for u in known}
    for u, is_whole, given in zip(made.values.tolist(), made.whole, held.tolist(), strict=True):
        if is_whole and tuple(given) in completed:
            assert tuple(u) in known
            assert [u[v] for v in cut] == given
    whole = made.whole
    assert (1.0 / weights[whole]).sum(axis=1) == pytest.approx(made.doubt[whole])
    # where nothing is chosen, all words lead to the same
    assert (weights[whole] <= 2**62).all() and (weights[whole] > 0).all()
