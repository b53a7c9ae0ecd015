"""Classes of a sum forest: equal subtrees have one."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import of_tree
from congenial.sum_network.network import compile_network
from congenial.sum_network.weights import (
    share_noise,
)

pytestmark = pytest.mark.kernels


INF = np.inf


def test_equal_subtrees_are_one_class():
    tree = cg.Tree.from_parents([-1] + [0] * 8 + [1 + i // 8 for i in range(64)])
    weights = share_noise(
        laws.LAPLACE, np.array(2.0), (np.array(-INF), np.array(INF)), np.zeros(73, dtype=bool), 73
    )
    network = compile_network(of_tree(tree), weights, np.zeros(9), np.zeros(1, dtype=np.int8))
    # one weight; sums of 2, 4 and 8 leaves; an inner node; sums of 2, 4 and 8; the root
    assert len(network.ctype) == 9
    large = cg.Tree.from_parents([-1] + [0] * 70_000)
    counts = np.random.default_rng(0).integers(0, 40_000, 70_001)
    weights = share_noise(
        laws.LAPLACE,
        np.array(2.0),
        (np.array(0.0), np.array(INF)),
        np.zeros(70_001, dtype=bool),
        70_001,
        counts=counts,
    )
    network = compile_network(
        of_tree(large), weights, np.zeros(1), np.zeros(weights.unary.lo.size, dtype=np.int8)
    )
    assert (np.sort(np.unique(weights.unary.lo)) == -np.unique(counts)[::-1]).all()
    parts = list(zip(network.ctype, network.left, network.right, network.variable, strict=True))
    assert len(set(parts)) == len(parts)
