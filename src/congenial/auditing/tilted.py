"""Lower bound on delta under conditioned Gaussian noise, by draws at a third dataset.

Neighbours x and x' with the loss L(z) = ln p(z|x) - ln p(z|x') have exactly

    delta(epsilon) = E_x max(0, 1 - exp(epsilon - L)) = E_y w max(0, 1 - exp(epsilon - L)),

with w(z) = p(z|x) / p(z|y). Draws at x seldom show a delta of 1e-6. At y = x + t (x - x') losses
near epsilon are common. L is linear in z, and w falls with it as exp(-t L), so no term exceeds the
delta that the order t + 1 proves (`proofs/gaussian-bounds.md`). The law that the mechanism states
gives each term exactly, and a mean of bounded terms has a lower confidence bound.

References
----------
Maurer and Pontil (2009), Theorem 4, for the bound; Koskela, Jälkö and Honkela (2020) and Balle and
Wang (2018), for delta as a mean over the loss.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Mechanism
from congenial.auditing.computed import Law, law_of, may_compute, rounding_of
from congenial.auditing.finding import Finding, Pair
from congenial.auditing.space import Space
from congenial.errors import NumericalError, UnsupportedError
from congenial.imaging.noisy import Moved
from congenial.randomness import Randomness
from congenial.types import FloatArray, Values

# Most pairs whose deltas are compared, and the draws that choose one, with the error of the bounds.
_PAIRS, _PILOT, _CHOOSING = 12, 400, 0.05
# Most values of draws whose probabilities are computed at once.
_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class _Tilt:
    """A pair in one order, the dataset of the draws, and a bound on the terms of their mean."""

    log_prob: Law
    pair: Pair
    at: Values
    order: int
    most: float
    rounding: float


def may_tilt(mechanism: Mechanism, space: Space, guarantee: Guarantee) -> bool:
    """Whether the claim is about Gaussian noise whose law is stated."""
    return guarantee.rho is not None and may_compute(mechanism, space, guarantee)


def tilted(
    mechanism: Mechanism,
    space: Space,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    draws: int,
    error: float,
    rng: Randomness,
) -> tuple[Finding, ...]:
    """Compare delta at the claim's epsilon with the claim, at the hardest of some pairs.

    Returns one finding, or none if no dataset to draw at satisfies the bounds.
    """
    source = mechanism.mechanism if isinstance(mechanism, Moved) else mechanism
    candidates: list[tuple[float, int, _Tilt]] = []
    for one, other in pairs[:_PAIRS]:
        for pair in ((one, other), (other, one)):
            try:
                tilt = _tilt(mechanism, space, guarantee, pair)
                if tilt is not None:
                    z = np.asarray(source.sample(tilt.at, min(_PILOT, draws), rng))
                    terms = _terms(tilt, z, guarantee.epsilon)
                    gain = tilt.most * mean_at_least(terms, _CHOOSING)
                    candidates.append((gain, len(candidates), tilt))
            except (NumericalError, UnsupportedError):
                continue
    if not candidates:
        return ()
    tilt = max(candidates)[2]
    z = np.asarray(source.sample(tilt.at, draws, rng))
    terms = _terms(tilt, z, guarantee.epsilon)
    found = mean_at_least(terms, error) - guarantee.sampler_error  # draws have this numerical error
    found = max(0.0, tilt.most * found * math.exp(-2.0 * tilt.rounding))
    text = (
        f"a lower bound on delta at epsilon {guarantee.epsilon:.6g}, at confidence "
        f"{1.0 - error:.6g}. It uses the exact privacy losses of {draws:,} simulated draws from a "
        f"dataset where large losses are common. The divergence of order {tilt.order} proves that "
        f"delta is at most {tilt.most:.3g} there."
    )
    if source is not mechanism:
        text = f"for the measurements, from which the rest of a release is made: {text}"
    check, stated = "delta, from draws", guarantee.delta
    passed, compared = found <= stated, len(candidates)
    return (Finding(check, passed, found, stated, compared, draws, tilt.pair, text),)


def mean_at_least(terms: FloatArray, error: float) -> float:
    """Lower bound on the mean of terms between 0 and 1, wrong with probability `error` at most."""
    size, log = terms.size, math.log(2.0 / error)
    spread = math.sqrt(2.0 * float(terms.var(ddof=1)) * log / size)
    return float(terms.mean()) - spread - 7.0 * log / (3.0 * (size - 1))


def _tilt(mechanism: Mechanism, space: Space, guarantee: Guarantee, pair: Pair) -> _Tilt | None:
    """Return the order with the smallest proved delta, among those whose datasets exist."""
    log_prob = law_of(mechanism)
    if log_prob is None:
        return None
    x, other = pair
    both = np.array(pair)
    own, lost = log_prob(both, x), log_prob(both, other)
    rho = float(lost[1] - lost[0])
    if not (math.isfinite(rho) and rho > 0.0 and math.isfinite(own[0])):
        return None
    # the steps s that minimise the bound of Canonne, Kamath and Steinke, about s (s + 1) rho
    # - s epsilon - ln s
    slope = guarantee.epsilon - rho
    best = round((slope + math.sqrt(slope * slope + 8.0 * rho)) / (4.0 * rho))
    steps = _reach(space, pair, max(1, best))
    if steps == 0:
        return None
    at = np.asarray(x + steps * (x - other), dtype=x.dtype)
    there = -float(log_prob(at, at))
    normal = there + (steps + 1) * float(own[0]) - steps * float(lost[1])
    log_most = steps * ((steps + 1) * rho - guarantee.epsilon) + normal
    log_most += steps * (math.log(steps) - math.log1p(steps)) - math.log1p(steps)
    size = steps * max(abs(there), abs(float(own[0])), abs(float(lost[1])))
    most = math.exp(min(0.0, log_most))
    return _Tilt(log_prob, pair, at, steps + 1, most, rounding_of(space, size))


def _reach(space: Space, pair: Pair, most: int) -> int:
    """Return the steps beyond a pair that the (convex) invariant allows, up to a limit."""
    x, other = pair

    def outside(steps: int) -> bool:
        return not space.allows(np.asarray(x + steps * (x - other), dtype=x.dtype))

    return bisect_left(range(1, most + 1), True, key=outside)


def _terms(tilt: _Tilt, z: Values, epsilon: float) -> FloatArray:
    """Terms whose mean is delta, divided by their largest possible value."""
    rows = max(1, _AT_ONCE // z.shape[1])
    out = np.zeros(z.shape[0])
    for start in range(0, z.shape[0], rows):
        part = z[start : start + rows]
        first, second, drawn = (tilt.log_prob(part, x) for x in (*tilt.pair, tilt.at))
        lost = np.flatnonzero((first > -np.inf) & (drawn > -np.inf))
        first, second, drawn = first[lost], second[lost], drawn[lost]
        excess = -np.expm1(np.minimum(epsilon - (first - second), 0.0))
        log_weight = first - drawn - math.log(tilt.most)
        with np.errstate(over="ignore"):  # terms beyond the bound only lower the mean
            out[start + lost] = np.minimum(np.exp(log_weight) * excess, 1.0)
    return out
