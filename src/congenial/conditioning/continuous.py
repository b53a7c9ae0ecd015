"""Continuous noise given linear equalities: which way it is conditioned."""

from __future__ import annotations

import numpy as np

from congenial.conditioning.consistency import check_consistent
from congenial.conditioning.samplers.laplace_chain import ConditionedLaplace
from congenial.conditioning.samplers.normal import ConditionedGaussian
from congenial.conditioning.samplers.subspace import subspace
from congenial.errors import UnsupportedError
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.written import Invariant, requirements
from congenial.kernels.numerics import laws
from congenial.noise.additive import Additive


def condition_continuous(
    mechanism: Additive, invariant: Invariant, sampler: str
) -> ConditionedGaussian | ConditionedLaplace:
    """Condition continuous noise on equalities.

    Parameters
    ----------
    mechanism : Additive
        With Gaussian or Laplace noise.
    invariant : Invariant
        Without inequalities.
    sampler : {"auto", "exact", "gibbs"}
        "exact" refuses the chain for Laplace noise, "gibbs" the closed form for Gaussian noise.

    Raises
    ------
    UnsupportedError
        If there are inequalities, the law does not exist, or the sampler is not for this noise.
    InvariantError
        If the invariant does not fit the mechanism.
    InfeasibleError
        If linear conditions contradict one another.
    """
    name, on_grid = mechanism.noise.name, f"Discrete{type(mechanism.noise).__name__}"
    need = requirements(invariant, mechanism.n, mechanism.domain, whole=False)
    if need.has_inequalities:
        raise UnsupportedError(
            f"conditioning continuous {name} noise on inequalities is not covered; use {on_grid}, "
            "on a fine grid where the values are not whole."
        )
    check_feasible(need, invariant, whole=False, domain=mechanism.domain)
    check_consistent(need)
    normal = mechanism.noise.kind == laws.GAUSSIAN
    if normal and sampler == "gibbs":
        raise UnsupportedError(
            f"sampler is 'gibbs', and continuous {name} noise has a closed form; use 'auto'."
        )
    if not normal and sampler == "exact":
        raise UnsupportedError(
            f"no exact sampler covers continuous {name} noise; use {on_grid} on a fine grid, or "
            "sampler='auto' for a study."
        )
    space = subspace(need)
    space.check(np.isfinite(mechanism.scales))
    way = ConditionedGaussian if normal else ConditionedLaplace
    return way(mechanism, need, space)
