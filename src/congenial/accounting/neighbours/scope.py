"""What a guarantee is about: what it leaves unprotected, and which datasets it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from congenial.accounting.neighbours.counting import Counted, counting
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.types import BoolArray, IntArray
from congenial.wording import on_a_line

# Said of all records together, where an entry counts them.
ALL_RECORDS = "the number of records"
SAME = "which {} the same in all neighbouring datasets"
# Entries of one level or margin that are named before the others are counted.
MOST_NAMED = 5


def unprotected(
    mechanism: Additive, resolved: ResolvedInvariant, neighbours: Neighbours, changes: BoolArray
) -> tuple[str, ...]:
    """Name what is the same in all neighbouring datasets, published exactly or with noise.

    Returns
    -------
    tuple of str
        Whole margins and levels by name, other exact entries one by one; of the rest some by name,
        then their number.
    """
    workload = mechanism.workload or resolved.workload
    tree = mechanism.tree or resolved.tree
    same = ~(changes | resolved.pinned)
    out = all_records(same, mechanism.counted or resolved.counted, neighbours)
    if workload is not None:
        out += _margins(workload, resolved.pinned, same)
    elif tree is not None:
        out += on_levels(tree, resolved.pinned, same, [str(depth) for depth in range(tree.depth)])
    else:
        out += [f"the exact value of entry {i}" for i in np.flatnonzero(resolved.pinned)]
        out += _text("value", "entries", np.flatnonzero(same), lambda i: f"entry {i}", "")
    mandated = resolved.equalities[1].size
    if mandated:
        out.append(f"{mandated} mandated linear totals")
    return tuple(out)


def all_records(same: BoolArray, counted: Counted, neighbours: Neighbours) -> list[str]:
    """Name the number of records if an entry counts them all, and take that entry off `same`."""
    if neighbours != "substitute" or not same.any():
        return []
    chain = counting(same.size, counted).chain
    first = chain[:, 0]
    total = first[(chain == first[:, None]).all(axis=1) & (first >= 0)]
    scopes = [ALL_RECORDS] if same[total].any() else []
    same[total] = False
    return scopes


def on_levels(tree: Tree, exact: BoolArray, same: BoolArray, levels: Sequence[str]) -> list[str]:
    """Name nodes of a tree: whole levels by name, others by path."""

    def path(node: int) -> str:
        return on_a_line("/".join(tree.path(node)))

    out: list[str] = []
    for depth, level in enumerate(levels):
        here = np.flatnonzero(tree.level == depth)
        if not here.size:
            continue
        if exact[here].all():
            out.append(
                f"the exact count of {on_a_line(tree.names[int(here[0])])}"
                if here.size == 1
                else f"the exact counts of all {here.size} nodes of level {level}"
            )
        else:
            out += [f"the exact count of {path(int(v))}" for v in here[exact[here]]]
        whole = f"all {here.size} nodes of level {level}" if same[here].all() else ""
        out += _text("count", f"nodes of level {level}", here[same[here]], path, whole)
    return out


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
    what: str, kind: str, entries: IntArray, name: Callable[[int], str], whole: str
) -> list[str]:
    """Name entries that no neighbouring datasets differ in, by one phrase where it has them all."""
    n = entries.size
    if not n:
        return []
    if n == 1:
        return [f"the {what} of {name(int(entries[0]))}, {SAME.format('is')}"]
    if not whole:
        shown = MOST_NAMED if n > MOST_NAMED + 1 else n
        names = [name(int(v)) for v in entries[:shown]]
        if n > shown:
            names.append(f"{n - shown} other {kind}")
        whole = f"{', '.join(names[:-1])} and {names[-1]}"
    return [f"the {what}s of {whole}, {SAME.format('are')}"]


def crossing(resolved: ResolvedInvariant, counted: Counted) -> bool:
    """Whether entries published exactly may cross, so that some records cannot move alone."""
    return isinstance(counted, Workload) and bool(resolved.pinned.any())


def covered(resolved: ResolvedInvariant) -> str:
    """Say which datasets are compared."""
    text = "all datasets"
    if resolved.pinned.any() or resolved.equalities[1].size:
        text = "datasets that agree on everything that is published exactly"
    free = ~resolved.pinned
    if ((resolved.lo > 0.0) | np.isfinite(resolved.hi))[free].any() or (
        resolved.inequalities[1].size or resolved.relative.size
    ):
        # data outside the bounds are refused, which an onlooker may notice
        text += " and satisfy the bounds" if "agree" in text else " that satisfy the bounds"
    return text
