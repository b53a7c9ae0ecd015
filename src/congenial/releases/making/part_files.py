"""Write a release part by part."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

import msgspec
import numpy as np

from congenial.accounting.calibration.level_units import changing_levels
from congenial.accounting.guarantee import Guarantee
from congenial.data.counts import JointSource, RowSource, open_source
from congenial.data.row_weights import unweighted
from congenial.data.spelling import odd_names
from congenial.domain.names import Names
from congenial.domain.tree import Path as NodePath
from congenial.domain.tree import Tree
from congenial.domain.workers import Workers
from congenial.errors import DataError
from congenial.invariants.feasibility.feasible import check_pinned
from congenial.plan.cut import PARTS, Cut, check_number, check_single
from congenial.plan.fields import refuse
from congenial.plan.plan import Plan
from congenial.randomness import KEY_BITS
from congenial.releases import directory as files
from congenial.releases.certificate import certify
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.making.kept_counts import KeptCounts
from congenial.releases.making.order import Order, Written
from congenial.releases.making.part_draws import DrawnRows, forest_below
from congenial.releases.making.part_law import CHANGED, CutNode, FromTop, PartLaw
from congenial.releases.making.part_method import CountedTop, TopOrder
from congenial.releases.making.part_rows import draw_part, lines_above, method_of, tables_of
from congenial.releases.making.part_source import PartSource
from congenial.releases.model import Model, build_model, claim
from congenial.releases.part_models import (
    PartFacts,
    PartShape,
    level_scales,
    levels_of_all,
    of_all,
    shape_of,
    stand_in,
    top_model,
)
from congenial.releases.specification import KeyedDraws
from congenial.types import IntArray

if TYPE_CHECKING:
    from congenial.imaging.part_values import PartValues
    from congenial.releases.making.measured_parts import MeasuredParts
    from congenial.sum_network.joined import Outside, PartMessage

log = logging.getLogger("congenial.releases.making")
# Most leaves of parts that are counted at once. Each time, the rows are opened and read anew.
_TOGETHER = 250_000


@dataclass(frozen=True, eq=False)
class RowsHere:
    """Rows that are counted in this process, once for each large part or some small ones."""

    cut: Cut
    order: Order
    kept: KeptCounts = field(default_factory=KeptCounts)
    keyed = False

    def _opened(
        self, plan: Plan, *within: NodePath
    ) -> AbstractContextManager[RowSource | JointSource]:
        return open_source(plan, base=self.order.base, frame=self.order.frame, within=within)

    def opened(self) -> AbstractContextManager[RowSource | JointSource]:
        """Open the rows, counted down to the cut."""
        return self._opened(self.cut.top_plan(self.cut.depth))

    def children(self, top: Tree) -> IntArray:
        """Return the number of children of each cut node of the top."""
        depth = self.cut.depth
        with self._opened(self.cut.top_plan(depth + 1)) as rows:
            tree = cast(Tree, rows.domain)
        found = np.bincount(tree.parents + 1, minlength=len(tree) + 1)[1:][tree.level == depth]
        if found.size != (top.level == depth).sum():
            raise DataError(CHANGED)
        return np.asarray(found)

    def shapes(self, nodes: Sequence[CutNode]) -> list[PartShape]:
        """Return the shape of the part below each node, whose counts are kept for its messages."""
        found, depth = [], self.cut.depth
        for (tree, counts), node in zip(
            self._counted(self.cut.plan, nodes, "looking at part"), nodes, strict=True
        ):
            found.append(shape_of(forest_below(tree, depth)))
            self.kept.keep(node.path, tree, counts)
        return found

    def messages(
        self, law: PartLaw, nodes: Sequence[CutNode], outsides: Sequence[Outside]
    ) -> list[PartMessage]:
        """Work out one message after another; count the parts that are not kept."""
        from congenial.releases.making.conditioned_parts import message_of_part

        parts = self._counted(law.plan, nodes, "preparing part", self.kept)
        return [
            message_of_part(law, *part, node, outside)
            for part, node, outside in zip(parts, nodes, outsides, strict=True)
        ]

    def workers(self, place: Path) -> tuple[PartValues, Workers]:
        """Return the workers of the order, and files that they read."""
        from congenial.imaging.part_values import PartValues

        return PartValues(place), self.order.workers

    def measure(self, parts: MeasuredParts, nodes: Sequence[CutNode]) -> int:
        """Count and measure one part after another."""
        from congenial.releases.making.measured_parts import MeasuredPart

        counted = self._counted(parts.law.plan, nodes, "measuring part")
        return parts.keep(
            MeasuredPart.of(parts.law, *part, node, self.order.randomness)
            for part, node in zip(counted, nodes, strict=True)
        )

    def write(
        self, law: PartLaw, top: DrawnRows, nodes: Sequence[CutNode], given: Sequence[FromTop]
    ) -> list[PartFacts] | None:
        """Count, draw and write one part after another; None if a part refuses the top's draw."""
        parts, facts = self._counted(law.plan, nodes, "part"), []
        with ExitStack() as stack:
            tables = {
                table: stack.enter_context(files.writing(self.order.place, table, columns))
                for table, columns in tables_of(law, top).items()
            }
            for part, node, one, above in zip(
                parts, nodes, given, lines_above(law, top), strict=True
            ):
                drawn = draw_part(law, *part, node, one, self.order.randomness)
                if drawn is None:
                    return None
                for table, append in tables.items():
                    append((above[table],))
                    append(drawn.lines[table])
                facts.append(drawn.facts)
        return facts

    def _counted(
        self,
        plan: Plan,
        nodes: Sequence[CutNode],
        step: str,
        kept: KeptCounts | None = None,
    ) -> Iterator[tuple[Tree, IntArray]]:
        """Yield the nodes below each one and their counts: those kept, or counted from rows."""
        others = [node for node in nodes if kept is None or node.path not in kept]
        fresh = self._from_rows(plan, others)
        for number, node in enumerate(nodes, start=1):
            self.order.notify(f"{step} {number:,} of {len(nodes):,}")
            part = None if kept is None else kept.of(node.path)
            part = next(fresh) if part is None else part
            if part[1][self.cut.depth] != node.records:
                raise DataError(CHANGED)
            yield part

    def _from_rows(self, plan: Plan, nodes: Sequence[CutNode]) -> Iterator[tuple[Tree, IntArray]]:
        """Yield the nodes below each one and their counts; count many small parts at once."""
        for group in in_groups(nodes, self._sizes(nodes)):
            with self._opened(plan, *(node.path for node in group)) as rows:
                domain, counts = cast(Tree, rows.domain), rows.counted.counts
            yield from parts_of(domain, counts, self.cut.depth, len(group))

    def _sizes(self, nodes: Sequence[CutNode]) -> list[int]:
        """Return a bound on the number of leaves below each node."""
        if self.cut.plan.hierarchy.domain == "data":  # each leaf has a record
            return [node.records for node in nodes]
        with self._opened(self.cut.plan) as rows:
            found = cast(RowSource, rows).places_below(self.cut.depth)
        return [found.get(node.path, 0) for node in nodes]


