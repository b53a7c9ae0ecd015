"""Small random trees under a Dirichlet-tree prior, with measurements, and all their counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp

import congenial as cg

SHAPES = ([-1, 0, 0], [-1, 0, 0, 1, 1], [-1, 0, 0, 0, 1, 1], [-1, -1, 0, 0, 1], [-1, 0, 1, 1])
# The largest count of a leaf that is listed, by how many leaves there are.
MOST = {2: 60, 3: 27, 4: 13}


@dataclass(frozen=True)
class Case:
    """A problem, its prior and every tree of counts with its log weight."""

    tree: cg.Tree
    mechanism: cg.Additive
    invariant: cg.Invariant
    y: np.ndarray
    alpha: np.ndarray
    odds: np.ndarray
    counts: np.ndarray
    log_weight: np.ndarray

    @property
    def given(self):
        """Arguments of `cg.posterior` but for the prior."""
        return self.y, self.mechanism, self.invariant

    @property
    def probability(self):
        """Probability of each tree of counts."""
        return np.exp(self.log_weight - logsumexp(self.log_weight))

    @property
    def listed(self):
        """Whether next to nothing lies beyond the counts that are listed."""
        leaves = self.counts[:, self.tree.leaves]
        return self.probability[(leaves == leaves.max()).any(axis=1)].sum() < 1e-10


def rising(alpha, k):
    """Log of Gamma(alpha + k) / (Gamma(alpha) k!)."""
    return gammaln(alpha + k) - gammaln(alpha) - gammaln(k + 1.0)


def random_case(seed):
    """Return a random problem; some nodes are not measured, some roots pinned, some bounded."""
    rng = np.random.default_rng(seed)
    tree = cg.Tree.from_parents(SHAPES[rng.integers(len(SHAPES))])
    n, leaf = len(tree), tree.leaves
    scale = np.where(rng.random(n) < 0.2, np.inf, 10.0 ** rng.uniform(-0.6, 0.1, n))
    scale[tree.parents < 0] = np.where(np.isfinite(scale), scale, 1.0)[tree.parents < 0]
    alpha = 10.0 ** rng.uniform(-1.5, 2.0, n)
    odds = np.where(tree.is_leaf | (rng.random(n) < 0.5), 0.0, 10.0 ** rng.uniform(-2.0, 2.0, n))
    for v in np.flatnonzero(odds):
        alpha[tree.parents == v] = 10.0 ** rng.uniform(-1.5, 2.0)
    x = tree.roll_up(rng.integers(0, 4, leaf.size) * (rng.random(leaf.size) < 0.6))
    gaussian = rng.random() < 0.4
    known = np.isfinite(scale)
    y = x + np.rint(np.where(known, scale, 0.0) * rng.normal(0.0, 1.0, n)).astype(np.int64)
    invariant, hi = cg.consistent(tree), np.full(n, np.inf)
    pinned = rng.random() < 0.4
    if pinned:
        y[0] = x[0]
        invariant = invariant & cg.exactly([0])
    if rng.random() < 0.3:
        v = rng.integers(1, n)
        hi[v] = x[v] + rng.integers(0, 3)
        invariant = invariant & cg.bounds(hi=hi)
    law = cg.DiscreteGaussian if gaussian else cg.DiscreteLaplace
    ranges = [np.arange(MOST[leaf.size] + 1)] * leaf.size
    counts = np.zeros((ranges[0].size ** leaf.size, n), dtype=np.int64)
    counts[:, leaf] = np.array(np.meshgrid(*ranges, indexing="ij")).reshape(leaf.size, -1).T
    for v in range(n - 1, -1, -1):
        if tree.parents[v] >= 0:
            counts[:, tree.parents[v]] += counts[:, v]
    log = np.zeros(len(counts))
    total = np.bincount(tree.parents[tree.parents >= 0], alpha[tree.parents >= 0], n)
    for v in range(n):
        z = counts[:, v]
        if pinned and v == 0:
            log[z != y[0]] = -np.inf
        elif known[v]:
            off = abs(z - y[v])
            log -= off**2 / (2.0 * scale[v] ** 2) if gaussian else off / scale[v]
        log[z > hi[v]] = -np.inf
        if tree.parents[v] >= 0:
            share = rising(alpha[v], np.arange(z.max() + 1))
            share[0] += np.log1p(odds[tree.parents[v]])
            log += share[z]
        if not tree.is_leaf[v]:
            log -= log_sum_weight(total[v], (tree.parents == v).sum(), odds[v], z)
    measured = cg.Additive(law(scale), tree)
    return Case(tree, measured, invariant, y, alpha, odds, counts, log)


def log_sum_weight(total, children, odds, z):
    """Log weight of the sum of a family of alike children, some of them empty besides."""
    every = np.arange(int(z.max()) + 1)
    if odds == 0.0:
        return rising(total, every)[z]
    terms = [np.where(every == 0, children * np.log(odds), -np.inf)]
    for j in range(1, children + 1):
        ways = gammaln(children + 1) - gammaln(j + 1) - gammaln(children - j + 1)
        terms.append(ways + (children - j) * np.log(odds) + rising(j * total / children, every))
    return logsumexp(terms, axis=0)[z]
