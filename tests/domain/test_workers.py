"""Steps of the work on parts of a tree, done in this process."""

from __future__ import annotations

from functools import partial

import congenial as cg
from congenial.domain.workers import HERE, Here


def step(common, number, *given):
    return common, number, given


def test_a_step_is_done_for_the_parts_that_it_is_given_in_order():
    told = []
    found = Here(told.append).run("moving", partial(step, "all"), {3: (1, 2), 1: (), 4: ("x",)})
    assert found == [("all", 3, (1, 2)), ("all", 1, ()), ("all", 4, ("x",))]
    assert told == ["moving part 1 of 3", "moving part 2 of 3", "moving part 3 of 3"]
    assert HERE.run("moving", step, {}) == []


def test_all_parts_take_words_from_one_source():
    rng = cg.seeded(1)
    assert HERE.source(rng) is rng
