"""Public files that a plan names: values of attributes, and bounds of counts.

They are read together with the plan. The `Plan`, and so a certificate, lists what they say.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from congenial.plan.cross_table import BY, COLON, TOTAL
from congenial.plan.fields import Section, fit, refuse
from congenial.plan.sections import ROOT_LEVEL, Column, Hierarchy
from congenial.wording import on_a_line, one_of, show

_FILE = "give the path of a CSV file from the plan's directory, such as 'capacity.csv'"
_WHOLE = re.compile(r"[0-9]{1,16}")


@dataclass(frozen=True)
class Place:
    """Where a plan's files are."""

    base: Path  # Directory that their paths start from.
    confidential: frozenset[Path]  # The files of the rows, which no public file may be.


class PublicColumn(Section, frozen=True):
    """A column of a public CSV file."""

    file: Annotated[str, Meta(pattern=r"(?i)\.csv$", description=_FILE)]
    column: Column


def with_files(raw: Mapping[str, Any], base: Path | None) -> Mapping[str, Any]:
    """Return a plan's data with the values and bounds of its files in the files' place.

    Parameters
    ----------
    raw : mapping
        As read from TOML.
    base : Path, optional
        Directory that the files' paths start from. None refuses files.

    Raises
    ------
    PlanError
        If a file cannot be read, or does not have what the plan says.
    """
    out = dict(raw)
    place = None if base is None else Place(base, _confidential(raw, base))
    if "table" in raw:
        out["table"] = _with_values(raw["table"], "table", place)
    several = raw.get("tables")
    if isinstance(several, dict):
        out["tables"] = {
            name: _with_values(one, f"tables.{on_a_line(name)}", place)
            for name, one in several.items()
        }
    given = raw.get("invariants")
    if isinstance(given, dict):
        sides = {
            side: _with_bounds(given[side], raw, f"invariants.{side}", place)
            for side in ("at_least", "at_most")
            if isinstance(given.get(side), dict)
        }
        out["invariants"] = {**given, **sides}
    return out


def _confidential(raw: Mapping[str, Any], base: Path) -> frozenset[Path]:
    """Return the files of the rows of a plan, and of its tables."""
    several = raw.get("tables")
    rows = (
        [one.get("rows") for one in several.values() if isinstance(one, dict)]
        if isinstance(several, dict)
        else []
    )
    sources = [one.get("source") for one in (raw.get("data"), *rows) if isinstance(one, dict)]
    found = (glob(str(base / source)) for source in sources if isinstance(source, str))
    return frozenset(Path(path).resolve() for paths in found for path in paths)


def _with_values(table: Any, key: str, place: Place | None) -> Any:
    """Return a table with listed values for attributes that a file lists."""
    attributes = table.get("attributes") if isinstance(table, dict) else None
    if not isinstance(attributes, dict):
        return table
    found = dict(attributes)
    for name, given in attributes.items():
        if isinstance(given, dict):
            at = f"{key}.attributes.{on_a_line(name)}"
            source = fit(given, PublicColumn, at)
            found[name] = [row[source.column] for _, row in _rows(source, (), at, place)]
    return {**table, "attributes": found}


def _with_bounds(
    limits: dict[str, Any], raw: Mapping[str, Any], key: str, place: Place | None
) -> dict[str, Any]:
    """Return bounds with one for each count that a file lists."""
    found: dict[str, Any] = {k: v for k, v in limits.items() if not isinstance(v, dict)}
    for name, given in limits.items():
        if not isinstance(given, dict):
            continue
        at = f"{key}.{on_a_line(name)}"
        source = fit(given, PublicColumn, at)
        hierarchy = fit(raw.get("hierarchy", {}), Hierarchy, "hierarchy")
        if hierarchy.domain == "data":
            refuse(
                at,
                "names a file while hierarchy.domain is 'data', so that the places are not public",
                "give hierarchy.domain a file that lists every place",
            )
        places, table, margin = _query(name, raw, hierarchy, at)
        for row, cells in _rows(source, (*places, *margin), at, place):
            number = cells[source.column].strip()
            if not _WHOLE.fullmatch(number):
                refuse(
                    f"{at}.column",
                    f"holds {show(number)} in row {row} of {show(source.file)}",
                    "give a whole number from 0",
                )
            count = "/".join((hierarchy.root, *(cells[column] for column in places)))
            if table is not None:
                values = ", ".join(f"{one}={cells[one]}" for one in margin)
                count = f"{count}{COLON}{table}{values or TOTAL}"
            if count in found:
                refuse(
                    at,
                    f"has a second bound of {show(count)} in row {row} of {show(source.file)}",
                    "give each count one bound",
                )
            found[count] = int(number)
    return found


def _query(
    name: str, raw: Mapping[str, Any], hierarchy: Hierarchy, key: str
) -> tuple[tuple[str, ...], str | None, tuple[str, ...]]:
    """Return the columns of places, the table's name with a colon, and the margin's columns.

    The table is None in plans without tables.
    """
    levels = (ROOT_LEVEL, *hierarchy.levels)
    level, *rest = name.split(COLON)
    wanted = 1 + ("table" in raw) + 2 * ("tables" in raw)
    if level not in levels or len(rest) + 1 != wanted:
        kind = "a level" if wanted == 1 else "a query"
        example = COLON.join((levels[-1], *["TABLE"] * (wanted > 2), *[TOTAL] * (wanted > 1)))
        refuse(
            key, f"names a file, and {show(name)} is not {kind}", f"give one, such as {example!r}"
        )
    places = tuple(hierarchy.levels[: levels.index(level)])
    if wanted == 1:
        return places, None, ()
    margin = () if rest[-1] == TOTAL else tuple(rest[-1].split(BY))
    return places, "".join(f"{one}{COLON}" for one in rest[:-1]), margin


def _rows(
    source: PublicColumn, others: tuple[str, ...], key: str, place: Place | None
) -> Iterator[tuple[int, dict[str, str]]]:
    """Read the rows of a file, numbered from 1, with the columns that are needed."""
    if place is None:
        refuse(
            key,
            f"names the file {show(source.file)}, and a plan given as text has no directory",
            "write the plan to a file, and read it with congenial.read_plan",
        )
    path = place.base / source.file
    try:
        if path.resolve() in place.confidential:
            refuse(
                f"{key}.file",
                f"is {show(source.file)}, which holds the confidential rows",
                "give a public file",
            )
        with path.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.DictReader(text, strict=True)
            header = reader.fieldnames or ()
            for column in (source.column, *others):
                if header.count(column) != 1:
                    refuse(
                        key,
                        f"needs one column {show(column)}, of which {show(source.file)} has "
                        f"{header.count(column)}",
                        f"give a file that has it; this one has {one_of(header)}",
                    )
            for number, row in enumerate(reader, 1):
                if None in row or None in row.values():
                    refuse(
                        f"{key}.file",
                        f"is {show(source.file)}, whose row {number} has more or fewer values than "
                        "columns",
                        "correct the row",
                    )
                yield number, row
    except UnicodeDecodeError:
        refuse(f"{key}.file", f"is {show(source.file)}, which is not UTF-8", "save it as UTF-8")
    except (OSError, ValueError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        refuse(
            f"{key}.file", f"is {show(source.file)}, which cannot be read ({reason.lower()})", _FILE
        )
