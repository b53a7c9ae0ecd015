"""Assignments of a cut set: choose the set, list its values, and weigh them.

Given an assignment of the cut variables, the rest is a forest, whose total weight is computed by
messages (Pearl 1988, section 4.4.2). `boxes` bounds the truncated mass, and `cut_draws` draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.errors import InfeasibleError, UnsupportedError
from congenial.kernels.network import cutset
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.cost import bytes_text, work_text
from congenial.sum_network.cutset.boxes import Box, place_box
from congenial.sum_network.cutset.branches import Branches, compile_branches, log_weight
from congenial.sum_network.cutset.outside import excluded, log_bound
from congenial.sum_network.cutset.systems import (
    Row,
    SumSystem,
    as_arrays,
    cycle_closers,
    on_cycles,
)
from congenial.sum_network.forest import SumForest, of_rows
from congenial.sum_network.weights import Unary
from congenial.types import FloatArray, IntArray

# Limits of a cut set: number of assignments, and multiplications for all of them.
MOST_ASSIGNMENTS = 1 << 20
MOST_WORK = 1 << 36
# Most sums in memory while assignments are listed.
MOST_SUMS = 1 << 27
# Most entries of all tables.
MOST_ENTRIES = 1 << 26
# Largest part of all weight that may lie beyond windows.
_CUT = 1e-12
# Multiplications up to which a cut set without a tally is accepted; else, most tallies tried.
_CHEAP = 1 << 22
_MOST_TRIED = 6


@dataclass(frozen=True, eq=False)
class Assignments:
    """A system with the weight of every assignment of its cut set."""

    box: Box
    branches: Branches
    values: IntArray  # shape (b, cut)
    log_own: FloatArray  # shape (b,): Log weight of the cut variables themselves.
    # shape (b,): Log weight of the assignment and its forest; each unary weight is 1 at noise 0.
    log_weight: FloatArray
    rows: tuple[Row, ...]  # The sums.

    @property
    def log_total(self) -> float:
        """Log of the summed weights."""
        top = self.log_weight.max()
        return float(top + elementwise.log(elementwise.exp(self.log_weight - top).sum()))


def choose_cut(
    system: SumSystem, box: Box, first: Sequence[int] = (), tally: int | None = None
) -> tuple[int, ...]:
    """Return a cut set, if possible of variables with narrow windows."""
    rows = [row for k, row in enumerate(system.rows) if k != tally]
    entries = np.array([v for row in rows for v in row], dtype=np.int64)
    touched = np.bincount(entries, minlength=system.size)
    price = elementwise.log2(np.maximum(box.hi - box.lo + 1, 1)) / np.maximum(touched - 1.0, 1.0)
    order = sorted((v for v in system.free if v not in first), key=lambda v: (-price[v], v))
    return (*first, *cycle_closers(rows, order))


def enumerate_cut(
    system: SumSystem, box: Box, cut: tuple[int, ...], most: int
) -> tuple[IntArray, FloatArray] | None:
    """List the assignments of a cut set within its windows, and the logs of their own weights.

    Assignments that no values of the other variables can complete are left out, and those whose
    summed loss exceeds `Box.ball`. Returns None if there are more than `most`.
    """
    unary = box.unary
    limit, _ = box.ball([v for v in cut if unary.kind[v] != laws.FLAT])
    deepest = 0.0
    rows = [row for row in system.rows if any(v in row for v in cut)]
    # range that the variables not yet assigned can add to each row
    low, high = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for k, row in enumerate(rows):
        for v, a in row.items():
            ends = (a * box.lo[v], a * box.hi[v])
            low[k], high[k] = low[k] + min(ends), high[k] + max(ends)
    values = np.zeros((1, 0), dtype=np.int64)
    log_own = np.zeros(1)
    sums = np.zeros((1, len(rows)), dtype=np.int64)
    for v in cut:
        u = np.arange(box.lo[v], box.hi[v] + 1)
        own = log_weight(unary.kind[v], unary.scale[v], u - unary.center[v])
        deepest += float(own.max(initial=-np.inf))
        coefficients = np.array([row.get(v, 0) for row in rows], dtype=np.int64)
        least, largest = np.outer((box.lo[v], box.hi[v]), coefficients)
        low, high = low - np.minimum(least, largest), high - np.maximum(least, largest)
        if values.shape[0] * u.size > 32 * most:
            return None
        i, c = np.nonzero(log_own[:, None] + own >= deepest - limit)
        if i.size > 2 * most or i.size * len(rows) > MOST_SUMS:
            return None
        fresh = sums[i] + u[c, None] * coefficients
        keep = ((fresh + low <= 0) & (fresh + high >= 0)).all(axis=1)
        i, c = i[keep], c[keep]
        values = np.column_stack((values[i], u[c]))
        sums, log_own = fresh[keep], log_own[i] + own[c]
        if values.shape[0] > most:
            return None
    return np.ascontiguousarray(values), log_own


def weigh(
    system: SumSystem, unary: Unary, first: Sequence[int] = (), tally: int | None = None
) -> Assignments:
    """Choose a cut set, list its assignments and weigh them; windows grow until they are proved."""
    free, budget = system.free, _first_budget(system)
    for _ in range(8):
        box = place_box(system.rows, unary, system.every_fixed, budget)
        cut = choose_cut(system, box, first, tally)
        listed = enumerate_cut(system, box, cut, MOST_ASSIGNMENTS)
        if listed is None:
            raise too_costly()
        values, log_own = listed
        sizes = compile_branches(system.rows, box, free, cut, tally=tally, fill=False)
        work, entries = values.shape[0] * sizes.work + sizes.once, sizes.width.sum()
        if work > 4 * MOST_WORK or entries > 4 * MOST_ENTRIES:
            raise too_costly()
        branches = compile_branches(system.rows, box, free, cut, tally=tally)
        found = evaluated(box, branches, values, log_own, system.rows)
        if np.isneginf(found.log_weight).all():
            needed = 2.0 * budget
        else:
            beyond = log_bound(box, len(excluded(box, branches)))
            needed = budget + beyond - found.log_total - elementwise.log(_CUT)
            if needed <= budget:
                return found
        budget = needed + 1.0
        if budget > 600.0:
            break
    raise InfeasibleError(
        "the sums cannot take their fixed values within the bounds, or only with a probability "
        "too small to compute; relax a bound."
    )


def _first_budget(system: SumSystem) -> float:
    return float(40.0 + elementwise.log(4.0 * system.size + 4.0))


def too_costly() -> UnsupportedError:
    """Return the refusal of a sum over too many assignments."""
    return UnsupportedError(
        "summing over the values of a cut set that opens the cycles, or of nodes asked for "
        f"together, takes more than {MOST_ASSIGNMENTS} assignments or {MOST_WORK:.1e} "
        "multiplications; use smaller scales, fix fewer sums, ask for fewer nodes, or "
        "condition with sampler='gibbs' for studies."
    )


def evaluated(
    box: Box, branches: Branches, values: IntArray, log_own: FloatArray, rows: tuple[Row, ...]
) -> Assignments:
    """Weigh listed assignments."""
    log_weights = np.empty(values.shape[0])
    evaluate(branches, values, log_own, log_weights)
    return Assignments(box, branches, values, log_own, log_weights, rows)


def evaluate(
    branches: Branches,
    values: IntArray,
    log_own: FloatArray,
    out: FloatArray,
    reference: float = 0.0,
    group: IntArray | None = None,
    belief: FloatArray | None = None,
) -> None:
    """Fill `out` with log weights of assignments, and `belief` with those of a root's values."""
    cutset.evaluate(
        values,
        log_own,
        branches.coefficients,
        branches.checks,
        branches.program,
        branches.roots,
        reference,
        np.zeros(0, dtype=np.int64) if group is None else group,
        np.zeros((0, 0)) if belief is None else belief,
        out,
    )


