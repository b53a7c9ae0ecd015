"""The rows of a part in a release's files, and the facts about it that the certificate states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import cast

import numpy as np

from congenial.data.spelling import odd_names
from congenial.domain.tree import Tree
from congenial.plan.plan import Plan
from congenial.randomness import Randomness
from congenial.releases import directory as files
from congenial.releases.file_table import Column, Columns
from congenial.releases.making.part_draws import DrawnRows
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.making.part_method import PartMethod
from congenial.releases.part_models import PartFacts, facts_of, named_below
from congenial.releases.rows import columns_of, key_cells
from congenial.types import IntArray

# Names of a table's two files.
Table = tuple[str, str]


@dataclass(frozen=True, eq=False)
class DrawnPart:
    """A part that is drawn: the facts about it, and the lines below its cut node by table."""

    facts: PartFacts
    lines: Mapping[Table, Iterator[bytes]]
    columns: Mapping[Table, Columns]


# Lines of counts of the top, by table, that come before those of a part.
LinesAbove = Mapping[Table, bytes]


def method_of(plan: Plan) -> PartMethod:
    """Return the method of a plan that is released in parts; only that one is loaded."""
    if plan.method.name == "conditioning":
        from congenial.releases.making import conditioned_parts

        return conditioned_parts
    if plan.method.name in ("imaging", "posterior"):
        from congenial.releases.making import moved_parts

        return moved_parts
    from congenial.releases.making import topdown_parts

    return topdown_parts


def draw_part(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, given: FromTop, rng: Randomness
) -> DrawnPart | None:
    """Draw the counts below a cut node, see `PartMethod`."""
    below = method_of(law.plan).draw_below(law, domain, counts, node, given, rng)
    if below is None:
        return None
    own = _columns_by_table(below, with_truth=law.with_truth)
    lines = {
        table: files.csv_lines(
            islice(key_cells(law.plan.place_names, domain, ()), law.depth + 1, None),
            {name: column.take(slice(1, None)) for name, column in columns.items()},
            stamped=law.stamped,
        )
        for table, columns in own.items()
    }
    return DrawnPart(_facts(law, domain, below), lines, _typed(law, own))


def tables_of(law: PartLaw, top: DrawnRows) -> Mapping[Table, Columns]:
    """Return the columns of each table that is published, given the counts down to the cut."""
    return _typed(law, _columns_by_table(top, with_truth=law.with_truth))


def lines_above(law: PartLaw, top: DrawnRows) -> Iterator[LinesAbove]:
    """Yield the lines of the top that come before each part: its node, and those above it.

    A node above several parts comes before the first of them.
    """
    tree = cast(Tree, top.model.domain)
    own = _columns_by_table(top, with_truth=law.with_truth)
    keys, begun = list(key_cells(law.plan.place_names, tree, ())), set[int]()
    for node in np.flatnonzero(tree.level == law.depth).tolist():
        chain = [node]
        while tree.parents[chain[0]] >= 0:
            chain.insert(0, int(tree.parents[chain[0]]))
        fresh = [v for v in chain if v not in begun]
        begun.update(fresh)
        found = {}
        for table, columns in own.items():
            rows = {name: column.take(np.array(fresh)) for name, column in columns.items()}
            lines = files.csv_lines((keys[v] for v in fresh), rows, stamped=law.stamped)
            found[table] = b"".join(lines)
        yield found


def _typed(law: PartLaw, own: Mapping[Table, Mapping[str, Column]]) -> dict[Table, Columns]:
    """Return all columns of tables, given those that do not name a count."""
    names = law.plan.place_names
    return {
        table: columns_of(names, tuple(columns), readings=(), stamped=law.stamped)
        for table, columns in own.items()
    }


def _columns_by_table(drawn: DrawnRows, *, with_truth: bool) -> dict[Table, dict[str, Column]]:
    """Return the columns that do not name a count, of each table that is published."""
    found = {files.TABLE: drawn.columns(truth=with_truth)}
    if drawn.model.plan.release.measurements:
        found[files.MEASUREMENTS] = drawn.measurements()
    return found


def _facts(law: PartLaw, domain: Tree, part: DrawnRows) -> PartFacts:
    tree = cast(Tree, part.model.domain)
    named = named_below(tree, 0, domain.path(law.depth), law.worst)
    found = facts_of(tree, tree.level + law.depth, law.depth, part.found.margin, named)
    return replace(found, odd_names=odd_names(tree))
