"""Functions of draws in batches: the same results in the same order."""

from __future__ import annotations

import numpy as np
import pytest

from congenial.errors import ArgumentError
from congenial.inference.batches import in_batches, truths


def test_results_are_those_of_all_draws_in_order():
    drawn = []

    def sample(size):
        first = len(drawn)
        drawn.extend(range(first, first + size))
        return np.repeat(np.arange(first, first + size)[:, None], 50_000, axis=1)

    answers = in_batches(sample, 700, 50_000, lambda z: z[:, 0] * 2)
    assert answers.tolist() == [2 * i for i in range(700)]
    assert drawn == list(range(700))


def test_an_event_is_true_or_false_of_every_draw():
    z = np.arange(6).reshape(3, 2)
    assert truths(lambda z: z[:, 0] > 1)(z).tolist() == [0, 1, 1]
    for wrong in (lambda z: z[:, 0], lambda z: z > 1, lambda z: True):
        with pytest.raises(ArgumentError):
            truths(wrong)(z)
