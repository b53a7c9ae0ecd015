"""Cautions about parts of a plan that are probably mistakes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from congenial.accounting.calibration.level_units import changing_levels
from congenial.data.sources import matching
from congenial.domain.workload import Workload
from congenial.plan.plan import Plan
from congenial.preview.comparison.trial_counts import places
from congenial.releases.accuracy import Margins
from congenial.releases.model import Model


def unused_levels(model: Model) -> tuple[str, ...]:
    """Measured levels whose counts are the same in all neighbouring datasets.

    For example, substituting a record never changes the root's count. Noise there protects nothing
    and wastes its share of epsilon.
    """
    changing = changing_levels(
        model.domain, model.compared, model.neighbours, one_sided=model.one_sided
    )
    return tuple(v.name for v in model.levels if v.scale is not None and v.depth not in changing)


def reversed_levels(model: Model) -> tuple[str, ...]:
    """Levels with more names than the one below, most of whose nodes have one child.

    A finer level above a coarser one looks like this, such as towns with one county each. Crossing
    attributes, such as counties and sexes, do not, because each node has several children.
    """
    tree = places(model.domain)
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


def nested_sums(model: Model, margins: Margins) -> tuple[str, ...]:
    """Sums that name a node and one of its ancestors, and so count the node twice."""
    if isinstance(model.domain, Workload):
        return ()
    parents = np.asarray(model.domain.parents)

    def nested(nodes: tuple[int, ...]) -> bool:
        above = np.array(nodes)
        while above.size:
            above = parents[above]
            above = above[above >= 0]
            if np.isin(above, nodes).any():
                return True
        return False

    return tuple(asked.name for asked in margins.sums if nested(asked.nodes))


def source_missing(plan: Plan, base: Path) -> bool:
    """Whether the plan's source does not exist; no file is opened."""
    return not any(file.exists() for file in matching(base, plan.data.source))
