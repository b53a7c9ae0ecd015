"""The plan file: the counts to release, their rows, the guarantee and the invariants.

A plan is TOML. `read_plan` answers every mistake with one sentence that names the key, the value
and a valid value. A `Plan` that exists has passed every check that needs no data; `exact_nodes` and
`congenial.data.counts` check the rest.
"""

from __future__ import annotations

import functools
import math
import operator
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np

from congenial.domain.table import UNNAMED
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, PlanError
from congenial.plan.cross_table import (
    COLON,
    TABLE_OF,
    TOTAL,
    CrossTable,
    NamedTable,
    check_comparison,
    crossing,
    meant,
    query_names,
    refuse_level,
    values_of,
)
from congenial.plan.fields import Section, fit, refuse
from congenial.plan.public_files import with_files
from congenial.plan.sections import (
    MEASUREMENTS,
    ROOT_LEVEL,
    Accuracy,
    Data,
    Hierarchy,
    Invariants,
    Method,
    Privacy,
    Publication,
    best_method,
)
from congenial.types import FloatArray
from congenial.wording import nearest, on_a_line, one_of, reason_of, show

# Tolerance for the sum of a split's shares, which must be 1.
TOLERANCE = 1e-9
# Keys of the section `invariants` that are inequalities.
_BOUNDS = ("nonnegative", "at_least", "at_most", "as_many")
_NESTED = ", or ask for margins each of which divides the one before"
# Most nodes of a tree in which a similar name is searched for, to save time.
_MOST_COMPARED = 100_000


class Plan(Section, frozen=True):
    """A checked plan; `msgspec.to_builtins` gives it as plain data.

    Raises PlanError when built from parts that contradict each other.
    """

    data: Data
    hierarchy: Hierarchy
    privacy: Privacy
    invariants: Invariants = Invariants()
    method: Method = Method()
    release: Publication = Publication()
    accuracy: Accuracy = Accuracy()
    table: CrossTable | None = None
    # Tables of different records over the same places, by name, in the place of `table`.
    tables: dict[str, NamedTable] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check each section, which Python code may have built, and the rules beyond types."""
        for name in self.__struct_fields__:
            section = getattr(self, name)
            if section is None or name == "tables":
                continue
            fit(msgspec.to_builtins(section, enc_hook=float), type(section), name)
        if self.hierarchy.domain == "lookup" and self.data.lookup is None:
            refuse(
                "hierarchy.domain",
                "is 'lookup' and the plan has no data.lookup",
                "add data.lookup = { source, key, on }, or name a file that lists every node",
            )
        _check_tables(self)
        _check_table(self)
        _check_weight(self)
        _check_exact(self)
        _check_neighbours(self)
        _check_split(self)
        _check_ledger(self)
        _check_outputs(self)

    @property
    def place_names(self) -> tuple[str, ...]:
        """Every level of the hierarchy, coarse to fine, the root's first."""
        return (ROOT_LEVEL, *self.hierarchy.levels)

    @property
    def counted_tables(self) -> Mapping[str, CrossTable]:
        """The tables by name; empty if the plan counts the nodes of a tree."""
        return self.tables if self.table is None else {UNNAMED: self.table}

    @property
    def attributes(self) -> Mapping[str, tuple[str, ...]]:
        """The attributes of all tables with their values; empty if the plan has no table."""
        every = [one.attributes for one in self.counted_tables.values()]
        return {name: values for listed in every for name, values in listed.items()}

    @property
    def reading_columns(self) -> tuple[str, ...]:
        """Columns of the released table that name a query, after its margin's; in plans of tables.

        With several tables the first is the table's name.
        """
        named = dict.fromkeys(name for one in self.counted_tables.values() for name in one.readings)
        return (TABLE_OF, *named) if self.tables else tuple(named)

    @property
    def smallest(self) -> Workload | None:
        """The queries over one place a level; their names are those over any places."""
        found = self.domain(Tree.from_paths([self.place_names]))
        return found if isinstance(found, Workload) else None

    @property
    def level_names(self) -> tuple[str, ...]:
        """Every level of counts, coarse to fine, by depth; for tables their queries."""
        found = self.smallest
        return self.place_names if found is None else query_names(found)

    @property
    def finest_names(self) -> tuple[str, ...]:
        """The deepest level, or for tables the query of the single cells of each."""
        found, names = self.smallest, self.level_names
        if found is None:
            return names[-1:]
        owners = [block.table.name for block in found.blocks]
        return tuple(dict(zip(owners, names, strict=True)).values())

    @property
    def crossing(self) -> bool:
        """Whether margins cross, so that the counts are no tree."""
        found = self.smallest
        return found is not None and crossing(found)

    def domain(self, tree: Tree) -> Tree | Workload:
        """Return the counts over a hierarchy: its nodes, or the queries of the plan's tables."""
        queries = [
            table.workload(self.place_names, tree, name)
            for name, table in self.counted_tables.items()
        ]
        return functools.reduce(operator.add, queries) if queries else tree

    @property
    def parts(self) -> tuple[Plan, ...]:
        """A plan for each table and its rows, for counting; the plan itself without `tables`."""
        if not self.tables:
            return (self,)
        privacy = Privacy(self.privacy.neighbours, self.privacy.epsilon)
        return tuple(
            Plan(table.rows or self.data, self.hierarchy, privacy, tables={name: table})
            for name, table in self.tables.items()
        )

    @property
    def exact_levels(self) -> tuple[str, ...]:
        """Levels published exactly as a whole, coarse to fine."""
        return tuple(v for v in self.level_names if v in self.invariants.publish_exactly)

    @property
    def unmeasured_levels(self) -> tuple[str, ...]:
        """Levels without noise of their own, by `split` or `goal`, not published exactly."""
        given = self.privacy.split if self.privacy.goal is None else self.privacy.goal
        if given is None:
            return ()
        exact = self.exact_levels
        return tuple(v for v in self.level_names if not given.get(v) and v not in exact)


