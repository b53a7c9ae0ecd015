"""The claims of a release as numbers and kinds, part by part; all follow from its plan.

A part is a record of a certificate. `specify` works the parts out from a model; `sentences` says
them in words.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from congenial.accounting.calibration.level_units import changing_levels
from congenial.accounting.guarantee import POST_PROCESSED, Guarantee
from congenial.accounting.loss.inequalities import NONE, PROVED, TRIVIAL, WHOLE
from congenial.accounting.loss.zero_concentrated import zcdp_epsilon
from congenial.accounting.neighbours.scope import Exposed, Kind, shared
from congenial.accounting.proofs import proofs_of
from congenial.accounting.worst_pair import worst_pair
from congenial.domain.workload import Workload
from congenial.plan.plan import bounds_by_node
from congenial.plan.sections import PRODUCTS, Product
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.model import Model, exposed

Count = Annotated[int, msgspec.Meta(ge=0)]
Nonnegative = Annotated[float, msgspec.Meta(ge=0.0)]
Share = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
NodePath = tuple[str, ...]
NodeSource = Literal["lookup", "file", "data", "plan"]
GammaSource = Literal["equalities", "proved-bound", "whole-orders", "trivial", "post-processing"]

# Name of the check of each part, and the subject that it compares.
PARTS = MappingProxyType(
    {
        "domain": ("domain", "the levels, the row filter, and the table's numbers of nodes"),
        "invariants": ("invariants", "the rules of every release"),
        "noise": ("noise", "the noise of every level, and its share of epsilon"),
        "method": ("method", "how the release was made to satisfy its invariants"),
        "published": ("published", "the tables that are published together"),
        "guarantee": ("guarantee", "epsilon, delta, gamma and the datasets compared"),
    }
)
# The same of parts of the guarantee that have a check of their own.
PARTS_OF_GUARANTEE = MappingProxyType(
    {
        "unprotected": ("unprotected", "the list of what is not protected"),
        "worst_neighbours": ("worst neighbours", "the neighbours with the largest loss"),
        "proofs": ("proofs", "the proofs that the guarantee rests on"),
    }
)
# Most bounds that a mandate lists; the plan in the certificate lists them all.
_MOST_SHOWN = 20
# Where the nodes come from, by the plan's key hierarchy.domain; another value names a file.
_SOURCES_OF_NODES: MappingProxyType[str | None, NodeSource] = MappingProxyType(
    {None: "plan", "lookup": "lookup", "data": "data"}
)
# The kind of each source of gamma.
SOURCES: MappingProxyType[str, GammaSource] = MappingProxyType(
    {
        NONE: "equalities",
        PROVED: "proved-bound",
        WHOLE: "whole-orders",
        TRIVIAL: "trivial",
        POST_PROCESSED: "post-processing",
    }
)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A record of a certificate."""


class LevelNodes(Part, frozen=True):
    """The nodes of one level."""

    name: str  # Name of the level: a column of the plan, or the root's name for the root.
    nodes: Count  # Number of nodes of the level.
    published_exactly: Count  # Number of these nodes that the plan publishes exactly.


class RowsOfTable(Part, frozen=True):
    """The rows that one of several tables counts."""

    table: str  # Name of the table.
    # The column that says how many records a row stands for; null if each row is one record.
    weight: str | None


class Domain(Part, frozen=True):
    """The nodes that are counted."""

    # Where the list of nodes comes from: the plan's lookup, another file, the rows ("data"), or the
    # plan itself, which has the root alone.
    source: NodeSource
    public: bool  # Whether the list of nodes is known without the confidential rows.
    levels: tuple[LevelNodes, ...]  # The levels, coarse to fine.
    # The SQL condition that a row meets to be counted; null if every row is counted.
    row_filter: str | None
    # The column that says how many records a row stands for; null if each row is one record.
    weight: str | None
    # The tables of a plan that has several, each with rows of its own.
    tables: tuple[RowsOfTable, ...]


class WholeNumbers(Kind, frozen=True, tag="integers"):
    """Every released count is an integer."""


class SumsOfParts(Kind, frozen=True, tag="sums"):
    """The count of every node with children is the sum of its children's counts."""

    nodes: Count  # Number of nodes with children.


class PublishedExactly(Kind, frozen=True, tag="published-exactly"):
    """Some counts are released as enumerated."""

    nodes: Count  # Number of these counts.
    # The levels and nodes that the plan publishes exactly, as the plan names them.
    listed: tuple[str, ...]


class NoneNegative(Kind, frozen=True, tag="nonnegative"):
    """No released count is below zero."""


class BoundedBelow(Kind, frozen=True, tag="at-least"):
    """Some released counts are at least public numbers."""

    nodes: Count  # Number of these counts.
    # The number for each level and node that the plan names; empty if it names more than 20.
    listed: dict[str, Count]


