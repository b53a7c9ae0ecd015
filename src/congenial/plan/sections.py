"""The sections of a plan file, each checked by itself; `plan.plan` checks them together."""

from __future__ import annotations

import re
from sys import float_info
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from congenial.noise.law import find_law, law_names
from congenial.plan.fields import Section, check_once, refuse
from congenial.wording import nearest, on_a_line, one_of, show

Neighbours = Literal["substitute", "add-remove"]
MethodName = Literal["conditioning", "imaging", "topdown", "posterior"]
Norm = Literal["l2", "l1"]
Loss = Literal["l1", "l2"]
SamplerName = Literal["auto", "exact"]
Product = Literal["table", "measurements"]
ColumnType = Literal["BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR"]

ROOT_LEVEL = "root"
LAPLACE, GAUSSIAN = "discrete-laplace", "discrete-gaussian"
DATABASES = (".duckdb", ".sqlite", ".sqlite3", ".db")
TABLES = (".parquet", ".csv", ".csv.gz")
# Epsilons of a plan. Above 16, the numerical error times e^epsilon could exceed 0.01.
LEAST_EPSILON, MOST_EPSILON = 1e-6, 16.0
LEAST_DELTA, MOST_DELTA = 1e-15, 1e-2
# Most levels of a hierarchy: a release has a column for each, so its size grows with the square.
MOST_LEVELS = 200
TABLE, MEASUREMENTS = PRODUCTS = get_args(Product)
# Columns of the written tables that are not levels; no level may have such a name.
OWN_COLUMNS = (
    *("level", "level_name", "value", "truth", "note"),
    *("lower", "upper", "level_lower", "level_upper", "measurement", "noise", "scale"),
)
# Least and largest probability of an interval; tables of the noise cover these tails.
LEAST_CONFIDENCE, MOST_CONFIDENCE = 0.5, 0.999


def _text(remedy: str) -> Meta:
    return Meta(pattern=r"\S", description=remedy)


def _between(least: float, most: float, example: str = "") -> Meta:
    return Meta(ge=least, le=most, description=f"give a number from {least:g} to {most:g}{example}")


def _ends(endings: tuple[str, ...], or_else: str = "$.") -> str:
    """Write a regular expression for texts with certain endings, in any letter case."""
    return rf"(?i)({'|'.join(map(re.escape, endings))})\Z|{or_else}"


Text = Annotated[str, _text("give text in quotes, or leave the key out")]
Column = Annotated[str, _text("give the name of a column as text in quotes")]
Key = Annotated[str, _text("give source, key and on, all three, as text in quotes")]
TableFile = Annotated[
    str,
    Meta(
        pattern=_ends(TABLES),
        description=f"give text in quotes, a file whose name ends in {', '.join(TABLES)}",
    ),
]
Source = Annotated[
    str,
    Meta(
        pattern=_ends(TABLES + DATABASES),
        description="name the file that holds the rows as text in quotes, such as source = "
        f"'trips.parquet', with an ending of {', '.join(TABLES)} or, beside data.table, "
        f"{', '.join(DATABASES)}",
    ),
]
Root = Annotated[str, _text("name the root as text in quotes, such as root = 'New York City'")]
Levels = Annotated[
    tuple[Column, ...],
    Meta(
        max_length=MOST_LEVELS,
        description=f"list the columns below the root, coarse to fine, from 1 to {MOST_LEVELS}, "
        "such as ['borough', 'zone']; a plan with a table may have none",
    ),
]
Domain = Annotated[
    str,
    Meta(
        pattern=_ends(TABLES, r"\A(lookup|data)\Z"),
        description=f"give 'lookup', a file that lists every node ({', '.join(TABLES)}), or "
        "'data', with which a release shows the nodes that occur in the rows, as text in quotes",
        extra={"known": ("lookup", "data")},
    ),
]
Epsilon = Annotated[float, _between(LEAST_EPSILON, MOST_EPSILON, ", such as epsilon = 1.0")]
Delta = Annotated[
    float, _between(LEAST_DELTA, MOST_DELTA, ", far below one over the number of records")
]
Share = Annotated[float, Meta(ge=0, le=1, description="give a share of epsilon between 0 and 1")]
Weight = Annotated[
    float, Meta(ge=0, le=float_info.max, description="give a nonnegative, finite number")
]
# A public bound in counts; above 2^53 not every integer is a double.
Limit = Annotated[
    int, Meta(ge=0, le=2**53, description="give a whole number from 0, the same for all data")
]
Limits = Annotated[
    dict[str, Limit],
    Meta(
        description="give a table of whole numbers by level or node, such as { zone = 500 }, or "
        "files of them, { zone = { file = 'capacity.csv', column = 'most' } }"
    ),
]
Comparisons = Annotated[
    tuple[Annotated[str, _text("compare two tables as text in quotes")], ...],
    Meta(description="give a list, such as ['people >= homes: status=in use']"),
]
ByLevel = Meta(description="give a table of numbers by level, such as { zone = 1.0 }")
Types = Annotated[
    dict[str, ColumnType], Meta(description="give a table, such as { age = 'INTEGER' }")
]
Nodes = Annotated[
    tuple[Annotated[str, _text("name a level or a node as text in quotes")], ...],
    Meta(description="give a list of texts in quotes, such as ['root', 'Queens/132']"),
]
Confidence = Annotated[float, _between(LEAST_CONFIDENCE, MOST_CONFIDENCE)]
Margin = Annotated[
    float,
    Meta(ge=0, le=float_info.max, description="give the largest margin that serves, in counts"),
]
Sum = Annotated[
    Nodes, Meta(min_length=1, description="give a list of nodes, such as ['North', 'South/S1']")
]
Sums = Annotated[
    dict[str, Sum],
    Meta(description="give a table of lists of nodes, such as { both = ['North', 'South'] }"),
]
Products = Annotated[
    tuple[Product, ...], Meta(description=f"give a list of texts in quotes, ['{TABLE}'] at least")
]


