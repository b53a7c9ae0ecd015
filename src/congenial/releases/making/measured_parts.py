"""Parts that are measured once, and whose measurements wait in files to be moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np

from congenial.domain.tree import Tree
from congenial.imaging.part_values import PartValues, noisy_piece
from congenial.imaging.solvers.part_curves import TreePiece
from congenial.imaging.update import Imaged
from congenial.inference.best_in_parts import evidence_about
from congenial.inference.splits.categories import (
    Categories,
    categories_of,
    number_of_categories,
)
from congenial.inference.splits.messages import Evidence
from congenial.randomness import Randomness
from congenial.releases.making.part_draws import forest_below
from congenial.releases.making.part_law import CutNode, PartLaw
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class MeasuredPart:
    """The measurements of a part; it has no confidential count."""

    tree: Tree  # Without names, unless it has just been measured.
    measured: IntArray  # shape (n,): Its root's is 0, unless it is published exactly.
    categories: Categories | None  # For the posterior.

    @classmethod
    def of(
        cls, law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, rng: Randomness
    ) -> MeasuredPart:
        """Measure the counts of a part; `PartMethod` describes `domain` and `counts`."""
        tree = forest_below(domain, law.depth)
        image = image_of(model_of(law, tree, exact=node.exact))
        measured = np.asarray(image.measure(counts[law.depth :], rng=rng), dtype=np.int64)
        measured[0] = node.records if node.exact else 0  # the top measures the others
        posterior = law.plan.method.name == "posterior"
        return cls(tree, measured, categories_of(tree) if posterior else None)

    def to_bytes(self) -> bytes:
        """Return the part without names of nodes; those of categories are kept."""
        vectors = (each.tobytes() for each in (self.tree.parents, self.measured))
        return msgspec.msgpack.encode(_Packed(self.categories, *vectors))

    @classmethod
    def from_bytes(cls, packed: bytes) -> MeasuredPart:
        """Return a part from its bytes."""
        found = msgspec.msgpack.decode(packed, type=_Packed)
        parents, measured = (np.frombuffer(v, np.int64) for v in (found.parents, found.measured))
        return cls(Tree.from_parents(parents), measured, found.categories)


class _Packed(msgspec.Struct, frozen=True):
    """A measured part, with vectors as bytes of int64."""

    categories: Categories | None
    parents: bytes
    measured: bytes


@dataclass(frozen=True, eq=False)
class MeasuredParts:
    """The parts of a release by imaging or by the posterior."""

    law: PartLaw
    exact: BoolArray  # shape (parts,): Whether the count of the cut node is published exactly.
    precision: float  # The largest of all counts: one over the variance of the noise.
    kept: PartValues

    def keep(self, parts: Iterable[MeasuredPart]) -> int:
        """Keep all parts; return the number of categories that their families of leaves have."""
        found = list[Categories]()
        for number, part in enumerate(parts):
            self.kept.keep_measured(number, part.tree, part.measured)
            if part.categories is not None:
                found.append(part.categories)
        return number_of_categories(found) if found else 0

    def piece(self, number: int) -> TreePiece:
        """Return a part with its measurements."""
        tree, measured = self.kept.measured(number)
        model = model_of(self.law, tree, exact=bool(self.exact[number]))
        return piece_of(model, measured, self.precision, np.array([number]))

    def evidence(self, number: int) -> Evidence:
        """Return the evidence about a part."""
        tree, measured = self.kept.measured(number)
        model = model_of(self.law, tree, exact=bool(self.exact[number]))
        return evidence_about(model.mechanism, model.resolved, measured)


def model_of(law: PartLaw, tree: Tree, *, exact: bool) -> Model:
    """Return the model of the counts from a cut node on, which has no measurement there."""
    scale = np.concatenate(([np.inf], law.scale[1:]))
    return below_model(law.plan, scale, tree, tree.roots if exact else tree.roots[:0])


def image_of(model: Model) -> Imaged:
    """Return the mechanism that measures counts and moves them to the closest ones."""
    return Imaged(model.mechanism, model.resolved, "l2", integer=True)


def piece_of(model: Model, measured: IntArray, most: float, nodes: IntArray) -> TreePiece:
    """Return the top or a part as `solve_parts` takes it, see `noisy_piece`."""
    tree = cast(Tree, model.domain)
    return noisy_piece(tree, model.mechanism, model.resolved, measured, most, nodes)
