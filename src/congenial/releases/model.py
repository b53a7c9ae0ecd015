"""A plan and a tree become a model: noise, invariant, method and claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from congenial.accounting.amounts import not_above_decimal
from congenial.accounting.calibration.margin_scales import margin_scales
from congenial.accounting.calibration.scales import goal_split, level_scales
from congenial.accounting.calibration.target import Method, Target, compared
from congenial.accounting.guarantee import (
    ZCDP_DELTA,
    Guarantee,
    conditioned_guarantee,
    imaged_guarantee,
    with_sampler_error,
)
from congenial.accounting.mechanism import Certified
from congenial.accounting.neighbours.scope import (
    Exposed,
    OccurringNodes,
    all_records,
    exposed_text,
    on_levels,
)
from congenial.accounting.neighbours.single_moves import Neighbours
from congenial.domain.table import Margin
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import PlanError, PrivacyError, UnsupportedError
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import (
    Invariant,
    at_least_as_many,
    bounds,
    consistent,
    exactly,
    nonnegative,
    resolve_invariant,
)
from congenial.kernels.numerics import laws
from congenial.namespaces import renamed
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import MOST_TABULATED
from congenial.noise.law import find_law
from congenial.plan.cross_table import MARGIN, comparison
from congenial.plan.plan import Plan, bounds_by_node, exact_nodes
from congenial.plan.sections import OWN_COLUMNS
from congenial.types import BoolArray, FloatArray

# Largest numerical error of a draw, in total variation, with which a release is made or accepted.
ERROR_LIMIT = 1e-6


@dataclass(frozen=True)
class Level:
    """How one level of the hierarchy is measured."""

    depth: int  # 0 for the root's level.
    name: str
    nodes: int  # Number of nodes.
    exact: int  # Number of nodes that are published exactly.
    scale: float | None  # Scale of the noise at the other nodes; None if the level is not measured.


@dataclass(frozen=True, eq=False)
class Model:
    """Everything a release is drawn from, except the confidential counts."""

    plan: Plan
    domain: Tree | Workload  # The counts: nodes, or queries of the plan's table.
    mechanism: Additive  # The plan's noise, one scale a count.
    invariant: Invariant
    resolved: ResolvedInvariant  # The invariant resolved for the domain.
    split: Mapping[int, float]  # Share of the noise's budget for each level, by depth.
    # The delta at which zCDP is converted to epsilon, for Gaussian noise. The rest of the plan's
    # delta is kept for the numerical error of a draw. None for Laplace noise.
    delta: float | None = None
    engine = renamed("engine", "the release's mechanism", lambda self: choose_method(self))  # noqa: PLW0108

    @property
    def tree(self) -> Tree:
        """The counts as a tree, in their order; refused where margins cross."""
        found = self.domain.tree if isinstance(self.domain, Workload) else self.domain
        if found is None:
            raise UnsupportedError(
                "margins of table.margins cross, so that the counts are no tree; ask for margins "
                "each of which divides the one before."
            )
        return found

    @property
    def neighbours(self) -> Neighbours:
        """The neighbouring relation of the plan."""
        return self.plan.privacy.neighbours

    @property
    def one_sided(self) -> bool:
        """Whether a substituted record may also enter or leave the rows that the filter keeps."""
        return enters_or_leaves(self.plan)

    @cached_property
    def compared(self) -> ResolvedInvariant:
        """The part of the invariant that all datasets compared by the guarantee satisfy."""
        return compared(self.resolved, _method(self.plan))

    @property
    def determined(self) -> BoolArray:
        """Nodes published exactly, and nodes that follow from them, shape (n,).

        With conditioning, bounds that hold a count in place determine it too: the data satisfy
        them. With other methods the data need not.
        """
        return self.compared.determined

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """How each level is measured, coarse to fine."""
        out = []
        for depth, name in enumerate(self.plan.level_names):
            here = self.domain.level == depth
            scales = self.mechanism.scales[here & ~self.resolved.pinned]
            finite = scales[np.isfinite(scales)]
            out.append(
                Level(
                    depth,
                    name,
                    int(here.sum()),
                    int((here & self.resolved.pinned).sum()),
                    float(finite[0]) if finite.size else None,
                )
            )
        return tuple(out)


def choose_method(model: Model) -> Certified:
    """Return the conditioned or imaged mechanism that a plan asks for; only that one is loaded.

    What it releases satisfies `model.resolved`, which is resolved and known to be feasible.
    """
    method = model.plan.method
    if method.name == "imaging":
        from congenial.imaging.update import Imaged

        return cast(Certified, Imaged(model.mechanism, model.resolved, method.norm, integer=True))
    if method.name == "topdown":
        from congenial.imaging.top_down import descending

        return descending(model.mechanism, model.resolved)
    if method.name == "posterior":
        from congenial.inference.best_table import BestTable

        return cast(Certified, BestTable(model.mechanism, model.resolved, method.loss))
    from congenial.conditioning.sampler import find_sampler

    conditioned = find_sampler(method.sampler).condition(model.mechanism, model.resolved)
    if model.plan.crossing and not conditioned.error_bound < 1.0:
        raise UnsupportedError(
            "method.name is 'conditioning', and no sampler with a bounded error draws from such "
            "tables, whose margins cross; give 'topdown' or 'imaging'."
        )
    return conditioned


def enters_or_leaves(plan: Plan) -> bool:
    """Whether a substituted record may also enter or leave the rows that the filter keeps."""
    return plan.privacy.neighbours == "substitute" and plan.data.where is not None


def build_model(plan: Plan, tree: Tree | Workload, *, at_delta: float | None = None) -> Model:
    """Calibrate the noise that a plan asks for on the nodes of a tree, or on queries.

    For Gaussian noise, `at_delta` is the delta at which a certificate converts zCDP to epsilon. It
    may be less than the plan's: earlier versions kept a part of delta for the error of a draw.
    """
    _check_names(plan, tree)
    invariant = invariant_of(plan, tree)
    resolved = resolve_invariant(invariant, len(tree), tree)
    check_feasible(resolved, invariant, whole=True)
    if plan.privacy.delta is not None:
        return _gaussian(plan, tree, invariant, resolved, at_delta)
    split, scales = _calibrated(plan, tree, resolved, None)
    mechanism = Additive(find_law(plan.privacy.noise)(scales), tree)
    return Model(plan, tree, mechanism, invariant, resolved, split)


def invariant_of(plan: Plan, tree: Tree | Workload) -> Invariant:
    """Return what a plan asks of released counts; it may be resolved for a part of its tree."""
    invariant, pinned = consistent(tree), exact_nodes(plan, tree)
    if pinned:
        invariant = invariant & exactly(list(pinned))
    if plan.invariants.at_least or plan.invariants.at_most:
        invariant = invariant & bounds(*bounds_by_node(plan, tree))
    for text in plan.invariants.as_many:
        more, fewer = comparison(text)
        invariant = invariant & at_least_as_many(more, fewer, level=plan.place_names[-1])
    if plan.invariants.nonnegative:
        invariant = invariant & nonnegative()
    return invariant


def _gaussian(
    plan: Plan,
    tree: Tree | Workload,
    invariant: Invariant,
    resolved: ResolvedInvariant,
    at_delta: float | None,
) -> Model:
    """Model with zCDP noise; a part of delta is kept for the numerical error of a draw, if any."""
    epsilon, delta = plan.privacy.epsilon, float(plan.privacy.delta or 0.0)
    of_noise = delta if at_delta is None else min(at_delta, delta)
    while True:
        split, scales = _calibrated(plan, tree, resolved, of_noise)
        mechanism = Additive(find_law(plan.privacy.noise)(scales), tree)
        _check_width(plan, mechanism)
        error = mechanism.noise.sampling_error(scales)
        owed = with_sampler_error(epsilon, 0.0, error)
        if owed <= delta - of_noise:
            return Model(plan, tree, mechanism, invariant, resolved, split, of_noise)
        of_noise = delta - 1.2 * owed  # wider noise has a little more error
        if of_noise < 0.5 * delta:
            raise PrivacyError(
                f"privacy.delta is {delta:g}, and the numerical error of {len(tree)} draws of "
                f"noise alone takes {owed:.2g} of it; ask for a delta of at least {3 * owed:.1g}."
            )


def _check_width(plan: Plan, mechanism: Additive) -> None:
    """Refuse Gaussian noise that is too wide to be drawn, before anything is spent."""
    finite = mechanism.scales[np.isfinite(mechanism.scales)]
    widest = float(finite.max(initial=0.0))
    gaussian = mechanism.noise.kind == laws.GAUSSIAN
    if gaussian and plan.method.name != "conditioning" and widest > MOST_TABULATED:
        raise PrivacyError(
            f"privacy.epsilon is {plan.privacy.epsilon:g}, which takes Gaussian noise of sigma "
            f"{widest:.3g}; the largest that can be drawn is 2^20. Ask for a larger epsilon, or "
            "give the level a larger share."
        )


def _calibrated(
    plan: Plan, tree: Tree | Workload, resolved: ResolvedInvariant, delta: float | None
) -> tuple[dict[int, float], FloatArray]:
    """Shares by depth, and the scale of the noise at each node."""
    privacy = plan.privacy
    epsilon = not_above_decimal(privacy.epsilon)
    target = Target(
        epsilon, privacy.neighbours, _method(plan), delta, one_sided=enters_or_leaves(plan)
    )
    split = _split(plan, tree, resolved, target)
    if isinstance(tree, Workload):
        by_block: dict[str, dict[int, dict[Margin, float]]] = {}
        for at, share in split.items():
            block = tree.blocks[at]
            by_level = by_block.setdefault(block.table.name, {})
            by_level.setdefault(block.level, {})[block.margin] = share
        return split, margin_scales(tree, resolved, target, by_block)
    return split, level_scales(tree, resolved, target, split)


def claim(model: Model, sampler_error: float) -> Guarantee:
    """Guarantee of a release of `model` drawn with a given numerical error.

    Notes
    -----
    `explain`, `release` (before its debit) and `verify` call this, so one limit holds for all.

    With a row filter, a substituted record may also enter or leave the counted rows. This changes
    every node of one path by one. The claim covers both cases.
    """
    if not sampler_error <= ERROR_LIMIT:
        raise PrivacyError(
            f"a draw of {len(model.domain)} counts has a numerical error of {sampler_error:.2g}, "
            f"and the limit is {ERROR_LIMIT:g}, because privacy.epsilon "
            f"{model.plan.privacy.epsilon:g} takes wide noise; ask for a larger epsilon, or for "
            "fewer counts."
        )
    state = conditioned_guarantee if model.plan.method.name == "conditioning" else imaged_guarantee
    asked = model.plan.privacy.delta
    found = state(
        model.mechanism,
        model.resolved,
        model.neighbours,
        sampler_error=0.0,
        one_sided=model.one_sided,
        delta=ZCDP_DELTA if model.delta is None else model.delta,
    )
    if found.at_once:
        raise PrivacyError(
            "the counts published exactly let no record be replaced alone: at least "
            f"{found.records} would have to be, together. Certificates and ledgers state what one "
            "record costs; publish fewer counts exactly, so that one record can change."
        )
    delta = with_sampler_error(found.epsilon, found.delta, sampler_error)
    if asked is not None:
        if delta > asked:
            raise PrivacyError(
                f"privacy.delta is {asked:g}, and with the numerical error of a draw the release "
                f"would have {delta:.3g}; ask for a larger delta."
            )
        delta = asked
    return dataclasses.replace(
        found,
        delta=delta,
        sampler_error=sampler_error,
        unprotected=tuple(exposed_text(one) for one in exposed(model, found)),
    )


def exposed(model: Model, found: Guarantee) -> tuple[Exposed, ...]:
    """Name what is published outside a guarantee: whole levels by name, other nodes by path."""
    domain, pinned = model.domain, model.determined
    if found.moves is None:
        raise AssertionError("a guarantee of noise on a tree knows what neighbours change")
    same = ~(found.moves.changes | pinned)
    out: list[Exposed] = [*all_records(same, domain, model.neighbours)]
    out += on_levels(domain, pinned, same, model.plan.level_names)
    if model.plan.hierarchy.domain == "data":
        out.append(OccurringNodes())
    return tuple(out)


def _split(
    plan: Plan, tree: Tree | Workload, resolved: ResolvedInvariant, target: Target
) -> dict[int, float]:
    """Shares by depth: given, found for the goal, or equal over the levels that can change."""
    privacy, resolved = plan.privacy, target.compared(resolved)
    if privacy.goal is not None:
        changing = target.changing(tree, resolved)
        goal = _by_depth(plan, tree, resolved, "goal", privacy.goal)
        for depth, weight in goal.items():
            if weight > 0 and depth not in changing:
                raise PlanError(
                    f"privacy.goal gives {weight:g} to {plan.level_names[depth]!r}, whose counts "
                    "are the same in all neighbouring datasets, so that noise there protects "
                    "nothing; leave it out."
                )
        nested = tree.tree if isinstance(tree, Workload) else tree
        if nested is None:
            raise AssertionError("a plan whose margins cross has no goal")
        return goal_split(nested, resolved, target, goal)
    if privacy.split is not None:
        return _by_depth(plan, tree, resolved, "split", privacy.split)
    levels = target.changing(tree, resolved)
    if not isinstance(tree, Workload):
        return {level: 1.0 / len(levels) for level in levels}
    owners = [tree.blocks[level].table for level in levels]
    return {level: 1.0 / owners.count(own) for level, own in zip(levels, owners, strict=True)}


def _by_depth(
    plan: Plan,
    tree: Tree | Workload,
    resolved: ResolvedInvariant,
    key: str,
    given: Mapping[str, float],
) -> dict[int, float]:
    """Shares or weights of levels by depth instead of by name."""
    found = {}
    for name, number in given.items():
        depth = plan.level_names.index(name)
        if number > 0 and resolved.pinned[tree.level == depth].all():
            raise PlanError(
                f"privacy.{key} gives {number:g} to {name!r}, whose nodes are all published "
                "exactly and need no noise; give it to the other levels."
            )
        found[depth] = number
    return found


def _check_names(plan: Plan, tree: Tree | Workload) -> None:
    named = [("hierarchy.levels", name) for name in plan.hierarchy.levels]
    readings = plan.reading_columns[bool(plan.tables) :]
    named += [("tables" if plan.tables else "table.attributes", name) for name in readings]
    for key, name in named:
        own = OWN_COLUMNS if plan.table is None else (*OWN_COLUMNS, MARGIN)
        if name.casefold() in own:
            raise PlanError(
                f"{key} names {name!r}, which the released table uses for a column of its own; "
                "give the column another name in the source and in the plan."
            )
    if tree.depth != len(plan.level_names):
        raise PlanError(
            f"hierarchy.levels makes {len(plan.level_names)} levels with the root and the tree has "
            f"{tree.depth}; name one column for each level below the root."
        )


def _method(plan: Plan) -> Method:
    """The kind of guarantee: topdown, like imaging, is post-processing of noisy counts."""
    return "conditioning" if plan.method.name == "conditioning" else "imaging"
