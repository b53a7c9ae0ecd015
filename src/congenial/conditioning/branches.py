"""Forests left by a cut set, compiled for `congenial.kernels.cutset`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.boxes import Box, Signed, added
from congenial.conditioning.systems import Row
from congenial.conditioning.weights import Unary
from congenial.kernels import cutset, laws

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
Program = tuple[npt.NDArray[np.generic], ...]


@dataclass(frozen=True, eq=False)
class Branches:
    """A program of tables, see `congenial.kernels.cutset`, with those that never change filled in.

    Attributes
    ----------
    cut : tuple of int
        Variables that are held.
    coefficients, checks : ndarray of int64, shapes (rows, cut) and (rest, cut)
        What held variables add to the sums that still have others, and to those that have not.
    op, left, right, sign, row, lo, hi, offset : ndarray of int64, shape (tables,)
    variable, orientation : ndarray of int64, shape (tables,)
        The variable whose weight a UNARY table holds (-1 for none) at ``orientation * value``.
    moving : ndarray of bool, shape (tables,)
        Whether a held value can change the table.
    table, start, stop, log_scale, shifts : ndarray
        State that the kernels go on from.
    roots : ndarray of int64
        Tables of the variables at the top; the one asked for comes last.
    events : int
        Sums that a window cuts off.
    choices : int
        Random words that one draw takes.
    """

    cut: tuple[int, ...]
    coefficients: IntArray
    checks: IntArray
    op: IntArray
    left: IntArray
    right: IntArray
    sign: IntArray
    row: IntArray
    lo: IntArray
    hi: IntArray
    offset: IntArray
    variable: IntArray
    orientation: IntArray
    moving: npt.NDArray[np.bool_]
    table: FloatArray
    start: IntArray
    stop: IntArray
    log_scale: FloatArray
    shifts: IntArray
    roots: IntArray
    events: int

    @property
    def choices(self) -> int:
        """Number of merges and roots."""
        return int((self.op == cutset.MERGE).sum()) + self.roots.size

    @property
    def width(self) -> IntArray:
        """Width of each table."""
        return np.asarray(np.maximum(self.hi - self.lo + 1, 0), dtype=np.int64)

    @property
    def work(self) -> int:
        """Multiplications that one assignment takes at most, no table shared with another."""
        width = self.width.astype(np.float64)
        cost = np.where(self.op == cutset.MERGE, width[self.left] * width[self.right], width)
        return int(cost[self.moving].sum()) + self.op.size

    @property
    def program(self) -> Program:
        """Arguments of the kernels, from `row` to `shifts`; state is copied."""
        fixed = (self.row, self.op, self.left, self.right, self.sign, self.lo, self.hi, self.offset)
        state = (self.table, self.start, self.stop, self.log_scale, self.shifts)
        return (*fixed, *(array.copy() for array in state))


class _Compiler:
    """Grows the list of tables."""

    def __init__(self, box: Box) -> None:
        self.box = box
        self.columns: dict[str, list[int]] = {
            name: []
            for name in ("op", "left", "right", "sign", "row", "lo", "hi", "variable", "flip")
        }
        self.moving: list[bool] = []
        self.spans: list[tuple[Signed, int, int]] = []
        self.events = 0
        self._reached: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {}

    def add(
        self, op: int, lo: int, hi: int, span: tuple[Signed, int, int], moving: bool, **more: int
    ) -> int:
        given = {"op": op, "lo": lo, "hi": hi, **more}
        rest = {"left": 0, "right": 0, "sign": 1, "row": 0, "variable": -1, "flip": 1}
        for name, column in self.columns.items():
            column.append(given.get(name, rest.get(name, 0)))
        self.moving.append(moving)
        self.spans.append(span)
        return len(self.moving) - 1

    def unary(self, v: int, flip: int) -> int:
        lo, hi = int(self.box.lo[v]), int(self.box.hi[v])
        if flip < 0:
            lo, hi = -hi, -lo
        span = _turned(self.box.spans[v], flip)
        return self.add(cutset.UNARY, lo, hi, span, moving=False, variable=v, flip=flip)

    def merge(self, a: int, b: int) -> int:
        col = self.columns
        lo, hi = col["lo"][a] + col["lo"][b], col["hi"][a] + col["hi"][b]
        one, two = self.spans[a], self.spans[b]
        span = (added(one[0], two[0]), one[1] + two[1], one[2] + two[2])
        key = tuple(sorted(span[0].items()))
        if key not in self._reached:
            self._reached[key] = self.box.reach(span[0])
        reach = self._reached[key]
        self.events += 2
        lo, hi = max(lo, reach[0] + span[1]), min(hi, reach[1] + span[2])
        moving = self.moving[a] or self.moving[b]
        return self.add(cutset.MERGE, lo, hi, span, moving, left=a, right=b)

    def merge_all(self, parts: list[int]) -> int:
        """Merge in rounds of pairs, tables that never change first."""
        still = self._rounds([t for t in parts if not self.moving[t]])
        joined = still + self._rounds([t for t in parts if self.moving[t]])
        if not joined:
            return self.add(cutset.POINT, 0, 0, ({}, 0, 0), moving=False)
        return self.merge(joined[0], joined[1]) if len(joined) == 2 else joined[0]

    def _rounds(self, group: list[int]) -> list[int]:
        while len(group) > 1:
            pairs = [self.merge(a, b) for a, b in zip(group[::2], group[1::2], strict=False)]
            group = pairs + (group[-1:] if len(group) % 2 else [])
        return group


def _turned(span: tuple[Signed, int, int], way: int) -> tuple[Signed, int, int]:
    if way > 0:
        return span
    return {v: -a for v, a in span[0].items()}, -span[2], -span[1]


def compile_branches(
    rows: tuple[Row, ...],
    box: Box,
    free: list[int],
    cut: tuple[int, ...],
    last: int | None = None,
    weights: Unary | None = None,
) -> Branches:
    """Compile the forest that is left of `rows` when the variables of `cut` are held.

    Parameters
    ----------
    rows : tuple of dict
    box : Box
    free : list of int
        Variables that are not fixed.
    cut : tuple of int
    last : int, optional
        Variable to stand at the top, as the last root.
    weights : Unary, optional
        Weights other than those that the windows are made for.

    Returns
    -------
    Branches
    """
    held = {v: j for j, v in enumerate(cut)}
    open_rows = [{v: a for v, a in row.items() if v not in held} for row in rows]
    coefficients = np.zeros((len(rows), len(cut)), dtype=np.int64)
    for k, row in enumerate(rows):
        for v, a in row.items():
            if v in held:
                coefficients[k, held[v]] = a
    touching: dict[int, list[int]] = {}
    for k, row in enumerate(open_rows):
        for v in row:
            touching.setdefault(v, []).append(k)
    build = _Compiler(box)
    roots = []
    seen: set[int] = set()
    first = [] if last is None else [last]
    for start in [*first, *free]:
        if start in held or start in seen:
            continue
        roots.append(_compile_component(build, start, open_rows, touching, coefficients, seen))
    if last is not None:
        roots = roots[1:] + roots[:1]
    empty = [k for k, row in enumerate(open_rows) if not row]
    unary = box.unary if weights is None else weights
    return _filled(build, unary, cut, coefficients, coefficients[empty], roots)


def _compile_component(
    build: _Compiler,
    start: int,
    rows: list[Row],
    touching: dict[int, list[int]],
    coefficients: IntArray,
    seen: set[int],
) -> int:
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
            moving = build.moving[t] or build.moving[below] or bool(coefficients[k].any())
            lo, hi = build.columns["lo"][t], build.columns["hi"][t]
            sign = -rows[k][v] * flip[v]
            span = build.spans[t]
            t = build.add(cutset.READ, lo, hi, span, moving, left=t, right=below, sign=sign, row=k)
        done[v] = t
    return done[start]


def _filled(
    build: _Compiler,
    unary: Unary,
    cut: tuple[int, ...],
    coefficients: IntArray,
    checks: IntArray,
    roots: list[int],
) -> Branches:
    columns = {k: np.array(v, dtype=np.int64) for k, v in build.columns.items()}
    flip = columns.pop("flip")
    lo, hi, op = columns["lo"], columns["hi"], columns["op"]
    hi[:] = np.maximum(hi, lo - 1)
    width = hi - lo + 1
    offset = np.concatenate(([0], np.cumsum(width)))[:-1].astype(np.int64)
    table = np.zeros(int(width.sum()))
    start, stop = np.zeros(op.size, dtype=np.int64), width.copy()
    table[offset[op == cutset.POINT]] = 1.0
    for t in np.flatnonzero((op == cutset.UNARY) & (width > 0)).tolist():
        v = int(columns["variable"][t])
        u = np.arange(lo[t], hi[t] + 1.0) - flip[t] * unary.center[v]
        table[offset[t] : offset[t] + width[t]] = np.exp(
            log_weight(unary.kind[v], unary.scale[v], u)
        )
    # entries that underflow count as none
    for t in np.flatnonzero(op < cutset.MERGE).tolist():
        positive = np.flatnonzero(table[offset[t] : offset[t] + width[t]] > 0)
        start[t], stop[t] = (positive[0], positive[-1] + 1) if positive.size else (0, 0)
    out = Branches(
        cut,
        coefficients,
        checks,
        **columns,
        offset=offset,
        orientation=flip,
        moving=np.array(build.moving, dtype=np.bool_),
        table=table,
        start=start,
        stop=stop,
        log_scale=np.zeros(op.size),
        shifts=np.zeros(coefficients.shape[0], dtype=np.int64),
        roots=np.array(roots, dtype=np.int64),
        events=build.events,
    )
    shape = (op, out.left, out.right, out.sign, out.row, lo, hi, offset)
    cutset.fill_once(*shape, table, start, stop, out.log_scale, out.shifts)
    return out


def log_weight(kind: int, scale: float, u: FloatArray) -> FloatArray:
    """Log of the weight of noise values, 0 at the mode."""
    if kind == laws.LAPLACE:
        return -np.abs(u) / scale
    if kind == laws.GAUSSIAN:
        return -0.5 * (u / scale) ** 2
    return np.zeros(u.size)
