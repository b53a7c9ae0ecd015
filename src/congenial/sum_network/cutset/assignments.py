"""Assignments of a cut set: choose the set, list its values, weigh them, and draw one.

Given an assignment of the cut variables, the rest is a forest, whose total weight is computed by
messages. An assignment is drawn with probability proportional to its weight, then the forest given
the assignment (Pearl 1988, section 4.4.2). `boxes` bounds the truncated mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from congenial.errors import InfeasibleError, NumericalError, UnsupportedError
from congenial.kernels.network import cutset
from congenial.kernels.network.records import BranchTables
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.sum_network.cost import bytes_text, work_text
from congenial.sum_network.cutset.boxes import Box, place_box
from congenial.sum_network.cutset.branches import Branches, compile_branches, log_weight
from congenial.sum_network.cutset.systems import SumSystem, as_arrays, cycle_closers, on_cycles
from congenial.sum_network.forest import SumForest, of_rows
from congenial.sum_network.tables import ERROR_LIMIT
from congenial.sum_network.weights import Unary
from congenial.types import FloatArray, IntArray

# Limits of a cut set: number of assignments, and multiplications for all of them.
MOST_ASSIGNMENTS = 1 << 20
MOST_WORK = 1 << 36
# Most sums in memory while assignments are listed.
MOST_SUMS = 1 << 27
# Most entries of all tables.
MOST_ENTRIES = 1 << 26
# Total variation spent on truncation.
_CUT = 1e-12
_UNIT = 2.0**-53
# Assignments of a block: a draw chooses a block, then one assignment of it.
_BLOCK = 1 << 11
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
    error: float  # Bound on the total variation between a draw and its law.

    @property
    def log_total(self) -> float:
        """Log of the summed weights."""
        top = self.log_weight.max()
        return float(top + np.log(np.exp(self.log_weight - top).sum()))


def choose_cut(
    system: SumSystem, box: Box, first: Sequence[int] = (), tally: int | None = None
) -> tuple[int, ...]:
    """Return a cut set, if possible of variables with narrow windows."""
    rows = [row for k, row in enumerate(system.rows) if k != tally]
    entries = np.array([v for row in rows for v in row], dtype=np.int64)
    touched = np.bincount(entries, minlength=system.size)
    price = np.log2(np.maximum(box.hi - box.lo + 1, 1)) / np.maximum(touched - 1.0, 1.0)
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
    limit = box.ball([v for v in cut if unary.kind[v] != laws.FLAT])
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
        found = evaluated(box, branches, values, log_own)
        if np.isneginf(found.log_weight).all():
            needed = 2.0 * budget
        else:
            events = box.events + branches.events + 1
            log_chance = found.log_total - box.log_within  # of the sums, within the bounds
            needed = np.log(events / _CUT) + box.log_multiplicity - log_chance
            if needed <= budget:
                error = _error(found, log_chance, np.exp(needed - budget) * _CUT)
                return replace(found, error=error)
        budget = needed + 1.0
        if budget > 600.0:
            break
    raise InfeasibleError(
        "the sums cannot take their fixed values within the bounds, or only with a probability "
        "too small to compute; relax a bound."
    )


def _first_budget(system: SumSystem) -> float:
    return float(40.0 + np.log(4.0 * system.size + 4.0))


def too_costly() -> UnsupportedError:
    """Return the refusal of a sum over too many assignments."""
    return UnsupportedError(
        "summing over the values of a cut set that opens the cycles, or of nodes asked for "
        f"together, takes more than {MOST_ASSIGNMENTS} assignments or {MOST_WORK:.1e} "
        "multiplications; use smaller scales, fix fewer sums, ask for fewer nodes, or "
        "condition with sampler='gibbs' for studies."
    )


def evaluated(box: Box, branches: Branches, values: IntArray, log_own: FloatArray) -> Assignments:
    """Weigh listed assignments."""
    log_weights = np.empty(values.shape[0])
    evaluate(branches, values, log_own, log_weights)
    return Assignments(box, branches, values, log_own, log_weights, np.inf)


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


def arithmetic_error(branches: Branches) -> float:
    """Bound the total variation that rounding in the tables and in choices adds."""
    width = branches.width.astype(np.float64)
    # `terms` products and an exponential for each entry, used in the table above and in the draw
    exponents = np.where(branches.op == cutset.UNARY, branches.depth, 0.0)
    rounding = 2.0 * float((branches.terms + exponents + 8.0).sum() + 1e3) * _UNIT
    integers = float(width.sum() + (width[branches.roots] ** 2).sum()) * 2.0**-60
    return rounding + integers


def _error(found: Assignments, log_chance: float, cut: float) -> float:
    """Bound the total variation of a draw: windows, underflow, rounding, integer weights."""
    branches = found.branches
    # entries below 1e-300 of their table's largest underflow, or below 1e-150 if there are tallies
    depth = -344.0 if (branches.tallies > 1).any() else -690.0
    vanished = 2.0 * float(branches.width.sum())
    vanished *= np.exp(min(depth + found.box.log_multiplicity - log_chance, 0.0))
    # the logarithm of each root and of its scale is added
    logs = 1.0 + np.abs(found.log_weight[np.isfinite(found.log_weight)]).max()
    logs += np.abs(branches.state.log_scale).max(initial=0.0) + np.abs(found.log_own).max()
    rounding = arithmetic_error(branches)
    rounding += 8.0 * (branches.roots.size + len(branches.cut)) * float(logs) * _UNIT
    integers = 2.0 * _BLOCK**2 * 2.0**-60
    blocks = found.values.shape[0] * 2.0**-50 / _BLOCK
    error = cut + vanished + rounding + integers + blocks
    if error > ERROR_LIMIT:
        raise NumericalError(
            f"the sampler's error is not proved to be within {ERROR_LIMIT:g} for sums this large; "
            "use fewer queries or smaller noise scales."
        )
    return float(error)


def draw_assignments(found: Assignments, words: npt.NDArray[np.uint64]) -> IntArray:
    """Return the numbers of assignments drawn with words of shape (r, 2)."""
    weights = np.exp(found.log_weight - found.log_weight.max())
    size = min(_BLOCK, max(weights.size, 1))
    padded = np.zeros(-(-weights.size // size) * size)
    padded[: weights.size] = weights
    blocks = padded.reshape(-1, size)
    out = np.empty(words.shape[0], dtype=np.int64)
    cutset.pick(blocks, blocks.sum(axis=1), words, out)
    return out


def draw_forest(
    branches: Branches,
    size: int,
    held: IntArray,
    words: npt.NDArray[np.uint64],
    program: BranchTables | None = None,
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Draw all variables given cut values, shape (r, size), and return which draws are possible."""
    values = np.zeros((held.shape[0], branches.op.size), dtype=np.int64)
    whole = np.ones(held.shape[0], dtype=np.bool_)
    state = branches.program if program is None else program
    cutset.draw(held, branches.coefficients, state, branches.roots, words, values, whole)
    out = np.zeros((held.shape[0], size), dtype=np.int64)
    own = branches.op == cutset.UNARY
    out[:, branches.variable[own]] = values[:, own] * branches.orientation[own]
    out[:, list(branches.cut)] = held
    return out, whole


