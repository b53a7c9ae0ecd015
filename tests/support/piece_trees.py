"""Trees of measurements that are cut into pieces, and a store of values in memory."""

from __future__ import annotations

import pickle
from dataclasses import dataclass

import numpy as np

import congenial as cg
from congenial.imaging.part_values import SteppedValues
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.inference.splits.categories import categories_of, number_of_categories
from congenial.inference.splits.messages import Evidence
from congenial.inference.splits.tree_pieces import TOP, Pieces
from congenial.randomness import fresh_key, keyed
from support.sent import sent


def random_problem(seed, *, most=6):
    """Return noise on a random tree of equal depth, an invariant, and counts, from a seed.

    Half of the trees have four categories in each family of leaves.
    """
    rng = np.random.default_rng([seed, 77])
    paths, depth, cells = [("all",)], int(rng.integers(2, 5)), rng.random() < 0.5
    for level in range(depth):
        last = cells and level == depth - 1
        sizes = [4 if last else int(rng.integers(1, most)) for _ in paths]
        paths = [
            (*path, str(k)) for path, size in zip(paths, sizes, strict=True) for k in range(size)
        ]
    tree = cg.Tree.from_paths(paths)
    counts = tree.roll_up(rng.poisson(rng.gamma(0.3, 10.0, tree.leaves.size)))
    law = cg.DiscreteLaplace if rng.random() < 0.6 else cg.DiscreteGaussian
    mechanism = cg.Additive(law(float(rng.choice([1.0, 4.0, 10.0, 40.0]))), tree)
    invariant = cg.consistent(tree) & cg.nonnegative()
    if rng.random() < 0.6:
        invariant = invariant & cg.exactly([0])
    return mechanism, invariant, counts


def random_evidence(seed):
    """Return the evidence about the counts of a random problem."""
    mechanism, invariant, counts = random_problem(seed)
    y = mechanism.sample(counts, rng=cg.seeded(seed))
    y[0] = counts[0]
    return evidence_of(pose(y, mechanism, invariant, nonnegative_leaves=True))


class MemoryStore(dict):
    """Values of parts that are kept in memory."""

    def keep(self, kind, number, values):
        self[kind, number] = np.array(values)

    def values(self, kind, number):
        return self[kind, number]


@dataclass(frozen=True, eq=False)
class Fetch:
    """Returns a part of a tree."""

    split: cg.domain.tree.TreeSplit
    columns: tuple

    def __call__(self, number):
        part = self.split.part(number)
        return Evidence(part.tree, *(column[part.nodes] for column in self.columns))


class Elsewhere:
    """Workers to whom steps are sent as bytes, and who repeat each one."""

    def __init__(self, kept):
        self.kept, self.steps, self.seen = kept, 0, set()

    def run(self, doing, step, given):
        self.steps += 1
        self.kept.begin(f"step-{self.steps}")
        self.seen.add(doing)
        found = []
        for one in given.items():
            attempts = []
            for _ in range(2):
                (own, kept), (number, more) = sent((step, self.kept)), sent(one)
                attempts.append(pickle.dumps((own(number, *more), kept.digest())))
            assert attempts[0] == attempts[1]
            found.append(pickle.loads(attempts[0])[0])  # noqa: S301 -- our own bytes
        self.kept.end()
        return found

    def source(self, rng):
        return keyed(fresh_key(rng), private=False)


def cut_evidence(evidence, level, place=None):
    """Return the pieces of the evidence about a tree, cut at a level, and the split.

    They are worked on elsewhere if they have a place for files.
    """
    split = evidence.tree.split(level)
    columns = evidence.kind, evidence.scale, evidence.y, evidence.lo, evidence.hi
    fetch = Fetch(split, columns)
    top = Evidence(split.top, *(column[split.nodes] for column in columns))
    found = number_of_categories(
        [categories_of(split.part(k).tree) for k in range(split.roots.size)]
    )
    if place is None:
        return Pieces.of(top, split.roots, fetch, MemoryStore(), found), split
    kept = SteppedValues(place)
    return Pieces.of(top, split.roots, fetch, kept, found, Elsewhere(kept)), split


def joined(pieces, split, kind, n):
    """Return the values of all nodes, shape (n,), that are kept of pieces."""
    out = np.empty(n)
    for number in pieces.numbers[1:]:
        out[split.part(number).nodes] = pieces.values(kind, number)
    out[split.nodes] = pieces.values(kind, TOP)
    return out
