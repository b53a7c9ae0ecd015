"""Whether tables of families fit a sum network, and whether they take less time."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network import SharedUnary, SumForest

# Median scale, and that scale times the number of variables, from which tables of families take
# less time (measured on census blocks, with cells and without).
_WIDE, _WORTH = 4.0, 200_000.0
# Least scale, and share of leaves less than the noise's scale away from their bounds, with which
# noise counts as wide, too: the bounds then push all sums up, and merges have wide tables.
_CROWDED, _SHARE = 0.25, 2.0 / 3.0


def are_wide(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether tables of families take less time than those of all merges, as far as is known."""
    return _scale(forest, weights) * forest.n >= _WORTH and have_wide_noise(forest, weights)


def have_wide_noise(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether `settled` tilts match the means of sums better than tilts of single weights do."""
    scale = _scale(forest, weights)
    if scale < _CROWDED or not applies(forest, weights):
        return False
    return scale >= _WIDE or _share_near(forest, weights, scale) >= _SHARE


def scales_are_wide(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether the noise is wide whatever the counts are."""
    return _scale(forest, weights) >= _WIDE


def _share_near(forest: SumForest, weights: SharedUnary, distance: float) -> float:
    """Return the share of leaves whose modes are less than a distance away from lower bounds."""
    unary, leaf = weights.unary, forest.is_leaf & (forest.above >= 0)
    near = (unary.center - unary.lo < distance)[weights.code[leaf]]
    return float(near.mean()) if near.size else 0.0


def _scale(forest: SumForest, weights: SharedUnary) -> float:
    """Return the median scale of the noise."""
    scales = weights.unary.scale[weights.code[forest.above >= 0]]
    return float(np.median(scales)) if scales.size else 0.0


def applies(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether all sums are those of a tree whose measured leaves have lower bounds."""
    unary, owner = weights.unary, forest.owner
    owned = owner[owner >= 0]
    if not forest.m or forest.turned or (forest.sign < 0).any():
        return False
    if np.bincount(owned, minlength=1).max(initial=0) > 1:
        return False
    leaf = forest.is_leaf
    # variables that follow from others are left at 0
    isolated = leaf & (forest.above < 0)
    none = (unary.lo == 0.0) & (unary.hi == 0.0)
    leaf &= ~isolated
    bounded = (unary.kind == laws.LAPLACE) & np.isfinite(unary.lo) & np.isposinf(unary.hi)
    least = np.where(np.isfinite(unary.lo), unary.lo, 0.0)
    near = (np.abs(least) < 2.0**40) & (np.abs(unary.center - least) < 2.0**40)
    fits = bounded & near
    whole = unary.center == np.rint(unary.center)
    known = (unary.kind == laws.LAPLACE) & whole | (unary.kind == laws.FLAT)
    code = weights.code
    return bool(none[code[isolated]].all() and fits[code[leaf]].all() and known[code].all())
