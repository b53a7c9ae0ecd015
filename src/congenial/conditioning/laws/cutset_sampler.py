"""Exact draws where sums form a few cycles: hold a cut set, draw its values, draw the forest.

For each assignment of the cut variables the rest is a forest, whose summed weight is computed by
messages. Assignments are drawn in proportion to their weights, and the forest given them
(Pearl 1988, section 4.4.2). What is left out of the sums is bounded in `boxes`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.invariants.resolved import ResolvedInvariant, checked_draws, named
from congenial.noise.additive import Additive, checked_size
from congenial.randomness import Randomness, resolve
from congenial.sum_network.ceiling import dense_rows, least_ceiling
from congenial.sum_network.cost import (
    RATE,
    data_free_weights,
    told_bytes,
    told_time,
)
from congenial.sum_network.cutset.assignments import (
    MOST_ASSIGNMENTS,
    MOST_ENTRIES,
    MOST_WORK,
    Assignments,
    arithmetic_error,
    choose_cut,
    draw_assignments,
    draw_forest,
    enumerate_cut,
    free_variables,
    weigh,
)
from congenial.sum_network.cutset.boxes import Box, place_box, summable
from congenial.sum_network.cutset.branches import compile_branches
from congenial.sum_network.cutset.systems import SumSystem, as_arrays, on_cycles
from congenial.sum_network.forest import of_rows
from congenial.sum_network.tables import ERROR_LIMIT
from congenial.sum_network.weights import Unary
from congenial.types import FloatArray, IntArray

# A cut set as cheap as this is taken; otherwise so many rows are tried as the one carried along.
_CHEAP = 1 << 22
_MOST_TRIED = 6


@dataclass(frozen=True, eq=False)
class CutConditioned(Conditioned):
    """A mechanism conditioned on sums with a few cycles, drawn exactly by a cut set.

    Made by `congenial.condition`. The questions and their answers are those of `Conditioned`.

    Attributes
    ----------
    forest : SumForest
        What is left when the cut set is held.
    system : SumSystem
    cost : CutCost
    """

    system: SumSystem | None = None
    cost: CutCost | None = None

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw releases, each independent and within `error_bound` of the law.

        Raises
        ------
        ArgumentError
            If `x` has the wrong shape or does not add up.
        InvariantError
            If `x` violates a bound or a sum.
        UnsupportedError
            If the cost is beyond the limits.
        """
        counts = self._checked(x)
        rows = checked_size(size)
        source = resolve(rng)
        found = self._weighed(counts)
        which = draw_assignments(found, source.bits(2 * rows).reshape(rows, 2))
        words = source.bits(rows * found.branches.choices)
        held = found.values[which]
        # equal assignments next to each other share their tables
        order = np.argsort(which, kind="stable")
        noise = np.empty((rows, self.sums.size), dtype=np.int64)
        noise[order], _ = draw_forest(
            found.branches, self.sums.size, held[order], words.reshape(rows, found.branches.choices)
        )
        out = checked_draws(self.resolved, counts + noise[:, : self.mechanism.n], counts)
        return out[0] if size is None else out

    def _log_mass(self, counts: IntArray) -> float:
        return self._weighed(counts).log_total + self.log_mode

    def log_ceiling(self, x: npt.ArrayLike, *, thorough: bool = False) -> float:
        """Bound `log_normalizer` from above; inf unless `thorough`. See `Conditioned`."""
        counts, sums = self._checked(x), self.sums
        if not thorough:
            return np.inf
        return (
            least_ceiling(dense_rows(sums.rows, sums.size), self._weights(counts)) + self.log_mode
        )

    def marginal(self, node: int | str, x: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Law of one released value; see `Conditioned.marginal`."""
        (values,), probabilities = self.joint([node], x)
        return values, probabilities

    @property
    def sums(self) -> SumSystem:
        """The sums as rows."""
        if self.system is None:
            raise AssertionError("made without a system")
        return self.system

    @property
    def _tally(self) -> int | None:
        return None if self.cost is None else self.cost.tally

    def explain(self) -> str:
        """Say which sampler draws, why, and at what cost."""
        system, cost = self.sums, self.cost
        if cost is None:
            raise AssertionError("made without a cost")
        domain = self.mechanism.domain or self.resolved.counted
        first = [system.name(v) if v >= system.n else named(domain, v) for v in cost.cut[:4]]
        more = f" and {len(cost.cut) - 4} more" if len(cost.cut) > 4 else ""
        estimate = (
            ""
            if self.data_free
            else " Bounds are left out of this estimate, which confidential counts do not enter."
        )
        law = (
            "Equalities only: the noise has one law for every dataset."
            if self.data_free
            else "Bounds apply: the law depends on the confidential counts, which is charged for."
        )
        held = "" if not first else f"{len(cost.cut)} held values ({'; '.join(first)}{more})"
        carried = "" if cost.tally is None else "one sum that is carried along the others"
        opened = " and ".join(filter(None, (held, carried)))
        return (
            f"exact sampler by a cut set: {len(system.rows)} sums form cycles, opened by {opened}. "
            f"It sums over "
            f"{cost.assignments} assignments, at most {cost.work:.1e} multiplications "
            f"({told_time(cost.work / RATE)}) and {told_bytes(cost.memory)}; the limits are "
            f"{MOST_ASSIGNMENTS} and {MOST_WORK:.1e}.{estimate} {law} Each draw is independent; "
            f"its numerical error is at most {ERROR_LIMIT:.0e} in total variation."
            f"{self._untried}"
        )

    @cached_property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law, for every dataset."""
        return self._free_weighed.error if self.data_free else ERROR_LIMIT

    @cached_property
    def _free_weighed(self) -> Assignments:
        zeros = np.zeros(self.mechanism.n, dtype=np.int64)
        return weigh(self.sums, self._weights(zeros), tally=self._tally)

    def _weighed(self, counts: IntArray) -> Assignments:
        if self.data_free:
            return self._free_weighed
        return weigh(self.sums, self._weights(counts), tally=self._tally)


@dataclass(frozen=True)
class CutCost:
    """What a cut set costs, from the sums and the noise alone.

    Attributes
    ----------
    cut : tuple of int
    assignments : int
    entries : int
        Entries of all tables.
    work : int
        Multiplications for all assignments together, at most.
    tally : int or None
        The row that is carried along the others, see `congenial.sum_network.cutset.branches`.
    """

    cut: tuple[int, ...]
    assignments: int
    entries: int
    work: int
    tally: int | None = None

    @property
    def memory(self) -> int:
        """Bytes."""
        return 8 * self.entries + 8 * (len(self.cut) + 3) * self.assignments


def estimated(system: SumSystem, unary: Unary) -> CutCost | None:
    """Choose a cut set and count its assignments; None where they are too many.

    Nothing is summed yet.

    Raises
    ------
    UnsupportedError
        If the law is improper.
    """
    fixed = system.every_fixed
    box = place_box(system.rows, unary, fixed, 40.0 + np.log(4.0 * system.size + 4.0))
    best = _priced(system, box, None)
    if best is not None and best.work <= _CHEAP:
        return best
    for k in on_cycles(system.rows, _MOST_TRIED):
        found = _priced(system, box, k)
        if found is not None and (best is None or found.work < best.work):
            best = found
    return best


def _priced(system: SumSystem, box: Box, tally: int | None) -> CutCost | None:
    """Price a cut set beside a row that is carried along; None where it is beyond the limits."""
    cut = choose_cut(system, box, tally=tally)
    listed = enumerate_cut(system, box, cut, MOST_ASSIGNMENTS)
    if listed is None:
        return None
    count, free = listed[0].shape[0], free_variables(system)
    branches = compile_branches(system.rows, box, free, cut, tally=tally, fill=False)
    entries = int(branches.width.sum())
    work = count * branches.work + branches.once
    if work > MOST_WORK or entries > MOST_ENTRIES:
        return None
    if arithmetic_error(branches) > 0.5 * ERROR_LIMIT:  # could not be certified
        return None
    return CutCost(cut, count, entries, work, tally)


def cut_conditioned(
    mechanism: Additive, resolved: ResolvedInvariant, system: SumSystem
) -> CutConditioned | None:
    """Condition on a system with cycles, or return None where that costs too much.

    Whether the cost is affordable is judged by the sums and the noise, not by confidential counts.

    Raises
    ------
    UnsupportedError
        If the law is improper.
    """
    unary = data_free_weights(mechanism, resolved, system.fixed, system.size).each
    cost = estimated(system, unary) if summable(unary, system.every_fixed) else None
    if cost is None:
        return None
    rest = [
        {v: a for v, a in row.items() if v not in cost.cut}
        for k, row in enumerate(system.rows)
        if k != cost.tally
    ]
    forest = of_rows(as_arrays([row for row in rest if row]), system.size)
    return CutConditioned(mechanism, resolved, forest, system.fixed, system=system, cost=cost)
