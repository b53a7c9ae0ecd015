"""Random tables with both margins exact, whose cells may have parts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import congenial as cg
from congenial.conditioning.laws import closing_sampler
from congenial.conditioning.laws.cutset_sampler import cut_conditioned
from congenial.invariants.resolved import inequalities_in_units
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.sum_network.cutset import sum_system
from support.conditioning_cases import INF, LAWS
from support.sum_networks import margins


@dataclass(frozen=True)
class Crossing:
    """Noise, an invariant, and counts that satisfy it."""

    kind: str
    scales: np.ndarray
    invariant: Invariant
    x: np.ndarray

    def mechanism(self, factor=1.0):
        return cg.Additive(LAWS[self.kind](self.scales * factor), self.x.size)

    def system(self):
        whole = resolve_invariant(self.invariant, self.x.size, None, whole=True)
        resolved = inequalities_in_units(whole)
        return resolved, sum_system(resolved)

    def by_rejection(self, factor=1.0):
        """Draw by rejection, also where bounds may let hardly any attempt be accepted."""
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(closing_sampler, "_covers", lambda *_: True)
            return closing_sampler.closing_conditioned(self.mechanism(factor), *self.system())

    def by_cut(self):
        return cut_conditioned(self.mechanism(), *self.system())


def crossing_at_random(seed, shapes=((3, 3), (3, 4)), scales=(0.5, 1.0, 1.5)):
    """Return a table of which some cells have two or three parts, with bounds or without."""
    rng = np.random.default_rng(seed)
    k, columns = shapes[rng.integers(len(shapes))]
    cells = k * columns
    # all cells have parts in some tables
    count = cells if seed % 4 == 3 else rng.integers(1, 7)
    divided = rng.choice(cells, count, replace=False)
    parents = np.repeat(divided, 2 if count == cells else rng.integers(2, 4, count))
    n = cells + parents.size
    x = rng.integers(0, 6, n)
    for cell in np.unique(parents):
        x[cell] = x[cells:][parents == cell].sum()
    table = np.zeros((k + columns, n), dtype=np.int64)
    table[:, :cells] = margins(k, columns)
    parts = np.zeros((np.unique(parents).size, n), dtype=np.int64)
    for row, cell in zip(parts, np.unique(parents), strict=True):
        row[cell] = 1
        row[cells:][parents == cell] = -1
    sigma = rng.choice(scales, n).astype(np.float64)
    # cells that are sums of measured parts need no noise of their own
    sigma[np.unique(parents)[rng.random(parts.shape[0]) < 0.5]] = INF
    every = np.vstack((table, parts))
    invariant = cg.linear(every, every @ x)
    if rng.random() < (0.7 if count == cells else 0.4):
        slack = rng.choice([0.0, 1.0, 3.0, INF], n)
        invariant &= cg.bounds(x - slack, x + rng.choice([2.0, INF], n))
    return Crossing(sorted(LAWS)[rng.integers(2)], sigma, invariant, x)
