"""One family under its parent's cells by general solvers, where the kernel finds no table.

If no table of integers adds up to the parent's cells, these change as little as possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.errors import InfeasibleError, NumericalError
from congenial.imaging.solvers.general import check_solvers
from congenial.types import BoolArray, FloatArray, IntArray

# Cost of changing a parent's cell by one count, relative to other changes.
_PARENT = 1024.0
# Time limit of a search for integers, in seconds.
_SECONDS = 20.0
# Distance to an integer at which a value counts as one.
_WHOLE = 2.0**-20


@dataclass(frozen=True, eq=False)
class Family:
    """The children of one node: C children, K cells, Q rows, the first K of which are the cells."""

    of: IntArray  # shape (K, M): The row of each cell in each margin; the first are the cells.
    parent: FloatArray | None  # shape (K,): The parent's cells; None for a root.
    weight: FloatArray  # shape (C, Q)
    target: FloatArray  # shape (C, Q)
    low: FloatArray  # shape (C, Q)
    high: FloatArray  # shape (C, Q)
    counted: BoolArray  # shape (C, Q): Whether rounding counts the change of a row.

    @property
    def sums(self) -> FloatArray:
        """Contribution of a record in each cell to each row, shape (Q, K)."""
        out = np.zeros((self.low.shape[1], self.of.shape[0]))
        for margin in self.of.T:
            out[margin, np.arange(margin.size)] = 1.0
        return out

    @property
    def margins(self) -> Any:
        """Contribution of each cell of each child to the children's margins, as sparse rows."""
        from scipy import sparse

        count, cells = self.low.shape[0], self.of.shape[0]
        return sparse.kron(sparse.eye_array(count), self.sums[cells:])

    @property
    def total(self) -> Any:
        """The sum of the children's cells, as sparse rows."""
        from scipy import sparse

        return sparse.hstack([sparse.eye_array(self.of.shape[0])] * self.low.shape[0])


def settle(family: Family, x: FloatArray | None = None, *, integer: bool) -> FloatArray:
    """Cells of the children, shape (C, K): fitted, and rounded where `integer`.

    A fit `x` is only rounded. Otherwise the cells are fitted. They add up to the parent's, or to
    cells as close to the parent's as the bounds allow. Raises InfeasibleError if a child's own
    bounds leave no table, and NumericalError if a solver gave up.
    """
    check_solvers()
    parent = family.parent
    if x is None:
        x = _fitted(family, parent)
    if x is None and parent is not None:
        parent = _nearest(family, whole=integer)
        x = _fitted(family, parent)
    if x is None:
        raise InfeasibleError(
            "the bounds and the counts published exactly in one area leave no table; relax bounds, "
            "or publish fewer counts exactly there."
        )
    if not integer:
        return x
    found = _between(family, x, parent) if parent is not None else None
    return _rounded(family, x, parent) if found is None else found


def _fitted(family: Family, parent: FloatArray | None) -> FloatArray | None:
    """The closest cells by a general solver, shape (C, K); None if there are none."""
    import piqp
    from scipy import sparse

    count, cells = family.low.shape[0], family.of.shape[0]
    sums = family.sums
    scale = max(float(family.weight.max()), 1e-300)
    blocks = [sums.T @ ((w / scale)[:, None] * sums) for w in family.weight]
    slope = [-sums.T @ (w / scale * t) for w, t in zip(family.weight, family.target, strict=True)]
    rows = family.margins
    low, high = family.low[:, cells:].ravel(), family.high[:, cells:].ravel()
    fixed = low == high
    kept = ~fixed & (np.isfinite(low) | np.isfinite(high))
    total = [sparse.csr_array(rows)[fixed]]
    value = [low[fixed]]
    if parent is not None:
        total.append(sparse.csr_array(family.total))
        value.append(parent)
    solver = piqp.SparseSolver()
    solver.settings.verbose = False
    solver.settings.max_iter = 500
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
    solver.setup(
        sparse.csc_matrix(sparse.block_diag(blocks)),
        np.concatenate(slope),
        sparse.csc_matrix(sparse.vstack(total)),
        np.concatenate(value),
        sparse.csc_matrix(sparse.csr_array(rows)[kept]),
        low[kept],
        high[kept],
        family.low[:, :cells].ravel(),
        family.high[:, :cells].ravel(),
    )
    status = solver.solve()
    if status == piqp.Status.PIQP_PRIMAL_INFEASIBLE:
        return None
    x = np.asarray(solver.result.x).reshape(count, cells)
    across = x @ sums.T
    off = np.maximum(family.low - across, across - family.high).max()
    if parent is not None:
        off = max(off, float(np.abs(x.sum(axis=0) - parent).max()))
    size = max(1.0, float(np.abs(across).max()))
    return x if off <= 1e-6 * size else None


