"""Compile a sum forest into a network: equal subtrees become one class of message."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from congenial.conditioning.forest import SumForest
from congenial.kernels import consing, descend, laws
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
        Place in `unary` and `tilt` of the weight that a UNARY class has; -1 otherwise.
    op, first, second, third, cls : ndarray of int64, shape (p,)
        The program, see `congenial.kernels.descend.draw`. Compositions come last.
    slots : int
        Number of values that the program computes; the first n are the variables.
    slot_class : ndarray of int64, shape (slots,)
        -1 for variables drawn as compositions.
    fixed : ndarray of int64
        Classes of the sums that are fixed at zero.
    roots : ndarray of int64
        Classes of the variables above which there is no sum.
    unary, tilt : Unary and ndarray of float64
        Distinct weights and tilts, those of sums of geometric variables included.
    members : ndarray of int64
        Slots of the variables drawn as compositions.
    choices : int
        Number of random choices that the messages weigh.
    words : int
        Number of 64-bit words that one draw takes.
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
    unary: Unary
    tilt: FloatArray
    members: IntArray
    choices: int
    words: int


def _distinct(*columns: npt.NDArray[np.generic]) -> tuple[IntArray, IntArray]:
    """Return (representatives, codes) of the distinct rows; columns of 64 bits."""
    size = columns[0].size
    codes, first = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    for column in columns:
        bits = np.ascontiguousarray(column).view(np.int64)
        if size and (bits == bits[0]).all():
            continue
        fresh = np.empty(size, dtype=np.int64)
        consing.number_pairs(codes, bits, fresh, first)
        codes = fresh
    count = int(codes.max(initial=-1)) + 1
    return first[:count].copy(), codes


# Like members in a row that are worth drawing as compositions.
_LEAST_RUN = 4


class _Builder:
    """Grows the list of classes and the reversed program."""

    def __init__(self, forest: SumForest, unary: Unary, tilt: FloatArray) -> None:
        self.unary, self.tilt = unary, tilt
        self.weights: list[tuple[npt.NDArray[np.generic], ...]] = []
        self.unary_count = 0
        self.count = 0
        self.members = [np.zeros(0, dtype=np.int64)]
        self.member_count = 0
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
        self, start: IntArray, slot: IntArray, cls: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Merge the members of each group in rounds of pairs until each has one.

        The members of group g are start[g], ..., start[g + 1] - 1. They are sorted by class first,
        so that equal subtrees meet equal subtrees and their merges coincide. Returns (slot,
        class), one entry a group.
        """
        while slot.size > start.size - 1:
            consing.sort_groups(start, cls, slot)
            pairs = np.empty((slot.size // 2, 5), dtype=np.int64)
            next_start, next_slot, next_cls = (np.empty_like(v) for v in (start, slot, cls))
            count = consing.pair_up(
                start, cls, slot, self.slots, pairs, next_start, next_cls, next_slot
            )
            left, right, left_slot, right_slot, place = pairs[:count].T.copy()
            representatives, code = _distinct(left, right)
            made = self.add(
                MERGE,
                representatives.size,
                left=left[representatives],
                right=right[representatives],
            )
            self.slot_class.append(made[code])
            fresh = np.arange(self.slots, self.slots + count, dtype=np.int64)
            self.emit(descend.SPLIT, fresh, left_slot, right_slot, made[code])
            self.slots += count
            next_cls[place] = made[code]
            size = int(next_start[-1])
            start, slot, cls = next_start, next_slot[:size], next_cls[:size]
        return slot, cls

    def compose(
        self, start: IntArray, slot: IntArray, cls: IntArray, like: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Replace runs of like members, which are differences of geometric variables, by one each.

        Such a run's sum is A - B for two sums of geometric variables, and given A and B its
        members are uniform compositions of them. `like` is 1 a class that has this form.
        """
        consing.sort_groups(start, cls, slot)
        group = np.repeat(np.arange(start.size - 1), np.diff(start))
        new = np.concatenate(([True], (cls[1:] != cls[:-1]) | (group[1:] != group[:-1])))
        begin = np.flatnonzero(new)
        size = np.diff(np.concatenate((begin, [cls.size])))
        chosen = (size >= _LEAST_RUN) & (like[cls[begin]] > 0)
        begin, size = begin[chosen], size[chosen]
        if not begin.size:
            return start, slot, cls
        variable = slot[begin]  # any member shares its weight with the run
        representatives, code = _distinct(size, cls[begin])
        count = representatives.size
        up, down = (
            self.sums_of_geometric(variable, size, representatives, side) for side in (1, -1)
        )
        made = self.add(MERGE, count, left=up, right=down)[code]
        runs = np.arange(begin.size, dtype=np.int64)
        fresh, above, below = (self.slots + k * begin.size + runs for k in range(3))
        self.slots += 3 * begin.size
        self.slot_class += [made, up[code], down[code]]
        inside = np.repeat(chosen, np.diff(np.concatenate((np.flatnonzero(new), [cls.size]))))
        begin_member = self.member_count + np.concatenate(([0], np.cumsum(size)[:-1]))
        self.members.append(slot[inside])
        self.slot_class[0][slot[inside]] = -1
        self.member_count += int(size.sum())
        self.emit(descend.COMPOSE, above, below, begin_member, size)
        self.emit(descend.SPLIT, fresh, above, below, made)
        kept = ~inside
        kept[begin] = True
        slot, cls = slot.copy(), cls.copy()
        slot[begin], cls[begin] = fresh, made
        start = np.searchsorted(np.flatnonzero(kept), start).astype(np.int64)
        return start, slot[kept], cls[kept]

    def sums_of_geometric(
        self, variable: IntArray, size: IntArray, which: IntArray, side: int
    ) -> IntArray:
        """Append the weights of sums of geometric variables; return the numbers of their classes.

        A sum of k variables upwards (side 1) or downwards (-1) has centre k, by convention.
        """
        v = variable[which]
        nothing, without_end = np.zeros(v.size), np.full(v.size, np.inf)
        lo, hi = (nothing, without_end) if side > 0 else (-without_end, nothing)
        kind = np.full(v.size, laws.GEOMETRIC_SUM, dtype=np.int64)
        center = size[which].astype(np.float64)
        weights = kind, self.unary.scale[v], center, lo, hi, self.tilt[v]
        return self.add_unary(weights)

    def add_unary(self, weights: tuple[npt.NDArray[np.generic], ...]) -> IntArray:
        """Append unary classes with these kinds, scales, centres, ends and tilts."""
        self.weights.append(weights)
        first = self.unary_count
        self.unary_count += weights[0].size
        return self.add(UNARY, weights[0].size, variable=np.arange(first, self.unary_count))


def _grouped(forest: SumForest, members: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Return the constraints above some variables, where each one's begin, and the variables."""
    group = forest.above[members]
    if (group[1:] < group[:-1]).any():
        members = members[np.argsort(group, kind="stable")]
        group = forest.above[members]
    new = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1])))
    start = np.concatenate((new, [group.size])).astype(np.int64)
    return group[new], start, members.astype(np.int64)


