"""What a release promises, part by part: domain, invariants, distance, measure and budget.

A guarantee says little without them: which datasets are compared, what they agree on, which of them
are neighbours, how the laws of their releases are compared, and how far those may differ.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon
from congenial.accounting.proofs import proofs_of
from congenial.accounting.worst_pair import worst_pair
from congenial.releases.model import Model

# Said of the worst pair where the names of nodes come from the confidential rows.
NOT_NAMED = "not named, because the plan takes the nodes from the rows"

Count = Annotated[int, msgspec.Meta(ge=0)]
Nonnegative = Annotated[float, msgspec.Meta(ge=0.0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
NodePath = tuple[str, ...]
# What a check of each part is called, and what it compares.
PARTS = {
    "domain": ("domain", "the datasets compared and their nodes"),
    "invariants": ("invariants", "what every release satisfies"),
    "distance": ("distance", "which datasets are neighbours"),
    "measure": ("measure", "how the laws of their releases are compared"),
    "budget": ("spending", "epsilon, and what each level takes of it"),
    "worst_neighbours": ("worst neighbours", "the pair that the guarantee charges the most"),
    "proofs": ("proofs", "the proofs that the guarantee rests on"),
}


class Domain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which datasets are compared, and on which nodes their records are counted.

    `nodes` has one number a level, coarse to fine. `public` tells whether the nodes are known
    without the rows; `rule` which rows count.
    """

    datasets: str
    source: Literal["lookup", "file", "data"]
    public: bool
    levels: tuple[str, ...]
    nodes: tuple[Count, ...]
    rule: str | None


class Mandate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One invariant of the release: its kind, what it says, and on how many nodes.

    `listed` names levels and nodes as the plan does.
    """

    kind: Literal["integers", "sums", "exact", "nonnegative"]
    told: str
    nodes: Count
    listed: tuple[str, ...]


class Distance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which datasets are neighbours: those that differ by so many records, in this way."""

    relation: Literal["substitute", "add-remove"]
    records: Annotated[int, msgspec.Meta(ge=1)]
    rule_may_be_crossed: bool
    told: str


class Measure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the laws of two releases are compared.

    `noise` is the measure of the noise itself; `rho` its parameter under zCDP, told as epsilon at
    `told_at`, which is a part of delta. `delta` is what the claim leaves open, and `sampler_error`
    the distance of the draw from its law inside it.
    """

    noise: Literal["pure", "zcdp"]
    rho: Nonnegative | None
    delta: Share
    sampler_error: Share
    told: str
    told_at: Share | None


class Spent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one level takes of the budget of the noise; nothing where `scale` is None.

    `scale` is sigma for Gaussian noise, whose budget is its zCDP parameter `rho`.
    """

    level: str
    scale: Nonnegative | None
    base_epsilon: Nonnegative
    share: Share
    rho: Nonnegative | None


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The epsilon that the plan allows and the one that is used, and how it is made up.

    Every pair of neighbours costs at most `base_epsilon` by the noise and `epsilon` with the
    bounds. A level's `base_epsilon` is the loss of a record that changes it, whether or not the
    worst pair does.
    """

    allowed: Nonnegative
    epsilon: Nonnegative
    base_epsilon: Nonnegative
    gamma: Share
    gamma_source: str
    levels: tuple[Spent, ...]


class Neighbours(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The pair of neighbours that the guarantee charges the most, and its loss.

    `origin` holds the record in one dataset and `destination` in the other; paths from the root.
    Both are None where `named` is false, and `destination` is where the record enters or leaves.
    """

    change: Literal["moves", "enters or leaves"]
    named: bool
    origin: NodePath | None
    destination: NodePath | None
    changed_counts: Count
    base_loss: Nonnegative
    loss: Nonnegative

    @property
    def sentence(self) -> str:
        """The pair and its loss in words."""
        if not self.named:
            who = f"one record {self.change} (its nodes are {NOT_NAMED})"
        elif self.origin is not None and self.destination is not None:
            who = f"one record moves between {_shown(self.origin)} and {_shown(self.destination)}"
        else:
            who = f"one record enters or leaves {_shown(self.origin or ())}"
        n = self.changed_counts
        counts = "1 count changes" if n == 1 else f"{n} counts change"
        text = f"{who}; {counts}, a loss of {self.loss:.6g}"
        if self.loss > self.base_loss:
            text += f", of which {self.base_loss:.6g} by the noise and the rest by the bounds"
        return f"{text}."


