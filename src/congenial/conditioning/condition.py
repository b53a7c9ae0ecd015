"""`condition(M, C)`: choose a sampler for a mechanism and an invariant, and say why."""

from __future__ import annotations

import numpy as np

from congenial.conditioning.conditioned import Conditioned
from congenial.conditioning.forest import arrange
from congenial.errors import ArgumentError, UnsupportedError
from congenial.invariants import Invariant, Requirements, Union, requirements
from congenial.mechanisms.additive import Additive

SAMPLERS = ("auto", "exact")


def condition(mechanism: Additive, invariant: Invariant, sampler: str = "auto") -> Conditioned:
    """Condition a mechanism on an invariant (belief revision).

    Parameters
    ----------
    mechanism : Additive
        With discrete noise.
    invariant : Invariant
        Sums that form a forest, bounds on single entries, and entries published exactly.
    sampler : {"auto", "exact"}
        "auto" takes the exact sampler wherever it applies.

    Returns
    -------
    Conditioned
        The conditional mechanism, with its law known.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type or the sampler is unknown.
    UnsupportedError
        If no sampler covers the combination.
    InvariantError
        If the invariant does not fit the mechanism.

    References
    ----------
    Gong and Meng (2020), Theorem 2.1; Two Views, Definition 3.2.
    """
    if not isinstance(mechanism, Additive):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give congenial.Additive(noise, tree)."
        )
    if sampler not in SAMPLERS:
        raise ArgumentError(f"sampler is {sampler!r}; give one of {', '.join(SAMPLERS)}.")
    if isinstance(invariant, Union):
        raise UnsupportedError(
            "conditioning on a union of invariants is not covered yet; condition on each alone."
        )
    if not mechanism.noise.discrete:
        raise UnsupportedError(
            f"exact conditioning needs integer noise and was given {mechanism.noise.name} noise; "
            "use DiscreteLaplace or DiscreteGaussian."
        )
    need = requirements(invariant, mechanism.n, mechanism.tree)
    need = single_entry_bounds(need)
    forest, fixed = arrange(need)
    return Conditioned(mechanism, need, forest, fixed)


def single_entry_bounds(need: Requirements) -> Requirements:
    """Turn inequalities on single entries into bounds.

    Raises
    ------
    UnsupportedError
        If an inequality joins several entries.
    """
    matrix, value = need.inequalities
    if not value.size:
        return need
    if (np.count_nonzero(matrix, axis=1) != 1).any():
        raise UnsupportedError(
            "an at_least() condition joins several entries; exact conditioning covers bounds on "
            "single entries and on the nodes of a tree, so make the joint sum a node of its own."
        )
    lo, hi = need.lo.copy(), need.hi.copy()
    for row, bound in zip(matrix, value, strict=True):
        i = int(np.flatnonzero(row)[0])
        if row[i] > 0:
            lo[i] = max(lo[i], bound / row[i])
        else:
            hi[i] = min(hi[i], bound / row[i])
    empty = (np.zeros((0, need.n)), np.zeros(0))
    return Requirements(need.n, need.tree, need.pinned, lo, hi, need.equalities, empty)
