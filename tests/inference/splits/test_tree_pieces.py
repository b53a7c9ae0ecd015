"""Laws, fits and closest points of a tree in pieces, against those of the whole tree."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference.splits import empirical_bayes, tree_pieces
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.empirical_bayes import (
    fit_pieces,
    fit_splits,
    place_splits,
    prior_at,
    splits_at,
)
from congenial.inference.splits.messages import MOST_LOST, split_law
from congenial.inference.splits.tree_pieces import CENTER, TOP
from support.piece_trees import cut_evidence, joined, random_evidence
from support.seeds import for_each_seed

NATS = 40.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("room", [0, 50_000, 1 << 28])
@for_each_seed(30)
def test_laws_of_pieces_are_those_of_the_whole_tree(seed, room, monkeypatch):
    """Means and slopes: the message of a part loses at most e^-40 of its weight.

    Messages and evidence of no part are kept, of some, or of all.
    """
    monkeypatch.setattr(tree_pieces, "_ROOM", room)
    monkeypatch.setattr(tree_pieces, "_NODES", room // 1_000)
    evidence = random_evidence(seed)
    tree, n = evidence.tree, len(evidence.tree)
    alpha = 10.0 ** np.random.default_rng(seed).uniform(-1.0, 1.5, n)
    law = split_law(evidence, DirichletTree(alpha), evidence.estimate(), NATS)
    want = law.laws(kept=True)
    for level in range(1, tree.depth - 1):
        pieces, split = cut_evidence(evidence, level)
        pieces.estimate()
        nodes = {k: split.nodes if k == TOP else split.part(k).nodes for k in pieces.numbers}

        for number in pieces.numbers:
            pieces.keep("alpha", number, alpha[nodes[number]])

        def compare(view, number, found, known, nodes=nodes, pieces=pieces):
            at = nodes[number]
            assert len(known.tree) == at.size
            # laws are cut at 1e-11, and counts are some thousands at most
            np.testing.assert_allclose(found.mean, want.mean[at], rtol=1e-6, atol=1e-6)
            own = pieces.own(number)
            both = found.rises[own, 0], want.rises[at][own, 0]
            np.testing.assert_allclose(*both, rtol=1e-6, atol=1e-6)
            inner = ~known.tree.is_leaf
            both = found.rises[inner, 1], want.rises[at][inner, 1]
            np.testing.assert_allclose(*both, rtol=1e-6, atol=1e-6)
            for v in range(at.size):
                values, chance = found.marginal(v)
                first, others = want.marginal(int(at[v]))
                both = np.zeros((2, 2 + max(values[-1], first[-1])))
                both[0, values], both[1, first] = chance, others
                assert np.abs(both[0] - both[1]).max() < MOST_LOST
            return number

        _, seen = pieces.laws("alpha", NATS, compare, kept=True)
        assert seen == list(pieces.numbers)


@for_each_seed(40)
def test_a_prior_is_fitted_and_placed_as_in_the_whole_tree(seed):
    evidence = random_evidence(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(empirical_bayes, "MANY", 3)  # small levels have families that differ, too
        want = fit_splits(evidence)
        prior, center = splits_at(evidence, want)
        for level in range(1, evidence.tree.depth - 1):
            pieces, split = cut_evidence(evidence, level)
            pieces.estimate()
            found = fit_pieces(pieces)
            np.testing.assert_allclose(found.alpha, want.alpha, rtol=1e-6)
            np.testing.assert_allclose(found.spread, want.spread, rtol=1e-6, atol=1e-6)
            pieces.estimate()
            place_splits(pieces, want)
            near = joined(pieces, split, CENTER, len(evidence.tree))
            np.testing.assert_allclose(near, center, rtol=1e-5, atol=1e-5)
            for number in pieces.numbers:
                part = split.nodes if number == TOP else split.part(number).nodes
                own = pieces.own(number)
                alpha = prior_at(pieces, number).alpha[own], prior.alpha[part][own]
                below = evidence.tree.parents[part][own] >= 0
                np.testing.assert_allclose(alpha[0][below], alpha[1][below], rtol=1e-6)


def test_a_piece_is_rounded_to_integers_that_add_up():
    evidence = random_evidence(5)
    level = evidence.tree.depth - 2
    pieces, split = cut_evidence(evidence, level)
    pieces.estimate()
    pieces.rounded(CENTER, "whole", cg.seeded(1))
    values = joined(pieces, split, "whole", len(evidence.tree))
    assert (values == np.rint(values)).all() and (values >= 0).all()
    assert evidence.tree.is_consistent(values.astype(np.int64))
    assert np.abs(values - joined(pieces, split, CENTER, values.size)).max() < 4.0
