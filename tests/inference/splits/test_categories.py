"""Categories of families, and their expected proportions, from a whole tree and from pieces."""

from __future__ import annotations

import numpy as np

import congenial as cg
from congenial.inference.splits.categories import (
    Categories,
    categories_of,
    keep_shapes,
    number_of_categories,
)
from congenial.inference.splits.empirical_bayes import whole
from congenial.inference.splits.tree_pieces import TOP
from support.piece_trees import cut_evidence, random_evidence
from support.seeds import for_each_seed


def test_families_with_other_names_or_sizes_have_no_categories():
    def found(*families):
        paths = [("all", str(k), name) for k, names in enumerate(families) for name in names]
        return categories_of(cg.Tree.from_paths(paths))

    assert found("ab", "ab") == Categories(("a", "b"), 2)
    assert found("ab", "ac").names is None
    assert found("ab", "abc").names is None
    assert categories_of(cg.Tree.from_parents([-1, 0, 0])).names is None
    assert categories_of(cg.Tree.from_paths([("all",)])).names is None


def test_all_trees_must_have_the_same_categories():
    one, other = Categories(("a", "b"), 1), Categories(("a", "c"), 1)
    assert number_of_categories([one, one]) == 2
    assert number_of_categories([one]) == 0  # one family alone
    assert number_of_categories([one, other]) == 0
    assert number_of_categories([one, Categories(None, 0)]) == 0


@for_each_seed(60)
def test_pieces_give_the_proportions_of_the_whole_tree(seed):
    evidence = random_evidence(seed)
    pieces = whole(evidence)
    keep_shapes(pieces)
    want = pieces.shape(TOP)
    if pieces.categories:
        of_cells = want[evidence.tree.is_leaf].reshape(-1, pieces.categories)
        np.testing.assert_allclose(of_cells.sum(axis=1), pieces.categories, rtol=1e-9)
    else:
        assert (want == 1.0).all()
    for level in range(1, evidence.tree.depth - 1):
        cut, split = cut_evidence(evidence, level)
        assert cut.categories == pieces.categories
        cut.estimate()
        keep_shapes(cut)
        for number in cut.numbers:
            nodes = split.nodes if number == TOP else split.part(number).nodes
            np.testing.assert_allclose(cut.shape(number), want[nodes], rtol=1e-6)
