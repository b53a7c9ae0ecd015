"""A tree in pieces: its top, and the parts below the nodes of a cut, one held at a time.

A part sends the top log weights of its root's count, given all its measurements. The law of a cut
node's count in the top is then its law in the whole tree, and from it follow the laws of the part.
So a part is worked out twice. A whole tree is a top without parts.

Workers do each step for the parts (`domain.workers`), and this process does it for the top. A step
is given the piece's `View` and number.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from congenial.domain.workers import HERE, Arguments, Workers
from congenial.imaging.closest_in_parts import ClosestPoint
from congenial.imaging.part_values import Keeps, Storing
from congenial.imaging.solvers.part_curves import Fetch, TreePiece, solve_parts
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

Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

# The number of the top among the pieces; parts are numbered from 0.
TOP = -1
# Kinds of values that are kept: approximate counts, proportions of categories (`View.shape`), and
# the closest point to some values.
CENTER, SHAPE, _CLOSEST = "center", "shape", "nearest"

# Smallest alpha of a node.
LEAST_ALPHA = 1e-6
# Most bytes of the messages of all parts that are kept until the top has its laws; those of other
# parts are worked out twice.
_ROOM = 1 << 28
# Most nodes of all parts whose evidence is kept in memory, some 150 bytes each; that of others is
# worked out whenever it is needed.
_NODES = 500_000
# Columns of `Evidence` that the root of a part has from the top.
_COLUMNS = ("kind", "scale", "y", "lo", "hi")


def prior_of(alpha: FloatArray) -> DirichletTree:
    """Return the prior of some alpha, none of them too small."""
    return DirichletTree(np.maximum(alpha, LEAST_ALPHA))


class View(Protocol):
    """A step's view of a piece, given its number."""

    @property
    def categories(self) -> int:
        """Number of categories that all families of leaves have; 0 if they differ."""

    def evidence(self, number: int) -> Evidence:
        """Return the evidence about a piece."""

    def level(self, number: int, evidence: Evidence) -> IntArray:
        """Return the level of each node of a piece in the whole tree."""

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a piece."""

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a piece that are kept."""

    def shape(self, number: int) -> FloatArray:
        """Return each node's alpha up to a factor of its level: 1, or its category's proportion."""


class OfLaws(Protocol[Result_co]):
    """A step that is given the laws of a piece."""

    def __call__(self, view: View, number: int, law: Laws, known: Evidence) -> Result_co:
        """Do the step for a piece."""


@dataclass(eq=False)
class _Held:
    """Evidence and messages of parts that are kept in memory, to be worked out once."""

    parts: dict[int, Evidence] = field(default_factory=dict)
    nodes: int = 0  # Of all these parts.
    sent: dict[int, tuple[SplitLaw, Evidence]] = field(default_factory=dict)
    room: int = 0  # Bytes left for messages.

    def keep(self, number: int, evidence: Evidence) -> None:
        """Keep the evidence about a part, if there is room for it."""
        if self.nodes + len(evidence.tree) <= _NODES:
            self.parts[number] = evidence
            self.nodes += len(evidence.tree)

    def clear(self) -> None:
        """Keep no messages."""
        self.sent.clear()
        self.room = _ROOM

    def keep_sent(self, number: int, sent: tuple[SplitLaw, Evidence]) -> None:
        """Keep the messages of a part, if there is room for them."""
        self.room -= sent[0].size
        if self.room >= 0:
            self.sent[number] = sent


@dataclass(frozen=True, eq=False)
class PartsBelow:
    """The parts of a tree, as a worker sees them. The root of a part is a cut node."""

    fetch: Callable[[int], Evidence]  # Returns a part, by its number.
    store: Keeps
    depth: int  # The level of the cut.
    categories: int
    # Columns of the evidence about the cut nodes, which is that of the top; each of shape (parts,).
    of_roots: dict[str, FloatArray | IntArray]
    held: _Held = field(default_factory=_Held)

    def __reduce__(self) -> tuple[Any, ...]:
        """Go to another process, which does one step and keeps nothing in memory."""
        known = self.fetch, self.store, self.depth, self.categories, self.of_roots
        return PartsBelow, (*known, _Held(nodes=_NODES))

    def evidence(self, number: int) -> Evidence:
        """Return the evidence about a part."""
        if number in self.held.parts:
            return self.held.parts[number]
        found, known = self.fetch(number), {}
        for name in _COLUMNS:
            known[name] = getattr(found, name).copy()
            known[name][0] = self.of_roots[name][number]
        whole = replace(found, **known)
        self.held.keep(number, whole)
        return whole

    def level(self, number: int, evidence: Evidence) -> IntArray:  # noqa: ARG002 -- as `Pieces`
        """Return the level of each node of a part in the whole tree."""
        return evidence.tree.level + self.depth

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a part."""
        self.store.keep(kind, number, values)

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a part that are kept."""
        return self.store.values(kind, number)

    def shape(self, number: int) -> FloatArray:
        """Return each node's alpha up to a factor of its level, see `View`."""
        return _shape(self, number)

    def sent(self, number: int, prior: str, nats: float) -> tuple[SplitLaw, Evidence]:
        """Return the messages of a part, and the evidence about it."""
        if number in self.held.sent:
            return self.held.sent.pop(number)
        known, near = self.evidence(number), self.values(CENTER, number)
        alpha = prior_of(self.values(prior, number))
        return split_law(known, alpha, near, nats, part=True), known

    def message(self, prior: str, nats: float, number: int) -> RootLogs:
        """Return the message of a part to the top."""
        sent = self.sent(number, prior, nats)
        self.held.keep_sent(number, sent)
        return sent[0].message()

    def law_of(self, number: int, prior: str, nats: float, root: RootLogs) -> Laws:
        """Return the laws of a part, given that of its root's count in the whole tree."""
        return self.sent(number, prior, nats)[0].given(root).laws(kept=True)