class Specification(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A guarantee in full; every part follows from the plan, its nodes and the numerical error."""

    domain: Domain
    invariants: tuple[Mandate, ...]
    distance: Distance
    measure: Measure
    budget: Budget
    worst_neighbours: Neighbours
    proofs: tuple[str, ...]


def specify(model: Model, guarantee: Guarantee) -> Specification:
    """State a guarantee of a release of `model` in full."""
    return Specification(
        domain=_domain(model, guarantee),
        invariants=_invariants(model),
        distance=_distance(model, guarantee),
        measure=_measure(model, guarantee),
        budget=_budget(model, guarantee),
        worst_neighbours=worst_neighbours(model, guarantee),
        proofs=proofs_of(guarantee),
    )


def worst_neighbours(model: Model, guarantee: Guarantee) -> Neighbours:
    """Name the pair that a guarantee charges the most, unless its nodes are confidential."""
    tree = model.tree
    pair = worst_pair(model.mechanism, model.resolved, tree, guarantee, one_sided=model.one_sided)
    named = model.plan.hierarchy.domain != "data"
    moves = pair.destination is not None
    return Neighbours(
        change="moves" if moves else "enters or leaves",
        named=named,
        origin=tuple(tree.path(pair.origin)) if named else None,
        destination=None
        if pair.destination is None or not named
        else tuple(tree.path(pair.destination)),
        changed_counts=pair.changed,
        base_loss=pair.base_loss,
        loss=pair.loss,
    )


def _domain(model: Model, guarantee: Guarantee) -> Domain:
    plan = model.plan
    given = plan.hierarchy.domain
    return Domain(
        datasets=guarantee.covered,
        source="lookup" if given == "lookup" else "data" if given == "data" else "file",
        public=given != "data",
        levels=plan.level_names,
        nodes=tuple(level.nodes for level in model.levels),
        rule=plan.data.where,
    )


def _invariants(model: Model) -> tuple[Mandate, ...]:
    n, inner = len(model.tree), int((~model.tree.is_leaf).sum())
    found = [
        Mandate("integers", "every released count is an integer", n, ()),
        Mandate("sums", "every count above others is their sum", inner, ()),
    ]
    listed = model.plan.invariants.publish_exactly
    if listed:
        told = "these counts are released as enumerated"
        found.append(Mandate("exact", told, int(model.resolved.pinned.sum()), listed))
    if model.plan.invariants.nonnegative:
        found.append(Mandate("nonnegative", "no released count is below zero", n, ()))
    return tuple(found)


def _distance(model: Model, guarantee: Guarantee) -> Distance:
    if guarantee.neighbours == "substitute":
        told = "one record is replaced by another"
    else:
        told = "one record is added or removed"
    if model.one_sided:
        told += ", of which the rule may leave either out"
    return Distance(guarantee.neighbours, guarantee.records, model.one_sided, told)


def _measure(model: Model, guarantee: Guarantee) -> Measure:
    noise = model.mechanism.noise.measure
    told = "no probability grows by more than the factor exp(epsilon), but for delta"
    if noise == "zcdp":
        orders = ", by whole Rényi orders" if guarantee.whole_orders else ""
        told = f"zCDP of the noise, told as epsilon at a part of delta{orders}; "
        told += "the draw's error has the rest"
    error = guarantee.sampler_error
    return Measure(noise, guarantee.rho, guarantee.delta, error, told, model.delta)


def _budget(model: Model, guarantee: Guarantee) -> Budget:
    # a record that moves changes two counts of a level
    units = 2.0 if guarantee.neighbours == "substitute" else 1.0
    change = model.mechanism.per_record
    rate = np.array([0.0 if v.scale is None else change / v.scale for v in model.levels])
    spent = units * rate if model.delta is None else 0.5 * units * rate**2
    shares = spent / spent.sum()
    losses, rhos = spent.tolist(), [None] * len(model.levels)
    if model.delta is not None:
        losses, rhos = [zcdp_epsilon(rho, model.delta) for rho in spent.tolist()], spent.tolist()
    return Budget(
        allowed=model.plan.privacy.epsilon,
        epsilon=guarantee.epsilon,
        base_epsilon=guarantee.base_epsilon,
        gamma=guarantee.gamma,
        gamma_source=guarantee.gamma_source,
        levels=tuple(
            Spent(v.name, v.scale, loss, float(share), rho)
            for v, loss, share, rho in zip(model.levels, losses, shares, rhos, strict=True)
        ),
    )


def _shown(path: NodePath) -> str:
    return repr("/".join(path))