def checked_plan(plan: object) -> Plan:
    """Return a plan that a caller gave; refuse anything else, such as a path."""
    if not isinstance(plan, Plan):
        how = f"cg.read_plan({plan!r})" if isinstance(plan, str) else "a result of cg.read_plan"
        raise ArgumentError(f"plan is a {type(plan).__name__}, not a plan; give {how}.")
    return plan


def read_plan(path: str | Path) -> Plan:
    """Read a plan file.

    Parameters
    ----------
    path : path of a TOML file

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        If the file cannot be read or has a mistake; the sentence names the key, the value and
        a valid value.
    """
    if not isinstance(path, str | os.PathLike):
        raise PlanError(f"path is {show(path)}; give the path of a TOML file.")
    path = Path(path)
    shown = repr(str(path))
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise PlanError(f"the plan {shown} is not UTF-8 text; save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise PlanError(
            f"the plan {shown} cannot be read ({reason.lower()}); give the path of a TOML file."
        ) from None
    return parse_plan(text, shown, base=path.parent)


def parse_plan(text: str, shown: str = "", *, base: Path | None = None) -> Plan:
    """Understand the text of a plan.

    Parameters
    ----------
    text : str
        TOML, as in a plan file.
    shown : str
        Name of its file in messages.
    base : Path, optional
        Directory of the files of values and bounds that the plan names. None refuses such files.

    Returns
    -------
    Plan

    Raises
    ------
    PlanError
        As `read_plan`, and if the text is no text.
    """
    if not isinstance(text, str):
        raise PlanError(f"text is {show(text)}; give a plan's text, or its file to read_plan.")
    named = f"the plan {shown}".rstrip()
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = " ".join(str(error).split()).rstrip(".")
        at = f"at line {max(1, len(text.splitlines()))}"
        what = what.replace("at end of document", f"{at}, the end of the document")
        raise PlanError(
            f"{named} is not valid TOML: {what}; correct that line, with text in quotes and "
            "each key once."
        ) from None
    except (ValueError, RecursionError):  # such as a number of thousands of digits
        raise PlanError(
            f"{named} is not valid TOML: a value is too long or too deeply nested; shorten it."
        ) from None
    return fit(_with_method(with_files(raw, base)), Plan)


def _with_method(raw: Mapping[str, object]) -> Mapping[str, object]:
    """Return a plan's data with the default method, where none is named and it has no sampler.

    A plan kept in a certificate names its method.
    """
    invariants, method = raw.get("invariants"), raw.get("method", {})
    if not isinstance(invariants, dict) or not any(map(invariants.get, _BOUNDS)):
        return raw
    if not isinstance(method, dict) or "name" in method or "sampler" in method:
        return raw
    name = best_method(bounded=True, crossing="tables" in raw or _crosses(raw)).name
    return {**raw, "method": {"name": name, **method}}


