"""The Census Bureau's several passes of least squares and of rounding, from their description.

Abowd et al. (2022), The 2020 Census Disclosure Avoidance System TopDown Algorithm, describes them.
Where it is silent, these are the choices made here:

- Order of the passes: the total first, then all other margins and the cells, in the least squares
  and in the rounding.
- A later pass of least squares keeps each total within 0.01 of the earlier pass.
- The first pass chooses totals alone. Cells that have these totals and add up to the parent's
  cells always exist, so leaving the cells out changes nothing.
- The weight of a measurement is one over its variance, at every level.
- The rounding minimises the summed change of a margin among integers: its cost is exact at integers
  and linear between them. Otherwise a relaxation could place a margin between two integers.
- Every cell is rounded down or up by less than one, or raised by one where it is whole.
- The root, without a parent, has its exact total in the place of a parent's cells.
- Ties are left to the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np

from congenial.errors import NumericalError
from congenial.types import FloatArray, IntArray

# How far a later pass may move a total.
TOLERANCE = 0.01
# Gap at which the quadratic programmes end, and the difference from an integer that counts as none.
_AIM, _WHOLE = 1e-9, 1e-5
# Families that a process takes at once.
_SHARE = 16


@dataclass(frozen=True, eq=False)
class Margins:
    """Every cell's class in each margin: the total, the others, and the cells last.

    Attributes
    ----------
    classes : tuple of ndarray of int64, shape (cells,)
    """

    classes: tuple[IntArray, ...]

    @property
    def cells(self) -> int:
        """Number of cells of one area."""
        return int(self.classes[-1].size)

    def sums(self, used: IntArray) -> list[FloatArray]:
        """Return for each margin the matrix that adds up the cells in use, empty classes too."""
        found = []
        for classes in self.classes:
            matrix = np.zeros((int(classes.max()) + 1, used.size))
            matrix[classes[used], np.arange(used.size)] = 1.0
            found.append(matrix)
        return found


@dataclass(frozen=True, eq=False)
class Siblings:
    """The children of one area, C of them, and what was measured of them.

    Attributes
    ----------
    whole : ndarray of int64, shape (cells,) or (1,)
        The parent's cells; of the root its total.
    weight, target : tuple of ndarray of float64, shape (C, classes)
        For each margin; weight 0 where nothing was measured.
    """

    whole: IntArray
    weight: tuple[FloatArray, ...]
    target: tuple[FloatArray, ...]


def fitted(margins: Margins, family: Siblings, passes: int = 2) -> IntArray:
    """Return whole cells of all children, shape (C, cells).

    Parameters
    ----------
    margins : Margins
    family : Siblings
    passes : int
        2, or 1 for all margins at once in the least squares and in the rounding.
    """
    children, cells = family.target[-1].shape
    rooted = family.whole.size != cells
    used = np.arange(cells) if rooted else np.flatnonzero(family.whole)
    out = np.zeros((children, cells), dtype=np.int64)
    if not used.size:
        return out
    whole = family.whole if rooted else family.whole[used]
    sums = margins.sums(used)
    totals = None
    if passes > 1 and family.weight[0].all():
        totals = _totals(family.weight[0][:, 0], family.target[0][:, 0], float(whole.sum()))
    x = _least_squares(sums, used, family, whole, totals)
    out[:, used] = _rounded(sums, x, whole, passes)
    return out


def _totals(weight: FloatArray, target: FloatArray, whole: float) -> FloatArray:
    """Return the first pass: the closest totals that add up and are not negative."""
    size = weight.size
    start = np.full(size, np.rint(whole / size))
    found = _solved(
        np.diag(weight / weight.max()),
        -(weight / weight.max()) * (target - start),
        np.ones((1, size)),
        np.array([whole - start.sum()]),
        None,
        -start,
    )
    return np.asarray(np.maximum(start + found, 0.0))


def _least_squares(
    sums: list[FloatArray],
    used: IntArray,
    family: Siblings,
    whole: IntArray,
    totals: FloatArray | None,
) -> FloatArray:
    """Return the closest cells (C, used), their totals within a tolerance of those given."""
    from scipy import sparse

    children, width = family.target[0].shape[0], used.size
    # relative to the parent's cells shared out, so that numbers have the size of the noise
    share = np.rint(whole / children) if whole.size == width else np.zeros(width)
    start = np.tile(share, (children, 1))
    heaviest = max(float(weight.max()) for weight in family.weight)
    squares, slopes = [], np.zeros((children, width))
    for c in range(children):
        square = np.zeros((width, width))
        for k, matrix in enumerate(sums):
            last = k == len(sums) - 1
            rows = used if last else slice(None)
            part = matrix[used] if last else matrix
            weight = family.weight[k][c][rows] / heaviest
            square += part.T @ (weight[:, None] * part)
            slopes[c] -= part.T @ (weight * (family.target[k][c][rows] - part @ start[c]))
        squares.append(square)
    adding = np.eye(width) if whole.size == width else np.ones((1, width))
    within = None
    if totals is not None:
        rows = sparse.block_diag([np.ones((1, width))] * children)
        short = totals - start.sum(axis=1)
        within = rows, short - TOLERANCE, short + TOLERANCE
    found = _solved(
        sparse.block_diag(squares),
        slopes.ravel(),
        sparse.hstack([sparse.csc_matrix(adding)] * children),
        whole - adding @ start.sum(axis=0),
        within,
        -start.ravel(),
    )
    return np.asarray(np.maximum(start + found.reshape(children, width), 0.0))


def _solved(
    square: Any, slope: FloatArray, adding: Any, whole: FloatArray, within: Any, low: FloatArray
) -> FloatArray:
    """Solve a quadratic programme."""
    import piqp
    from scipy import sparse

    solver = piqp.SparseSolver()
    solver.settings.eps_abs, solver.settings.eps_rel = _AIM, _AIM
    solver.settings.eps_duality_gap_abs, solver.settings.eps_duality_gap_rel = _AIM, _AIM
    rows, least, most = (None, None, None) if within is None else within
    solver.setup(
        sparse.csc_matrix(square),
        slope,
        sparse.csc_matrix(adding),
        whole,
        None if rows is None else sparse.csc_matrix(rows),
        least,
        most,
        low,
        None,
    )
    status = solver.solve()
    found = np.asarray(solver.result.x)
    if not np.isfinite(found).all():
        raise NumericalError(f"a quadratic programme was not solved: {status}.")
    return found


def _rounded(sums: list[FloatArray], x: FloatArray, whole: IntArray, passes: int) -> IntArray:
    """Round cells (C, used) down or up, so that they add up and the margins change least."""
    base = np.floor(x + _WHOLE)
    share = np.clip(x - base, 0.0, 1.0)
    if passes == 1:
        return np.rint(base + _program(sums, share, base, whole, None)).astype(np.int64)
    first = _program(sums[:1], share, base, whole, None)
    second = _program(sums[1:], share, base, whole, first.sum(axis=1))
    return np.rint(base + second).astype(np.int64)


def _program(
    sums: list[FloatArray],
    share: FloatArray,
    base: FloatArray,
    whole: IntArray,
    totals: FloatArray | None,
) -> FloatArray:
    """Return 0 or 1 for each cell: the least change of these margins, with the totals given."""
    from scipy import optimize, sparse

    children, width = share.shape
    cells = len(sums) > 1
    cost = (1.0 - 2.0 * share).ravel() * cells
    margins = np.vstack(sums[:-1] if cells else sums)
    near = np.rint((share @ margins.T) / _WHOLE) * _WHOLE
    low = np.floor(near)
    # a margin's rounding is `low`, plus one at the cost of its share, plus or minus more
    step, many = 1.0 - 2.0 * (near - low).ravel(), low.size
    each = np.ones(many)
    of = sparse.kron(sparse.eye_array(children), margins)
    unit = sparse.eye_array(many)
    adding = np.eye(width) if whole.size == width else np.ones((1, width))
    rest = whole - adding @ base.sum(axis=0)
    none = sparse.csc_matrix((adding.shape[0], 3 * many))
    rows = [
        optimize.LinearConstraint(
            sparse.csc_matrix(sparse.hstack([of, -unit, -unit, unit])), low.ravel(), low.ravel()
        ),
        optimize.LinearConstraint(
            sparse.csc_matrix(sparse.hstack([*([sparse.csc_matrix(adding)] * children), none])),
            rest,
            rest,
        ),
    ]
    if totals is not None:
        held = sparse.kron(sparse.eye_array(children), np.ones((1, width)))
        some = sparse.csc_matrix((children, 3 * many))
        held = sparse.csc_matrix(sparse.hstack([held, some]))
        rows.append(optimize.LinearConstraint(held, totals, totals))
    upper = np.concatenate((np.ones(share.size + many), np.full(2 * many, np.inf)))
    found = optimize.milp(
        np.concatenate((cost, step, each, each)),
        constraints=rows,
        bounds=optimize.Bounds(0.0, upper),
        integrality=np.concatenate((np.ones(share.size), np.zeros(3 * many))),
    )
    if found.x is None:
        raise NumericalError(f"a rounding was not solved: {found.message}")
    return np.asarray(np.rint(found.x[: share.size]).reshape(share.shape))


def descend(
    margins: Margins,
    levels: list[IntArray],
    exact: int,
    weight: list[list[FloatArray]],
    target: list[list[FloatArray]],
    passes: int = 2,
    workers: int = 1,
) -> list[IntArray]:
    """Go down a geography, every area's children under its cells.

    Parameters
    ----------
    margins : Margins
    levels : list of ndarray of int64
        For each level the place of every area's parent in the level above; of the root, [0].
    exact : int
        Total of the root.
    weight, target : list of list of ndarray of float64, shape (areas, classes)
        For each level, each margin.
    passes : int
        2, or 1 for all margins at once.
    workers : int
        Processes.

    Returns
    -------
    list of ndarray of int64, shape (areas, cells)
        The cells of each level's areas.
    """
    out: list[IntArray] = []
    pool = ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else None
    try:
        for level, parent in enumerate(levels):
            above = out[-1] if out else np.array([[exact]])
            members = [np.flatnonzero(parent == head) for head in range(len(above))]
            families = [
                Siblings(
                    above[head],
                    tuple(one[at] for one in weight[level]),
                    tuple(one[at] for one in target[level]),
                )
                for head, at in enumerate(members)
            ]
            here = np.zeros((parent.size, margins.cells), dtype=np.int64)
            for at, found in zip(members, _mapped(pool, margins, families, passes), strict=True):
                here[at] = found
            out.append(here)
    finally:
        if pool is not None:
            pool.shutdown()
    return out


def _mapped(
    pool: ProcessPoolExecutor | None, margins: Margins, families: list[Siblings], passes: int
) -> Iterator[IntArray]:
    parts = [families[at : at + _SHARE] for at in range(0, len(families), _SHARE)]
    count = len(parts)
    step: Callable[..., Iterable[list[IntArray]]] = map if pool is None else pool.map
    for found in step(_several, [margins] * count, parts, [passes] * count):
        yield from found


def _several(margins: Margins, families: list[Siblings], passes: int) -> list[IntArray]:
    return [fitted(margins, family, passes) for family in families]
