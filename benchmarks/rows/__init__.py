"""One module a row of the table; each has `cases(quick)`."""

from __future__ import annotations

from importlib import import_module

from benchmarks.record import Case

# In the order in which they run and are shown.
ROWS = (
    "noise",
    "flat",
    "everywhere",
    "bounded",
    "rare",
    "taxi",
    "peers",
    "memory",
    "table",
    "crossing",
    "summaries",
    "margins",
    "wide",
    "imaging",
    "topdown",
    "cells",
    "rounding",
    "posterior",
    "point_table",
    "growth",
    "pipeline",
    "trying",
)


def cases(row: str, *, quick: bool) -> tuple[Case, ...]:
    """Return the cases of a row.

    Parameters
    ----------
    row : str
        One of `ROWS`.
    quick : bool
        Tiny sizes, to see that everything runs; the numbers then mean nothing.
    """
    found: tuple[Case, ...] = import_module(f"benchmarks.rows.{row}").cases(quick)
    return found
