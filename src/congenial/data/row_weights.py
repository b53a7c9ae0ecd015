"""How many records a row stands for: a column of the rows says so, or each row is one record."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from congenial.data.columns import look_up_columns
from congenial.data.sources import Relation, identifier
from congenial.errors import DataError
from congenial.plan.draft import guess_weight
from congenial.plan.plan import Plan

# Most records of a row and of all rows. With noise, counts stay below 2^52, the most that a
# posterior takes; doubles hold all whole numbers up to 2^53.
MOST_RECORDS = 2**51
_NUMBER = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|FLOAT|DOUBLE|DECIMAL\(.*\)|VARCHAR")


def records_of_row(weight: str, rows: Relation) -> str:
    """SQL for the number of records of a row; NULL if the weight is no whole number from 0."""
    kind = rows.columns[weight]
    if not _NUMBER.fullmatch(kind):
        raise DataError(
            f"data.weight names the column {weight!r} of {rows.shown}, whose type is "
            f"{kind.partition('(')[0]}; name a column of whole numbers."
        )
    value = f"TRY_CAST({identifier(weight)} AS DOUBLE)"
    whole = f"{value} = floor({value}) AND {value} BETWEEN 0 AND {MOST_RECORDS}"
    return f"CASE WHEN {whole} THEN CAST({value} AS HUGEINT) END"


def unweighted(plan: Plan, columns: Iterable[str]) -> tuple[str, ...]:
    """Return a sentence if the plan uses no weight and a column has the name of a count."""
    lookup = plan.data.lookup
    used = {*plan.hierarchy.levels, *plan.attributes, "" if lookup is None else lookup.on}
    found = guess_weight(name for name in columns if name not in used)
    if plan.data.weight is not None or found is None:
        return ()
    return (
        f"Each row is counted as one record. If the column {found!r} says how many records a row "
        f"stands for, add weight = {found!r} under [data].",
    )


def unweighted_source(plan: Plan, base: Path) -> tuple[str, ...]:
    """Return the same by the header of the plan's source; empty if it cannot be read."""
    found: list[str] = []
    for part in plan.parts:
        try:
            columns = look_up_columns(str(base / part.data.source), table=part.data.table)
        except DataError:
            continue
        found += unweighted(part, columns)
    return tuple(found)