@dataclass(frozen=True, eq=False)
class _Given:
    """Works out the laws of a part, given that of its root's count in the whole tree."""

    parts: PartsBelow
    prior: str
    nats: float
    kept: bool
    then: OfLaws[Any]

    def __call__(self, number: int, root: RootLogs) -> Any:
        part, known = self.parts.sent(number, self.prior, self.nats)
        return self.then(self.parts, number, part.given(root).laws(kept=self.kept), known)


@dataclass(frozen=True, eq=False)
class Pieces:
    """The evidence about a tree in pieces, and what is known of each piece so far."""

    top: Evidence
    roots: IntArray  # shape (parts,): The cut nodes, in the top.
    parts: PartsBelow
    workers: Workers = HERE
    of_top: dict[str, FloatArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        top: Evidence,
        roots: IntArray,
        fetch: Callable[[int], Evidence],
        store: Keeps,
        categories: int,
        workers: Workers = HERE,
    ) -> Pieces:
        """Return the pieces of a tree; for the arguments see `PartsBelow`."""
        depth = int(top.tree.level[roots[0]]) if roots.size else 0
        of_roots = {name: getattr(top, name)[roots] for name in _COLUMNS}
        return cls(top, roots, PartsBelow(fetch, store, depth, categories, of_roots), workers)

    @property
    def numbers(self) -> range:
        """The numbers of all pieces."""
        return range(TOP, self.roots.size)

    @property
    def depth(self) -> int:
        """The level of the cut; that of the roots in a whole tree."""
        return self.parts.depth

    @property
    def categories(self) -> int:
        """Number of categories that all families of leaves have; 0 if they differ."""
        return self.parts.categories

    def run(
        self, doing: str, step: Callable[..., Result], given: Arguments | None = None
    ) -> list[Result]:
        """Do a step for each part; it is given the parts, a number, and further arguments."""
        every = dict.fromkeys(range(self.roots.size), ()) if given is None else given
        return self.workers.run(doing, partial(step, self.parts), every)

    def evidence(self, number: int) -> Evidence:
        """Return the evidence about a piece."""
        return self.top if number == TOP else self.parts.evidence(number)

    def level(self, number: int, evidence: Evidence) -> IntArray:
        """Return the level of each node of a piece in the whole tree."""
        return evidence.tree.level if number == TOP else self.parts.level(number, evidence)

    def own(self, number: int) -> slice:
        """Return the nodes of a piece that no other piece has."""
        return slice(None) if number == TOP else slice(1, None)

    @cached_property
    def sizes(self) -> IntArray:
        """The number of nodes of each level."""
        top = np.bincount(self.top.tree.level)
        deepest = max([0, *(looked.sizes.size for looked in self._looked)])
        found = np.zeros(max(top.size, self.depth + 1 + deepest), dtype=np.int64)
        found[: top.size] = top
        for looked in self._looked:
            found[self.depth + 1 :][: looked.sizes.size] += looked.sizes
        return found

    def sizes_at(self, level: int) -> IntArray:
        """Return the number of nodes of a level below the cut in each part, shape (parts,)."""
        at = level - self.depth - 1
        found = [one.sizes[at] if at < one.sizes.size else 0 for one in self._looked]
        return np.array(found, dtype=np.int64)

    @cached_property
    def _looked(self) -> list[_Looked]:
        return self.run("looking at", _look)

    def keep(self, kind: str, number: int, values: FloatArray) -> None:
        """Keep values of a piece."""
        if number == TOP:
            self.of_top[kind] = values
        else:
            self.parts.keep(kind, number, values)

    def values(self, kind: str, number: int) -> FloatArray:
        """Return values of a piece that are kept."""
        return self.of_top[kind] if number == TOP else self.parts.values(kind, number)

    def shape(self, number: int) -> FloatArray:
        """Return each node's alpha up to a factor of its level, see `View`."""
        return _shape(self, number)

    def laws(
        self, prior: str, nats: float, then: OfLaws[Result], *, kept: bool = False
    ) -> tuple[Laws, list[Result]]:
        """Return the laws of the top, and the results of a step that is given those of each piece.

        `prior` is the kind of the alpha that are kept. The laws of the top come first.
        """
        top, parts = self.top, self.parts
        parts.held.clear()
        if self.roots.size:
            messages = self.workers.run(
                "working out",
                partial(parts.message, prior, nats),
                dict.fromkeys(range(self.roots.size), ()),
            )
            top = replace(top, parts=PartLogs.of(self.roots, messages))
        law = split_law(top, prior_of(self.values(prior, TOP)), self.values(CENTER, TOP), nats)
        found = law.laws(kept=kept or self.roots.size > 0)
        results = [then(self, TOP, found, top)]
        if self.roots.size:
            given = _Given(parts, prior, nats, kept, then)
            logs = {k: (found.logs(node),) for k, node in enumerate(self.roots.tolist())}
            results += self.workers.run("working out", given, logs)
        return found, results

    def estimate(self) -> None:
        """Keep the nonnegative least squares fit to the measurements as `CENTER`."""
        own = float(_precision(self.top).max())
        most = max([own, *(looked.precision for looked in self._looked)])
        self._solved(CENTER, _weighted(TOP, self.top, most), _Weighted(self.parts, most))

    def rounded(self, kind: str, to: str, rng: Randomness) -> None:
        """Keep the integers near values that add up, as `project`; `kind` and `to` name both."""
        top, fetch = _evenly(self, kind, TOP), partial(_evenly, self.parts, kind)
        largest = self._solved(_CLOSEST, top, fetch)
        near = partial(self.parts.values, _CLOSEST)
        closest, store = ClosestPoint(top, self.roots, fetch, near), self._storing(to)
        values = self.values(_CLOSEST, TOP)
        self.keep(to, TOP, closest.rounded(values, largest, store, rng, self.workers))

    def _solved(self, kind: str, top: TreePiece, fetch: Fetch) -> float:
        """Keep the closest point to the values of pieces; return its largest value."""
        z = solve_parts(top, self.roots, fetch, self._storing(kind), self.workers)
        self.keep(kind, TOP, z)
        return float(np.abs(z).max())  # counts below add up to it and are not negative

    def _storing(self, kind: str) -> Storing:
        return Storing(self.parts.store, kind)


