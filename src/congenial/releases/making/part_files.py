"""Write a release part by part."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import msgspec
import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.data.counts import JointSource, RowSource, open_source
from congenial.data.row_weights import unweighted
from congenial.data.spelling import odd_names
from congenial.domain.tree import Tree
from congenial.errors import DataError
from congenial.plan.cut import PARTS, Cut, check_number, check_single
from congenial.plan.fields import refuse
from congenial.plan.plan import Plan
from congenial.randomness import KEY_BITS
from congenial.releases import directory as files
from congenial.releases.certificate import certify
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.making.order import Order, Written
from congenial.releases.making.part_draws import DrawnRows, check_exact, draw_top
from congenial.releases.making.part_rows import DrawnPart, PartLaw, columns_by_table, draw_part
from congenial.releases.model import Model, build_model, claim
from congenial.releases.part_models import (
    level_scales,
    levels_of_all,
    of_all,
    stand_in,
    top_model,
)
from congenial.releases.rows import columns_of, key_cells
from congenial.releases.specification import KeyedDraws, worst_neighbours
from congenial.types import IntArray

log = logging.getLogger("congenial.releases.making")
CHANGED = (
    "the rows changed while they were counted in parts; release a copy of them that nobody changes."
)


class PartSource(Protocol):
    """The rows of a release in parts."""

    @property
    def keyed(self) -> bool:
        """Whether the random words of a part follow from a key."""

    def opened(self) -> AbstractContextManager[RowSource | JointSource]:
        """Open the rows, counted down to the cut."""

    def children(self, top: Tree) -> IntArray:
        """Return the number of children of each cut node of the top."""

    def drawn(
        self, law: PartLaw, top: Tree, counts: IntArray, values: IntArray
    ) -> Iterator[DrawnPart]:
        """Draw all parts, given the top's counts and released values; in the order of the top."""


@dataclass(frozen=True, eq=False)
class RowsHere:
    """Rows that are counted in this process, once for each part."""

    cut: Cut
    order: Order
    keyed = False

    def _opened(self, plan: Plan, *within: str) -> AbstractContextManager[RowSource | JointSource]:
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

    def drawn(
        self, law: PartLaw, top: Tree, counts: IntArray, values: IntArray
    ) -> Iterator[DrawnPart]:
        """Count and draw one part after another."""
        at = np.flatnonzero(top.level == law.depth).tolist()
        for number, node in enumerate(at, start=1):
            self.order.notify(f"part {number:,} of {len(at):,}")
            with self._opened(law.plan, *top.path(node)[1:]) as rows:
                domain, inside = cast(Tree, rows.domain), rows.counted.counts
            if inside[law.depth] != counts[node]:
                raise DataError(CHANGED)
            yield draw_part(law, domain, inside, int(values[node]), self.order.randomness)


def write_parts(cut: Cut, order: Order, source: PartSource) -> Written:
    """Count, draw and write the top of a release and then its parts; return what it states.

    Raises what `release` raises, and DataError if the rows change while they are counted.
    """
    plan = cut.plan
    order.notify(f"counting rows by {cut.level}")
    with source.opened() as rows:
        for one in rows.parts:
            for remark in unweighted(plan, one.known):
                log.warning("%s", remark)
        top = cast(Tree, rows.domain)
        check_number(cut, top)
        check_single(cut, top)
        model = build_model(plan, stand_in(top, cut))
        guarantee = claim(model, _error(model))
        over = top_model(model, top)
        _check_free(cut, source, over, model, guarantee)
        counts = rows.counted.counts
    check_exact(over, counts)
    worst = worst_neighbours(model, guarantee)
    debit = order.reserve(model, guarantee)
    order.notify(f"drawing the counts down to {cut.level}")
    drawn = draw_top(over, counts, order.randomness)
    scale = tuple(level_scales(model)[cut.depth + 1 :].tolist())
    law = PartLaw(plan, cut.depth, scale, worst, order.with_truth, order.simulation is not None)
    facts = []
    with _tables(law, order.place, drawn) as write:
        at = np.flatnonzero(top.level == cut.depth).tolist()
        parts = source.drawn(law, top, counts, drawn.values)
        for node, part in zip(at, parts, strict=True):
            write(node, part)
            facts.append(part.facts)
    written = [*files.TABLE, *(files.MEASUREMENTS if plan.release.measurements else ())]
    if order.simulation is not None:
        written.append(files.write_marker(order.place))
    digests = {name: files.sha256(order.place / name) for name in written}
    levels = levels_of_all(plan, top.level, drawn.found.margin, facts)
    accuracy = StatedAccuracy(plan.accuracy.confidence, drawn.found.basis, levels, ())
    made = certify(model, guarantee, digests, accuracy, order.simulation, debit, None)
    odd = dict.fromkeys((*odd_names(top), *(name for one in facts for name in one.odd_names)))
    certificate = msgspec.structs.replace(
        of_all(made, top, facts, worst),
        keyed=KeyedDraws("shake-256", KEY_BITS, len(facts)) if source.keyed else None,
    )
    nodes = sum(level.nodes for level in certificate.domain.levels)
    return Written(certificate, debit, nodes, tuple(odd))


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


def _check_free(cut: Cut, source: PartSource, over: Model, model: Model, found: Guarantee) -> None:
    """Refuse parts in which a count cannot change, or follows from exact counts.

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
    fixed = over.determined & (top.level == cut.depth)
    if fixed.any() and (source.children(top)[fixed[top.level == cut.depth]] < 2).any():
        refuse(
            PARTS,
            f"is {cut.level!r}, of which a node is published exactly and has one part, whose count "
            "is exact too",
            "cut at another level, or leave parts out",
        )


# Writes the part below a node of the top.
WritePart = Callable[[int, DrawnPart], None]


@contextmanager
def _tables(law: PartLaw, place: Path, top: DrawnRows) -> Iterator[WritePart]:
    """Yield a function that appends a part to all tables, after the nodes above it."""
    names, tree = law.plan.place_names, cast(Tree, top.model.domain)
    above = columns_by_table(top, with_truth=law.with_truth)
    keys, written = list(key_cells(names, tree, ())), set[int]()
    with ExitStack() as stack:
        writes = {}
        for table, own in above.items():
            columns = columns_of(names, tuple(own), readings=(), stamped=law.stamped)
            writes[table] = stack.enter_context(files.writing(place, table, columns))

        def write(node: int, part: DrawnPart) -> None:
            chain = [node]
            while tree.parents[chain[0]] >= 0:
                chain.insert(0, int(tree.parents[chain[0]]))
            fresh = [v for v in chain if v not in written]
            written.update(fresh)
            for table, append in writes.items():
                own = {name: column.take(np.array(fresh)) for name, column in above[table].items()}
                append(files.csv_lines((keys[v] for v in fresh), own, stamped=law.stamped))
                append(part.lines[table])

        yield write
