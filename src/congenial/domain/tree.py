"""A rooted tree (or forest) of counts: every inner node is the sum of its children."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from congenial.domain.names import Names
from congenial.domain.nesting import Sums
from congenial.errors import ArgumentError, StructureError
from congenial.kernels.numerics import trees
from congenial.kernels.numerics.trees import read_only
from congenial.types import IntArray
from congenial.wording import html_table, many, show

Path = tuple[str, ...]
Scalar = TypeVar("Scalar", bound=np.generic)

# Names of a level that a notebook shows.
_SHOWN_NAMES = 3


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """Nodes in a fixed order, each with at most one parent.

    Vectors over a tree have one entry for each node, in this order. Build a tree with
    `from_parents` or `from_paths`.

    Attributes
    ----------
    parents : ndarray of int64, shape (n,)
        Index of each node's parent, -1 for a root.
    labels : sequence of str, length n, or None
        A label for each node; labels may repeat under different parents. Without labels, `names`
        are the indices.
    """

    parents: IntArray
    labels: Names | None

    @classmethod
    def from_parents(cls, parents: npt.ArrayLike, names: Sequence[str] | None = None) -> Tree:
        """Build a tree from parent indices, in any order.

        Parameters
        ----------
        parents : array_like of int, shape (n,)
            Parent of each node, -1 for a root. Several roots make a forest.
        names : sequence of str, optional
            Labels; by default the node's index.

        Raises
        ------
        StructureError
            If an index is out of range, or nodes form a cycle, or the lengths differ, or a label
            is no text or cannot be written in UTF-8.
        """
        try:
            array = np.asarray(parents)
        except ValueError:
            raise StructureError(
                "parents has rows of uneven length; give a one-dimensional integer array."
            ) from None
        if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
            raise StructureError(
                f"parents has shape {array.shape} and dtype {array.dtype}; "
                "give a non-empty one-dimensional integer array."
            )
        array = np.ascontiguousarray(array, dtype=np.int64)
        wrong = np.flatnonzero((array < -1) | (array >= array.size))
        if wrong.size:
            raise StructureError(
                f"parents[{wrong[0]}] is {array[wrong[0]]}; "
                f"give -1 for a root or an index below {array.size}."
            )
        labels = None if names is None else _labels(names)
        if labels is not None and len(labels) != array.size:
            raise StructureError(f"names has {len(labels)} entries; give {array.size}.")
        array = array.copy()
        array.flags.writeable = False
        tree = cls(array, labels)
        astray = tree.short_level < 0
        if astray.any():
            node = int(np.argmax(astray))
            raise StructureError(
                f"node {node} lies on a cycle of parents; every chain of parents must end in -1."
            )
        return tree

    @classmethod
    def from_paths(cls, paths: Iterable[str | Sequence[str]]) -> Tree:
        """Build a tree from the path of each leaf, root first.

        Parameters
        ----------
        paths : iterable of sequences of str, or of "a/b/c" strings
            One path for each leaf. Inner nodes appear at the first path that passes through them.

        Raises
        ------
        StructureError
            If there is no path, or a path has an empty part, or one that is no text, occurs twice,
            or continues another.
        """
        if isinstance(paths, str) or not np.iterable(paths):
            raise StructureError(
                f"paths is {show(paths)}; give a list with the path of each leaf, such as ['a/b']."
            )
        index: dict[Path, int] = {}
        parents: list[int] = []
        names: list[str] = []
        given: set[Path] = set()
        for raw in paths:
            path = tuple(raw.split("/") if isinstance(raw, str) else _texts("the path", raw))
            if not path or "" in path:
                raise StructureError(
                    f"the path {'/'.join(path)!r} has an empty part; name every node on it."
                )
            if path in given:
                raise StructureError(f"the path {'/'.join(path)} is given twice; give it once.")
            given.add(path)
            parent = -1
            for depth in range(1, len(path) + 1):
                node = index.setdefault(path[:depth], len(parents))
                if node == len(parents):
                    parents.append(parent)
                    names.append(path[depth - 1])
                parent = node
        for path in given:
            if any(path[:depth] in given for depth in range(1, len(path))):
                raise StructureError(
                    f"the path {'/'.join(path)} continues another given path; give the paths of "
                    "leaves only."
                )
        if not parents:
            raise StructureError("no path is given; give one for each leaf.")
        return cls.from_parents(np.array(parents, dtype=np.int64), names)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return int(self.parents.size)

    def __repr__(self) -> str:
        return f"Tree({many(len(self), 'node')}, {many(self.depth, 'level')})"

    def _repr_html_(self) -> str:
        sizes = np.bincount(self.short_level)
        rows = []
        for depth, size in enumerate(sizes.tolist()):
            first = np.flatnonzero(self.short_level == depth)[:_SHOWN_NAMES].tolist()
            names = ", ".join(self.names[v] for v in first)
            rows.append((depth, size, names + (", …" if size > len(first) else "")))
        columns = ("level", "nodes", "first names")
        return html_table(f"Tree of {many(len(self), 'node')}", columns, rows, len(rows))

    @cached_property
    def names(self) -> Names:
        """The label of each node; without labels, its index. A sequence of texts."""
        return self.labels or Names(np.arange(len(self)))

    @cached_property
    def level(self) -> IntArray:
        """Distance of each node from its root, shape (n,); -1 on a cycle."""
        level = self.short_level.astype(np.int64)
        level.flags.writeable = False
        return level

    @cached_property
    def short_level(self) -> npt.NDArray[np.signedinteger]:
        """`level` in the shortest type that holds it, for trees of many nodes."""
        n = len(self)
        # pointer jumping (Wyllie 1979): a root's parent is node n, its own parent; all other nodes
        # jump twice as far in every round
        up = np.append(self.parents, n).astype(np.min_scalar_type(-n - 1))
        up[up < 0] = n
        level = np.ones_like(up)
        level[n] = 0
        for _ in range(n.bit_length()):
            if (up == n).all():
                break
            level += level[up]
            up = up[up]
        level -= 1
        level[up < n] = -1
        short = level[:n].astype(np.min_scalar_type(-int(level.max(initial=0)) - 1))
        short.flags.writeable = False
        return short

    @cached_property
    def children(self) -> tuple[IntArray, IntArray]:
        """Children in compressed form: those of node i are ``order[starts[i]:starts[i + 1]]``."""
        counts = np.bincount(self.parents + 1, minlength=self.parents.size + 1)
        starts = np.concatenate(([0], np.cumsum(counts[1:]))).astype(np.int64)
        order = np.argsort(self.parents, kind="stable")[counts[0] :].astype(np.int64)
        return starts, order

    @cached_property
    def sums(self) -> Sums:
        """The sums that hold for all data: every inner node, as the sum of its children."""
        starts, children = self.children
        inner = np.flatnonzero(np.diff(starts))
        return Sums(inner, np.append(starts[inner], children.size), children)

    @cached_property
    def is_leaf(self) -> npt.NDArray[np.bool_]:
        """Whether each node has no children, shape (n,)."""
        leaf = np.ones(len(self) + 1, dtype=np.bool_)
        leaf[self.parents] = False  # index -1 stands for no node
        return leaf[:-1]

    @property
    def leaves(self) -> IntArray:
        """Indices of the nodes without children, ascending; not cached."""
        return np.flatnonzero(self.is_leaf)

    @property
    def chain(self) -> IntArray:
        """Nodes from the root down to each of `leaves`, shape (depth, leaves); -1 below a leaf."""
        chain = np.full((self.depth, self.leaves.size), -1, dtype=np.int64)
        at = self.leaves
        while (inside := at >= 0).any():
            here = np.flatnonzero(inside)
            chain[self.level[at[here]], here] = at[here]
            at = np.where(inside, self.parents[at], -1)
        return chain

    @cached_property
    def roots(self) -> IntArray:
        """Indices of the nodes without a parent, ascending."""
        return np.flatnonzero(self.parents < 0)

    @property
    def depth(self) -> int:
        """Number of levels."""
        return int(self.short_level.max()) + 1

    def path(self, node: int) -> Path:
        """Return the names from the root down to `node`."""
        above = self.above(node).tolist()
        if not self.labels:  # `names` would make those of all nodes
            return tuple(map(str, above))
        return tuple(self.names[v] for v in above)

    def above(self, node: int) -> IntArray:
        """Return the nodes from the root down to `node`, itself the last."""
        nodes: list[int] = []
        while node >= 0:
            nodes.append(node)
            node = int(self.parents[node])
        return np.array(nodes[::-1], dtype=np.int64)

    def find(self, node: int | str | Sequence[str]) -> int:
        """Return the index of a node given as an index, a name or a path.

        Raises
        ------
        ArgumentError
            If there is no such node, or the name belongs to several.
        """
        if isinstance(node, int | np.integer) and not isinstance(node, bool):
            if not 0 <= node < len(self):
                raise ArgumentError(f"node {node} is out of range; give 0 to {len(self) - 1}.")
            return int(node)
        path = (node,) if isinstance(node, str) else node
        if not (isinstance(path, Sequence) and path and all(isinstance(v, str) for v in path)):
            raise ArgumentError(
                f"node is {node!r}; give an index, a name, or a path as one text or several."
            )
        text = "/".join(path)
        found = self._places(text)
        if not found and "/" in text:
            end = tuple(text.split("/"))
            alike = self._places(end[-1])
            found = [i for i in alike if self.path(i)[-len(end) :] == end]
        if len(found) != 1:
            raise ArgumentError(
                f"the node {text!r} is {'unknown' if not found else 'ambiguous'}; "
                "give its index, a name that occurs once, or the end of its path, such as a/b."
            )
        return found[0]

    def _places(self, name: str) -> list[int]:
        """Return the nodes with a name, ascending; none for a text that UTF-8 cannot write."""
        try:
            return self.names.places(name)
        except UnicodeEncodeError:
            return []

    def roll_up(self, leaf_counts: npt.ArrayLike) -> npt.NDArray[np.int64 | np.float64]:
        """Sum leaf values up the tree.

        Parameters
        ----------
        leaf_counts : array_like, shape (..., number of leaves)
            Values of `leaves`, in that order.

        Returns
        -------
        ndarray, shape (..., n)
            One value for each node: int64 for integer input, float64 otherwise.

        Raises
        ------
        ArgumentError
            If the last axis does not have one entry for each leaf.
        """
        counts, leaves = np.asarray(leaf_counts), self.leaves
        if counts.ndim == 0 or counts.shape[-1] != leaves.size:
            raise ArgumentError(
                f"leaf_counts has shape {counts.shape}; give {leaves.size} values, "
                "one for each of tree.leaves."
            )
        dtype = np.int64 if counts.dtype.kind in "iub" else np.float64
        out = np.zeros((*counts.shape[:-1], len(self)), dtype=dtype)
        out[..., leaves] = counts
        parents = read_only(self.parents)
        for row in out.reshape(-1, len(self)):
            trees.add_up(parents, self.bottom_up, row)
        return out

    @cached_property
    def bottom_up(self) -> IntArray:
        """Nodes, children before parents; empty if the reverse order of the nodes is such."""
        if bool((self.parents < np.arange(len(self))).all()):
            return np.zeros(0, dtype=np.int64)
        return np.argsort(self.short_level, kind="stable")[::-1].astype(np.int64)

    def split(self, level: int) -> TreeSplit:
        """Cut the tree at a level, into a top and a part below each node of the level.

        Parameters
        ----------
        level : int
            Depth of the level; 0 is that of the roots. There are nodes below it.

        Raises
        ------
        ArgumentError
            If there is no such level, or nothing below it.
        """
        if isinstance(level, bool) or not isinstance(level, int | np.integer):
            raise ArgumentError(f"level is {level!r}; give the depth of a level, a whole number.")
        if not 0 <= level < self.depth - 1:
            limit = self.depth - 2
            remedy = f"give 0 to {limit}" if limit >= 0 else "a tree of one level has no parts"
            raise ArgumentError(f"level is {level}, below which the tree has no nodes; {remedy}.")
        inside = self.short_level <= level
        nodes, above = np.flatnonzero(inside), np.cumsum(inside) - 1
        parents = self.parents[nodes]
        parents = np.where(parents < 0, -1, above[parents])
        return TreeSplit(self, int(level), Tree.from_parents(parents, _named(self, nodes)), nodes)

    def same_as(self, other: Tree) -> bool:
        """Whether two trees have the same nodes and parents, in the same order."""
        return self is other or np.array_equal(self.parents, other.parents)

    def is_consistent(self, values: npt.ArrayLike) -> bool:
        """Whether every inner node equals the sum of its children exactly (integers)."""
        array = np.asarray(values)
        if array.ndim == 0 or array.shape[-1] != len(self):
            return False
        return bool(self.are_consistent(array.reshape(-1, len(self))).all())

    def are_consistent(self, rows: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
        """Which of several vectors, shape (r, n), are consistent; see `is_consistent`."""
        dtype = np.int64 if rows.dtype.kind in "iub" else np.float64
        parents, inner = read_only(self.parents), np.flatnonzero(~self.is_leaf)
        total, same = np.empty(len(self), dtype=dtype), np.empty(len(rows), dtype=np.bool_)
        trees.add_up_rows(parents, inner, read_only(rows.astype(dtype, copy=False)), total, same)
        return same


@dataclass(frozen=True, eq=False)
class TreePart:
    """A node of the cut level with all nodes below it.

    Attributes
    ----------
    root : int
        The node in `TreeSplit.top`.
    nodes : ndarray of int64, shape (k,)
        Nodes of the whole tree, `root` first and the others in their order there.
    tree : Tree
        The part as a tree of its own, in the order of `nodes`.
    """

    root: int
    nodes: IntArray
    tree: Tree

    def of(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return the entries of the part of a vector over the whole tree; see `at_nodes`."""
        return at_nodes(values, self.nodes)


