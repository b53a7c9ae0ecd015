"""The nodes of a large tree that are fitted, from a whole tree and from its pieces."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.inference.splits import sample as module
from congenial.inference.splits.categories import keep_shapes
from congenial.inference.splits.empirical_bayes import whole
from congenial.inference.splits.sample import sample
from support.piece_trees import cut_evidence, random_evidence
from support.seeds import for_each_seed


@pytest.mark.parametrize(
    ("parts", "size", "taken"),
    # 60 large parts, more small ones, and fewer where 80,000 nodes hold no more
    [(240, 300, 60), (2_000, 10, 1_000), (100, 4_000, 20)],
)
def test_a_sample_has_parts_enough_to_tell_how_they_differ(parts, size, taken):
    tops = np.zeros(parts, dtype=np.int64)
    tree = cg.Tree.from_parents(np.concatenate(([-1], tops, np.repeat(1 + np.arange(parts), size))))
    mechanism = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    y = np.arange(len(tree))
    known = evidence_of(pose(y, mechanism, cg.consistent(tree), nonnegative_leaves=True))
    evidence, _, level = sample(whole(known))
    chosen = np.rint(evidence.y).astype(np.int64)
    below = chosen[level == 2]
    found = np.unique(tree.parents[below], return_counts=True)
    assert found[0].size == taken and (found[1] == size).all()
    assert (level < 2).sum() == 1 + parts
    above = evidence.tree.parents
    assert (chosen[above[above >= 0]] == tree.parents[chosen[above >= 0]]).all()


@for_each_seed(60)
def test_pieces_give_the_sample_of_the_whole_tree(seed):
    evidence = random_evidence(seed)

    def shaped(pieces):
        keep_shapes(pieces)
        return pieces

    with pytest.MonkeyPatch.context() as patch:
        few = int(np.random.default_rng(seed).integers(10, 200))
        patch.setattr(module, "_NODES", few)
        patch.setattr(module, "_MOST_NODES", 2 * few)
        want = sample(shaped(whole(evidence)))
        for level in range(1, evidence.tree.depth - 1):
            pieces = cut_evidence(evidence, level)[0]
            pieces.estimate()
            found = sample(shaped(pieces))
            assert found.evidence.tree.same_as(want.evidence.tree)
            for name in ("kind", "scale", "y", "lo", "hi"):
                same = getattr(found.evidence, name) == getattr(want.evidence, name)
                assert same.all(), (level, name)
            assert (found.level == want.level).all()
            np.testing.assert_allclose(found.shape, want.shape, rtol=1e-6)
