"""Compile a sum forest into a network: equal subtrees become one class of message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.forest import SumForest
from congenial.kernels import descend
from congenial.kernels.messages import MERGE, PRODUCT, UNARY

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Unary:
    """Unary weights of all variables, in the coordinates of the forest.

    Attributes
    ----------
    kind : ndarray of int64, shape (n,)
        Law codes of `congenial.kernels.laws`.
    scale : ndarray of float64, shape (n,)
        Scale or sigma; ignored for flat weights.
    center : ndarray of float64, shape (n,)
        Integer-valued mode.
    lo, hi : ndarray of float64, shape (n,)
        Integer-valued or infinite support; equal where pinned.
    """

    kind: IntArray
    scale: FloatArray
    center: FloatArray
    lo: FloatArray
    hi: FloatArray


@dataclass(frozen=True, eq=False)
class Network:
    """Classes in topological order and the program that draws from them.

    Attributes
    ----------
    ctype, left, right, sign : ndarray of int64, shape (c,)
        Kind of each class and the classes it is made of (-1 for none).
    variable : ndarray of int64, shape (c,)
        A variable whose unary weight a UNARY class has; -1 otherwise.
    op, first, second, third, cls : ndarray of int64, shape (p,)
        The program, see `congenial.kernels.descend.draw`.
    slots : int
        Number of values that the program computes; the first n are the variables.
    slot_class : ndarray of int64, shape (slots,)
    fixed : ndarray of int64
        Classes of the sums that are fixed at zero.
    roots : ndarray of int64
        Classes of the variables above which there is no sum.
    choices : int
        Number of random choices, one 64-bit word each.
    """

    ctype: IntArray
    left: IntArray
    right: IntArray
    sign: IntArray
    variable: IntArray
    op: IntArray
    first: IntArray
    second: IntArray
    third: IntArray
    cls: IntArray
    slots: int
    slot_class: IntArray
    fixed: IntArray
    roots: IntArray
    choices: int


def _distinct(*columns: npt.NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Return (representatives, codes) of the distinct rows."""
    code = np.zeros(columns[0].size, dtype=np.int64)
    for column in columns:
        _, part = np.unique(column, return_inverse=True)
        code = code * (int(part.max(initial=0)) + 1) + part
        _, code = np.unique(code, return_inverse=True)
    _, representatives, codes = np.unique(code, return_index=True, return_inverse=True)
    return representatives.astype(np.int64), codes.astype(np.int64)


