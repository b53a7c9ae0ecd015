"""What a guarantee is about: what it leaves unprotected, and which datasets it compares."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from congenial.accounting.counting import Counted, counting
from congenial.accounting.neighbours import Neighbours
from congenial.invariants import Requirements, determined
from congenial.mechanisms.additive import Additive
from congenial.workload import Workload


def unprotected(mechanism: Additive, need: Requirements, neighbours: Neighbours) -> tuple[str, ...]:
    """Name what is published exactly: whole margins and levels, other entries one by one."""
    workload = mechanism.workload or need.workload
    tree = mechanism.tree or need.tree
    pinned = need.pinned
    out: list[str] = []
    if workload is not None:
        out += _margins(workload, pinned)
    elif tree is None:
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
    mandated = need.equalities[1].size
    if mandated:
        out.append(f"{mandated} mandated linear totals")
    counted = tree or workload
    if neighbours == "substitute" and (mandated or crossing(need, counted)):
        stuck = alone(need, counted)
        if stuck:
            out.append(f"changes of the {stuck} entries that no single record can enter or leave")
    return tuple(out)


def _margins(workload: Workload, pinned: npt.NDArray[np.bool_]) -> list[str]:
    """Name exact margins by level, and other exact entries one by one."""
    out = []
    for block in workload.blocks:
        here = pinned[block.entries]
        if here.size and here.all():
            out.append(f"the exact count{'s' * (here.size > 1)} of {block.told}")
        else:
            listed = block.start + np.flatnonzero(here)
            out += [f"the exact count of {workload.name(int(v))}" for v in listed]
    return out


def crossing(need: Requirements, counted: Counted) -> bool:
    """Whether entries published exactly may cross, so that some records cannot move alone."""
    return isinstance(counted, Workload) and bool(need.pinned.any())


def covered(need: Requirements) -> str:
    """Say which datasets are compared."""
    told = "all datasets"
    if need.pinned.any() or need.equalities[1].size:
        told = "datasets that agree on everything that is published exactly"
    free = ~need.pinned
    if ((need.lo > 0.0) | np.isfinite(need.hi))[free].any() or (
        need.inequalities[1].size or need.relative.size
    ):
        # data outside the bounds are refused, which an onlooker may notice
        told += " and satisfy the bounds" if "agree" in told else " that satisfy the bounds"
    return told


def alone(need: Requirements, counted: Counted) -> int:
    """Count the entries that other records' moves may change and no single record's move does.

    Parameters
    ----------
    need : Requirements
        With mandated sums, or margins that cross.
    counted : Tree, Workload or None

    Returns
    -------
    int
        0 where no single record can move at all: then several are moved at once, and no entry is
        left out.
    """
    lay = counting(need.n, counted)
    groups = lay.alike(need)
    single = np.bincount(groups)[groups] == 1
    if single.all():
        return 0
    return int((single & ~determined(need)[lay.cells]).sum())


def sums_of(need: Requirements) -> str:
    """Return a digest of the mandated sums and their public values; empty where there are none."""
    rows, values = need.equalities
    if not values.size:
        return ""
    text = hashlib.sha256()
    for part in (rows, values):
        text.update(np.ascontiguousarray(part, dtype=np.float64).tobytes())
    return text.hexdigest()
