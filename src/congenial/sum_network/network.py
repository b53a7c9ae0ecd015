"""Compile a sum forest into a network, in which equal subtrees share one class of messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.kernels.network import consing, families, sharing
from congenial.kernels.network.messages import MERGE, UNARY
from congenial.kernels.network.records import Classes, CompiledClasses, Families, Listed
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.weights import SharedUnary, Unary, numbered
from congenial.types import FloatArray, Indices, IntArray

SmallInts = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Network:
    """Classes in topological order and the program that draws from them."""

    # `ctype` and `sign`: ndarray of int8, shape (c,)
    ctype: SmallInts
    # `left` and `right`: ndarray of int32, shape (c,): Kind of each class and the classes it is
    # made of (-1 for none).
    left: Indices
    right: Indices
    sign: SmallInts
    # ndarray of int32, shape (c,): Place in `unary` and `tilt` of the weight that a UNARY class
    # has; -1 otherwise.
    variable: Indices
    uses: Indices  # ndarray of int32, shape (c,): Number of random choices from each class.
    op: SmallInts  # ndarray of int8, shape (p,)
    # ndarray of int32, shape (p,): The program, see `kernels.network.descend.draw`. Compositions
    # come last, after splits without tables (`direct`).
    first: Indices
    second: Indices
    third: Indices
    cls: Indices
    n: int  # Number of variables of the forest.
    slots: int  # Number of values that the program computes; the first n are the variables.
    # Number of places for these values; fewer than `slots` if partial sums of a family reuse the
    # places of others.
    places: int
    # ndarray of int32, shape (places,): Class of the last value at each place; -1 for variables
    # drawn as compositions.
    slot_class: Indices
    fixed: Indices  # Classes of the sums that are fixed at zero.
    roots: Indices  # Classes of the variables above which there is no sum.
    # `unary` and `tilt`: Distinct weights and tilts, those of sums of geometric variables included.
    unary: Unary
    tilt: FloatArray
    number: Indices  # Number of each given weight; equal weights share one.
    row: Indices  # Number of each of `unary`; -1 for weights that no variable has.
    members: Indices  # Slots of the variables drawn as compositions.
    # Variables among them that are counted from a bound, and that bound.
    moved: npt.NDArray[np.intp]
    ends: IntArray
    choices: int  # Number of random choices weighed by messages, one word of 64 bits each.
    variables: int  # Number of slots that have a weight of their own.
    links: int  # Number of sums.

    @property
    def classes(self) -> Classes:
        """Classes as kernels take them."""
        return Classes(self.ctype, self.left, self.right, self.sign)

    def products(self, width: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Products that each merge adds up, given the number of entries of each class; else 0."""
        merge = self.ctype == MERGE
        left, right = width[self.left] * merge, width[self.right] * merge
        return np.asarray(np.minimum(width, left + right) * np.minimum(left, right))


