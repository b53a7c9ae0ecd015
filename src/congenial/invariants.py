"""What every release must satisfy: the form of an invariant, kept apart from its value.

An `Invariant` is a conjunction of parts made by `consistent`, `nonnegative`, `exactly`, `bounds`,
`linear` and `at_least`, joined with ``&``. ``C1 | C2`` is a disjoint union. `requirements`
resolves one against a vector length; the confidential values that `exactly` refers to come in
only when a release is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, InfeasibleError, InvariantError
from congenial.tree import Tree

FloatArray = npt.NDArray[np.float64]
NodeLike = int | str | Sequence[str]


@dataclass(frozen=True, eq=False)
class Consistent:
    """Every inner node of `tree` equals the sum of its children."""

    tree: Tree


@dataclass(frozen=True)
class Nonnegative:
    """Every entry is at least zero."""


@dataclass(frozen=True, eq=False)
class Exactly:
    """The named entries equal their confidential values."""

    nodes: tuple[NodeLike, ...]


@dataclass(frozen=True, eq=False)
class Bounds:
    """Entries lie between `lo` and `hi`, both scalars or shape (n,)."""

    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True, eq=False)
class Linear:
    """``matrix @ z == value``; shapes (m, n) and (m,)."""

    matrix: FloatArray
    value: FloatArray


@dataclass(frozen=True, eq=False)
class AtLeast:
    """``matrix @ z >= value``; shapes (m, n) and (m,)."""

    matrix: FloatArray
    value: FloatArray


Part = Consistent | Nonnegative | Exactly | Bounds | Linear | AtLeast


@dataclass(frozen=True, eq=False)
class Invariant:
    """A conjunction of parts."""

    parts: tuple[Part, ...]

    def __and__(self, other: Invariant) -> Invariant:
        """Both invariants hold."""
        if not isinstance(other, Invariant):
            return NotImplemented
        return Invariant(self.parts + other.parts)

    def __or__(self, other: Invariant | Union) -> Union:
        """Either invariant holds; the two must be disjoint."""
        return Union((self,)) | other


@dataclass(frozen=True, eq=False)
class Union:
    """A union of disjoint invariants (Two Views, Theorem 3.5)."""

    alternatives: tuple[Invariant, ...]

    def __or__(self, other: Invariant | Union) -> Union:
        """Add alternatives."""
        if isinstance(other, Invariant):
            return Union((*self.alternatives, other))
        if isinstance(other, Union):
            return Union(self.alternatives + other.alternatives)
        return NotImplemented


def consistent(tree: Tree) -> Invariant:
    """Every inner node of `tree` equals the sum of its children."""
    if not isinstance(tree, Tree):
        raise ArgumentError(f"consistent() was given a {type(tree).__name__}; give a Tree.")
    return Invariant((Consistent(tree),))


def nonnegative() -> Invariant:
    """Every entry is at least zero."""
    return Invariant((Nonnegative(),))


def exactly(nodes: NodeLike | Sequence[NodeLike] | npt.NDArray[np.integer]) -> Invariant:
    """The named entries are published as enumerated.

    Parameters
    ----------
    nodes : int, str, or a sequence of these
        Indices, names that occur once, or "a/b/c" paths; "root" stands for every root.

    Notes
    -----
    The value of such an invariant is a confidential count, so it is *unprotected*: a guarantee
    compares only datasets that agree on it.
    """
    given: list[object]
    if isinstance(nodes, str | bool) or not isinstance(nodes, Iterable):
        given = [nodes]
    else:
        given = list(nodes)
    listed: list[NodeLike] = []
    for node in given:
        if isinstance(node, bool) or not isinstance(node, str | int | np.integer | Sequence):
            raise ArgumentError(
                f"exactly() was given {node!r}; name nodes by index, by name or by path."
            )
        listed.append(int(node) if isinstance(node, int | np.integer) else node)
    if not listed:
        raise ArgumentError("exactly() was given no node; name at least one, or leave it out.")
    return Invariant((Exactly(tuple(listed)),))


def bounds(lo: npt.ArrayLike = -np.inf, hi: npt.ArrayLike = np.inf) -> Invariant:
    """Entries lie in ``[lo, hi]``; scalars or one value an entry; the bounds are public."""
    low, high = _numbers("bounds", lo), _numbers("bounds", hi)
    if np.isnan(low).any() or np.isnan(high).any():
        raise ArgumentError("bounds() was given NaN; give numbers, or -inf and inf for no bound.")
    return Invariant((Bounds(low, high),))


def _numbers(name: str, given: npt.ArrayLike) -> FloatArray:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(
            f"{name}() was given something other than numbers; give a number or an array of them."
        ) from None


def _system(
    name: str, matrix: npt.ArrayLike, value: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    rows = np.atleast_2d(_numbers(name, matrix))
    values = np.atleast_1d(_numbers(name, value))
    if rows.ndim != 2 or values.shape != (rows.shape[0],):
        raise ArgumentError(
            f"{name}() was given shapes {rows.shape} and {values.shape}; give (m, n) and (m,)."
        )
    if not (np.isfinite(rows).all() and np.isfinite(values).all()):
        raise ArgumentError(f"{name}() was given an entry that is not finite; give numbers.")
    return rows, values


def linear(matrix: npt.ArrayLike, value: npt.ArrayLike) -> Invariant:
    """``matrix @ z == value``, with a public `value`; shapes (m, n) or (n,), and (m,) or ()."""
    return Invariant((Linear(*_system("linear", matrix, value)),))


def at_least(matrix: npt.ArrayLike, value: npt.ArrayLike) -> Invariant:
    """``matrix @ z >= value``, with a public `value`; shapes (m, n) or (n,), and (m,) or ()."""
    return Invariant((AtLeast(*_system("at_least", matrix, value)),))


@dataclass(frozen=True, eq=False)
class Requirements:
    """An invariant resolved for vectors of length `n`.

    Attributes
    ----------
    n : int
    tree : Tree or None
        The hierarchy that must add up.
    pinned : ndarray of bool, shape (n,)
        Entries that equal their confidential values.
    lo, hi : ndarray of float64, shape (n,)
        Public bounds; infinite where there is none. They may be views of a single number.
    equalities, inequalities : pair of ndarray, shapes (m, n) and (m,)
        Further public linear conditions.
    """

    n: int
    tree: Tree | None
    pinned: npt.NDArray[np.bool_]
    lo: FloatArray
    hi: FloatArray
    equalities: tuple[FloatArray, FloatArray] = field(repr=False)
    inequalities: tuple[FloatArray, FloatArray] = field(repr=False)

    @cached_property
    def has_inequalities(self) -> bool:
        """Whether anything but equalities restricts an entry that is not pinned."""
        if self.inequalities[1].size:
            return True
        bounded = np.isfinite(_listed(self.lo)) | np.isfinite(_listed(self.hi))
        return bool(bounded.any() and (bounded & ~self.pinned).any())

    def within_bounds(self, values: npt.NDArray[np.int64]) -> bool:
        """Whether every one of n values lies within its bounds."""
        lo, hi = _listed(self.lo), _listed(self.hi)
        # the extremes are compared with a single number, so that no vector of answers is made
        least = values.min() if lo.size == 1 and np.isfinite(lo[0]) else values
        most = values.max() if hi.size == 1 and np.isfinite(hi[0]) else values
        low = np.isneginf(lo).all() or (least >= lo).all()
        return bool(low and (np.isposinf(hi).all() or (most <= hi).all()))


def _listed(values: FloatArray) -> FloatArray:
    """Return the different numbers behind a vector, one where it is a view of a single one."""
    return values[:1] if values.strides == (0,) else values


def _resolve_nodes(listed: Sequence[NodeLike], n: int, tree: Tree | None) -> list[int]:
    nodes: list[int] = []
    for entry in listed:
        if isinstance(entry, str) and entry == "root" and tree is not None:
            nodes.extend(int(v) for v in tree.roots)
        elif tree is not None:
            nodes.append(tree.find(entry))
        elif isinstance(entry, int) and 0 <= entry < n:
            nodes.append(entry)
        else:
            raise ArgumentError(f"exactly() names {entry!r}; give an index from 0 to {n - 1}.")
    return nodes


def _imposed_tree(invariant: Invariant, n: int) -> Tree | None:
    trees = [p.tree for p in invariant.parts if isinstance(p, Consistent)]
    imposed = trees[0] if trees else None
    if imposed is not None and not all(imposed.same_as(other) for other in trees[1:]):
        raise InvariantError("two different trees are imposed; impose one with consistent(tree).")
    if imposed is not None and len(imposed) != n:
        raise InvariantError(
            f"the tree has {len(imposed)} nodes and the mechanism {n} queries; give equal lengths."
        )
    return imposed


def requirements(invariant: Invariant, n: int, tree: Tree | None = None) -> Requirements:
    """Resolve an invariant for vectors of length `n`.

    Parameters
    ----------
    invariant : Invariant
    n : int
        Number of entries.
    tree : Tree, optional
        Resolves names in `exactly`; it is imposed only by `consistent`.

    Raises
    ------
    InvariantError
        If two different trees are imposed, or a shape does not fit `n`.
    InfeasibleError
        If the bounds of an entry exclude each other.
    """
    if not isinstance(invariant, Invariant):
        raise ArgumentError(
            f"the invariant is a {type(invariant).__name__}; build it with congenial.consistent(), "
            "exactly(), nonnegative(), bounds(), linear() and at_least(), joined by &."
        )
    imposed = _imposed_tree(invariant, n)
    if imposed is not None and tree is not None and not imposed.same_as(tree):
        raise InvariantError(
            "the tree that consistent() imposes is not the tree of the mechanism; "
            "give both the same."
        )
    lookup = imposed if imposed is not None else tree
    pinned = np.zeros(n, dtype=np.bool_)
    lo, hi = np.asarray(-np.inf), np.asarray(np.inf)  # single numbers for as long as they do
    rows: dict[type, list[tuple[FloatArray, FloatArray]]] = {Linear: [], AtLeast: []}
    for part in invariant.parts:
        if isinstance(part, Exactly):
            pinned[_resolve_nodes(part.nodes, n, lookup)] = True
        elif isinstance(part, Nonnegative):
            lo = np.asarray(np.maximum(lo, 0.0))
        elif isinstance(part, Bounds):
            for side in (part.lo, part.hi):
                if side.shape not in ((), (n,)):
                    raise InvariantError(
                        f"bounds() has shape {side.shape}; give a number or {n} numbers."
                    )
            lo = np.asarray(np.maximum(lo, part.lo))
            hi = np.asarray(np.minimum(hi, part.hi))
        elif isinstance(part, Linear | AtLeast):
            if part.matrix.shape[1] != n:
                raise InvariantError(
                    f"a linear condition has {part.matrix.shape[1]} columns; give {n}."
                )
            rows[type(part)].append((part.matrix, part.value))
    clash = np.flatnonzero(np.ceil(lo) > np.floor(hi))
    lo, hi = np.broadcast_to(lo, (n,)), np.broadcast_to(hi, (n,))
    if clash.size:
        i = int(clash[0])
        raise InfeasibleError(
            f"entry {i} is bounded below by {lo[i]:g} and above by {hi[i]:g}, which leaves no "
            "integer; relax one of the two."
        )
    return Requirements(
        n, imposed, pinned, lo, hi, _stack(rows[Linear], n), _stack(rows[AtLeast], n)
    )


def _stack(systems: list[tuple[FloatArray, FloatArray]], n: int) -> tuple[FloatArray, FloatArray]:
    if not systems:
        return np.zeros((0, n)), np.zeros(0)
    return np.vstack([s[0] for s in systems]), np.concatenate([s[1] for s in systems])


def determined(need: Requirements) -> npt.NDArray[np.bool_]:
    """Entries whose values follow from what is fixed, shape (n,).

    Fixed are the pinned entries and those that their bounds leave one value; what follows is the
    only unknown of a sum, again and again.
    """
    known = np.asarray(need.pinned | (need.lo == need.hi))
    matrix, _ = need.equalities
    while True:
        before = int(known.sum())
        for row in matrix:
            unknown = np.flatnonzero((row != 0) & ~known)
            if unknown.size == 1:
                known[unknown] = True
        if need.tree is not None:
            _close_families(need.tree, known)
        if int(known.sum()) == before:
            return known


def _close_families(tree: Tree, known: npt.NDArray[np.bool_]) -> None:
    """Mark the only unknown of every family of a node and its children, in place."""
    child = np.flatnonzero(tree.parents >= 0)
    above = tree.parents[child]
    missing = (~known).astype(np.int64)
    missing[tree.is_leaf] = 0
    np.add.at(missing, above, ~known[child])
    one = (missing == 1) & ~tree.is_leaf
    known |= one
    known[child[one[above]]] = True
