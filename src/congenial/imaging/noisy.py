"""Draws of an update: add noise first, then move each vector to the invariant."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours, imaged_guarantee
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, InvariantError
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.namespaces import renamed
from congenial.noise.additive import Additive, checked_size, rolled_up
from congenial.noise.law import too_far_from_zero
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray

Values = FloatArray | IntArray


@dataclass(frozen=True, eq=False)
class Moved:
    """An additive mechanism whose noisy values are moved to an invariant by `move`."""

    mechanism: Additive
    resolved: ResolvedInvariant
    requirements = renamed("requirements", "resolved")

    @property
    def whole(self) -> bool:
        """Whether releases are integers."""
        raise NotImplementedError

    def move(self, noisy: npt.ArrayLike, rng: Randomness) -> Values:
        """Move one vector of measurements to the invariant."""
        raise NotImplementedError

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw releases; the arguments are those of `Additive.sample`.

        Returns
        -------
        ndarray, shape (n,) or (size, n)
            int64 where releases are integers, float64 otherwise.

        Raises
        ------
        ArgumentError
            If `x` has the wrong shape or does not add up along the tree.
        InfeasibleError
            If the values published exactly leave no consistent release.
        """
        rows, source = checked_size(size), resolve(rng)
        noisy = self.measure(x, rows, source)
        out = self.apply_all(noisy, source)
        return out[0] if size is None else out

    def apply_all(self, noisy: Values, rng: Randomness) -> Values:
        """Move several vectors of measurements of the same counts, shape (k, n)."""
        out: Values = np.empty(noisy.shape, dtype=np.int64) if self.whole else np.empty(noisy.shape)
        for row, one in zip(out, noisy, strict=True):
            row[:] = self.apply(one, rng)
        return out

    def measure(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> Values:
        """Draw noisy measurements, from which `apply` makes releases.

        Returns
        -------
        ndarray, shape (n,) or (size, n)
            Exact values for entries that the invariant publishes exactly; draws of
            `Additive.sample` for the others.

        Raises
        ------
        ArgumentError
            If `x` has the wrong shape or does not add up along the tree.
        """
        counts = self.mechanism.counts(x)
        if not _adds_up(self.resolved, counts):
            raise ArgumentError(f"x does not add up; {rolled_up(self.resolved.workload)}.")
        return np.where(self.resolved.pinned, counts, self.mechanism.sample(counts, size, rng))

    def apply(self, noisy: npt.ArrayLike, rng: Randomness) -> Values:
        """Move one vector of measurements to the invariant; pins hold their exact values.

        Raises
        ------
        InvariantError
            If a value published exactly is 0, and measurements below it are too large for noise.
        """
        values = np.asarray(noisy)
        if self._floored and (values[self._exact] == 0).any():
            check_zeros(self._floored[0], self.mechanism, self.resolved, values)
        return checked_draws(self.resolved, self.move(noisy, rng), values)

    @cached_property
    def _floored(self) -> tuple[Tree, ...]:
        """The tree of the counts if none of its leaves may be negative; else empty."""
        tree = self.resolved.tree
        return () if tree is None or (self.resolved.lo[tree.leaves] < 0.0).any() else (tree,)

    @cached_property
    def _exact(self) -> IntArray:
        """Entries that are published exactly."""
        return np.flatnonzero(self.resolved.pinned)

    @cached_property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law, for every dataset."""
        return self.mechanism.noise.sampling_error(self.mechanism.scales)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw: that of the noise, among neighbours that keep the pins.

        Parameters
        ----------
        neighbours : {"substitute", "add-remove"}

        Raises
        ------
        EmptyNeighbourhoodError
            If the values published exactly leave no neighbouring datasets.

        References
        ----------
        Two Views, Lemma 3.7.
        """
        return imaged_guarantee(
            self.mechanism, self.resolved, neighbours, sampler_error=self.error_bound
        )


def check_zeros(
    tree: Tree, mechanism: Additive, resolved: ResolvedInvariant, values: Values
) -> None:
    """Refuse a count published exactly as 0 if measurements of its parts are far from 0."""
    empty = resolved.pinned & (values == 0) & ~tree.is_leaf
    if not empty.any():
        return
    for level in range(1, tree.depth):
        at = np.flatnonzero(tree.level == level)
        empty[at] |= empty[tree.parents[at]]
    seen = empty & np.isfinite(mechanism.scales) & ~resolved.pinned
    if too_far_from_zero(np.abs(values[seen]) / mechanism.scales[seen]):
        first = int(np.flatnonzero(empty)[0])
        raise InvariantError(
            f"y is 0 at {resolved.name(first)}, which is published exactly, and below it so large "
            "that noise cannot explain it, so that every count there would be 0; give the exact "
            "count."
        )


def precision(mechanism: Additive) -> FloatArray:
    """One over the variance of each query's noise, shape (n,); 0 for one that is not measured."""
    with np.errstate(divide="ignore", under="ignore", over="ignore"):
        return np.asarray(1.0 / np.maximum(mechanism.noise.variances(mechanism.scales), 1e-300))


def _adds_up(resolved: ResolvedInvariant, counts: npt.NDArray[np.int64 | np.float64]) -> bool:
    if resolved.sums is None or counts.dtype.kind == "i":
        return bool(resolved.adds_up(counts))
    gaps = np.abs(resolved.sums.gaps(counts))
    return bool((gaps <= 1e-9 * (1.0 + np.abs(counts).max())).all())
