"""A release drawn and written one part after another, so that memory holds a single part.

TopDown goes down from the root and never changes a count again. So the counts down to a level, the
top, can be drawn first. The counts below each node of that level, a part, follow from its released
count and the measurements below it. A release in parts has the law, the guarantee and the files of
one that is drawn at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import cast

import msgspec
import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Certified
from congenial.data.counts import open_source
from congenial.data.row_weights import unweighted
from congenial.data.spelling import odd_names
from congenial.domain.names import KIND, Names
from congenial.domain.tree import Path as NodePath
from congenial.domain.tree import Tree
from congenial.errors import DataError, PlanError
from congenial.imaging.top_down import TopDown, descending
from congenial.invariants.feasibility.feasible import check_pinned
from congenial.invariants.resolved import checked_draws
from congenial.invariants.written import consistent, exactly, nonnegative, resolve_invariant
from congenial.noise.additive import Additive
from congenial.noise.law import find_law
from congenial.plan.fields import refuse, refuse_level
from congenial.plan.plan import Plan, named_nodes
from congenial.plan.sections import Hierarchy, Privacy
from congenial.randomness import Randomness
from congenial.releases import directory as files
from congenial.releases.accuracy import (
    LevelAccuracy,
    Margins,
    compare_level,
    largest,
    margins_of_measured,
)
from congenial.releases.certificate import Certificate, certify
from congenial.releases.file_table import Column, every, joined
from congenial.releases.intervals import StatedAccuracy, intervals
from congenial.releases.measurements import measurement_columns
from congenial.releases.model import Model, build_model, claim, invariant_of
from congenial.releases.orders import Order, Written
from congenial.releases.rows import columns_of, key_cells
from congenial.releases.specification import (
    LevelNodes,
    RecordMoves,
    SumsOfParts,
    WorstNeighbours,
    worst_neighbours,
)
from congenial.types import FloatArray, IntArray

log = logging.getLogger("congenial.releases.by_parts")

# Children of each node that stands for those below the cut. With three, a record can move in every
# way in which it can move in any larger tree.
_CHILDREN = 3
# Most nodes that stand for others.
_MOST = 5_000_000
_LEVEL = "parts"
# Keys of invariants that name levels or nodes.
_KEYS = ("publish_exactly", "at_least", "at_most")


@dataclass(frozen=True)
class Cut:
    """A plan, and the level below each of whose nodes one part is drawn."""

    plan: Plan
    depth: int  # Of the level; the root has 0.

    @property
    def level(self) -> str:
        """Name of the level."""
        return self.plan.place_names[self.depth]

    def top_plan(self, depth: int) -> Plan:
        """Return a plan that counts the levels down to a depth, for counting only."""
        plan, given = self.plan, self.plan.hierarchy
        levels = Hierarchy(given.root, given.levels[:depth], given.domain, given.names_repeat)
        return Plan(plan.data, levels, Privacy(plan.privacy.neighbours, plan.privacy.epsilon))


def cut_at(plan: Plan, level: str) -> Cut:
    """Return a plan cut at a level; refuse what a release in parts does not cover.

    Raises PlanError.
    """
    inner = plan.hierarchy.levels[:-1]
    if plan.counted_tables:
        refuse(_LEVEL, f"is {level!r} for a plan of tables", "leave parts out")
    if level not in inner:
        if not inner:
            refuse(_LEVEL, "is given for a plan of one level", "leave parts out")
        refuse_level(_LEVEL, level, inner)
    cut = Cut(plan, plan.place_names.index(level))
    if plan.method.name != "topdown":
        refuse(
            "method.name",
            f"is {plan.method.name!r}, and only TopDown draws parts of a release by themselves",
            "give 'topdown', or leave parts out",
        )
    if not plan.invariants.nonnegative:
        refuse(
            "invariants.nonnegative",
            "is false, and the error margins then need simulated releases of all counts at once",
            "give true, or leave parts out",
        )
    if level in plan.unmeasured_levels:
        refuse(
            f"privacy.split.{level}",
            f"is 0, and a release in parts needs measurements of {level!r}",
            f"give {level!r} a share, or cut at another level",
        )
    for key, given in (("sums", plan.accuracy.sums), ("simultaneous", plan.accuracy.simultaneous)):
        if given:
            refuse(
                f"accuracy.{key}", "is given for a release in parts", f"leave {key} or parts out"
            )
    deeper = set(plan.place_names[cut.depth + 1 :])
    for key in _KEYS:
        for name in deeper.intersection(getattr(plan.invariants, key)):
            refuse(f"invariants.{key}", f"holds {name!r}, a level below {level!r}", _above(level))
    return cut


def _above(level: str) -> str:
    return f"name counts of {level!r} or above, or leave parts out"


@dataclass(frozen=True, eq=False)
class Drawn:
    """Released counts of the top or of a part, with the other numbers of their rows."""

    model: Model = field(repr=False)
    found: Margins = field(repr=False)
    counts: IntArray = field(repr=False)  # The confidential counts.
    measured: IntArray = field(repr=False)
    values: IntArray

    def columns(self, *, truth: bool) -> dict[str, Column]:
        """Return the columns of the released table that do not name a count."""
        measured = self.measured if self.model.plan.release.measurements else None
        image = cast(Certified, TopDown(self.model.mechanism, self.model.resolved))
        ends = intervals(self.model, image, self.found, self.values, measured).columns
        own: dict[str, Column] = {"value": every(self.values), **ends}
        return {**own, "truth": every(self.counts)} if truth else own

    def measurements(self) -> dict[str, Column]:
        """Return the columns of the table of measurements that do not name a count."""
        model = self.model
        return {**measurement_columns(model.mechanism, model.resolved.pinned, self.measured)}


@dataclass(frozen=True, eq=False)
class PartFacts:
    """What is stated about one part, apart from its cut node."""

    nodes: IntArray  # shape (levels,): Number of nodes of each level.
    inner: int  # Number of nodes with children.
    margins: tuple[int | None, ...]  # Largest error margin of each level below the cut.
    odd_names: tuple[str, ...]
    # Path of each leaf here that the worst neighbours name, by the path of its stand-in.
    named: Mapping[NodePath, NodePath]


def write_parts(cut: Cut, order: Order) -> Written:
    """Count, draw and write the top of a release and then its parts; return what it states.

    Raises what `release` raises, and DataError if the rows change while they are counted.
    """
    plan = cut.plan
    order.notify(f"counting rows by {cut.level}")
    with open_source(cut.top_plan(cut.depth), base=order.base, frame=order.frame) as rows:
        for one in rows.parts:
            for remark in unweighted(plan, one.known):
                log.warning("%s", remark)
        top = cast(Tree, rows.domain)
        _check_names(cut, top)
        model = build_model(plan, _stand_in(top, cut))
        guarantee = claim(model, _error(model))
        over = _over(model, top)
        _check_free(cut, order, over, model, guarantee)
        counts = rows.counted.counts
    # a count that follows from exact counts may have no measurement
    known = over.determined
    image = descending(over.mechanism, replace(over.resolved, pinned=known))
    check_pinned(over.resolved, counts, over.invariant, whole=True, domain=top)
    image.check_exact(counts)
    worst = worst_neighbours(model, guarantee)
    found = margins_of_measured(over)
    debit = order.reserve(model, guarantee)
    order.notify(f"drawing the counts down to {cut.level}")
    noisy = TopDown(over.mechanism, over.resolved).measure(counts, rng=order.randomness)
    measured = np.asarray(noisy, dtype=np.int64)
    values = image.apply(np.where(known, counts, measured), order.randomness)
    values = checked_draws(over.resolved, np.asarray(values, dtype=np.int64), counts)
    drawn = Drawn(over, found, counts, measured, values)
    facts = []
    with _tables(cut, order, drawn) as write:
        at = np.flatnonzero(top.level == cut.depth).tolist()
        for number, node in enumerate(at, start=1):
            order.notify(f"part {number:,} of {len(at):,}")
            path = top.path(node)[1:]
            with open_source(plan, base=order.base, frame=order.frame, within=path) as rows:
                domain, inside = cast(Tree, rows.domain), rows.counted.counts
            if inside[cut.depth] != counts[node]:
                raise DataError(
                    "the rows changed while they were counted in parts; release a copy of them "
                    "that nobody changes."
                )
            part = _below(model, cut, domain, inside, int(values[node]), order.randomness)
            write(node, domain, part)
            facts.append(_facts(cut, domain, part, worst))
    written = [*files.TABLE, *(files.MEASUREMENTS if plan.release.measurements else ())]
    if order.simulation is not None:
        written.append(files.write_marker(order.place))
    digests = {name: files.sha256(order.place / name) for name in written}
    levels = _levels(cut, drawn, facts)
    accuracy = StatedAccuracy(plan.accuracy.confidence, found.basis, levels, ())
    made = certify(model, guarantee, digests, accuracy, order.simulation, debit, None)
    odd = dict.fromkeys((*odd_names(top), *(name for one in facts for name in one.odd_names)))
    certificate = _of_all(made, top, facts, worst)
    nodes = sum(level.nodes for level in certificate.domain.levels)
    return Written(certificate, debit, nodes, tuple(odd))


def _check_names(cut: Cut, top: Tree) -> None:
    """Refuse invariants of single nodes below the cut."""
    given = cut.plan.invariants
    for key in _KEYS:
        for name in set(getattr(given, key)) - set(cut.plan.place_names):
            try:
                named_nodes(cut.plan, top, f"invariants.{key}", (name,))
            except PlanError:
                remedy = _above(cut.level)
                refuse(
                    f"invariants.{key}", f"names {name!r}, no node down to {cut.level!r}", remedy
                )


def _stand_in(top: Tree, cut: Cut) -> Tree:
    """Return the top with a small tree below each cut node, which stands for all that may be there.

    Each level has one scale. So the loss between two neighbours depends on the levels of the counts
    that they change, and all sets of such levels that a larger tree has occur here.
    """
    deep = len(cut.plan.hierarchy.levels) - cut.depth
    size, is_cut = (_CHILDREN ** (deep + 1) - _CHILDREN) // 2, top.level == cut.depth
    if size * int(is_cut.sum()) > _MOST:
        refuse(_LEVEL, f"is {cut.level!r}, with {deep} levels below it", "cut at a deeper level")
    below, numbers = _small_tree(deep)
    before = np.cumsum(is_cut) - is_cut
    place = np.arange(len(top)) + size * before
    parents = np.full(len(top) + size * int(is_cut.sum()), -1, dtype=np.int64)
    labels = np.empty(parents.size, dtype=KIND)
    parents[place] = np.where(top.parents < 0, -1, place[top.parents])
    labels[place] = top.names.array
    roots = place[is_cut][:, None]
    inside = roots + 1 + np.arange(size)
    parents[inside] = np.where(below < 0, roots, roots + 1 + below)
    labels[inside] = numbers
    return Tree.from_parents(parents, Names(labels))


def _small_tree(deep: int) -> tuple[IntArray, Sequence[str]]:
    """Return the parents, -1 for the root, and the names of all nodes below a root, depth first.

    A node's name is its number among its siblings, from 0.
    """
    parents: list[int] = []
    names: list[str] = []

    def grow(parent: int, left: int) -> None:
        for number in range(_CHILDREN if left else 0):
            parents.append(parent)
            names.append(str(number))
            grow(len(parents) - 1, left - 1)

    grow(-1, deep)
    return np.array(parents, dtype=np.int64), names


def _over(model: Model, top: Tree) -> Model:
    """Return the model of the counts down to the cut."""
    invariant = invariant_of(model.plan, top)
    resolved = resolve_invariant(invariant, len(top), top)
    scales = np.where(resolved.pinned, np.inf, _scales(model)[top.level])
    mechanism = Additive(find_law(model.plan.privacy.noise)(scales), top)
    return replace(model, domain=top, mechanism=mechanism, invariant=invariant, resolved=resolved)


def _scales(model: Model) -> FloatArray:
    """Scale of the noise of each level; inf for one that is not measured."""
    return np.array([np.inf if each.scale is None else each.scale for each in model.levels])


def _check_free(cut: Cut, order: Order, over: Model, model: Model, found: Guarantee) -> None:
    """Refuse parts in which a count cannot change, or follows from exact counts.

    The nodes that stand for a part do not show this: they have several children each.
    """
    changes = None if found.moves is None else found.moves.changes
    deeper = model.domain.level > cut.depth
    if changes is None or (deeper & (model.determined | ~changes)).any():
        refuse(
            _LEVEL,
            f"is {cut.level!r}, below which no count differs between neighbouring datasets",
            "cut at another level, or leave parts out",
        )
    top = cast(Tree, over.domain)
    fixed = over.determined & (top.level == cut.depth)
    if not fixed.any():
        return
    plan = cut.top_plan(cut.depth + 1)
    with open_source(plan, base=order.base, frame=order.frame) as rows:
        tree = cast(Tree, rows.domain)
    children = np.bincount(tree.parents + 1, minlength=len(tree) + 1)[1:]
    if (children[tree.level == cut.depth][fixed[top.level == cut.depth]] < 2).any():
        refuse(
            _LEVEL,
            f"is {cut.level!r}, of which a node is published exactly and has one part, whose count "
            "is exact too",
            "cut at another level, or leave parts out",
        )


def _below(
    model: Model, cut: Cut, domain: Tree, counts: IntArray, total: int, rng: Randomness
) -> Drawn:
    """Measure and draw the counts below a cut node, which add up to its released count `total`.

    `domain` has the path down to the node and all below it. The node comes first in what is drawn.
    """
    parents = domain.parents[cut.depth :] - cut.depth
    parents[0] = -1
    tree = Tree.from_parents(parents, domain.names[cut.depth :])
    scales = _scales(model)[cut.depth + tree.level]
    scales[0] = np.inf
    mechanism = Additive(find_law(model.plan.privacy.noise)(scales), tree)
    asked = consistent(tree) & nonnegative()
    pinned, free = (
        resolve_invariant(one, len(tree), tree) for one in (asked & exactly([0]), asked)
    )
    image = descending(mechanism, pinned)
    measured = np.asarray(image.measure(counts[cut.depth :], rng=rng), dtype=np.int64)
    measured[0] = total  # in the place of the confidential count, which is not exact
    values = checked_draws(pinned, image.move(measured, rng), measured)
    # for readers the node's own count is not exact either
    part = replace(model, domain=tree, mechanism=mechanism, invariant=asked, resolved=free)
    found = margins_of_measured(part)
    return Drawn(part, found, counts[cut.depth :], measured, values)


# Writes the part below a node of the top, given its domain.
WritePart = Callable[[int, Tree, Drawn], None]


@contextmanager
def _tables(cut: Cut, order: Order, top: Drawn) -> Iterator[WritePart]:
    """Yield a function that appends a part to all tables, after the nodes above it."""
    names, tree = cut.plan.place_names, cast(Tree, top.model.domain)

    def of(drawn: Drawn) -> dict[tuple[str, str], dict[str, Column]]:
        found = {files.TABLE: drawn.columns(truth=order.with_truth)}
        if cut.plan.release.measurements:
            found[files.MEASUREMENTS] = drawn.measurements()
        return found

    above, written = of(top), set[int]()
    with ExitStack() as stack:
        writes = {}
        for table, own in above.items():
            stamped = order.simulation is not None
            columns = columns_of(names, tuple(own), readings=(), stamped=stamped)
            writes[table] = stack.enter_context(files.writing(order.place, table, columns))

        def write(node: int, domain: Tree, part: Drawn) -> None:
            chain = [node]
            while tree.parents[chain[0]] >= 0:
                chain.insert(0, int(tree.parents[chain[0]]))
            fresh = [v for v in chain if v not in written]
            written.update(fresh)
            for table, below in of(part).items():
                own = {
                    name: joined(
                        above[table][name].take(np.array(fresh)), column.take(slice(1, None))
                    )
                    for name, column in below.items()
                }
                keys = key_cells(names, domain, ())
                writes[table](islice(keys, len(chain) - len(fresh), None), own)

        yield write


def _facts(cut: Cut, domain: Tree, part: Drawn, worst: WorstNeighbours) -> PartFacts:
    tree = cast(Tree, part.model.domain)
    level = tree.level + cut.depth
    nodes = np.bincount(level)
    nodes[cut.depth] = 0
    found = (largest(part.found.margin[level == d]) for d in range(cut.depth + 1, nodes.size))
    start = domain.path(cut.depth)
    leaves = [leaf for leaf in _leaves(worst) if leaf[: len(start)] == start]
    return PartFacts(
        nodes,
        int((~tree.is_leaf).sum()),
        tuple(found),
        odd_names(tree),
        {leaf: (*start, *_leaf(tree, leaf[len(start) :])) for leaf in leaves},
    )


def _leaves(worst: WorstNeighbours) -> Iterator[NodePath]:
    """Yield the leaves that a pair of neighbours names, if any, as the stand-in names them."""
    ends = (worst.origin, worst.destination) if isinstance(worst, RecordMoves) else (worst.node,)
    return (end for end in ends if end is not None)


def _leaf(tree: Tree, numbers: Sequence[str]) -> NodePath:
    """Return the names below the root down to the node with these numbers among its siblings."""
    (starts, children), node = tree.children, 0
    for number in map(int, numbers):
        node = int(children[min(starts[node] + number, starts[node + 1] - 1)])
    return tree.path(node)[1:]


def _levels(cut: Cut, top: Drawn, facts: Sequence[PartFacts]) -> tuple[LevelAccuracy, ...]:
    """State the error margins of all levels."""
    level, out = top.model.domain.level, []
    for depth, name in enumerate(cut.plan.place_names):
        each = [one.margins[depth - cut.depth - 1] for one in facts if depth > cut.depth]
        known = [margin for margin in each if margin is not None]
        margin = max(known) if each and len(known) == len(each) else None
        if depth <= cut.depth:
            margin = largest(top.found.margin[level == depth])
        out.append(compare_level(cut.plan, name, margin))
    return tuple(out)


def _of_all(
    made: Certificate, top: Tree, facts: Sequence[PartFacts], worst: WorstNeighbours
) -> Certificate:
    """Return a certificate with the numbers and the names of the release's own nodes."""
    above = np.bincount(top.level, minlength=facts[0].nodes.size)
    nodes = above + sum(one.nodes for one in facts)
    inner = int((~top.is_leaf).sum()) + sum(one.inner for one in facts)
    levels = tuple(
        LevelNodes(level.name, number, level.published_exactly)
        for level, number in zip(made.domain.levels, nodes.tolist(), strict=True)
    )
    mandates = tuple(
        SumsOfParts(inner) if isinstance(one, SumsOfParts) else one for one in made.invariants
    )
    named: dict[NodePath | None, NodePath] = {
        name: path for one in facts for name, path in one.named.items()
    }
    if isinstance(worst, RecordMoves):
        ends = {"origin": named.get(worst.origin), "destination": named.get(worst.destination)}
    else:
        ends = {"node": named.get(worst.node)}
    return msgspec.structs.replace(
        made,
        domain=msgspec.structs.replace(made.domain, levels=levels),
        invariants=mandates,
        guarantee=msgspec.structs.replace(
            made.guarantee, worst_neighbours=msgspec.structs.replace(worst, **ends)
        ),
    )


def _error(model: Model) -> float:
    """Return the numerical error of all noise, which is 0 or refused."""
    error = model.mechanism.noise.sampling_error(model.mechanism.scales)
    if error > 0.0:
        refuse(
            "privacy.epsilon",
            f"is {model.plan.privacy.epsilon:g}, which takes noise so wide that its draws have a "
            "numerical error, and parts do not add these up",
            "give a larger epsilon, or leave parts out",
        )
    return error
