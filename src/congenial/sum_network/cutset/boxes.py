"""Windows outside which a conditional law has provably negligible mass.

Let every measured variable follow its noise law within its own bounds, independently of the
others, and let Z be the probability that the sums then hold. An event E of the measured variables
has conditional probability at most ``P(E) / Z``, whatever the sums are (times the largest number of
values that the unmeasured variables can take beside given measured ones; one where sums determine
them). P(E) of "one variable beyond R" and of "one signed sum beyond R" is bounded by Chernoff's
inequality; Z is known from below once the sums over the windows are done. So windows are placed at
``P(E) <= exp(-budget)``, and the budget is checked against Z afterwards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from congenial.errors import UnsupportedError
from congenial.kernels.numerics import laws
from congenial.sum_network.cutset.systems import Row, SumSystem
from congenial.sum_network.weights import Unary
from congenial.sum_network.windows import IMPROPER
from congenial.types import FloatArray

Signed = dict[int, int]

# Weights below exp(-_DEEPEST) of the mode are left out of moments; a bound on their sum is added.
_DEEPEST = 700.0
_MOST_WIDTH = 1 << 20
_GRID = np.geomspace(0.02, 0.97, 24)


@dataclass(frozen=True, eq=False)
class _Law:
    """A noise law within its bounds: values, log probabilities, and whether each end goes on."""

    u: FloatArray
    log_p: FloatArray
    goes_on: tuple[bool, bool]
    log_norm: float

    def log_moment(self, expo: FloatArray) -> FloatArray:
        """Bound log sum exp(expo) from above, `expo` (values, k) concave over the whole support."""
        top = expo.max(axis=0)
        out = top + np.log(np.exp(expo - top).sum(axis=0))
        for goes_on, edge, inner in zip(self.goes_on, (0, -1), (1, -2), strict=True):
            if goes_on:
                step = expo[edge] - expo[inner]  # log ratio of later terms, no larger further out
                safe = np.minimum(step, -1e-12)
                beyond = np.where(step < 0, expo[edge] + safe - np.log(-np.expm1(safe)), np.inf)
                out = np.logaddexp(out, beyond)
        return np.asarray(out)


@dataclass(frozen=True, eq=False)
class Box:
    """Windows of all variables of a system."""

    # Each event left out has probability at most exp(-budget) before the sums are known.
    budget: float
    # `lo` and `hi`: ndarray of int64, shape (size,): Windows; fixed entries have (0, 0).
    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]
    # Each variable in terms of measured ones, and the range that the other variables add.
    spans: list[tuple[Signed, int, int]]
    # Log of the number of values that unmeasured variables can take beside given measured ones.
    log_multiplicity: float
    log_within: float  # Summed logs of the weights of the measured variables within their bounds.
    unary: Unary
    events: int  # Number of events left out so far.
    _laws: dict[tuple[float, ...], _Law] = field(repr=False)

    def reach(self, signed: Signed) -> tuple[int, int]:
        """Return the range of a signed sum of measured variables, except with exp(-budget)."""
        out = []
        for way in (-1, 1):
            found = self._chernoff({v: way * a for v, a in signed.items()})
            out.append(way * found)
        return out[0], out[1]

    def _chernoff(self, signed: Signed) -> int:
        if not signed:
            return 0
        steps = max(abs(a) * self.unary.scale[v] for v, a in signed.items())
        gaussian = any(self.unary.kind[v] == laws.GAUSSIAN for v in signed)
        theta = _GRID * (16.0 if gaussian else 1.0) / steps
        total = np.full(theta.size, self.budget)
        counted = Counter((*_key(self.unary, v), float(a)) for v, a in signed.items())
        for key, times in counted.items():
            law = self._laws[key[:-1]]
            total += times * law.log_moment(law.log_p[:, None] + law.u[:, None] * key[-1] * theta)
        return int(np.ceil(min(float((total / theta).min()), 2.0**52))) + 1

    def ball(self, variables: list[int]) -> float:
        """Return the T that the summed losses of `variables` exceed with exp(-budget) at most.

        The loss of a value is minus the log of its weight, relative to the largest.
        """
        shares = np.linspace(0.3, 0.95, 14)
        total = np.full(shares.size, self.budget)
        for key, times in Counter(_key(self.unary, v) for v in variables).items():
            law = self._laws[key]
            log_p = law.log_p[:, None]
            total += times * law.log_moment(log_p + shares * (log_p.max() - log_p))
        return float((total / shares).min())


def _key(unary: Unary, v: int) -> tuple[float, ...]:
    return (float(unary.kind[v]), float(unary.scale[v]), float(unary.lo[v]), float(unary.hi[v]))


def summable(unary: Unary, fixed: npt.NDArray[np.bool_]) -> bool:
    """Whether every measured variable is narrow enough that its values can be summed over."""
    free = np.flatnonzero(~fixed & (unary.kind != laws.FLAT)).tolist()
    ends = [_ends(key) for key in {_key(unary, v) for v in free}]
    return all(high - low <= _MOST_WIDTH for low, high in ends)


def _ends(key: tuple[float, ...]) -> tuple[float, float]:
    """Return the values beyond which the weight is below exp(-_DEEPEST) of the largest."""
    kind, scale, lo, hi = key
    gaussian = kind == laws.GAUSSIAN
    reach = np.ceil(scale * (np.sqrt(2.0 * _DEEPEST) if gaussian else _DEEPEST)) + 1.0
    nearest = min(max(0.0, lo), hi)
    return max(lo, nearest - reach), min(hi, nearest + reach)


def _law(key: tuple[float, ...]) -> _Law:
    kind, scale, lo, hi = key
    low, high = _ends(key)
    if high - low > _MOST_WIDTH:
        raise UnsupportedError(
            f"the sums contain cycles and a noise scale is {scale:g}, too wide to sum over the "
            "values of a cut set; use smaller scales, or merge sums so that they form a forest."
        )
    u = np.arange(low, high + 1.0)
    log_w = -0.5 * (u / scale) ** 2 if kind == laws.GAUSSIAN else -np.abs(u) / scale
    top = float(log_w.max())
    log_norm = top + float(np.log(np.exp(log_w - top).sum()))
    return _Law(u, log_w - log_norm, (bool(low > lo), bool(high < hi)), log_norm)


def check_proper_rows(system: SumSystem, unary: Unary) -> None:
    """Check that every unmeasured variable is held by some sum or bounds.

    Raises UnsupportedError if one is not.
    """
    _spans_of(system.rows, unary, system.every_fixed)


def _spans_of(
    rows: tuple[Row, ...], unary: Unary, fixed: npt.NDArray[np.bool_]
) -> tuple[list[tuple[Signed, int, int]], float]:
    """Express every variable in measured ones; return that and the log of the multiplicity."""
    size = unary.kind.size
    spans: list[tuple[Signed, int, int] | None] = [None] * size
    for v in np.flatnonzero(unary.kind != laws.FLAT).tolist():
        spans[v] = ({v: 1}, 0, 0)
    for v in np.flatnonzero(fixed).tolist():
        spans[v] = ({}, 0, 0)
    log_multiplicity = 0.0
    bounded = np.isfinite(unary.lo) & np.isfinite(unary.hi)
    waiting = {k: sum(spans[v] is None for v in row) for k, row in enumerate(rows)}
    touching: dict[int, list[int]] = {}
    for k, row in enumerate(rows):
        for v in row:
            touching.setdefault(v, []).append(k)
    ready = [k for k, count in waiting.items() if count == 1]
    free = [v for v in range(size) if spans[v] is None]
    while True:
        while ready:
            k = ready.pop()
            unknown = [v for v in rows[k] if spans[v] is None]
            if not unknown:
                continue
            spans[unknown[0]] = _from_row(rows[k], unknown[0], spans)
            _settle(unknown[0], touching, waiting, ready)
        free = [v for v in free if spans[v] is None]
        if not free:
            break
        found = [v for v in free if bounded[v]]
        if not found:
            raise UnsupportedError(IMPROPER)
        v = found[0]
        spans[v] = ({}, int(unary.lo[v]), int(unary.hi[v]))
        log_multiplicity += float(np.log(unary.hi[v] - unary.lo[v] + 1.0))
        _settle(v, touching, waiting, ready)
    return [span for span in spans if span is not None], log_multiplicity


def _settle(
    v: int, touching: dict[int, list[int]], waiting: dict[int, int], ready: list[int]
) -> None:
    for k in touching.get(v, ()):
        waiting[k] -= 1
        if waiting[k] == 1:
            ready.append(k)


def _from_row(
    row: Row, v: int, spans: list[tuple[Signed, int, int] | None]
) -> tuple[Signed, int, int]:
    signed: Signed = {}
    low = high = 0
    for other, a in row.items():
        span = spans[other]
        if other == v or span is None:
            continue
        sign = -a * row[v]
        signed = added(signed, {i: sign * c for i, c in span[0].items()})
        ends = sorted((sign * span[1], sign * span[2]))
        low, high = low + ends[0], high + ends[1]
    return signed, low, high


def added(first: Signed, second: Signed) -> Signed:
    """Return the sum of two signed sums."""
    out = dict(first)
    for v, a in second.items():
        out[v] = out.get(v, 0) + a
        if not out[v]:
            del out[v]
    return out


def place_box(
    rows: tuple[Row, ...], unary: Unary, fixed: npt.NDArray[np.bool_], budget: float
) -> Box:
    """Place windows for all variables."""
    spans, log_multiplicity = _spans_of(rows, unary, fixed)
    found: dict[tuple[float, ...], _Law] = {}
    log_within = 0.0
    for v in np.flatnonzero(~fixed & (unary.kind != laws.FLAT)).tolist():
        key = _key(unary, v)
        if key not in found:
            found[key] = _law(key)
        log_within += found[key].log_norm
    size = unary.kind.size
    lo, hi = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    box = Box(budget, lo, hi, spans, log_multiplicity, log_within, unary, 2 * size, found)
    known: dict[tuple[tuple[float, ...], ...], tuple[int, int]] = {}
    for v in np.flatnonzero(~fixed).tolist():
        signed, low, high = spans[v]
        law = tuple(sorted((*_key(unary, i), float(a)) for i, a in signed.items()))
        if law not in known:
            known[law] = box.reach(signed)
        lo[v] = int(max(known[law][0] + low, unary.lo[v]))
        hi[v] = int(min(known[law][1] + high, unary.hi[v]))
    return box
