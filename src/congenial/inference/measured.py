"""Checked noisy measurements of a tree, and their weights around a consistent tree of counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, InfeasibleError, InvariantError, UnsupportedError
from congenial.imaging.noisy import check_zeros
from congenial.inference.priors import Prior
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.invariants.resolved import ResolvedInvariant, checked_draws, inequalities_in_units
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.kernels.numerics import laws, trees
from congenial.kernels.numerics.trees import read_only
from congenial.noise.additive import Additive
from congenial.noise.law import check_kernels
from congenial.sum_network import PriorWeights, Unary, share_priors
from congenial.types import BoolArray, FloatArray, IntArray

_LARGEST = 2.0**52


@dataclass(frozen=True, eq=False)
class Problem:
    """Measurements, and the invariant that the counts satisfy."""

    tree: Tree
    mechanism: Additive
    resolved: ResolvedInvariant
    y: IntArray  # shape (n,): Measurements; exact values of pinned nodes; 0 for nodes with neither.
    measured: BoolArray  # shape (n,)
    # Bounds and pins, shape (n,), without bounds that follow from bounds of leaves.
    lo: FloatArray
    hi: FloatArray

    @property
    def pinned(self) -> BoolArray:
        """Whether each count is published exactly, shape (n,)."""
        return self.resolved.pinned

    @property
    def groups(self) -> dict[str, dict[str, npt.NDArray[Any]]]:
        """Measurements and scales in ArviZ's groups; NaN for nodes without a measurement."""
        known = self.measured | self.pinned
        scale = np.where(self.pinned, 0.0, self.mechanism.scales)
        return {
            "observed_data": {"measurement": np.where(known, self.y, np.nan)},
            "constant_data": {"scale": scale, "published_exactly": self.pinned},
        }

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of a workload; empty for a tree, whose nodes have names."""
        workload = self.mechanism.workload
        return () if workload is None else workload.names

    def around(self, guess: FloatArray) -> IntArray:
        """Return a consistent tree of counts near the measurements of the leaves.

        `guess` (leaves,) has values for leaves that are neither measured nor pinned.
        """
        leaf = self.tree.leaves
        known = self.measured[leaf] | self.pinned[leaf]
        values = np.where(known, self.y[leaf], np.rint(guess))
        values = np.clip(values, self.lo[leaf], self.hi[leaf])
        return np.asarray(self.tree.roll_up(values.astype(np.int64)), dtype=np.int64)

    def weights(self, prior: Prior) -> tuple[PriorWeights, IntArray]:
        """Return every node's weight, and the tree of counts at the weights' zero."""
        tree, n = self.tree, len(self.tree)
        leaf = tree.leaves
        a, b, zero = np.full(n, -1.0), np.zeros(n), np.zeros(n)
        lo = self.lo.copy()
        a[leaf], b[leaf] = prior.panjer(leaf.size)
        zero[leaf] = prior.log_zero(leaf.size)
        lo[leaf] = np.maximum(lo[leaf], 0.0)
        a[self.pinned] = -1.0
        zero[self.pinned] = 0.0
        center = self.around(np.broadcast_to(prior.mean, leaf.shape))
        unary = replace(self, lo=lo).unary(center)
        return share_priors(unary, a, b, center.astype(np.float64), zero), center

    def unary(self, center: IntArray, nodes: IntArray | slice = slice(None)) -> Unary:
        """Return the weights of some nodes under a flat prior, whose zero is at `center`."""
        center, measured, pinned = center[nodes], self.measured[nodes], self.pinned[nodes]
        noise = self.mechanism.noise
        spread = noise.spread if noise.spread.size == 1 else noise.spread[nodes]
        kind = np.where(measured, noise.kind, laws.FLAT).astype(np.int64)
        # the kind is irrelevant for a single value
        kind[pinned] = laws.LAPLACE
        scale = np.where(measured, spread, 1.0)
        mode = np.where(measured | pinned, (self.y[nodes] - center).astype(np.float64), 0.0)
        return Unary(kind, scale, mode, self.lo[nodes] - center, self.hi[nodes] - center)

    def checked(self, drawn: IntArray, prior: Prior | DirichletTree | None) -> IntArray:
        """Return trees of counts, shape (..., n), after a check that they satisfy the invariant."""
        resolved = self.resolved
        if prior is not None:
            floor = np.where(self.tree.is_leaf, 0.0, -np.inf)
            resolved = replace(resolved, lo=np.maximum(resolved.lo, floor))
        return checked_draws(resolved, drawn, self.y)


def pose(
    y: npt.ArrayLike, mechanism: Additive, invariant: Invariant, *, nonnegative_leaves: bool
) -> Problem:
    """Check measurements against their mechanism and the invariant."""
    if not isinstance(mechanism, Additive):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give congenial.Additive(noise, tree)."
        )
    check_kernels(mechanism.noise)
    if mechanism.granularity != 1.0:
        raise UnsupportedError(
            f"posteriors need noise on the integers and were given {mechanism.noise.name} noise of "
            f"granularity {mechanism.granularity:g}; count in steps of its grid, or use "
            "DiscreteLaplace or DiscreteGaussian."
        )
    if not isinstance(invariant, Invariant):
        raise UnsupportedError(
            f"the invariant is a {type(invariant).__name__}; give consistent(tree), joined by "
            "& with exactly(), nonnegative() and bounds()."
        )
    resolved = inequalities_in_units(resolve_invariant(invariant, mechanism.n, mechanism.domain))
    return pose_resolved(y, mechanism, resolved, nonnegative_leaves=nonnegative_leaves)


def pose_resolved(
    y: npt.ArrayLike, mechanism: Additive, resolved: ResolvedInvariant, *, nonnegative_leaves: bool
) -> Problem:
    """Check measurements against a resolved invariant whose inequalities are in units."""
    tree = resolved.tree
    if tree is None or resolved.equalities[1].size or resolved.n_inequalities:
        raise UnsupportedError(
            "posteriors need a tree that adds up; impose consistent(tree), make the sums of "
            "linear() nodes of it, and of a workload ask for margins each of which divides the one "
            "before."
        )
    measured = np.isfinite(mechanism.scales)
    values = _measurements(y, measured | resolved.pinned, resolved)
    lo = np.where(resolved.pinned, values, np.ceil(resolved.lo))
    hi = np.where(resolved.pinned, values, np.floor(resolved.hi))
    if (resolved.pinned & ((values < resolved.lo) | (values > resolved.hi))).any():
        raise InvariantError("a value published exactly violates its bounds; correct one of them.")
    floor = lo.copy()
    if nonnegative_leaves:
        floor[tree.leaves] = np.maximum(floor[tree.leaves], 0.0)
    _check_feasible(tree, resolved, floor, hi)
    if (floor[tree.leaves] >= 0.0).all():
        check_zeros(tree, mechanism, resolved, values)
    implied = np.zeros(len(tree), dtype=np.bool_)
    trees.mark_implied(
        read_only(tree.parents),
        read_only(tree.is_leaf),
        read_only(resolved.pinned & ~tree.is_leaf),
        read_only(floor),
        np.zeros(len(tree)),
        implied,
    )
    lo[implied & ~resolved.pinned] = -np.inf
    return Problem(tree, mechanism, resolved, values, measured & ~resolved.pinned, lo, hi)


def _measurements(y: npt.ArrayLike, needed: BoolArray, resolved: ResolvedInvariant) -> IntArray:
    array = np.asarray(y)
    if array.shape != needed.shape or array.dtype.kind not in "iuf":
        raise ArgumentError(
            f"y has shape {array.shape} and dtype {array.dtype}; give {needed.size} numbers, one "
            "for each node, and NaN for nodes without a measurement."
        )
    real = array.astype(np.float64)
    wrong = np.flatnonzero(needed & ~((real == np.rint(real)) & (np.abs(real) <= _LARGEST)))
    if wrong.size:
        raise ArgumentError(
            f"y is not an integer of at most 2^52 in size at {resolved.name(int(wrong[0]))}; give "
            "the noisy measurements as they were made, or an infinite scale for a node without one."
        )
    return np.where(needed, real, 0.0).astype(np.int64)


def tightened(tree: Tree, lo: FloatArray, hi: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of all nodes, tightened to the sums of their children's."""
    low, high = lo.copy(), hi.copy()
    for depth in range(tree.depth - 1, 0, -1):
        at = np.flatnonzero(tree.level == depth)
        above = np.bincount(tree.parents[at], minlength=len(tree)) > 0
        for end, tighter in ((low, np.maximum), (high, np.minimum)):
            total = np.bincount(tree.parents[at], end[at], len(tree))
            end[above] = tighter(end[above], total[above])
    return low, high


def _check_feasible(
    tree: Tree, resolved: ResolvedInvariant, lo: FloatArray, hi: FloatArray
) -> None:
    """Check that some tree of counts lies within bounds."""
    low, high = tightened(tree, lo, hi)
    if (low > high).any():
        node = int(np.flatnonzero(low > high)[0])
        raise InfeasibleError(
            f"no counts below {resolved.name(node)} satisfy the bounds and the values "
            "published exactly; relax one of them."
        )