@dataclass(frozen=True, eq=False)
class TreeSplit:
    """A tree that is cut at a level; made by `Tree.split`.

    Attributes
    ----------
    tree : Tree
        The whole tree.
    level : int
        The level, by its depth; 0 is that of the roots.
    top : Tree
        The nodes down to the level.
    nodes : ndarray of int64, shape (len(top),)
        Nodes of the whole tree that `top` has, ascending.
    """

    tree: Tree
    level: int
    top: Tree
    nodes: IntArray

    @cached_property
    def roots(self) -> IntArray:
        """Nodes of `top` with a part below them: those of the level that have children."""
        inside = self.top.short_level == self.level
        return np.flatnonzero(inside & ~self.tree.is_leaf[self.nodes])

    @property
    def sizes(self) -> IntArray:
        """Number of nodes below the root of each part; shape (parts,)."""
        return np.diff(self._members[1])

    @cached_property
    def _members(self) -> tuple[IntArray, IntArray]:
        """Nodes below the level, part by part, and where each part begins; shape (parts + 1,)."""
        tree = self.tree
        below = np.flatnonzero(tree.short_level > self.level)
        at = below
        while (deep := tree.short_level[at] > self.level).any():
            at = np.where(deep, tree.parents[at], at)
        number = np.zeros(len(tree), dtype=np.int64)
        number[self.nodes[self.roots]] = np.arange(self.roots.size)
        of = number[at]
        starts = np.zeros(self.roots.size + 1, dtype=np.int64)
        starts[1:] = np.cumsum(np.bincount(of, minlength=self.roots.size))
        return below[np.argsort(of, kind="stable")], starts

    def part(self, number: int) -> TreePart:
        """Return the part below ``roots[number]``."""
        members, starts = self._members
        root = int(self.roots[number])
        below, whole = members[starts[number] : starts[number + 1]], int(self.nodes[root])
        above = self.tree.parents[below]
        parents = np.where(above == whole, 0, 1 + np.searchsorted(below, above))
        nodes = np.append(whole, below)
        return TreePart(
            root, nodes, Tree.from_parents(np.append(-1, parents), _named(self.tree, nodes))
        )

    def parts(self) -> Iterator[TreePart]:
        """Yield all parts, one after another."""
        return (self.part(number) for number in range(self.roots.size))


