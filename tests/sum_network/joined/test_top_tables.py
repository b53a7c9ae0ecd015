"""Tables of a top that are joined to its parts by messages, and when these are asked for again."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.parted import condition_by_parts
from congenial.errors import NumericalError, UnsupportedError
from congenial.sum_network import of_tree
from congenial.sum_network.exact import envelopes
from congenial.sum_network.families import wide_noise
from congenial.sum_network.joined import message_of, split_sums, top_tables
from support.parted_trees import biased_parted, random_parted


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("make", [lambda seed: random_parted(seed, 24), biased_parted])
def test_first_messages_hold_nearly_all_noise_on_hundreds_of_trees(make, wide, monkeypatch):
    if wide:  # all noise counts as wide, so that multipliers are those of families
        monkeypatch.setattr(wide_noise, "_WIDE", 0.0)
        monkeypatch.setattr(wide_noise, "_CROWDED", 0.0)
    again = 0
    for seed in range(1000, 1150):
        _, x, _, parted = make(seed)
        joined = parted.sums(x).joined
        assert joined.tables.rare <= envelopes._MOST * top_tables.BEYOND
        again += joined.outsides[0].beyond < top_tables.BEYOND
    assert again < 10


def test_messages_that_hold_too_little_are_asked_for_again_or_refused(monkeypatch):
    _, x, _, parted = biased_parted(3)
    fill, tries = top_tables.fill_in_windows, []

    def lacking(*of):
        tries.append(of)
        if len(tries) < 3:
            raise NumericalError("windows are too narrow")
        return fill(*of)

    monkeypatch.setattr(top_tables, "fill_in_windows", lacking)
    beyond = [one.beyond for one in parted.sums(x).joined.outsides]
    assert len(tries) == 3 and max(beyond) < top_tables.BEYOND
    tries.clear()
    monkeypatch.setattr(top_tables, "_ROUNDS", 1)
    monkeypatch.setattr(top_tables, "_SETTLED", 1)
    with pytest.raises(NumericalError, match="too narrow"):
        parted.sample(x)


def test_multipliers_whose_differences_are_not_exact_are_refused():
    # steps of messages are finer than those of a top with large multipliers
    forest = of_tree(cg.Tree.from_parents([-1, 0, 0, 1, 1]))
    top_tables._check_exact(forest, np.array([1.0, 0.25 + 2.0**-40]))
    with pytest.raises(NumericalError, match="far narrower than one count"):
        top_tables._check_exact(forest, np.array([2.0**40, 0.25 + 2.0**-40]))


def test_messages_are_short():
    tree = cg.Tree.from_parents([-1, 0, 0, *[1] * 400, *[2] * 400])
    x = tree.roll_up(np.zeros(800, dtype=int))
    invariant = cg.consistent(tree) & cg.nonnegative() & cg.exactly([0])
    parted = condition_by_parts(cg.Additive(cg.DiscreteLaplace(2.0), tree), invariant, 1)
    assert sum(sent.table.size for sent in parted.sums(x).joined.messages) < 1000


def test_a_part_without_a_law_is_refused():
    tree = cg.Tree.from_parents([-1, 0, 0, 1, 1, 2, 2])
    scales = np.array([1.0, np.inf, np.inf, np.inf, np.inf, np.inf, np.inf])
    noisy = cg.Additive(cg.DiscreteLaplace(scales), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative(), 1)
    with pytest.raises(UnsupportedError, match="not measured"):
        parted.sample(np.zeros(7, dtype=int))


def test_tables_of_uneven_parts_under_wide_noise_are_filled_once_for_messages(monkeypatch):
    # Parts with few people drift by hundreds of deviations; messages placed by other messages came
    # to rest after four rounds of tables, or never for counties of a whole state.
    rng, parents, counts = np.random.default_rng(1), [np.array([-1]), np.zeros(12, dtype=int)], []
    blocks = rng.lognormal(4.0, 1.0, 12).astype(int) + 2
    parents.append(np.repeat(np.arange(1, 13), blocks))
    parents.append(np.repeat(np.arange(13, 13 + blocks.sum()), 16))
    for size in blocks.tolist():
        filled = rng.random(16 * size) < rng.choice([0.02, 0.1, 0.3, 0.6])
        counts.append(np.where(filled, rng.poisson(20, 16 * size), 0))
    tree = cg.Tree.from_parents(np.concatenate(parents))
    x = tree.roll_up(np.concatenate(counts))
    noisy = cg.Additive(cg.DiscreteLaplace(13.0), tree)
    parted = condition_by_parts(noisy, cg.consistent(tree) & cg.nonnegative() & cg.exactly([0]), 1)
    asked = []

    def message(part, outside):
        asked.append(outside.place_only)
        return message_of(part, outside)

    monkeypatch.setattr(split_sums, "message_of", message)
    joined = parted.sums(x).joined
    assert joined.tables.rare < 1e-3
    parts = parted.split.roots.size
    assert asked.count(False) == parts
    assert 2 < len(asked) // parts < 10
