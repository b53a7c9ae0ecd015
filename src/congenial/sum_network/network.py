"""Compile a sum forest into a network, in which equal subtrees share one class of messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.kernels.network import consing, families, sharing
from congenial.kernels.network.messages import MERGE, UNARY
from congenial.kernels.network.records import Classes, CompiledClasses, Families, Listed, Program
from congenial.kernels.numerics import laws
from congenial.sum_network.forest import Signs, SumForest
from congenial.sum_network.weights import PartMessage, SharedUnary, Unary, alike
from congenial.types import BoolArray, FloatArray, Indices, IntArray


@dataclass(frozen=True, eq=False)
class Network:
    """Classes in topological order, arrays of shape (c,), and the program that draws from them."""

    ctype: Signs  # Kind of each class.
    left: Indices  # The classes that it is made of, -1 for none.
    right: Indices
    sign: Signs
    variable: Indices  # Place in `unary` and `tilt` of a UNARY class's weight; -1 otherwise.
    uses: Indices  # Number of random choices from each class.
    # shapes (p,): The program, see `kernels.network.descend.draw`. Compositions come last, after
    # splits without tables (`direct`).
    op: Signs
    first: Indices
    second: Indices
    third: Indices
    cls: Indices
    n: int  # Number of variables of the forest.
    slots: int  # Number of values that the program computes; the first n are the variables.
    places: int  # Number of places for these values; partial sums of families share places.
    slot_class: Indices  # shape (places,): Class of the last value at each place; -1 if composed.
    fixed: Indices  # Classes of the sums that are fixed at zero.
    roots: Indices  # Classes of the variables above which there is no sum.
    unary: Unary  # Distinct weights and tilts, those of sums of geometric variables included.
    tilt: FloatArray
    members: Indices  # Slots of the variables drawn as compositions.
    moved: npt.NDArray[np.intp]  # Variables among them that are counted from a bound: `ends`.
    ends: IntArray
    choices: int  # Number of random choices weighed by messages, one word of 64 bits each.
    variables: int  # Number of slots that have a weight of their own.
    links: int  # Number of sums.
    # Messages of parts, by the class of each variable that has one as its weight.
    received: Mapping[int, PartMessage] = field(default_factory=dict)
    room: int | None = None  # Most entries of all its tables, if there is a limit of its own.
    # shape (1,), or (0,) if there is none: The class whose message is sent on, that of variable 0
    # or of the sum below it.
    sent: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    @property
    def classes(self) -> Classes:
        """Classes as kernels take them."""
        return Classes(self.ctype, self.left, self.right, self.sign)

    @property
    def begin(self) -> int:
        """First operation below variable 0 of a network that sends a message; 0 for others."""
        if not self.sent.size:
            return 0
        # the program begins with the root, or with the link and the split of the sum above it
        return 1 if self.roots.size else 2

    @property
    def program(self) -> Program:
        """The program as kernels take it."""
        return Program(self.op, self.first, self.second, self.third, self.cls)

    def products(self, width: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Products that each merge adds up, given the number of entries of each class; else 0."""
        merge = self.ctype == MERGE
        left, right = width[self.left] * merge, width[self.right] * merge
        return np.asarray(np.minimum(width, left + right) * np.minimum(left, right))


def compile_network(
    forest: SumForest,
    weights: SharedUnary,
    theta: FloatArray,
    composed: Signs | None = None,
    *,
    reused: bool = False,
    further: FloatArray | None = None,
) -> Network:
    """Build the classes and the drawing program of a forest.

    `further`, shape (n,), has further tilts of variables that own sums. `composed` has the kind of
    composition of each distinct weight, see `weights.composable`; by default none is composed.
    """
    n, m, unary = forest.n, forest.m, weights.unary
    if composed is None:
        composed = np.zeros(unary.kind.size, dtype=np.int8)
    columns = (unary.lo, unary.hi, unary.scale, unary.center, unary.kind, composed)
    number, listed = alike(columns)
    if theta.any() or further is not None:
        below, owned = np.zeros(n), forest.owner >= 0
        np.add.at(below, forest.owner[owned], (forest.sign * theta)[owned])
        shift = (below if further is None else below - further)[forest.owner]
    else:
        theta = shift = np.zeros(0)
    start, bottom_up = np.empty(m + 1, dtype=np.int32), np.empty(m, dtype=np.int32)
    member = np.empty(n, dtype=np.int32)
    first = families.families(forest.above, forest.owner, forest.depth, start, member, bottom_up)
    bounded = np.isin(composed, (consing.UPWARDS, consing.DOWNWARDS))
    more = int(np.count_nonzero(bounded[weights.code])) if bounded.any() else 0
    bound = np.where(composed == consing.UPWARDS, unary.lo, unary.hi)
    bound = np.where(bounded, bound, 0.0).astype(np.int64)
    slot_class = np.empty(2 * n + more + 1, dtype=np.int32)
    members = np.empty(n, dtype=np.int32)
    sum_class = np.empty(m, dtype=np.int32)
    room = n + n // consing.LEAST_RUN + 1 + more
    op, program = np.empty(room, dtype=np.int8), np.empty((4, room), dtype=np.int32)
    most = 2 * n + 8 + 4 * more
    keys = np.empty((most, 5), dtype=np.int32)  # untouched pages take no memory
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
    made, distinct, tilt = _weights(keys, listed, unary)
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
        unary=distinct,
        tilt=tilt,
        moved=moved,
        ends=bound[weights.code[moved]],
        choices=choices,
        variables=slots - count - (choices - root_count),
        links=m,
    )


def _weights(
    keys: Indices, listed: npt.NDArray[np.intp], given: Unary
) -> tuple[BoolArray, Unary, FloatArray]:
    """Return which classes are made of others, and the weights and tilts of the rest."""
    geometric, point = keys[:, 0] == consing.GEOMETRIC, keys[:, 0] == consing.POINT
    made = ~((keys[:, 0] == UNARY) | geometric | point)
    own = keys[~made]
    summed, fixed = geometric[~made], point[~made]
    # sums of geometric variables, and of bounds, have the scale and the tilt of their members
    source = np.where(summed | fixed, own[:, 1], np.flatnonzero(~made))
    tilt = np.ascontiguousarray(keys[source, 2:4]).view(np.float64)[:, 0]
    unary = given.at(listed[keys[source, 1]])
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
    return made, unary, tilt