def _named(tree: Tree, nodes: IntArray) -> Names | None:
    """Return the labels of some nodes; None without labels."""
    return None if tree.labels is None else Names(tree.labels.array[nodes])


def at_nodes(values: npt.NDArray[Scalar], nodes: IntArray) -> npt.NDArray[Scalar]:
    """Return the entries of a vector at some nodes; a view of one number stays such a view."""
    if values.strides == (0,):
        return np.broadcast_to(values[:1].reshape(()), nodes.shape)
    return values[nodes]


def _texts(what: str, given: Iterable[object]) -> list[str]:
    """Return names that were given as a list."""
    listed = list(given) if np.iterable(given) else [given]
    names = [name for name in listed if isinstance(name, str)]
    if len(names) < len(listed):
        # str() would name a node 'nan' or 'None' where a data frame lacks a name
        wrong = next(name for name in listed if not isinstance(name, str))
        raise StructureError(
            f"{what} {show(given)} has {show(wrong)} for a name; give each name as text."
        )
    return names


def _labels(names: Iterable[str]) -> Names:
    try:
        return names if isinstance(names, Names) else Names.of(_texts("the list of names", names))
    except UnicodeEncodeError:
        raise StructureError(
            "a name has half of a surrogate pair, which no UTF-8 file can hold; write it anew."
        ) from None
