"""The table of least expected error (`BestTable`), with one part of a tree held at a time.

The law of the counts is that of the whole tree (`splits.tree_pieces`). Each part is worked out some
ten times: for each step of the prior's fit, for the laws, and then for the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.inference.best_table import Loss, check_work, work
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose_resolved
from congenial.inference.point_tables import Expected, Window, least_absolute_in_parts
from congenial.inference.splits.empirical_bayes import (
    LevelSplits,
    fit_pieces,
    place_splits,
    prior_at,
)
from congenial.inference.splits.messages import (
    MOST_LOST,
    Evidence,
    Laws,
    RootLogs,
    lost_too_much,
    truncations,
)
from congenial.inference.splits.tree_pieces import CENTER, TOP, Pieces
from congenial.invariants.resolved import ResolvedInvariant, inequalities_in_units
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.types import BoolArray, FloatArray, IntArray

# Kinds of values that are kept: the table; means; integers near them; windows of the table.
RELEASED, _MEAN, _START, _WINDOW = "released", "mean", "start", "window"


def fit_in_parts(pieces: Pieces) -> LevelSplits:
    """Return the prior of largest likelihood, see `BestTable.fitted`.

    Raises UnsupportedError if the posterior takes too long.
    """
    products = sum(work(pieces.evidence(k), pieces.own(k)) for k in pieces.numbers)
    check_work(products, int(pieces.sizes().sum()))
    pieces.estimate()
    return fit_pieces(pieces)


def evidence_about(
    mechanism: Additive, resolved: ResolvedInvariant, measured: IntArray
) -> Evidence:
    """Return the evidence that measurements give about the top of a tree, or about a part."""
    given = measured, mechanism, inequalities_in_units(resolved)
    return evidence_of(pose_resolved(*given, nonnegative_leaves=True))


@dataclass(frozen=True, eq=False)
class LawInParts:
    """The law of all counts, given their measurements."""

    pieces: Pieces
    weight: FloatArray  # shape (levels,): Factor of the absolute errors of each level.
    nats: float  # Where messages are truncated.
    top: Laws
    roots: tuple[RootLogs, ...]  # Laws of the cut nodes.

    @classmethod
    def of(cls, pieces: Pieces, pinned: BoolArray, splits: LevelSplits) -> LawInParts:
        """Return the law under a prior.

        `pinned`, shape (top,), are counts that are published exactly.

        Raises NumericalError if the widest messages lose too much, see `verified_law`.
        """
        pieces.estimate()
        place_splits(pieces, splits)
        sizes = pieces.sizes()
        exact = np.bincount(pieces.top.tree.level[pinned], minlength=sizes.size)
        free = np.maximum(sizes - exact, 1)
        for nats in truncations(int(sizes.sum())):
            error, found = 0.0, list[Laws]()
            for number, law, _ in pieces.laws(lambda k: prior_at(pieces, k), nats):
                error += law.error
                pieces.keep(_MEAN, number, law.mean)
                if number == TOP:
                    found.append(law)
            if error <= MOST_LOST:
                top, roots = found[0], pieces.roots.tolist()
                logs = tuple(top.logs(node) for node in roots)
                return cls(pieces, free.max() / free, nats, top, logs)
            for number in pieces.numbers:
                pieces.keep(CENTER, number, pieces.values(_MEAN, number))
        raise lost_too_much()

    def of_piece(self, number: int) -> Laws:
        """Return the laws of a piece."""
        if number == TOP:
            return self.top
        at = self.roots[number]
        return self.pieces.law_of(number, lambda k: prior_at(self.pieces, k), self.nats, at)

    def weights(self, number: int) -> FloatArray:
        """Return the factor of each count's absolute error; 0 for a part's root."""
        known = self.pieces.evidence(number)
        out = self.weight[self.pieces.level(number, known)]
        if number != TOP:
            out[0] = 0.0
        return out

    def least(self, loss: Loss, rng: Randomness) -> IntArray:
        """Return the top of the table of least expected error; parts of it are kept as `RELEASED`.

        See `BestTable` for `loss`.
        """
        pieces, widened = self.pieces, set[int]()
        pieces.rounded(_MEAN, RELEASED if loss == "l2" else _START, rng)
        if loss == "l2":
            return np.rint(pieces.values(RELEASED, TOP)).astype(np.int64)

        def expected(number: int) -> Expected:
            known = pieces.evidence(number)
            limits = known.lo, known.hi
            if number in widened:
                window = Window(*pieces.values(_WINDOW, number).reshape(2, -1))
            else:
                start = np.rint(pieces.values(_START, number)).astype(np.int64)
                window = Window.around(start, limits)
            law = self.of_piece(number)
            return Expected(known.tree, law.chances, window, limits, self.weights(number))

        def store(number: int, values: IntArray | None, window: Window) -> None:
            if values is not None:
                pieces.keep(RELEASED, number, values.astype(np.float64))
            widened.add(number)
            pieces.keep(_WINDOW, number, np.array([window.low, window.high]))

        start = np.rint(pieces.values(_START, TOP)).astype(np.int64)
        return least_absolute_in_parts(expected(TOP), start, pieces.roots, expected, store, rng)

    def errors(self, number: int, tables: Sequence[IntArray], loss: Loss) -> FloatArray:
        """Return the expected errors of a piece of tables; squared errors without the variance."""
        if loss == "l1":
            law, weights = self.of_piece(number), self.weights(number)
            return np.array([law.expected_error(table, weights) for table in tables])
        own, mean = self.pieces.own(number), self.pieces.values(_MEAN, number)
        return np.array([((mean - table)[own] ** 2).sum() for table in tables])
