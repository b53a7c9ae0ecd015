"""The scope of a guarantee: facts it leaves unprotected, and the datasets it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from congenial.accounting.neighbours.counting import Counted, counting_all
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.types import BoolArray, IntArray
from congenial.wording import joined, on_a_line

# The text for an entry that counts all records.
ALL_RECORDS = "the number of records"
SAME = "which {} the same in all neighbouring datasets"
# Entries named for one level or margin; further ones are only counted.
MOST_NAMED = 5


class Kind(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind"):
    """A record of a certificate that is one of several kinds, named in its field `kind`."""


class AllRecords(Kind, frozen=True, tag="all-records"):
    """How many records there are, which is the same in all neighbouring datasets."""


class ExactNode(Kind, frozen=True, tag="exact-node"):
    """The exact count of one node."""

    path: tuple[str, ...]  # Path of the node from the root.


class ExactLevel(Kind, frozen=True, tag="exact-level"):
    """The exact counts of all nodes of a level."""

    level: str  # Name of the level.
    nodes: int  # Number of its nodes.


class SameNodes(Kind, frozen=True, tag="same-nodes"):
    """Noisy counts that are the same in all neighbouring datasets, so that noise hides nothing."""

    level: str  # Name of the level.
    paths: tuple[tuple[str, ...], ...]  # Paths of some of these nodes from the root.
    others: int  # Number of further such nodes of the level.


class SameLevel(Kind, frozen=True, tag="same-level"):
    """Noisy counts of a whole level that are the same in all neighbouring datasets."""

    level: str  # Name of the level.
    nodes: int  # Number of its nodes.


class OccurringNodes(Kind, frozen=True, tag="occurring-nodes"):
    """Which nodes exist, where a plan takes them from the rows."""


class Quoted(Kind, frozen=True, tag="quoted"):
    """An unprotected fact as text, from a certificate of format 1."""

    text: str  # The text.


# Kinds of facts published outside a guarantee on a tree.
Exposed = AllRecords | ExactNode | ExactLevel | SameNodes | SameLevel | OccurringNodes | Quoted


def unprotected(
    mechanism: Additive, resolved: ResolvedInvariant, neighbours: Neighbours, changes: BoolArray
) -> tuple[str, ...]:
    """Name the facts that are the same in all neighbouring datasets, exact or with noise.

    Returns whole margins and levels by name, and other exact entries one by one. Of other
    entries, some by name and then the number of the rest.
    """
    workload = mechanism.workload or resolved.workload
    tree = mechanism.tree or resolved.tree
    same = ~(changes | resolved.pinned)
    found = all_records(same, mechanism.counted or resolved.counted, neighbours)
    out = [exposed_text(one) for one in found]
    if workload is not None:
        out += _margins(workload, resolved.pinned, same)
    elif tree is not None:
        levels = [str(depth) for depth in range(tree.depth)]
        out += [exposed_text(one) for one in on_levels(tree, resolved.pinned, same, levels)]
    else:
        out += [f"the exact value of entry {i}" for i in np.flatnonzero(resolved.pinned)]
        out += _text("value", "entries", np.flatnonzero(same), lambda i: f"entry {i}", "")
    mandated = resolved.equalities[1].size
    if mandated:
        out.append(f"{mandated} fixed linear totals")
    return tuple(out)


def all_records(same: BoolArray, counted: Counted, neighbours: Neighbours) -> list[AllRecords]:
    """Name the number of records if an entry counts them all, and take that entry off `same`."""
    if neighbours != "substitute" or not same.any():
        return []
    total = counting_all(same.size, counted)
    found = [AllRecords()] if same[total].any() else []
    same[total] = False
    return found


def on_levels(
    tree: Tree | Workload, exact: BoolArray, same: BoolArray, levels: Sequence[str]
) -> list[Exposed]:
    """Name counts: whole levels by name, others by path."""
    out: list[Exposed] = []
    for depth, level in enumerate(levels):
        here = np.flatnonzero(tree.level == depth)
        if here.size > 1 and exact[here].all():
            out.append(ExactLevel(level, int(here.size)))
        else:
            out += [ExactNode(tree.path(int(v))) for v in here[exact[here]]]
        rest = here[same[here]]
        if rest.size > 1 and rest.size == here.size:
            out.append(SameLevel(level, int(here.size)))
        elif rest.size:
            shown = _shown(rest)
            paths = tuple(tree.path(int(v)) for v in rest[:shown])
            out.append(SameNodes(level, paths, int(rest.size) - shown))
    return out


def exposed_text(one: Exposed) -> str:
    """Return the text of an unprotected fact, as part of a sentence."""
    match one:
        case AllRecords():
            text = ALL_RECORDS
        case ExactNode(path):
            text = f"the exact count of {_path(path)}"
        case ExactLevel(level, nodes):
            text = f"the exact counts of all {nodes} nodes of level {level}"
        case SameNodes(level, paths, others):
            names = [_path(path) for path in paths]
            text = _same_text("count", names, others, f"nodes of level {level}")
        case SameLevel(level, nodes):
            text = f"the counts of all {nodes} nodes of level {level}, {SAME.format('are')}"
        case OccurringNodes():
            text = "which nodes exist, because the plan takes them from the rows"
        case Quoted(words):
            text = words
    return text


def _path(path: tuple[str, ...]) -> str:
    return on_a_line("/".join(path))


def _margins(workload: Workload, exact: BoolArray, same: BoolArray) -> list[str]:
    """Name exact margins by level, and other exact entries one by one."""
    out = []
    for block in workload.blocks:
        here = exact[block.entries]
        if here.size and here.all():
            out.append(f"the exact count{'s' * (here.size > 1)} of {block.text}")
        else:
            listed = block.start + np.flatnonzero(here)
            out += [f"the exact count of {workload.name(int(v))}" for v in listed]
        rest = block.start + np.flatnonzero(same[block.entries])
        whole = block.text if rest.size == here.size else ""
        out += _text("count", f"entries of {block.text}", rest, workload.name, whole)
    return out


def _text(
    noun: str, kind: str, entries: IntArray, name: Callable[[int], str], whole: str
) -> list[str]:
    """Name entries that are the same in all neighbouring datasets; `whole` names all of them."""
    if entries.size > 1 and whole:
        return [f"the {noun}s of {whole}, {SAME.format('are')}"]
    shown = _shown(entries)
    names = [name(int(v)) for v in entries[:shown]]
    return [_same_text(noun, names, entries.size - shown, kind)] if entries.size else []


def _shown(entries: IntArray) -> int:
    """Number of entries to name; the rest are only counted."""
    return MOST_NAMED if entries.size > MOST_NAMED + 1 else entries.size


def _same_text(noun: str, names: list[str], others: int, kind: str) -> str:
    if len(names) + others == 1:
        return f"the {noun} of {names[0]}, {SAME.format('is')}"
    listed = joined([*names, f"{others} other {kind}"] if others else names)
    return f"the {noun}s of {listed}, {SAME.format('are')}"


def crossing(resolved: ResolvedInvariant, counted: Counted) -> bool:
    """Whether entries published exactly may cross, so that some records cannot move alone."""
    return isinstance(counted, Workload) and bool(resolved.pinned.any())


def shared(resolved: ResolvedInvariant) -> tuple[bool, bool]:
    """Whether the datasets compared agree on exact counts, and whether they satisfy bounds."""
    free = ~resolved.pinned
    # data outside the bounds are refused, and an observer may notice the refusal
    bounded = bool(((resolved.lo > 0.0) | np.isfinite(resolved.hi))[free].any())
    agree = bool(resolved.pinned.any() or resolved.equalities[1].size)
    return agree, bounded or bool(resolved.n_inequalities or resolved.relative.size)


def covered(*, agree: bool, bounded: bool) -> str:
    """Say which datasets are compared."""
    if not agree:
        return "all datasets that satisfy the bounds" if bounded else "all datasets"
    text = "datasets that agree on everything that is published exactly"
    return f"{text} and satisfy the bounds" if bounded else text
