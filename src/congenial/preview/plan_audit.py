"""Test the guarantee of a plan on made-up counts: no row is counted and nothing is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.neighbours.single_moves import worst_move
from congenial.auditing.finding import Audit, Notify, Pair, ignore
from congenial.auditing.space import Space
from congenial.auditing.trial import CONFIDENCE, Effort, check_confidence, checked_draws, hold
from congenial.data.counts import build_domain
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import EmptyNeighbourhoodError, UnsupportedError
from congenial.invariants.written import bounds, consistent, exactly, resolve_invariant
from congenial.noise.additive import Additive
from congenial.noise.discrete_gaussian import DiscreteGaussian
from congenial.noise.discrete_laplace import DiscreteLaplace
from congenial.plan.plan import Plan
from congenial.randomness import seeded
from congenial.releases.model import Model, build_model, choose_method, claim
from congenial.types import FloatArray
from congenial.wording import many

# Most leaves of the part of the plan whose laws are enumerated, and most records of its datasets.
LEAVES, RECORDS = 4, 3


@dataclass(frozen=True, eq=False)
class PlanAudit:
    """The result of the audit of a plan.

    Attributes
    ----------
    model : Model
    guarantee : Guarantee
    exact : Audit or None
        Laws enumerated on a few leaves, with the plan's noise; None if they cannot be enumerated.
    drawn : Audit
        Losses computed and draws, on all nodes of the plan.
    part : Tree or None
        The few leaves and their ancestors.
    """

    model: Model
    guarantee: Guarantee
    exact: Audit | None
    drawn: Audit
    part: Tree | None
    seed: int

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return self.drawn.passed and (self.exact is None or self.exact.passed)

    def __str__(self) -> str:
        """Write the audit as lines of plain text."""
        return as_text(self)


def audit_plan(
    plan: Plan,
    base: str | Path = ".",
    *,
    draws: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    notify: Notify | None = None,
) -> PlanAudit:
    """Test whether releases of a plan keep their guarantee, on made-up counts.

    `congenial.audit` does the same for a mechanism. No row is counted and nothing is spent.

    Parameters
    ----------
    plan : Plan
    base : path
        Directory from which the plan's relative paths start.
    draws : int, optional
        Draws of each dataset; by default 50,000, or 6,000 with imaging, and fewer if the plan has
        more than some hundred nodes.
    confidence : float
        Draws refute a true claim with probability 1 - confidence at most.
    seed : int
        Of the draws, which are simulations.
    notify : callable, optional
        Called with the name of each step as it begins.

    Returns
    -------
    PlanAudit
        ``print`` shows it as text.

    Raises
    ------
    PlanError, DataError, StructureError, PrivacyError, InvariantError
        As a release with this plan would.
    ArgumentError
        If a number is out of range.

    Notes
    -----
    Only the domain is read. A plan whose domain is "data" takes the nodes from the rows, which it
    declares unprotected.
    """
    say = notify or ignore
    say("reading the domain")
    domain = build_domain(plan, base=Path(base))
    say("working out the noise and the guarantee")
    model = build_model(plan, domain)
    return audit_model(model, draws=draws, confidence=confidence, seed=seed, notify=say)


def audit_model(
    model: Model,
    *,
    guarantee: Guarantee | None = None,
    draws: int | None = None,
    confidence: float = CONFIDENCE,
    seed: int = 0,
    notify: Notify = ignore,
) -> PlanAudit:
    """Audit a model against a guarantee, by default its own; see `audit_plan`."""
    source = seeded(seed)
    space = Space(model.mechanism, (model.resolved,))
    mechanism = choose_method(model)
    guarantee = guarantee or claim(model, mechanism.error_bound)
    size = checked_draws(draws, mechanism, space)
    check_confidence(confidence)
    effort = Effort(size, confidence, source, notify)
    whole = mechanism, space, guarantee, model.neighbours
    further = _entering(model, space)
    drawn = hold(*whole, stages=("compute", "draw"), further=further, effort=effort)
    if isinstance(model.domain, Tree):
        small = part_of(model)
        few = Space(small.mechanism, (small.resolved,))
        part = choose_method(small), few, guarantee, small.neighbours
        try:
            exact = hold(*part, stages=("enumerate",), total=RECORDS, effort=effort)
        except (EmptyNeighbourhoodError, UnsupportedError):
            exact = None
        if exact is not None and exact.findings:
            return PlanAudit(model, guarantee, exact, drawn, small.tree, seed)
    return PlanAudit(model, guarantee, None, drawn, None, seed)


def part_of(model: Model) -> Model:
    """Return the model on a few leaves with their noise: those of the worst move and siblings."""
    tree = model.tree
    resolved = replace(model.resolved, pinned=model.determined)
    cost = np.where(resolved.pinned, 0.0, _cost(model))
    move = worst_move(cost, resolved, tree, model.neighbours)
    ends = [v for v in (move.origin, move.destination) if v is not None]
    leaves = list(ends)
    for end in ends:
        siblings = np.flatnonzero((tree.parents == tree.parents[end]) & tree.is_leaf)
        leaves += [v for v in siblings[siblings != end][:1].tolist() if v not in leaves]
    kept = tree.chain[:, np.searchsorted(tree.leaves, leaves[:LEAVES])]
    nodes = np.unique(kept[kept >= 0])
    above = tree.parents[nodes]
    parents = np.where(above < 0, -1, np.searchsorted(nodes, above))
    small = Tree.from_parents(parents, [tree.names[v] for v in nodes])
    pinned = np.flatnonzero(model.resolved.pinned[nodes])
    invariant = consistent(small) & bounds(model.resolved.lo[nodes], model.resolved.hi[nodes])
    if pinned.size:
        invariant = invariant & exactly(pinned.tolist())
    law = DiscreteLaplace if model.delta is None else DiscreteGaussian
    mechanism = Additive(law(model.mechanism.scales[nodes]), small)
    resolved = resolve_invariant(invariant, len(small), small)
    return replace(model, domain=small, mechanism=mechanism, invariant=invariant, resolved=resolved)


def _cost(model: Model) -> FloatArray:
    """Privacy loss of each node's noise if its count changes by one; rho of Gaussian noise."""
    rate = 1.0 / model.mechanism.scales
    return rate if model.delta is None else 0.5 * rate**2


