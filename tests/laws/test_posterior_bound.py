"""The error bound of posteriors under a prior, against sums over all counts of random trees."""

from __future__ import annotations

import math

import numpy as np
import pytest

import congenial as cg
from congenial.errors import UnsupportedError

INF = math.inf
COUNTS = np.arange(1600)
LOG_FACTORIALS = np.concatenate(([0.0], np.cumsum(np.log(COUNTS[1:]))))
# Rounding of the sums here.
ROUNDING = 3e-12


def log_prior(mean, r, q):
    """Log probabilities of all counts; summed up step by step, so that none is lost in another."""
    if math.isinf(r):
        logs = COUNTS * math.log(mean) - mean - LOG_FACTORIALS
    else:
        rising = np.concatenate(([0.0], np.cumsum(np.log(COUNTS[:-1] + r))))
        logs = rising - LOG_FACTORIALS + COUNTS * math.log(mean / (mean + r))
        logs -= r * math.log1p(mean / r)
    logs += math.log1p(-q)
    if q > 0.0:
        logs[0] = np.logaddexp(logs[0], math.log(q))
    return logs


def log_noise(gaussian, scale, u):
    if math.isinf(scale):
        return np.zeros(u.size)
    reach = np.arange(-int(60 * scale) - 9, int(60 * scale) + 10)
    shape = -0.5 * (u / scale) ** 2 if gaussian else -np.abs(u) / scale
    whole = np.exp(-0.5 * (reach / scale) ** 2 if gaussian else -np.abs(reach) / scale)
    return shape - math.log(whole.sum())


def summed(parents, gaussian, scales, y, prior):
    """Log of the evidence and the law of the root, by sums over all counts."""
    n, total = len(parents), 0.0
    messages = [None] * n
    leaves = [v for v in range(n) if v not in parents]
    for v in reversed(range(n)):
        logs = log_noise(gaussian, scales[v], y[v] - COUNTS)
        if v in leaves:
            logs = logs + log_prior(*(float(p[leaves.index(v)]) for p in prior))
        weights = np.exp(logs - logs.max())
        total += logs.max()
        if v not in leaves:
            weights = weights * messages[v]
        if v:
            at, beside = parents[v], messages[parents[v]]
            some = np.flatnonzero(weights)
            part = weights[: some[-1] + 1]
            messages[at] = weights if beside is None else np.convolve(beside, part)[: COUNTS.size]
    return math.log(weights.sum()) + total, weights / weights.sum()


def random_case(seed, zeros):
    rng = np.random.default_rng(seed)
    parents = [-1] + [0] * int(rng.integers(1, 5))
    for v in range(1, len(parents)):
        parents += [v] * int(rng.choice([0, 0, 1, 2, 4]))
    n = len(parents)
    leaves = n - np.unique(parents[1:]).size
    scales = np.exp(rng.uniform(np.log(0.3), np.log(20.0), n))
    scales[rng.random(n) < rng.choice([0.0, 0.3, 0.6])] = INF
    mean = np.exp(rng.uniform(np.log(0.05), np.log(15.0), leaves))
    r = np.exp(rng.uniform(np.log(0.5), np.log(50.0), leaves))
    r[rng.random(leaves) < 0.3] = INF
    q = np.exp(rng.uniform(np.log(1e-9), np.log(0.9), leaves)) * zeros
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(rng.poisson(mean) * (rng.random(leaves) > 0.3))
    # some measurements are much farther off than the noise makes them
    far = 1.0 + rng.choice([0.0, 0.0, 3.0, 7.0])
    y = x + np.rint(np.where(np.isinf(scales), 0.0, scales) * rng.standard_normal(n) * far)
    return parents, bool(rng.integers(2)), scales, y, (mean, r, q)


# Narrow windows; what was said to be lost was a thousandth of what was.
NARROW = (([-1, 0], True, np.array([2.74, 4.28]), np.array([-1.0, -7.0]), ([0.25], [0.13], [0.0])),)


def posterior(parents, gaussian, scales, y, prior):
    tree = cg.Tree.from_parents(parents)
    noise = (cg.DiscreteGaussian if gaussian else cg.DiscreteLaplace)(scales)
    known = cg.consistent(tree) & cg.nonnegative()
    shown = np.where(np.isinf(scales), np.nan, y)
    return cg.posterior(shown, cg.Additive(noise, tree), known, cg.inference.Prior(*prior))


def lost(case):
    """What windows lost, how far off the root's law is, and the bound."""
    law = posterior(*case)
    log_evidence, root = summed(*case)
    values, probabilities = law.marginal(0)
    apart = root.copy()
    apart[values] -= probabilities
    share = -math.expm1(law.log_evidence() - log_evidence)
    return share, 0.5 * float(np.abs(apart).sum()), law.error_bound


@pytest.mark.parametrize("zeros", [0.0, 1.0])
def test_the_truncation_of_windows_is_within_the_bound(zeros):
    cases = [random_case(seed, zeros) for seed in range(150)]
    for case in (*cases, *NARROW):
        share, apart, bound = lost(case)
        assert share <= bound + ROUNDING, case
        assert apart <= bound + ROUNDING, case
        assert bound < 1.1e-8


def test_counts_between_two_modes_are_refused():
    # a leaf that is 0 with probability 0.45, or about 165, and not measured
    case = [-1, 0, 0], False, np.array([INF, INF, 0.5]), np.array([0.0, 0.0, 4.0])
    with pytest.raises(UnsupportedError, match="by 165, and the limit is 20; give smaller"):
        posterior(*case, ([165.0, 6.0], INF, [0.45, 0.0]))
    # root and leaf tell of different modes
    for y, mean, scales in (((150, 0), 150.0, (30, 20)), ((100, 40), 100.0, (20, 20))):
        case = [-1, 0], False, np.array(scales, dtype=float), np.array(y)
        with pytest.raises(UnsupportedError, match="no zeros"):
            posterior(*case, (mean, INF, 0.5))
