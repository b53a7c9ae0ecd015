"""Priors of splits: what they refuse, and their sums."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference import DirichletTree


@pytest.mark.parametrize("alpha", [[1.0, 0.0], [1.0, -1.0], [np.nan, 1.0], [[1.0]], "x", [2.0**41]])
def test_invalid_parameters_are_refused(alpha):
    with pytest.raises(cg.errors.ArgumentError, match="alpha"):
        DirichletTree(alpha)


def test_totals_are_those_of_children():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1])
    prior = DirichletTree([9.0, 1.0, 2.0, 0.5, 0.25])
    assert prior.totals(tree).tolist() == [3.0, 0.75, 0.0, 0.0, 0.0]
    with pytest.raises(cg.errors.ArgumentError, match="5 entries"):
        prior.totals(cg.Tree.from_parents([-1, 0]))