def compile_network(
    forest: SumForest, unary: Unary, tilt: FloatArray, composed: npt.NDArray[np.bool_]
) -> Network:
    """Build the classes and the drawing program of a forest.

    Parameters
    ----------
    forest : SumForest
    unary : Unary
    tilt : ndarray of float64, shape (n,)
        Tilt of each variable's weight; variables share a class only where tilts are equal.
    composed : ndarray of bool, shape (n,)
        Variables without bounds, with Laplace weights around zero, whose like siblings may be drawn
        as uniform compositions. Their own marginals are not to be had from such a network.
    """
    build = _Builder(forest, unary, tilt)
    classes = build.slot_class[0]
    columns = (unary.kind, unary.scale, unary.center, unary.lo, unary.hi, tilt, composed)
    representatives, code = _distinct(*(np.asarray(c, dtype=np.float64) for c in columns))
    own = build.add_unary(tuple(c[representatives] for c in columns[:6]))[code]
    classes[:] = own
    like = np.zeros(representatives.size, dtype=np.int64)
    like[own] = composed
    member_depth = np.full(forest.n, -1, dtype=np.int64)
    held = forest.above >= 0
    member_depth[held] = forest.depth[forest.above[held]]
    by_depth = np.argsort(member_depth, kind="stable")
    edges = np.searchsorted(member_depth[by_depth], np.arange(forest.depth.max(initial=-1) + 2))
    for depth in range(int(forest.depth.max(initial=-1)), -1, -1):
        group, start, slot = _grouped(forest, by_depth[edges[depth] : edges[depth + 1]])
        cls = classes[slot]
        if like.any():
            known = np.zeros(build.count, dtype=np.int64)
            known[: like.size] = like
            start, slot, cls = build.compose(start, slot, cls, known)
        slot, cls = build.merge_all(start, slot, cls)
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
    weights = [np.concatenate(column) for column in zip(*build.weights, strict=True)]
    # what is composed lies below everything, so that all compositions may run last
    top_down = build.ops[::-1]
    top_down.sort(key=lambda o: bool(o[0][0] == descend.COMPOSE))
    program = [np.concatenate([o[j] for o in top_down]) for j in range(5)]
    choices = int(np.isin(program[0], (descend.ROOT, descend.SPLIT)).sum())
    sizes = program[4][program[0] == descend.COMPOSE]
    return Network(
        **{k: np.concatenate(v) for k, v in build.columns.items()},
        unary=Unary(*weights[:5]),
        tilt=weights[5],
        op=program[0],
        first=program[1],
        second=program[2],
        third=program[3],
        cls=program[4],
        members=np.concatenate(build.members),
        slots=build.slots,
        slot_class=np.concatenate(build.slot_class),
        fixed=np.concatenate(build.fixed),
        roots=classes[roots],
        choices=choices,
        words=choices + int(2 * (sizes - 1).sum()) + descend.SPARE,
    )