def _crosses(raw: Mapping[str, object]) -> bool:
    """Whether the margins of a plan's data cross; False where they are no table."""
    try:
        table = msgspec.convert(raw.get("table"), CrossTable)
        hierarchy = msgspec.convert(raw.get("hierarchy"), Hierarchy)
        places = ROOT_LEVEL, *hierarchy.levels
        return crossing(table.workload(places, Tree.from_paths([places])))
    except (msgspec.ValidationError, PlanError):
        return False


def exact_nodes(plan: Plan, tree: Tree | Workload) -> tuple[int, ...]:
    """Indices of the nodes that a plan publishes exactly, ascending."""
    entries = plan.invariants.publish_exactly
    return named_nodes(plan, tree, "invariants.publish_exactly", entries)


def bounds_by_node(plan: Plan, tree: Tree | Workload) -> tuple[FloatArray, FloatArray]:
    """Lower and upper bounds of a plan besides 0, shape (n,) each; infinite where there is none."""
    low, high = np.full(len(tree), -np.inf), np.full(len(tree), np.inf)
    for side, ends, tighter in (("at_least", low, np.maximum), ("at_most", high, np.minimum)):
        limits = getattr(plan.invariants, side)
        keys = {name: f"invariants.{side}.{on_a_line(name)}" for name in limits}
        for name, at in _nodes_by_entry(plan, tree, keys).items():
            ends[at] = tighter(ends[at], limits[name])
    return low, high


def named_nodes(
    plan: Plan, tree: Tree | Workload, key: str, entries: tuple[str, ...]
) -> tuple[int, ...]:
    """Indices of the nodes that a key of a plan names, ascending.

    An entry is a level's name; else a path below the root; else a path from the root; else a name
    that occurs once.
    """
    found = _nodes_by_entry(plan, tree, dict.fromkeys(entries, key))
    return tuple(sorted({v for nodes in found.values() for v in nodes}))


def _nodes_by_entry(
    plan: Plan, tree: Tree | Workload, keys: Mapping[str, str]
) -> dict[str, list[int]]:
    """Indices of the nodes that each entry names, given the key that each entry is under."""
    levels = {name: depth for depth, name in enumerate(plan.level_names)}
    found = {
        entry: np.flatnonzero(tree.level == levels[entry]).tolist()
        for entry in keys
        if entry in levels
    }
    named = [entry for entry in keys if entry not in levels]
    if isinstance(tree, Workload):
        return found | {entry: [_entry(tree, keys[entry], entry, plan)] for entry in named}
    ends = {end for entry in named for end in _ends(entry)}
    close = [v for v, name in enumerate(tree.names) if name in ends] if ends else []
    paths = {v: tree.path(v) for v in close}
    called: tuple[dict[str, list[int]], ...] = ({}, {}, {})
    for v, path in paths.items():
        for names, start in zip(called, (1, 0, -1), strict=True):
            names.setdefault("/".join(path[start:]), []).append(v)
    for entry in named:
        nodes: list[int] = next((names[entry] for names in called if entry in names), [])
        if len(nodes) == 1:
            found[entry] = nodes
        elif nodes:
            refuse(
                keys[entry],
                f"names {entry!r}, and {len(nodes)} nodes are called so",
                f"give the path of one below the root, such as {'/'.join(paths[nodes[0]][1:])!r}",
            )
        else:
            refuse(
                keys[entry],
                f"names {entry!r}, which is neither a level nor a node",
                f"give {one_of(plan.level_names)}, or a node's path below the root"
                + nearest(entry, (*plan.level_names, *_known(plan, tree))),
            )
    return found


def _entry(workload: Workload, key: str, entry: str, plan: Plan) -> int:
    """Index of a query's count at one place, such as "King: sex=F"."""
    at, _, what = entry.rpartition(COLON)
    if not at and "=" in entry:  # as the certificate and the page name a count
        at, _, what = entry.rpartition("/")
    table = None
    if plan.tables:
        at, _, table = at.rpartition(COLON)
    try:
        return workload.find(values_of(what), at, table)
    except ArgumentError as error:
        names = plan.level_names
        # an entry without a place, or with a level in its stead, is a misspelt query
        reason = reason_of(error).split(";")[0].rstrip(".")
        known = f" ({reason})" if at and at not in plan.place_names else ""
        refuse(
            key,
            f"names {entry!r}, which is neither a query nor one of its counts{known}",
            f"give {one_of(names)}, or a count such as 'PLACE: {TOTAL}'{meant(entry, names)}",
        )


def _ends(entry: str) -> tuple[str, ...]:
    """Names that the last node of an entry may have, because names may contain "/" too."""
    parts = entry.split("/")
    return tuple("/".join(parts[at:]) for at in range(len(parts)))