class BoundedAbove(Kind, frozen=True, tag="at-most"):
    """Some released counts are at most public numbers."""

    nodes: Count  # Number of these counts.
    # The number for each level and node that the plan names; empty if it names more than 20.
    listed: dict[str, Count]


class AsManyAs(Kind, frozen=True, tag="as-many"):
    """At every place of the deepest level, counts of one table reach those of another."""

    listed: tuple[str, ...]  # The comparisons, as the plan states them.


Mandate = (
    WholeNumbers
    | SumsOfParts
    | PublishedExactly
    | NoneNegative
    | BoundedBelow
    | BoundedAbove
    | AsManyAs
)


class LevelNoise(Part, frozen=True):
    """The noise of one level, and its part of the budget."""

    level: str  # Name of the level.
    # Scale of the noise, in counts (sigma for Gaussian noise); null if the level is not measured.
    scale: Nonnegative | None
    # Loss of a record that changes this level, by the noise of this level alone.
    epsilon: Nonnegative
    rho: Nonnegative | None  # The same loss in zCDP; null under Laplace noise.
    # Part of the noise's whole loss that this level takes; all levels together have 1.
    share_of_budget: Share


class LevelNoises(Part, frozen=True):
    """The noise of a release."""

    kind: str  # The noise law, as plans name it.
    levels: tuple[LevelNoise, ...]  # One for each level, coarse to fine.


class ByConditioning(Kind, frozen=True, tag="conditioning"):
    """Drawn from the law of the noise given the invariants, each release independently."""

    sampler: Literal["exact"]  # The sampler that drew.


class ByImaging(Kind, frozen=True, tag="imaging"):
    """Noisy counts moved to the closest integers that satisfy the invariants."""

    norm: Literal["l1", "l2"]  # The norm in which they are the closest.


class ByTopDown(Kind, frozen=True, tag="topdown"):
    """Noisy counts moved level by level, from the top, to integers that satisfy the invariants."""


class ByBestTable(Kind, frozen=True, tag="posterior"):
    """The one table of integers of least expected error, given the noisy counts and a prior."""

    # The error: absolute, averaged within each level and added up over the levels, l1; or squared,
    # added up over all counts, l2.
    loss: Literal["l1", "l2"]


Method = ByConditioning | ByImaging | ByTopDown | ByBestTable


class LevelAlpha(Part, frozen=True):
    """The prior of a level, fitted to the noisy counts: how a count is split among its parts."""

    level: str  # The level of the parts.
    # The parameter of each part in a Dirichlet-multinomial law, on average over a typical family.
    alpha: Nonnegative
    # The standard deviation of its logarithm from family to family; each family's own is worked out
    # from the noisy counts.
    spread: Nonnegative


class Neighbouring(Part, frozen=True):
    """The neighbouring datasets."""

    # "substitute" if records are replaced, "add-remove" if they are added or removed.
    relation: Literal["substitute", "add-remove"]
    # Number of records by which neighbouring datasets differ.
    records: Annotated[int, msgspec.Meta(ge=1)]
    # Whether the plan's row filter may keep a record and drop the one that replaces it.
    row_filter_may_change: bool


class Datasets(Part, frozen=True):
    """The datasets that the guarantee compares."""

    agree_on_exact_counts: bool  # Whether only datasets with the same exact counts are compared.
    satisfy_bounds: bool  # Whether only datasets that satisfy the bounds are compared.


class Pure(Kind, frozen=True, tag="pure"):
    """Pure differential privacy: the noise loses at most epsilon."""


class ZeroConcentrated(Kind, frozen=True, tag="zcdp"):
    """Zero-concentrated differential privacy (zCDP), converted to epsilon and delta."""

    rho: Nonnegative  # The zCDP parameter of the noise.
    at_delta: Share  # The delta of the conversion: the plan's delta without the numerical error.
    # Whether the conversion uses integer Renyi orders only, as the proof for bounds does.
    whole_orders: bool


class RecordMoves(Kind, frozen=True, tag="moves"):
    """One record moves between two leaves."""

    # `origin` and `destination`: Path of the leaf from the root; null if the names of the nodes
    # come from the rows, or the table was conditioned in parts.
    origin: NodePath | None
    destination: NodePath | None
    changed_counts: Count  # Number of counts that the move changes.
    noise_loss: Nonnegative  # Loss in epsilon by the noise alone.
    loss: Nonnegative  # Loss in epsilon with the factor 1 + gamma that the bounds cost.


class RecordEnters(Kind, frozen=True, tag="enters-or-leaves"):
    """One record enters or leaves a leaf."""

    # Path of the leaf from the root; null if the names of the nodes come from the rows, or the
    # table was conditioned in parts.
    node: NodePath | None
    changed_counts: Count  # Number of counts that the record changes.
    noise_loss: Nonnegative  # Loss in epsilon by the noise alone.
    loss: Nonnegative  # Loss in epsilon with the factor 1 + gamma that the bounds cost.