class Lookup(Section, frozen=True):
    """A public table with one row for each key, joined to the rows."""

    source: TableFile  # A CSV or Parquet file.
    key: Key  # Its column of unique keys.
    on: Key  # The column of the rows that holds such keys.


class Data(Section, frozen=True):
    """Where the rows are."""

    # A Parquet or CSV file (also .csv.gz), a glob of these, or a DuckDB or SQLite file.
    source: Source
    # One SQL condition; rows that fail it are left out, and so are nodes of the domain.
    where: Text | None = None
    lookup: Lookup | None = None
    table: Text | None = None  # Table of a DuckDB or SQLite file.
    name: Text | None = None  # Name of the rows in the ledger; by default the source's path.
    # Type of a column; a value that does not fit it counts as missing. By default a column of a CSV
    # or SQLite file is text.
    types: Types | None = None
    # Column of whole numbers: how many records a row stands for. By default a row is one record.
    weight: Column | None = None

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        check_once("data.types", self.types or {}, "give a column one type", str.casefold)
        is_database = self.source.casefold().endswith(DATABASES)
        if is_database and self.table is None:
            refuse("data.table", "is missing", f"name the table of {show(self.source)} to count")
        if self.table is not None and not is_database:
            refuse(
                "data.table",
                f"is {show(self.table)} and {show(self.source)} is no database",
                f"leave it out, or give a source that ends in {', '.join(DATABASES)}",
            )
        used = dict.fromkeys(self.types or {}, "data.types")
        if self.lookup is not None:
            used[self.lookup.on] = "data.lookup.on"
        for column, key in used.items():
            # with another use of the weight, a record would decide more than its own count
            if self.weight is not None and column.casefold() == self.weight.casefold():
                refuse(
                    "data.weight",
                    f"is {show(self.weight)}, which {key} names too",
                    f"leave it out of {key}; weights are read as whole numbers without a type",
                )


class Hierarchy(Section, frozen=True):
    """The hierarchy of counts."""

    root: Root  # Name of the root's node.
    levels: Levels  # A column a level, coarse to fine, below the root.
    # Where the nodes come from: "lookup", a CSV or Parquet file with the level columns, or "data".
    # With "data", an absent node shows that it has no row. None if there are no levels.
    domain: Domain | None = None
    # Whether a name may occur under several parents, as months do under years.
    names_repeat: bool = False

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        if ROOT_LEVEL in self.levels:
            refuse(
                "hierarchy.levels",
                "holds 'root', which is the name of the root's own level",
                "leave it out, or rename the column",
            )
        if self.levels and self.domain is None:
            refuse(
                "hierarchy.domain",
                "is missing",
                "give 'lookup', a file that lists every node, or 'data', with which a release "
                "shows the nodes that occur in the rows",
            )
        if self.domain is not None and not self.levels:
            refuse(
                "hierarchy.domain",
                f"is {show(self.domain)} while hierarchy.levels is empty, so the root is the only "
                "node",
                "name the columns of the levels, or, in a plan with a table of attributes, leave "
                "hierarchy.domain out",
            )
        check_once("hierarchy.levels", self.levels, "give each column once", str.casefold)


class Privacy(Section, frozen=True):
    """The guarantee asked for."""

    neighbours: Neighbours
    epsilon: Epsilon  # The final guarantee, which includes the cost of inequalities.
    # Share of epsilon for each level, adding up to 1; a level without a share is not measured. By
    # default, without `goal`, equal shares for the levels that can change.
    split: Annotated[dict[str, Share], ByLevel] | None = None
    # "discrete-laplace", "discrete-gaussian", or another discrete law of `noise/`.
    noise: str = LAPLACE
    ledger: Text | None = None  # File of the ledger that each release is debited in.
    # Weight of the noise's error at each level, for the split with the least weighted sum of
    # scales; a level without a weight is not measured.
    goal: Annotated[dict[str, Weight], ByLevel] | None = None
    # The final delta, for Gaussian noise only; `split` then divides the zCDP parameter.
    delta: Delta | None = None

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        pure = _measure(self.noise) == "pure"
        if pure and self.delta is not None:
            refuse(
                "privacy.delta",
                f"is {show(self.delta)} while privacy.noise is {show(self.noise)}, whose delta "
                "is 0",
                f"leave it out, or give noise = '{GAUSSIAN}'",
            )
        if not pure and self.delta is None:
            refuse(
                "privacy.delta",
                f"is missing, and the guarantee of {self.noise} noise needs one",
                "give the most that may be added to the probability of any event, such as "
                "delta = 1e-6",
            )
        if self.split is not None and self.goal is not None:
            refuse(
                "privacy.goal",
                f"is {show(self.goal)} while privacy.split is {show(self.split)}; a goal "
                "finds the split itself",
                "give one of them",
            )


