"""`condition(M, C)`: choose a sampler, then condition a mechanism on an invariant with it."""

from __future__ import annotations

from dataclasses import replace

from congenial.conditioning.consistency import check_consistent
from congenial.conditioning.grid import OnGrid, in_units, spacing
from congenial.conditioning.laws.conditional import ConditionalMechanism
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.mixtures import Mixture
from congenial.conditioning.proposal import ByProposals, Proposal
from congenial.conditioning.sampler import Sampler, find_sampler, sampler_names
from congenial.conditioning.unions import ConditionedMixture, check_alternatives
from congenial.errors import ArgumentError, UnsupportedError
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, Union, resolve_invariant
from congenial.noise.additive import Additive


def condition(
    mechanism: Additive | Mixture,
    invariant: Invariant | Union,
    sampler: str | Sampler = "auto",
    *,
    proposal: Proposal | None = None,
) -> ConditionalMechanism:
    """Condition a mechanism on an invariant (belief revision).

    Parameters
    ----------
    mechanism : Additive or Mixture
        Continuous noise is covered under equalities alone, except by samplers by proposals.
    invariant : Invariant or Union
        Sums with entries -1, 0, 1 that equal a number or are at least a number, bounds on single
        entries, and entries published exactly; for samplers by proposals any linear conditions.
    sampler : str or Sampler
        "auto" takes the exact sampler if its cost is affordable, and otherwise chains for studies,
        which give no guarantee; "exact" refuses instead. "gibbs" and "laplace-chain" are chains for
        studies. "rejection", "independence", "perfect" and "tree-mh" are published samplers by
        proposals; all but "tree-mh" can release, under equalities only. An object with `name`,
        `certified` and `condition` works too; see `congenial.conditioning.sampler.Sampler`.
    proposal : Proposal, optional
        Proposal of the samplers by proposals.

    Returns
    -------
    Conditioned, ConditionedMixture or OnGrid
        The conditional mechanism, with a known law; `OnGrid` if the granularity is not 1.
    ConditionedGaussian or ConditionedLaplace
        For continuous noise: the first in closed form, the second by a chain for studies.
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
        If no release can satisfy the invariant; an irreducible infeasible subset is named.

    References
    ----------
    Gong and Meng (2020), Theorem 2.1, Section 2.3 and Algorithm 1; Two Views, Definition 3.2.
    """
    chosen = _chosen(sampler, proposal)
    step = spacing(mechanism)
    if step in (0.0, 1.0):
        return _conditioned(mechanism, invariant, chosen)
    restated = in_units(mechanism, invariant)
    _check_units(*restated, step)
    if isinstance(chosen, ByProposals):
        chosen = chosen.in_units(step)
    return OnGrid(mechanism, step, _conditioned(*restated, chosen))


def _chosen(sampler: object, proposal: object) -> Sampler:
    """Return the sampler asked for, with its proposal."""
    if isinstance(sampler, str):
        chosen = find_sampler(sampler)
    elif isinstance(sampler, Sampler) and not isinstance(sampler, type):
        chosen = sampler
    else:
        raise ArgumentError(
            f"sampler is {sampler!r}; give one of {', '.join(sampler_names())}, or an object with "
            "name, certified and condition()."
        )
    if proposal is None:
        return chosen
    if not isinstance(proposal, Proposal):
        raise ArgumentError(
            f"the proposal is a {type(proposal).__name__}; give "
            "congenial.conditioning.Proposal(index, scale)."
        )
    if not isinstance(chosen, ByProposals):
        able = [name for name in sampler_names() if isinstance(find_sampler(name), ByProposals)]
        raise ArgumentError(
            f"sampler {chosen.name!r} takes no proposal; leave it out, or use one of "
            f"{', '.join(able)}."
        )
    return replace(chosen, proposal=proposal)


def _conditioned(
    mechanism: Additive | Mixture, invariant: Invariant | Union, sampler: Sampler
) -> ConditionalMechanism:
    """Condition noise on integers, or continuous noise, with a sampler."""
    if isinstance(mechanism, Mixture):
        if isinstance(invariant, Union):
            raise UnsupportedError(
                "conditioning a mixture on a union is not covered; "
                "condition each part and mix those."
            )
        parts = [_part(_additive(part), invariant, sampler) for part in mechanism.parts]
        return ConditionedMixture(tuple(parts), mechanism.weights, (parts[0].resolved,))
    whole = _additive(mechanism)
    if isinstance(invariant, Union):
        return _on_union(whole, invariant, sampler)
    return sampler.condition(whole, _resolved(whole, invariant))


def _on_union(mechanism: Additive, invariant: Union, sampler: Sampler) -> ConditionedMixture:
    made = (_part(mechanism, one, sampler) for one in invariant.alternatives)
    parts = tuple(replace(part, bounds_hold=False) for part in made)
    alternatives = tuple(part.resolved for part in parts)
    if any(resolved.n_inequalities for resolved in alternatives):
        raise UnsupportedError(
            "an alternative of a union has an at_least() condition between several entries; "
            "give bounds on single entries."
        )
    check_alternatives(alternatives)
    return ConditionedMixture(parts, (1.0,) * len(parts), alternatives)


def _part(mechanism: Additive, invariant: Invariant, sampler: Sampler) -> Conditioned:
    """Condition one part of a mixture or union, whose normaliser must be known."""
    if not mechanism.noise.discrete:
        raise UnsupportedError(
            f"exact conditioning needs integer noise and was given {mechanism.noise.name} noise; "
            "use DiscreteLaplace or DiscreteGaussian."
        )
    made = sampler.condition(mechanism, _resolved(mechanism, invariant))
    if not isinstance(made, Conditioned):
        raise UnsupportedError(
            f"sampler {sampler.name!r} covers neither mixtures nor unions; use 'auto', or "
            "condition each part."
        )
    return made


def _resolved(mechanism: Additive, invariant: Invariant) -> ResolvedInvariant:
    """Resolve an invariant for a mechanism; refuse what no release can satisfy."""
    whole = mechanism.noise.discrete
    resolved = resolve_invariant(invariant, mechanism.n, mechanism.domain, whole=whole)
    check_feasible(resolved, invariant, whole=whole, domain=mechanism.domain)
    check_consistent(resolved)
    return resolved


def _check_units(mechanism: Additive | Mixture, invariant: Invariant | Union, step: float) -> None:
    """Refuse an infeasible invariant on a grid, with the bounds in the user's units."""
    first = _additive(mechanism.parts[0] if isinstance(mechanism, Mixture) else mechanism)
    for one in invariant.alternatives if isinstance(invariant, Union) else (invariant,):
        resolved = resolve_invariant(one, first.n, first.domain)
        check_feasible(resolved, one, whole=True, domain=first.domain, grid=step)


def _additive(mechanism: object) -> Additive:
    if not isinstance(mechanism, Additive):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give congenial.Additive(noise, tree)."
        )
    return mechanism
