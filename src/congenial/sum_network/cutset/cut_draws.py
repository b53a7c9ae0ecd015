"""Draws for sums with a few cycles, which have exactly the law of the weights.

An assignment of the cut set is chosen by its computed weight, or what lies beyond all windows, by a
bound on its weight. An attempt then draws the forest, or what lies beyond (`outside`), and is
accepted by its weight over the probability of its choices, times a constant. Proof:
`proofs/cut-sets.md`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np

from congenial.kernels.network import cutset, tallies
from congenial.kernels.numerics import elementwise, laws
from congenial.randomness import (
    Bits,
    Enclosure,
    Probability,
    Randomness,
    around,
    is_below,
    precision,
)
from congenial.sum_network.cutset import outside
from congenial.sum_network.cutset.assignments import Assignments
from congenial.sum_network.cutset.branches import draw_forest
from congenial.types import BoolArray, IntArray

_UNIT = 2.0**-53
# Above the logarithms of the least and the largest sum of a table.
_LEAST = 400.0
_WHOLE = 2.0**tallies.CHOICE
# Share of the integers of all assignments before they are rounded up, each by one, for up to 2^20.
_LEFT = 1.0 - 2.0**-40
# Part by which a choice in a forest may fall below its share.
_BELOW = 2.0**-34


@dataclass(frozen=True, eq=False)
class CutDraws:
    """Integer weights by which assignments are chosen, and the constant of all acceptances."""

    found: Assignments
    ends: IntArray  # shape (b + 1,): Cumulated; the last is what lies beyond windows.
    log_top: float  # An integer is at least a weight over exp(log_top), times the unit.
    unit: float
    # Part by which computed weights may be too small for the probabilities of choices.
    raised: float
    doubt: float  # Bound on the part by which an acceptance falls below 1, rare choices apart.

    def weight(self, place: int) -> int:
        """Return the integer weight of an assignment, or of what lies beyond."""
        return int(self.ends[place]) - (int(self.ends[place - 1]) if place else 0)

    def constant(self) -> Decimal:
        """Return the constant: weights over it are at most the probabilities of choices."""
        spare = 1 + Decimal(self.raised)
        return Decimal(self.log_top).exp() * (1 << tallies.CHOICE) / Decimal(self.unit) * spare


def prepare(found: Assignments) -> CutDraws:
    """Weigh the assignments, and what lies beyond them, as integers."""
    box, branches = found.box, found.branches
    beyond = outside.log_bound(box, len(outside.excluded(box, branches)))
    logs = np.append(found.log_weight, beyond)
    top = float(logs.max())
    shares = elementwise.exp(logs - top)
    unit = _LEFT * _WHOLE / float(shares.sum())
    integers = (shares * unit).astype(np.int64) + np.isfinite(logs)
    raised, doubt = _errors(found, top)
    return CutDraws(found, np.cumsum(integers), top, unit, raised, doubt)


def _errors(found: Assignments, top: float) -> tuple[float, float]:
    """Bound how far weights of assignments are too small, and how far acceptances fall below 1."""
    branches, each = found.branches, found.log_weight[np.isfinite(found.log_weight)]
    # partial sums of the logarithms of roots: their total, less those left, which have upper bounds
    logs = _LEAST + max(abs(top), float(np.abs(each).max(initial=0.0)))
    logs += float(np.abs(found.log_own).max(initial=0.0))
    logs += 2.0 * (abs(found.box.log_within) + found.box.log_multiplicity)
    raised = 8.0 * (branches.roots.size + len(branches.cut) + 2.0) * logs * _UNIT
    raised += 4.0 * float(branches.width[branches.roots].sum()) * _UNIT
    raised += 2.0 * branches.choices * _BELOW
    above = 16.0 * np.where(branches.op == cutset.UNARY, branches.depth, 0.0)
    rounding = 4.0 * float((branches.terms + above + 16.0).sum()) * _UNIT
    return raised, 2.0 * raised + rounding


def mass(of: CutDraws) -> Probability:
    """Return the constant of the acceptances, which encloses it at each level.

    An attempt leads to values, and is accepted, with the product of their weights over it. Weights
    are 1 at noise 0.
    """

    def enclosed(level: int) -> Enclosure:
        with precision(level):
            return around(of.constant(), level)

    return enclosed


def sample(of: CutDraws, rows: int, rng: Randomness) -> IntArray:
    """Draw all variables `rows` times, independently; returns int64 (rows, size)."""
    out = np.empty((rows, of.found.box.lo.size), dtype=np.int64)
    left = np.arange(rows)
    while left.size:
        accepted, drawn = attempt(of, left.size, rng)
        out[left[accepted]] = drawn
        left = left[~accepted]
    return out


def attempt(of: CutDraws, rows: int, rng: Randomness) -> tuple[BoolArray, IntArray]:
    """Try once to draw all variables, `rows` times.

    Returns which attempts are accepted, shape (rows,), and their variables, (accepted, size).
    """
    found, words = of.found, rng.bits(2 * rows).reshape(rows, 2)
    target = (words[:, 0] >> tallies.UNUSED).astype(np.int64)
    which = np.searchsorted(of.ends, target, side="right")
    accepted = np.zeros(rows, dtype=np.bool_)
    out = np.empty((rows, found.box.lo.size), dtype=np.int64)
    beyond = found.values.shape[0]
    # equal assignments next to each other share their tables
    order = np.argsort(which, kind="stable")
    inside = order[which[order] < beyond]
    many = found.branches.choices
    choices = rng.bits(inside.size * many).reshape(inside.size, many)
    held = found.values[which[inside]]
    drawn = draw_forest(found.branches, out.shape[1], held, choices)
    out[inside] = drawn.values
    doubt = drawn.doubt + 1.0 / np.diff(of.ends, prepend=0)[which[inside]]
    sure = words[inside, 1] * 2.0**-64 < 1.0 - 2.0 * (of.doubt + doubt)
    accepted[inside] = drawn.whole & sure
    for at in np.flatnonzero(drawn.whole & ~sure).tolist():
        row = inside[at]
        p = Fraction(of.weight(int(which[row])), 1 << tallies.CHOICE)
        p *= _chance(found, held[at : at + 1], choices[at : at + 1])
        accepted[row] = is_below(int(words[row, 1]), share(of, out[row], p), rng)
    for row in np.flatnonzero(which == beyond).tolist():
        proposed = outside.propose(found.box, found.branches, found.rows, rng)
        if proposed is None or _inside(found, proposed[0]):
            continue
        out[row], p = proposed
        p *= Fraction(of.weight(beyond), 1 << tallies.CHOICE)
        accepted[row] = is_below(int(words[row, 1]), share(of, out[row], p), rng)
    return accepted, out[accepted]


def _chance(found: Assignments, held: IntArray, words: Bits) -> Fraction:
    """Return the probability of the choices of one draw, which is repeated."""
    branches, size = found.branches, found.box.lo.size
    weights = np.zeros(words.shape, dtype=np.int64)
    draw_forest(branches, size, held, words, weights=weights)
    out = Fraction(1)
    for weight in weights[0].tolist():
        out *= Fraction(weight, 1 << tallies.CHOICE)
    return out


def _inside(found: Assignments, values: IntArray) -> bool:
    """Whether an assignment and its forest lead to values."""
    held = values[list(found.branches.cut)]
    listed = (found.values == held).all(axis=1)
    return bool(listed.any()) and outside.within_windows(found.branches, values)


def share(of: CutDraws, values: IntArray, p: Fraction) -> Probability:
    """Return the weight of values over the constant times the probability of their choices."""
    unary, sums = of.found.box.unary, Counter[tuple[int, float]]()
    for v in of.found.box.measured:
        u, kind = abs(int(values[v])), int(unary.kind[v])
        sums[kind, float(unary.scale[v])] += u * u if kind == laws.GAUSSIAN else u

    def probability(level: int) -> Enclosure:
        with precision(level):
            log = Decimal(0)
            for (kind, scale), total in sums.items():
                width = Decimal(scale)
                log -= total / (2 * width * width) if kind == laws.GAUSSIAN else total / width
            chance = Decimal(p.numerator) / Decimal(p.denominator)
            out = log.exp() / of.constant() / chance
            if out > 1:
                raise AssertionError("the constant is above each weight over its probability")
            return around(out, level)

    return probability
