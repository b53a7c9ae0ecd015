"""The questions of `congenial init`, their reasons and their choices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

import click

from congenial.cli.arguments import METHODS, NEIGHBOURS
from congenial.cli.asking import Asker, column, columns, listed, split
from congenial.data.columns import find, look_up_columns, look_up_tables
from congenial.data.counts import build_domain
from congenial.errors import DataError, PlanError, StructureError
from congenial.plan.cross_table import COLON, TOTAL
from congenial.plan.draft import Draft, as_toml, guess_levels, guess_weight
from congenial.plan.plan import Plan, exact_nodes, parse_plan
from congenial.plan.sections import (
    LEAST_EPSILON,
    MOST_EPSILON,
    ROOT_LEVEL,
    Hierarchy,
    Lookup,
    best_method,
)

DOMAIN_IS_DATA = (
    "Unprotected: with the domain 'data', a release shows which names occur in the rows. With a "
    "public list of all names, it does not."
)


def ask_all(asker: Asker, data: str, out: Path) -> Draft:
    """Ask for every key of a plan."""
    table = _ask_table(asker, data)
    rows = look_up_columns(data, table=table)
    _show(asker, f"Columns of {data if table is None else table}", rows)
    weight = _ask_weight(asker, rows)
    lookup, known = _ask_lookup(asker, data, rows, out)
    others = {name: kind for name, kind in rows.items() if name != weight}
    levels = _ask_levels(asker, others, known, lookup)
    attributes = asker.ask(
        "attributes",
        "Attributes counted at every place, such as sex=F,M; age=ages.csv (empty for none)",
        "You may also count attributes, such as sex by age, at every place. An attribute is a "
        "column, with its public values or a public CSV file of them.",
        "",
        lambda answer: _attributes(answer, {**others, **known}, data, out),
    )
    inside = lookup is not None and all(v in known or v == lookup.on for v in levels)
    domain = asker.ask(
        "domain",
        f"Where the nodes come from ({'lookup, ' if inside else ''}data, or a public file)",
        "A public list of all nodes, with a column for each level, is best. " + DOMAIN_IS_DATA,
        "lookup" if inside else "data",
        lambda answer: _domain(answer, lookup, data),
    )
    if domain not in ("lookup", "data"):
        domain = _from_plan(domain, out)
    if domain == "data" and not asker.yes:
        click.echo(f"Note: {DOMAIN_IS_DATA}", err=True)
    root = asker.ask("root", "Name of the root", "The root counts all records.", "Total")
    neighbours = asker.ask(
        "neighbours",
        f"Neighbouring datasets ({' or '.join(NEIGHBOURS)})",
        "substitute: the guarantee hides the values of a record. add-remove: it also hides whether "
        "a record is there, and then nothing can be published exactly.",
        "substitute",
        click.Choice(NEIGHBOURS),
    )
    exact: tuple[str, ...] = ()
    if neighbours == "substitute" or asker.given["publish_exactly"] is not None:
        exact = asker.ask(
            "publish_exactly",
            "Published exactly, with commas (empty for nothing)",
            "Counts that must be published without noise: give 'root', the name of a level, or a "
            "node such as 'North/N1'. They are not protected.",
            "",
            lambda answer: _exact(answer, levels, tuple(attributes)),
        )
    nonnegative = asker.ask(
        "nonnegative",
        "Forbid negative counts (yes or no)",
        "Noise makes some small counts negative. If you forbid negative counts, true zeros come "
        "out too large on average.",
        "yes",
        click.BOOL,
    )
    epsilon = asker.ask(
        "epsilon",
        "Epsilon",
        "The guarantee: if one record changes, no release becomes more than exp(epsilon) times as "
        "likely. 1 is common; a smaller epsilon is more private.",
        "1.0",
        click.FloatRange(LEAST_EPSILON, MOST_EPSILON),
    )
    method = asker.ask(
        "method",
        f"Method ({', '.join(METHODS)})",
        "Conditioning draws the noise so that all sums and bounds hold. The others add noise, and "
        "then find counts that satisfy sums and bounds. Imaging and topdown find the closest "
        "counts; the posterior finds the counts with the least expected error. If no count may be "
        "negative, the posterior usually has the smallest mean error. The noisy counts are then "
        "published too, for the intervals.",
        best_method(bounded=nonnegative, crossing=bool(attributes)).name,
        click.Choice(METHODS),
    )
    ledger = asker.ask(
        "ledger",
        "Ledger (empty for none)",
        "A ledger adds up the cost of all releases of the same rows, and refuses a release beyond "
        "their budget. congenial ledger init makes one.",
        "",
    )
    name = asker.given["name"]
    if ledger:
        name = asker.ask(
            "name",
            "Name of the rows",
            "All plans for the same rows must use one name; otherwise the ledger counts them as "
            "different rows.",
            Path(data).name.partition(".")[0].strip("*?[]-_ ") or "rows",
        )
    draft = Draft(
        source=_from_plan(data, out),
        root=root,
        levels=levels,
        domain=domain,
        neighbours=neighbours,
        epsilon=epsilon,
        nonnegative=nonnegative,
        method=method,
        publish_exactly=exact,
        table=table,
        name=name,
        ledger=_from_plan(ledger, out) if ledger else None,
        lookup=lookup,
        weight=weight,
        attributes=attributes,
        columns=rows,
    )
    return replace(draft, names_repeat=_ask_repeats(asker, draft, out))


def _ask_table(asker: Asker, data: str) -> str | None:
    given = asker.given["table"]
    tables = look_up_tables(data)
    if not tables:
        if given is not None:
            raise click.UsageError(f"--table is given, but {data!r} is no database; leave it out.")
        return None
    if given is not None or len(tables) == 1:
        return given or tables[0]
    reason = f"{data} holds {len(tables)} tables."
    found: str = asker.ask(
        "table", f"Table ({', '.join(tables)})", reason, "", click.Choice(tables)
    )
    return found


def _ask_weight(asker: Asker, rows: Mapping[str, str]) -> str | None:
    """Ask how many records a row stands for, if a column has the name of a count."""
    found = guess_weight(rows)
    if found is None and asker.given["weight"] is None:
        return None
    answer: str = asker.ask(
        "weight",
        "Column with the number of records of a row (empty if a row is one record)",
        f"If the rows are counts, such as {found!r} of people, each row stands for that number of "
        "records, and the guarantee is for one record.",
        "",
        lambda given: column(given, list(rows)) if given else "",
    )
    return answer or None


def _ask_lookup(
    asker: Asker, data: str, rows: Mapping[str, str], out: Path
) -> tuple[Lookup | None, dict[str, str]]:
    """Ask for a lookup; return it, and its columns."""

    def understand(answer: str) -> tuple[str, dict[str, str]]:
        if not answer:
            return "", {}
        _check_public(answer, "the lookup", data)
        return answer, look_up_columns(answer, "the lookup")

    path, known = asker.ask(
        "lookup",
        "Lookup, a public CSV or Parquet file (empty for none)",
        "A public table that adds columns to the rows, such as the borough of each zone.",
        "",
        understand,
    )
    if not path:
        return None, {}
    _show(asker, f"Columns of {path}", known)
    folded = {name.casefold(): name for name in rows}
    shared = [name for name in known if name.casefold() in folded]
    key = asker.ask(
        "lookup_key",
        "The lookup's key column",
        "Each row of the lookup has its own key, such as the number of a zone.",
        (shared or list(known))[0],
        lambda answer: column(answer, list(known)),
    )
    on = asker.ask(
        "lookup_on",
        "The rows' column of these keys",
        f"A row is joined to the lookup by its {key!r}.",
        folded[get_close_matches(key.casefold(), folded, n=1, cutoff=0.0)[0]],
        lambda answer: column(answer, list(rows)),
    )
    return Lookup(_from_plan(path, out), key, on), known


def _ask_levels(
    asker: Asker, rows: Mapping[str, str], known: Mapping[str, str], lookup: Lookup | None
) -> tuple[str, ...]:
    key, on = ("", "") if lookup is None else (lookup.key, lookup.on)
    # the key has the name of the rows' column
    both = {**rows, **{name: kind for name, kind in known.items() if name != key}}
    if known:
        _show(asker, "Columns of both", both)

    def understand(answer: str) -> tuple[str, ...]:
        found = columns(answer, list(both))
        Hierarchy("root", found, "data")  # refuses 'root', and a column given twice
        for name in found:
            if name in rows and name in known and name != on:
                raise click.UsageError(
                    f"{name!r} is a column of the rows and of the lookup; rename it in one of them."
                )
        return found

    found: tuple[str, ...] = asker.ask(
        "levels",
        "Levels, coarse to fine, with commas",
        "The counts form a hierarchy: each level is a column, and its counts add up to those "
        "of the level before. The default is guessed from the columns' names.",
        listed(guess_levels(both)),
        understand,
    )
    return found


def _ask_repeats(asker: Asker, draft: Draft, out: Path) -> bool:
    if len(draft.levels) == 1 and asker.given["names_repeat"] is None:
        return False
    offered = draft.domain == "data" or _repeats(draft, out)
    return bool(
        asker.ask(
            "names_repeat",
            f"One {draft.levels[-1]!r} under several {draft.levels[0]!r} (yes or no)",
            "Yes if one name under two parents means two nodes, such as an age under each sex. "
            "No if it would be a mistake in the list of nodes.",
            "yes" if offered else "no",
            click.BOOL,
        )
    )


def _domain(answer: str, lookup: Lookup | None, data: str) -> str:
    """Check the answer that says where the nodes come from."""
    if answer == "lookup" and lookup is None:
        raise click.UsageError("the domain is 'lookup' without a lookup; give --lookup, too.")
    if answer not in ("lookup", "data"):
        _check_public(answer, "the domain", data)
    return answer


def _check_public(path: str, key: str, data: str) -> None:
    """Refuse a file that does not exist, or that holds the rows: public files are read."""
    if set(find(path, key)) & set(find(data, "DATA")):
        raise click.UsageError(
            f"{key} is {path!r}, which holds the confidential rows, but must be public; give "
            "another file."
        )


def _attributes(
    answer: str, known: Mapping[str, str], data: str, out: Path
) -> dict[str, tuple[str, ...] | str]:
    """Understand attributes such as "sex=F,M; age=ages.csv": values, or a public CSV file."""
    found: dict[str, tuple[str, ...] | str] = {}
    for part in filter(str.strip, answer.split(";")):
        wanted, _, after = part.partition("=")
        name, values = column(wanted.strip(), list(known)), split(after)
        if not values or name in found:
            wrong = "is given twice" if values else "has no values"
            raise click.UsageError(
                f"{name!r} {wrong}; give the values of each once, as in sex=F,M; age=0-17,18+"
            )
        if len(values) == 1 and values[0].casefold().endswith(".csv"):
            _check_public(values[0], f"the file of {name!r}", data)
            found[name] = _from_plan(values[0], out)
        else:
            found[name] = values
    return found


def _exact(answer: str, levels: tuple[str, ...], attributes: tuple[str, ...]) -> tuple[str, ...]:
    """Parse the entries published exactly; nodes are looked up later.

    In a plan with attributes a level means its totals.
    """
    found = split(answer)
    if levels[-1] in found and not attributes:
        raise click.UsageError(
            f"{levels[-1]!r} is the deepest level, so nothing would be protected; name other "
            "levels or single nodes."
        )
    if attributes:
        found = tuple(f"{v}{COLON}{TOTAL}" if v in (ROOT_LEVEL, *levels) else v for v in found)
    return tuple(dict.fromkeys(found))


def _repeats(draft: Draft, out: Path) -> bool:
    """Whether the public list of nodes fits a hierarchy only if names may repeat."""
    for repeat in (False, True):
        try:
            plan = parse_plan(
                as_toml(replace(draft, names_repeat=repeat, publish_exactly=()), ""),
                base=out.parent,
            )
            try_plan(plan, out.parent)
        except (DataError, PlanError, StructureError):
            continue
        return repeat
    return False


def try_plan(plan: Plan, base: Path) -> None:
    """Refuse a plan whose public list of nodes does not fit it, without reading the rows."""
    if plan.hierarchy.domain == "data":
        return
    exact_nodes(plan, build_domain(plan, base=base))


def _show(asker: Asker, title: str, found: Mapping[str, str]) -> None:
    if asker.yes:
        return
    width = max(len(name) for name in found)
    click.echo(f"\n{title}:", err=True)
    for at, (name, kind) in enumerate(found.items(), start=1):
        click.echo(f"  {at:3}  {name:{width}}  {kind}", err=True)


def _from_plan(path: str, out: Path) -> str:
    """Write a path as it starts from the plan's directory."""
    if Path(path).is_absolute():
        return path
    found = os.path.relpath(path, out.parent)
    # a symbolic link in the path can make ".." lead elsewhere
    straight = os.path.realpath(out.parent / found) == os.path.realpath(path)
    return Path(found).as_posix() if straight else str(Path(path).absolute())
