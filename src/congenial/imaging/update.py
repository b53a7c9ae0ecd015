"""Belief update: a mechanism's output moved to the closest point of an invariant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.accounting.guarantee import TWO_BINS, Guarantee, Neighbours, with_sampler_error
from congenial.errors import ArgumentError
from congenial.imaging.closest import DENSE, Norm, Projector
from congenial.imaging.noisy import Moved, precision
from congenial.imaging.solvers.dense import LONGEST
from congenial.imaging.solvers.problem import checked_weights
from congenial.imaging.solvers.shares import two_bin_factor
from congenial.invariants.feasibility.feasible import check_feasible, remarks
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.kernels.numerics import laws
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray


def image(
    mechanism: Additive,
    invariant: Invariant,
    norm: Norm = "l2",
    integer: bool = False,
    *,
    beta: npt.ArrayLike | None = None,
) -> Imaged:
    """Update a mechanism by an invariant: noise first, then the closest point.

    Parameters
    ----------
    mechanism : Additive
    invariant : Invariant
        See `congenial.project` for what is covered.
    norm : {"l2", "l1"}
        The norm in which the point is closest; a measurement's weight is one over its variance.
    integer : bool
        Release integers.
    beta : float, or array_like of float of shape (n,), optional
        Selects one of the L1 images; see `congenial.project`.

    Returns
    -------
    Imaged

    Raises
    ------
    ArgumentError
        If an argument is not valid.
    UnsupportedError
        If no projection covers the invariant.
    InfeasibleError
        If no release can satisfy the invariant; an irreducible infeasible subset is named.

    References
    ----------
    Two Views, equations 5 and 6, and Lemma 3.7; Gong and Meng (2020), Example 4.1, for beta.
    """
    if not isinstance(mechanism, Additive):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give congenial.Additive(noise, tree)."
        )
    if integer is True and mechanism.granularity not in (0.0, 1.0):
        raise ArgumentError(
            f"integer is True and the noise has granularity {mechanism.granularity:g}; release "
            "values on the grid with integer=False, or use a granularity of 1."
        )
    resolved = resolve_invariant(invariant, mechanism.n, mechanism.domain, whole=integer is True)
    check_feasible(resolved, invariant, whole=integer is True, domain=mechanism.domain)
    imaged = Imaged(mechanism, resolved, norm, integer, beta)
    _ = imaged.projector.forest
    return imaged


@dataclass(frozen=True, eq=False)
class Imaged(Moved):
    """An additive mechanism updated by an invariant (belief update); made by `congenial.image`.

    Attributes
    ----------
    mechanism : Additive
    resolved : ResolvedInvariant
    norm : {"l2", "l1"}
    integer : bool
    beta : float or array_like of float, optional
    """

    norm: Norm
    integer: bool
    beta: npt.ArrayLike | None = None

    @cached_property
    def projector(self) -> Projector:
        """The projection, weights included."""
        weight = np.where(self.resolved.pinned, 0.0, precision(self.mechanism))
        return Projector(
            self.resolved,
            checked_weights(weight, self.mechanism.n),
            self.norm,
            self.integer,
            self.beta,
        )

    @property
    def whole(self) -> bool:
        """Whether releases are integers."""
        return self.integer

    def move(self, noisy: npt.ArrayLike, rng: Randomness) -> FloatArray | IntArray:
        """Return the closest vector that satisfies the invariant."""
        return self.projector.apply(noisy, rng)

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw: that of the noise, among neighbours that keep the pins.

        An L1 image of two bins with a weight beta loses less, where that is proved.

        References
        ----------
        Two Views, Lemma 3.7; Gong and Meng (2020), Theorem A.1.
        """
        stated = super().guarantee(neighbours)
        factor = self._loss_factor()
        if factor == 1.0:
            return stated
        epsilon = factor * stated.epsilon
        # delta follows anew from the smaller epsilon
        return replace(
            stated,
            epsilon=epsilon,
            delta=with_sampler_error(epsilon, 0.0, stated.sampler_error),
            base_epsilon=epsilon,
            gamma_source=TWO_BINS,
        )

    def _loss_factor(self) -> float:
        """Proved bound on the ratio of an image's loss to its noise's loss."""
        found, noise = self.projector.shares, self.mechanism.noise
        if found is None or noise.kind != laws.LAPLACE:
            return 1.0
        scales = self.mechanism.scales[~self.resolved.pinned]
        if (scales != scales[0]).any():
            return 1.0
        return two_bin_factor(found[0], self.resolved, found[1], whole=noise.discrete)

    @property
    def _general_way(self) -> str:
        """Text on the solver for sums that are not a forest."""
        bounded = self.resolved.has_inequalities
        if self.resolved.n > (DENSE if bounded else LONGEST):
            return "a sparse quadratic programme whose optimality is checked"
        if bounded:
            return "a quadratic programme whose optimality is proved"
        return f"a dense {self.norm.upper()} least-squares solve"

    def explain(self) -> str:
        """Say how a release is drawn, and why so."""
        resolved, norm = self.resolved, self.norm.upper()
        found = self.projector.forest
        how = self._general_way if found is None else f"an exact {norm} dynamic programme"
        whole = ", and then rounds to integers that still add up" if self.integer else ""
        if self.norm == "l1" and self.integer:
            whole = " over the integers"
        if self.projector.shares is not None:
            how = "giving each entry its share of its sum's gap, one of the closest in L1"
        pinned = int(resolved.pinned.sum())
        open_ = int((~np.isfinite(self.mechanism.scales) & ~resolved.pinned).sum())
        differences = "squared" if self.norm == "l2" else "absolute"
        unmeasured = f", {open_} not measured" if open_ else ""
        return (
            f"imaging: adds {self.mechanism.noise.name} noise to {resolved.n - pinned - open_} of "
            f"{resolved.n} counts ({pinned} published exactly{unmeasured}), then moves to the "
            f"closest counts that satisfy the invariant, by {how}{whole}. {norm} is the sum of the "
            f"{differences} differences. A noisy count has the weight 1 / (variance of its noise). "
            "The move uses only the noisy counts and the counts "
            "published exactly, so it costs no privacy. Counts near a bound are biased."
        ) + (f" {left}" if (left := remarks(resolved, self.mechanism.domain)) else "")