class _Builder:
    """Grows the list of classes and the reversed program."""

    def __init__(self, forest: SumForest) -> None:
        self.count = 0
        self.columns: dict[str, list[IntArray]] = {
            k: [] for k in ("ctype", "left", "right", "sign", "variable")
        }
        self.ops: list[tuple[IntArray, ...]] = []  # bottom-up; reversed at the end
        self.slot_class = [np.full(forest.n, -1, dtype=np.int64)]
        self.slots = forest.n
        self.fixed: list[IntArray] = [np.zeros(0, dtype=np.int64)]

    def add(self, ctype: int, size: int, **columns: npt.ArrayLike) -> IntArray:
        """Append `size` classes and return their numbers."""
        defaults = {"left": -1, "right": -1, "sign": 1, "variable": -1}
        for name in self.columns:
            value = ctype if name == "ctype" else columns.get(name, defaults.get(name, -1))
            self.columns[name].append(
                np.broadcast_to(np.asarray(value, dtype=np.int64), (size,)).copy()
            )
        numbers = np.arange(self.count, self.count + size, dtype=np.int64)
        self.count += size
        return numbers

    def emit(
        self,
        op: int,
        first: IntArray,
        second: npt.ArrayLike,
        third: npt.ArrayLike,
        cls: npt.ArrayLike,
    ) -> None:
        """Append operations; those given later run earlier."""
        full = [
            np.broadcast_to(np.asarray(v, dtype=np.int64), first.shape)
            for v in (op, first, second, third, cls)
        ]
        self.ops.append(tuple(np.ascontiguousarray(v[::-1]) for v in full))

    def merge_all(
        self, group: IntArray, slot: IntArray, cls: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Merge the members of each group in rounds of pairs until each has one.

        Members are sorted by class first, so that equal subtrees meet equal subtrees and their
        merges coincide. Returns (group, slot, class), one entry a group.
        """
        while True:
            order = np.lexsort((cls, group))
            group, slot, cls = group[order], slot[order], cls[order]
            new = np.concatenate(([True], group[1:] != group[:-1]))
            start = np.flatnonzero(new)
            size = np.diff(np.concatenate((start, [group.size])))
            if (size == 1).all():
                return group, slot, cls
            place = np.arange(group.size) - np.repeat(start, size)
            paired = np.repeat(size, size)
            is_left = (place % 2 == 0) & (place + 1 < paired)
            i = np.flatnonzero(is_left)
            representatives, code = _distinct(cls[i], cls[i + 1])
            made = self.add(
                MERGE,
                representatives.size,
                left=cls[i][representatives],
                right=cls[i + 1][representatives],
            )
            fresh = np.arange(self.slots, self.slots + i.size, dtype=np.int64)
            self.slots += i.size
            self.slot_class.append(made[code])
            self.emit(descend.SPLIT, fresh, slot[i], slot[i + 1], made[code])
            single = np.flatnonzero((place % 2 == 0) & ~is_left)
            group = np.concatenate((group[i], group[single]))
            slot = np.concatenate((fresh, slot[single]))
            cls = np.concatenate((made[code], cls[single]))


def compile_network(forest: SumForest, unary: Unary, tilt: FloatArray) -> Network:
    """Build the classes and the drawing program of a forest.

    Parameters
    ----------
    forest : SumForest
    unary : Unary
    tilt : ndarray of float64, shape (n,)
        Tilt of each variable's weight; variables share a class only where tilts are equal.
    """
    build = _Builder(forest)
    classes = build.slot_class[0]
    representatives, code = _distinct(
        unary.kind, unary.scale, unary.center, unary.lo, unary.hi, tilt
    )
    own = build.add(UNARY, representatives.size, variable=representatives)[code]
    classes[:] = own
    member_depth = np.full(forest.n, -1, dtype=np.int64)
    held = forest.above >= 0
    member_depth[held] = forest.depth[forest.above[held]]
    by_depth = np.argsort(member_depth, kind="stable")
    edges = np.searchsorted(member_depth[by_depth], np.arange(forest.depth.max(initial=-1) + 2))
    for depth in range(int(forest.depth.max(initial=-1)), -1, -1):
        members = by_depth[edges[depth] : edges[depth + 1]]
        group, slot, cls = build.merge_all(forest.above[members], members, classes[members])
        owner = forest.owner[group]
        fixed = np.flatnonzero(owner < 0)
        if fixed.size:
            build.emit(descend.LINK, slot[fixed], 0, 0, cls[fixed])  # zero times any slot
            build.fixed.append(cls[fixed])
        owned = np.flatnonzero(owner >= 0)
        if owned.size:
            build.emit(descend.LINK, slot[owned], owner[owned], forest.sign[group[owned]], -1)
        # an owner of several sums gets one product after another
        while owned.size:
            _, at = np.unique(owner[owned], return_index=True)
            now = owned[at]
            left, right, sign = classes[owner[now]], cls[now], forest.sign[group[now]]
            representatives, code = _distinct(left, right, sign)
            made = build.add(
                PRODUCT,
                representatives.size,
                left=left[representatives],
                right=right[representatives],
                sign=sign[representatives],
            )
            classes[owner[now]] = made[code]
            owned = np.delete(owned, at)
    roots = np.flatnonzero(forest.above < 0)
    if roots.size:
        build.emit(descend.ROOT, roots, -1, -1, classes[roots])
    program = [np.concatenate([o[j] for o in reversed(build.ops)]) for j in range(5)]
    return Network(
        **{k: np.concatenate(v) for k, v in build.columns.items()},
        op=program[0],
        first=program[1],
        second=program[2],
        third=program[3],
        cls=program[4],
        slots=build.slots,
        slot_class=np.concatenate(build.slot_class),
        fixed=np.concatenate(build.fixed),
        roots=classes[roots],
        choices=int((program[0] != descend.LINK).sum()),
    )
