"""Noise on the margins of a workload, calibrated to a final epsilon."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from congenial.accounting.calibration.target import TOLERANCE, Target
from congenial.accounting.loss.bisection import bisected
from congenial.accounting.loss.zero_concentrated import zcdp_rho
from congenial.domain.blocks import Block
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.types import FloatArray


def margin_scales(
    workload: Workload,
    resolved: ResolvedInvariant,
    target: Target,
    split: Mapping[Any, Any] | None,
) -> FloatArray:
    """Scale of the noise at each entry of a workload, as `calibrate` explains.

    Gaussian noise with variances 1 / (2 r share) costs r times what it costs with r = 1, in zCDP.
    """
    resolved = target.compared(resolved)
    shares = _equal(workload, resolved, target) if split is None else workload.select(split)
    rate = np.zeros(len(workload))
    for block, share in shares:
        _check(block, share, resolved)
        rate[block.entries] = share
    _check_totals(workload, shares)
    with np.errstate(divide="ignore"):
        unit = np.where(resolved.pinned, np.inf, 1.0 / rate)
    pairs = target.pairs(unit, workload, resolved)
    if not pairs.worst > 0.0:
        raise EmptyNeighbourhoodError(
            "no neighbouring datasets differ in a margin that is measured, so noise there protects "
            "nothing; give other margins a share, or publish fewer exactly."
        )
    bounded = target.conditions_on_bounds(resolved)
    if target.delta is not None:
        sigmas = np.sqrt(unit / 2.0)
        spent = cast(float, target.guarantee(sigmas, workload, resolved).rho)
        rho = zcdp_rho(target.epsilon, target.delta, whole_orders=bounded)
        scales = sigmas * math.sqrt(spent / rho)
    else:
        factor = target.epsilon / pairs.worst
        if bounded:
            factor = bisected(lambda f: pairs.loss(f) <= target.epsilon, 0.5 * factor, factor)[0]
        scales = unit / factor
    return target.settle(scales, workload, resolved)


def _equal(
    workload: Workload, resolved: ResolvedInvariant, target: Target
) -> list[tuple[Block, float]]:
    """Give every block of a table that some neighbouring dataset changes the same share."""
    changing = [workload.blocks[at] for at in target.changing(workload, resolved)]
    tables = [block.table for block in changing]
    return [(block, 1.0 / tables.count(block.table)) for block in changing]


def _check(block: Block, share: Any, resolved: ResolvedInvariant) -> None:
    number = isinstance(share, int | float | np.number) and not isinstance(share, bool)
    if not number or not 0.0 <= share <= 1.0:
        raise ArgumentError(f"split gives {share!r} to {block.text}; give a share from 0 to 1.")
    if share and resolved.pinned[block.entries].all():
        raise PrivacyError(
            f"split gives {share:g} of epsilon to {block.text}, which is published exactly and "
            "needs none; give its share to other margins."
        )


def _check_totals(workload: Workload, shares: list[tuple[Block, float]]) -> None:
    for table in workload.tables:
        total = math.fsum(share for block, share in shares if block.table is table)
        if abs(total - 1.0) > TOLERANCE and total:
            raise ArgumentError(
                f"split adds up to {total:.12g} over the margins of {table.name!r}; the shares of "
                "a table must add up to 1."
            )
