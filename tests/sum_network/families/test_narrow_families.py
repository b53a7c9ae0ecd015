"""Wide families are divided into groups with the same sums, and draws keep their law."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.kernels.numerics import laws
from congenial.sum_network.families import family_draws, narrow_families
from congenial.sum_network.families.narrow_families import divided, narrowed
from support.bounded_trees import compiled, conditioned, filled, p_values, random_tree

pytestmark = pytest.mark.kernels


def summands(forest):
    """Return the variables of each sum."""
    return [np.flatnonzero(forest.above == k) for k in range(forest.m)]


def leaves_below(forest, k):
    """Return the variables without a sum of their own from which a sum is made."""
    owned = {int(v): k for k, v in enumerate(forest.owner.tolist()) if v >= 0}
    out, left = [], [k]
    while left:
        for v in summands(forest)[left.pop()].tolist():
            if v in owned:
                left.append(owned[v])
            else:
                out.append(v)
    return sorted(out)


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_groups_have_the_sums_of_their_families(most, monkeypatch):
    monkeypatch.setattr(narrow_families, "_MOST", most)
    source, found = np.random.default_rng(most), 0
    for _ in range(60):
        tree, x = random_tree(source, int(source.integers(3, 40)))
        made = compiled(conditioned(tree, 2.0), x)
        forest, weights = made.forest, made.weights
        narrow, more = divided(forest, weights)
        assert weights.code.tolist() == more.code[: forest.n].tolist()
        assert (more.each.kind[forest.n :] == laws.FLAT).all()
        assert not np.isfinite(more.each.lo[forest.n :]).any()
        assert not np.isfinite(more.each.hi[forest.n :]).any()
        owned = set(forest.owner.tolist())
        for k in range(forest.m):
            assert leaves_below(narrow, k) == leaves_below(forest, k)
            size, mine = (forest.above == k).sum(), (narrow.above == k).sum()
            inner = any(v in owned for v in summands(forest)[k].tolist())
            assert mine == (np.ceil(np.sqrt(size)) if inner and size > most else size)
            found += mine < size
        for k in range(narrow.m):
            over = narrow.above[narrow.owner[k]] if narrow.owner[k] >= 0 else -1
            assert narrow.depth[k] == (narrow.depth[over] + 1 if over >= 0 else 0)
            # groups differ by one member at most
            if k >= forest.m:
                beside = narrow.owner[forest.m :]
                beside = beside[narrow.above[beside] == over]
                sums = np.flatnonzero(np.isin(narrow.owner, beside))
                sizes = [(narrow.above == j).sum() for j in sums]
                assert max(sizes) - min(sizes) <= 1
    assert found > 30


@pytest.mark.parametrize(("scale", "changed"), [(3.9, False), (4.0, True)])
def test_families_are_divided_under_wide_noise_only(scale, changed, monkeypatch):
    monkeypatch.setattr(narrow_families, "_MOST", 2)
    tree, x = random_tree(np.random.default_rng(3), 40)
    made = compiled(conditioned(tree, scale), x)
    narrow, _ = narrowed(made.forest, made.weights)
    assert (narrow.m > made.forest.m) == changed


def test_a_wide_family_takes_few_words_and_keeps_its_law(monkeypatch):
    """400 parents of two leaves each: 20 attempts of 400 values, or some of 20."""
    tree = cg.Tree.from_parents([-1, *[0] * 400, *np.repeat(np.arange(1, 401), 2)])
    x = tree.roll_up(np.random.default_rng(1).poisson(1.0, 800))
    released = conditioned(tree, 6.0)

    def drawn(sums, rows):
        read = []

        class Counted:
            def __init__(self, source):
                self.source = source

            def bits(self, number):
                read.append(number)
                return self.source.bits(number)

            def __getattr__(self, name):
                return getattr(self.source, name)

        return family_draws.sample(sums, rows, Counted(cg.seeded(2))), sum(read)

    draws, words = drawn(filled(released, x), 3_000)
    assert draws.shape == (3_000, len(tree))
    assert (draws[:, 0] == 0).all()
    assert tree.is_consistent(draws[0] + x)
    assert min(p_values((x + draws)[:, :40], released, x)) > 1e-6
    monkeypatch.setattr(narrow_families, "_MOST", 10**6)
    assert words < 0.4 * drawn(filled(released, x), 3_000)[1]