def _known(plan: Plan, tree: Tree | Workload) -> tuple[str, ...]:
    """Names that may have been meant; names found only in the rows are not shown."""
    if plan.hierarchy.domain == "data" or len(tree) > _MOST_COMPARED:
        return ()
    paths = [tree.path(v) for v in range(len(tree))]
    return (*("/".join(path[1:]) for path in paths), *tree.names)


def _check_table(plan: Plan) -> None:
    """Check the table against the hierarchy and the method; it makes every query's name."""
    if not plan.counted_tables:
        if not plan.hierarchy.levels:
            refuse(
                "hierarchy.levels",
                "is empty",
                "list the columns below the root, coarse to fine, or add a table of attributes",
            )
        return
    levels = {name.casefold() for name in plan.place_names}
    for name in plan.reading_columns[bool(plan.tables) :]:
        if name.casefold() in levels:
            refuse(
                "tables" if plan.tables else "table.attributes",
                f"has {show(name)}, which is a level, too",
                "rename the column in one of them, or count it as one of them alone",
            )
    if not plan.crossing:
        return
    if plan.method.name == "posterior":
        refuse(
            "method.name",
            f"is 'posterior' while {_crossed(plan)}, for which no posterior is exact",
            f"give 'topdown' or 'imaging'{_NESTED * (not plan.tables)}",
        )
    if plan.privacy.goal is not None:
        refuse(
            "privacy.goal",
            f"is given while {_crossed(plan)}, for which no split is searched",
            "give privacy.split, a share for every query",
        )


def _crossed(plan: Plan) -> str:
    return "the plan has several tables" if plan.tables else "margins of table.margins cross"


def _of(plan: Plan, table: str, query: str) -> bool:
    """Whether a query is one of a table, or the plan has one table or none."""
    return not plan.tables or query.split(COLON)[1] == table


def _check_tables(plan: Plan) -> None:
    """Check several tables together: their names, their rows, and comparisons between them."""
    if plan.invariants.as_many and len(plan.tables) < 2:
        refuse(
            "invariants.as_many",
            "compares counts of two tables, and the plan has fewer",
            "describe two under tables.NAME, or leave it out",
        )
    if not plan.tables:
        return
    if plan.table is not None:
        refuse("tables", "stands beside the section table", "give one of them")
    for name in plan.tables:
        taken = (UNNAMED, TOTAL, *plan.place_names)
        if not name.strip() or name in taken or any(c in name for c in ":>="):
            refuse(
                "tables",
                f"has the name {show(name)}",
                f"give names other than {one_of(taken)}, without ':', '>' and '='",
            )
    if plan.hierarchy.domain in ("data", "lookup"):
        refuse(
            "hierarchy.domain",
            f"is {show(plan.hierarchy.domain)} in a plan of several tables",
            "name a public file that lists every node",
        )
    _check_rows(plan)
    found = plan.smallest
    if found is not None:
        for text in plan.invariants.as_many:
            check_comparison(text, found, plan.place_names[-1])


def _check_rows(plan: Plan) -> None:
    """Check that no record counts in two tables, and that a ledger knows all rows by one name."""
    rows: dict[tuple[str, str | None], str] = {}
    for name, table in plan.tables.items():
        data = table.rows or plan.data
        other = rows.setdefault((os.path.normpath(data.source), data.table), name)
        if other != name:
            refuse(
                f"tables.{name}.rows",
                f"has the source of tables.{other}, so a record would count in both",
                f"name other rows, or count these margins in {other} too",
            )
        if table.rows is not None and data.name is not None:
            refuse(
                f"tables.{name}.rows.name",
                "is given, and the rows of several tables have one budget and one name",
                "name all of them by data.name",
            )
        if data.where is not None:
            refuse(
                f"tables.{name}.rows.where",
                "is given in a plan of several tables",
                "filter the rows before, for example in a view of a DuckDB file",
            )
    if plan.privacy.ledger is not None and plan.data.name is None:
        refuse(
            "data.name",
            "is missing, and the rows of several tables have one budget",
            "give all of them one name, such as name = 'census'",
        )


def _check_weight(plan: Plan) -> None:
    weight = plan.data.weight
    columns = (*plan.hierarchy.levels, *plan.attributes)
    if weight is not None and weight.casefold() in map(str.casefold, columns):
        refuse(
            "data.weight",
            f"is {show(weight)}, which is {'counted by' if plan.attributes else 'a level'}, too",
            "name the column with the number of records of each row, or leave data.weight out",
        )


