"""What in a plan looks like a mistake, without being one for certain."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from congenial.accounting.calibration import changing_levels
from congenial.model import Model
from congenial.plan import Plan
from congenial.sources import matching


def unused_levels(model: Model) -> tuple[str, ...]:
    """Levels that are measured though no neighbouring dataset changes their counts.

    Substituting a record never changes the root's count, for one, so that noise there costs
    nothing and protects nothing, and its share of epsilon is not spent.

    Parameters
    ----------
    model : Model
    """
    changing = changing_levels(model.tree, model.need, model.neighbours)
    return tuple(v.name for v in model.levels if v.scale is not None and v.depth not in changing)


def reversed_levels(model: Model) -> tuple[str, ...]:
    """Levels with more names than the one below, most of whose nodes have one child.

    A finer level above a coarser one looks so: a town that is said to hold one county. Two
    attributes that cross, as counties and sexes do, do not, since each node has several children.

    Parameters
    ----------
    model : Model
    """
    tree = model.tree
    children = np.bincount(tree.parents[tree.parents >= 0], minlength=len(tree))
    named = [
        len({tree.names[v] for v in np.flatnonzero(tree.level == at.depth)}) for at in model.levels
    ]
    lone = [float((children[tree.level == at.depth] == 1).mean()) for at in model.levels]
    return tuple(
        at.name
        for at in model.levels[1:-1]
        if named[at.depth] > named[at.depth + 1] and lone[at.depth] > 0.5
    )


def source_missing(plan: Plan, base: Path) -> bool:
    """Whether there is nothing where a plan says that the rows are; no file is opened.

    Parameters
    ----------
    plan : Plan
    base : Path
        Directory from which its relative paths start.
    """
    return not any(file.exists() for file in matching(base, plan.data.source))
