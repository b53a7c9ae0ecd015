"""The probability of measurements under a prior of the counts, and its derivatives."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from congenial import sum_network
from congenial.inference.measured import Problem
from congenial.inference.priors import Prior
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.sum_network import Tables
from congenial.types import FloatArray, IntArray


class Gradient(NamedTuple):
    """Derivatives with respect to the mean and dispersion of every leaf, of shape (leaves,) each.

    `Prior.zeros` are constants. If all leaves have one mean, add up the derivatives; for the
    parameters of a model, use the chain rule.
    """

    mean: FloatArray
    dispersion: FloatArray


def log_evidence(problem: Problem, prior: Prior | DirichletTree, log_total: float) -> float:
    """Log probability of the measurements, given the log of the sum of the weights of counts."""
    leaf = problem.tree.leaves
    noise, scales = problem.mechanism.noise, problem.mechanism.scales
    at_mode = noise.log_pmf(np.zeros(len(problem.tree)), scales)[problem.measured].sum()
    if isinstance(prior, DirichletTree):
        return log_total + float(at_mode)
    counts = np.where(problem.pinned[leaf], problem.y[leaf], 0).astype(np.int64)
    more = prior.log_zero(leaf.size)[~problem.pinned[leaf]].sum()
    return log_total + float(at_mode + prior.log_pmf(counts).sum() - more)


def gradient(problem: Problem, prior: Prior, tables: Tables, center: IntArray) -> Gradient:
    """Derivatives of `log_evidence`: posterior means of those of the log prior (Fisher)."""
    tree, n = problem.tree, len(problem.tree)
    leaf = tree.leaves
    m = np.broadcast_to(prior.mean, leaf.shape)
    r = np.broadcast_to(prior.dispersion, leaf.shape)
    poisson = np.isinf(r)
    wanted = np.zeros(n)
    wanted[leaf] = np.where(poisson, 0.0, r)
    found = sum_network.summaries(tables, tree.is_leaf, 0.5, center=center, dispersion=wanted)
    k = found.mean[leaf]
    # probability that a leaf is empty because of `zeros`; then its mean has no effect
    besides = found.empty[leaf] * -np.expm1(-prior.log_zero(leaf.size))
    with np.errstate(invalid="ignore"):
        over = np.where(poisson, 1.0, r / (m + r))
        at_none = np.log(over) + m / (m + r)
        by_dispersion = found.rise[leaf] + at_none - k / (m + r) - besides * at_none
    by_mean = (k / m - 1.0 + besides) * over
    return Gradient(by_mean, np.where(poisson, 0.0, by_dispersion))
