"""Records of the tables of families: their members, weights, bounds and doubts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from congenial.sum_network import Freed
from congenial.sum_network.families.family_tilts import Leaves
from congenial.types import BoolArray, FloatArray, Indices, IntArray


class Owners(NamedTuple):
    """Weights of the owners of families, and the tilts of the sums above them; shapes (m,)."""

    kind: IntArray
    inverse: FloatArray
    center: FloatArray  # Modes.
    tilt: FloatArray
    lo: FloatArray
    hi: FloatArray


class Binomials(NamedTuple):
    """Negative binomial weights, one table for each number of leaves and inverse scale."""

    of: IntArray  # shape (m,): Which of them each family has.
    offset: IntArray
    length: IntArray
    table: FloatArray


class FamilyMembers(NamedTuple):
    """Members and owners of every sum, as `kernels.network.family_draws` takes them."""

    start: Indices  # shape (m + 1,): Where the members of each sum begin.
    member: Indices
    owner: Indices  # shape (m,): -1 for a sum that is fixed at 0.
    root: BoolArray  # shape (m,): Whether the owner is in no sum and is drawn first.
    of_leaves: BoolArray  # shape (m,): Whether leaves alone are added up.
    lone: BoolArray  # shape (n,): Leaves in other sums, which have tables of their own.
    gap: IntArray  # shape (n,): Distance of the mode from the lower bound of a leaf, else 0.
    least: IntArray  # shape (n,): Lower bound of a leaf.


class TablesOfOwners(NamedTuple):
    """Integer weights of owners, given what is below them, and bounds on what lies beyond.

    Variables that are equal have one table. After the n variables come the sums that are fixed.
    """

    of: Indices  # shape (n + m,): Number of each variable's table, -1 without one.
    place: IntArray  # shapes (tables,): Where the running sums of a table begin.
    first: IntArray
    size: IntArray
    running: IntArray  # Running sums of the entries of each table.
    # shape (4, tables): Weights beyond each table, which are at least the true ones: a factor and a
    # rate below it, and so above. They are factor * exp(-rate * k) at the k-th value, from 0 on.
    tails: FloatArray
    largest: IntArray  # shape (tables,): Largest entry.
    total: IntArray  # shape (tables,): Sum of all entries.
    moments: FloatArray  # shape (2, tables): Mean, from the first value on, and variance.
    guide: Indices  # shape (tables, PARTS): Places from which on running sums exceed j 2^58.

    def entries(self, v: int) -> IntArray:
        """Return the entries of the table of v."""
        t = self.of[v]
        begin, end = self.place[t], self.place[t] + self.size[t]
        return np.diff(self.running[begin:end], prepend=0)

    def values(self, v: int) -> range:
        """Return the values of the table of v."""
        t = self.of[v]
        return range(int(self.first[t]), int(self.first[t] + self.size[t]))


class DistinctTables(NamedTuple):
    """Distinct tables of the members of families, one row each."""

    begins: IntArray  # shape (families + 1,): Where the rows of each family begin.
    table: IntArray  # Numbers of the tables.
    times: IntArray  # Number of members that have it.


class Doubt(NamedTuple):
    """By how much entries may be too large, because transforms and roundings have errors.

    The weight of x is w = exp(slope x - decay abs(x - center) - top). The entry of x is at least
    unit w times the probability of x by the law of the sum below. It is larger by at most the share
    (factor w + 1) / entry + rounding.
    """

    factor: FloatArray  # shapes (tables,)
    rounding: FloatArray  # 0 where there is only one entry, which is a constant.
    slope: FloatArray
    decay: FloatArray
    center: FloatArray
    top: FloatArray
    unit: FloatArray


@dataclass(frozen=True, eq=False)
class FamilySums:
    """Tables from which a forest is drawn family by family, with exactly its law."""

    order: Indices  # shape (m,): Sums from the top down.
    families: FamilyMembers
    tables: TablesOfOwners
    limits: FloatArray  # shape (2, m): Bounds of the owners of families.
    leaves: Leaves
    binomials: Binomials
    base_tilt: FloatArray  # shape (m,): Tilt of each family's negative binomial weights.
    # shape (m,): Whether the sum of leaves was computed term by term, by weights with that tilt
    # that do not add up to 1.
    directly: BoolArray
    # shape (m,): Tilt of the members' tables by which a sum was computed; 0 for leaves.
    retilt: FloatArray
    doubt: Doubt
    variables: int  # Number of variables that are asked for, which come first.
    freed: Freed | None = None  # Variables that are 0 in the sums and follow from the others.

    def of_families(
        self,
        families: FamilyMembers,
        order: Indices,
        *,
        number: Indices | IntArray,
        tables: Indices,
    ) -> FamilySums:
        """Return the tables for other families, each of which has those of family number[f].

        `tables` has the table of each variable, and then of each fixed sum, as in `TablesOfOwners`.
        """
        return replace(
            self,
            order=np.ascontiguousarray(order),
            families=families,
            tables=self.tables._replace(of=tables),
            limits=self.limits[:, number],
            leaves=self.leaves.take(number),
            binomials=self.binomials._replace(of=self.binomials.of[number]),
            base_tilt=self.base_tilt[number],
            directly=self.directly[number],
            retilt=self.retilt[number],
        )

    @property
    def n(self) -> int:
        """Number of variables; the last ones may be sums of groups (`narrow_families`)."""
        return int(self.families.gap.size)

    @property
    def rows(self) -> int:
        """Number of rows of an array of draws: the rests of families come after the variables."""
        return self.n + self.leaves.tilt.size
