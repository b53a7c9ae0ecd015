"""Intervals of a conditioned release by inversion, for its columns and sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import NumericalError, UnsupportedError
from congenial.releases.model import Model
from congenial.releases.table_posterior import NoEnds
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class ProvedEnds:
    """Ends of intervals that hold with the plan's confidence, whatever the counts are."""

    # `lower` and `upper`: shape (n,): Of each count by itself.
    lower: IntArray
    upper: IntArray
    # `lower_all` and `upper_all`: shape (n,): Of all counts of a level at once; if the plan does
    # not ask for these, as `lower`, `upper`.
    lower_all: IntArray
    upper_all: IntArray
    sums: tuple[tuple[int, int], ...]


def proved_ends(
    model: Model, mechanism: Conditioned, value: IntArray, sums: Sequence[Sequence[int]]
) -> ProvedEnds | NoEnds:
    """Work out the intervals of a release that was conditioned on bounds, from its table alone.

    Notes
    -----
    If the intervals of all its nodes hold, a sum lies between the sums of their ends.
    """
    from congenial.inference.inversion import invert

    tree, fixed = model.tree, model.determined
    free = [~fixed & (tree.level == depth) for depth in range(tree.depth)]
    levels = [max(int(here.sum()), 1) for here in free] if model.plan.accuracy.simultaneous else []
    parts = [max(int(np.count_nonzero(~fixed[list(nodes)])), 1) for nodes in sums]
    together = sorted({1, *levels, *parts})
    try:
        found = invert(mechanism, value, model.plan.accuracy.alpha, together)
    except (UnsupportedError, MemoryError):
        return NoEnds("inversion-takes-too-much")
    except NumericalError:
        return NoEnds("inversion-needs-wider-tables")
    by_count = dict(zip(together, found, strict=True))
    lower, upper = by_count[1]
    lower_all, upper_all = lower.copy(), upper.copy()
    for here, count in zip(free, levels, strict=False):
        lower_all[here], upper_all[here] = (ends[here] for ends in by_count[count])
    whole = []
    for nodes, count in zip(sums, parts, strict=True):
        low, high = by_count[count]
        at = list(nodes)
        whole.append((int(low[at].sum()), int(high[at].sum())))
    return ProvedEnds(lower, upper, lower_all, upper_all, tuple(whole))