def _entering(model: Model, space: Space) -> list[Pair]:
    """Return an empty dataset and one record, which a substitution moves past the row filter."""
    if model.neighbours != "substitute" or model.plan.data.where is None:
        return []
    chain = model.domain.chain
    cost = np.where(model.resolved.pinned, -np.inf, _cost(model))
    spent = np.where(chain >= 0, cost[chain], 0.0).sum(axis=0)
    at = int(np.argmax(spent))
    if np.isneginf(spent[at]):
        return []
    one = np.bincount([at], minlength=spent.size)
    return [(space.queries(0 * one), space.queries(one))]


def as_text(found: PlanAudit) -> str:
    """Write an audit as lines of plain text."""
    model, guarantee = found.model, found.guarantee
    findings = (*(found.exact.findings if found.exact is not None else ()), *found.drawn.findings)
    whole = Audit(guarantee, findings, found.drawn.confidence)
    lines = [f"Audited: {guarantee.sentence}", "", str(whole), ""]
    for finding in findings:
        if finding.worst is not None and finding.check.startswith("loss"):
            whole_size = finding.worst[0].size == len(model.domain)
            tree = model.domain if whole_size else found.part
            lines.append(f"Largest {finding.check}: {_text(finding.worst, tree)}.")
    if found.part is not None:
        lines.append(
            f"Probabilities were enumerated on {found.part.leaves.size} of "
            f"{model.domain.leaves.size} leaves with the plan's noise. They include the "
            "leaves between which moving a record costs the most."
        )
    else:
        computed = any("computed" in f.check for f in findings)
        rest = "computed losses and draws" if computed else "draws"
        lines.append(
            "Possible releases were not enumerated with their probabilities. The audit used only "
            f"{rest}."
        )
    lines += [
        f"Draws are simulations from seed {found.seed} on made-up counts: no budget was spent, "
        f"{_read(model.plan)}, and nothing was written.",
        "No fault was found." if found.passed else "A CHECK FAILED: do not release by this plan.",
    ]
    return "\n".join(lines)


def _text(pair: Pair, tree: Tree | Workload | None) -> str:
    """Name the record that moves between two datasets."""
    if tree is None:
        return "two datasets of another size"
    change = (pair[1] - pair[0])[tree.leaves]
    gains = [repr("/".join(tree.path(int(v)))) for v in tree.leaves[change > 0]]
    losses = [repr("/".join(tree.path(int(v)))) for v in tree.leaves[change < 0]]
    crowd = int(pair[0][tree.leaves].sum())
    way = f"enters or leaves {(gains + losses)[0]}"
    if losses and gains:
        way = f"moves from {losses[0]} to {gains[0]}"
    return f"one record {way}, in a dataset of {many(crowd, 'record')}"


def _read(plan: Plan) -> str:
    if plan.hierarchy.domain == "data":
        return "rows were read only for the nodes' names, which the plan leaves unprotected"
    return "no row was counted"
