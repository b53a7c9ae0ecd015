"""Counts of the top and of a part, moved together to the closest counts that add up.

Every count is measured once, and the measurements of the parts wait in files. The closest point
needs each part several times (`imaging.solvers.part_curves`), but never its confidential counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from congenial.domain.tree import Tree
from congenial.errors import DataError, ReleaseError
from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.noisy import precision
from congenial.imaging.solvers.part_curves import Store, TreePiece, solve_parts
from congenial.imaging.solvers.problem import checked_weights
from congenial.imaging.update import Imaged
from congenial.invariants.resolved import checked_draws
from congenial.noise.additive import Additive
from congenial.noise.law import find_law
from congenial.randomness import Randomness
from congenial.releases.making.part_draws import DrawnRows, drawn_rows, forest_below
from congenial.releases.making.part_law import CHANGED, CutNode, FromTop, PartLaw
from congenial.releases.model import Model
from congenial.releases.part_models import below_model
from congenial.types import FloatArray, IntArray

# Kinds of values: the closest point, and the integers near it.
_CLOSEST, _RELEASED = "closest", "released"


@dataclass(frozen=True, eq=False)
class MeasuredParts:
    """Parts whose measurements, and then values, are in files of a directory.

    The files have no confidential count, except those that the plan publishes.
    """

    law: PartLaw
    place: Path
    nodes: tuple[CutNode, ...]  # The nodes that the parts are below.
    precision: float  # The largest of all counts: one over the variance of the noise.

    def measure(self, number: int, domain: Tree, counts: IntArray, rng: Randomness) -> None:
        """Measure the counts of a part; `draw_below` describes `domain` and `counts`."""
        tree, node = forest_below(domain, self.law.depth), self.nodes[number]
        image = _image(_model(self.law, tree, node))
        measured = np.asarray(image.measure(counts[self.law.depth :], rng=rng), dtype=np.int64)
        measured[0] = node.records if node.exact else 0  # the top measures the others
        np.savez(_measured(self.place, number), parents=tree.parents, measured=measured)

    def piece(self, number: int) -> TreePiece:
        """Return a part with its measurements."""
        tree, measured = _measurements(self.place, number)
        model = _model(self.law, tree, self.nodes[number])
        return _piece(model, measured, self.precision, np.array([number]))

    def storing(self, kind: str) -> Store:
        """Return what keeps values of parts in files; `kind` is part of their names."""

        def store(part: TreePiece, z: FloatArray) -> None:
            np.save(_kept(self.place, kind, int(part.nodes[0])), z)

        return store


def parts_of(law: PartLaw, over: Model, place: Path, nodes: Sequence[CutNode]) -> MeasuredParts:
    """Return the parts below some nodes before they are measured; `over` is the top."""
    below = Additive(find_law(law.plan.privacy.noise)(np.array(law.scale)), len(law.scale))
    most = max(float(precision(each).max()) for each in (over.mechanism, below))
    return MeasuredParts(law, place, tuple(nodes), most)


def image_top(
    over: Model, counts: IntArray, roots: IntArray, parts: MeasuredParts, rng: Randomness
) -> tuple[DrawnRows, list[FromTop]]:
    """Measure the counts down to the cut, and move them and all parts to the closest counts.

    `roots` are the nodes of the cut, whose parts are measured already.
    """
    measured = np.asarray(_image(over).measure(counts, rng=rng), dtype=np.int64)
    top = _piece(over, measured, parts.precision, np.arange(len(counts)))
    z = solve_parts(top, roots, parts.piece, parts.storing(_CLOSEST))
    closest = ClosestPoint(top, roots, parts.piece, partial(_values, parts.place, _CLOSEST))
    # counts below the cut are not negative and add up to those above
    largest = float(np.abs(z).max())
    whole = closest.rounded(z, largest, parts.storing(_RELEASED), rng.bits)
    values = checked_draws(over.resolved, np.rint(whole).astype(np.int64), counts)
    place = str(parts.place)
    given = [FromTop(total, imaged=(place, k)) for k, total in enumerate(values[roots].tolist())]
    return drawn_rows(over, counts, measured, values), given


def image_below(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, given: FromTop
) -> DrawnRows:
    """Return the released counts of a part; `draw_below` describes `domain` and `counts`."""
    if given.imaged is None:
        raise AssertionError("a part that is imaged has been measured")
    place, number = Path(given.imaged[0]), given.imaged[1]
    tree = forest_below(domain, law.depth)
    seen, measured = _measurements(place, number)
    if not seen.same_as(tree):
        raise DataError(CHANGED)
    values = np.rint(_values(place, _RELEASED, number)).astype(np.int64)
    measured[0] = given.total
    values = checked_draws(_model(law, tree, node).resolved, values, measured)
    if values[0] != given.total:
        raise ReleaseError("a part does not have the released count of its node; release again.")
    # for readers the node's own count is that of the top
    return drawn_rows(_model(law, tree), counts[law.depth :], measured, values)


def _measured(place: Path, number: int) -> Path:
    return place / f"measured-{number}.npz"


def _kept(place: Path, kind: str, number: int) -> Path:
    return place / f"{kind}-{number}.npy"


def _measurements(place: Path, number: int) -> tuple[Tree, IntArray]:
    """Return the nodes of a part, without names, and their measurements, shape (nodes,)."""
    with np.load(_measured(place, number)) as found:
        return Tree.from_parents(found["parents"]), found["measured"]


def _values(place: Path, kind: str, number: int) -> FloatArray:
    """Return values of a part that are kept, shape (nodes,)."""
    return np.asarray(np.load(_kept(place, kind, number)))


def _model(law: PartLaw, tree: Tree, node: CutNode | None = None) -> Model:
    """Return the model of the counts from a cut node on, which has no measurement there."""
    scale = np.concatenate(([np.inf], law.scale[1:]))
    exact = tree.roots if node is not None and node.exact else tree.roots[:0]
    return below_model(law.plan, scale, tree, exact)


def _image(model: Model) -> Imaged:
    return Imaged(model.mechanism, model.resolved, "l2", integer=True)


def _piece(model: Model, measured: IntArray, most: float, nodes: IntArray) -> TreePiece:
    """Return the top or a part as `solve_parts` takes it; `nodes` name it."""
    values = measured.astype(np.float64)
    own = np.where(model.resolved.pinned, 0.0, precision(model.mechanism))
    weight = checked_weights(np.append(own, most), own.size + 1)[:-1]
    resolved = model.resolved.with_pins(values)
    return TreePiece(nodes, cast(Tree, model.domain), resolved, values, weight, whole=True)
