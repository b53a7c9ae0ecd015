"""Tables of the sums of a tree of bounded counts, one for each family, instead of for every merge.

For Laplace noise and leaves with a lower bound. `family_draws` draws from them.
Proof: `proofs/family-draws.md`. Benchmark row: `bounded`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.errors import NumericalError, UnsupportedError
from congenial.kernels.network import families as grouping
from congenial.kernels.network import family_sums as kernels
from congenial.kernels.network import member_sums
from congenial.kernels.network.family_draws import MOST_NATS
from congenial.kernels.numerics import laws
from congenial.sum_network import Compiled, Freed, SharedUnary, SumForest, Tables, fill
from congenial.sum_network.families.equal_families import first_equal, ranges
from congenial.sum_network.families.family_tilts import (
    Leaves,
    Settled,
    Shape,
    common_tilt,
    settle,
)
from congenial.types import BoolArray, FloatArray, Indices, IntArray

_UNIT = 2.0**-53
# Products of a family's lifts and sums below which they are added up term by term.
_DIRECT = 1 << 18
# Longest period of a transform, and most children with tables in one family.
_LONGEST, _MOST = 1 << 22, 4096
# Median scale, and that scale times the number of variables, from which tables of families take
# less time (measured on census blocks, with cells and without).
_WIDE, _WORTH = 4.0, 200_000.0
# Entries of the transforms that are in memory at once.
_AT_ONCE = 1 << 20
# Most entries of all tables, 1 GiB.
_ROOM = 1 << 27
# Error of one stage of a transform (Higham 2002, theorem 24.2), and of one member of a composition
# (kernels.compositions).
_STAGE, _COMPOSED = 7.0 * _UNIT, 2.0**-59
# Error of an integer weight, as a share of the sum of all (kernels.family_draws).
_CHOICE = 2.0**-60
# Probability beyond the ends of a range.
_BEYOND = 2.0 * math.exp(-kernels.DEPTH)
# Largest share of a table whose entries may be far too large.
_FAINT = 1e-4
# Bits of a gap; the family is in the others.
_BITS = 40
# Nats by which the smallest weight of a negative binomial table may differ by tilts.
_NATS = 100.0
# Tilts are multiples of this, so that sums and differences of tilts are exact.
_GRID = 2.0**-40


class Owners(NamedTuple):
    """Weights of the owners of families, and the tilts of the sums above them; shapes (m,)."""

    kind: IntArray
    inverse: FloatArray
    tilt: FloatArray
    lo: FloatArray
    hi: FloatArray


class Binomials(NamedTuple):
    """Negative binomial weights, one table for each number of leaves and inverse scale."""

    of: IntArray  # shape (m,): Which of them each family has.
    offset: IntArray
    table: FloatArray


class FamilyMembers(NamedTuple):
    """Members and owners of every sum, as `kernels.network.family_draws` takes them."""

    start: Indices  # shape (m + 1,): Where the members of each sum begin.
    member: Indices
    owner: Indices  # shape (m,): -1 for a sum that is fixed at 0.
    root: BoolArray  # shape (m,): Whether the owner is in no sum and is drawn first.
    of_leaves: BoolArray  # shape (m,): Whether leaves alone are added up.
    gap: IntArray  # shape (n,): Distance of the mode from the lower bound of a leaf, else 0.
    least: IntArray  # shape (n,): Lower bound of a leaf.


class TablesOfOwners(NamedTuple):
    """Integer weights of owners, given what is below them; shapes (n,) but for the table."""

    place: IntArray
    first: IntArray
    size: IntArray
    table: IntArray


class DistinctTables(NamedTuple):
    """Distinct tables of the members of families, one row each."""

    begins: IntArray  # shape (families + 1,): Where the rows of each family begin.
    member: IntArray  # A variable that has the table.
    times: IntArray  # Number of members that have it.


class Doubt(NamedTuple):
    """By how much entries may be too large, because transforms have errors.

    The weight of x is w = exp(slope x - decay abs(x) - top). The entry of x is at least unit w
    times the probability of x by the law of the sum below. It is larger by at most the share
    factor w / entry.
    """

    factor: FloatArray  # shapes (n,); 0 where it is exact up to rounding.
    slope: FloatArray
    decay: FloatArray
    top: FloatArray
    unit: FloatArray


@dataclass(frozen=True, eq=False)
class FamilySums:
    """Tables from which a forest is drawn family by family."""

    order: Indices  # shape (m,): Sums from the top down.
    families: FamilyMembers
    tables: TablesOfOwners
    leaves: Leaves
    binomials: Binomials
    base_tilt: FloatArray  # shape (m,): Tilt of each family's negative binomial weights.
    # shape (m,): Tilt of the members' tables by which a sum was computed; 0 for leaves.
    retilt: FloatArray
    doubt: Doubt
    error: float  # Bound on the total variation between a draw and its law.
    freed: Freed | None = None  # Variables that are 0 in the sums and follow from the others.

    @property
    def n(self) -> int:
        """Number of variables."""
        return int(self.families.gap.size)


def fill_families(forest: SumForest, weights: SharedUnary, limit: float) -> FamilySums | None:
    """Fill the tables; None where this way does not apply or its error would exceed `limit`."""
    if not _applies(forest, weights) or (weights.unary.center != 0.0).any():
        return None
    return _Filling(forest, weights).filled(limit)


def are_wide(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether tables of families take less time than those of all merges, as far as is known."""
    return _scale(forest, weights) * forest.n >= _WORTH and have_wide_noise(forest, weights)