def compile_network(
    forest: SumForest,
    weights: SharedUnary,
    theta: FloatArray,
    composed: SmallInts,
    *,
    reused: bool = False,
) -> Network:
    """Build the classes and the drawing program of a forest."""
    n, m = forest.n, forest.m
    number, listed = numbered(weights.unary, composed)
    if theta.any():
        below, owned = np.zeros(n), forest.owner >= 0
        np.add.at(below, forest.owner[owned], (forest.sign * theta)[owned])
        shift = below[forest.owner]
    else:
        theta = shift = np.zeros(0)
    start, bottom_up = np.empty(m + 1, dtype=np.int32), np.empty(m, dtype=np.int32)
    member = np.empty(n, dtype=np.int32)
    first = families.families(forest.above, forest.owner, forest.depth, start, member, bottom_up)
    bounded = np.isin(composed, (consing.UPWARDS, consing.DOWNWARDS))
    more = int(np.count_nonzero(bounded[weights.code])) if bounded.any() else 0
    bound = np.where(composed == consing.UPWARDS, weights.unary.lo, weights.unary.hi)
    bound = np.where(bounded, bound, 0.0).astype(np.int64)
    slot_class = np.empty(2 * n + more + 1, dtype=np.int32)
    members = np.empty(n, dtype=np.int32)
    sum_class = np.empty(m, dtype=np.int32)
    room = n + n // consing.LEAST_RUN + 1 + more
    op, program = np.empty(room, dtype=np.int8), np.empty((4, room), dtype=np.int32)
    # pages that are never touched take no memory
    most = 2 * n + 8 + 4 * more
    keys = np.empty((most, 5), dtype=np.int32)
    held = np.empty(sharing.room(most + 8), dtype=np.int32)
    state = np.empty(consing.STATE, dtype=np.int64)
    shape = forest.above, forest.owner, forest.sign
    families_of = Families(*shape, start, member, bottom_up)
    listed_of = Listed(weights.code, number, composed[listed], bound)
    filled = CompiledClasses(slot_class, sum_class, members, op, program, keys, held, state)
    consing.compile_program(families_of, first, listed_of, theta, shift, filled, reused)
    classes, _, last, begin, stop, count, root_count, again, most = state[: consing.RUN].tolist()
    slots, places = last + again, max(last, most)
    keys = keys[:classes].copy()
    made, unary, tilt, row = _weights(keys, listed, weights.unary)
    own = np.flatnonzero(~made)
    variable = np.full(keys.shape[0], -1, dtype=np.int32)
    variable[own] = np.arange(own.size)
    ctype = np.where(made, keys[:, 0], UNARY)
    moved = np.zeros(0, dtype=np.intp)
    if more:
        moved = np.flatnonzero((slot_class[:n] < 0) & bounded[weights.code])
    choices = int(keys[:, 4].sum(dtype=np.int64))
    return Network(
        ctype=ctype.astype(np.int8),
        left=np.where(made, keys[:, 1], np.int32(-1)),
        right=np.where(made, keys[:, 2], np.int32(-1)),
        sign=np.where(made, keys[:, 3], 1).astype(np.int8),
        variable=variable,
        uses=keys[:, 4].copy(),
        op=op[begin:stop],
        first=program[0, begin:stop],
        second=program[1, begin:stop],
        third=program[2, begin:stop],
        cls=program[3, begin:stop],
        members=members[:count] if 2 * count > n else members[:count].copy(),
        n=n,
        slots=slots,
        places=places,
        slot_class=slot_class[:places],
        fixed=sum_class[(forest.owner < 0) & (sum_class >= 0)],
        roots=program[3, begin : begin + root_count],
        unary=unary,
        tilt=tilt,
        number=number,
        row=row,
        moved=moved,
        ends=bound[weights.code[moved]],
        choices=choices,
        variables=slots - count - (choices - root_count),
        links=m,
    )


def _weights(
    keys: Indices, listed: npt.NDArray[np.intp], given: Unary
) -> tuple[npt.NDArray[np.bool_], Unary, FloatArray, Indices]:
    """Return which classes are made of others, and of the rest weights, tilts and rows."""
    geometric, point = keys[:, 0] == consing.GEOMETRIC, keys[:, 0] == consing.POINT
    made = ~((keys[:, 0] == UNARY) | geometric | point)
    own = keys[~made]
    summed, fixed = geometric[~made], point[~made]
    # sums of geometric variables, and of bounds, have the scale and the tilt of their members
    source = np.where(summed | fixed, own[:, 1], np.flatnonzero(~made))
    tilt = np.ascontiguousarray(keys[source, 2:4]).view(np.float64)[:, 0]
    row = keys[source, 1]
    unary = given.at(listed[row])
    upwards = summed & (own[:, 3] > 0)
    # flat members have no scale, and their sum has no decay
    unary.scale[summed & (unary.kind == laws.FLAT)] = np.inf
    unary.kind[summed] = laws.GEOMETRIC_SUM
    unary.center[summed] = own[summed, 2]  # their number, by convention
    unary.lo[upwards] = 0.0
    unary.hi[summed & ~upwards] = 0.0
    value = np.ascontiguousarray(own[fixed, 2:4]).view(np.int64)[:, 0]
    unary.kind[fixed], unary.scale[fixed] = laws.LAPLACE, 1.0
    unary.center[fixed] = unary.lo[fixed] = unary.hi[fixed] = value
    return made, unary, tilt, np.where(summed | fixed, np.int32(-1), row)