WorstNeighbours = RecordMoves | RecordEnters


class Claim(Part, frozen=True):
    """The privacy guarantee: P(S) <= exp(epsilon) P'(S) + delta for neighbouring datasets."""

    neighbours: Neighbouring  # Which datasets are neighbours.
    datasets: Datasets  # Which datasets are compared.
    epsilon: Nonnegative  # The epsilon of the guarantee.
    delta: Share  # The delta of the guarantee; it includes the numerical error.
    measure: Pure | ZeroConcentrated  # The kind of privacy loss that the noise has.
    base_epsilon: Nonnegative  # Loss by the noise alone; bounds multiply it by 1 + gamma.
    gamma: Share  # Part of the noise's loss that the bounds add; 0 where they add nothing.
    gamma_source: GammaSource  # The proof that gamma rests on.
    numerical_error: Share  # Bound on the total variation distance between a draw and its law.
    unprotected: tuple[Exposed, ...]  # The facts that the guarantee does not protect.
    worst_neighbours: WorstNeighbours  # The neighbouring datasets with the largest loss.
    # The files of the project congenial with the proofs that the guarantee rests on.
    proofs: tuple[str, ...]

    @property
    def at_delta(self) -> float | None:
        """The delta at which zCDP is converted to epsilon; None if the noise is pure."""
        return self.measure.at_delta if isinstance(self.measure, ZeroConcentrated) else None


class Simulation(Part, frozen=True):
    """Present if the release was drawn from a seed: it protects nobody."""

    seed: int  # The seed of the draw.
    with_truth: bool  # Whether the confidential counts were written beside the released ones.


class Debited(Part, frozen=True):
    """The entry in the plan's ledger, without the ledger's key and the dataset's fingerprint.

    Either would tell which releases are of the same rows.
    """

    entry: str  # Random name of the entry, 32 hexadecimal digits.
    epsilon: str  # The epsilon debited, in decimal digits.
    delta: str  # The delta debited, in decimal digits.


class KeyedDraws(Part, frozen=True):
    """Present if the parts of the release were drawn on other machines, with words of keys.

    Such words are SHAKE-256 of a key, so the guarantee is a computational one.
    """

    function: Literal["shake-256"]  # The function that makes words of a key.
    key_bits: Annotated[int, msgspec.Meta(ge=256)]  # Number of bits of the key.
    parts: Annotated[int, msgspec.Meta(ge=1)]  # Number of parts, each with a key of its own.


class Statement(Part, frozen=True):
    """Everything that a release states, as numbers and kinds."""

    format: Annotated[int, msgspec.Meta(ge=1, le=2)]  # Version of this form: 1 or 2.
    made: str  # Time of the release, ISO 8601 with its offset from UTC.
    domain: Domain  # The nodes that are counted.
    invariants: tuple[Mandate, ...]  # The conditions that every release satisfies.
    noise: LevelNoises  # The noise of every level.
    method: Method  # The way in which the release was made to satisfy its invariants.
    # The tables that are published: the released counts, and maybe the noisy measurements.
    published: tuple[Product, ...]
    guarantee: Claim  # The privacy guarantee.
    accuracy: StatedAccuracy  # The meaning of the intervals in the released table.
    simulation: Simulation | None  # The seed of a simulation; null for a private release.
    # The plan with all its defaults; of an absolute path only the file's name.
    plan: dict[str, Any]
    plan_sha256: str  # SHA-256 of `plan` written as JSON in UTF-8 with sorted keys and no blanks.
    files: dict[str, str]  # SHA-256 of every other file of the release, by its name.
    # Versions of congenial, Python and the libraries that computed the release.
    versions: dict[str, str]
    # The entry in the ledger; null if the plan names no ledger, and for a simulation.
    ledger: Debited | None
    # The prior that the table was made under; null for methods without one, and where the posterior
    # could not be worked out, so that the table is the closest one.
    prior: tuple[LevelAlpha, ...] | None
    # The keys that random words were computed from; null if all come from the operating system, and
    # for a simulation from its seed.
    keyed: KeyedDraws | None


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
            source=_SOURCES_OF_NODES.get(given, "file"),
            public=given != "data",
            levels=tuple(
                LevelNodes(level.name, level.nodes, level.exact) for level in model.levels
            ),
            row_filter=plan.data.where,
            weight=None if plan.tables else plan.data.weight,
            tables=tuple(
                RowsOfTable(name, part.data.weight)
                for name, part in zip(plan.tables, plan.parts, strict=False)
            ),
        ),
        invariants=_invariants(model),
        noise=_noise(model),
        method=_method(model),
        published=tuple(p for p in PRODUCTS if p in plan.release.publish),
        guarantee=claim_of(model, guarantee),
    )


