"""The plan file: what is released, from which rows, under which guarantee and mandates.

A plan is TOML. `read_plan` answers every mistake by one sentence that names the key, the value and
what would be right. A `Plan` that exists has passed every check that needs no data; what needs
the nodes themselves is checked by `exact_nodes` and by `congenial.data`.
"""

from __future__ import annotations

import math
import tomllib
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np

from congenial.errors import PlanError
from congenial.fields import fit, nearest, one_of, refuse, show
from congenial.tree import Tree

ROOT_LEVEL = "root"
NEIGHBOURS = ("substitute", "add-remove")
NOISES = ("discrete-laplace",)
METHODS = ("conditioning", "imaging")
SAMPLERS = ("auto", "exact")
DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db")
TABLES = (".parquet", ".csv", ".csv.gz")
# How far the shares of a split may be from adding up to 1.
TOLERANCE = 1e-9
_EXAMPLES = {
    "data.source": "name the file that holds the rows, such as source = 'trips.parquet'",
    "data.lookup": "give source, key and on, all three",
    "hierarchy.root": "name the root, such as root = 'New York City'",
    "hierarchy.levels": "list the columns below the root, coarse to fine",
    "hierarchy.domain": "give 'lookup', a file that lists every node, or 'data', which shows by a "
    "node's absence that it has no row",
    "privacy.neighbours": f"give {one_of(NEIGHBOURS)}",
    "privacy.epsilon": "give a positive number, such as epsilon = 1.0",
}


class Lookup(msgspec.Struct, frozen=True):
    """A table with one row a key, joined to the rows.

    Attributes
    ----------
    source : str
        A CSV or Parquet file.
    key : str
        Its column of unique keys.
    on : str
        The column of the rows that holds such keys.
    """

    source: str
    key: str
    on: str


class Data(msgspec.Struct, frozen=True):
    """Where the rows are.

    Attributes
    ----------
    source : str
        A Parquet or CSV file (also .csv.gz), a glob of these, or a DuckDB or SQLite file.
    where : str, optional
        One SQL condition; rows that fail it are left out, and so are nodes of the domain.
    lookup : Lookup, optional
    table : str, optional
        Table of a DuckDB or SQLite file.
    """

    source: str
    where: str | None = None
    lookup: Lookup | None = None
    table: str | None = None


class Hierarchy(msgspec.Struct, frozen=True):
    """What is counted.

    Attributes
    ----------
    root : str
        Name of the root's node.
    levels : tuple of str
        A column a level, coarse to fine, below the root.
    domain : str
        Where the nodes come from: "lookup", a CSV or Parquet file with the level columns, or
        "data", which shows by a node's absence that it has no row.
    names_repeat : bool
        Whether a name may occur under several parents, as months do under years.
    """

    root: str
    levels: tuple[str, ...]
    domain: str
    names_repeat: bool = False


class Privacy(msgspec.Struct, frozen=True):
    """The guarantee asked for.

    Attributes
    ----------
    neighbours : {"substitute", "add-remove"}
    epsilon : float
        The final guarantee, inequalities charged.
    split : dict of str to float, optional
        Share of epsilon for each level, adding up to 1; a level without a share is not measured.
        Equal shares over the levels that can change where not given.
    noise : {"discrete-laplace"}
    """

    neighbours: str
    epsilon: float
    split: dict[str, float] | None = None
    noise: str = "discrete-laplace"


class Invariants(msgspec.Struct, frozen=True):
    """What the release must satisfy besides adding up.

    Attributes
    ----------
    publish_exactly : tuple of str
        Levels ("root" or a column), or nodes by path below the root ("Queens/132") or by name.
    nonnegative : bool
    """

    publish_exactly: tuple[str, ...] = ()
    nonnegative: bool = False


class Method(msgspec.Struct, frozen=True):
    """How the release is made to satisfy its invariants.

    Attributes
    ----------
    name : {"conditioning", "imaging"}
    sampler : {"auto", "exact"}
        For conditioning.
    """

    name: str = "conditioning"
    sampler: str = "auto"


class Plan(msgspec.Struct, frozen=True):
    """A checked plan; `msgspec.to_builtins` gives it as plain data.

    Raises
    ------
    PlanError
        When built from parts that contradict each other.
    """

    data: Data
    hierarchy: Hierarchy
    privacy: Privacy
    invariants: Invariants = Invariants()
    method: Method = Method()

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        _check_data(self)
        _check_hierarchy(self)
        _check_exact(self)
        _check_privacy(self)
        _check_split(self)
        _check_method(self)

    @property
    def level_names(self) -> tuple[str, ...]:
        """Every level, coarse to fine, the root's first; the position is the level's depth."""
        return (ROOT_LEVEL, *self.hierarchy.levels)

    @property
    def exact_levels(self) -> tuple[str, ...]:
        """Levels published exactly as a whole, coarse to fine."""
        return tuple(v for v in self.level_names if v in self.invariants.publish_exactly)

    @property
    def unmeasured_levels(self) -> tuple[str, ...]:
        """Levels without noise of their own, by `split`, that are not published exactly."""
        split = self.privacy.split
        if split is None:
            return ()
        exact = self.exact_levels
        return tuple(v for v in self.level_names if not split.get(v) and v not in exact)