def _check_exact(plan: Plan) -> None:
    entries, key = plan.invariants.publish_exactly, "invariants.publish_exactly"
    folded = {} if plan.counted_tables else {v.casefold(): v for v in plan.level_names}
    for entry in set(entries) - set(plan.level_names):
        level = folded.get(entry.casefold())
        if level is not None and "/" not in entry:
            refuse(
                key,
                f"holds {entry!r}, which is not a level",
                f"give a node's path below the root, or a level (did you mean '{level}'?)",
            )
    for side in ("at_least", "at_most"):
        for name in set(plan.exact_levels) & set(getattr(plan.invariants, side)):
            refuse(
                f"invariants.{side}.{on_a_line(name)}",
                "bounds a level that invariants.publish_exactly holds, too",
                "name it in one of them, because an exact count is not moved",
            )
    for name in set(plan.finest_names) & set(entries):
        refuse(
            key,
            f"holds {name!r}, the deepest level, so every count would be published exactly and "
            "nothing would be protected",
            "publish coarser levels or single nodes exactly",
        )


def _check_neighbours(plan: Plan) -> None:
    exact = plan.invariants.publish_exactly
    if plan.privacy.neighbours == "add-remove" and exact:
        refuse(
            "privacy.neighbours",
            f"is 'add-remove' while invariants.publish_exactly holds {exact[0]!r}, so no "
            "neighbouring datasets are left (no record can enter or leave a count that is fixed) "
            "and the guarantee would be empty",
            "give neighbours = 'substitute', or leave publish_exactly empty",
        )


def _check_split(plan: Plan) -> None:
    split, goal = plan.privacy.split, plan.privacy.goal
    if split is not None:
        _check_levels(plan, "split", split, "share", "give its share to")
        for name in plan.counted_tables or ("",):
            total = math.fsum(share for at, share in split.items() if _of(plan, name, at))
            if abs(total - 1.0) > TOLERANCE:
                which = f" for {show(name)}" * bool(plan.tables)
                refuse(
                    "privacy.split",
                    f"adds up to {total:.12g}{which}",
                    f"give shares that add up to 1{' in each table' * bool(plan.tables)}",
                )
    if goal is not None:
        _check_levels(plan, "goal", goal, "weight", "weigh")
    for finest in [v for v in plan.finest_names if v in plan.unmeasured_levels]:
        # with nonnegative counts the law exists, but an exact draw takes work that grows with them
        what = "share" if goal is None else "weight"
        refuse(
            f"privacy.{'split' if goal is None else 'goal'}",
            f"gives no {what} to {finest!r}, the deepest level, so its counts would not be "
            "measured at all",
            f"give {finest!r} a {what}",
        )


def _check_levels(
    plan: Plan, name: str, given: Mapping[str, float], what: str, remedy: str
) -> None:
    levels, exact = plan.level_names, plan.exact_levels
    for level, number in given.items():
        key = f"privacy.{name}.{level}"
        if level not in levels:
            refuse_level(key, level, levels)
        if number > 0 and level in exact:
            refuse(
                key,
                f"is {show(number)}, but the level is published exactly and needs no {what}",
                f"{remedy} the other levels, or take it out of invariants.publish_exactly",
            )
        follows = [v for v in exact if levels.index(v) > levels.index(level) and not plan.crossing]
        if number > 0 and follows:
            refuse(
                key,
                f"is {show(number)}, but the level's counts follow from {follows[0]!r}, which is "
                f"published exactly, so the level needs no {what}",
                f"{remedy} the finer levels",
            )


def _check_ledger(plan: Plan) -> None:
    """Require a name if the path does not identify the rows."""
    data = plan.data
    pattern = any(c in data.source for c in "*?[")
    if plan.privacy.ledger is not None and data.name is None and pattern:
        refuse(
            "data.name",
            f"is missing, and {show(data.source)} is a pattern, which may match other files later",
            "give the rows a name that every plan for them uses, such as name = 'trips'",
        )


def _check_outputs(plan: Plan) -> None:
    """Check what is written against the method and the levels."""
    if plan.release.measurements and plan.method.name == "conditioning":
        refuse(
            "release.publish",
            f"holds {MEASUREMENTS!r} while method.name is 'conditioning', which draws without "
            "measurements, so they would cost epsilon again",
            "give another method.name (the other methods start from measurements), or leave "
            f"{MEASUREMENTS!r} out",
        )
    levels = plan.level_names
    for level in plan.accuracy.required or {}:
        if level not in levels:
            refuse_level(f"accuracy.required.{level}", level, levels)