def claim_of(model: Model, guarantee: Guarantee) -> Claim:
    """State a guarantee of a release of `model` in full.

    Raises PrivacyError as `worst_pair`.
    """
    measure: Pure | ZeroConcentrated = Pure()
    if guarantee.rho is not None and model.delta is not None:
        measure = ZeroConcentrated(guarantee.rho, model.delta, guarantee.whole_orders)
    return Claim(
        neighbours=Neighbouring(guarantee.neighbours, guarantee.records, model.one_sided),
        datasets=Datasets(*shared(model.compared)),
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
    domain, named = model.domain, model.plan.hierarchy.domain != "data"
    pair = worst_pair(model.mechanism, model.resolved, domain, guarantee, one_sided=model.one_sided)
    origin = domain.path(pair.origin) if named else None
    losses = (pair.changed, pair.base_loss, pair.loss)
    if pair.destination is None:
        return RecordEnters(origin, *losses)
    return RecordMoves(origin, domain.path(pair.destination) if named else None, *losses)


def unnamed(worst: WorstNeighbours) -> WorstNeighbours:
    """Return neighbours without the names of their leaves.

    Which of several pairs with the same loss comes first can be seen from all counts only.
    """
    names = ("origin", "destination") if isinstance(worst, RecordMoves) else ("node",)
    return msgspec.structs.replace(worst, **dict.fromkeys(names))


def _invariants(model: Model) -> tuple[Mandate, ...]:
    found: list[Mandate] = [WholeNumbers(), SumsOfParts(int((~model.domain.is_leaf).sum()))]
    given = model.plan.invariants
    if given.publish_exactly:
        found.append(PublishedExactly(int(model.resolved.pinned.sum()), given.publish_exactly))
    if given.nonnegative:
        found.append(NoneNegative())
    low, high = bounds_by_node(model.plan, model.domain)
    if given.at_least:
        found.append(BoundedBelow(int(np.isfinite(low).sum()), _shown(given.at_least)))
    if given.at_most:
        found.append(BoundedAbove(int(np.isfinite(high).sum()), _shown(given.at_most)))
    if given.as_many:
        found.append(AsManyAs(given.as_many))
    return tuple(found)


def _shown(limits: dict[str, int]) -> dict[str, int]:
    return limits if len(limits) <= _MOST_SHOWN else {}


def _noise(model: Model) -> LevelNoises:
    # a record that moves changes two counts of a level, one that enters or leaves one
    units = np.full(len(model.levels), 2.0 if model.neighbours == "substitute" else 1.0)
    if model.one_sided:
        moved = changing_levels(model.domain, model.compared, model.neighbours)
        units[np.setdiff1d(np.arange(units.size), moved)] = 1.0
    change, gaussian = model.mechanism.per_record, model.delta is not None
    rate = np.array([0.0 if v.scale is None else change / v.scale for v in model.levels])
    spent = 0.5 * units * rate**2 if gaussian else units * rate
    # a record is in one table, so each table spends the whole budget
    domain = model.domain
    total = spent.sum()
    if model.plan.tables and isinstance(domain, Workload):
        owner = np.array([block.table.name for block in domain.blocks])
        total = (owner[:, None] == owner) @ spent
    # a table whose counts are all exact spends nothing
    shares = np.divide(spent, total, out=np.zeros_like(spent), where=total > 0.0)
    out = []
    for level, loss, share in zip(model.levels, spent.tolist(), shares.tolist(), strict=True):
        rho = loss if model.delta is not None else None
        epsilon = loss if model.delta is None else zcdp_epsilon(loss, model.delta)
        out.append(LevelNoise(level.name, level.scale, epsilon, rho, share))
    return LevelNoises(model.mechanism.noise.name, tuple(out))


def _method(model: Model) -> Method:
    method = model.plan.method
    if method.name == "imaging":
        return ByImaging(method.norm)
    if method.name == "posterior":
        return ByBestTable(method.loss)
    return ByTopDown() if method.name == "topdown" else ByConditioning("exact")


def keyed_words(certificate: Statement) -> str | None:
    """Say against whom the guarantee of such a release holds; None for other releases."""
    if certificate.keyed is None:
        return None
    key = "a seed" if certificate.simulation is not None else "a secret key of 256 bits"
    return (
        f"The random words of its {certificate.keyed.parts:,} parts were computed from {key} by "
        "SHAKE-256. So the guarantee holds against everyone who cannot distinguish SHAKE-256 with "
        "such a key from a random function."
    )


def whoever_reads(certificate: Statement) -> str:
    """Say what knowledge and work the guarantee withstands."""
    knows = "The guarantee holds whatever else someone knows or will learn"
    if certificate.keyed is None:
        return f"{knows}, and however they analyse the numbers."
    return f"{knows}. {keyed_words(certificate)}"
