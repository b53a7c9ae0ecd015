"""What a guarantee is about: what it leaves unprotected, and which datasets it compares."""

from __future__ import annotations

import hashlib

import numpy as np

from congenial.accounting.neighbours import Neighbours, fixed_sums
from congenial.accounting.whole_sums import alike_columns
from congenial.invariants import Requirements, determined
from congenial.mechanisms.additive import Additive
from congenial.tree import Tree


def unprotected(mechanism: Additive, need: Requirements, neighbours: Neighbours) -> tuple[str, ...]:
    """Name what is published exactly: whole levels by level, other nodes one by one."""
    tree = mechanism.tree or need.tree
    pinned = need.pinned
    out: list[str] = []
    if tree is None:
        out += [f"the exact value of entry {i}" for i in np.flatnonzero(pinned)]
    else:
        rest = pinned.copy()
        for depth in range(tree.depth):
            here = tree.level == depth
            if pinned[here].all() and here.any():
                names = [tree.names[v] for v in np.flatnonzero(here)]
                which = (
                    f"of {names[0]}"
                    if len(names) == 1
                    else f"of all {len(names)} nodes of level {depth}"
                )
                out.append(f"the exact count {which}")
                rest[here] = False
        out += [f"the exact count of {'/'.join(tree.path(int(v)))}" for v in np.flatnonzero(rest)]
    if need.equalities[1].size:
        out.append(f"{need.equalities[1].size} mandated linear totals")
        if neighbours == "substitute" and (stuck := alone(need, tree)):
            out.append(f"changes of the {stuck} entries that no single record can enter or leave")
    return tuple(out)


def covered(need: Requirements) -> str:
    """Say which datasets are compared."""
    told = "all datasets"
    if need.pinned.any() or need.equalities[1].size:
        told = "datasets that agree on everything that is published exactly"
    free = ~need.pinned
    if ((need.lo > 0.0) | np.isfinite(need.hi))[free].any() or need.inequalities[1].size:
        # data outside the bounds are refused, which an onlooker may notice
        told += " and satisfy the bounds" if "agree" in told else " that satisfy the bounds"
    return told


def alone(need: Requirements, tree: Tree | None) -> int:
    """Count the entries that other records' moves may change and no single record's move does.

    Parameters
    ----------
    need : Requirements
        With mandated sums.
    tree : Tree or None

    Returns
    -------
    int
        0 where no single record can move at all: then several are moved at once, and no entry is
        left out.
    """
    counted, fixed = fixed_sums(need, tree)
    groups = alike_columns(fixed)
    single = np.bincount(groups)[groups] == 1
    if single.all():
        return 0
    cells = tree.leaves if tree is not None else np.arange(counted.shape[0])
    return int((single & ~determined(need)[cells]).sum())


def sums_of(need: Requirements) -> str:
    """Return a digest of the mandated sums and their public values; empty where there are none."""
    rows, values = need.equalities
    if not values.size:
        return ""
    text = hashlib.sha256()
    for part in (rows, values):
        text.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return text.hexdigest()
