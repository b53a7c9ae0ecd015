"""Calibration: ask for a final epsilon, get the noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from sys import float_info
from typing import Any

import numpy as np

from congenial.accounting.calibration.level_units import level_units
from congenial.accounting.calibration.margin_scales import margin_scales
from congenial.accounting.calibration.split import best_split
from congenial.accounting.calibration.target import TOLERANCE, Method, Target
from congenial.accounting.loss.zero_concentrated import is_number, zcdp_rho
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, PrivacyError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.types import FloatArray
from congenial.wording import show


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
        Share of the budget for each level (0 is the root's), adding up to 1. A level without a
        share is not measured. Without a split and a goal, levels that can change get equal shares.
        For a workload: shares by margin, level and table, as `Workload.scales` takes scales, adding
        up to 1 in each table; by default equal over the margins that can change.
    goal : mapping of int to float, optional
        Weight for each level of the noise's error at one of its counts, nonnegative; the split is
        the one with the least weighted sum of scales. A level without a weight is not measured.
        For trees only.
    method : {"conditioning", "imaging"}
    delta : float, optional
        For Gaussian noise: between 0 and 1. The numerical error of a draw is not included.

    Returns
    -------
    DiscreteLaplace, or DiscreteGaussian if `delta` is given
        One scale for each node or entry; inf if it is published exactly or has no share.

    Raises
    ------
    ArgumentError
        If an argument is not valid, or both a split and a goal are given.
    EmptyNeighbourhoodError
        If the invariant leaves no neighbouring datasets.
    PrivacyError
        If a level published exactly has a share or a weight.

    Notes
    -----
    Substituting one record moves one unit between two nodes of each level, so a level with budget e
    has scale 2 / e; adding or removing one changes one node of each level by one, scale 1 / e.
    If fixed sums let only several records move at once, a level's scale is proportional to the
    largest change of a move there, and the costliest move spends the whole budget. Bounds raise the
    loss of conditioning as `proofs/inequalities.md` proves; bisection finds the sum of budgets
    whose loss is `epsilon`. With one pinned total, three or more nonnegative counts and epsilon = 1
    that sum is log((e + 1) / 2) = 0.62; with two counts it is 0.78.

    The scale is the mean absolute error of Laplace noise; discrete Laplace noise has a slightly
    smaller one. `goal_split` gives the split of a goal.

    Gaussian noise is zCDP, and shares are of the parameter rho that gives epsilon at `delta`, as
    `cg.accounting.zcdp_epsilon` converts it.
    """
    if not isinstance(tree, Tree | Workload):
        raise ArgumentError(f"tree is a {type(tree).__name__}; give a Tree or a Workload.")
    target = Target(epsilon, neighbours, method, delta)
    resolved = target.compared(resolve_invariant(invariant, len(tree), tree))
    if isinstance(tree, Workload):
        if goal is not None:
            raise ArgumentError("goal is for trees and a workload was given; give a split.")
        return target.law(margin_scales(tree, resolved, target, split))
    if goal is not None:
        if split is not None:
            raise ArgumentError("both split and goal are given; give one of them.")
        split = goal_split(tree, resolved, target, goal)
    elif split is None:
        levels = target.changing(tree, resolved)
        split = {level: 1.0 / len(levels) for level in levels}
    return target.law(level_scales(tree, resolved, target, split))


def goal_split(
    tree: Tree, resolved: ResolvedInvariant, target: Target, goal: Mapping[int, float]
) -> dict[int, float]:
    """Split with the least weighted sum of noise scales at a given final epsilon.

    Levels with a positive weight get shares in whole ten-thousandths. As a split, these shares give
    the same noise as the goal, bit for bit.
    """
    resolved = target.compared(resolved)
    _check_levels("goal", goal, tree, resolved)
    if not any(goal.values()):
        raise ArgumentError("goal weighs no level; give some level a positive weight.")
    changing = target.changing(tree, resolved)
    for level, weight in goal.items():
        if weight > 0 and level not in changing:
            raise ArgumentError(
                f"goal gives weight {weight:g} to level {level}, whose counts are the same in all "
                "neighbouring datasets, so that noise there protects nothing; leave it out."
            )
    return best_split(tree, resolved, target, goal)


def level_scales(
    tree: Tree, resolved: ResolvedInvariant, target: Target, split: Mapping[int, float]
) -> FloatArray:
    """Scale of the noise at each node, shape (n,), as `calibrate` explains.

    Gaussian noise is zCDP, whose parameter rho adds up over levels. The split is of the rho that
    gives (epsilon, delta); under bounds, that rho holds at whole Rényi orders. Substituting one
    record changes two nodes of a level by one each, which costs ``1 / sigma ** 2`` there. Adding
    one costs half of that.
    """
    resolved = target.compared(resolved)
    _check_levels("split", split, tree, resolved)
    total = math.fsum(split.values())
    if abs(total - 1.0) > TOLERANCE:
        raise ArgumentError(f"split adds up to {total:.12g}; its shares must add up to 1.")
    epsilon, neighbours, delta = target.epsilon, target.neighbours, target.delta
    known = replace(resolved, pinned=resolved.determined)
    share = np.zeros(tree.depth)
    share[list(split)] = list(split.values())
    units = level_units(tree, known, neighbours, power=1 if delta is None else 2).of(share)
    with np.errstate(divide="ignore"):
        unit = np.where(resolved.pinned, np.inf, (units / share)[tree.level])
    bounded = target.conditions_on_bounds(resolved)
    spent = 1.0
    if target.one_sided:
        # a record that enters or leaves changes the root, too, but one count of each level
        spent = target.pairs(unit, tree, resolved).worst or 1.0
    if delta is not None:
        rho = zcdp_rho(epsilon, delta, whole_orders=bounded)
        scales = np.sqrt(unit * spent / (2.0 * rho))
    elif bounded:
        scales = unit / target.pairs(unit, tree, resolved).budget(epsilon / spent)
    else:
        scales = unit * spent / epsilon
    return target.settle(scales, tree, resolved)


def _check_levels(
    name: str, given: Mapping[int, float], tree: Tree, resolved: ResolvedInvariant
) -> None:
    """Check the entry of a goal or split for each level."""
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{name} is {show(given)}; give a mapping, such as {{0: 0.5, 1: 0.5}}.")
    for level, part in given.items():
        if not isinstance(level, int | np.integer) or level not in range(tree.depth):
            raise ArgumentError(f"{name} names level {level!r}; give 0 to {tree.depth - 1}.")
        if not is_number(part) or not 0 <= part <= float_info.max:
            raise ArgumentError(
                f"{name}[{level}] is {show(part)}; give a nonnegative, finite number."
            )
        if part > 0 and resolved.pinned[tree.level == level].all():
            raise PrivacyError(
                f"{name} gives {part:g} to level {level}, which is published exactly, without "
                "noise; leave it out."
            )
