"""Invariants as a user writes them: conditions on releases, kept apart from the data.

An `Invariant` is a conjunction of parts made by `consistent`, `nonnegative`, `exactly`, `bounds`,
`linear`, `at_least` and `at_least_as_many`, joined with ``&``. ``C1 | C2`` is a disjoint union.
`resolve_invariant` resolves one for a vector length. The confidential values that `exactly` refers
to are used only when a release is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.domain.given import limits
from congenial.domain.table import Table, margin_names
from congenial.domain.tree import Tree
from congenial.domain.workload import MarginLike, Workload
from congenial.errors import ArgumentError, InfeasibleError, InvariantError
from congenial.invariants.margins import (
    AtLeastAsMany,
    ExactMargins,
    Level,
    MarginBounds,
    OnMargins,
    Side,
    on_entries,
)
from congenial.invariants.resolved import ResolvedInvariant, named
from congenial.types import FloatArray

NodeLike = int | str | Sequence[str]
_NO_TRUTH = (
    "an invariant is neither true nor false, and Python's and, or and not would drop a part of it; "
    "join two invariants with & or |, and test for none with `is None`."
)


@dataclass(frozen=True, eq=False)
class Consistent:
    """Every inner node of a tree equals the sum of its children, every margin of its cells."""

    domain: Tree | Workload

    @property
    def tree(self) -> Tree | None:
        """The tree, or that of a workload if it has one."""
        return self.domain if isinstance(self.domain, Tree) else self.domain.tree

    @property
    def workload(self) -> Workload | None:
        """The workload, None for a tree."""
        return self.domain if isinstance(self.domain, Workload) else None


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


Part = Consistent | Nonnegative | Exactly | Bounds | Linear | AtLeast | OnMargins


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

    def __bool__(self) -> bool:
        """Refuse to be true or false: ``a and b`` would silently drop `a`."""
        raise InvariantError(_NO_TRUTH)


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

    def __bool__(self) -> bool:
        """Refuse to be true or false, as an `Invariant` does."""
        raise InvariantError(_NO_TRUTH)


def consistent(domain: Tree | Workload) -> Invariant:
    """Every inner node of a tree is the sum of its children, every margin of a workload adds up.

    Parameters
    ----------
    domain : Tree or Workload

    Returns
    -------
    Invariant

    Raises
    ------
    ArgumentError
        If `domain` is neither.
    """
    if not isinstance(domain, Tree | Workload):
        raise ArgumentError(
            f"consistent() was given a {type(domain).__name__}; give a Tree or a Workload."
        )
    return Invariant((Consistent(domain),))


def nonnegative() -> Invariant:
    """Every entry is at least zero.

    Returns
    -------
    Invariant
    """
    return Invariant((Nonnegative(),))


def exactly(
    nodes: NodeLike | Sequence[NodeLike] | npt.NDArray[np.integer] | None = None,
    *,
    margins: Sequence[MarginLike] | None = None,
    level: Level = None,
    table: str | Table | None = None,
) -> Invariant:
    """The named entries, or every count of the named margins, are published without noise.

    Parameters
    ----------
    nodes : int, str, or a sequence of these, optional
        Indices, names that occur once, or "a/b/c" paths; "root" stands for every root.
    margins : sequence of margins, optional
        Margins instead of nodes: tuples of axes or groups, each counted by the workload at
        `level`; ``()`` is the total. They need no noise.
    level : str or int, optional
        The level of the margins, by name or by depth; the coarsest by default.
    table : str or Table, optional
        The table of the margins; needed where the workload has several.

    Returns
    -------
    Invariant

    Raises
    ------
    ArgumentError
        If both nodes and margins are given, or neither, or a level or table without margins.

    Notes
    -----
    The values are confidential counts, published without protection: a guarantee compares only
    datasets that agree on them, and lists them.

    Examples
    --------
    >>> import congenial as cg
    >>> table = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18-64", "65+")})
    >>> workload = cg.Workload.of(table, [("sex",)])
    >>> noise = cg.DiscreteLaplace(workload.scales({("sex", "age"): 2.0}))
    >>> invariant = cg.consistent(workload) & cg.exactly(margins=[("sex",)])
    >>> release = cg.condition(cg.Additive(noise, workload), invariant)
    >>> z = release.sample(workload.answers([[1, 5, 2], [3, 4, 0]]), rng=cg.seeded(1))
    >>> workload.array(z, ("sex",)).tolist()
    [8, 7]
    """
    if margins is None:
        _no_margin("exactly", "margins", level, table)
        return Invariant((Exactly(_listed(nodes)),))
    if nodes is not None:
        raise ArgumentError(
            "exactly() was given nodes and margins; give one of them, and join two with &."
        )
    if isinstance(margins, str) or not isinstance(margins, Sequence) or not len(margins):
        raise ArgumentError(
            "exactly() was given no list of margins; give at least one, such as [('sex',)], or "
            "[()] for the total."
        )
    return Invariant((ExactMargins(tuple(map(margin_names, margins)), level, _name(table)),))


def _listed(nodes: object) -> tuple[NodeLike, ...]:
    given: list[object]
    if isinstance(nodes, str | bool) or not isinstance(nodes, Iterable):
        given = [] if nodes is None else [nodes]
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
    return tuple(listed)


def bounds(
    lo: npt.ArrayLike = -np.inf,
    hi: npt.ArrayLike = np.inf,
    *,
    margin: MarginLike | None = None,
    level: Level = None,
    table: str | Table | None = None,
) -> Invariant:
    """Entries, or all counts of a margin, lie in ``[lo, hi]``; the bounds are public.

    Parameters
    ----------
    lo, hi : float, or array_like of float
        One number, or one for each entry, shape (n,). With `margin`: one number, or an array of
        the shape that ``workload.array`` gives the margin.
    margin : tuple of str, optional
        The margin that is bounded, in every area of `level`; by default, all entries are bounded.
    level, table : optional
        As for `exactly`; with `margin` only.

    Returns
    -------
    Invariant

    Raises
    ------
    ArgumentError
        If a bound is not a number, or a level or table is given without a margin.
    """
    low, high = limits("bounds", lo, hi)
    if margin is None:
        _no_margin("bounds", "margin", level, table)
        return Invariant((Bounds(low, high),))
    return Invariant((MarginBounds(margin_names(margin), low, high, level, _name(table)),))


def _no_margin(name: str, missing: str, level: Level, table: str | Table | None) -> None:
    given = "level" if level is not None else "table"
    if level is not None or table is not None:
        raise ArgumentError(
            f"{name}() was given a {given} without {missing}; give {missing} too, or leave the "
            f"{given} out."
        )


def exactly_margins(
    margins: Sequence[MarginLike], *, level: Level = None, table: str | Table | None = None
) -> Invariant:
    """Call `exactly` with margins; the old name, which goes with version 0.2."""
    return exactly(margins=margins, level=level, table=table)


def bounds_margins(
    margin: MarginLike,
    lo: npt.ArrayLike = -np.inf,
    hi: npt.ArrayLike = np.inf,
    *,
    level: Level = None,
    table: str | Table | None = None,
) -> Invariant:
    """Call `bounds` with a margin; the old name, which goes with version 0.2."""
    return bounds(lo, hi, margin=margin, level=level, table=table)


def at_least_as_many(
    more: tuple[str | Table | None, Side],
    fewer: tuple[str | Table | None, Side],
    *,
    level: Level = None,
) -> Invariant:
    """One margin is nowhere below another, count by count, in every area of a level.

    Parameters
    ----------
    more, fewer : tuple of (table, margin) or (table, mapping)
        A margin stands for all its counts. A mapping gives a value for some axes or groups of the
        margin, and None for axes of which every value is meant. Both sides need the same number of
        counts in an area; they are compared in the order of the axes.
    level : str or int, optional
        As for `exactly`.

    Returns
    -------
    Invariant

    Raises
    ------
    ArgumentError
        If a side is not a pair of a table and a margin or mapping.

    Examples
    --------
    Where a home is occupied, somebody lives:

    >>> import congenial as cg
    >>> streets = cg.Tree.from_paths([("town", "a"), ("town", "b")])
    >>> people = cg.Table({"age": ("0-17", "18+")}, geography=streets, name="people")
    >>> homes = cg.Table({"occupied": ("yes", "no")}, geography=streets, name="homes")
    >>> settled = cg.at_least_as_many((people, ()), (homes, {"occupied": "yes"}), level=1)
    """
    sides = []
    for side in (more, fewer):
        if not isinstance(side, tuple) or len(side) != 2:
            raise ArgumentError(
                f"at_least_as_many() was given {side!r}; give a pair of a table and a margin, or "
                "of a table and a mapping from axes to values."
            )
        sides.append((_name(side[0]), side[1]))
    return Invariant((AtLeastAsMany(sides[0], sides[1], level),))


def _name(table: str | Table | None) -> str | None:
    return table.name if isinstance(table, Table) else table


def _numbers(name: str, given: npt.ArrayLike) -> FloatArray:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(
            f"{name}() was given something other than numbers of 64 bits; give one, or an array."
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
    """Sums of entries equal public values: ``matrix @ z == value``.

    Parameters
    ----------
    matrix : array_like of float, shape (m, n) or (n,)
        One row for each sum, one column for each entry.
    value : array_like of float, shape (m,) or ()
        In counts; public.

    Returns
    -------
    Invariant

    Raises
    ------
    ArgumentError
        If the shapes do not fit each other, or a number is not finite.
    """
    return Invariant((Linear(*_system("linear", matrix, value)),))


def at_least(matrix: npt.ArrayLike, value: npt.ArrayLike) -> Invariant:
    """Sums of entries are at least public values: ``matrix @ z >= value``.

    Parameters
    ----------
    matrix : array_like of float, shape (m, n) or (n,)
        One row for each sum, one column for each entry.
    value : array_like of float, shape (m,) or ()
        In counts; public.

    Returns
    -------
    Invariant

    Raises
    ------
    ArgumentError
        If the shapes do not fit each other, or a number is not finite.
    """
    return Invariant((AtLeast(*_system("at_least", matrix, value)),))


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


def _imposed(
    invariant: Invariant, n: int, domain: Tree | Workload | None
) -> tuple[Tree | None, Workload | None]:
    """The tree and the workload that must add up."""
    parts = [p for p in invariant.parts if isinstance(p, Consistent)]
    if not parts:
        return None, None
    first = parts[0]
    if not all(_alike(first.domain, other.domain) for other in parts[1:]):
        raise InvariantError("two different trees are imposed; impose one with consistent(tree).")
    if len(first.domain) != n:
        what, of = ("workload", "entries") if first.workload else ("tree", "nodes")
        raise InvariantError(
            f"the {what} has {len(first.domain)} {of} and the mechanism {n} queries; give equal "
            "lengths."
        )
    if domain is not None and not _alike(first.domain, domain):
        raise InvariantError(
            "the tree that consistent() imposes is not the tree of the mechanism; "
            "give both the same."
        )
    named = domain if isinstance(domain, Workload) else None
    return first.tree, first.workload or named


def _alike(one: Tree | Workload, other: Tree | Workload) -> bool:
    """Whether records count in the same entries."""
    if isinstance(one, Workload) and isinstance(other, Workload):
        return one.same_as(other)
    a, b = (d.tree if isinstance(d, Workload) else d for d in (one, other))
    return a is not None and b is not None and a.same_as(b)


def _checked_bounds(
    lo: FloatArray, hi: FloatArray, n: int, domain: Tree | Workload | None, *, whole: bool
) -> tuple[FloatArray, FloatArray]:
    """Return bounds with shape (n,); refuse bounds that exclude every number, or every integer."""
    infeasible = np.flatnonzero(np.ceil(lo) > np.floor(hi) if whole else lo > hi)
    lo, hi = np.broadcast_to(lo, (n,)), np.broadcast_to(hi, (n,))
    if infeasible.size:
        i = int(infeasible[0])
        raise InfeasibleError(
            f"{named(domain, i)} is bounded below by {lo[i]:g} and above by {hi[i]:g}, which "
            f"leaves no {'integer' if whole else 'number'}; relax one of the two."
        )
    return lo, hi


def resolve_invariant(
    invariant: Invariant, n: int, domain: Tree | Workload | None = None, *, whole: bool = True
) -> ResolvedInvariant:
    """Resolve an invariant for vectors of length `n`."""
    if not isinstance(invariant, Invariant):
        raise ArgumentError(
            f"the invariant is a {type(invariant).__name__}; build it with congenial.consistent(), "
            "exactly(), nonnegative(), bounds(), linear() and at_least(), joined by &."
        )
    imposed, workload = _imposed(invariant, n, domain)
    margins = workload or (domain if isinstance(domain, Workload) else None)
    lookup = imposed or (domain if isinstance(domain, Tree) else getattr(margins, "tree", None))
    pinned = np.zeros(n, dtype=np.bool_)
    on_margins = [on_entries(p, margins) for p in invariant.parts if isinstance(p, OnMargins)]
    lo, hi = np.asarray(-np.inf), np.asarray(np.inf)  # single numbers as long as possible
    for entries, low, high, _ in on_margins:
        pinned[entries] = True
        lo, hi = np.asarray(np.maximum(lo, low)), np.asarray(np.minimum(hi, high))
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
    lo, hi = _checked_bounds(lo, hi, n, margins or imposed or domain, whole=whole)
    pairs = np.concatenate([np.zeros((0, 2), dtype=np.int64), *(p for *_, p in on_margins)])
    return ResolvedInvariant(
        n,
        imposed,
        pinned,
        lo,
        hi,
        _stack(rows[Linear], n),
        _stack(rows[AtLeast], n),
        workload,
        pairs,
    )


def _stack(systems: list[tuple[FloatArray, FloatArray]], n: int) -> tuple[FloatArray, FloatArray]:
    if not systems:
        return np.zeros((0, n)), np.zeros(0)
    return np.vstack([s[0] for s in systems]), np.concatenate([s[1] for s in systems])
