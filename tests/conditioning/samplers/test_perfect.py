"""Draws by coupling from the past, against the same coupling of the recorded proposals."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.samplers.perfect import Perfect
from support.proposal_cases import made
from support.tree_cases import CASES


@pytest.mark.parametrize("rows", [1, 60])
def test_draws_do_not_depend_on_the_batches_of_proposals(monkeypatch, rows):
    case, batches, draw = CASES["star"], [], Perfect.batch

    def recorded(self, counts, rows, steps, source):
        batches.append(draw(self, counts, rows, steps, source))
        return batches[-1]

    monkeypatch.setattr(Perfect, "batch", recorded)
    monkeypatch.setattr(Perfect, "_most_at_once", 7)
    found = made(case, "perfect").sample(case.x, rows, cg.seeded(3))
    noise, weights, uniforms = (
        np.concatenate([part[0] for part in parts]) for parts in zip(*batches, strict=True)
    )
    begin, ends = 0, []
    while len(ends) < rows:
        # so far back that the chain of greatest weight moves, and with it all others
        at = begin + int(np.argmax(uniforms[begin:] <= weights[begin:]))
        here = at
        for i in range(at - 1, begin - 1, -1):
            if uniforms[i] <= weights[i] - weights[here]:
                here = i
        ends.append(here)
        begin = at + 1
    np.testing.assert_array_equal(found, case.x + noise[ends])
    assert rows == 1 or len(batches) > 5
