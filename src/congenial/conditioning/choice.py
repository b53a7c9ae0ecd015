"""`condition(M, C)`: choose a sampler for a mechanism and an invariant, and say why."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np

from congenial.conditioning.consistency import check_consistent
from congenial.conditioning.continuous import condition_continuous
from congenial.conditioning.grid import (
    OnGrid,
    OnIntegers,
    in_units,
    spacing,
)
from congenial.conditioning.mixtures import Mixture
from congenial.conditioning.samplers.coupling import Perfect
from congenial.conditioning.samplers.cutset_sampler import cut_conditioned
from congenial.conditioning.samplers.forest_sampler import Conditioned
from congenial.conditioning.samplers.gibbs import gibbs_conditioned
from congenial.conditioning.samplers.independence import Independence
from congenial.conditioning.samplers.laplace_chain import ConditionedLaplace
from congenial.conditioning.samplers.normal import ConditionedGaussian
from congenial.conditioning.samplers.proposal import Proposal, place
from congenial.conditioning.samplers.proposing import check_fits
from congenial.conditioning.samplers.rejection import Rejection
from congenial.conditioning.samplers.subspace import subspace
from congenial.conditioning.samplers.tree_mh import TreeMH, tree_mh_conditioned
from congenial.conditioning.unions import ConditionedMixture, check_alternatives
from congenial.errors import ArgumentError, InfeasibleError, UnsupportedError
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.written import (
    Invariant,
    Requirements,
    Union,
    requirements,
)
from congenial.noise.additive import Additive
from congenial.sum_network.cutset.assignments import too_costly
from congenial.sum_network.cutset.joint import sums_of
from congenial.sum_network.cutset.systems import sum_system

# Those that plans may name, and those for studies and for releases in Python.
SAMPLERS = ("auto", "exact", "gibbs", "rejection", "independence", "perfect", "tree-mh")
_Proposed = Rejection | Independence | Perfect | TreeMH
_ON_INDEX_SETS: dict[str, type[Rejection | Independence | Perfect]] = {
    way.name: way for way in (Rejection, Independence, Perfect)
}
_BY_PROPOSALS = (*_ON_INDEX_SETS, TreeMH.name)
_Made = (
    Conditioned | ConditionedMixture | OnGrid | ConditionedGaussian | ConditionedLaplace | _Proposed
)


def condition(
    mechanism: Additive | Mixture,
    invariant: Invariant | Union,
    sampler: str = "auto",
    *,
    proposal: Proposal | None = None,
) -> _Made:
    """Condition a mechanism on an invariant (belief revision).

    Parameters
    ----------
    mechanism : Additive or Mixture
        Continuous noise is covered under equalities alone, but for samplers by proposals.
    invariant : Invariant or Union
        Sums with entries -1, 0, 1, equal or at least so much, bounds on single entries, and entries
        published exactly; for samplers by proposals any linear conditions.
    sampler : {"auto", "exact", "gibbs", "rejection", "independence", "perfect", "tree-mh"}
        "auto" takes an exact sampler wherever its cost is affordable, and otherwise chains for
        studies, which give no guarantee; "exact" refuses instead. The last four draw from
        proposals, as published; they release under equalities alone, "tree-mh" never.
    proposal : Proposal, optional
        What the samplers by proposals propose.

    Returns
    -------
    Conditioned, ConditionedMixture or OnGrid
        The conditional mechanism, with its law known; `OnGrid` where the granularity is not 1.
    ConditionedGaussian or ConditionedLaplace
        For continuous noise: in closed form, and by a chain for studies.
    Rejection, Independence, Perfect or TreeMH
        For the samplers by proposals.

    Raises
    ------
    ArgumentError
        If an argument has the wrong type or the sampler is unknown.
    UnsupportedError
        If no sampler covers the combination.
    InvariantError
        If the invariant does not fit the mechanism.
    InfeasibleError
        If no release can satisfy the invariant; the fewest conditions that clash are named.

    References
    ----------
    Gong and Meng (2020), Theorem 2.1, Section 2.3 and Algorithm 1; Two Views, Definition 3.2.
    """
    if sampler not in SAMPLERS:
        raise ArgumentError(f"sampler is {sampler!r}; give one of {', '.join(SAMPLERS)}.")
    if proposal is not None:
        _check_takes(sampler, proposal)
    step = spacing(mechanism)
    if step not in (0.0, 1.0):
        units = None if proposal is None else proposal.in_units(step)
        restated = in_units(mechanism, invariant)
        _check_units(*restated, step)
        inner = condition(*restated, sampler, proposal=units)
        return OnGrid(mechanism, step, cast(OnIntegers, inner))
    if sampler in _BY_PROPOSALS:
        return _by_proposals(mechanism, invariant, sampler, proposal)
    if isinstance(mechanism, Mixture):
        if isinstance(invariant, Union):
            raise UnsupportedError(
                "conditioning a mixture on a union is not covered; "
                "condition each part and mix those."
            )
        members = [_additive(part) for part in mechanism.parts]
        parts = [_condition(part, invariant, sampler) for part in members]
        return ConditionedMixture(tuple(parts), mechanism.weights, (parts[0].requirements,))
    if isinstance(invariant, Union):
        whole = _additive(mechanism)
        parts = [
            replace(_condition(whole, c, sampler), bounds_hold=False)
            for c in invariant.alternatives
        ]
        needs = tuple(part.requirements for part in parts)
        if any(need.inequalities[1].size for need in needs):
            raise UnsupportedError(
                "an alternative of a union has an at_least() condition between several entries; "
                "give bounds on single entries."
            )
        check_alternatives(needs)
        return ConditionedMixture(tuple(parts), (1.0,) * len(parts), needs)
    if step == 0.0 and isinstance(mechanism, Additive):
        return condition_continuous(mechanism, invariant, sampler)
    return _condition(_additive(mechanism), invariant, sampler)


def _check_units(mechanism: Additive | Mixture, invariant: Invariant | Union, step: float) -> None:
    """Refuse clashes in units of a grid; their bounds are told as they were given."""
    first = _additive(mechanism.parts[0] if isinstance(mechanism, Mixture) else mechanism)
    for one in invariant.alternatives if isinstance(invariant, Union) else (invariant,):
        need = requirements(one, first.n, first.domain)
        check_feasible(need, one, whole=True, domain=first.domain, grid=step)


def _additive(mechanism: object) -> Additive:
    if not isinstance(mechanism, Additive):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give congenial.Additive(noise, tree)."
        )
    return mechanism


def _condition(mechanism: Additive, invariant: Invariant, sampler: str) -> Conditioned:
    if not mechanism.noise.discrete:
        raise UnsupportedError(
            f"exact conditioning needs integer noise and was given {mechanism.noise.name} noise; "
            "use DiscreteLaplace or DiscreteGaussian."
        )
    need = requirements(invariant, mechanism.n, mechanism.domain)
    check_feasible(need, invariant, whole=True, domain=mechanism.domain)
    need = inequalities_in_units(need)
    check_consistent(need)
    if sampler == "gibbs":
        return gibbs_conditioned(mechanism, need, sums_of(need))
    system = sum_system(need)
    if system.forest is None:
        found = cut_conditioned(mechanism, need, system)
        if found is None and sampler == "exact":
            raise too_costly()
        return found or gibbs_conditioned(mechanism, need, system)
    made = Conditioned(mechanism, need, system.forest, system.fixed)
    if np.isinf(mechanism.scales).any():
        made.check_proper()
    return made


def _check_takes(sampler: str, proposal: object) -> None:
    if not isinstance(proposal, Proposal):
        raise ArgumentError(
            f"the proposal is a {type(proposal).__name__}; give "
            "congenial.conditioning.Proposal(index, scale)."
        )
    if sampler not in _BY_PROPOSALS:
        raise ArgumentError(
            f"sampler {sampler!r} takes no proposal; leave it out, or use one of "
            f"{', '.join(_BY_PROPOSALS)}."
        )


def _by_proposals(
    mechanism: Additive | Mixture,
    invariant: Invariant | Union,
    sampler: str,
    proposal: Proposal | None,
) -> _Proposed:
    if isinstance(mechanism, Mixture) or isinstance(invariant, Union):
        raise UnsupportedError(
            f"sampler {sampler!r} covers neither mixtures nor unions; use 'auto', or condition "
            "each part."
        )
    whole = _additive(mechanism)
    need = requirements(invariant, whole.n, whole.domain, whole=whole.noise.discrete)
    if need.relative.size:
        raise UnsupportedError(
            f"sampler {sampler!r} does not cover bounds that follow from counts published exactly; "
            "use 'auto'."
        )
    check_feasible(need, invariant, whole=whole.noise.discrete, domain=whole.domain)
    check_consistent(need)
    exact = _exactly(whole, invariant)
    if sampler == TreeMH.name:
        return tree_mh_conditioned(whole, need, exact, proposal)
    made = _ON_INDEX_SETS[sampler](whole, need, exact, place(whole, need, proposal))
    check_fits(made)
    if np.isinf(whole.scales).any() and not need.has_inequalities:
        subspace(need).check(np.isfinite(whole.scales))
    return made


def _exactly(mechanism: Additive, invariant: Invariant) -> Conditioned | ConditionedGaussian | None:
    """Return the same law by an exact sampler, None where none covers it."""
    try:
        made = condition(mechanism, invariant, "exact")
    except UnsupportedError:
        return None
    return made if isinstance(made, Conditioned | ConditionedGaussian) else None


def inequalities_in_units(need: Requirements) -> Requirements:
    """Turn inequalities on single entries into bounds, and the others into sums of entries.

    Raises
    ------
    UnsupportedError
        If an inequality between several entries weighs them differently.
    """
    matrix, value = need.inequalities
    if not value.size:
        return need
    lo, hi = need.lo.copy(), need.hi.copy()
    kept = []
    for row, bound in zip(matrix, value, strict=True):
        at = np.flatnonzero(row)
        size = np.abs(row[at])
        if at.size == 1 and row[at[0]] > 0:
            lo[at[0]] = max(lo[at[0]], bound / size[0])
        elif at.size == 1:
            hi[at[0]] = min(hi[at[0]], -bound / size[0])
        elif (size != size[:1]).any():
            raise UnsupportedError(
                "an at_least() condition weighs its entries differently; exact conditioning covers "
                "sums and differences, so use a sampler by proposals for a study."
            )
        elif at.size:
            kept.append((row / size[0], np.ceil(bound / size[0])))
    if (np.ceil(lo) > np.floor(hi)).any():
        raise InfeasibleError(
            "the at_least() conditions on an entry leave no integer; relax one of them."
        )
    rows = np.array([row for row, _ in kept]).reshape(-1, need.n)
    bounds = np.array([bound for _, bound in kept])
    return replace(need, lo=lo, hi=hi, inequalities=(rows, bounds))
