"""Calibration: ask for a final epsilon, get the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from sys import float_info
from typing import Any, Literal

import numpy as np

from congenial.accounting.calibration.level_units import level_units
from congenial.accounting.calibration.margin_scales import changing_blocks, margin_scales
from congenial.accounting.calibration.split import best_split
from congenial.accounting.guarantee import (
    ZCDP_DELTA,
    conditioned_guarantee,
    conditioned_pairs,
    imaged_guarantee,
)
from congenial.accounting.loss.zero_concentrated import zcdp_rho
from congenial.accounting.neighbours.joint_moves import forced_moves
from congenial.accounting.neighbours.single_moves import RELATIONS, Neighbours, worst_move
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, EmptyNeighbourhoodError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.types import FloatArray
from congenial.wording import show

# Below this epsilon, the scale of the noise leaves the range that laws accept.
_LEAST_EPSILON = 1e-90

Method = Literal["conditioning", "imaging"]
METHODS: tuple[Method, ...] = ("conditioning", "imaging")
_NOTHING_CHANGES = (
    "the exactly published nodes leave no node that could change, so a guarantee would say "
    "nothing; publish fewer nodes exactly."
)
# Relative tolerance between the epsilon asked for and that of the calibrated noise.
TOLERANCE = 1e-9


def calibrate(
    tree: Tree | Workload,
    invariant: Invariant,
    *,
    epsilon: float,
    neighbours: Neighbours,
    split: Mapping[Any, Any] | None = None,
    goal: Mapping[int, float] | None = None,
    method: Method = "conditioning",
    delta: float | None = None,
) -> DiscreteLaplace | DiscreteGaussian:
    """Noise at the nodes of a tree, or on margins, with a given final epsilon.

    The final epsilon includes the loss through inequalities.

    Parameters
    ----------
    tree : Tree or Workload
    invariant : Invariant
        What the release must satisfy; nodes published exactly get no noise.
    epsilon : float
        The final guarantee.
    neighbours : {"substitute", "add-remove"}
    split : mapping of int to float, optional
        Share of the budget for each level (0 is the root's), adding up to 1; a level without a
        share is not measured. Equal shares over the levels that can change where neither this nor
        `goal` is given. For a workload: shares by margin, level and table, as `Workload.scales`
        takes scales, adding up to 1 in each table; equal over the margins that can change.
    goal : mapping of int to float, optional
        Weight for each level of the noise's error at one of its counts, nonnegative; the split is
        the one with the least weighted sum of scales. A level without a weight is not measured.
        For trees only.
    method : {"conditioning", "imaging"}
    delta : float, optional
        For Gaussian noise: between 0 and 1. The numerical error of a draw is not included.

    Returns
    -------
    DiscreteLaplace, or DiscreteGaussian where `delta` is given
        One scale a node or entry; inf for those published exactly and levels without a share.

    Raises
    ------
    ArgumentError
        If an argument is not valid, or both a split and a goal are given.
    EmptyNeighbourhoodError
        If the invariant leaves no neighbouring datasets.
    PrivacyError
        If a level published exactly is given budget, or a weight.

    Notes
    -----
    Substituting one record moves one unit between two nodes of each level, so a level with budget e
    has scale 2 / e; adding or removing one changes one node of each level by one, scale 1 / e.
    If fixed sums let only several records move at once, a level's scale is proportional to the
    largest change of a move there, and the costliest move spends the whole budget. Bounds raise the
    loss of conditioning as `proofs/inequalities.md` proves; bisection finds the sum of budgets
    whose loss is `epsilon`. With one pinned total, nonnegative counts and epsilon = 1 that sum is
    log((e + 1) / 2) = 0.62.

    The scale is the mean absolute error of Laplace noise; discrete Laplace noise has a slightly
    smaller one. `goal_split` gives the split of a goal.

    Gaussian noise is zCDP, and shares are of the parameter rho that gives epsilon at `delta`, as
    `cg.accounting.zcdp_epsilon` converts it.
    """
    resolved = compared(resolve_invariant(invariant, len(tree), tree), method)
    law = DiscreteLaplace if delta is None else DiscreteGaussian
    if isinstance(tree, Workload):
        if goal is not None:
            raise ArgumentError("goal is for trees and a workload was given; give a split.")
        return law(
            workload_scales(
                tree,
                resolved,
                epsilon=epsilon,
                neighbours=neighbours,
                split=split,
                method=method,
                delta=delta,
            )
        )
    if goal is not None:
        if split is not None:
            raise ArgumentError("both split and goal are given; give one of them.")
        split = goal_split(
            tree, resolved, goal, epsilon=epsilon, neighbours=neighbours, method=method, delta=delta
        )
    elif split is None:
        levels = changing_levels(tree, resolved, neighbours)
        split = {level: 1.0 / len(levels) for level in levels}
    scales = level_scales(
        tree,
        resolved,
        epsilon=epsilon,
        neighbours=neighbours,
        split=split,
        method=method,
        delta=delta,
    )
    return law(scales)


def workload_scales(
    workload: Workload,
    resolved: ResolvedInvariant,
    *,
    epsilon: float,
    neighbours: Neighbours,
    split: Mapping[Any, Any] | None,
    method: Method,
    delta: float | None = None,
) -> FloatArray:
    """Noise scales of a workload's entries at a given final epsilon, as `calibrate` gives them."""
    _check(epsilon, neighbours, method)
    resolved = compared(resolved, method)
    scales = margin_scales(
        workload,
        resolved,
        epsilon=epsilon,
        neighbours=neighbours,
        split=split,
        bounds_charged=method == "conditioning",
        delta=delta,
    )
    return _settled(workload, resolved, scales, epsilon, neighbours, method, delta)


def goal_split(
    tree: Tree,
    resolved: ResolvedInvariant,
    goal: Mapping[int, float],
    *,
    epsilon: float,
    neighbours: Neighbours,
    method: Method,
    delta: float | None = None,
) -> dict[int, float]:
    """Split with the least weighted sum of noise scales at a given final epsilon.

    Returns shares of the levels with a positive weight, in whole ten-thousandths; as a split
    they give the same noise, bit for bit.
    """
    _check(epsilon, neighbours, method)
    resolved = compared(resolved, method)
    _check_levels("goal", goal, tree, resolved)
    if not any(goal.values()):
        raise ArgumentError("goal weighs no level; give some level a positive weight.")
    changing = changing_levels(tree, resolved, neighbours)
    for level, weight in goal.items():
        if weight > 0 and level not in changing:
            raise ArgumentError(
                f"goal gives weight {weight:g} to level {level}, whose counts are the same in all "
                "neighbouring datasets, so that noise there protects nothing; leave it out."
            )
    return best_split(
        tree,
        resolved,
        goal,
        epsilon=epsilon,
        neighbours=neighbours,
        charge_bounds=method == "conditioning" and delta is None,
        power=1.0 if delta is None else 0.5,
    )


def compared(resolved: ResolvedInvariant, method: Method) -> ResolvedInvariant:
    """Return the part of an invariant that all datasets satisfy which a guarantee compares."""
    return resolved.exact_part if method == "imaging" else resolved


def changing_levels(
    tree: Tree | Workload, resolved: ResolvedInvariant, neighbours: Neighbours
) -> list[int]:
    """Levels, or blocks, where some count differs between some neighbouring datasets."""
    if isinstance(tree, Workload):
        found = changing_blocks(tree, resolved, neighbours)
        if not found:
            raise EmptyNeighbourhoodError(_NOTHING_CHANGES)
        return found
    found = []
    known = replace(resolved, pinned=resolved.determined)
    joint = forced_moves(np.zeros(resolved.n), known, tree, neighbours)
    if joint is not None:
        return [d for d in range(tree.depth) if joint.changes[tree.level == d].any()]
    for level in range(tree.depth):
        cost = np.where((tree.level == level) & ~resolved.pinned, 1.0, 0.0)
        if worst_move(cost, resolved, tree, neighbours).cost > 0:
            found.append(level)
    if not found:
        raise EmptyNeighbourhoodError(_NOTHING_CHANGES)
    return found


def level_scales(
    tree: Tree,
    resolved: ResolvedInvariant,
    *,
    epsilon: float,
    neighbours: Neighbours,
    split: Mapping[int, float],
    method: Method,
    delta: float | None = None,
) -> FloatArray:
    """Scale of the noise at each node; `calibrate` explains that of discrete Laplace noise.

    Returns ndarray of float64, shape (n,): the sigmas where `delta` is given.

    Notes
    -----
    Gaussian noise is zCDP, whose parameter rho adds up over levels; the split is of the rho that
    is (epsilon, delta), where bounds are conditioned on at whole Rényi orders. Substituting one
    record changes two nodes of a level by one each, which costs ``1 / sigma ** 2`` there, and
    adding one costs half of that.
    """
    _check(epsilon, neighbours, method)
    resolved = compared(resolved, method)
    _check_split(tree, resolved, split)
    known = replace(resolved, pinned=resolved.determined)
    share = np.zeros(tree.depth)
    share[list(split)] = list(split.values())
    units = level_units(tree, known, neighbours, power=1 if delta is None else 2).of(share)

    def scales_for(base: float) -> FloatArray:
        with np.errstate(divide="ignore"):
            by_level = (
                units / (share * base) if delta is None else np.sqrt(units / (2 * share * base))
            )
        return np.where(resolved.pinned, np.inf, by_level[tree.level])

    bounded = method == "conditioning" and resolved.has_inequalities
    base = epsilon if delta is None else zcdp_rho(epsilon, delta, whole_orders=bounded)
    if delta is None and bounded:
        noise = Additive(DiscreteLaplace(scales_for(1.0)), tree)
        base = conditioned_pairs(noise, resolved, neighbours).budget(epsilon)
    return _settled(tree, resolved, scales_for(base), epsilon, neighbours, method, delta)


def _settled(
    tree: Tree | Workload,
    resolved: ResolvedInvariant,
    scales: FloatArray,
    epsilon: float,
    neighbours: Neighbours,
    method: Method,
    delta: float | None,
) -> FloatArray:
    """Widen scales until the guarantee, with its rounding errors, is at most epsilon."""
    state = conditioned_guarantee if method == "conditioning" else imaged_guarantee
    law, limit = (DiscreteLaplace, ZCDP_DELTA) if delta is None else (DiscreteGaussian, delta)

    def reached() -> float:
        noise = Additive(law(scales), tree)
        return state(noise, resolved, neighbours, sampler_error=0.0, delta=limit).epsilon

    found = reached()
    # the conversion of rho loses digits if delta is far above epsilon
    if found > epsilon * (1.0 + (TOLERANCE if delta is None else 1e-6)):
        raise PrivacyError(
            f"the noise calibrated for epsilon {epsilon:g} gives {found:.12g}; nothing is "
            "released. Please report this as a bug in congenial."
        )
    wider, step = found / epsilon, 2.0**-52
    while found > epsilon:  # rounding alone
        scales, wider, step = scales * wider, 1.0 + step, 2.0 * step
        found = reached()
    return scales


def _check(epsilon: float, neighbours: Neighbours, method: Method) -> None:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise ArgumentError(f"epsilon is {epsilon!r}; give a positive number.")
    if not _LEAST_EPSILON <= epsilon <= float_info.max:
        raise ArgumentError(
            f"epsilon is {show(epsilon)}; give a finite number of at least {_LEAST_EPSILON:g}."
        )
    if neighbours not in RELATIONS:
        raise ArgumentError(f"neighbours is {neighbours!r}; give 'substitute' or 'add-remove'.")
    if method not in METHODS:
        raise ArgumentError(f"method is {method!r}; give 'conditioning' or 'imaging'.")


def _check_split(tree: Tree, resolved: ResolvedInvariant, split: Mapping[int, float]) -> None:
    _check_levels("split", split, tree, resolved)
    total = math.fsum(split.values())
    if abs(total - 1.0) > TOLERANCE:
        raise ArgumentError(f"split adds up to {total:.12g}; its shares must add up to 1.")


def _check_levels(
    name: str, given: Mapping[int, float], tree: Tree, resolved: ResolvedInvariant
) -> None:
    """Check the entry of a goal or split for each level."""
    for level, part in given.items():
        if level not in range(tree.depth):
            raise ArgumentError(f"{name} names level {level!r}; give 0 to {tree.depth - 1}.")
        if not (math.isfinite(part) and part >= 0):
            raise ArgumentError(f"{name}[{level}] is {part!r}; give a nonnegative, finite number.")
        if part > 0 and resolved.pinned[tree.level == level].all():
            raise PrivacyError(
                f"{name} gives {part:g} to level {level}, which is published exactly, without "
                "noise; leave it out."
            )
