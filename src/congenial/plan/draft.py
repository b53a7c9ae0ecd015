"""A plan as its author would write it: every key with a comment, from a few answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from congenial.plan.sections import LEAST_EPSILON, MOST_EPSILON

# Names of places, from the coarsest to the finest. Only names of columns are compared with these.
COARSE_TO_FINE = (
    *("country", "nation", "state", "region", "province", "county", "prefecture", "department"),
    *("district", "borough", "city", "municipality", "commune", "town", "village", "ward"),
    *("precinct", "zone", "tract", "parish", "neighbourhood", "neighborhood", "block"),
    *("hospital", "clinic", "school", "facility", "site", "station", "branch", "store"),
)
# Columns listed in the comment.
_LISTED = 30
# Types whose values are names or numbers of things.
_PLAIN = ("VARCHAR", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DATE", "ENUM", "U")


@dataclass(frozen=True)
class DraftLookup:
    """A public table joined to the rows; fields as in `congenial.plan.sections.Lookup`."""

    source: str
    key: str
    on: str


@dataclass(frozen=True)
class Draft:
    """The answers that a plan is written from; fields are the keys of a plan."""

    source: str
    root: str
    levels: tuple[str, ...]
    domain: str
    neighbours: str
    epsilon: float
    nonnegative: bool
    method: str
    publish_exactly: tuple[str, ...] = ()
    names_repeat: bool = False
    table: str | None = None
    name: str | None = None
    ledger: str | None = None
    lookup: DraftLookup | None = None
    # Types of the rows' columns, listed in a comment.
    columns: Mapping[str, str] = field(default_factory=dict)
    # Options of `congenial init` whose defaults were taken without asking; they are marked.
    guessed: tuple[str, ...] = ()

    @property
    def publish(self) -> tuple[str, ...]:
        """The published tables; with measurements if counts would have no interval otherwise."""
        measured = self.nonnegative and self.method != "conditioning"
        return ("table", "measurements") if measured else ("table",)


def guess_levels(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Guess a hierarchy from the names and types of columns alone.

    They come coarse to fine; if no name is known, one column that may hold names.
    """
    ranked: dict[int, str] = {}
    for name in columns:
        if (rank := _rank(name)) is not None:
            ranked.setdefault(rank, name)
    if ranked:
        return tuple(ranked[rank] for rank in sorted(ranked))
    usable = [name for name in columns if name != "root"]
    plain = [name for name in usable if columns[name].startswith(_PLAIN)]
    return tuple((plain or usable)[:1])


def _rank(name: str) -> int | None:
    """Place of a column's name in `COARSE_TO_FINE`, by its words; None where it has none."""
    words = re.findall(r"[a-z]+|[A-Z][a-z]*", name)
    for word in reversed([word.casefold() for word in words]):
        for known in (word, word.removesuffix("s"), word.removesuffix("id")):
            if known in COARSE_TO_FINE:
                return COARSE_TO_FINE.index(known)
    return None


def text(value: str) -> str:
    """Write text as TOML does, on one line."""
    escapes = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c if c.isprintable() else _escape(c)) for c in value) + '"'


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _list(values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(text, values))}]"


def _shares(draft: Draft) -> str:
    """Write equal shares of epsilon for the levels below the last exact one, as an example."""
    exact = [at for at, level in enumerate(draft.levels) if level in draft.publish_exactly]
    noisy = draft.levels[max(exact, default=-1) + 1 :]
    share = round(1.0 / len(noisy), 2)
    last = round(1.0 - share * (len(noisy) - 1), 2)
    shares = [share] * (len(noisy) - 1) + [last]
    return ", ".join(f"{text(level)} = {s:g}" for level, s in zip(noisy, shares, strict=True))


def as_toml(draft: Draft, following: str) -> str:
    """Write a plan with a comment on each key.

    Returns TOML; `congenial.parse_plan` reads it.
    """
    sections = (
        _head(draft),
        _marked(_data(draft), draft.guessed, {"lookup": "--lookup-key", "name": "--name"}),
        _marked(
            _hierarchy(draft), draft.guessed, _options("root", "levels", "domain", "names_repeat")
        ),
        _marked(_privacy(draft), draft.guessed, _options("neighbours", "epsilon")),
        _marked(
            _rest(draft),
            draft.guessed,
            _options("publish_exactly", "nonnegative") | {"name": "--method"},
        ),
    )
    lines = [line for section in sections for line in (*section, "")]
    return "\n".join([*lines, f"# Next: {following}", ""])


def _options(*keys: str) -> dict[str, str]:
    """Options of `congenial init` by the keys that they answer."""
    return {key: f"--{key.replace('_', '-')}" for key in keys}


def _marked(lines: list[str], guessed: tuple[str, ...], options: Mapping[str, str]) -> list[str]:
    """Mark the keys of a section whose values were guessed."""
    return [
        f"{line}  # guessed, not asked"
        if options.get(line.partition(" = ")[0]) in guessed
        else line
        for line in lines
    ]


