"""The section `table` of a plan: attributes, their margins, and the queries that they make.

A query is a margin at a level of the hierarchy, such as "county: sex by age". Plans with a table
name queries wherever other plans name levels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from math import prod
from typing import Annotated, NoReturn

import msgspec
from msgspec import Meta

from congenial.domain.table import UNNAMED, Margin, Table
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, CongenialError, PlanError
from congenial.plan.fields import Section, refuse
from congenial.plan.sections import Data
from congenial.wording import nearest, one_of, reason_of, show

TOTAL, BY, COLON = "total", " by ", ": "
# Columns of the released table that name the margin of each count, and its table in plans with
# several.
MARGIN, TABLE_OF = "margin", "table"
# Most values of an attribute; each is a cell at every place of the deepest level.
_MOST_VALUES = 10_000
# Most cells at all places; each takes about 100 bytes while it is counted.
_MOST_CELLS = 50_000_000
_WHAT = (
    "list its values as text in quotes, such as sex = ['F', 'M'], or name a file of them, "
    "{ file = 'sexes.csv', column = 'sex' }"
)
Name = Annotated[str, Meta(pattern=r"\S", description="give text in quotes")]
Values = Annotated[tuple[Name, ...], Meta(min_length=1, max_length=_MOST_VALUES, description=_WHAT)]
Listed = Annotated[
    tuple[Name, ...],
    Meta(min_length=1, description="list margins, such as ['total', 'sex', 'sex by age']"),
]
Asked = Annotated[
    Listed | dict[str, Listed],
    Meta(
        description="list margins for every level, such as ['total', 'sex by age'], or give a "
        "table of such lists by level"
    ),
]
# No pattern here: msgspec 0.22 frees the pattern of text that may be a list instead, and crashes.
Condition = Annotated[
    dict[str, str | tuple[str, ...]],
    Meta(description="give tables, such as { age = '0-14', status = ['married', 'widowed'] }"),
]


class Groups(Section, frozen=True):
    """Values of an attribute in groups; margins may name the groups like an attribute."""

    of: Name  # The attribute.
    # Each group's values; every value of the attribute belongs to one group.
    values: Annotated[
        dict[str, Values],
        Meta(description="give a table of lists, such as { minor = ['0-17'], adult = ['18+'] }"),
    ]


class CrossTable(Section, frozen=True):
    """Attributes of the records, counted at every level in the margins that are asked for."""

    # Columns of the rows or the lookup, each with its public values as text.
    attributes: Annotated[
        dict[str, Values],
        Meta(min_length=1, description="give a table, such as { sex = ['F', 'M'] }"),
    ]
    # Margins for every level, or by level: "total", an attribute or a group, or several joined by
    # " by ". The single cells at the deepest level are always counted.
    margins: Asked
    groups: Annotated[
        dict[str, Groups],
        Meta(description="give a table, such as { voting = { of = 'age', values = { ... } } }"),
    ] = msgspec.field(default_factory=dict)
    # Conditions on attributes and groups; no record meets one (structural zeros).
    impossible: Annotated[
        tuple[Condition, ...],
        Meta(description="give a list of tables, such as [{ age = '0-14', status = 'married' }]"),
    ] = ()

    def __post_init__(self) -> None:
        """Check the names, and that no condition is empty."""
        for name in (*self.attributes, *self.groups):
            if not name.strip() or name == TOTAL or BY in name or ":" in name:
                refuse(
                    "table.attributes" if name in self.attributes else "table.groups",
                    f"has the name {show(name)}",
                    f"give names other than '{TOTAL}', without '{BY}' and ':'",
                )
        for name in (key for one in self.impossible for key, values in one.items() if not values):
            refuse("table.impossible", f"gives no value of {show(name)}", "list one or more")

    @property
    def readings(self) -> tuple[str, ...]:
        """Names of the attributes and groups: each is a column of the released table."""
        return (*self.attributes, *self.groups)

    def workload(self, places: Sequence[str], geography: Tree, name: str = UNNAMED) -> Workload:
        """Return the queries over a geography, whose levels are `places`."""
        cells = prod(map(len, self.attributes.values())) * len(geography.leaves)
        if cells > _MOST_CELLS:
            refuse(
                "table.attributes",
                f"makes {cells:,} single cells at {len(geography.leaves):,} places, where "
                f"{_MOST_CELLS:,} is the most",
                "give fewer values, or leave an attribute out",
            )
        try:
            table = Table(
                self.attributes,
                {name: (one.of, one.values) for name, one in self.groups.items()},
                geography,
                places,
                list(self.impossible) or None,
                name,
            )
        except CongenialError as error:
            raise PlanError(f"{_key(name)}: {reason_of(error)}") from None
        listed = self.margins
        if not isinstance(listed, dict):
            listed = dict.fromkeys(places, listed)
        asked: dict[str | int, list[Margin]] = {}
        for level, margins in listed.items():
            key = f"{_key(name)}.margins.{level}"
            if level not in places:
                refuse_level(key, level, places)
            asked[level] = [self._margin(table, key, text) for text in margins]
        return Workload.of(table, asked)

    def _margin(self, table: Table, key: str, text: str) -> Margin:
        names = () if text == TOTAL else tuple(text.split(BY))
        known = self.readings
        for name in names:
            if name not in known:
                refuse(
                    key,
                    f"holds {show(text)}, and {show(name)} is no attribute or group",
                    f"give '{TOTAL}', or {one_of(known)}, several joined by "
                    f"'{BY}'{nearest(name, known)}",
                )
        try:
            return table.margin(names)
        except CongenialError as error:
            raise PlanError(f"{key} holds {show(text)}: {reason_of(error)}") from None


class NamedTable(CrossTable, frozen=True):
    """One of several tables over the same places, whose records are rows of its own."""

    rows: Data | None = None  # By default the rows of the plan's section `data`.


def _key(name: str) -> str:
    return "table" if name == UNNAMED else f"tables.{name}"


def margin_text(margin: Margin) -> str:
    """Write a margin as plans do, such as "sex by age"."""
    return BY.join(margin) or TOTAL


def query_names(workload: Workload) -> tuple[str, ...]:
    """Name every block of the queries of a plan, such as "county: sex by age".

    With several tables their name comes between: "county: people: sex by age".
    """
    return tuple(
        f"{block.table.level_names[block.level]}: {named(block.table)}{margin_text(block.margin)}"
        for block in workload.blocks
    )


def named(table: Table) -> str:
    """Write the name of a table before its margin; empty if the plan has one table."""
    return "" if table.name == UNNAMED else f"{table.name}{COLON}"


Side = tuple[str, dict[str, str]]


def refuse_level(key: str, level: str, levels: Collection[str]) -> NoReturn:
    """Refuse a key that names a level that is not there, or a query of tables."""
    what = "query" if any(COLON in name for name in levels) else "level"
    refuse(key, f"names no {what}", f"give {one_of(levels)}{meant(level, levels)}")


def meant(name: str, levels: Collection[str]) -> str:
    """Suggest the level or query that was meant (`nearest`); a bare level means its total."""
    total = f"{name}{COLON}{TOTAL}"
    return f" (did you mean {total!r}?)" if total in levels else nearest(name, levels)


def comparison(text: str) -> tuple[Side, Side]:
    """Read a comparison such as "people >= homes: status=in use": tables, each with values."""
    sides = [side.strip() for side in text.split(">=")]
    if len(sides) != 2 or not all(sides):
        refuse(
            "invariants.as_many",
            f"holds {show(text)}, which does not compare two counts",
            "give two tables, with values where needed: 'people >= homes: status=in use'",
        )
    (more, what), (fewer, other) = (side.partition(COLON)[::2] for side in sides)
    return (more, values_of(what)), (fewer, values_of(other))


def check_comparison(text: str, workload: Workload, level: str) -> None:
    """Refuse a comparison of counts that a level does not have, or of one table with itself."""
    sides = comparison(text)
    names = [table.name for table in workload.tables]
    for name, values in sides:
        try:
            block = workload.block(tuple(values), level, name)
            workload.find(values, int(block.table.nodes(block.level)[0]), name)
        except ArgumentError as error:
            refuse(
                "invariants.as_many",
                f"holds {show(text)}, which names no count ({reason_of(error)})",
                f"give {one_of(names)}, with values of one of its margins at {level!r}",
            )
    if sides[0][0] == sides[1][0]:
        refuse(
            "invariants.as_many",
            f"holds {show(text)}, which compares a table with itself",
            f"compare two of {one_of(names)}",
        )


def values_of(what: str) -> dict[str, str]:
    """Read the values that a count is named by, such as "sex=F, age=0-17"; "total" has none."""
    if what in ("", TOTAL):
        return {}
    return dict(part.partition("=")[::2] for part in what.split(", "))


def crossing(workload: Workload) -> bool:
    """Whether two queries cross on geographies of more than one place: neither refines the other.

    Queries of several tables are taken to cross. Blocks come coarse to fine, so that each must
    refine the one before it.
    """
    if len(workload.tables) > 1:
        return True
    table = workload.tables[0]
    return not all(
        above.level <= below.level
        and len(set(zip(table.classes(above.margin), table.classes(below.margin), strict=True)))
        == len(set(table.classes(below.margin)))
        for above, below in pairwise(workload.blocks)
    )
