"""Windows outside which a conditional law has provably negligible mass.

Let every measured variable follow its noise law within its own bounds, independently of the
others, and let Z be the probability that the sums then hold. An event E of the measured variables
has conditional probability at most ``m P(E) / Z``, whatever the sums are. Here m is the largest
number of values that the unmeasured variables can take beside given measured ones; it is 1 if sums
determine them. Chernoff's inequality bounds P(E) of "one variable beyond R" and of "one signed sum
beyond R". Adding up the weights within the windows bounds Z from below. So windows are placed at
``P(E) <= exp(-budget)``, and the budget is checked against Z afterwards. What lies beyond windows
is drawn by `outside`, with the tilt that Chernoff's inequality has.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from congenial.errors import UnsupportedError
from congenial.kernels.numerics import elementwise, laws
from congenial.sum_network.cutset.systems import Row, SumSystem, rows_touching
from congenial.sum_network.weights import Unary
from congenial.sum_network.windows import IMPROPER
from congenial.types import BoolArray, FloatArray, IntArray

# A sum of measured variables with signs; and with the range that unmeasured variables add.
Signed = dict[int, int]
Span = tuple[Signed, int, int]
NOTHING: Span = ({}, 0, 0)
# Kind, scale and bounds of a law.
LawKey = tuple[float, ...]

# Weights below exp(-_DEEPEST) of the mode are left out of moments; a bound on their sum is added.
_DEEPEST = 700.0
# Most values of one noise law.
_MOST_WIDTH = 1 << 20
# Tilts tried for Chernoff's inequality, in units of one over the scale.
_GRID = 0.02 * np.cumprod([1.0, *[1.1838] * 23])


@dataclass(frozen=True, eq=False)
class BoundedLaw:
    """A noise law within its bounds: values, log probabilities, and whether each end is cut."""

    u: FloatArray
    log_p: FloatArray
    cut: tuple[bool, bool]
    log_norm: float

    def log_moment(self, expo: FloatArray) -> FloatArray:
        """Bound log sum exp(expo) from above, `expo` (values, k) concave over the whole support."""
        top = expo.max(axis=0)
        out = top + elementwise.log(elementwise.exp(expo - top).sum(axis=0))
        for cut, edge, inner in zip(self.cut, (0, -1), (1, -2), strict=True):
            if cut:
                step = expo[edge] - expo[inner]  # log ratio of later terms, no larger further out
                safe = np.minimum(step, -1e-12)
                beyond = np.where(
                    step < 0, expo[edge] + safe - elementwise.log(-elementwise.expm1(safe)), np.inf
                )
                out = elementwise.log_add(out, beyond)
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class Box:
    """Windows of all variables of a system."""

    # Each excluded event has probability at most exp(-budget), not given the sums.
    budget: float
    lo: IntArray  # shape (size,): Windows; fixed entries have 0 and 0.
    hi: IntArray
    spans: list[Span]
    # Unmeasured variables that only bounds limit; with the measured ones, they determine all.
    bounded: tuple[int, ...]
    log_within: float  # Summed logs of the weights of the measured variables within their bounds.
    unary: Unary
    laws: dict[LawKey, BoundedLaw] = field(repr=False)

    @property
    def log_multiplicity(self) -> float:
        """Log of the number of values of unmeasured variables beside given measured ones."""
        at = list(self.bounded)
        return float(elementwise.log(self.unary.hi[at] - self.unary.lo[at] + 1.0).sum())

    @property
    def free(self) -> list[int]:
        """Variables that are not fixed."""
        return [v for v, span in enumerate(self.spans) if span is not NOTHING]

    @property
    def measured(self) -> list[int]:
        """Variables that are measured and not fixed."""
        return [v for v, (signed, *_) in enumerate(self.spans) if signed == {v: 1}]

    def reach(self, signed: Signed) -> tuple[int, int]:
        """Return a range that a signed sum of measured variables leaves with exp(-budget)."""
        if not signed:
            return 0, 0
        below, _ = self.chernoff({v: -a for v, a in signed.items()})
        above, _ = self.chernoff(signed)
        return -below, above

    def chernoff(self, signed: Signed) -> tuple[int, float]:
        """Return a bound that a signed sum exceeds with exp(-budget) at most, and its tilt."""
        steps = max(abs(a) * self.unary.scale[v] for v, a in signed.items())
        gaussian = any(self.unary.kind[v] == laws.GAUSSIAN for v in signed)
        theta = _GRID * (16.0 if gaussian else 1.0) / steps
        total = np.full(theta.size, self.budget)
        counted = Counter((*law_key(self.unary, v), float(a)) for v, a in signed.items())
        for key, times in counted.items():
            law = self.laws[key[:-1]]
            total += times * law.log_moment(law.log_p[:, None] + law.u[:, None] * key[-1] * theta)
        best = int((total / theta).argmin())
        bound = float(total[best] / theta[best])
        return int(np.ceil(min(bound, 2.0**52))) + 1, float(theta[best])

    def ball(self, variables: list[int]) -> tuple[float, float]:
        """Return the T that the summed losses of `variables` exceed with exp(-budget) at most.

        The loss of a value is minus the log of its weight, relative to the largest. Also returns
        the tilt, by which the logarithms of weights are multiplied if it is taken from 1.
        """
        shares = np.linspace(0.3, 0.95, 14)
        total = np.full(shares.size, self.budget)
        for key, times in Counter(law_key(self.unary, v) for v in variables).items():
            law = self.laws[key]
            log_p = law.log_p[:, None]
            total += times * law.log_moment(log_p + shares * (log_p.max() - log_p))
        best = int((total / shares).argmin())
        return float(total[best] / shares[best]), float(shares[best])


def law_key(unary: Unary, v: int) -> LawKey:
    """Return what a variable's law depends on."""
    return (float(unary.kind[v]), float(unary.scale[v]), float(unary.lo[v]), float(unary.hi[v]))