class _Looked(NamedTuple):
    """Facts about a part, which several steps need."""

    sizes: IntArray  # Number of nodes of each level below the root.
    precision: float  # The largest of its measurements.


def _look(parts: PartsBelow, number: int) -> _Looked:
    known = parts.evidence(number)
    return _Looked(np.bincount(known.tree.level)[1:], float(_precision(known).max()))


def _shape(view: View, number: int) -> FloatArray:
    if view.categories:
        return view.values(SHAPE, number)
    return np.ones(len(view.evidence(number).tree))


def _precision(known: Evidence) -> FloatArray:
    return np.where(known.kind == laws.FLAT, 0.0, 1.0 / known.variance)


def _weighted(number: int, known: Evidence, most: float) -> TreePiece:
    """Return a piece with its measurements; `most` is the largest precision of all pieces."""
    weight = checked_weights(np.append(_precision(known), most), known.y.size + 1)[:-1]
    return _tree_piece(number, known, known.y, weight)


@dataclass(frozen=True, eq=False)
class _Weighted:
    """Fetches a part with its measurements."""

    parts: PartsBelow
    most: float

    def __call__(self, number: int) -> TreePiece:
        return _weighted(number, self.parts.evidence(number), self.most)


def _evenly(view: View, kind: str, number: int) -> TreePiece:
    """Return a piece with some of its values, of equal weight."""
    values = view.values(kind, number)
    return _tree_piece(number, view.evidence(number), values, np.ones(values.size))


def _tree_piece(number: int, known: Evidence, y: FloatArray, weight: FloatArray) -> TreePiece:
    n, tree, pinned = len(known.tree), known.tree, known.lo == known.hi
    nodes = np.arange(n) if number == TOP else np.array([number])
    others = np.zeros((0, n)), np.zeros(0)
    resolved = ResolvedInvariant(n, tree, pinned, known.lo, known.hi, others, others)
    return TreePiece(nodes, tree, resolved, np.where(pinned, known.lo, y), weight, whole=True)