def read_plan(path: str | Path) -> Plan:
    """Read a plan file.

    Parameters
    ----------
    path : path of a TOML file

    Raises
    ------
    PlanError
        If the file cannot be read or has a mistake; the sentence names the key, the value and
        what would be right.
    """
    path = Path(path)
    shown = repr(str(path))
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise PlanError(f"the plan {shown} does not exist; give the path of a TOML file.") from None
    except IsADirectoryError:
        raise PlanError(f"the plan {shown} is a directory; give the path of a TOML file.") from None
    except UnicodeDecodeError:
        raise PlanError(f"the plan {shown} is not UTF-8 text; save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise PlanError(
            f"the plan {shown} cannot be read ({reason}); give a readable TOML file."
        ) from None
    return parse_plan(text)


def parse_plan(text: str) -> Plan:
    """Understand the text of a plan.

    Raises
    ------
    PlanError
        As `read_plan`.
    """
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what = " ".join(str(error).split()).rstrip(".")
        raise PlanError(f"the plan is not valid TOML: {what}; correct it there.") from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, brackets as deep
        raise PlanError(
            "the plan is not valid TOML: a value is too long or too deeply nested; shorten it."
        ) from None
    fit(raw, Plan, examples=_EXAMPLES)
    plan: Plan = msgspec.convert(raw, Plan)
    return plan


def exact_nodes(plan: Plan, tree: Tree) -> tuple[int, ...]:
    """Indices of the nodes that a plan publishes exactly, ascending.

    An entry is a level's name; else a path below the root; else a path from the root; else a name
    that occurs once.

    Raises
    ------
    PlanError
        If an entry is neither a level nor a node, or fits several nodes.
    """
    paths = [tree.path(v) for v in range(len(tree))]
    readings: list[dict[str, list[int]]] = [{}, {}, {}]
    for node, path in enumerate(paths):
        for reading, name in zip(readings, (path[1:], path, path[-1:]), strict=True):
            reading.setdefault("/".join(name), []).append(node)
    found: set[int] = set()
    for entry in plan.invariants.publish_exactly:
        if entry in plan.level_names:
            found.update(np.flatnonzero(tree.level == plan.level_names.index(entry)).tolist())
            continue
        nodes = next((reading[entry] for reading in readings if entry in reading), [])
        if len(nodes) == 1:
            found.update(nodes)
        elif nodes:
            refuse(
                "invariants.publish_exactly",
                f"names {entry!r}, and {len(nodes)} nodes are called so",
                f"give the path of one below the root, such as {'/'.join(paths[nodes[0]][1:])!r}",
            )
        else:
            # names found only in the rows are not shown
            known = () if plan.hierarchy.domain == "data" else (*readings[0], *readings[2])
            refuse(
                "invariants.publish_exactly",
                f"names {entry!r}, which is neither a level nor a node",
                f"give {one_of(plan.level_names)}, or a node's path below the root"
                + nearest(entry, (*plan.level_names, *known)),
            )
    return tuple(sorted(found))


