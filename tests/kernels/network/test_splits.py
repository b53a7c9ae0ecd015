"""Messages of one family, against dense convolutions of its children's weights."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp

import congenial as cg
from congenial.inference.laws import evidence_of
from congenial.inference.measured import pose
from congenial.inference.splits.messages import verified_law
from support.seeds import for_each_seed

# Counts that the dense reference holds.
MOST = 900


def rising(alpha, k):
    return gammaln(alpha + k) - gammaln(alpha) - gammaln(k + 1.0)


@for_each_seed(500)
def test_families_are_convolved_as_dense_tables_are(seed):
    rng = np.random.default_rng(seed)
    children = int(rng.integers(1, 7))
    n = children + 1
    tree = cg.Tree.from_parents([-1] + [0] * children)
    alpha = 10.0 ** rng.uniform(-2.0, 2.0, n)
    scale = 10.0 ** rng.uniform(-0.5, 0.9, n)
    x = np.concatenate(([0], rng.integers(0, 40, children) * (rng.random(children) < 0.6)))
    x[0] = x.sum()
    gaussian = bool(rng.integers(2))
    y = x + np.rint(scale * rng.normal(0.0, 1.2, n)).astype(np.int64)
    law = (cg.DiscreteGaussian if gaussian else cg.DiscreteLaplace)(scale)
    known = pose(y, cg.Additive(law, tree), cg.consistent(tree), nonnegative_leaves=True)
    laws = verified_law(evidence_of(known), cg.inference.DirichletTree(alpha))
    k = np.arange(MOST)
    # a factor p^z keeps the dense tables within what a number can hold
    p = x[0] / (x[0] + alpha[1:].sum()) if x[0] else 0.3

    def noise(v):
        return -((k - y[v]) ** 2) / (2.0 * scale[v] ** 2) if gaussian else -abs(k - y[v]) / scale[v]

    total = np.ones(1)
    for v in range(1, n):
        weights = np.exp(noise(v) + rising(alpha[v], k) + k * np.log(p))
        total = np.convolve(total, weights)[:MOST]
    with np.errstate(divide="ignore"):
        log = np.log(total) + noise(0) - rising(alpha[1:].sum(), k) - k * np.log(p)
    law_of_root = np.exp(log - logsumexp(log))
    assert abs(laws.log_total - logsumexp(log)) < 1e-6 + 10.0 * laws.error
    mean = laws.mean[0]
    assert abs(mean - k @ law_of_root) < 1e-6 + MOST * laws.error
