"""Tables of the sums of a tree of bounded counts, one for each family, instead of for every merge.

For Laplace noise and leaves with a lower bound. `family_draws` draws from them.
Proof: `proofs/family-draws.md`. Benchmark row: `bounded`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from congenial.kernels.network import equal_families as equality
from congenial.kernels.network import family_spectra, member_sums
from congenial.kernels.network import family_sums as kernels
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network import SharedUnary, SumForest
from congenial.sum_network.families.equal_families import first_equal, ranges
from congenial.sum_network.families.equal_subtrees import Merged, merge_equal, spread
from congenial.sum_network.families.family_records import (
    Binomials,
    DistinctTables,
    Doubt,
    FamilySums,
    Owners,
)
from congenial.sum_network.families.family_tilts import (
    Leaves,
    Rounds,
    Settled,
    Shape,
    common_tilt,
)
from congenial.sum_network.families.grouping import families_of, leave_free
from congenial.sum_network.families.growing_tables import GrowingTables
from congenial.sum_network.families.narrow_families import narrowed
from congenial.sum_network.families.wide_noise import applies, have_wide_noise
from congenial.sum_network.windows import tilts
from congenial.types import BoolArray, FloatArray, Indices, IntArray

_UNIT = 2.0**-53
# Products of a family's lifts and sums below which they are added up term by term, if its sums
# begin at the least one. Otherwise, tables from there on would be longer than others.
_DIRECT = 1 << 15
# Longest period of a transform, and most children with tables in one family.
_LONGEST, _MOST = 1 << 22, 4096
# Entries of the transforms that are in memory at once.
_AT_ONCE = 1 << 20
# Most entries of all tables, 1.5 GiB.
_ROOM = 3 << 26
# Error of one stage of a transform (Higham 2002, theorem 24.2); a factor 3 of the period counts as
# log2(3) stages (proofs/family-draws.md).
_STAGE = 7.0 * _UNIT
# Nats: what lies beyond an end of a range has at most exp(-_DEPTH) of a law's probability. So it is
# for both ends, which a transform adds to the range, and for tilted members, at most.
_DEPTH = 46.0
# more than 2 exp(MARGIN - _DEPTH)
_BEYOND = 2.1062e-20
# Weights of members beyond their tables, as shares of those in them: with more, tables are filled
# for a tilt that suits them better, or no table is made.
_LOST, _MOST_LOST = 2.0**-34, 2.0**-20
# How often the tables of members are filled anew, for the tilt that their sum turns out to need.
_TRIES = 4
# Largest share of a table whose entries may be far too large.
_FAINT = 1e-4
# Deviations of a family of leaves beyond which a leaf's distance from its bound may split its law.
_SPLIT = 4.0
# Nats by which the smallest weight of a negative binomial table may differ by tilts.
_NATS = 100.0
# The entry of a table of one value, which nearly all numbers of 62 bits choose; and how far from
# the mean of a sum that value may be, in deviations.
_ONLY, _FAR = (1 << 62) - 1, 4.0
# Tilts are multiples of this, so that sums and differences of tilts are exact.
_GRID = 2.0**-40


def fill_families(forest: SumForest, weights: SharedUnary) -> FamilySums | None:
    """Fill the tables; None where this way does not apply, or draws would be rejected too often."""
    if not applies(forest, weights):
        return None
    by = merge_equal(*narrowed(forest, weights))
    found = _Filling(by).filled()
    return None if found is None else replace(spread(found, by), variables=forest.n)


def fill_below_root(forest: SumForest, weights: SharedUnary) -> tuple[FamilySums, float] | None:
    """Fill the tables of a part; variable 0, its root, has the table of the sum below it.

    The root's own weight and the sum above it, of what is outside, affect tilts alone. Returns the
    tilt of the root's table, too; None where draws would be rejected too often.
    """
    by = merge_equal(*narrowed(forest, weights))
    filling = _Filling(by)
    sent = filling.leave_free(int(by.variable[0]))
    found, tilt = filling.filled(), float(filling.owners.tilt[sent])
    if found is None:
        return None
    by = by._replace(whole=leave_free(by.whole, 0))
    return replace(spread(found, by), variables=forest.n), tilt


def settled(forest: SumForest, weights: SharedUnary) -> Settled:
    """Return multipliers of the sums of a forest whose noise is wide, and moments at them.

    A member of a family may have a weight of any kind, see `joined`. The moments of leaves of
    families of leaves may be missing.
    """
    by = merge_equal(forest, weights)
    filling = _Filling(by, near=False)
    found = filling.settled
    tilt = _on_grid(filling.rounds.rounded(found.tilt, filling.reach))[by.sum_of]
    mean, variance = found.of_sum
    # the last entry is for variables of number -1
    own = np.pad(found.of_variable, ((0, 0), (0, 1)), constant_values=np.nan)[:, by.variable]
    return Settled(tilt, (mean[by.sum_of], variance[by.sum_of]), (own[0], own[1]))


def matched_tilts(forest: SumForest, weights: SharedUnary) -> FloatArray:
    """Return multipliers of the sums that match means of messages if the noise is wide.

    Otherwise they match means of single weights, which takes less time.
    """
    wide = have_wide_noise(forest, weights)
    return settled(forest, weights).tilt if wide else tilts(forest, weights)


class _Filling:
    """The tables on their way up."""

    def __init__(self, by: Merged, *, near: bool = True) -> None:
        forest, weights = by.forest, by.weights
        m, unary, code, owner = forest.m, weights.unary, weights.code, forest.owner
        self.n, self.m, self.times = forest.n, m, by.times
        self.families = families_of(forest, weights)
        of, above, self.level = self.families.members, self.families.above, forest.depth
        summed = forest.above >= 0
        number = np.bincount(forest.above[summed], self.times[summed], minlength=m)
        self.number = number.astype(np.int64)
        law, holds, own = self._leaves(), owner >= 0, code[owner]
        self.weight = np.where(holds, own, -1).astype(np.int64)
        inner = np.flatnonzero(~of.of_leaves)
        size = self.families.size[inner]
        members = of.member[ranges(of.start[inner].astype(np.int64), size)]
        tree = Shape(
            members.astype(np.int64),
            np.repeat(inner, size),
            self.times[members],
            above,
            self.families.below.astype(np.int64),
            owner.astype(np.int64),
            forest.depth.astype(np.int64),
            of.of_leaves,
            code.astype(np.int64),
            self.number,
        )
        leaf = np.flatnonzero((self.families.below < 0) & summed)
        many = self.times[leaf] * by.families[forest.above[leaf]]
        tilt = common_tilt(unary, np.bincount(code[leaf], many, minlength=unary.kind.size))
        self.rounds = Rounds(tree, law, unary, tilt, near=near)
        self.settled, self.law = self.rounds.settle(), law
        # largest distance of any leaf below each sum from its bound
        self.reach = reach = self.families.reach.copy()
        for d in range(int(forest.depth.max(initial=0)), -1, -1):
            here = np.flatnonzero((forest.depth == d) & (above >= 0))
            np.maximum.at(reach, above[here], reach[here])
        self.owners = Owners(
            np.where(holds, unary.kind[own], laws.FLAT),
            np.where(holds, self.families.inverse[owner], 0.0),
            np.where(holds, unary.center[own], 0.0),
            np.zeros(m),
            np.where(holds, unary.lo[own], 0.0),
            np.where(holds, unary.hi[own], 0.0),
        )
        # the table of a sum that is fixed has a place of its own
        self.holder = np.where(holds, owner, forest.n + np.arange(m)).astype(np.int64)
        # whether the moments of the owner's table tell what the sum above it needs
        self.telling = holds

    def leave_free(self, v: int) -> int:
        """Leave out the weight of variable v and the sum above it; return the sum below it."""
        f = int(self.families.below[v])
        self.families, self.telling[f] = leave_free(self.families, v), False
        flat = laws.FLAT, 0.0, 0.0, 0.0, -np.inf, np.inf
        for column, value in zip(self.owners, flat, strict=True):
            column[f] = value
        return f

    def _begin(self) -> None:
        """Begin with no table, and with settled tilts."""
        n, m = self.n, self.m
        above = self.families.above
        self.theta = theta = _on_grid(self.rounds.rounded(self.settled.tilt, self.reach))
        tilts = np.where(above >= 0, theta[above], 0.0)
        self.law = self.law._replace(tilt=theta.copy())
        self.owners = self.owners._replace(tilt=tilts)
        # a law with two modes may lie far from where its normal stand-in does
        deviation = np.sqrt(self.settled.of_sum[1])
        split = self.families.members.of_leaves & (self.reach > _SPLIT * deviation)
        self._match(np.flatnonzero(split))
        self.tables = GrowingTables(n + m)
        self.retilt = np.zeros(m)
        # families whose tables are filled directly, whose tilt is settled for good, whose members'
        # tables have been filled anew, and whose own table needs another tilt
        self.directly, self.used_tilt, self.anew, self.unfit = np.zeros((4, m), dtype=np.bool_)
        self.placed, self.base_tilt = np.full((m, 4), np.nan), np.zeros(m)
        none = np.empty(0, dtype=np.int64)
        self.binomials = Binomials(np.zeros(m, dtype=np.int64), none, none, np.empty(0))

    def _match(self, leaves: IntArray) -> None:
        """Move the tilts of families of leaves to what their owners want."""
        kernels.match_leaves(leaves, self.law, self.number, self.owners, _GRID)
        self.theta[leaves] = self.law.tilt[leaves]

    def _settle_above(self, number: IntArray) -> None:
        """Take the tilts of sums whose members have no tables yet from the moments of tables."""
        if not number.size:
            return
        made, above = self.tables, self.families.above
        t = made.of[self.families.members.owner[number]]
        found = made.moments[1:, t]
        found[0] += made.first[t]
        self.used_tilt[number] = self.used_tilt[np.maximum(above[number], 0)] = True
        if self.used_tilt.all():
            return
        settled, free = self.rounds.settle_above(number, found, self.theta), ~self.used_tilt
        self.theta[free] = _on_grid(self.rounds.rounded(settled.tilt, self.reach)[free])
        self.owners.tilt[:] = np.where(above >= 0, self.theta[above], 0.0)

    def _leaves(self) -> Leaves:
        """List the distinct gaps of every family of leaves, and their numbers."""
        m, of = self.m, self.families.members
        (begins, base), leaves = np.empty((2, m + 1), np.int64), self.number[of.of_leaves].sum()
        gaps, counts = np.empty((2, leaves), dtype=np.int64)
        shape = of.start, of.member, of.of_leaves, of.gap, of.least
        used = equality.list_gaps(*shape, begins, base, gaps, counts)
        gaps, counts, base = gaps[:used].copy(), counts[:used].copy(), base[:-1]
        # differences of running sums, since lists may be empty
        running = np.append(0, np.cumsum(gaps * counts))
        self.lifted = np.diff(running[begins])
        return Leaves(begins, gaps, counts, base, self.families.rate, np.zeros(m))

    def _first_of(self, law: Leaves, number: IntArray, *keys: IntArray) -> IntArray:
        """Return the first of the families of leaves `number` that equals each, see `first_equal`.

        Equal families have equal owners, too.
        """
        keys = self.weight, law.base, law.inverse.view(np.int64), *keys
        return first_equal(number, keys, law.begins, (law.gaps, law.counts), self.m)

    def filled(self) -> FamilySums | None:
        """Fill all tables; None if draws would be rejected too often."""
        self._begin()
        of, bottom_up = self.families.members, self.families.bottom_up
        leaves = np.flatnonzero(of.of_leaves)
        first = self._first_of(self.law, leaves, *self._tilts())
        if not self._fill_leaves(leaves[first[leaves] == leaves]):
            return None
        self._share(leaves, first)
        self._settle_above(leaves[self.telling[leaves]])
        inner = np.sort(bottom_up[~of.of_leaves[bottom_up]])
        level = self.level[inner]
        for d in range(int(level.max(initial=-1)), -1, -1):
            number = inner[level == d]
            if not self._fill_inner(number):
                return None
            self._settle_above(number[self.telling[number]])
        tables, doubt = self.tables.finished()
        order, limits = np.ascontiguousarray(bottom_up[::-1]), np.stack(self.owners[-2:])
        laws_of_leaves = self.law, self.binomials, self.base_tilt, self.directly
        return FamilySums(order, of, tables, limits, *laws_of_leaves, self.retilt, doubt, self.n)

    def _fill_leaves(self, at: IntArray, *, again: bool = True) -> bool:
        """Fill the tables of the owners of the families of leaves `at`."""
        if not at.size:
            return True
        law = self.law
        whole = law.begins, law.gaps, law.counts, self.number, law.inverse, law.tilt
        kernels.place_leaves(at, *whole, _DEPTH, self.placed)
        low, high = self.placed[at, :2].T
        if not (np.isfinite(high).all() and high.max() < _LONGEST / 2):
            return False
        direct = (low == 0.0) & (self.lifted[at] * high <= _DIRECT)
        ends = np.where(direct, high + 1.0, low + _periods(high - low))
        if not self._fill_binomials(at, ends.astype(np.int64) + 1):
            return False
        self.directly[at] = direct
        mean, variance = (moments[at] for moments in self.settled.of_sum)
        left = ~self._constant(at, (self.owners.lo[at] - mean) / np.sqrt(variance))
        if not (self._directly(at[direct & left]) and self._by_transforms(at[~direct & left])):
            return False
        unfit = at[self.unfit[at]]
        self._match(unfit)
        return not unfit.size or (again and self._fill_leaves(unfit, again=False))

    def _constant(self, number: IntArray, off: FloatArray) -> BoolArray:
        """Give owners of one possible value a table of one entry; return which have one now.

        It takes no law of the sum, whose mean is `off` deviations from that value. Farther away, it
        might be impossible, or be drawn after very many attempts.
        """
        only = (self.owners.lo[number] == self.owners.hi[number]) & (np.abs(off) < _FAR)
        of, made = number[only], self.tables
        if of.size:
            found = np.ones((of.size, 5))  # weights are divided by 1, whose log is 0
            found[:, 0] = made.append(np.full(of.size, _ONLY)) + np.arange(of.size)
            found[:, 1], found[:, 4] = self.owners.lo[of], 0.0
            self.unfit[of] = False
            self._hold(of, found, np.zeros((of.size, 4)), self.theta[of], 0.0, 0.0)
        return np.asarray(only)

    def _tilts(self) -> tuple[IntArray, IntArray]:
        """Return the bits of the tilts of families, and of those above them."""
        return self.theta.view(np.int64), self.owners.tilt.view(np.int64)

    def _share(self, number: IntArray, first_of: IntArray) -> None:
        """Give families of leaves the tables of the first one that equals each of them."""
        other = number[first_of[number] != number]
        first = first_of[other]
        own = self.base_tilt, self.directly, self.binomials.of, self.law.tilt, self.theta
        for column in own:
            column[other] = column[first]
        self.tables.share(self.holder[other], self.holder[first])

    def _fill_binomials(self, at: IntArray, ends: IntArray) -> bool:
        """Fill negative binomial weights for the families `at`, up to their ends."""
        inverse, number = self.law.inverse[at], self.number[at].astype(np.float64)
        first, group = _first_rows((inverse, number))
        longest = np.zeros(first.size)
        np.maximum.at(longest, group, ends)
        # a table serves tilts that differ by so little that no weight becomes too small
        grid = (_NATS / longest)[group]
        self.base_tilt[at] = _on_grid(np.floor(self.law.tilt[at] / grid) * grid)
        key = inverse, number, self.base_tilt[at]
        first, group = _first_rows(key)
        length, distinct = np.zeros(first.size, dtype=np.int64), np.stack(key)[:, first]
        np.maximum.at(length, group, ends)
        known = self.binomials
        begin = known.table.size
        if begin + length.sum() > _ROOM:
            return False
        offset, table = np.cumsum(length) - length, np.empty(int(length.sum()))
        for law, start, size in zip(distinct.T.tolist(), offset, length, strict=True):
            kernels.fill_binomial(*law, table[start : start + size])
        known.of[at] = known.offset.size + group
        columns = (known.offset, offset + begin), (known.length, length), (known.table, table)
        self.binomials = Binomials(known.of, *(np.concatenate(each) for each in columns))
        return True

    def _directly(self, number: IntArray) -> bool:
        """Fill the tables of owners of short families."""
        if not number.size:
            return True
        order = np.lexsort((number, self.law.inverse[number], self.base_tilt[number]))
        number = number[order]
        tilts, begins = np.unique(self.base_tilt[number], return_index=True)
        for tilt, of in zip(tilts.tolist(), np.split(number, begins[1:]), strict=True):
            made, found, tails = self.tables, np.empty((of.size, 6)), np.empty((of.size, 4))
            args = of, self.law, self.binomials, self.owners, tilt, self.placed, _DEPTH
            made.reserve(int(self.placed[of, 1].sum()) + of.size)
            made.used = kernels.fill_directly(*args, found, tails, made.table, made.used)
            self.unfit[of] = found[:, 2] == 0.0
            self._hold(of, found, tails, tilt, found[:, 5], 0.0)
            if made.used > _ROOM:
                return False
        return True

    def _by_transforms(self, number: IntArray) -> bool:
        """Fill the tables of the owners of long families of leaves."""
        low, high = self.placed[number, :2].T
        periods = _periods(high - low).astype(np.int64)
        if not number.size:
            return True
        if periods.max() > _LONGEST:
            return False
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
        family_spectra.fill_spectra(number, self.law, self.number, turns, spectra, means)
        low, high, falls, fall = self.placed[number].T
        first = low.astype(np.int64)
        # at the ends, rates and levels count from the first; below the least sum, there is nothing
        ends = np.stack((np.where(first > 0, falls, 0.0), np.full(first.size, -_DEPTH), fall), 1)
        ends = np.column_stack((ends, fall * (high - low) - _DEPTH))
        part = first % turns.shape[1], (high - low).astype(np.int64) + 1
        sums, error = _back(spectra, means)
        self._weigh(number, sums, error, part, self.law.base[number] + first, ends)
        return self.tables.used <= _ROOM

    def _fill_inner(self, number: IntArray) -> bool:
        """Fill the tables of the owners of all families of one depth, those of equal ones once."""
        if not number.size:
            return True
        member, family = self._members(number)
        alone = self.families.members.lone[member]
        tables = np.bincount(family, weights=alone, minlength=number.size) == 0.0
        mine = np.flatnonzero(tables)
        rows = _distinct(family, self.tables.of[member], self.times[member], tables)
        keys = [column[number[mine]] for column in (self.weight, *self._tilts())]
        lists = rows.table, rows.times
        equal = first_equal(np.arange(mine.size), keys, rows.begins, lists, mine.size)
        first = number.copy()
        first[mine] = number[mine][equal]
        if not self._fill_level(number[first == number]):
            return False
        # where the members of the first one have been filled anew, those of others have not
        same = (first != number) & ~self.anew[first]
        other, first_of = number[same], first[same]
        for column in (self.theta, self.retilt):
            column[other] = column[first_of]
        self.tables.share(self.holder[other], self.holder[first_of])
        return self._fill_level(number[(first != number) & ~same])

    def _members(self, number: IntArray) -> tuple[Indices, IntArray]:
        """Return the members of some families, and for each of them which family has it."""
        size = self.families.size[number]
        at = ranges(self.families.members.start[number].astype(np.int64), size)
        return self.families.members.member[at], np.repeat(np.arange(number.size), size)

    def _fill_level(self, number: IntArray, tries: int = _TRIES) -> bool:
        """Fill the tables of the owners of families of one depth, whose members have tables."""
        sizes = self.number[number]
        if not number.size:
            return True
        member, family = self._members(number)
        lone = self.families.members.lone[member]
        alone = zip(member[lone].tolist(), number[family[lone]].tolist(), strict=True)
        if sizes.max() > _MOST or not all(self._fill_leaf(v, f) for v, f in alone):
            return False
        begins, times = np.searchsorted(family, np.arange(number.size)), self.times[member]
        of_members = self.tables.of[member]
        base = np.add.reduceat(self.tables.first[of_members] * times, begins)
        several = sizes > 1
        for i in np.flatnonzero(~several).tolist():
            # where it fails, another tilt is needed
            several[i] = not self._fill_single(number[i], member[begins[i]])
        single = sizes[several] == 1
        number, base = number[several], base[several]
        if not number.size:
            return True
        rows, made = _distinct(family, of_members, times, several), self.tables
        found = np.empty((number.size, 10))
        tables = made.place, made.size, made.entries, made.tails, made.moments
        law = rows.begins, rows.table, rows.times, tables
        weights = base, self.owners, self.theta
        member_sums.place_members(number, *law, *weights, _GRID, _DEPTH, found)
        self.theta[number] += found[:, 0]
        # members' tables for a tilt that they have already would be the same
        last = (found[:, 0] == 0.0) | (tries == 0)
        most = np.where(last, _MOST_LOST, _LOST)
        fits = np.isfinite(found).all(axis=1) & (found[:, 8] < most) & ~single
        far = number[~fits]
        if not far.size:
            self.retilt[number] = found[:, 0]
            return self._by_members(number, base, rows, found)
        # the tables of members end where the new tilt still has weight, so they are filled for it
        if tries == 0 or not np.isfinite(found[:, 0]).all() or not self._refill(far):
            return False
        near = number[fits]
        self.theta[near] -= found[fits, 0]
        return self._fill_level(near, tries) and self._fill_level(far, tries - 1)

    def _refill(self, number: IntArray) -> bool:
        """Fill the tables of the members of families anew, by the tilts of these families."""
        self.anew[number] = True
        below = self.families.below[self._members(number)[0]].astype(np.int64)
        below = below[below >= 0]
        self.owners.tilt[below] = self.theta[self.families.above[below]]
        of_leaves = self.families.members.of_leaves[below]
        leaves = below[of_leaves]
        self._match(leaves)
        if not self._fill_leaves(leaves):
            return False
        inner = below[~of_leaves]
        self.theta[inner] -= self.retilt[inner]
        return not inner.size or self._fill_level(inner)

    def _fill_single(self, f: int, v: int) -> bool:
        """Fill the table of the owner of a family of one member."""
        made, t = self.tables, self.tables.of[v]
        size, place = int(made.size[t]), int(made.place[t])
        entries = made.table[place : place + size]
        total = float(entries.sum())
        low, falls, high, fall = made.tails[:, t].tolist()
        ends = [0.0] * 4
        if low > 0.0:
            ends[:2] = falls, elementwise.log(low / total) + falls
        if high > 0.0:
            ends[2:] = fall, elementwise.log(high / total) + fall * size
        one = np.zeros(1, dtype=np.int64)
        part = one, one + size
        args = np.array([f]), entries[None, :] / total, np.zeros(1), part, one + made.first[t]
        return self._weigh(*args, np.array([ends]))

    def _by_members(
        self, number: IntArray, base: IntArray, rows: DistinctTables, found: FloatArray
    ) -> bool:
        """Fill the tables of the owners of families of several members, by transforms."""
        tilt, low, high, *ends, longest, lost, off = found.T
        members = np.add.reduceat(rows.times, rows.begins[:-1])
        # a tilt rounds exponents and exponentials, and so the entries and the sum that divides them
        rounded = (8.0 + 2.0 * np.abs(tilt) * longest) * _UNIT * members
        first = base + low.astype(np.int64)
        begins, levels = low.astype(np.int64), np.stack(ends, axis=1)
        span = np.maximum(high - low, longest)
        periods = _periods(span)
        periods = np.where(span + 2.0 <= 0.75 * periods, 0.75 * periods, periods).astype(np.int64)
        periods[self._constant(number, off)] = 0
        if periods.max() > _LONGEST:
            return False
        # families with the same tilt may share spectra of members
        order = np.argsort(self.theta[number], kind="stable")
        for n in np.unique(periods[periods > 0]).tolist():
            for of in _batches(order[periods[order] == n], rows.begins, max(1, _AT_ONCE // n)):
                spectra, sizes = self._spectra(of, n, rows, tilt, longest)
                # factors are at most 1, so errors of a product are those of its factors
                errors = members[of] * (_stages(n) + member_sums.PRODUCT) + member_sums.TINY
                errors += rounded[of] + lost[of] + 2.0 * lost[of] ** 2
                means = np.stack((sizes, 1.001 * errors), axis=1)
                sums, error = _back(spectra, means)
                part = begins[of] % n, (high - low).astype(np.int64)[of] + 1
                if not self._weigh(number[of], sums, error, part, first[of], levels[of]):
                    return False
        return True

    def _spectra(
        self, of: IntArray, n: int, rows: DistinctTables, tilt: FloatArray, longest: FloatArray
    ) -> tuple[npt.NDArray[np.complex128], FloatArray]:
        """Return the spectra of families' sums, and their sizes as in `member_sums.finish`."""
        most, number = max(1, _AT_ONCE // n), np.diff(rows.begins)[of]
        at = ranges(rows.begins[of], number)
        family = np.repeat(np.arange(of.size), number)
        spectra = np.empty((of.size, n // 2 + 1), dtype=np.complex128)
        product, live = spectra.view(np.float64), np.full(of.size, -1)
        for i in range(0, at.size, most):
            some, mine = at[i : i + most], family[i : i + most]
            # families whose tilts are equal share the spectra of their members
            own = tilt[of[mine]]
            keys = rows.table[some], own, np.where(own == 0.0, 0.0, longest[of[mine]])
            first, which = _first_rows(keys)
            (t, *law), made = (key[first] for key in keys), self.tables
            tables = np.empty((t.size, int(made.size[t].max())))
            member_sums.lay_out(made.place[t], made.size[t], *law, made.entries, tables)
            args = which, mine, rows.times[some], product, live
            member_sums.multiply(np.fft.rfft(tables, n).view(np.float64), *args)
        sizes = np.empty(of.size)
        member_sums.finish(product, live, sizes)
        return spectra, sizes

    def _fill_leaf(self, v: int, f: int) -> bool:
        """Fill the table of a leaf among inner nodes."""
        of, tilt = self.families.members, self.theta[f]
        inverse, least = self.families.inverse[v], int(of.least[v])
        if not inverse > tilt:
            return False
        # a mode below the bound has the same law as one at the bound
        center = least + int(of.gap[v])
        low, reach = least, _DEPTH + 8.0
        high = center + int(reach / (inverse - tilt)) + 2
        if inverse + tilt > 0.0:
            low = max(least, center - int(reach / (inverse + tilt)) - 2)
        if high - low > _LONGEST:
            return False
        table = np.empty(high - low + 1, dtype=np.int64)
        tails, own = np.empty((4, 1)), np.empty(table.size)
        law = inverse, float(center), tilt, low, least
        top, unit = kernels.fill_leaf(*law, own, table, tails[:, 0])
        places = np.array([[self.tables.append(table)], [low], [table.size]])
        doubt = Doubt(*map(np.asarray, (0.0, _rounding(0.0), tilt, inverse, center, top, unit)))
        self.tables.add(np.array([v]), places=places, tails=tails, doubt=doubt)
        return True

    def _weigh(
        self,
        number: IntArray,
        sums: FloatArray,
        error: FloatArray,
        part: tuple[IntArray, IntArray],
        first: IntArray,
        ends: FloatArray,
    ) -> bool:
        """Turn the laws of sums, with their largest errors, into the tables of their owners.

        `part` has where a law begins, where the sum is first[i], and its size. For `ends` see
        `kernels.weigh`.
        """
        made, found, tails = self.tables, np.empty((number.size, 6)), np.empty((number.size, 4))
        args = number, sums, part, error, first, ends, self.owners, self.theta, found, tails
        made.reserve(int(part[1].sum()))
        made.used = kernels.weigh_all(*args, made.table, made.used)
        # draws of sums that are mostly bounds would be rejected
        self.unfit[number] = unfit = (found[:, 2] == 0.0) | (found[:, 5] > _FAINT)
        self._hold(number, found, tails, self.theta[number], 0.0, error)
        return not unfit.any() and made.used <= _ROOM

    def _hold(
        self,
        number: IntArray,
        found: FloatArray,
        tails: FloatArray,
        tilt: FloatArray | float,
        units: FloatArray | float,
        error: FloatArray | float,
    ) -> None:
        """Keep the tables of the owners of families, and what their entries are bounds on."""
        places, (scale, log_top) = found.T[:3], found.T[3:5]
        own = self.owners
        decay = np.where(own.kind[number] == laws.LAPLACE, own.inverse[number], 0.0)
        factor, slope = np.asarray(2.02 * error * scale), np.asarray(own.tilt[number] - tilt)
        doubt = Doubt(factor, _rounding(units), slope, decay, own.center[number], log_top, scale)
        self.tables.add(self.holder[number], places=places, tails=tails.T, doubt=doubt)


def _rounding(units: FloatArray | float) -> FloatArray:
    """Return the largest share of an entry by which its rounding up exceeds the true weight."""
    return np.asarray(2.02 * _UNIT * (units + kernels.ENTRY))


def _distinct(family: IntArray, table: Indices, times: IntArray, kept: BoolArray) -> DistinctTables:
    """Return one row for each table of the members of the families that are kept.

    Members have tables, and `times` for how many members they stand.
    """
    mine = kept[family]
    family, numbers, times = family[mine], table[mine].astype(np.int64), times[mine]
    order = np.lexsort((numbers, family))
    family, numbers, times = family[order], numbers[order], times[order]
    fresh = np.ones(numbers.size, dtype=np.bool_)
    fresh[1:] = (family[1:] != family[:-1]) | (numbers[1:] != numbers[:-1])
    first = np.flatnonzero(fresh)
    times = np.add.reduceat(times, first) if first.size else times
    number = np.flatnonzero(kept)
    begins = np.searchsorted(family[first], np.append(number, kept.size))
    return DistinctTables(begins, numbers[first], times)


def _first_rows(keys: Sequence[IntArray | FloatArray]) -> tuple[IntArray, IntArray]:
    """Return the first of the rows that are equal in all keys, and which of these each row is."""
    n = keys[0].size
    none, bits = np.empty(0, dtype=np.int64), [key.view(np.int64) for key in keys]
    of = first_equal(np.arange(n), bits, np.zeros(n + 1, dtype=np.int64), (none, none), n)
    first, rank = np.flatnonzero(of == np.arange(n)), np.empty(n, dtype=np.int64)
    rank[first] = np.arange(first.size)
    return first, rank[of]


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
    return np.fft.irfft(spectra, n), means[:, 1] + _stages(n) * means[:, 0] + _BEYOND


def _stages(n: int) -> float:
    """Return the error of a transform of a period n, beside the sum of what it adds up."""
    return float(_STAGE * (elementwise.log2(n) + 1.0))


def _on_grid(tilt: FloatArray | float) -> FloatArray:
    """Round tilts down to multiples of `_GRID`."""
    return np.asarray(np.floor(np.asarray(tilt) / _GRID) * _GRID)


def _periods(span: FloatArray | np.float64) -> FloatArray:
    """Return the powers of two that are at least span + 2, and at least 64."""
    return np.asarray(np.maximum(64.0, elementwise.power_of_two_above(np.maximum(span, 1.0) + 2.0)))


def _turns(n: int) -> FloatArray:
    """Return cosines and sines of 2 pi i / n, and sines of pi i / n, shape (3, n)."""
    whole, halves = (elementwise.cos_sin(x * np.pi / n * np.arange(n)) for x in (2.0, 1.0))
    return np.stack((*whole, halves[1]))