def _choose(key: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        refuse(key, f"is {show(value)}", f"give {one_of(known)}{nearest(str(value), known)}")


def _check_data(plan: Plan) -> None:
    data = plan.data
    texts = {"data.source": data.source, "data.where": data.where, "data.table": data.table}
    if data.lookup is not None:
        texts |= {f"data.lookup.{k}": getattr(data.lookup, k) for k in ("source", "key", "on")}
    for key, value in texts.items():
        if value is not None and not value.strip():
            refuse(key, "is empty", "give a text or leave the key out")
    source = data.source.casefold()
    if source.endswith(DATABASES):
        if data.table is None:
            refuse("data.table", "is missing", f"name the table of {show(data.source)} to count")
    elif not source.endswith(TABLES):
        refuse(
            "data.source",
            f"is {show(data.source)}",
            f"give a file whose name ends in {', '.join(TABLES)} or, with data.table, in "
            f"{', '.join(DATABASES)}",
        )
    elif data.table is not None:
        refuse(
            "data.table",
            f"is {show(data.table)} and {show(data.source)} is no database",
            f"leave it out, or give a source that ends in {', '.join(DATABASES)}",
        )
    if data.lookup is not None and not data.lookup.source.casefold().endswith(TABLES):
        refuse(
            "data.lookup.source",
            f"is {show(data.lookup.source)}",
            f"give a file whose name ends in {', '.join(TABLES)}",
        )


def _check_hierarchy(plan: Plan) -> None:
    root, levels, domain = plan.hierarchy.root, plan.hierarchy.levels, plan.hierarchy.domain
    if not root.strip():
        refuse("hierarchy.root", "is empty", "name the root, such as root = 'New York City'")
    if not levels:
        refuse("hierarchy.levels", "is empty", "list at least one column below the root")
    for level in levels:
        if not level.strip():
            refuse("hierarchy.levels", f"holds {show(level)}", "give the name of a column")
        if level == ROOT_LEVEL:
            refuse(
                "hierarchy.levels",
                "holds 'root', which is the name of the root's own level",
                "leave it out, or rename the column",
            )
    folded, times = Counter(v.casefold() for v in levels).most_common(1)[0]
    if times > 1:
        twice = next(v for v in levels if v.casefold() == folded)
        refuse("hierarchy.levels", f"holds {twice!r} {times} times", "give each column once")
    if domain == "lookup":
        if plan.data.lookup is None:
            refuse(
                "hierarchy.domain",
                "is 'lookup' and the plan has no data.lookup",
                "add data.lookup = { source, key, on }, or name a file that lists every node",
            )
    elif domain != "data" and not domain.casefold().endswith(TABLES):
        refuse(
            "hierarchy.domain",
            f"is {show(domain)}",
            f"give 'lookup', 'data', or a file whose name ends in {', '.join(TABLES)}"
            + nearest(domain, ("lookup", "data")),
        )


def _check_exact(plan: Plan) -> None:
    entries, key = plan.invariants.publish_exactly, "invariants.publish_exactly"
    for entry, times in Counter(entries).items():
        if not entry.strip():
            refuse(key, f"holds {show(entry)}", "name a level or a node")
        if times > 1:
            refuse(key, f"holds {entry!r} {times} times", "name it once")
        if entry not in plan.level_names and "/" not in entry:
            folded = {v.casefold(): v for v in plan.level_names}
            if entry.casefold() in folded:
                refuse(
                    key,
                    f"holds {entry!r}, which is not a level",
                    f"give {one_of(plan.level_names)}, or a node's path below the root (did you "
                    f"mean '{folded[entry.casefold()]}'?)",
                )
    if plan.hierarchy.levels[-1] in entries:
        refuse(
            key,
            f"holds {plan.hierarchy.levels[-1]!r}, the deepest level, so that every count would be "
            "published exactly and nothing protected",
            "publish coarser levels or single nodes exactly",
        )


def _check_privacy(plan: Plan) -> None:
    privacy, exact = plan.privacy, plan.invariants.publish_exactly
    _choose("privacy.neighbours", privacy.neighbours, NEIGHBOURS)
    _choose("privacy.noise", privacy.noise, NOISES)
    epsilon: object = privacy.epsilon
    number = isinstance(epsilon, int | float) and not isinstance(epsilon, bool)
    if not number or not (privacy.epsilon > 0 and math.isfinite(privacy.epsilon)):
        refuse("privacy.epsilon", f"is {show(epsilon)}", "give a positive, finite number")
    if privacy.neighbours == "add-remove" and exact:
        refuse(
            "privacy.neighbours",
            f"is 'add-remove' while invariants.publish_exactly holds {exact[0]!r}, so that no "
            "neighbouring datasets are left (nobody can join or leave a count that is fixed) and "
            "the guarantee would be empty",
            "give neighbours = 'substitute', or do not publish it exactly",
        )


def _check_split(plan: Plan) -> None:
    split, levels, exact = plan.privacy.split, plan.level_names, plan.exact_levels
    if split is None:
        return
    for level, share in split.items():
        key = f"privacy.split.{level}"
        if level not in levels:
            refuse(key, "names no level", f"give {one_of(levels)}{nearest(level, levels)}")
        given: object = share
        number = isinstance(given, int | float) and not isinstance(given, bool)
        if not number or not 0 <= share <= 1:
            refuse(key, f"is {show(given)}", "give a share of epsilon between 0 and 1")
        if share > 0 and level in exact:
            refuse(
                key,
                f"is {show(share)}, and budget for a level published exactly is a mistake, since "
                "exact counts need no noise",
                "give its share to the other levels, or take it out of invariants.publish_exactly",
            )
        follows = [v for v in exact if levels.index(v) > levels.index(level)]
        if share > 0 and follows:
            refuse(
                key,
                f"is {show(share)}, and budget for a level whose counts follow from "
                f"{follows[0]!r}, which is published exactly, is a mistake",
                "give its share to the finer levels",
            )
    total = math.fsum(split.values())
    if abs(total - 1.0) > TOLERANCE:
        refuse("privacy.split", f"adds up to {total:.12g}", "give shares that add up to 1")
    if levels[-1] in plan.unmeasured_levels and not plan.invariants.nonnegative:
        refuse(
            "privacy.split",
            f"gives no share to {levels[-1]!r}, the deepest level, whose counts could then be "
            "anything",
            f"give {levels[-1]!r} a share, or say invariants.nonnegative = true",
        )


def _check_method(plan: Plan) -> None:
    _choose("method.name", plan.method.name, METHODS)
    _choose("method.sampler", plan.method.sampler, SAMPLERS)
    if plan.method.name == "imaging" and plan.method.sampler != "auto":
        refuse(
            "method.sampler",
            f"is {show(plan.method.sampler)} while method.name is 'imaging', which has no sampler",
            "leave it out",
        )
