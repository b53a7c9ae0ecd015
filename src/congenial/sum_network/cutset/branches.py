"""Forests that remain given a cut set, compiled for `congenial.kernels.network.cutset`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.kernels.network import cutset
from congenial.kernels.network.records import BranchLinks, BranchState, BranchTables, TalliedWindows
from congenial.kernels.network.tallies import FLOOR
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.cutset.boxes import Box, Signed
from congenial.sum_network.cutset.systems import Row, rows_touching
from congenial.sum_network.cutset.table_list import Compiler
from congenial.sum_network.weights import Unary
from congenial.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Branches:
    """A program of tables, see `kernels.network.cutset`; constant tables are filled in."""

    cut: tuple[int, ...]  # Variables that the cut set assigns.
    coefficients: IntArray  # shape (rows, cut): Their coefficients in sums with other variables.
    checks: IntArray  # shape (rest, cut): And in sums without.
    links: BranchLinks
    windows: TalliedWindows  # Tallies of tables without a tally are from 0 to 0.
    state: BranchState  # Filled tables, from which the kernels continue.
    # shape (tables,): The variable whose weight at ``orientation * value`` a UNARY table has; -1
    # for none.
    variable: IntArray
    orientation: IntArray
    moving: BoolArray  # shape (tables,): Whether an assignment can change the table.
    roots: IntArray  # Tables of the variables at the top; the one asked for comes last.
    # shape (tables,): Largest minus smallest log weight of a UNARY table.
    depth: FloatArray
    # Sums of measured variables, with signs, whose ranges windows exclude.
    sums: tuple[Signed, ...]

    @property
    def op(self) -> IntArray:
        """The kind of each table."""
        return np.asarray(self.links.op)

    @property
    def choices(self) -> int:
        """Number of choices of a draw, at most."""
        simple = np.isin(self.op, (cutset.UNARY, cutset.POINT, cutset.ENTER))
        tallied = (self.op != cutset.READ) | (self.windows.tally_hi > self.windows.tally_lo)
        return int((~simple & tallied).sum()) + self.roots.size

    @property
    def tallies(self) -> IntArray:
        """Number of tallies of each table."""
        return _widths(self.windows.tally_lo, self.windows.tally_hi)

    @property
    def width(self) -> IntArray:
        """Entries of each table."""
        return _widths(self.windows.lo, self.windows.hi) * self.tallies

    @property
    def terms(self) -> IntArray:
        """Largest number of products that are added up to an entry of each table."""
        return np.asarray(self.links.terms)

    @property
    def _products(self) -> FloatArray:
        """Multiplications that each table takes."""
        left, right = self.links.left, self.links.right
        width: FloatArray = self.width.astype(np.float64)
        out = np.where(self.op == cutset.READ, width * self.tallies[right], width[left])
        return np.asarray(np.where(self.op == cutset.MERGE, width[left] * width[right], out))

    @property
    def work(self) -> int:
        """Multiplications for one assignment that shares no table with another."""
        return int(self._products[self.moving].sum()) + self.op.size

    @property
    def once(self) -> int:
        """Multiplications for the tables that no assignment changes."""
        return int(self._products[~self.moving].sum())

    @property
    def program(self) -> BranchTables:
        """The tables as kernels take them; state is copied."""
        state = BranchState(*(array.copy() for array in self.state))
        return BranchTables(self.links, self.windows, state)


@dataclass(frozen=True, eq=False)
class ForestDraws:
    """Draws given the values of a cut set, and how sure the choices are."""

    values: IntArray  # shape (r, size): All variables.
    whole: BoolArray  # shape (r,): Whether a draw was possible; other values are undefined.
    # shape (r,): Bound on the part by which rounded weights of choices exceed their share.
    doubt: FloatArray


def draw_forest(
    branches: Branches,
    size: int,
    held: IntArray,
    words: npt.NDArray[np.uint64],
    program: BranchTables | None = None,
    weights: IntArray | None = None,
) -> ForestDraws:
    """Draw all variables given cut values, shape (r, cut), with words (r, choices).

    `weights`, shape (r, choices), gets the integer weights of the choices.
    """
    rows = held.shape[0]
    values = np.zeros((rows, branches.op.size), dtype=np.int64)
    whole, doubt = np.ones(rows, dtype=np.bool_), np.zeros(rows)
    state = branches.program if program is None else program
    chosen = np.zeros((0, 0), dtype=np.int64) if weights is None else weights
    cutset.draw(
        held, branches.coefficients, state, branches.roots, words, values, whole, doubt, chosen
    )
    out = np.zeros((rows, size), dtype=np.int64)
    own = branches.op == cutset.UNARY
    out[:, branches.variable[own]] = values[:, own] * branches.orientation[own]
    out[:, list(branches.cut)] = held
    return ForestDraws(out, whole, doubt)


def compile_branches(
    rows: tuple[Row, ...],
    box: Box,
    free: list[int],
    cut: tuple[int, ...],
    last: int | None = None,
    weights: Unary | None = None,
    tally: int | None = None,
    *,
    fill: bool = True,
) -> Branches:
    """Compile the forest that remains of `rows` when the variables of `cut` are assigned."""
    at = {v: j for j, v in enumerate(cut)}
    open_rows = [{v: a for v, a in row.items() if v not in at} for row in rows]
    coefficients = np.zeros((len(rows), len(cut)), dtype=np.int64)
    for k, row in enumerate(rows):
        for v in row.keys() & at.keys():
            coefficients[k, at[v]] = row[v]
    touching = rows_touching([{} if k == tally else row for k, row in enumerate(open_rows)])
    entering = {} if tally is None else open_rows[tally]
    build = Compiler(box)
    seen: set[int] = set()
    first = [] if last is None else [last]
    found = [
        _compile_component(build, start, open_rows, touching, coefficients, entering, seen)
        for start in [*first, *free]
        if start not in at and start not in seen
    ]
    roots = [t for t, enters in found if not enters]
    tallied = [t for t, enters in found if enters]
    if last is not None and not found[0][1]:
        roots = roots[1:] + roots[:1]
    if tallied and tally is not None:
        closed = build.close(tallied, tally, shifted=bool(coefficients[tally].any()))
        # the root asked for comes last: the first part of the tally, or one outside the tally
        roots = [*roots, closed] if found[0][1] else [closed, *roots]
    empty = [k for k, row in enumerate(open_rows) if not row]
    unary = box.unary if weights is None else weights
    return _filled(build, unary, cut, coefficients, coefficients[empty], roots, fill=fill)


def _compile_component(
    build: Compiler,
    start: int,
    rows: list[Row],
    touching: dict[int, list[int]],
    coefficients: IntArray,
    entering: Row,
    seen: set[int],
) -> tuple[int, bool]:
    """Compile the component of `start`; return whether any of it enters the tally."""
    above: dict[int, int] = {start: -1}
    flip: dict[int, int] = {start: 1}
    order = [start]
    for v in order:
        for k in touching.get(v, ()):
            if k == above[v]:
                continue
            for w, a in rows[k].items():
                if w != v:
                    above[w], flip[w] = k, a
                    order.append(w)
    seen.update(order)
    done: dict[int, int] = {}
    for v in reversed(order):
        t = build.unary(v, flip[v])
        for k in touching.get(v, ()):
            if k == above[v]:
                continue
            below = build.merge_all([done[w] for w in rows[k] if w != v])
            sign = -rows[k][v] * flip[v]
            t = build.read(t, below, sign, k, shifted=bool(coefficients[k].any()))
        done[v] = build.enter(t, entering[v] * flip[v]) if v in entering else t
    return done[start], any(v in entering for v in order)


def _filled(
    build: Compiler,
    unary: Unary,
    cut: tuple[int, ...],
    coefficients: IntArray,
    checks: IntArray,
    roots: list[int],
    *,
    fill: bool,
) -> Branches:
    columns = {k: np.array(v, dtype=np.int64) for k, v in build.columns.items()}
    flip = columns.pop("flip")
    lo, hi, op = columns["lo"], columns["hi"], columns["op"]
    hi[:] = np.maximum(hi, lo - 1)
    columns["tally_hi"] = np.maximum(columns["tally_hi"], columns["tally_lo"] - 1)
    tallies = _widths(columns["tally_lo"], columns["tally_hi"])
    width = _widths(lo, hi) * tallies
    columns["terms"] = _terms(columns, width, tallies)
    offset = np.cumsum(width) - width
    table = np.zeros(int(width.sum()) if fill else 0)
    depth = np.zeros(op.size)
    start, stop = np.zeros(op.size, dtype=np.int64), width.copy()
    for t in np.flatnonzero((op == cutset.UNARY) & (width > 0)).tolist():
        v = int(columns["variable"][t])
        u = np.arange(lo[t], hi[t] + 1.0) - flip[t] * unary.center[v]
        log_weights = log_weight(unary.kind[v], unary.scale[v], u)
        depth[t] = -float(log_weights.min())
        if fill:
            # above the exact weights, of whose logarithms a few operations are rounded
            above = 1.0 + (8.0 - 8.0 * log_weights) * 2.0**-52
            entries = np.maximum(elementwise.exp(log_weights) * above, FLOOR)
            table[offset[t] : offset[t] + width[t]] = entries
    if fill:
        table[offset[op == cutset.POINT]] = 1.0
    links = BranchLinks(*(columns[name] for name in BranchLinks._fields))
    windows = TalliedWindows(lo, hi, columns["tally_lo"], columns["tally_hi"], offset)
    shifts = np.zeros(coefficients.shape[0], dtype=np.int64)
    state = BranchState(table, start, stop, np.ones(op.size), np.zeros(op.size), shifts)
    if fill:
        cutset.fill_once(BranchTables(links, windows, state))
    return Branches(
        cut,
        coefficients,
        checks,
        links,
        windows,
        state,
        variable=columns["variable"],
        orientation=flip,
        moving=np.array(build.moving, dtype=np.bool_),
        roots=np.array(roots, dtype=np.int64),
        depth=depth,
        sums=build.sums,
    )


def _widths(lo: IntArray, hi: IntArray) -> IntArray:
    return np.asarray(np.maximum(hi - lo + 1, 0), dtype=np.int64)


def _terms(columns: dict[str, IntArray], width: IntArray, tallies: IntArray) -> IntArray:
    """Return the largest number of products that are added up to an entry of each table."""
    op, left, right = columns["op"], columns["left"], columns["right"]
    fewer = np.minimum(width[left], width[right])
    of_tallies = np.minimum(tallies[left], tallies[right])
    out = np.where(np.isin(op, (cutset.READ, cutset.CLOSE)), of_tallies, 1)
    out = np.where(op == cutset.MERGE, fewer, out)
    return np.asarray(np.where(op == cutset.SUM, width[left], out), dtype=np.int64)


def log_weight(kind: int, scale: float, u: FloatArray) -> FloatArray:
    """Log of the weight of noise values, 0 at the mode."""
    if kind == laws.LAPLACE:
        return -np.abs(u) / scale
    if kind == laws.GAUSSIAN:
        return -0.5 * (u / scale) ** 2
    return np.zeros(u.size)