def _nearest(family: Family, *, whole: bool) -> FloatArray:
    """The parent's cells that children can have and that change least, shape (K,)."""
    from scipy import sparse

    count, cells = family.low.shape[0], family.of.shape[0]
    given = np.zeros(cells) if family.parent is None else family.parent
    spare = sparse.hstack([-sparse.eye_array(cells), sparse.eye_array(cells)])
    rows = family.margins
    wide = sparse.hstack([rows, sparse.csr_array((rows.shape[0], 2 * cells))])
    found = _milp(
        np.concatenate((np.zeros(count * cells), np.ones(2 * cells))),
        np.concatenate((family.low[:, :cells].ravel(), np.zeros(2 * cells))),
        np.concatenate((family.high[:, :cells].ravel(), np.full(2 * cells, np.inf))),
        [
            (wide, family.low[:, cells:].ravel(), family.high[:, cells:].ravel()),
            (sparse.hstack([family.total, spare]), given, given),
        ],
        whole=whole,
    )
    return np.asarray(family.total @ found[: count * cells])


def _between(family: Family, x: FloatArray, parent: FloatArray) -> FloatArray | None:
    """Cells rounded down or up with the least summed change of cells, or None if none fit.

    The change of margins is left out, so that the relaxation is nearly whole and large families
    take seconds.
    """
    cells = x.shape[1]
    base = np.floor(x + _WHOLE)
    part = np.maximum(x - base, 0.0)
    across = base @ family.sums.T
    low, high = ((one - across)[:, cells:] for one in (family.low, family.high))
    rest = parent - base.sum(axis=0)
    try:
        found = _milp(
            (1.0 - 2.0 * part).ravel(),
            np.zeros(x.size),
            ((part > _WHOLE) & (base + 1.0 <= family.high[:, :cells])).ravel().astype(np.float64),
            [(family.margins, low.ravel(), high.ravel()), (family.total, rest, rest)],
            whole=True,
        )
    except (InfeasibleError, NumericalError):
        return None
    return np.asarray(base + np.rint(found).reshape(x.shape))


def _rounded(family: Family, x: FloatArray, parent: FloatArray | None) -> FloatArray:
    """Integers near `x` of least summed change within the bounds, shape (C, K)."""
    from scipy import sparse

    count, cells = x.shape
    n = x.size
    rows = sparse.csr_array(sparse.kron(sparse.eye_array(count), family.sums))
    change = rows[family.counted.ravel()]
    m = change.shape[0]
    target = change @ x.ravel()
    base = np.floor(x + _WHOLE)
    bounds = sparse.csr_array((rows.shape[0], m + 2 * cells))
    parts: list[tuple[Any, Any, Any]] = [
        (sparse.hstack([rows, bounds]), family.low.ravel(), family.high.ravel())
    ]
    for sign, low, high in ((-1.0, -np.inf, target), (1.0, target, np.inf)):
        off = sign * sparse.eye_array(m)
        parts.append((sparse.hstack([change, off, sparse.csr_array((m, 2 * cells))]), low, high))
    free = 0.0
    if parent is not None:
        free = np.inf
        none, unit = sparse.csr_array((cells, m)), sparse.eye_array(cells)
        parts.append((sparse.hstack([family.total, none, unit, -unit]), parent, parent))
    found = _milp(
        np.concatenate((np.zeros(n), np.ones(m), np.full(2 * cells, _PARENT))),
        np.concatenate(
            (np.maximum(base.ravel() - 1.0, family.low[:, :cells].ravel()), np.zeros(m + 2 * cells))
        ),
        np.concatenate(
            (
                np.minimum(base.ravel() + 2.0, family.high[:, :cells].ravel()),
                np.full(m, np.inf),
                np.full(2 * cells, free),
            )
        ),
        parts,
        whole=True,
        first=n,
    )
    return np.rint(found[:n]).reshape(count, cells)


def _milp(
    cost: FloatArray,
    low: FloatArray,
    high: FloatArray,
    parts: list[tuple[Any, Any, Any]],
    *,
    whole: bool,
    first: int | None = None,
) -> FloatArray:
    from scipy.optimize import Bounds, LinearConstraint, milp

    kinds = np.zeros(cost.size)
    kinds[: cost.size if first is None else first] = whole
    found = milp(
        cost,
        integrality=kinds,
        bounds=Bounds(low, high),
        constraints=[LinearConstraint(*part) for part in parts],
        options={"time_limit": _SECONDS},
    )
    if found.x is None:
        if found.status == 2:
            raise InfeasibleError(
                "the bounds and the counts published exactly in one area leave no table of "
                "integers; relax bounds, or publish fewer counts exactly there."
            )
        raise NumericalError(
            f"the search for a family's integers ended early (HiGHS status {found.status}); "
            "release real numbers with integer=False."
        )
    return np.asarray(found.x)
