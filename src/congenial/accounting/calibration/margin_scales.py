"""Noise on the margins of a workload, calibrated to a final epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from congenial.accounting.guarantee import (
    conditioned_guarantee,
    conditioned_pairs,
    imaged_guarantee,
)
from congenial.accounting.loss.inequalities import Pairs
from congenial.accounting.loss.zero_concentrated import zcdp_rho
from congenial.accounting.neighbours.joint_moves import forced_moves
from congenial.accounting.neighbours.leeway import with_implied
from congenial.accounting.neighbours.single_moves import Neighbours, changed_entries
from congenial.domain.blocks import Block
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.types import FloatArray

# Tolerance for the sum of the shares of a table, which is 1.
_TOLERANCE = 1e-9


def margin_scales(
    workload: Workload,
    resolved: ResolvedInvariant,
    *,
    epsilon: float,
    neighbours: Neighbours,
    split: Mapping[Any, Any] | None,
    bounds_charged: bool,
    delta: float | None = None,
) -> FloatArray:
    """Scale of the noise at each entry of a workload, up to rounding; sigmas if `delta` is given.

    Notes
    -----
    Gaussian noise with variances 1 / (2 r share) costs r times what it costs with r = 1, in zCDP.
    """
    shares = _equal(workload, resolved, neighbours) if split is None else workload.select(split)
    rate = np.zeros(len(workload))
    for block, share in shares:
        _check(block, share, resolved)
        rate[block.entries] = share
    _check_totals(workload, shares)
    with np.errstate(divide="ignore"):
        unit = np.where(resolved.pinned, np.inf, 1.0 / rate)
    pairs = _pairs(workload, resolved, unit, neighbours)
    if not pairs.worst > 0.0:
        raise EmptyNeighbourhoodError(
            "no neighbouring datasets differ in a margin that is measured, so noise there protects "
            "nothing; give other margins a share, or publish fewer exactly."
        )
    if delta is not None:
        bounded = bounds_charged and resolved.has_inequalities
        sigmas = np.sqrt(unit / 2.0)
        noise = Additive(DiscreteGaussian(sigmas), workload)
        state = conditioned_guarantee if bounds_charged else imaged_guarantee
        spent = cast(float, state(noise, resolved, neighbours, sampler_error=0.0).rho)
        return sigmas * math.sqrt(spent / zcdp_rho(epsilon, delta, whole_orders=bounded))
    factor = epsilon / pairs.worst
    if bounds_charged and resolved.has_inequalities:
        factor = _factor(pairs, epsilon)
    return np.asarray(unit / factor)


def _factor(pairs: Pairs, epsilon: float) -> float:
    """Largest factor on the noise's rates whose loss under the bounds is at most epsilon."""
    low, high = 0.5 * epsilon / pairs.worst, epsilon / pairs.worst
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return low
        if pairs.loss(middle) <= epsilon:
            low = middle
        else:
            high = middle


def _pairs(
    workload: Workload, resolved: ResolvedInvariant, scales: FloatArray, neighbours: Neighbours
) -> Pairs:
    return conditioned_pairs(Additive(DiscreteLaplace(scales), workload), resolved, neighbours)


def _equal(
    workload: Workload, resolved: ResolvedInvariant, neighbours: Neighbours
) -> list[tuple[Block, float]]:
    """Give every block of a table that some neighbouring dataset changes the same share."""
    changing = [workload.blocks[at] for at in changing_blocks(workload, resolved, neighbours)]
    tables = [block.table for block in changing]
    return [(block, 1.0 / tables.count(block.table)) for block in changing]


def changing_blocks(
    workload: Workload, resolved: ResolvedInvariant, neighbours: Neighbours
) -> list[int]:
    """Blocks, counted from 0, with an entry that differs between some neighbouring datasets."""
    counted = workload.tree or workload
    known = with_implied(resolved, counted)
    joint = forced_moves(np.zeros(len(workload)), known, counted, neighbours)
    changes = changed_entries(known, counted, neighbours) if joint is None else joint.changes
    changes = changes & ~known.pinned
    return [at for at, block in enumerate(workload.blocks) if changes[block.entries].any()]


def _check(block: Block, share: object, resolved: ResolvedInvariant) -> None:
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0.0 <= float(str(share)) <= 1.0:
        raise ArgumentError(f"split gives {share!r} to {block.text}; give a share from 0 to 1.")
    if share and resolved.pinned[block.entries].all():
        raise PrivacyError(
            f"split gives {share:g} of epsilon to {block.text}, which is published exactly and "
            "needs none; give its share to other margins."
        )


def _check_totals(workload: Workload, shares: list[tuple[Block, float]]) -> None:
    for table in workload.tables:
        total = math.fsum(share for block, share in shares if block.table is table)
        if abs(total - 1.0) > _TOLERANCE and total:
            raise ArgumentError(
                f"split adds up to {total:.12g} over the margins of {table.name!r}; the shares of "
                "a table must add up to 1."
            )
