"""The guarantee of several releases together, and that of one release for a group.

proofs/composition.md has the statements and their proofs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from congenial.accounting.guarantee import ZCDP_DELTA, Guarantee, with_sampler_error
from congenial.accounting.loss.zero_concentrated import pure_rho, zcdp_epsilon
from congenial.accounting.neighbours.compared import compared_by_all
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.errors import ArgumentError, PrivacyError

_ALL = "all datasets"


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Guarantee of several releases from the same rows, drawn independently.

    Epsilons and deltas add up. If some releases have a zCDP parameter and all others are pure and
    exact, these parameters add up instead and are stated at delta 1e-6, if that gives the smaller
    epsilon. If one parameter holds at integer orders only, so does the sum. Releases that are all
    pure stay pure: delta is 0.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        Of one neighbouring relation.

    Returns
    -------
    Guarantee
        For neighbours that every one of them covers.

    Raises
    ------
    ArgumentError
        If there is none.
    PrivacyError
        If they speak of different neighbouring relations or groups, or it is not known that they
        share neighbouring datasets: one of them must publish exactly all that the others do, of
        the same tree, table or vector. Vectors of one length are taken to hold the same queries.
    EmptyNeighbourhoodError
        If the bounds of releases of one tree, table or vector leave no neighbours together.

    References
    ----------
    Two Views, Lemmas 3.6 and 3.10; Dwork and Roth (2014), Theorem 3.16; Bun and Steinke (2016),
    Lemma 1.7.
    """
    first = _alike(guarantees)
    each = [g.compared for g in guarantees]
    compared = compared_by_all(each, first.neighbours, at_once=first.at_once)
    epsilon = math.fsum(g.epsilon for g in guarantees)
    delta = math.fsum(g.delta for g in guarantees)
    error = math.fsum(g.sampler_error for g in guarantees)
    rho: float | None = None
    if any(g.rho is not None for g in guarantees) and all(_has_rho(g) for g in guarantees):
        rho = math.fsum(pure_rho(g.epsilon) if g.rho is None else g.rho for g in guarantees)
        whole = any(g.whole_orders for g in guarantees)
        epsilon, delta = _smaller(epsilon, delta, rho, error, whole_orders=whole)
    base = math.fsum(g.base_epsilon for g in guarantees)
    gamma = max(0.0, math.fsum(g.epsilon for g in guarantees) / base - 1.0) if base > 0 else 0.0
    return replace(
        _of_all(guarantees),
        epsilon=epsilon,
        delta=min(1.0, delta),
        gamma=gamma,
        base_epsilon=base,
        rho=rho,
        compared=compared,
        sampler_error=min(1.0, error),
    )


def compose_parallel(
    guarantees: Sequence[Guarantee], *, neighbours: Neighbours = "add-remove"
) -> Guarantee:
    """Guarantee of releases from disjoint parts of the rows, one release for each part.

    The part of a record depends on that record alone. One record added or removed changes one
    part, so the largest epsilon and delta hold. A substituted record leaves one part and enters
    the same or another one, so twice the largest hold.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        Under "add-remove", for all datasets.
    neighbours : {"substitute", "add-remove"}
        The relation of the result.

    Returns
    -------
    Guarantee

    Raises
    ------
    ArgumentError
        If there is none.
    PrivacyError
        If one is under "substitute", which does not cover a part that gains or loses a record, or
        does not cover all datasets.

    References
    ----------
    McSherry (2009), Theorem 4.
    """
    first = _alike(guarantees)
    if first.neighbours != "add-remove":
        raise PrivacyError(
            "the guarantees of disjoint parts are stated under 'substitute', which does not "
            "cover a "
            "part that gains or loses a record; state each under 'add-remove'."
        )
    if any(g.covered != _ALL for g in guarantees):
        raise PrivacyError(
            "guarantees of disjoint parts are combined only if each covers all datasets, and one "
            "of "
            "them covers fewer; leave out its bounds above 0 or below infinity."
        )
    worst = replace(
        _of_all(guarantees),
        epsilon=max(g.epsilon for g in guarantees),
        delta=max(g.delta for g in guarantees),
        gamma=max(g.gamma for g in guarantees),
        base_epsilon=max(g.base_epsilon for g in guarantees),
        rho=None if any(g.rho is None for g in guarantees) else max(g.rho or 0 for g in guarantees),
        sampler_error=max(g.sampler_error for g in guarantees),
    )
    if neighbours == "add-remove":
        return worst
    return replace(group_privacy(worst, 2), neighbours="substitute", records=1)


