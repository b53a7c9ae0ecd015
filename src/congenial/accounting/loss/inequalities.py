"""Privacy loss of noise conditioned on bounds, as `proofs/inequalities.md` proves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.accounting.loss.bisection import bisected
from congenial.accounting.loss.together import Together
from congenial.domain.workload import Workload
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import BoolArray, FloatArray

NONE = "all invariants are equalities"
PROVED = "proved bound: proofs/inequalities.md"
WHOLE = "Gaussian noise, at whole orders: proofs/gaussian-bounds.md"
TRIVIAL = "the general bound: Gong and Meng, Theorem 2.1"
# Doubles hold every integer up to this size, so smaller sums of bounds are exact.
_EXACT = 2.0**53


def bounded_loss(base: npt.ArrayLike, alpha: npt.ArrayLike, steps: float = 1.0) -> FloatArray:
    """Bound the loss of neighbouring datasets under noise conditioned on bounds.

    The bound is at most twice `base`. It increases with `base` and decreases with `alpha`.

    References
    ----------
    `proofs/inequalities.md`, the theorem; Gong and Meng (2020), Theorem 2.1, for twice `base`.
    """
    e, a = np.broadcast_arrays(
        np.asarray(base, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    )
    step = (e - 2.0 * a) / steps
    down = -np.abs(step)
    with np.errstate(divide="ignore", invalid="ignore"):
        # log of exp(step) + ... + exp(steps * step), without overflow
        several = np.where(step == 0.0, steps, np.expm1(steps * down) / np.expm1(down))
        excess = np.log(-np.expm1(-e / steps)) + np.log(several)
        excess = excess + np.where(step > 0.0, steps * step, step)
    return e + np.where(a == 0.0, e, np.minimum(np.logaddexp(0.0, excess), e))


def charged(resolved: ResolvedInvariant, grid: float = 1.0) -> BoolArray:
    """Entries that are not pinned, with a finite bound that other bounds do not imply.

    Inequalities are charged on one line only, where each is a bound of every entry.
    """
    if resolved.n_inequalities:
        return np.asarray(~resolved.pinned)
    low, high = np.ceil(resolved.lo / grid), np.floor(resolved.hi / grid)
    counts = np.isfinite(low) & ~_implied(low, resolved)
    upper = np.isfinite(high)
    if upper.any():  # most plans have lower bounds only
        counts |= upper & ~_implied(-high, resolved)
    counts[resolved.bounded_by_pins] = True
    return np.asarray(counts & ~resolved.pinned)


def _implied(low: FloatArray, resolved: ResolvedInvariant) -> BoolArray:
    """Entries whose lower bounds follow from the lower bounds of their parts."""
    tree = resolved.tree
    if tree is None:
        return _implied_by_cells(low, resolved.workload)
    if not low.any():  # bounds of 0 everywhere, as in most plans: sums of them are 0
        return np.asarray(~tree.is_leaf)
    below = np.where(tree.is_leaf, -np.inf, 0.0)
    for depth in range(tree.depth - 1, 0, -1):
        nodes = np.flatnonzero(tree.level == depth)
        np.add.at(below, tree.parents[nodes], np.maximum(low[nodes], below[nodes]))
    return np.asarray((below >= low) & (np.abs(below) < _EXACT))


def _implied_by_cells(low: FloatArray, workload: Workload | None) -> BoolArray:
    """Margins whose lower bounds follow from those of their single cells."""
    if workload is None:
        return np.zeros(low.size, dtype=np.bool_)
    below = np.zeros(low.size)
    for entries in workload.chain:
        inside = entries >= 0
        np.add.at(below, entries[inside], low[workload.cells[inside]])
    below[workload.cells] = -np.inf
    return np.asarray((below >= low) & (np.abs(below) < _EXACT))


@dataclass(frozen=True)
class Pairs:
    """The neighbouring pairs of datasets, as far as the loss under bounds depends on them."""

    worst: float  # Largest loss without the bounds.
    base: FloatArray  # shape (k,): Largest loss without bounds of the pairs that change an entry.
    # shape (k,), ascending: Change over scale of such entries, whose bounds count, summed over the
    # entries that move together with each; a grid step over scale if changes differ in size.
    alpha: FloatArray
    steps: float  # As for `bounded_loss`; 0 if nothing is proved.

    def loss(self, factor: float = 1.0) -> float:
        """Bound on the loss under the bounds, once all scales are divided by `factor`."""
        worst = factor * self.worst
        if self.steps == 0.0:
            return 2.0 * worst
        found = bounded_loss(factor * self.base, factor * self.alpha, self.steps)
        return float(found.max(initial=worst))

    def budget(self, epsilon: float) -> float:
        """Factor on the noise's budget of 1 at which the loss reaches `epsilon`.

        A pair of neighbours may use only some of the shares of the budget.
        """
        # bounds at best cost nothing, and at worst double the loss
        return bisected(lambda factor: self.fits(factor, epsilon), 0.5 * epsilon, epsilon)[0]

    def fits(self, factor: float, epsilon: float) -> bool:
        """Whether a factor is at most the `budget` of `epsilon`."""
        return self.loss(factor) <= epsilon * self.worst


def bounded_pairs(
    cost: FloatArray,
    through: FloatArray,
    resolved: ResolvedInvariant,
    together: Together,
    *,
    change: float,
    grid: float,
) -> Pairs:
    """Sort neighbouring pairs by the loss that the invariant's bounds can add."""
    worst = float(through.max(initial=0.0))
    if grid == 0.0 or (resolved.n_inequalities and not together.one_line):
        return Pairs(worst, np.zeros(0), np.zeros(0), 0.0)
    return sorted_pairs(together.sum(cost), through, charged(resolved, grid), steps=change / grid)


def sorted_pairs(
    cost: FloatArray, through: FloatArray, counts: BoolArray, *, steps: float
) -> Pairs:
    """Sort neighbouring pairs by the loss that given bounds can add.

    The cost of an entry is summed over the entries that move together with it.
    """
    counts = counts & np.isfinite(through)
    alpha, at = np.unique(cost[counts], return_inverse=True)
    base = np.zeros(alpha.size)
    np.maximum.at(base, at.ravel(), through[counts])
    return Pairs(float(through.max(initial=0.0)), base, alpha, steps)