def summable(unary: Unary, fixed: BoolArray) -> bool:
    """Whether every measured variable is narrow enough that its values can be summed over."""
    free = np.flatnonzero(~fixed & (unary.kind != laws.FLAT)).tolist()
    ends = [_ends(key) for key in {law_key(unary, v) for v in free}]
    return all(high - low <= _MOST_WIDTH for low, high in ends)


def _ends(key: LawKey) -> tuple[float, float]:
    """Return the values beyond which the weight is below exp(-_DEEPEST) of the largest."""
    kind, scale, lo, hi = key
    gaussian = kind == laws.GAUSSIAN
    reach = np.ceil(scale * (np.sqrt(2.0 * _DEEPEST) if gaussian else _DEEPEST)) + 1.0
    nearest = min(max(0.0, lo), hi)
    return max(lo, nearest - reach), min(hi, nearest + reach)


def _law(key: LawKey) -> BoundedLaw:
    kind, scale, lo, hi = key
    low, high = _ends(key)
    if high - low > _MOST_WIDTH:
        raise UnsupportedError(
            f"the sums contain cycles, and noise of scale {scale:g} has {high - low:,.0f} values "
            "to "
            f"sum over in a cut set, where the limit is {_MOST_WIDTH:,}; use smaller scales, or "
            "sums without cycles."
        )
    u = np.arange(low, high + 1.0)
    log_w = -0.5 * (u / scale) ** 2 if kind == laws.GAUSSIAN else -np.abs(u) / scale
    top = float(log_w.max())
    log_norm = top + float(elementwise.log(elementwise.exp(log_w - top).sum()))
    return BoundedLaw(u, log_w - log_norm, (bool(low > lo), bool(high < hi)), log_norm)


def check_proper_rows(system: SumSystem, unary: Unary) -> None:
    """Refuse with UnsupportedError unless sums or bounds limit every unmeasured variable."""
    _spans_of(system.rows, unary, system.every_fixed)


def _spans_of(
    rows: tuple[Row, ...], unary: Unary, fixed: BoolArray
) -> tuple[list[Span], tuple[int, ...]]:
    """Express every variable in measured ones, and in some that only bounds limit.

    Returns these expressions, and which variables only bounds limit.
    """
    spans: dict[int, Span] = {
        v: ({v: 1}, 0, 0) for v in np.flatnonzero(unary.kind != laws.FLAT).tolist()
    }
    spans |= dict.fromkeys(np.flatnonzero(fixed).tolist(), NOTHING)
    bounded = list[int]()
    candidates = iter(np.flatnonzero(np.isfinite(unary.lo) & np.isfinite(unary.hi)).tolist())
    waiting = [sum(v not in spans for v in row) for row in rows]
    touching = rows_touching(rows)
    ready = [k for k, count in enumerate(waiting) if count == 1]
    size = unary.kind.size
    while len(spans) < size:
        row = rows[ready.pop()] if ready else {}
        v = next((v for v in row or candidates if v not in spans), -1)
        if row and v < 0:
            continue
        if v < 0:
            raise UnsupportedError(IMPROPER)
        if row:
            span = NOTHING
            for other, a in row.items():
                if other != v:
                    span = sum_of(span, turned(spans[other], -a * row[v]))
            spans[v] = span
        else:
            spans[v] = ({}, int(unary.lo[v]), int(unary.hi[v]))
            bounded.append(v)
        for k in touching.get(v, ()):
            waiting[k] -= 1
            if waiting[k] == 1:
                ready.append(k)
    return [spans[v] for v in range(size)], tuple(bounded)


def sum_of(one: Span, two: Span) -> Span:
    """Add two spans."""
    signed = dict(one[0])
    for v, a in two[0].items():
        signed[v] = signed.get(v, 0) + a
        if not signed[v]:
            del signed[v]
    return signed, one[1] + two[1], one[2] + two[2]


def turned(span: Span, sign: int) -> Span:
    """Multiply a span by 1 or -1."""
    if sign > 0:
        return span
    return {v: -a for v, a in span[0].items()}, -span[2], -span[1]


def place_box(rows: tuple[Row, ...], unary: Unary, fixed: BoolArray, budget: float) -> Box:
    """Place windows for all variables."""
    spans, bounded = _spans_of(rows, unary, fixed)
    found: dict[LawKey, BoundedLaw] = {}
    log_within = 0.0
    for v in np.flatnonzero(~fixed & (unary.kind != laws.FLAT)).tolist():
        key = law_key(unary, v)
        if key not in found:
            found[key] = _law(key)
        log_within += found[key].log_norm
    size = unary.kind.size
    lo, hi = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    box = Box(budget, lo, hi, spans, bounded, log_within, unary, found)
    known: dict[tuple[tuple[float, ...], ...], tuple[int, int]] = {}
    for v in np.flatnonzero(~fixed).tolist():
        signed, low, high = spans[v]
        law = tuple(sorted((*law_key(unary, i), float(a)) for i, a in signed.items()))
        if law not in known:
            known[law] = box.reach(signed)
        lo[v] = int(max(known[law][0] + low, unary.lo[v]))
        hi[v] = int(min(known[law][1] + high, unary.hi[v]))
    return box