def _head(draft: Draft) -> list[str]:
    known = [f"{text(name)} {kind}" for name, kind in draft.columns.items()]
    listed = ", ".join(known[:_LISTED])
    if len(known) > _LISTED:
        listed += f" and {len(known) - _LISTED} more"
    return [
        "# A plan: the rows that are counted, the guarantee, and the invariants of every release.",
        "# Begun by congenial init from the columns' names and types; no value of a row was read.",
        "# Paths start from this file's directory. A line that begins with # is a comment.",
        "# The page docs/plan.md of congenial lists every key.",
        *([f"# Columns of the rows: {_printable(listed)}."] if listed else []),
    ]


def _printable(line: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in line)


def _data(draft: Draft) -> list[str]:
    last = text(_condition(draft.levels[-1]))
    lines = ["[data]", "# The confidential rows, one a record.", f"source = {text(draft.source)}"]
    if draft.table is not None:
        lines += ["# The table of that database.", f"table = {text(draft.table)}"]
    lines += [
        "# Name of these rows in a ledger; without a name it identifies them by their path.",
        '# name = "these rows"' if draft.name is None else f"name = {text(draft.name)}",
        "# One SQL condition that selects the rows; the number of the others stays confidential.",
        "# A selected row without a value in a level is an error; this leaves such rows out:",
        f"# where = {last}",
        "# Types of columns for `where`; the columns of CSV and SQLite files are text by default.",
        '# types = { age = "INTEGER" }',
        "# A public table joined to the rows: its file, its key column, the rows' key column.",
    ]
    if draft.lookup is None:
        lines.append('# lookup = { source = "zones.csv", key = "id", on = "zone" }')
    else:
        given = draft.lookup
        lines.append(
            f"lookup = {{ source = {text(given.source)}, key = {text(given.key)}, "
            f"on = {text(given.on)} }}"
        )
    return lines


def _condition(level: str) -> str:
    return '"' + level.replace('"', '""') + '" IS NOT NULL'


def _hierarchy(draft: Draft) -> list[str]:
    if draft.domain == "data":
        domain = [
            "# Where the nodes come from. UNPROTECTED: they come from the rows, so a release shows",
            "# which names occur, even a name that only one person has. A public file that lists",
            '# every node, or "lookup", avoids this.',
        ]
    else:
        domain = [
            "# Where the nodes come from: a public list of every node, with rows or without.",
        ]
    return [
        "[hierarchy]",
        "# The name of the root, which is the sum of all counts.",
        f"root = {text(draft.root)}",
        "# Columns below the root, coarse to fine; counts add up along them.",
        f"levels = {_list(draft.levels)}",
        *domain,
        f"domain = {text(draft.domain)}",
        "# Whether one name may be under two parents, as the ages are under each sex.",
        f"names_repeat = {'true' if draft.names_repeat else 'false'}",
    ]


def _privacy(draft: Draft) -> list[str]:
    texts = {
        "substitute": "# Neighbouring datasets: one record is replaced by any other.",
        "add-remove": "# Neighbouring datasets: one record is there or not.",
    }
    ledger = (
        [
            "# The file in which each release is debited; congenial ledger init makes it.",
            '# ledger = "budget.sqlite"',
        ]
        if draft.ledger is None
        else [
            "# The file in which each release is debited; congenial ledger init makes it.",
            f"ledger = {text(draft.ledger)}",
        ]
    )
    return [
        "[privacy]",
        texts[draft.neighbours],
        f"neighbours = {text(draft.neighbours)}",
        f"# The final guarantee, from {LEAST_EPSILON:g} to {MOST_EPSILON:g}; a smaller epsilon is "
        "more private and less accurate.",
        f"epsilon = {draft.epsilon!r}",
        "# Shares of epsilon by level; without them, equal ones.",
        f"# split = {{ {_shares(draft)} }}",
        '# The law of the noise. "discrete-gaussian" needs a delta, such as delta = 1e-6.',
        'noise = "discrete-laplace"',
        *ledger,
    ]


def _rest(draft: Draft) -> list[str]:
    exact = (
        "# UNPROTECTED: these levels and nodes are published without noise."
        if draft.publish_exactly
        else '# Levels (such as "root") or nodes published without noise, UNPROTECTED: none.'
    )
    texts = {
        "conditioning": "counts are drawn from the law of the noise given them",
        "imaging": "noisy counts move to the closest ones, all levels together",
        "topdown": "noisy counts move to the closest ones, level by level",
        "posterior": "noisy counts give those of the least expected error",
    }
    return [
        "[invariants]",
        exact,
        f"publish_exactly = {_list(draft.publish_exactly)}",
        "# Whether no released count may be below zero.",
        f"nonnegative = {'true' if draft.nonnegative else 'false'}",
        "",
        "[method]",
        f"# How sums and bounds are satisfied: {texts[draft.method]}.",
        '# Others: "conditioning", "imaging", "topdown", "posterior"; congenial compare tries all.',
        f"name = {text(draft.method)}",
        "",
        "[release]",
        '# "measurements" are the noisy counts that all but conditioning start from. If no count',
        "# may be below zero, the intervals of these methods need them.",
        f"publish = {_list(draft.publish)}",
        "",
        "[accuracy]",
        "# Probability with which an interval, lower to upper, holds its count.",
        "confidence = 0.9",
        "# The largest error margin that you accept, in counts; explain says whether it is met.",
        f"# required = {{ {text(draft.levels[-1])} = 20 }}",
    ]
