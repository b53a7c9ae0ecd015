"""The posterior of a released table: its law for readers, and the intervals that come with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from congenial.conditioning.conditioned import Conditioned
from congenial.errors import ArgumentError, NumericalError, UnsupportedError
from congenial.invariants import consistent, determined, exactly, nonnegative
from congenial.model import Model
from congenial.randomness import seeded

if TYPE_CHECKING:
    from congenial.inference.posterior import Posterior
    from congenial.inference.priors import Prior

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Ends = tuple[IntArray, IntArray]

# The prior of intervals in a release: no other suits skewed counts.
PRIOR: Literal["negative-binomial"] = "negative-binomial"
# Work that a release takes on for its intervals, by the squared scales of its leaves, each at least
# the least one: a million leaves of scale 4, which take about half a minute and 2.4 GB.
MOST_WORK, LEAST_SCALE = float(1 << 24), 4.0
# The seed is fixed so that intervals of sums can be worked out again.
_SEED = 20_261_121


@dataclass(frozen=True, eq=False)
class PosteriorEnds:
    """Ends of the intervals of a release by its posterior.

    Attributes
    ----------
    each : tuple of two ndarrays of int64, shape (n,)
        Shortest intervals of the counts by themselves.
    together : tuple of two ndarrays of int64, shape (n,), or None
        Intervals that hold for all counts of a level at once.
    sums : tuple of (int, int) or None
        Ends for each sum; None where too few draws would tell them.
    """

    each: Ends
    together: Ends | None
    sums: tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True)
class NoEnds:
    """Why a release has no intervals by its posterior."""

    why: str


def posterior_of_table(
    model: Model,
    value: IntArray,
    prior: Literal["flat", "poisson", "negative-binomial"] | Prior,
) -> Posterior:
    """Return the law of the confidential counts given a released table.

    Parameters
    ----------
    model : Model
    value : ndarray of int64, shape (n,)
        The released counts.
    prior : {"flat", "poisson", "negative-binomial"} or Prior

    Raises
    ------
    UnsupportedError
        If the release is an image, or was conditioned on more than a tree that adds up, exact
        counts and bounds.

    Notes
    -----
    The law of a release that was conditioned on bounds has a normaliser N(x) that depends on the
    counts. The posterior is then exact for the prior times N(x).
    """
    from congenial.inference.posterior import posterior

    need = model.need
    if not isinstance(model.engine, Conditioned):
        raise UnsupportedError(
            "this release has no posterior that is known exactly, as a projection shaped it "
            "and it has no measurements; a release with publish = ['table', 'measurements'] "
            "has one."
        )
    # under equalities a release is a measurement whose noise adds up: its normaliser is one
    # number for all counts
    known = consistent(model.tree) & nonnegative()
    if need.pinned.any():
        known = known & exactly(np.flatnonzero(need.pinned).tolist())
    return posterior(value, model.mechanism, known, prior)


def too_large(model: Model) -> bool:
    """Whether the posterior of a release takes more work than a release takes on."""
    # a plan measures every leaf
    noisy = model.tree.is_leaf & ~determined(model.need)
    scales = np.maximum(model.mechanism.scales[noisy], LEAST_SCALE)
    return float(scales @ scales) > MOST_WORK


def posterior_ends(
    model: Model,
    value: IntArray,
    sums: Sequence[tuple[int, ...]],
    *,
    draws: int,
    cautious: float,
) -> PosteriorEnds | NoEnds:
    """Work out the intervals of a release from its table alone, under a prior fitted to it.

    Parameters
    ----------
    model : Model
    value : ndarray of int64, shape (n,)
        The released counts.
    sums : sequence of tuple of int
        The nodes of each sum that is asked for.
    draws : int
        Draws that tell the interval of a sum of several nodes; none where 0.
    cautious : float
        Alpha less what so many draws may be off by.

    Returns
    -------
    PosteriorEnds or NoEnds
        The reason names no count: it is a function of the released table, as the ends are.

    Notes
    -----
    Intervals for all counts of a level at once are those of each with alpha shared out equally
    among them (the union bound), so that the posterior probability is 1 - alpha at least.
    """
    alpha, fixed = model.plan.accuracy.alpha, determined(model.need)
    try:
        law = posterior_of_table(model, value, PRIOR)
        each = _ends(law, alpha, value, fixed)
        together = _together(law, model, value, fixed) if model.plan.accuracy.simultaneous else None
        told = tuple(
            _of_sum(law, nodes, each, fixed, draws=draws, alpha=cautious) for nodes in sums
        )
    except (UnsupportedError, MemoryError):
        return NoEnds("its tables would take more memory or time than a release takes on")
    except NumericalError:
        return NoEnds("its numerical error could not be held to the bound")
    except ArgumentError:
        return NoEnds("no prior can be fitted to it")
    return PosteriorEnds(each, together, told)


def _ends(law: Posterior, alpha: float, value: IntArray, fixed: BoolArray) -> Ends:
    low, high = law.intervals(alpha)
    return np.where(fixed, value, low), np.where(fixed, value, high)


def _together(law: Posterior, model: Model, value: IntArray, fixed: BoolArray) -> Ends:
    low, high = value.copy(), value.copy()
    alpha = model.plan.accuracy.alpha
    noisy = np.bincount(model.tree.level[~fixed], minlength=model.tree.depth)
    for count in np.unique(noisy[noisy > 0]):
        here = (noisy == count)[model.tree.level]
        ends = _ends(law, alpha / float(count), value, fixed)
        low[here], high[here] = ends[0][here], ends[1][here]
    return low, high


def _of_sum(
    law: Posterior,
    nodes: tuple[int, ...],
    each: Ends,
    fixed: BoolArray,
    *,
    draws: int,
    alpha: float,
) -> tuple[int, int] | None:
    at = list(nodes)
    if len(at) == 1 or fixed[at].all():
        return int(each[0][at].sum()), int(each[1][at].sum())
    if not draws:
        return None
    return law.interval_of_sum(at, alpha, size=draws, rng=seeded(_SEED))
