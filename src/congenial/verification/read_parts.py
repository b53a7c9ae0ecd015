"""Whether a release follows from the measurements of all parts, in the memory of one part.

It was made by imaging or by the posterior. The counts of a part depend on the measurements of all
others. So the measurements and the released counts of each part wait in files until all have been
read. Then the table is worked out as `releases.making.moved_parts` does. Tables that differ only in
ties have equal cost: the summed distance from the closest point (`imaging.following`), or the
expected error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import cast

import numpy as np

from congenial.domain.names import Names
from congenial.domain.tree import Tree
from congenial.errors import CongenialError
from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.following import equal_costs
from congenial.imaging.noisy import precision
from congenial.imaging.part_values import PartValues, Storing, noisy_piece
from congenial.imaging.solvers.part_curves import TreePiece, solve_parts
from congenial.inference.best_in_parts import (
    RELEASED,
    LawInParts,
    evidence_about,
    fit_in_parts,
)
from congenial.inference.best_table import GAP, REFUSED, Loss
from congenial.inference.splits.categories import (
    Categories,
    categories_of,
    number_of_categories,
)
from congenial.inference.splits.empirical_bayes import LevelSplits
from congenial.inference.splits.messages import Evidence
from congenial.inference.splits.tree_pieces import TOP, Pieces
from congenial.noise.additive import Additive
from congenial.noise.law import find_law, too_far_from_zero
from congenial.randomness import seeded
from congenial.releases.certificate import Certificate
from congenial.releases.measurements import prior_numbers
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.types import BoolArray, FloatArray, IntArray
from congenial.verification.checks import Check
from congenial.verification.fitted import judged_absence, judged_least, judged_prior
from congenial.verification.pieces import SEED, Piece, judged_image

# Kinds of values that are kept: the released counts, and the closest point.
_READ, _CLOSEST = "read", "closest"


@dataclass(frozen=True, eq=False)
class ReadParts:
    """Parts whose measurements and counts wait in files."""

    over: Model  # That of the counts down to the cut.
    scales: FloatArray  # Scale of the noise of each level from the cut on.
    roots: IntArray  # shape (parts,): The cut nodes, in the top.
    y: IntArray  # shape (top,): The measurements of the top.
    values: IntArray  # shape (top,): Its released counts.
    kept: PartValues
    # Measurements below exact counts of 0, in units of the noise's scale.
    near_zero: list[FloatArray] = field(default_factory=list)
    categories: list[Categories] = field(default_factory=list)  # Of each part, for the posterior.

    def keep(self, piece: Piece, first: int) -> None:
        """Keep the counts below some cut nodes, the roots of a forest; `first` numbers the first.

        The rows of a part follow each other.
        """
        forest, y, values = cast(Tree, piece.domain), piece.y, piece.values
        ends = np.append(forest.roots[1:], len(forest))
        for number, (begin, end) in enumerate(
            zip(forest.roots.tolist(), ends.tolist(), strict=True), start=first
        ):
            names = Names(forest.names.array[begin:end])
            tree = Tree.from_parents(np.maximum(forest.parents[begin:end] - begin, -1), names)
            measured, node = y[begin:end].copy(), self.roots[number]
            # the top has the measurement of the root
            measured[0] = values[begin] if self.over.determined[node] else 0
            if self._empty[node]:
                sizes = np.abs(measured) / self._below[tree.level]
                self.near_zero.append(sizes[sizes > 0.0])
            self.kept.keep_measured(number, tree, measured)
            if self.over.plan.method.name == "posterior":
                self.categories.append(categories_of(tree))
            self.kept.keep(_READ, number, values[begin:end].astype(np.float64))

    def piece(self, number: int) -> TreePiece:
        """Return a part with its measurements."""
        model, measured = self._part(number)
        return self._noisy(model, measured, np.array([number]))

    def evidence(self, number: int) -> Evidence:
        """Return the evidence about a part."""
        model, measured = self._part(number)
        return evidence_about(model.mechanism, model.resolved, measured)

    def best(self, certificate: Certificate, counts: int) -> tuple[Check, Check] | None:
        """Check the prior of a release by the posterior, and its table, see `follow`."""
        loss, over = self.over.plan.method.loss, self.over
        try:
            top = evidence_about(over.mechanism, over.resolved, self.y)
            number = number_of_categories(self.categories)
            pieces = Pieces.of(top, self.roots, self.evidence, self.kept, number)
            stated = certificate.prior
            if stated is None:
                follow = self.follow(counts)
                if follow is None:
                    return None
                refused = _is_refused(pieces, over.resolved.pinned, loss)
                return judged_absence(refused=refused), judged_image(follow=follow)
            splits = LevelSplits(*prior_numbers(over.plan, stated))
            prior = judged_prior(certificate, splits, fit_in_parts(pieces))
            law = LawInParts.of(pieces, over.resolved.pinned, splits)
            least = law.least(loss, seeded(SEED))
        except (CongenialError, MemoryError):
            return None
        errors = np.zeros(2)
        for k in pieces.numbers:
            found = least if k == TOP else self.kept.values(RELEASED, k).astype(np.int64)
            read = self.values if k == TOP else self.kept.values(_READ, k).astype(np.int64)
            errors += law.errors(k, (read, found), loss)
        return prior, judged_least(follow=errors[0] <= errors[1] + GAP * (1.0 + errors[1]))

    def _part(self, number: int) -> tuple[Model, IntArray]:
        tree, measured = self.kept.measured(number)
        exact = tree.roots if self.over.determined[self.roots[number]] else tree.roots[:0]
        return below_model(self.over.plan, self._below, tree, exact), measured

    def follow(self, counts: int) -> bool | None:
        """Decide whether the release could have been made, as `imaging.following.follows`.

        `counts` is the number of all counts. Returns None if no table follows from the
        measurements; then the release must be read at once, for the reason.
        """
        top = self._noisy(self.over, self.y, np.arange(self.y.size))
        costs = np.zeros(2)

        def add(made: FloatArray, released: FloatArray | IntArray, nearest: FloatArray) -> None:
            costs[:] += [float(np.abs(z - nearest).sum()) for z in (made, released)]

        def compare(part: TreePiece, made: FloatArray) -> None:
            kinds = (_READ, _CLOSEST)
            released, nearest = (self.kept.values(kind, int(part.nodes[0])) for kind in kinds)
            add(made[1:], released[1:], nearest[1:])

        if self._too_far:
            return None
        try:
            z = solve_parts(top, self.roots, self.piece, Storing(self.kept, _CLOSEST))
            # counts below the cut are not negative and add up to those above
            largest = float(np.abs(z).max())
            nearest_of = partial(self.kept.values, _CLOSEST)
            closest = ClosestPoint(top, self.roots, self.piece, nearest_of)
            add(closest.rounded(z, largest, compare, seeded(SEED)), self.values, z)
        except CongenialError:
            return None
        return equal_costs(float(costs[0]), float(costs[1]), counts, largest)

    def _noisy(self, model: Model, measured: IntArray, nodes: IntArray) -> TreePiece:
        tree = cast(Tree, model.domain)
        return noisy_piece(tree, model.mechanism, model.resolved, measured, self._most, nodes)

    @cached_property
    def _below(self) -> FloatArray:
        """Scale of the noise of each level of a part, whose root is measured in the top."""
        return np.concatenate(([np.inf], self.scales[1:]))

    @cached_property
    def _most(self) -> float:
        """The largest precision of all counts, to which weights are relative."""
        noise = find_law(self.over.plan.privacy.noise)
        below = Additive(noise(self.scales), self.scales.size)
        return max(float(precision(each).max()) for each in (self.over.mechanism, below))

    @cached_property
    def _empty(self) -> BoolArray:
        """Counts of the top that are 0, or lie below a count, that is published exactly as 0."""
        tree = cast(Tree, self.over.domain)
        empty: BoolArray = self.over.resolved.pinned & (self.y == 0)
        for level in range(1, tree.depth):
            at = np.flatnonzero(tree.level == level)
            empty[at] |= empty[tree.parents[at]]
        return empty

    @property
    def _too_far(self) -> bool:
        """Whether measurements below exact counts of 0 are too large to be noise, see `noisy`."""
        scales = self.over.mechanism.scales
        seen = self._empty & np.isfinite(scales) & ~self.over.resolved.pinned
        own = np.abs(self.y[seen]) / scales[seen]
        return too_far_from_zero(np.concatenate((own, *self.near_zero)))


def _is_refused(pieces: Pieces, pinned: BoolArray, loss: Loss) -> bool:
    """Whether the posterior of measurements cannot be computed."""
    try:
        law = LawInParts.of(pieces, pinned, fit_in_parts(pieces))
        law.least(loss, seeded(SEED))
    except REFUSED:
        return True
    return False