def group_privacy(guarantee: Guarantee, records: int) -> Guarantee:
    """Guarantee for several records that change one after another.

    Parameters
    ----------
    guarantee : Guarantee
        For one record.
    records : int
        At least 1. Every dataset on the way must be one that the guarantee covers.

    Returns
    -------
    Guarantee
        ``(k epsilon, delta (exp(k epsilon) - 1) / (exp(epsilon) - 1))``, or ``k**2 rho``.

    Raises
    ------
    ArgumentError
        If `records` is no positive integer.
    PrivacyError
        If the guarantee is for a group already.

    References
    ----------
    Dwork and Roth (2014), Theorem 2.2; Vadhan (2017), Lemma 2.2; Bun and Steinke (2016),
    Proposition 1.9.
    """
    if isinstance(records, bool) or not isinstance(records, int) or records < 1:
        raise ArgumentError(f"records is {records!r}; give a positive number of records.")
    if guarantee.records != 1:
        raise PrivacyError(
            f"the guarantee is for {guarantee.records} records already; give the guarantee of one "
            "record."
        )
    epsilon = records * guarantee.epsilon
    delta = min(1.0, guarantee.delta * _series(guarantee.epsilon, records))
    rho = None if guarantee.rho is None else records**2 * guarantee.rho
    if rho is not None:
        epsilon, delta = _smaller(
            epsilon, delta, rho, guarantee.sampler_error, whole_orders=guarantee.whole_orders
        )
    return replace(
        guarantee,
        epsilon=epsilon,
        delta=delta,
        base_epsilon=records * guarantee.base_epsilon,
        rho=rho,
        records=records,
    )


def _of_all(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the first guarantee, with the scopes, sources and facts of all of them."""
    scopes = [c for c in dict.fromkeys(g.covered for g in guarantees) if c != _ALL]
    return replace(
        guarantees[0],
        gamma_source="; ".join(dict.fromkeys(g.gamma_source for g in guarantees)),
        unprotected=tuple(dict.fromkeys(name for g in guarantees for name in g.unprotected)),
        covered=", and also ".join(scopes) if scopes else _ALL,
        ideal_only=any(g.ideal_only for g in guarantees),
        whole_orders=any(g.whole_orders for g in guarantees),
    )


def _smaller(
    epsilon: float, delta: float, rho: float, error: float, *, whole_orders: bool
) -> tuple[float, float]:
    """State a zCDP parameter at delta 1e-6 if that gives the smaller epsilon."""
    smaller = zcdp_epsilon(rho, ZCDP_DELTA, whole_orders=whole_orders)
    whole = with_sampler_error(smaller, ZCDP_DELTA, error)
    if smaller < epsilon and whole <= max(delta, 2.0 * ZCDP_DELTA):
        return smaller, whole
    return epsilon, delta


def _has_rho(guarantee: Guarantee) -> bool:
    """Whether a zCDP parameter is known, or follows from pure privacy: delta is the sampler's."""
    if guarantee.rho is not None:
        return True
    sampler = with_sampler_error(guarantee.epsilon, 0.0, guarantee.sampler_error)
    return guarantee.delta <= sampler * (1.0 + 1e-12)


def _series(epsilon: float, count: int) -> float:
    """Sum of exp(i epsilon) for i below `count`; infinite if it overflows a double."""
    if epsilon * (count - 1) > 700.0:
        return math.inf
    if count < 1000:
        return math.fsum(math.exp(i * epsilon) for i in range(count))
    return math.expm1(count * epsilon) / math.expm1(epsilon) if epsilon > 0 else float(count)


def _alike(guarantees: Sequence[Guarantee]) -> Guarantee:
    if isinstance(guarantees, Guarantee) or not all(isinstance(g, Guarantee) for g in guarantees):
        raise ArgumentError("something else than a list of guarantees was given; give such a list.")
    if not guarantees:
        raise ArgumentError("no guarantee was given to compose; give at least one.")
    first = guarantees[0]
    for other in guarantees[1:]:
        if (other.neighbours, other.records) != (first.neighbours, first.records):
            raise PrivacyError(
                f"guarantees under {first.neighbours!r} and {other.neighbours!r}, or for groups of "
                "different size, do not compose; state all of them for the same."
            )
        same = not first.at_once or other.unprotected == first.unprotected
        if other.at_once != first.at_once or not same:
            raise PrivacyError(
                "guarantees for records that change at once, because of what is published exactly, "
                "compose only where the same is published exactly; publish the same in each."
            )
    return first
