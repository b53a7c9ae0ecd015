"""Names that look alike: spelt in two ways, or with letters of two scripts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

import numpy as np

from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.types import IntArray

# Names that are compared at a time, except for a larger family.
_AT_ONCE = 100_000
# Scripts that share the shapes of some letters.
_SIMILAR = frozenset(("ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK", "LATIN"))


def odd_names(domain: Tree | Workload) -> tuple[str, ...]:
    """Warn of names of a tree, or of a table's places, that look alike; one sentence a kind.

    Only siblings are compared, because a name may repeat below another parent. Names look alike if
    they differ only in case, in spaces, in characters without a width, or in their Unicode form
    (NFKC).
    """
    tree = domain.tables[0].geography if isinstance(domain, Workload) else domain
    if tree is None:
        return ()
    alike: list[tuple[int, int]] = []
    mixed: list[int] = []
    for nodes in _families(tree):
        _look(tree, nodes, alike, mixed)
    remarks = []
    if alike:
        one, other = (ascii(tree.names[v]) for v in alike[0])
        remarks.append(
            f"Check the names: {one} and {other} look alike and are counted apart"
            f"{_more(len(alike))}; if they are one, spell them alike."
        )
    if mixed:
        remarks.append(
            f"Check the names: {tree.names[mixed[0]]!a} has letters of two scripts in one "
            f"word{_more(len(mixed))}; it may look like another name."
        )
    return tuple(remarks)


def _families(tree: Tree) -> Iterator[IntArray]:
    """Yield the roots, then the children of some nodes at a time."""
    yield tree.roots
    starts, children = tree.children
    begin = 0
    while begin < children.size:
        end = int(starts[np.searchsorted(starts, begin + _AT_ONCE, side="right") - 1])
        if end <= begin:  # a family of more nodes
            end = int(starts[np.searchsorted(starts, begin, side="right")])
        yield children[begin:end]
        begin = end


def _look(tree: Tree, nodes: IntArray, alike: list[tuple[int, int]], mixed: list[int]) -> None:
    """Add to `alike` the pairs of siblings that look alike, to `mixed` names of two scripts."""
    texts = tree.names.array[nodes].tolist()
    whole = " ".join(texts)
    if whole.isascii():  # most often one pass over all names shows that none is alike
        names = whole.lower().split()
        if len(names) == len(set(names)) == len(texts):
            return
    folded = list(map(_folded, texts))
    if whole.isascii() and len(set(folded)) == len(folded):
        return
    first: dict[tuple[int, str], int] = {}
    parents = tree.parents[nodes].tolist()
    for v, parent, name, form in zip(nodes.tolist(), parents, texts, folded, strict=True):
        before = first.setdefault((parent, form), v)
        if before != v:
            alike.append((before, v))
        if not name.isascii() and any(map(_mixes, re.findall(r"\w+", name))):
            mixed.append(v)


def _more(count: int) -> str:
    return "" if count == 1 else f", and {count - 1:,} more such"


def _folded(name: str) -> str:
    """Return the normal form of a name; names that look alike have the same."""
    if not name.isascii():
        name = unicodedata.normalize("NFKC", name.casefold())
        name = "".join(c for c in name if unicodedata.category(c) != "Cf")
    return " ".join(name.casefold().split())


def _mixes(word: str) -> bool:
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in word if c.isalpha()}
    return len(scripts & _SIMILAR) > 1
