"""Values beyond the windows of a cut set: drawn where a word chooses them, which is rare.

Values that satisfy the sums and lie beyond a window make some signed sum, or some sum of losses,
exceed a bound (`boxes`). One such event is chosen. Measured variables are drawn independently, with
the tilt of Chernoff's inequality; the sums then determine the others. What a window includes, or an
earlier event, is not proposed. Proof: `proofs/cut-sets.md`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from congenial.kernels.network import cutset
from congenial.kernels.numerics import elementwise, laws
from congenial.randomness import Randomness, choose, geometric, uniform_below
from congenial.sum_network.cutset.boxes import NOTHING, BoundedLaw, Box, LawKey, Signed, law_key
from congenial.sum_network.cutset.branches import Branches, log_weight
from congenial.sum_network.cutset.systems import Row
from congenial.types import FloatArray, IntArray

# Weights of values are integers, in units of the largest one over this.
_UNITS = 2.0**40
# Logarithm of the part by which the bound on an event exceeds its rounding; for each variable, too.
_SPARE, _SPARE_EACH = 1e-2, 2.0**-18
# Part by which a bound on summed losses is lower where they are computed again.
_CLOSE = 1e-6


class _Event(NamedTuple):
    """A signed sum, or sum of losses, that exceeds a bound where its tilt makes that likely."""

    signed: Signed
    losses: bool
    bound: float
    tilt: float

    def holds(self, box: Box, values: IntArray) -> bool:
        """Whether values, shape (size,), have a sum above the bound."""
        if not self.losses:
            return sum(a * int(values[v]) for v, a in self.signed.items()) > self.bound
        total = 0.0
        for v in self.signed:
            law = box.laws[law_key(box.unary, v)]
            own = log_weight(box.unary.kind[v], box.unary.scale[v], values[v : v + 1].astype(float))
            total += float(law.log_p.max() + law.log_norm - own[0])
        return total > self.bound

    def tilted(self, law: BoundedLaw, a: int) -> FloatArray:
        """Return the tilted logarithms of a law's probabilities; a is the variable's sign, or 0."""
        if not a:
            return law.log_p
        if self.losses:
            return np.asarray(law.log_p + self.tilt * (law.log_p.max() - law.log_p))
        return np.asarray(law.log_p + self.tilt * a * law.u)


@dataclass(frozen=True, eq=False)
class _Tilted:
    """Integer weights of values, and of all values beyond either end, which fall by a ratio."""

    first: int
    weights: list[int]  # Below, each value, above.
    ratios: tuple[Fraction, Fraction]

    def draw(self, count: int, rng: Randomness) -> Iterator[tuple[int, Fraction]]:
        """Draw values; yield each with its probability."""
        total = sum(self.weights)
        last = len(self.weights) - 1
        for place in choose(self.weights, count, rng).tolist():
            share = Fraction(self.weights[place], total)
            if place not in (0, last):
                yield self.first + place - 1, share
                continue
            ratio = self.ratios[place > 0]
            steps = geometric(ratio, rng)
            beyond = place - 1 + (steps if place else -steps)
            yield self.first + beyond, share * (1 - ratio) * ratio**steps


def _integers(law: BoundedLaw, log: FloatArray) -> _Tilted:
    """Return integer weights, each at least exp(log) in one unit for all, also beyond the ends."""
    inside = (elementwise.exp(log - log.max()) * _UNITS).astype(np.int64) + 1
    weights, ratios = [0, *inside.tolist(), 0], [Fraction(0), Fraction(0)]
    for side, edge, inner in ((0, 0, 1), (1, -1, -2)):
        if law.cut[side]:
            # the logarithm is concave
            ratio = Fraction(float(elementwise.exp(log[edge] - log[inner]) * (1.0 + 2.0**-40)))
            ratios[side] = ratio
            weights[-side] = int(int(inside[edge]) * ratio / (1 - ratio)) + 1
    return _Tilted(int(law.u[0]), weights, (ratios[0], ratios[1]))


def excluded(box: Box, branches: Branches) -> list[tuple[Signed, bool]]:
    """Return the signed sums whose upper range windows exclude, and, marked, summed losses."""
    free = (signed for signed, *_ in box.spans if signed)
    both = [way for signed in (*free, *branches.sums) for way in (signed, _negated(signed))]
    held = [v for v in branches.cut if box.unary.kind[v] != laws.FLAT]
    losses = [(dict.fromkeys(held, 1), True)] if held else []
    return [*((signed, False) for signed in both), *losses]


def _negated(signed: Signed) -> Signed:
    return {v: -a for v, a in signed.items()}


def log_bound(box: Box, events: int) -> float:
    """Return the logarithm of a bound on the summed weight of all that events exclude.

    Each unary weight is 1 at noise 0. The bound exceeds that of Chernoff's inequality by what
    rounding in `propose` adds. Without an event, nothing is excluded.
    """
    if not events:
        return -math.inf
    spare = _SPARE + _SPARE_EACH * len(box.measured)
    of_events = float(elementwise.log(events))
    return box.log_within + box.log_multiplicity - box.budget + of_events + spare


def propose(
    box: Box, branches: Branches, rows: tuple[Row, ...], rng: Randomness
) -> tuple[IntArray, Fraction] | None:
    """Propose values for which windows exclude something, all variables of the system.

    Returns the values and the probability of proposing them; None if they violate a sum or a bound,
    or if the chosen event does not hold, or an earlier one.
    """
    events = excluded(box, branches)
    chosen = uniform_below(len(events), rng)
    event = _event(box, *events[chosen])
    values = np.zeros(box.lo.size, dtype=np.int64)
    p = Fraction(1, len(events))
    alike = defaultdict[tuple[LawKey, int], list[int]](list)
    for v in box.measured:
        alike[law_key(box.unary, v), event.signed.get(v, 0)].append(v)
    for (key, a), variables in alike.items():
        law = box.laws[key]
        drawn = _integers(law, event.tilted(law, a)).draw(len(variables), rng)
        for v, (value, share) in zip(variables, drawn, strict=True):
            values[v] = value
            p *= share
    for v in box.bounded:
        low, high = int(box.unary.lo[v]), int(box.unary.hi[v])
        values[v] = low + uniform_below(high - low + 1, rng)
        p /= high - low + 1
    if not _complete(box, rows, values):
        return None
    holding = (k for k, each in enumerate(events) if _event(box, *each).holds(box, values))
    return (values, p) if next(holding, None) == chosen else None


def _event(box: Box, signed: Signed, losses: bool) -> _Event:
    if losses:
        bound, tilt = box.ball(list(signed))
        return _Event(signed, losses, bound - _CLOSE, tilt)
    return _Event(signed, losses, *box.chernoff(signed))


def _complete(box: Box, rows: tuple[Row, ...], values: IntArray) -> bool:
    """Fill in the variables that sums determine; return whether all sums and bounds hold."""
    known = {*box.measured, *box.bounded}
    known.update(v for v, span in enumerate(box.spans) if span is NOTHING)
    waiting = list(rows)
    while waiting:
        settled = [row for row in waiting if len(row.keys() - known) <= 1]
        if not settled:
            raise AssertionError("measured and bounded variables determine all")
        waiting = [row for row in waiting if len(row.keys() - known) > 1]
        for row in settled:
            total = sum(a * int(values[v]) for v, a in row.items() if v in known)
            for v in row.keys() - known:
                values[v], total = -total * row[v], 0
                known.add(v)
            if total:
                return False
    return bool(((box.unary.lo <= values) & (values <= box.unary.hi))[box.free].all())


def within_windows(branches: Branches, values: IntArray) -> bool:
    """Whether the tables of a forest have all values, shape (size,), and tallies that belong to it.

    The values satisfy the sums.
    """
    links, windows = branches.links, branches.windows
    held = values[list(branches.cut)]
    if (branches.checks @ held).any():
        return False
    at, tally = [0] * links.op.size, [0] * links.op.size
    for t, op in enumerate(links.op.tolist()):
        a, b = int(links.left[t]), int(links.right[t])
        if op == cutset.UNARY:
            at[t] = int(branches.orientation[t] * values[branches.variable[t]])
        elif op == cutset.MERGE:
            at[t], tally[t] = at[a] + at[b], tally[a] + tally[b]
        elif op == cutset.READ:
            at[t], tally[t] = at[a], tally[a] + tally[b]
        elif op == cutset.ENTER:
            at[t], tally[t] = at[a], tally[a] + int(links.sign[t]) * at[a]
        elif op == cutset.SUM:
            tally[t] = tally[a]
        elif op == cutset.CLOSE:
            at[t] = at[a]
        if not (windows.lo[t] <= at[t] <= windows.hi[t]):
            return False
        if not (windows.tally_lo[t] <= tally[t] <= windows.tally_hi[t]):
            return False
    return True
