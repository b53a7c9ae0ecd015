"""Write a release part by part."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import cast

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.data.counts import open_source
from congenial.data.row_weights import unweighted
from congenial.data.spelling import odd_names
from congenial.domain.tree import Tree
from congenial.errors import DataError
from congenial.plan.cut import PARTS, Cut, check_number, check_single
from congenial.plan.fields import refuse
from congenial.releases import directory as files
from congenial.releases.certificate import certify
from congenial.releases.file_table import Column, joined
from congenial.releases.intervals import StatedAccuracy
from congenial.releases.making.order import Order, Written
from congenial.releases.making.part_draws import (
    DrawnRows,
    check_exact,
    draw_below,
    draw_top,
)
from congenial.releases.model import Model, build_model, claim
from congenial.releases.part_models import (
    PartFacts,
    facts_of,
    levels_of_all,
    named_below,
    of_all,
    stand_in,
    top_model,
)
from congenial.releases.rows import columns_of, key_cells
from congenial.releases.specification import WorstNeighbours, worst_neighbours

log = logging.getLogger("congenial.releases.making")


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
        check_number(cut, top)
        check_single(cut, top)
        model = build_model(plan, stand_in(top, cut))
        guarantee = claim(model, _error(model))
        over = top_model(model, top)
        _check_free(cut, order, over, model, guarantee)
        counts = rows.counted.counts
    check_exact(over, counts)
    worst = worst_neighbours(model, guarantee)
    debit = order.reserve(model, guarantee)
    order.notify(f"drawing the counts down to {cut.level}")
    drawn = draw_top(over, counts, order.randomness)
    facts, odd = [], dict.fromkeys(odd_names(top))
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
            total = int(drawn.values[node])
            part = draw_below(model, cut.depth, domain, inside, total, order.randomness)
            write(node, domain, part)
            facts.append(_facts(cut, domain, part, worst))
            odd |= dict.fromkeys(odd_names(part.model.domain))
    written = [*files.TABLE, *(files.MEASUREMENTS if plan.release.measurements else ())]
    if order.simulation is not None:
        written.append(files.write_marker(order.place))
    digests = {name: files.sha256(order.place / name) for name in written}
    levels = levels_of_all(plan, top.level, drawn.found.margin, facts)
    accuracy = StatedAccuracy(plan.accuracy.confidence, drawn.found.basis, levels, ())
    made = certify(model, guarantee, digests, accuracy, order.simulation, debit, None)
    certificate = of_all(made, top, facts, worst)
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


def _check_free(cut: Cut, order: Order, over: Model, model: Model, found: Guarantee) -> None:
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
    if not fixed.any():
        return
    plan = cut.top_plan(cut.depth + 1)
    with open_source(plan, base=order.base, frame=order.frame) as rows:
        tree = cast(Tree, rows.domain)
    children = np.bincount(tree.parents + 1, minlength=len(tree) + 1)[1:]
    if (children[tree.level == cut.depth][fixed[top.level == cut.depth]] < 2).any():
        refuse(
            PARTS,
            f"is {cut.level!r}, of which a node is published exactly and has one part, whose count "
            "is exact too",
            "cut at another level, or leave parts out",
        )


# Writes the part below a node of the top, given its domain.
WritePart = Callable[[int, Tree, DrawnRows], None]


@contextmanager
def _tables(cut: Cut, order: Order, top: DrawnRows) -> Iterator[WritePart]:
    """Yield a function that appends a part to all tables, after the nodes above it."""
    names, tree = cut.plan.place_names, cast(Tree, top.model.domain)

    def of(drawn: DrawnRows) -> dict[tuple[str, str], dict[str, Column]]:
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

        def write(node: int, domain: Tree, part: DrawnRows) -> None:
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


def _facts(cut: Cut, domain: Tree, part: DrawnRows, worst: WorstNeighbours) -> PartFacts:
    tree = cast(Tree, part.model.domain)
    named = named_below(tree, 0, domain.path(cut.depth), worst)
    return facts_of(tree, tree.level + cut.depth, cut.depth, part.found.margin, named)
