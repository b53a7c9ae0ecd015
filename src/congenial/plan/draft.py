"""A plan as its author would write it: every key with a comment, from a few answers."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from string import Template

from congenial.plan.cross_table import BY, COLON, TOTAL
from congenial.plan.sections import LEAST_EPSILON, MOST_EPSILON, ROOT_LEVEL, Lookup
from congenial.wording import show

# Names of places, from the coarsest to the finest. Only names of columns are compared with these.
COARSE_TO_FINE = (
    *("country", "nation", "state", "region", "province", "county", "prefecture", "department"),
    *("district", "borough", "city", "municipality", "commune", "town", "village", "ward"),
    *("precinct", "zone", "tract", "parish", "neighbourhood", "neighborhood", "block"),
    *("hospital", "clinic", "school", "facility", "site", "station", "branch", "store"),
)
# Last words of the names of columns that may say how many records a row stands for.
_COUNTS = frozenset(
    (
        *("n", "count", "counts", "freq", "frequency", "weight", "weights", "total", "records"),
        *("people", "persons", "residents", "inhabitants", "population", "pop", "cases"),
    )
)
# Columns listed in the comment.
_LISTED = 30
# Types whose values are names or numbers of things.
_PLAIN = ("VARCHAR", "BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "DATE", "ENUM", "U")

# Comments that depend on an answer.
_DOMAIN_IS_DATA = """\
# Where the nodes come from. UNPROTECTED: they come from the rows, so a release shows
# which names occur, even a name that only one person has. A public file that lists
# every node, or "lookup", avoids this."""
_DOMAIN_IS_PUBLIC = (
    "# Where the nodes come from: a public list of every node, even of nodes without rows."
)
_TABLE = "\n# The table of that database.\ntable = "
_NEIGHBOURS = {
    "substitute": "one record is replaced by any other",
    "add-remove": "one record is there or not",
}
_SOME_EXACT = "# UNPROTECTED: these levels and nodes are published without noise."
_NONE_EXACT = '# Levels (such as "root") or nodes published without noise, UNPROTECTED: none.'
_METHODS = {
    "conditioning": "the noise is drawn so that they hold",
    "imaging": "noisy counts move to the closest counts that do, all levels together",
    "topdown": "noisy counts move to the closest counts that do, level by level",
    "posterior": "noisy counts become estimates of least expected error",
}


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
    lookup: Lookup | None = None
    weight: str | None = None
    # Attributes counted at every place: the values of each, or a CSV file of them.
    attributes: Mapping[str, tuple[str, ...] | str] = field(default_factory=dict)
    # Types of the rows' columns, listed in a comment.
    columns: Mapping[str, str] = field(default_factory=dict)
    # Options of `congenial init` whose defaults were taken without asking; they are marked.
    guessed: tuple[str, ...] = ()

    @property
    def margins(self) -> tuple[str, ...]:
        """The margins of a plan with attributes: the total, each attribute, and their cells."""
        each = tuple(self.attributes)
        return tuple(dict.fromkeys((TOTAL, *each, BY.join(each)))) if each else ()

    @property
    def queries(self) -> tuple[str, ...]:
        """Levels below the root, or the queries of a plan with attributes."""
        levels = (ROOT_LEVEL, *self.levels)
        return (
            tuple(f"{v}{COLON}{margin}" for v in levels for margin in self.margins) or self.levels
        )

    @property
    def publish(self) -> tuple[str, ...]:
        """The published tables; with measurements if counts would have no interval otherwise."""
        measured = self.method == "posterior" or (
            self.nonnegative and self.method != "conditioning"
        )
        return ("table", "measurements") if measured else ("table",)


