"""A tree in pieces: its top, and the parts below the nodes of a cut, one held at a time.

A part sends the top log weights of its root's count, given all its measurements. The law of a cut
node's count in the top is then its law in the whole tree, and from it follow the laws of the part.
So a part is worked out twice. A whole tree is a top without parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.solvers.part_curves import TreePiece, solve_parts
from congenial.imaging.solvers.problem import checked_weights
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.inference.splits.messages import (
    Evidence,
    Laws,
    PartLogs,
    RootLogs,
    SplitLaw,
    split_law,
)
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray

# The number of the top among the pieces; parts are numbered from 0.
TOP = -1
# Kinds of values that are kept: approximate counts, proportions of categories (`Pieces.shape`), and
# the closest point to some values.
CENTER, SHAPE, _CLOSEST = "center", "shape", "nearest"

# Most bytes of the messages of all parts that are kept until the top has its laws; those of other
# parts are worked out twice.
_ROOM = 1 << 28
# Most nodes of all parts whose evidence is kept in memory, some 150 bytes each; that of others is
# worked out whenever it is needed.
_NODES = 500_000

# Returns the prior of a piece, by its number.
PriorOf = Callable[[int], DirichletTree]


class Store(Protocol):
    """Values of parts, by their kind and the number of the part."""

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a part."""

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a part that are kept, as a vector."""


@dataclass(eq=False)
class _Held:
    """Parts whose evidence is kept in memory."""

    parts: dict[int, Evidence] = field(default_factory=dict)
    nodes: int = 0  # Of all these parts.

    def keep(self, number: int, evidence: Evidence) -> None:
        """Keep the evidence about a part, if there is room for it."""
        if self.nodes + len(evidence.tree) <= _NODES:
            self.parts[number] = evidence
            self.nodes += len(evidence.tree)


@dataclass(frozen=True, eq=False)
class Pieces:
    """The evidence about a tree in pieces, and what is known of each piece so far.

    The root of a part is a cut node, and its evidence is that of the top.
    """

    top: Evidence
    roots: IntArray  # shape (parts,): The cut nodes, in the top.
    fetch: Callable[[int], Evidence]  # Returns a part, by its number.
    store: Store
    categories: int  # Number of categories that all families of leaves have; 0 if they differ.
    # Called with the name of each step as it begins.
    notify: Callable[[str], None] = lambda _: None
    of_top: dict[str, FloatArray] = field(default_factory=dict)
    held: _Held = field(default_factory=_Held)

    @property
    def numbers(self) -> range:
        """The numbers of all pieces."""
        return range(TOP, self.roots.size)

    @property
    def depth(self) -> int:
        """The level of the cut; that of the roots in a whole tree."""
        return int(self.top.tree.level[self.roots[0]]) if self.roots.size else 0

    def evidence(self, number: int) -> Evidence:
        """Return the evidence about a piece."""
        if number == TOP:
            return self.top
        if number in self.held.parts:
            return self.held.parts[number]
        found, at = self.fetch(number), self.roots[number]
        known = {}
        for name in ("kind", "scale", "y", "lo", "hi"):
            known[name] = getattr(found, name).copy()
            known[name][0] = getattr(self.top, name)[at]
        whole = replace(found, **known)
        self.held.keep(number, whole)
        return whole

    def level(self, number: int, evidence: Evidence) -> IntArray:
        """Return the level of each node of a piece in the whole tree."""
        return evidence.tree.level + (self.depth if number != TOP else 0)

    def own(self, number: int) -> slice:
        """Return the nodes of a piece that no other piece has."""
        return slice(None) if number == TOP else slice(1, None)

    def sizes(self) -> IntArray:
        """Return the number of nodes of each level."""
        found = np.zeros(0, dtype=np.int64)
        for number in self.numbers:
            known = self.evidence(number)
            more = np.bincount(self.level(number, known)[self.own(number)])
            both = np.zeros(max(found.size, more.size), dtype=np.int64)
            both[: found.size] += found
            both[: more.size] += more
            found = both
        return found

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a piece."""
        if number == TOP:
            self.of_top[kind] = values
        else:
            self.store.keep(kind, number, values)

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a piece that are kept."""
        return self.of_top[kind] if number == TOP else self.store.values(kind, number)

    def shape(self, number: int) -> FloatArray:
        """Return each node's alpha up to a factor of its level: 1, or its category's proportion."""
        if self.categories:
            return self.values(SHAPE, number)
        return np.ones(len(self.evidence(number).tree))

    def law_of(self, number: int, prior: PriorOf, nats: float, root: RootLogs) -> Laws:
        """Return the laws of a part, given that of its root's count in the whole tree."""
        self._begin("choosing the counts of", number)
        return self._below(number, prior, nats)[0].given(root).laws(kept=True)

    def laws(
        self, prior: PriorOf, nats: float, *, kept: bool = False
    ) -> Iterator[tuple[int, Laws, Evidence]]:
        """Yield the number, the laws and the evidence of the top, then those of each part."""
        top, messages, held, room = self.top, list[RootLogs](), {}, _ROOM
        for number in range(self.roots.size):
            sent = self._below(number, prior, nats)
            messages.append(sent[0].message())
            room -= sent[0].size
            if room >= 0:
                held[number] = sent
        if messages:
            top = replace(top, parts=PartLogs.of(self.roots, messages))
        law = split_law(top, prior(TOP), self.values(CENTER, TOP), nats)
        found = law.laws(kept=kept or self.roots.size > 0)
        yield TOP, found, top
        for number, node in enumerate(self.roots.tolist()):
            self._begin("working out", number)
            sent = held.pop(number) if number in held else self._below(number, prior, nats)
            part, known = sent
            yield number, part.given(found.logs(node)).laws(kept=kept), known

    def _below(self, number: int, prior: PriorOf, nats: float) -> tuple[SplitLaw, Evidence]:
        """Return the messages of a part, and the evidence about it."""
        known, near = self.evidence(number), self.values(CENTER, number)
        return split_law(known, prior(number), near, nats, part=True), known

    def estimate(self) -> None:
        """Keep the nonnegative least squares fit to the measurements as `CENTER`."""
        most = max(float(_precision(self.evidence(number)).max()) for number in self.numbers)

        def piece(number: int) -> TreePiece:
            known = self.evidence(number)
            weight = checked_weights(np.append(_precision(known), most), known.y.size + 1)[:-1]
            return _tree_piece(number, known, known.y, weight)

        self._solved(CENTER, piece)

    def rounded(self, kind: str, to: str, rng: Randomness) -> None:
        """Keep the integers near values that add up, as `project`; `kind` and `to` name both."""

        def piece(number: int) -> TreePiece:
            values = self.values(kind, number)
            return _tree_piece(number, self.evidence(number), values, np.ones(values.size))

        largest = self._solved(_CLOSEST, piece)
        near = partial(self.values, _CLOSEST)
        closest = ClosestPoint(piece(TOP), self.roots, piece, near)
        values = closest.rounded(near(TOP), largest, self._storing(to), rng.bits)
        self.keep(to, TOP, values)

    def _solved(self, kind: str, piece: Callable[[int], TreePiece]) -> float:
        """Keep the closest point to the values of pieces; return its largest value."""
        z = solve_parts(piece(TOP), self.roots, piece, self._storing(kind))
        self.keep(kind, TOP, z)
        return float(np.abs(z).max())  # counts below add up to it and are not negative

    def _begin(self, step: str, number: int) -> None:
        self.notify(f"{step} part {number + 1:,} of {self.roots.size:,}")

    def _storing(self, kind: str) -> Callable[[TreePiece, FloatArray], None]:
        def store(part: TreePiece, z: FloatArray) -> None:
            self.keep(kind, int(part.nodes[0]), z)

        return store


def _precision(known: Evidence) -> FloatArray:
    return np.where(known.kind == laws.FLAT, 0.0, 1.0 / known.variance)


def _tree_piece(number: int, known: Evidence, y: FloatArray, weight: FloatArray) -> TreePiece:
    n, tree, pinned = len(known.tree), known.tree, known.lo == known.hi
    nodes = np.arange(n) if number == TOP else np.array([number])
    others = np.zeros((0, n)), np.zeros(0)
    resolved = ResolvedInvariant(n, tree, pinned, known.lo, known.hi, others, others)
    return TreePiece(nodes, tree, resolved, np.where(pinned, known.lo, y), weight, whole=True)