class Invariants(Section, frozen=True):
    """The invariants besides adding up."""

    # Levels ("root" or a column), or nodes by path below the root ("Queens/132") or by name.
    publish_exactly: Nodes = ()
    nonnegative: bool = False
    # Public bounds of released counts, by level or node.
    at_least: Limits = msgspec.field(default_factory=dict)
    at_most: Limits = msgspec.field(default_factory=dict)
    # Counts of one table that are as large as those of another, at every place.
    as_many: Comparisons = ()

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        check_once("invariants.publish_exactly", self.publish_exactly)
        for name, least in self.at_least.items():
            if least > self.at_most.get(name, least):
                refuse(
                    f"invariants.at_least.{on_a_line(name)}",
                    f"is {least:,}, and invariants.at_most gives it {self.at_most[name]:,}",
                    "give a lower bound that is no larger than the upper one",
                )

    @property
    def bounded(self) -> bool:
        """Whether bounds hold, so that more than equalities restrict a release."""
        return self.nonnegative or bool(self.at_least or self.at_most or self.as_many)


class Method(Section, frozen=True):
    """How the release is made to satisfy its invariants."""

    # In the text of a plan the default is that of `best_method`.
    name: MethodName = "conditioning"
    sampler: SamplerName = "auto"  # For conditioning.
    norm: Norm = "l2"  # For imaging.
    loss: Loss = "l1"  # For the posterior: the error whose expectation is the least.

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        for key, value, default, owner in (
            ("sampler", self.sampler, "auto", "conditioning"),
            ("norm", self.norm, "l2", "imaging"),
            ("loss", self.loss, "l1", "posterior"),
        ):
            if self.name != owner and value != default:
                refuse(
                    f"method.{key}",
                    f"is {show(value)} while method.name is {show(self.name)}, which has no choice "
                    f"of {key}",
                    f"leave it out, or give name = '{owner}'",
                )


class Publication(Section, frozen=True):
    """The tables written from one draw of noise."""

    # "table": counts that satisfy the invariants; "measurements": the noisy counts behind them.
    publish: Products = (TABLE,)

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        check_once("release.publish", self.publish)
        if TABLE not in self.publish:
            refuse("release.publish", f"does not hold {TABLE!r}", f"give ['{TABLE}'] at least")

    @property
    def measurements(self) -> bool:
        """Whether the noisy measurements are written too."""
        return MEASUREMENTS in self.publish


class Accuracy(Section, frozen=True):
    """The intervals of a release, and the accuracy that its readers need."""

    # Least probability with which an interval contains its count; for posteriors, on average.
    confidence: Confidence = 0.9
    # Largest error margin, in counts, that is accepted at a level.
    required: Annotated[dict[str, Margin], ByLevel] | None = None
    # Whether to add intervals that hold for all counts of a level at once.
    simultaneous: bool = False
    sums: Sums | None = None  # Nodes whose sum gets an interval, by a name for it.

    def __post_init__(self) -> None:
        """Check the rules that types cannot state."""
        for name, nodes in (self.sums or {}).items():
            if not name.strip():
                refuse("accuracy.sums", f"has a sum called {name!r}", "give each sum a name")
            check_once(f"accuracy.sums.{on_a_line(name)}", nodes, "name each node once")

    @property
    def alpha(self) -> float:
        """Largest probability with which an interval misses its count."""
        return 1.0 - self.confidence


def best_method(*, bounded: bool, crossing: bool = False) -> Method:
    """Return the default method: the one with the least error under a plan's invariants.

    Under equalities alone, conditioning costs no privacy and has the least variance. Under bounds,
    conditioning costs privacy and makes sums of counts near zero too large. The table of least
    expected error does neither, and has no larger error than a projection (study *best-table*).
    Where margins cross it cannot be worked out, and TopDown is taken.
    """
    if crossing and bounded:
        return Method(name="topdown")
    return Method(name="posterior") if bounded else Method()


def _measure(noise: str) -> str:
    """Return the measure of a discrete law's loss; only that law is loaded."""
    names = law_names()
    if noise not in names or not find_law(noise).discrete:
        known = [name for name in names if find_law(name).discrete]
        refuse("privacy.noise", f"is {show(noise)}", f"give {one_of(known)}{nearest(noise, known)}")
    return find_law(noise).measure