def guess_levels(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Guess levels, coarse to fine, from columns' names; else take one column that fits by type."""
    ranked: dict[int, str] = {}
    for name in columns:
        if (rank := _rank(name)) is not None:
            ranked.setdefault(rank, name)
    if ranked:
        return tuple(ranked[rank] for rank in sorted(ranked))
    usable = [name for name in columns if name != "root"]
    plain = [name for name in usable if columns[name].startswith(_PLAIN)]
    return tuple((plain or usable)[:1])


def guess_weight(columns: Iterable[str]) -> str | None:
    """Return the first column whose name is that of a count; the values are not looked at."""
    return next((name for name in columns if _COUNTS & set(_words(name)[-1:])), None)


def _words(name: str) -> list[str]:
    return [word.casefold() for word in re.findall(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]*", name)]


def _rank(name: str) -> int | None:
    """Place of a column's name in `COARSE_TO_FINE`, by its words; None where it has none."""
    for word in reversed(_words(name)):
        for known in (word, word.removesuffix("s"), word.removesuffix("id")):
            if known in COARSE_TO_FINE:
                return COARSE_TO_FINE.index(known)
    return None


def text(value: str) -> str:
    """Write text as TOML does, on one line."""
    escapes = {'"': '\\"', "\\": "\\\\"}
    escapes |= {c: f"\\U{ord(c):08x}" for c in value if not c.isprintable()}
    return '"' + "".join(escapes.get(c, c) for c in value) + '"'


def _list(values: tuple[str, ...]) -> str:
    return f"[{', '.join(map(text, values))}]"


def _shares(draft: Draft) -> str:
    """Write equal shares of epsilon for the levels below the last exact one, as an example."""
    exact = [at for at, name in enumerate(draft.queries) if name in draft.publish_exactly]
    noisy = draft.queries[max(exact, default=-1) + 1 :]
    share = math.floor(100.0 / len(noisy)) / 100.0
    last = round(1.0 - share * (len(noisy) - 1), 2)
    shares = [share] * (len(noisy) - 1) + [last]
    return ", ".join(f"{text(level)} = {s:g}" for level, s in zip(noisy, shares, strict=True))


def as_toml(draft: Draft, following: str) -> str:
    """Write a plan as TOML with a comment on each key, from `draft.toml`."""
    template = files("congenial.plan").joinpath("draft.toml").read_text(encoding="utf-8")
    deepest = draft.levels[-1]

    def answer(option: str, value: str) -> str:
        return value + "  # guessed, not asked" * (option in draft.guessed)

    return Template(template).substitute(
        columns=_columns(draft),
        source=text(draft.source),
        table="" if draft.table is None else _TABLE + text(draft.table),
        weight=answer("--weight", _optional("weight", draft.weight, "people")),
        name=answer("--name", _optional("name", draft.name, "these rows")),
        where=text('"' + deepest.replace('"', '""') + '" IS NOT NULL'),
        lookup=_lookup(draft.lookup, answer),
        root=answer("--root", text(draft.root)),
        levels=answer("--levels", _list(draft.levels)),
        about_domain=_DOMAIN_IS_DATA if draft.domain == "data" else _DOMAIN_IS_PUBLIC,
        domain=answer("--domain", text(draft.domain)),
        names_repeat=answer("--names-repeat", show(draft.names_repeat)),
        about_neighbours=_NEIGHBOURS[draft.neighbours],
        neighbours=answer("--neighbours", text(draft.neighbours)),
        least=f"{LEAST_EPSILON:g}",
        most=f"{MOST_EPSILON:g}",
        epsilon=answer("--epsilon", repr(draft.epsilon)),
        shares=_shares(draft),
        ledger=_optional("ledger", draft.ledger, "budget.sqlite"),
        about_exact=_SOME_EXACT if draft.publish_exactly else _NONE_EXACT,
        publish_exactly=answer("--publish-exactly", _list(draft.publish_exactly)),
        nonnegative=answer("--nonnegative", show(draft.nonnegative)),
        about_method=_METHODS[draft.method],
        method=answer("--method", text(draft.method)),
        publish=_list(draft.publish),
        tables=_attributes(draft),
        deepest=text(draft.queries[-1]),
        following=following,
    )


def _attributes(draft: Draft) -> str:
    """Write the section `table`, or nothing if the plan has no attributes."""
    if not draft.attributes:
        return ""
    lines = ["", "[table]", "# Attributes counted at every place, each with its public values."]
    for name, values in draft.attributes.items():
        listed = (
            f"{{ file = {text(values)}, column = {text(name)} }}"
            if isinstance(values, str)
            else _list(values)
        )
        lines.append(f"attributes.{text(name)} = {listed}")
    lines += [
        "# Margins to count, for all levels or by level. Cells of the deepest level always count.",
        f"margins = {_list(draft.margins)}",
        "# Cells that no record can be in.",
        f'# impossible = [ {{ {text(next(iter(draft.attributes)))} = "..." }} ]',
    ]
    return "\n".join(lines) + "\n"


def _columns(draft: Draft) -> str:
    known = [f"{text(name)} {kind}" for name, kind in draft.columns.items()]
    listed = ", ".join(known[:_LISTED])
    if len(known) > _LISTED:
        listed += f" and {len(known) - _LISTED} more"
    printable = "".join(c if c.isprintable() else "?" for c in listed)
    return f"\n# Columns of the rows: {printable}." if known else ""


def _optional(key: str, value: str | None, example: str) -> str:
    """Write a key with its value, or with an example in a comment."""
    return f"# {key} = {text(example)}" if value is None else f"{key} = {text(value)}"


def _lookup(given: Lookup | None, answer: Callable[[str, str], str]) -> str:
    if given is None:
        return '# lookup = { source = "zones.csv", key = "id", on = "zone" }'
    source, key, on = map(text, (given.source, given.key, given.on))
    return answer("--lookup-key", f"lookup = {{ source = {source}, key = {key}, on = {on} }}")
