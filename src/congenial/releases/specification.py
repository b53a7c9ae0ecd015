"""The claims of a release as numbers and kinds, part by part; all follow from its plan.

A part is a record of a certificate. `specify` works the parts out from a model; `sentences` says
them in words.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from congenial.accounting.guarantee import IMAGED, Guarantee
from congenial.accounting.loss.inequalities import NONE, PROVED, TRIVIAL, WHOLE
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon
from congenial.accounting.neighbours.scope import Exposed, Kind, shared
from congenial.accounting.proofs import proofs_of
from congenial.accounting.worst_pair import worst_pair
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.model import Model, exposed

Count = Annotated[int, msgspec.Meta(ge=0)]
Nonnegative = Annotated[float, msgspec.Meta(ge=0.0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
NodePath = tuple[str, ...]
Product = Literal["table", "measurements"]
GammaSource = Literal["equalities", "proved-bound", "whole-orders", "trivial", "post-processing"]

# Name of the check of each part, and the subject that it compares.
PARTS = MappingProxyType(
    {
        "domain": (
            "domain",
            "levels, numbers of nodes (names as released) and row filter",
        ),
        "invariants": ("invariants", "what every release satisfies"),
        "noise": ("noise", "the noise of every level, and its share of the budget"),
        "method": ("method", "how the release was made to satisfy its invariants"),
        "published": ("published", "what is published from one spending"),
        "guarantee": ("guarantee", "epsilon, delta, gamma and the datasets compared"),
    }
)
# The same of parts of the guarantee that have a check of their own.
PARTS_OF_GUARANTEE = MappingProxyType(
    {
        "unprotected": ("unprotected", "the list of what is not protected"),
        "worst_neighbours": ("worst neighbours", "the pair that the guarantee charges the most"),
        "proofs": ("proofs", "the proofs that the guarantee rests on"),
    }
)
# The kind of each source of gamma.
SOURCES: MappingProxyType[str, GammaSource] = MappingProxyType(
    {
        NONE: "equalities",
        PROVED: "proved-bound",
        WHOLE: "whole-orders",
        TRIVIAL: "trivial",
        IMAGED: "post-processing",
    }
)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record of a certificate."""


class LevelNodes(Part, frozen=True):
    """A level, its number of nodes, and how many of them are published exactly."""

    name: str
    nodes: Count
    published_exactly: Count


class Domain(Part, frozen=True):
    """On which nodes records are counted: levels coarse to fine, and the rule that rows meet.

    `public` tells whether the nodes are known without the rows.
    """

    source: Literal["lookup", "file", "data"]
    public: bool
    levels: tuple[LevelNodes, ...]
    row_filter: str | None


class WholeNumbers(Kind, frozen=True, tag="integers"):
    """Every released count is an integer."""


class SumsOfParts(Kind, frozen=True, tag="sums"):
    """Every count of a node with parts is the sum of theirs; `nodes` is their number."""

    nodes: Count


class PublishedExactly(Kind, frozen=True, tag="published-exactly"):
    """These counts are released as enumerated; `listed` names levels and nodes as the plan does."""

    nodes: Count
    listed: tuple[str, ...]


class NoneNegative(Kind, frozen=True, tag="nonnegative"):
    """No released count is below zero."""


Mandate = WholeNumbers | SumsOfParts | PublishedExactly | NoneNegative


class LevelNoise(Part, frozen=True):
    """The noise of one level, and what it takes of the budget.

    `scale` is in counts, sigma for Gaussian noise; None where the level has no noise of its own.
    `epsilon` is the loss of a record that changes the level, by its noise alone, and `rho` its zCDP
    parameter under Gaussian noise.
    """

    level: str
    scale: Nonnegative | None
    epsilon: Nonnegative
    rho: Nonnegative | None
    share_of_budget: Share


class LevelNoises(Part, frozen=True):
    """The law of the noise, as plans name it, and what each level has of it."""

    kind: str
    levels: tuple[LevelNoise, ...]


class ByConditioning(Kind, frozen=True, tag="conditioning"):
    """Drawn from the law of the noise given the invariants, each release independently."""

    sampler: Literal["exact"]