def forest_left(system: SumSystem, cost: CutCost) -> SumForest:
    """Return the forest that remains given the cut set."""
    rest = [
        {v: a for v, a in row.items() if v not in cost.cut}
        for k, row in enumerate(system.rows)
        if k != cost.tally
    ]
    return of_rows(as_arrays([row for row in rest if row]), system.size)


def sample(found: Assignments, rows: int, rng: Randomness) -> IntArray:
    """Draw all variables `rows` times, independently; returns int64 (rows, size)."""
    which = draw_assignments(found, rng.bits(2 * rows).reshape(rows, 2))
    branches, held, size = found.branches, found.values[which], found.box.lo.size
    words = rng.bits(rows * branches.choices).reshape(rows, branches.choices)
    # equal assignments next to each other share their tables
    order = np.argsort(which, kind="stable")
    out = np.empty((rows, size), dtype=np.int64)
    out[order], _ = draw_forest(branches, size, held[order], words)
    return out


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


def cut_cost(system: SumSystem, unary: Unary) -> CutCost | None:
    """Choose a cut set and count its assignments; None if they are too many.

    Raises UnsupportedError if the law is improper.
    """
    box = place_box(system.rows, unary, system.every_fixed, _first_budget(system))
    best = _priced(system, box, None)
    if best is not None and best.work <= _CHEAP:
        return best
    for k in on_cycles(system.rows, _MOST_TRIED):
        found = _priced(system, box, k)
        if found is not None and (best is None or found.work < best.work):
            best = found
    return best


def _priced(system: SumSystem, box: Box, tally: int | None) -> CutCost | None:
    """Estimate the cost of a cut set with a tally row; None if it exceeds the limits."""
    cut = choose_cut(system, box, tally=tally)
    listed = enumerate_cut(system, box, cut, MOST_ASSIGNMENTS)
    if listed is None:
        return None
    count = listed[0].shape[0]
    branches = compile_branches(system.rows, box, system.free, cut, tally=tally, fill=False)
    entries, work = int(branches.width.sum()), count * branches.work + branches.once
    uncertified = arithmetic_error(branches) > 0.5 * ERROR_LIMIT
    if work > MOST_WORK or entries > MOST_ENTRIES or uncertified:
        return None
    return CutCost(cut, count, entries, work, tally)
