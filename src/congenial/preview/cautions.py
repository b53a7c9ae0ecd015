"""Cautions about parts of a plan that are probably mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from congenial.accounting.calibration.level_units import changing_levels
from congenial.data.sources import matching
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.plan.plan import Plan
from congenial.releases.accuracy import Margins
from congenial.releases.model import Model


def unused_levels(model: Model) -> tuple[str, ...]:
    """Measured levels whose counts are the same in all neighbouring datasets.

    For example, substituting a record never changes the root's count. Noise there protects nothing,
    and its share of epsilon is not used.
    """
    changing = changing_levels(model.domain, model.compared, model.neighbours)
    return tuple(v.name for v in model.levels if v.scale is not None and v.depth not in changing)


def reversed_levels(model: Model) -> tuple[str, ...]:
    """Levels with more names than the one below, most of whose nodes have one child.

    A finer level above a coarser one has this form, such as towns with one county each. Crossing
    attributes, such as counties and sexes, do not, because each node has several children.
    """
    tree = _places(model)
    children = np.bincount(tree.parents[tree.parents >= 0], minlength=len(tree))
    named = [
        len({tree.names[v] for v in np.flatnonzero(tree.level == depth)})
        for depth in range(tree.depth)
    ]
    lone = [float((children[tree.level == depth] == 1).mean()) for depth in range(tree.depth)]
    return tuple(
        name
        for depth, name in list(enumerate(model.plan.place_names))[1:-1]
        if named[depth] > named[depth + 1] and lone[depth] > 0.5
    )


def _places(model: Model) -> Tree:
    """The hierarchy of a plan, with a table or without one."""
    domain = model.domain
    found = domain.tables[0].geography if isinstance(domain, Workload) else domain
    if found is None:
        raise AssertionError("a plan's table has a geography")
    return found


def nested_sums(model: Model, margins: Margins) -> tuple[str, ...]:
    """Sums that name a node and one of its ancestors, and so count the node twice."""
    if isinstance(model.domain, Workload):
        return ()
    parents = np.asarray(model.domain.parents)

    def nested(nodes: tuple[int, ...]) -> bool:
        named = np.zeros(parents.size, dtype=np.bool_)
        named[list(nodes)] = True
        above = parents[named]
        while (above >= 0).any():
            above = above[above >= 0]
            if named[above].any():
                return True
            above = parents[above]
        return False

    return tuple(asked.name for asked in margins.sums if nested(asked.nodes))


def source_missing(plan: Plan, base: Path) -> bool:
    """Whether the plan's source does not exist; no file is opened."""
    return not any(file.exists() for file in matching(base, plan.data.source))