def have_wide_noise(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether `settled` tilts match the means of sums better than tilts of single weights do."""
    return _scale(forest, weights) >= _WIDE and _applies(forest, weights)


def settled(forest: SumForest, weights: SharedUnary) -> Settled:
    """Return multipliers of the sums of a forest whose noise is wide, and moments at them.

    A member of a family may have a weight of any kind, see `joined`.
    """
    filling = _Filling(forest, weights)
    return filling.settled._replace(tilt=filling.theta)


def _scale(forest: SumForest, weights: SharedUnary) -> float:
    """Return the median scale of the noise."""
    scales = weights.unary.scale[weights.code[forest.above >= 0]]
    return float(np.median(scales)) if scales.size else 0.0


def _applies(forest: SumForest, weights: SharedUnary) -> bool:
    """Whether all sums are those of a tree whose measured leaves have lower bounds."""
    unary, owner = weights.unary, forest.owner
    owned = owner[owner >= 0]
    if not forest.m or forest.turned or (forest.sign < 0).any():
        return False
    if np.bincount(owned, minlength=1).max(initial=0) > 1:
        return False
    leaf = np.ones(forest.n, dtype=np.bool_)
    leaf[owned] = False
    # variables that follow from others are left at 0
    isolated = leaf & (forest.above < 0)
    none = (unary.lo == 0.0) & (unary.hi == 0.0)
    leaf &= ~isolated
    bounded = (unary.kind == laws.LAPLACE) & np.isfinite(unary.lo) & np.isposinf(unary.hi)
    least = np.where(np.isfinite(unary.lo), unary.lo, 0.0)
    near = (np.abs(least) < 2.0**40) & (np.abs(unary.center - least) < 2.0**40)
    fits = bounded & near
    known = (unary.kind == laws.LAPLACE) | (unary.kind == laws.FLAT)
    code = weights.code
    return bool(none[code[isolated]].all() and fits[code[leaf]].all() and known[code].all())


class _Filling:
    """The tables on their way up."""

    def __init__(self, forest: SumForest, weights: SharedUnary) -> None:
        n, m = forest.n, forest.m
        unary, code, owner = weights.unary, weights.code, forest.owner
        start, self.bottom_up = np.empty(m + 1, dtype=np.int32), np.empty(m, dtype=np.int32)
        member = np.empty(n, dtype=np.int32)
        shape = forest.above, owner, forest.depth
        begin = grouping.families(*shape, start, member, self.bottom_up)
        member = member[: start[-1]]
        if begin >= 0:
            member = np.arange(begin, begin + start[-1], dtype=np.int32)
        self.owned = np.zeros(n, dtype=np.bool_)
        self.owned[owner[owner >= 0]] = True
        lo = np.where(np.isfinite(unary.lo), unary.lo, 0.0)
        least = np.where(self.owned, 0, lo.astype(np.int64)[code])
        gap = np.where(self.owned, 0, np.maximum(unary.center - lo, 0.0).astype(np.int64)[code])
        inverse = np.where(unary.kind == laws.LAPLACE, 1.0 / unary.scale, 0.0)
        self.inverse, self.m, self.n = inverse[code], m, n
        self.depth = forest.depth
        inner = np.add.reduceat(self.owned[member].astype(np.int64), start[:-1]) > 0
        ends = [f.reduceat(self.inverse[member], start[:-1]) for f in (np.minimum, np.maximum)]
        above = np.where(owner >= 0, forest.above[owner], -1)
        self.families = FamilyMembers(
            start,
            member,
            owner,
            (owner >= 0) & (above < 0),
            ~inner & (ends[0] == ends[1]) & (ends[0] > 0.0),
            gap,
            least,
        )
        self.number = np.diff(start).astype(np.int64)
        law = self._leaves(ends[0])
        own = code[owner]
        self.first_of = self._first_of(law, np.where(owner >= 0, own, -1), above)
        # families whose tables are filled, and how many have each one
        self.kept = self.first_of == np.arange(m)
        self.times = np.bincount(self.first_of, minlength=m)
        family = np.repeat(np.arange(m), self.number)
        of_variable = np.full(n, -1)
        of_variable[owner[owner >= 0]] = np.flatnonzero(owner >= 0)
        below = of_variable[member]
        apart = ~self.families.of_leaves[family] & ((below < 0) | self.kept[below])
        tree = Shape(
            member[apart].astype(np.int64),
            family[apart],
            np.where(below >= 0, self.times[below], 1)[apart],
            forest.above.astype(np.int64),
            owner.astype(np.int64),
            np.where(self.kept, forest.depth, -1).astype(np.int64),
            self.families.of_leaves,
            self.owned,
            code.astype(np.int64),
            self.number,
        )
        leaf = ~self.owned & (forest.above >= 0)
        tilt = common_tilt(unary, np.bincount(code[leaf], minlength=unary.kind.size))
        self.settled = settle(tree, law, unary, tilt)
        self.theta = theta = _on_grid(self.settled.tilt[self.first_of])
        self.law = law._replace(tilt=theta.copy())
        self.owners = Owners(
            np.where(owner >= 0, unary.kind[own], laws.FLAT),
            np.where(owner >= 0, self.inverse[owner], 0.0),
            np.where(above >= 0, theta[above], 0.0),
            np.where(owner >= 0, unary.lo[own], 0.0),
            np.where(owner >= 0, unary.hi[own], 0.0),
        )
        # the table of a sum that is fixed has a place of its own
        self.holder = np.where(owner >= 0, owner, n + np.arange(m)).astype(np.int64)
        self.place, self.first, self.size = np.zeros((3, n + m), dtype=np.int64)
        # untouched pages take no memory
        self.table, self.used = np.empty(1 << 24, dtype=np.int64), 0
        # share of each owner's table that is missing or that choices add, and the same pointwise
        self.missing, self.relative = np.zeros(n + m), 0.0
        self.doubt = Doubt(*np.zeros((5, n + m)))
        self.retilt = np.zeros(m)

    def _leaves(self, inverse: FloatArray) -> Leaves:
        """List the distinct gaps of every family of leaves, and their numbers."""
        m, of = self.m, self.families
        kept = np.repeat(of.of_leaves, self.number)
        family = np.repeat(np.arange(m), self.number)[kept]
        member = of.member[kept]
        key = np.sort((family << _BITS) | of.gap[member])
        fresh = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: key.size])
        counts = np.diff(np.append(fresh, key.size))
        distinct = key[fresh]
        begins = np.searchsorted(distinct, np.arange(m + 1) << _BITS)
        gaps = distinct & ((1 << _BITS) - 1)
        base = np.bincount(family, weights=of.least[member].astype(float), minlength=m)
        # a sum over the distinct gaps of each family
        self.each = distinct >> _BITS
        self.lifted = np.bincount(self.each, weights=counts * (gaps > 0), minlength=m)
        return Leaves(begins, gaps, counts, base.astype(np.int64), inverse, np.zeros(m))

    def _first_of(self, law: Leaves, own: IntArray, above: IntArray) -> IntArray:
        """Return the first family of leaves that equals each family, and has an equal owner."""
        rates = np.unique(law.inverse, return_inverse=True)[1]
        keys = own.astype(np.int64), above.astype(np.int64), self.number, law.base, rates
        number = np.flatnonzero(self.families.of_leaves)
        return first_equal(number, keys, law.begins, (law.gaps, law.counts), self.m)

    def filled(self, limit: float) -> FamilySums | None:
        """Fill all tables from the bottom up."""
        of = self.families
        if not self._fill_leaves():
            return None
        inner = np.flatnonzero(~of.of_leaves)
        depth = self.depth[inner]
        for d in range(int(depth.max(initial=-1)), -1, -1):
            if not self._fill_level(inner[depth == d]):
                return None
        top = of.root | (of.owner < 0)
        error = float(self.missing[self.holder[top]].sum()) + self.relative
        error += _COMPOSED * of.member.size
        # the only entry of a fixed sum is a constant
        held = self.holder[top]
        self.doubt.factor[held[self.size[held] == 1]] = 0.0
        if not error <= limit:
            return None
        return FamilySums(
            np.ascontiguousarray(self.bottom_up[::-1]),
            of,
            TablesOfOwners(self.place, self.first, self.size, self.table[: self.used]),
            self.law,
            self.binomials,
            self.base_tilt,
            self.retilt,
            self.doubt,
            error,
        )

    def _fill_leaves(self) -> bool:
        """Fill the tables of all owners of leaves."""
        law, number = self.law, self.number
        self.placed = np.full((self.m, 4), np.nan)
        at = np.flatnonzero(self.families.of_leaves & self.kept)
        whole = law.begins, law.gaps, law.counts, number, law.inverse, law.tilt
        kernels.place_leaves(at, *whole, self.placed)
        low, high = self.placed[at, :2].T
        self.base_tilt = np.zeros(self.m)
        if not at.size:
            self.binomials = Binomials(np.zeros(self.m, dtype=np.int64), at, np.empty(0))
            return True
        if not (np.isfinite(high).all() and high.max() < _LONGEST / 2):
            return False
        total = np.bincount(self.each, weights=law.gaps * law.counts, minlength=self.m)
        direct = total[at] * high <= _DIRECT
        ends = np.where(direct, high + 1.0, low + _periods(high - low))
        if not self._fill_binomials(at, ends.astype(np.int64) + 1):
            return False
        self.lifts = np.zeros(self.m)
        self.lifts[at] = self._rounding_of_lifts(at)
        self.relative += _UNIT * float(self.times[at] @ (4.0 * self.lifted[at] + 8.0))
        if not (self._directly(at[direct]) and self._by_transforms(at[~direct])):
            return False
        self._share()
        return True

    def _share(self) -> None:
        """Give all families of leaves the tables of the first one that equals each of them."""
        first, of = self.first_of, self.binomials.of
        self.base_tilt, self.lifts = self.base_tilt[first], self.lifts[first]
        self.binomials = self.binomials._replace(of=of[first])
        other = np.flatnonzero(~self.kept)
        held, own = self.holder[other], self.holder[first[other]]
        for column in (self.place, self.first, self.size, self.missing, *self.doubt):
            column[held] = column[own]

    def _rounding_of_lifts(self, at: IntArray) -> FloatArray:
        """Bound the total variation by which integer weights change all lifts of families `at`.

        Weights are scaled such that those of the largest gap add up to 2^62. Those of a gap c add
        up to a mean of 1 and most / (1 - a), weighted by a^c, if the top is likelier, and else to 1
        or more.
        """
        law, m = self.law, self.m
        lifts = np.where(law.gaps > 0, law.counts * (law.gaps + 2.0), 0.0)
        widest = np.zeros(m)
        np.maximum.at(widest, self.each, law.gaps)
        inverse, rise = law.inverse[at], law.tilt[at] + law.inverse[at]
        falls = np.maximum(-np.expm1(-np.abs(rise)), 1e-300)
        most = -np.expm1(-2.0 * inverse)
        largest = 1.0 + most * np.minimum(widest[at] + 1.0, 1.0 / falls)
        least = np.where(rise > 0.0, most / falls, 1.0)
        scale = largest / np.minimum(least, 1.0)
        return _CHOICE * scale * np.bincount(self.each, weights=lifts, minlength=m)[at]

    def _fill_binomials(self, at: IntArray, ends: IntArray) -> bool:
        """Fill negative binomial weights for the families `at`, up to their ends."""
        inverse, number = self.law.inverse[at], self.number[at].astype(np.float64)
        _, group = np.unique(np.stack((inverse, number)), axis=1, return_inverse=True)
        longest = np.zeros(group.max() + 1)
        np.maximum.at(longest, group, ends)
        # a table serves tilts that differ by so little that no weight becomes too small
        grid = (_NATS / longest)[group]
        self.base_tilt[at] = _on_grid(np.floor(self.law.tilt[at] / grid) * grid)
        key = np.stack((inverse, number, self.base_tilt[at]))
        distinct, group = np.unique(key, axis=1, return_inverse=True)
        length = np.zeros(distinct.shape[1], dtype=np.int64)
        np.maximum.at(length, group, ends)
        if length.sum() > _ROOM:
            return False
        offset, table = np.cumsum(length) - length, np.empty(int(length.sum()))
        for law, begin, size in zip(distinct.T.tolist(), offset, length, strict=True):
            kernels.fill_binomial(*law, table[begin : begin + size])
        of = np.zeros(self.m, dtype=np.int64)
        of[at] = group
        self.binomials = Binomials(of, offset, table)
        return True

    def _directly(self, number: IntArray) -> bool:
        """Fill the tables of owners of short families."""
        if not number.size:
            return True
        order = np.lexsort((number, self.law.inverse[number], self.base_tilt[number]))
        number = number[order]
        tilts, begins = np.unique(self.base_tilt[number], return_index=True)
        for tilt, of in zip(tilts.tolist(), np.split(number, begins[1:]), strict=True):
            found = np.empty((of.size, 6))
            args = of, self.law, self.binomials, self.owners, tilt, self.placed, found
            self.table, self.used = kernels.fill_directly(*args, self.table, self.used)
            if not (found[:, 2] > 0.0).all():
                return False
            at = self.holder[of]
            place, self.first[at], self.size[at], units, gain, cut = found.T
            self.place[at] = place
            self.relative += _UNIT * float(self.times[of] @ units)
            self.missing[at] = cut + self.size[at] * _CHOICE + gain * (self.lifts[of] + _BEYOND)
            if self.used > _ROOM:
                return False
        return True

    def _append(self, table: IntArray) -> int:
        """Append a table, and return where it begins."""
        begin, end = self.used, self.used + table.size
        if end > self.table.size:
            longer = np.empty(max(end, 2 * self.table.size), dtype=np.int64)
            longer[:begin] = self.table[:begin]
            self.table = longer
        self.table[begin:end] = table
        self.used = end
        return begin

    def _by_transforms(self, number: IntArray) -> bool:
        """Fill the tables of the owners of long families of leaves."""
        low, high = self.placed[number, :2].T
        periods = _periods(high - low).astype(np.int64)
        if not number.size:
            return True
        if periods.max() > _LONGEST:
            return False
        self.relative += _UNIT * float(self.times[number] @ (8.0 * self.lifted[number] + 40.0))
        for n in np.unique(periods).tolist():
            of = number[periods == n]
            step = max(1, _AT_ONCE // n)
            turns = _turns(n)
            if not all(
                self._by_transform(of[i : i + step], turns) for i in range(0, of.size, step)
            ):
                return False
        return True

    def _by_transform(self, number: IntArray, turns: FloatArray) -> bool:
        """Fill the tables of some owners, for a period of turns.shape[1] values."""
        spectra = np.empty((number.size, turns.shape[1] // 2 + 1), dtype=np.complex128)
        means = np.empty((number.size, 2))
        kernels.fill_spectra(number, self.law, self.number, turns, spectra, means)
        ends = self.placed[number, :2].astype(np.int64)
        at = np.column_stack((ends, self.law.base[number]))
        bounds = np.ascontiguousarray(self.placed[number, 2:])
        below = np.asarray(self.lifts[number]), np.full(number.size, np.inf)
        return self._weigh(number, *_back(spectra, means), at, bounds, below)

    def _fill_level(self, number: IntArray) -> bool:
        """Fill the tables of the owners of families of one depth, whose members have tables."""
        of, sizes = self.families, self.number[number]
        if sizes.max(initial=0) > _MOST:
            return False
        member = of.member[ranges(of.start[number].astype(np.int64), sizes)]
        family = np.repeat(np.arange(number.size), sizes)
        lone = ~self.owned[member]
        for v, f in zip(member[lone].tolist(), number[family[lone]].tolist(), strict=True):
            if not self._fill_leaf(v, f):
                return False
        begins = np.cumsum(sizes) - sizes
        base = np.add.reduceat(self.first[member], begins)
        missing = np.add.reduceat(self.missing[member], begins)
        single = sizes == 1
        for i in np.flatnonzero(single).tolist():
            if not self._fill_single(number[i], member[begins[i]], missing[i]):
                return False
        several = ~single
        rows = _distinct(family, member.astype(np.int64), self.place, several)
        return self._by_members(number[several], base[several], missing[several], rows)

    def _fill_single(self, f: int, v: int, missing: float) -> bool:
        """Fill the table of the owner of a family of one member."""
        size, place = int(self.size[v]), int(self.place[v])
        law = self.table[place : place + size] / float(self.table[place : place + size].sum())
        at = np.array([[0, size, self.first[v]]])
        below = np.array([missing]), np.array([np.inf])
        args = np.array([f]), law[None, :], np.zeros(1), at, np.zeros((1, 2)), below
        return self._weigh(*args, turned=False)

    def _by_members(
        self, number: IntArray, base: IntArray, missing: FloatArray, rows: DistinctTables
    ) -> bool:
        """Fill the tables of the owners of families of several members, by transforms."""
        if not number.size:
            return True
        found, whole = np.empty((number.size, 5)), self.table[: self.used]
        place, size = self.place[rows.member], self.size[rows.member]
        law = rows.begins, place, size, rows.times, whole, base
        member_sums.place_members(number, *law, self.owners, self.theta, _GRID, found)
        tilt, low, high, by, longest = found.T
        members = np.add.reduceat(rows.times, rows.begins[:-1])
        self.theta[number] += tilt
        self.retilt[number] = tilt
        nats = np.maximum(MOST_NATS, np.abs(tilt) * longest)
        units = (4.0 + nats) * members + 3.0 * members + 5.0 * np.log2(members) + 16.0
        self.relative += _UNIT * float(units.sum())
        # a tilt rounds its exponents and its exponentials, here and in draws
        rounded = (4.0 + np.abs(tilt) * longest) * _UNIT * members
        missing = missing + np.add.reduceat(rows.times * size, rows.begins[:-1]) * _CHOICE
        at = np.stack((low, high, base.astype(np.float64)), axis=1).astype(np.int64)
        bounds = np.ascontiguousarray(np.stack((by, by), axis=1))
        periods = _periods(np.maximum(high - low, longest)).astype(np.int64)
        if periods.max() > _LONGEST:
            return False
        for n in np.unique(periods).tolist():
            for of in _batches(np.flatnonzero(periods == n), rows.begins, max(1, _AT_ONCE // n)):
                spectra, means, without = self._spectra(of, n, rows, tilt, longest)
                means[:, 1] += rounded[of] * without
                sums, error = _back(spectra, means)
                below = missing[of], without
                if not self._weigh(number[of], sums, error, at[of], bounds[of], below):
                    return False
        return True

    def _spectra(
        self, of: IntArray, n: int, rows: DistinctTables, tilt: FloatArray, longest: FloatArray
    ) -> tuple[npt.NDArray[np.complex128], FloatArray, FloatArray]:
        """Return the spectra of some families' sums, as `member_sums.finish` does."""
        error, most = _STAGE * (math.log2(n) + 1.0), max(1, _AT_ONCE // n)
        number = np.diff(rows.begins)[of]
        at = ranges(rows.begins[of], number)
        family = np.repeat(np.arange(of.size), number)
        product = np.ones((of.size, 5, n // 2 + 1))
        product[:, 1] = product[:, 4] = 0.0
        live = np.full(of.size, n // 2 + 1)
        for i in range(0, at.size, most):
            some, mine = at[i : i + most], family[i : i + most]
            tables = np.empty((some.size, n))
            v, own = rows.member[some], of[mine]
            law = self.place[v], self.size[v], tilt[own], longest[own]
            member_sums.lay_out(*law, self.table[: self.used], tables)
            args = mine, rows.times[some], error, product, live
            member_sums.multiply(np.fft.rfft(tables).view(np.float64), *args)
        spectra = np.empty((of.size, n // 2 + 1), dtype=np.complex128)
        means = np.empty((of.size, 3))
        member_sums.finish(product, spectra, means)
        return spectra, means[:, :2].copy(), means[:, 2].copy()

    def _fill_leaf(self, v: int, f: int) -> bool:
        """Fill the table of a leaf among inner nodes."""
        inverse, tilt, least = self.inverse[v], self.theta[f], int(self.families.least[v])
        if not inverse > tilt:
            return False
        low, reach = least, kernels.DEPTH + 8.0
        high = max(0, least) + int(reach / (inverse - tilt)) + 2
        if inverse + tilt > 0.0:
            low = max(least, -int(reach / (inverse + tilt)) - 2)
        if high - low > _LONGEST:
            return False
        table = np.empty(high - low + 1, dtype=np.int64)
        kernels.fill_leaf(inverse, tilt, low, np.empty(table.size), table)
        self.place[v], self.first[v], self.size[v] = self._append(table), low, table.size
        self.missing[v] = table.size * _CHOICE + _BEYOND
        self.relative += 4.0 * _UNIT
        return True

    def _weigh(
        self,
        number: IntArray,
        sums: FloatArray,
        error: FloatArray,
        at: IntArray,
        bounds: FloatArray,
        below: tuple[FloatArray, FloatArray],
        *,
        turned: bool = True,
    ) -> bool:
        """Turn the laws of sums, with their largest errors, into the tables of their owners.

        For `at` and `bounds` see `kernels.network.family_sums.weigh_all`. `below` has the share
        that is missing below, and a bound on the largest probability of a sum without one member.
        """
        kind, inverse, above, _, _ = (column[number] for column in self.owners)
        begins = at[:, 0] % sums.shape[1] if turned else np.zeros(number.size, dtype=np.int64)
        found = np.empty((number.size, 9))
        args = number, sums, begins, error, at, bounds, self.owners, self.theta, found
        self.table, self.used = kernels.weigh_all(*args, self.table, self.used)
        place, first, size, total, weights, scale, cut, log_top, faint = found.T
        # draws of sums that are mostly bounds would be rejected
        if not (size > 0.0).all() or faint.max() > _FAINT:
            return False
        v = self.holder[number]
        self.place[v], self.first[v], self.size[v] = place, first, size
        missing, without = below
        gain = np.minimum(1.0, without * weights) / total
        self.missing[v] = cut + size * _CHOICE + gain * (missing + _BEYOND)
        self.relative += 8.0 * _UNIT * float(self.times[number].sum())
        doubt = self.doubt
        doubt.slope[v] = above - self.theta[number]
        doubt.decay[v] = np.where(kind == laws.LAPLACE, inverse, 0.0)
        doubt.top[v], doubt.unit[v] = log_top, scale
        doubt.factor[v] = 2.02 * error * scale
        return self.used <= _ROOM


def _distinct(
    family: IntArray, member: IntArray, place: IntArray, kept: BoolArray
) -> DistinctTables:
    """Return one row for each table of the families that are kept."""
    mine = kept[family]
    family, member = family[mine], member[mine]
    order = np.lexsort((place[member], family))
    family, member = family[order], member[order]
    fresh = np.ones(member.size, dtype=np.bool_)
    fresh[1:] = (family[1:] != family[:-1]) | (place[member][1:] != place[member][:-1])
    first = np.flatnonzero(fresh)
    times = np.diff(np.append(first, member.size))
    number = np.flatnonzero(kept)
    begins = np.searchsorted(family[first], np.append(number, kept.size))
    return DistinctTables(begins, member[first], times)


def _batches(number: IntArray, begins: IntArray, most: int) -> Iterator[IntArray]:
    """Yield families in parts that have at most about `most` rows each."""
    rows = np.cumsum(np.diff(begins)[number])
    edges = np.flatnonzero(np.diff(rows // most)) + 1
    return iter(np.split(number, edges))


def _back(spectra: npt.NDArray[np.complex128], means: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the laws whose spectra are given, one period each, and their largest errors.

    `means` has the mean size of each spectrum and the mean of its errors.
    """
    n = 2 * (spectra.shape[1] - 1)
    stages = _STAGE * (math.log2(n) + 1.0)
    return np.fft.irfft(spectra, n), means[:, 1] + stages * means[:, 0] + _BEYOND


def _on_grid(tilt: FloatArray | float) -> FloatArray:
    """Round tilts down to multiples of `_GRID`."""
    return np.asarray(np.floor(np.asarray(tilt) / _GRID) * _GRID)


def _periods(span: FloatArray | np.float64) -> FloatArray:
    """Return the powers of two that are at least span + 2, and at least 64."""
    return np.asarray(np.maximum(64.0, 2.0 ** np.ceil(np.log2(np.maximum(span, 1.0) + 2.0))))


def _turns(n: int) -> FloatArray:
    """Return cosines and sines of 2 pi i / n, shape (2, n)."""
    angle = 2.0 * np.pi / n * np.arange(n)
    return np.stack((np.cos(angle), np.sin(angle)))


def fill_draws(compiled: Compiled, limit: float) -> Tables | FamilySums:
    """Fill tables for draws only, of the kind that is likely to take less time.

    For `limit` and the errors raised see `fill`. Where it raises UnsupportedError or
    NumericalError, tables of families are tried too.
    """
    forest, weights = compiled.forest, compiled.weights
    wide = are_wide(forest, weights)
    found = fill_families(forest, weights, limit) if wide else None
    if found is None:
        try:
            return fill(compiled, limit, drawn=True)
        except (NumericalError, UnsupportedError):
            found = None if wide else fill_families(forest, weights, limit)
            if found is None:
                raise
    return replace(found, freed=compiled.freed)
