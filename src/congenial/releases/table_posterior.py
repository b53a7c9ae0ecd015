"""The posterior of a released table: its law for readers, and the intervals that come with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.invariants.written import consistent, exactly, nonnegative
from congenial.releases.accuracy import Obstacle
from congenial.releases.model import Model
from congenial.types import IntArray

if TYPE_CHECKING:
    from congenial.inference.posteriors import Posterior
    from congenial.inference.priors import Prior

Ends = tuple[IntArray, IntArray]

# The prior of intervals in a release: no other suits skewed counts.
PRIOR: Literal["negative-binomial"] = "negative-binomial"
# Largest sum of the squared scales of the leaves for which intervals are computed, and the least
# scale counted: a million leaves of scale 4 take half a minute and 2.4 GB.
MOST_WORK, LEAST_SCALE = float(1 << 24), 4.0
# Number of intervals that may differ on another machine, and the probability they may lose.
_FEW, _CLOSE = 32, 1e-7


@dataclass(frozen=True)
class NoEnds:
    """Why a release has no intervals by its posterior."""

    why: Obstacle


def posterior_of_table(
    model: Model, value: IntArray, prior: Literal["flat", "poisson", "negative-binomial"] | Prior
) -> Posterior:
    """Return the law of the confidential counts given a released table.

    Notes
    -----
    The law of a release that was conditioned on bounds has a normaliser N(x) that depends on the
    counts. The posterior is then exact for the prior times N(x), under which counts near their
    bounds are rarer than under the prior. So intervals of sums of many such counts hold far less
    often than asked, or never. Only intervals of leaves are of use, and only on average.
    """
    from congenial.inference.posteriors import posterior

    resolved = model.resolved
    if model.plan.method.name != "conditioning":
        raise UnsupportedError(
            "the posterior of this release is not known exactly, because it is an image without "
            "measurements; make releases with publish = ['table', 'measurements']."
        )
    # under equalities the normaliser is the same for all counts
    known = consistent(model.tree) & nonnegative()
    if resolved.pinned.any():
        known = known & exactly(np.flatnonzero(resolved.pinned).tolist())
    return posterior(value, model.mechanism, known, prior)


def too_large(model: Model) -> bool:
    """Whether the posterior of a release takes more than `MOST_WORK`."""
    # a plan measures every leaf
    noisy = model.tree.is_leaf & ~model.determined
    scales = np.maximum(model.mechanism.scales[noisy], LEAST_SCALE)
    return float(scales @ scales) > MOST_WORK


def posterior_ends(model: Model, value: IntArray) -> Ends | NoEnds:
    """Work out the intervals of a release from its table alone, under a prior fitted to it.

    Returns tuple of two ndarrays of int64, shape (n,), or NoEnds: lower and upper ends; only those
    of leaves are of use, see `posterior_of_table`. Both the ends and the reason are functions of
    the released table, so they cost no privacy.
    """
    if too_large(model):
        return NoEnds("posterior-takes-too-much-work")
    fixed = model.determined
    try:
        low, high = posterior_of_table(model, value, PRIOR).intervals(model.plan.accuracy.alpha)
    except (UnsupportedError, MemoryError):
        return NoEnds("posterior-takes-too-much-memory-or-time")
    except NumericalError:
        return NoEnds("posterior-error-not-bounded")
    except ArgumentError:
        return NoEnds("posterior-has-no-prior")
    return np.where(fixed, value, low), np.where(fixed, value, high)


def as_likely(model: Model, value: IntArray, at: IntArray, stated: Ends, found: Ends) -> bool:
    """Whether stated intervals are as likely as the intervals found, where the two differ.

    Notes
    -----
    Another machine may round a prior's last digits differently. Of two intervals that are equally
    short and likely it may then find the other one. That happens at few nodes, so more differences
    are a fault.
    """
    alike = (stated[0] - found[0] == stated[1] - found[1]) & (abs(stated[0] - found[0]) == 1)
    if at.size > _FEW or not alike.all():
        return False
    law = posterior_of_table(model, value, PRIOR)
    for v, *ends in zip(at.tolist(), *stated, *found, strict=True):
        values, probabilities = law.marginal(v)
        own, other = (
            probabilities[(low <= values) & (values <= high)].sum()
            for low, high in (ends[:2], ends[2:])
        )
        if own < other - _CLOSE:
            return False
    return True