class ByImaging(Kind, frozen=True, tag="imaging"):
    """Noisy counts moved to the closest integers that satisfy the invariants, in a norm."""

    norm: Literal["l1", "l2"]


class ByTopDown(Kind, frozen=True, tag="topdown"):
    """Noisy counts moved level by level, from the top, to integers that satisfy the invariants."""


Method = ByConditioning | ByImaging | ByTopDown


class Neighbouring(Part, frozen=True):
    """The neighbouring datasets: how many records are replaced, or added or removed.

    `row_filter_may_change` says whether the plan's row filter may keep one record and drop the
    other.
    """

    relation: Literal["substitute", "add-remove"]
    records: Annotated[int, msgspec.Meta(ge=1)]
    row_filter_may_change: bool


class Datasets(Part, frozen=True):
    """Which datasets are compared: all, or those that agree on exact counts or satisfy bounds."""

    agree_on_exact_counts: bool
    satisfy_bounds: bool


class Pure(Kind, frozen=True, tag="pure"):
    """The noise loses epsilon, whatever the release."""


class ZeroConcentrated(Kind, frozen=True, tag="zcdp"):
    """The noise is rho-zCDP, converted to epsilon at part of delta; maybe by whole orders only."""

    rho: Nonnegative
    at_delta: Share
    whole_orders: bool


class RecordMoves(Kind, frozen=True, tag="moves"):
    """One record moves between two leaves, which changes several counts.

    Nodes are paths from the root, and None where they come from the rows. A loss is in epsilon: of
    the noise alone, and with what the bounds cost.
    """

    origin: NodePath | None
    destination: NodePath | None
    changed_counts: Count
    noise_loss: Nonnegative
    loss: Nonnegative


class RecordEnters(Kind, frozen=True, tag="enters-or-leaves"):
    """One record enters or leaves a leaf; the fields are those of `RecordMoves`."""

    node: NodePath | None
    changed_counts: Count
    noise_loss: Nonnegative
    loss: Nonnegative


WorstNeighbours = RecordMoves | RecordEnters


class Claim(Part, frozen=True):
    """The privacy guarantee.

    Between neighbours among the datasets compared, the probability of no event grows by more than
    the factor exp(`epsilon`), plus `delta`. `base_epsilon` is the loss by the noise alone, which
    bounds multiply by 1 + `gamma`. `numerical_error` bounds the total variation between a draw and
    its law; it is inside delta.
    """

    neighbours: Neighbouring
    datasets: Datasets
    epsilon: Nonnegative
    delta: Share
    measure: Pure | ZeroConcentrated
    base_epsilon: Nonnegative
    gamma: Share
    gamma_source: GammaSource
    numerical_error: Share
    unprotected: tuple[Exposed, ...]
    worst_neighbours: WorstNeighbours
    proofs: tuple[str, ...]


class Simulation(Part, frozen=True):
    """Present where the release was drawn from a seed and protects nobody.

    `with_truth` tells whether the confidential counts were written beside the released ones.
    """

    seed: int
    with_truth: bool


class Debited(Part, frozen=True):
    """The entry of the plan's ledger: a random name, and what it holds in decimal digits.

    Neither the ledger's key nor a dataset's fingerprint is stated: they would tell which releases
    are of the same rows.
    """

    entry: str
    epsilon: str
    delta: str


class Statement(Part, frozen=True):
    """Everything that a release states, as numbers and kinds.

    `made` is the time of the release, in ISO 8601. `files` and `plan_sha256` are SHA-256 digests.
    """

    format: Annotated[int, msgspec.Meta(ge=1, le=2)]
    made: str
    domain: Domain
    invariants: tuple[Mandate, ...]
    noise: LevelNoises
    method: Method
    published: tuple[Product, ...]
    guarantee: Claim
    accuracy: StatedAccuracy
    simulation: Simulation | None
    plan: dict[str, Any]
    plan_sha256: str
    files: dict[str, str]
    versions: dict[str, str]
    ledger: Debited | None


