"""Whether tables of families fit a sum network, and whether they take less time."""

from __future__ import annotations

import numpy as np

from congenial.kernels.numerics import laws
from congenial.sum_network import SharedUnary, SumForest

# Median scale from which on tables of families take less time, and the least product of it with the
# number of variables (measured on census blocks, with cells and without, and on made-up trees).
_LEAST, _WORTH = 0.5, 75_000.0
# Median scale from which on noise counts as wide.
_WIDE = 4.0
# Least scale, and share of leaves less than the noise's scale away from their bounds, with which
# noise counts as wide, too: the bounds then push all sums up, and merges have wide tables.
_CROWDED, _SHARE = 0.25, 2.0 / 3.0


def are_worthwhile(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether tables of families take less time than those of all merges, as far as is known."""
    scale = _scale(forest, weights)
    if scale * forest.n < _WORTH or not applies(forest, weights):
        return False
    return scale >= _LEAST or _is_crowded(forest, weights, scale)


def have_wide_noise(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether `settled` tilts match the means of sums better than tilts of single weights do."""
    scale = _scale(forest, weights)
    return applies(forest, weights) and (scale >= _WIDE or _is_crowded(forest, weights, scale))


def scales_are_wide(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether the noise is wide whatever the counts are."""
    return _scale(forest, weights) >= _WIDE


def _is_crowded(forest: SumForest, weights: SharedUnary, scale: float) -> bool:
    """Whether most leaves' modes are less than the scale of the noise away from lower bounds."""
    if scale < _CROWDED:
        return False
    unary, leaf = weights.unary, forest.is_leaf & (forest.above >= 0)
    near = (unary.center - unary.lo < scale)[weights.code[leaf]]
    return bool(near.size) and float(near.mean()) >= _SHARE


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
