"""The table of least expected error (`BestTable`), with one part of a tree held at a time.

The law of the counts is that of the whole tree (`splits.tree_pieces`). Each part is worked out some
ten times: for each step of the prior's fit, for the laws, and then for the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from congenial.inference.best_table import Loss, check_work, work
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose_resolved
from congenial.inference.point_tables import (
    Asked,
    Expected,
    Window,
    least_absolute_in_parts,
    shuffled,
)
from congenial.inference.splits.empirical_bayes import (
    ALPHA,
    LevelSplits,
    fit_pieces,
    place_splits,
)
from congenial.inference.splits.messages import (
    MOST_LOST,
    Evidence,
    Laws,
    RootLogs,
    lost_too_much,
    truncations,
)
from congenial.inference.splits.tree_pieces import CENTER, TOP, PartsBelow, Pieces, View
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
    products = work(pieces.top) + sum(pieces.run("looking at", _work))
    check_work(products, int(pieces.sizes.sum()))
    pieces.estimate()
    return fit_pieces(pieces)


def _work(parts: PartsBelow, number: int) -> float:
    return work(parts.evidence(number), slice(1, None))


def evidence_about(
    mechanism: Additive, resolved: ResolvedInvariant, measured: IntArray
) -> Evidence:
    """Return the evidence that measurements give about the top of a tree, or about a part."""
    given = measured, mechanism, inequalities_in_units(resolved)
    return evidence_of(pose_resolved(*given, nonnegative_leaves=True))


@dataclass(frozen=True, eq=False)
class _How:
    """How the table of least expected absolute error is worked out."""

    weight: FloatArray  # shape (levels,): Factor of the absolute errors of each level.
    nats: float  # Where messages are truncated.

    def weights(self, view: View, number: int) -> FloatArray:
        """Return the factor of each count's absolute error; 0 for a part's root."""
        out = self.weight[view.level(number, view.evidence(number))]
        if number != TOP:
            out[0] = 0.0
        return out

    def expected(self, view: View, number: int, law: Laws, window: Window | None) -> Expected:
        """Return the expected errors of a piece, within a window or near its start."""
        known = view.evidence(number)
        limits = known.lo, known.hi
        if window is None:
            window = Window.around(_integers(view, _START, number), limits)
        return Expected(known.tree, law.chances, window, limits, self.weights(view, number))

    def of_part(self, parts: PartsBelow, number: int, root: RootLogs, *, widened: bool) -> Expected:
        """Return the expected errors of a part, within its last window."""
        law = parts.law_of(number, ALPHA, self.nats, root)
        window = Window(*parts.values(_WINDOW, number).reshape(2, -1)) if widened else None
        return self.expected(parts, number, law, window)


def _integers(view: View, kind: str, number: int) -> IntArray:
    return np.rint(view.values(kind, number)).astype(np.int64)


def _keep_means(view: View, number: int, law: Laws, known: Evidence) -> float:  # noqa: ARG001 -- other steps need the evidence
    view.keep(_MEAN, number, law.mean)
    return law.error


def _means_as_centers(view: View, number: int) -> None:
    view.keep(CENTER, number, view.values(_MEAN, number))


def _keep_window(parts: PartsBelow, number: int, window: Window) -> None:
    parts.keep(_WINDOW, number, np.array([window.low, window.high]))


def _costs(parts: PartsBelow, number: int, how: _How, root: RootLogs, asked: Asked) -> FloatArray:
    """Return the costs that a part is asked for; keep its window."""
    part = how.of_part(parts, number, root, widened=asked.start is None)
    costs, wider = part.costs(asked)
    if asked.start is not None:
        _keep_window(parts, number, wider.window)
    return costs


def _settle(
    parts: PartsBelow, number: int, how: _How, root: RootLogs, total: int, rng: Randomness
) -> bool:
    """Keep the best values of a part, and its window; say whether the window became wider."""
    part = how.of_part(parts, number, root, widened=True)
    values, wider = part.settled(total, shuffled(part.tree, rng))
    parts.keep(RELEASED, number, values.astype(np.float64))
    _keep_window(parts, number, wider.window)
    return wider is not part


@dataclass(frozen=True, eq=False)
class LawInParts:
    """The law of all counts, given their measurements."""

    pieces: Pieces
    how: _How
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
        sizes = pieces.sizes
        exact = np.bincount(pieces.top.tree.level[pinned], minlength=sizes.size)
        free = np.maximum(sizes - exact, 1)
        for nats in truncations(int(sizes.sum())):
            top, errors = pieces.laws(ALPHA, nats, _keep_means)
            if sum(errors) <= MOST_LOST:
                logs = tuple(top.logs(node) for node in pieces.roots.tolist())
                return cls(pieces, _How(free.max() / free, nats), top, logs)
            _means_as_centers(pieces, TOP)
            pieces.run("widening", _means_as_centers)
        raise lost_too_much()

    def least(self, loss: Loss, rng: Randomness) -> IntArray:
        """Return the top of the table of least expected error; parts of it are kept as `RELEASED`.

        See `BestTable` for `loss`.
        """
        pieces, how = self.pieces, self.how
        pieces.rounded(_MEAN, RELEASED if loss == "l2" else _START, rng)
        if loss == "l2":
            return np.rint(pieces.values(RELEASED, TOP)).astype(np.int64)

        def costs_of(asked: Mapping[int, Asked]) -> list[FloatArray]:
            given = {k: (how, self.roots[k], one) for k, one in asked.items()}
            return pieces.run("choosing the counts of", _costs, given)

        def settle(totals: Mapping[int, int]) -> list[bool]:
            given = {
                k: (how, self.roots[k], total, pieces.workers.source(rng))
                for k, total in totals.items()
            }
            return pieces.run("choosing the counts of", _settle, given)

        start, roots = _integers(pieces, _START, TOP), pieces.roots
        top = how.expected(pieces, TOP, self.top, None)
        return least_absolute_in_parts(top, start, roots, costs_of, settle, rng)

    def errors(self, number: int, tables: Sequence[IntArray], loss: Loss) -> FloatArray:
        """Return the expected errors of a piece of tables; squared errors without the variance."""
        if loss == "l1":
            law = self.top
            if number != TOP:
                law = self.pieces.parts.law_of(number, ALPHA, self.how.nats, self.roots[number])
            weights = self.how.weights(self.pieces, number)
            return np.array([law.expected_error(table, weights) for table in tables])
        own, mean = self.pieces.own(number), self.pieces.values(_MEAN, number)
        return np.array([((mean - table)[own] ** 2).sum() for table in tables])