class Specification(Part, frozen=True):
    """All that follows from the plan, its nodes and the numerical error of a draw."""

    domain: Domain
    invariants: tuple[Mandate, ...]
    noise: LevelNoises
    method: Method
    published: tuple[Product, ...]
    guarantee: Claim


def specify(model: Model, guarantee: Guarantee) -> Specification:
    """State a release of `model` under a guarantee."""
    plan, given = model.plan, model.plan.hierarchy.domain
    return Specification(
        domain=Domain(
            source="lookup" if given == "lookup" else "data" if given == "data" else "file",
            public=given != "data",
            levels=tuple(
                LevelNodes(level.name, level.nodes, level.exact) for level in model.levels
            ),
            row_filter=plan.data.where,
        ),
        invariants=_invariants(model),
        noise=_noise(model),
        method=_method(model),
        published=_published(plan.release.publish),
        guarantee=claim_of(model, guarantee),
    )


def claim_of(model: Model, guarantee: Guarantee) -> Claim:
    """State a guarantee of a release of `model` in full.

    Raises
    ------
    PrivacyError
        As `worst_pair`.
    """
    measure: Pure | ZeroConcentrated = Pure()
    if guarantee.rho is not None and model.delta is not None:
        measure = ZeroConcentrated(guarantee.rho, model.delta, guarantee.whole_orders)
    return Claim(
        neighbours=Neighbouring(guarantee.neighbours, guarantee.records, model.one_sided),
        datasets=Datasets(*shared(model.resolved)),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        measure=measure,
        base_epsilon=guarantee.base_epsilon,
        gamma=guarantee.gamma,
        gamma_source=SOURCES[guarantee.gamma_source],
        numerical_error=guarantee.sampler_error,
        unprotected=exposed(model, guarantee),
        worst_neighbours=worst_neighbours(model, guarantee),
        proofs=proofs_of(guarantee),
    )


def worst_neighbours(model: Model, guarantee: Guarantee) -> WorstNeighbours:
    """Name the pair that a guarantee charges the most, unless its nodes are confidential."""
    tree, named = model.tree, model.plan.hierarchy.domain != "data"
    pair = worst_pair(model.mechanism, model.resolved, tree, guarantee, one_sided=model.one_sided)
    origin = tree.path(pair.origin) if named else None
    losses = (pair.changed, pair.base_loss, pair.loss)
    if pair.destination is None:
        return RecordEnters(origin, *losses)
    return RecordMoves(origin, tree.path(pair.destination) if named else None, *losses)


def _invariants(model: Model) -> tuple[Mandate, ...]:
    found: list[Mandate] = [WholeNumbers(), SumsOfParts(int((~model.tree.is_leaf).sum()))]
    listed = model.plan.invariants.publish_exactly
    if listed:
        found.append(PublishedExactly(int(model.resolved.pinned.sum()), listed))
    if model.plan.invariants.nonnegative:
        found.append(NoneNegative())
    return tuple(found)


def _noise(model: Model) -> LevelNoises:
    # a record that moves changes two counts of a level
    units = 2.0 if model.neighbours == "substitute" else 1.0
    change, gaussian = model.mechanism.per_record, model.delta is not None
    rate = np.array([0.0 if v.scale is None else change / v.scale for v in model.levels])
    spent = 0.5 * units * rate**2 if gaussian else units * rate
    shares = spent / spent.sum()
    out = []
    for level, loss, share in zip(model.levels, spent.tolist(), shares.tolist(), strict=True):
        rho = loss if model.delta is not None else None
        epsilon = loss if model.delta is None else zcdp_epsilon(loss, model.delta)
        out.append(LevelNoise(level.name, level.scale, epsilon, rho, share))
    return LevelNoises(model.mechanism.noise.name, tuple(out))


def _method(model: Model) -> Method:
    method = model.plan.method
    if method.name == "imaging":
        return ByImaging("l1" if method.norm == "l1" else "l2")
    return ByTopDown() if method.name == "topdown" else ByConditioning("exact")


def _published(products: tuple[str, ...]) -> tuple[Product, ...]:
    known: tuple[Product, ...] = ("table", "measurements")
    return tuple(product for product in known if product in products)
