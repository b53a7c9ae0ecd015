"""The sections of a plan file, each checked by itself; `plan.plan` checks them together."""

from __future__ import annotations

import math
from collections import Counter

import msgspec

from congenial.noise.law import find_law, law_names
from congenial.plan.fields import (
    is_number,
    nearest,
    one_of,
    refuse,
    show,
)

ROOT_LEVEL = "root"
NEIGHBOURS = ("substitute", "add-remove")
LAPLACE, GAUSSIAN = "discrete-laplace", "discrete-gaussian"
METHODS = ("conditioning", "imaging", "topdown")
NORMS = ("l2", "l1")
# Beyond 16 the numerical error, multiplied by e^epsilon, could exceed one in a hundred.
LEAST_EPSILON, MOST_EPSILON = 1e-6, 16.0
LEAST_DELTA, MOST_DELTA = 1e-15, 1e-2
# Every count has a column for each level, so that the size of a release grows with their square.
MOST_LEVELS = 200
SAMPLERS = ("auto", "exact")
DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db")
TABLES = (".parquet", ".csv", ".csv.gz")
TYPES = ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR")


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

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        for name in ("source", "key", "on"):
            check_text(f"data.lookup.{name}", getattr(self, name))
        if not self.source.casefold().endswith(TABLES):
            refuse(
                "data.lookup.source",
                f"is {show(self.source)}",
                f"give a file whose name ends in {', '.join(TABLES)}",
            )


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
    name : str, optional
        What the ledger knows the rows by; their source's path where not given.
    types : dict of str to str, optional
        Type of a column; a value that it cannot take is missing. Without one, a column of a CSV or
        SQLite file is text.
    """

    source: str
    where: str | None = None
    lookup: Lookup | None = None
    table: str | None = None
    name: str | None = None
    types: dict[str, str] | None = None

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        for name in ("source", "where", "table", "name"):
            check_text(f"data.{name}", getattr(self, name))
        for column, kind in (self.types or {}).items():
            _choose(f"data.types.{column}", kind, TYPES)
        folded = Counter(column.casefold() for column in self.types or {})
        for column, times in folded.items():
            if times > 1:
                refuse("data.types", f"names {column!r} {times} times", "give a column one type")
        source = self.source.casefold()
        if source.endswith(DATABASES):
            if self.table is None:
                refuse(
                    "data.table", "is missing", f"name the table of {show(self.source)} to count"
                )
        elif not source.endswith(TABLES):
            refuse(
                "data.source",
                f"is {show(self.source)}",
                f"give a file whose name ends in {', '.join(TABLES)} or, with data.table, in "
                f"{', '.join(DATABASES)}",
            )
        elif self.table is not None:
            refuse(
                "data.table",
                f"is {show(self.table)} and {show(self.source)} is no database",
                f"leave it out, or give a source that ends in {', '.join(DATABASES)}",
            )


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

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        root, levels, domain = self.root, self.levels, self.domain
        if not root.strip():
            refuse("hierarchy.root", "is empty", "name the root, such as root = 'New York City'")
        if not levels:
            refuse("hierarchy.levels", "is empty", "list at least one column below the root")
        if len(levels) > MOST_LEVELS:
            refuse(
                "hierarchy.levels",
                f"lists {len(levels):,} columns, more than {MOST_LEVELS}",
                "leave out levels whose counts are those of the level below",
            )
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
        if domain not in ("lookup", "data") and not domain.casefold().endswith(TABLES):
            refuse(
                "hierarchy.domain",
                f"is {show(domain)}",
                f"give 'lookup', 'data', or a file whose name ends in {', '.join(TABLES)}"
                + nearest(domain, ("lookup", "data")),
            )


class Privacy(msgspec.Struct, frozen=True):
    """The guarantee asked for.

    Attributes
    ----------
    neighbours : {"substitute", "add-remove"}
    epsilon : float
        The final guarantee, inequalities charged.
    split : dict of str to float, optional
        Share of epsilon for each level, adding up to 1; a level without a share is not measured.
        Equal shares over the levels that can change where neither it nor `goal` is given.
    goal : dict of str to float, optional
        Weight of the noise's error at each level, for the split with the least weighted sum of
        scales; a level without a weight is not measured.
    noise : str
        "discrete-laplace", "discrete-gaussian", or another discrete law of `noise/`.
    ledger : str, optional
        File of the ledger that each release is debited in.
    delta : float, optional
        The final delta, for Gaussian noise alone; a split is then one of its zCDP parameter.
    """

    neighbours: str
    epsilon: float
    split: dict[str, float] | None = None
    noise: str = "discrete-laplace"
    ledger: str | None = None
    goal: dict[str, float] | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        _choose("privacy.neighbours", self.neighbours, NEIGHBOURS)
        _check_noise(self.noise)
        check_text("privacy.ledger", self.ledger)
        if not is_number(self.epsilon) or not (self.epsilon > 0 and math.isfinite(self.epsilon)):
            refuse("privacy.epsilon", f"is {show(self.epsilon)}", "give a positive, finite number")
        if not LEAST_EPSILON <= self.epsilon <= MOST_EPSILON:
            refuse(
                "privacy.epsilon",
                f"is {show(self.epsilon)}, beyond which a guarantee says nothing or the noise "
                "leaves nothing",
                f"give a number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}",
            )
        _check_delta(self.noise, self.delta)
        if self.split is not None and self.goal is not None:
            refuse(
                "privacy.goal",
                f"is {show(self.goal)} while privacy.split is {show(self.split)}, and a goal is "
                "what a split is found for",
                "give one of them",
            )
        for level, weight in (self.goal or {}).items():
            if not is_number(weight) or not (weight >= 0 and math.isfinite(weight)):
                refuse(
                    f"privacy.goal.{level}",
                    f"is {show(weight)}",
                    "give a nonnegative, finite weight",
                )
        split = self.split or {}
        for level, share in split.items():
            if not is_number(share) or not 0 <= share <= 1:
                refuse(
                    f"privacy.split.{level}",
                    f"is {show(share)}",
                    "give a share of epsilon between 0 and 1",
                )


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

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        key = "invariants.publish_exactly"
        for entry, times in Counter(self.publish_exactly).items():
            if not entry.strip():
                refuse(key, f"holds {show(entry)}", "name a level or a node")
            if times > 1:
                refuse(key, f"holds {entry!r} {times} times", "name it once")


class Method(msgspec.Struct, frozen=True):
    """How the release is made to satisfy its invariants.

    Attributes
    ----------
    name : {"conditioning", "imaging", "topdown"}
    sampler : {"auto", "exact"}
        For conditioning.
    norm : {"l2", "l1"}
        For imaging.
    """

    name: str = "conditioning"
    sampler: str = "auto"
    norm: str = "l2"

    def __post_init__(self) -> None:
        """Check what the types do not say."""
        _choose("method.name", self.name, METHODS)
        _choose("method.sampler", self.sampler, SAMPLERS)
        _choose("method.norm", self.norm, NORMS)
        if self.name != "conditioning" and self.sampler != "auto":
            refuse(
                "method.sampler",
                f"is {show(self.sampler)} while method.name is {show(self.name)}, which has no "
                "sampler",
                "leave it out",
            )
        if self.name != "imaging" and self.norm != "l2":
            refuse(
                "method.norm",
                f"is {show(self.norm)} while method.name is {show(self.name)}, which has no "
                "choice of norm",
                "leave it out, or give name = 'imaging'",
            )


def _check_noise(noise: str) -> None:
    """Refuse what is no discrete law; only the law named is loaded."""
    known = law_names()
    if noise not in known or not find_law(noise).discrete:
        _choose("privacy.noise", noise, tuple(name for name in known if find_law(name).discrete))


def _check_delta(noise: str, delta: float | None) -> None:
    if find_law(noise).measure == "pure":
        if delta is not None:
            refuse(
                "privacy.delta",
                f"is {show(delta)} while privacy.noise is {show(noise)}, whose guarantee needs "
                "none but for the numerical error of a draw",
                f"leave it out, or give noise = '{GAUSSIAN}'",
            )
        return
    if delta is None:
        refuse(
            "privacy.delta",
            f"is missing, and no guarantee of {noise} noise goes without one",
            "give the most that may be added to the probability of any event, such as delta = 1e-6",
        )
    if not is_number(delta) or not LEAST_DELTA <= delta <= MOST_DELTA:
        refuse(
            "privacy.delta",
            f"is {show(delta)}",
            f"give a number from {LEAST_DELTA:g} to {MOST_DELTA:g}, far below one over the number "
            "of records",
        )


def _choose(key: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        refuse(key, f"is {show(value)}", f"give {one_of(known)}{nearest(str(value), known)}")


def check_text(key: str, value: str | None) -> None:
    """Refuse a blank text.

    Raises
    ------
    PlanError
    """
    if value is not None and not value.strip():
        refuse(key, "is empty", "give a text or leave the key out")
