"""Invariants on the margins of tables, made here and joined to others with ``&``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from congenial.domain.given import limits
from congenial.domain.table import Table, margin_names
from congenial.domain.workload import MarginLike
from congenial.errors import ArgumentError
from congenial.invariants.margins import (
    AtLeastAsMany,
    ExactMargins,
    Level,
    MarginBounds,
    Side,
)
from congenial.invariants.written import Invariant


def exactly_margins(
    margins: Sequence[MarginLike], *, level: Level = None, table: str | Table | None = None
) -> Invariant:
    """Every count of the margins is published as enumerated, in every area of a level.

    Parameters
    ----------
    margins : sequence of margins
        Tuples of axes or groups, each counted by the workload at that level; ``()`` is the total.
        They need no noise of their own.
    level : str or int, optional
        By name or by depth; the coarsest by default.
    table : str or Table, optional
        Needed where the workload has several.

    Notes
    -----
    The values are confidential counts, so they are *unprotected*: a guarantee compares only
    datasets that agree on them, and names them.

    Examples
    --------
    >>> import congenial as cg
    >>> table = cg.Table({"sex": ("F", "M"), "age": ("0-17", "18-64", "65+")})
    >>> workload = cg.Workload.of(table, [("sex",)])
    >>> noise = cg.DiscreteLaplace(workload.scales({("sex", "age"): 2.0}))
    >>> mandate = cg.consistent(workload) & cg.exactly_margins([("sex",)])
    >>> release = cg.condition(cg.Additive(noise, workload), mandate)
    >>> z = release.sample(workload.answers([[1, 5, 2], [3, 4, 0]]), rng=cg.seeded(1))
    >>> workload.array(z, ("sex",)).tolist()
    [8, 7]
    """
    if isinstance(margins, str) or not isinstance(margins, Sequence) or not len(margins):
        raise ArgumentError(
            "exactly_margins() was given no list of margins; give at least one, such as "
            "[('sex',)], or [()] for the total."
        )
    return Invariant((ExactMargins(tuple(map(margin_names, margins)), level, _name(table)),))


def bounds_margins(
    margin: MarginLike,
    lo: npt.ArrayLike = -np.inf,
    hi: npt.ArrayLike = np.inf,
    *,
    level: Level = None,
    table: str | Table | None = None,
) -> Invariant:
    """Every count of a margin lies in ``[lo, hi]``, in every area of a level; bounds are public.

    Parameters
    ----------
    margin : tuple of str
    lo, hi : float, or array_like of float
        One number, or an array of the shape that ``workload.array`` gives the margin.
    level, table
        As for `exactly_margins`.
    """
    low, high = limits("bounds_margins", lo, hi)
    return Invariant((MarginBounds(margin_names(margin), low, high, level, _name(table)),))


def at_least_as_many(
    more: tuple[str | Table | None, Side],
    fewer: tuple[str | Table | None, Side],
    *,
    level: Level = None,
) -> Invariant:
    """One margin is nowhere below another, count by count, in every area of a level.

    Parameters
    ----------
    more, fewer : tuple of (table, margin) or (table, mapping)
        A margin stands for all its counts. A mapping gives a value for some of the margin's axes
        or groups and None for the others, whose values are all meant. Both sides need the same
        number of counts in an area, which are compared in the order of the axes named.
    level : str or int, optional
        As for `exactly_margins`.

    Examples
    --------
    Where a home is occupied, somebody lives:

    >>> import congenial as cg
    >>> streets = cg.Tree.from_paths([("town", "a"), ("town", "b")])
    >>> people = cg.Table({"age": ("0-17", "18+")}, geography=streets, name="people")
    >>> homes = cg.Table({"occupied": ("yes", "no")}, geography=streets, name="homes")
    >>> settled = cg.at_least_as_many((people, ()), (homes, {"occupied": "yes"}), level=1)
    """
    sides = []
    for side in (more, fewer):
        if not isinstance(side, tuple) or len(side) != 2:
            raise ArgumentError(
                f"at_least_as_many() was given {side!r}; give a pair of a table and a margin, or "
                "of a table and a mapping from axes to values."
            )
        sides.append((_name(side[0]), side[1]))
    return Invariant((AtLeastAsMany(sides[0], sides[1], level),))


def _name(table: str | Table | None) -> str | None:
    return table.name if isinstance(table, Table) else table