def in_groups(nodes: Sequence[CutNode], sizes: Sequence[int]) -> Iterator[list[CutNode]]:
    """Yield runs of nodes; each has few leaves below its nodes, or a single node."""
    group: list[CutNode] = []
    held = 0
    for node, size in zip(nodes, sizes, strict=True):
        if group and held + size > _TOGETHER:
            yield group
            group, held = [], 0
        group.append(node)
        held += size
    if group:
        yield group


def parts_of(
    domain: Tree, counts: IntArray, depth: int, number: int
) -> Iterator[tuple[Tree, IntArray]]:
    """Yield the tree and the counts of each part, given those of several parts in one tree.

    A part has the path down to its node and all below it; its counts are of its own rows.
    """
    starts = np.flatnonzero(domain.short_level <= depth)
    ends = np.append(starts[1:], len(domain))  # the nodes are in depth-first order
    is_cut = domain.short_level[starts] == depth
    if is_cut.sum() != number:
        raise DataError(CHANGED)
    if number == 1:
        yield domain, counts
        return
    for node, end in zip(starts[is_cut].tolist(), ends[is_cut].tolist(), strict=True):
        below = domain.parents[node + 1 : end] - (node - depth)
        names = domain.names.array[np.append(domain.above(node), np.arange(node + 1, end))]
        tree = Tree.from_parents(np.append(np.arange(-1, depth), below), Names(names))
        yield tree, np.append(np.full(depth, counts[node]), counts[node:end])


