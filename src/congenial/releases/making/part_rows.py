"""The rows of a part in a release's files, and the facts about it that the certificate states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import cast

from congenial.data.spelling import odd_names
from congenial.domain.tree import Tree
from congenial.randomness import Randomness
from congenial.releases import directory as files
from congenial.releases.file_table import Column
from congenial.releases.making.part_draws import DrawnRows, draw_below
from congenial.releases.making.part_law import CutNode, FromTop, PartLaw
from congenial.releases.part_models import PartFacts, facts_of, named_below
from congenial.releases.rows import key_cells
from congenial.types import IntArray

# Names of a table's two files.
Table = tuple[str, str]


@dataclass(frozen=True, eq=False)
class DrawnPart:
    """A part that is drawn: the facts about it, and the lines below its cut node by table."""

    facts: PartFacts
    lines: Mapping[Table, Iterator[bytes]]


def draw_part(
    law: PartLaw, domain: Tree, counts: IntArray, node: CutNode, given: FromTop, rng: Randomness
) -> DrawnPart:
    """Draw the counts below a cut node; `draw_below` describes `domain` and `counts`."""
    if law.plan.method.name == "conditioning":
        from congenial.releases.making.conditioned_parts import condition_below

        below = condition_below(law, domain, counts, node, given, rng)
    elif law.plan.method.name == "imaging":
        from congenial.releases.making.imaged_parts import image_below

        below = image_below(law, domain, counts, node, given)
    else:
        below = draw_below(law, domain, counts, given, rng)
    lines = {
        table: files.csv_lines(
            islice(key_cells(law.plan.place_names, domain, ()), law.depth + 1, None),
            {name: column.take(slice(1, None)) for name, column in columns.items()},
            stamped=law.stamped,
        )
        for table, columns in columns_by_table(below, with_truth=law.with_truth).items()
    }
    return DrawnPart(_facts(law, domain, below), lines)


def columns_by_table(drawn: DrawnRows, *, with_truth: bool) -> dict[Table, dict[str, Column]]:
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