def forest_left(system: SumSystem, cost: CutCost) -> SumForest:
    """Return the forest that remains given the cut set."""
    rest = [
        {v: a for v, a in row.items() if v not in cost.cut}
        for k, row in enumerate(system.rows)
        if k != cost.tally
    ]
    return of_rows(as_arrays([row for row in rest if row]), system.size)


@dataclass(frozen=True)
class CutCost:
    """Cost of a cut set, from the sums and the noise alone."""

    cut: tuple[int, ...]
    assignments: int
    entries: int  # Entries of all tables.
    work: int  # Multiplications for all assignments together, at most.
    tally: int | None = None  # The row whose sum is tallied along the others, see `branches`.

    @property
    def memory(self) -> int:
        """Bytes."""
        return 8 * self.entries + 8 * (len(self.cut) + 3) * self.assignments

    def __str__(self) -> str:
        """Return the cost and its limits as a sentence."""
        return (
            f"It sums over {self.assignments} assignments, at most {work_text(self.work)} and "
            f"{bytes_text(self.memory)}; the limits are {MOST_ASSIGNMENTS} and {MOST_WORK:.1e}."
        )


def cut_cost(system: SumSystem, unary: Unary, most: int = MOST_WORK) -> CutCost | None:
    """Choose a cut set and count its assignments; None if they take too many multiplications.

    Raises UnsupportedError if the law is improper.
    """
    box = place_box(system.rows, unary, system.every_fixed, _first_budget(system))
    narrowest = np.sort((box.hi - box.lo + 1.0)[system.free])[:2]
    if most < MOST_WORK and narrowest.prod() * len(system.rows) > most:
        return None  # to place the windows of tables would take longer than is asked for
    best = _priced(system, box, None, most)
    if best is not None and best.work <= _CHEAP:
        return best
    for k in on_cycles(system.rows, _MOST_TRIED):
        found = _priced(system, box, k, most)
        if found is not None and (best is None or found.work < best.work):
            best = found
    return best


def _priced(system: SumSystem, box: Box, tally: int | None, most: int) -> CutCost | None:
    """Estimate the cost of a cut set with a tally row; None if it exceeds the limits."""
    cut = choose_cut(system, box, tally=tally)
    listed = enumerate_cut(system, box, cut, min(MOST_ASSIGNMENTS, most // len(system.rows)))
    if listed is None:
        return None
    count = listed[0].shape[0]
    branches = compile_branches(system.rows, box, system.free, cut, tally=tally, fill=False)
    entries, work = int(branches.width.sum()), count * branches.work + branches.once
    if work > most or entries > MOST_ENTRIES:
        return None
    return CutCost(cut, count, entries, work, tally)