def write_parts(cut: Cut, order: Order, source: PartSource) -> Written:
    """Count, draw and write the top of a release and then its parts; return what it states.

    Raises what `release` raises, and DataError if the rows change while they are counted.
    """
    plan = cut.plan
    top = _counted_top(cut, order, source)
    method, model, tree = method_of(plan), top.stand_in, top.tree
    claims = method.claims(top)
    guarantee, worst = claims.guarantee, claims.worst
    scale, stamped = level_scales(model)[cut.depth :].tolist(), order.simulation is not None
    share = 1.0 / len(top.nodes)
    law = PartLaw(plan, cut.depth, tuple(scale), share, worst, order.with_truth, stamped)
    debit = order.reserve(model, guarantee)
    with TemporaryDirectory(prefix="parts-", dir=order.place) as aside:
        facts, asked = None, TopOrder(law, top, order, Path(aside))
        while facts is None:  # a part may refuse the top's draw, which is rare
            drawn, given = method.draw_top(asked)
            facts = source.write(law, drawn, top.nodes, given)
    written = [*files.TABLE, *(files.MEASUREMENTS if plan.release.measurements else ())]
    if order.simulation is not None:
        written.append(files.write_marker(order.place))
    digests = {name: files.sha256(order.place / name) for name in written}
    levels = levels_of_all(plan, tree.level, drawn.found.margin, facts)
    accuracy = StatedAccuracy(plan.accuracy.confidence, drawn.found.basis, levels, ())
    made = certify(model, guarantee, digests, accuracy, order.simulation, debit, drawn.prior)
    odd = dict.fromkeys((*odd_names(tree), *(name for one in facts for name in one.odd_names)))
    certificate = msgspec.structs.replace(
        of_all(made, tree, facts, worst),
        keyed=KeyedDraws("shake-256", KEY_BITS, len(facts)) if source.keyed else None,
    )
    size = sum(level.nodes for level in certificate.domain.levels)
    return Written(certificate, debit, size, tuple(odd))


def _counted_top(cut: Cut, order: Order, source: PartSource) -> CountedTop:
    """Count the rows down to the cut; refuse what no method covers in parts."""
    order.notify(f"counting rows by {cut.level}")
    with source.opened() as rows:
        for one in rows.parts:
            for remark in unweighted(cut.plan, one.known):
                log.warning("%s", remark)
        tree = cast(Tree, rows.domain)
        check_number(cut, tree)
        check_single(cut, tree)
        claimed = build_model(cut.plan, stand_in(tree, cut))
        guarantee = claim(claimed, 0.0)
        model = top_model(claimed, tree)
        _check_free(cut, source, model, claimed, guarantee)
        counts = rows.counted.counts
    check_pinned(model.resolved, counts, model.invariant, whole=True, domain=model.domain)
    nodes = _cut_nodes(model, counts, cut.depth)
    return CountedTop(cut, claimed, guarantee, model, counts, nodes, source)


def _cut_nodes(over: Model, counts: IntArray, depth: int) -> list[CutNode]:
    """Return the nodes below which the parts lie."""
    top, resolved, exact = cast(Tree, over.domain), over.resolved, over.determined
    ends = (resolved.lo, resolved.hi)
    return [
        CutNode(top.path(v)[1:], int(counts[v]), bool(exact[v]), *(float(end[v]) for end in ends))
        for v in np.flatnonzero(top.level == depth).tolist()
    ]


def _check_free(cut: Cut, source: PartSource, over: Model, model: Model, found: Guarantee) -> None:
    """Refuse parts in which a count cannot change, and cut nodes without a measurement.

    The nodes that stand for a part do not show this: they have several children each.
    """
    changes = None if found.moves is None else found.moves.changes
    deeper = model.domain.level > cut.depth
    if changes is None or (deeper & (model.determined | ~changes)).any():
        refuse(
            PARTS,
            f"is {cut.level!r}, below which no count differs between neighbouring datasets",
            "cut at another level, or leave parts out",
        )
    top = cast(Tree, over.domain)
    at = np.flatnonzero(top.level == cut.depth)
    if not (np.isfinite(over.mechanism.scales) | over.determined)[at].all():
        refuse(
            PARTS,
            f"is {cut.level!r}, of which a node has no measurement, because its count is the same "
            "in all neighbouring datasets",
            "cut at another level, or leave parts out",
        )
    fixed = over.determined[at] | ~changes[model.domain.level == cut.depth]
    # whether records move below cut nodes alone, if they move at all
    moved = changing_levels(model.domain, model.compared, model.neighbours)
    within = model.one_sided and cut.depth not in moved
    below = source.children(top) if within or fixed.any() else np.empty(0)
    if within and (below < 2).all():
        refuse(
            PARTS,
            f"is {cut.level!r}, of which each node has a single child, and no record can move to "
            "another node",
            "cut at another level, or leave parts out",
        )
    if fixed.any() and (below[fixed] < 2).any():
        refuse(
            PARTS,
            f"is {cut.level!r}, of which a node has a single child, and the counts of both are the "
            "same in all neighbouring datasets",
            "cut at another level, or leave parts out",
        )
