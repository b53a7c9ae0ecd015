"""Refuse fixed sums that contradict one another, before any draw."""

from __future__ import annotations

import numpy as np

from congenial.accounting.neighbours.counting import counting
from congenial.errors import InfeasibleError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.wording import joined

# Most rows that are tested for a contradiction; with more, only data that violate a row are
# refused.
_MOST_ROWS = 1000
_TOLERANCE = 1e-9


def check_consistent(resolved: ResolvedInvariant) -> None:
    """Check that some values satisfy all linear conditions together with the tree.

    A row may follow from others; it is an error only if its value contradicts them.

    Notes
    -----
    ``A z = b`` has a solution unless some r has ``A' r = 0`` and ``b' r != 0``. If there is one,
    the projection of b onto the null space of A A' is such an r, and its nonzero entries are the
    rows at fault.
    """
    matrix, value = resolved.equalities
    if not 0 < value.size <= _MOST_ROWS:
        return
    rows = matrix
    if resolved.counted is not None:
        rows = counting(resolved.n, resolved.counted).on_cells(matrix)
    lengths = np.linalg.norm(rows, axis=1)
    lengths[lengths == 0.0] = 1.0
    rows, value = rows / lengths[:, None], value / lengths
    sizes, vectors = np.linalg.eigh(rows @ rows.T)
    null = vectors[:, sizes <= 1e-10 * max(1.0, float(sizes[-1]))]
    off = null @ (null.T @ value)
    most = float(np.abs(off).max())
    if most <= _TOLERANCE * float(np.abs(value).max()):
        return
    if float(np.abs(off @ rows).max()) > _TOLERANCE * most:  # small, but not in the null space
        return
    *others, last = np.flatnonzero(np.abs(off) > 1e-6 * most).tolist()
    by_tree = float(np.abs((off / lengths) @ matrix).max()) > _TOLERANCE * most
    if not others and not by_tree:
        raise InfeasibleError(
            f"row {last} of the linear conditions, counted from 0, has only zero coefficients and "
            "a value other than 0; leave it out."
        )
    raise InfeasibleError(
        f"row {last} of the linear conditions, counted from 0, contradicts "
        f"{_listed(others, by_tree=by_tree)}; correct its value or leave it out."
    )


def _listed(rows: list[int], *, by_tree: bool) -> str:
    named = [str(k) for k in rows[:4]] + [f"{len(rows) - 4} more"] * (len(rows) > 4)
    text = f"row{'s' * (len(rows) > 1)} {joined(named)}" if named else ""
    return " and ".join(filter(None, (text, "the tree" * by_tree)))
