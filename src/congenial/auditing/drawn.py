"""Lower confidence bounds on epsilon, and checks of the law, from draws at two neighbours.

An event is learned on one quarter of the draws, its threshold is chosen on another quarter, and it
is counted on the other half. So its bounds hold for any way of choosing the event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Mechanism
from congenial.auditing.binomial import probability_bounds
from congenial.auditing.finding import Pair
from congenial.auditing.space import Space
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import UnsupportedError
from congenial.types import FloatArray, IntArray, Values

# Returns a score for each release that increases with its likelihood ratio.
Score = Callable[[Values], FloatArray]

# Most changed entries that are tested one by one, and together.
MOST_ALONE, _TOGETHER = 12, 8
# Number of cells of an entry on each side of its value: tested alone, and tested with others.
_ALONE, _WITH_OTHERS = 1000, 20
_THRESHOLDS = 400
# Most values of draws that are scored by the likelihood ratio. More are scored by the noise's ratio
# at the changed entries, which orders releases of additive noise equally.
_ORDERED_BY_LAW = 1_000_000
# Error probability of the bounds that only choose entries.
_CHOOSING = 1e-4
# Mass that a marginal law may leave out, and its rounding error.
_MARGINAL_ERROR = 1e-9


class Shares(NamedTuple):
    """Draws of one dataset: to learn from, to choose by, to count."""

    learn: Values
    choose: Values
    test: Values


def shared_out(draws: Values) -> Shares:
    """Split draws into a quarter, a quarter and a half."""
    quarter = draws.shape[0] // 4
    return Shares(draws[:quarter], draws[quarter : 2 * quarter], draws[2 * quarter :])


def epsilon_bound(
    mechanism: Mechanism,
    space: Space | None,
    pair: Pair,
    draws: tuple[Shares, Shares],
    guarantee: Guarantee,
    error: float,
) -> float:
    """Lower bound on epsilon at the guarantee's delta, wrong with probability `error` at most."""
    best = -math.inf
    chosen: tuple[Score, float, int] | None = None
    for score in _scores(mechanism, space, pair, draws):
        for way in (1, -1):
            first, second = (way * score(side.choose) for side in draws[::way])
            level, bound = _threshold(first, second, guarantee.delta, error)
            if bound > best:
                best, chosen = bound, (score, level, way)
    if chosen is None:
        return 0.0
    score, level, way = chosen
    hits = [int((way * score(side.test) >= level).sum()) for side in draws[::way]]
    trials = [side.test.shape[0] for side in draws[::way]]
    lower = probability_bounds(hits[0], trials[0], 0.5 * error)[0] - guarantee.delta
    upper = probability_bounds(hits[1], trials[1], 0.5 * error)[1]
    return max(0.0, math.log(lower / upper)) if lower > 0.0 else 0.0


def entry_bounds(pair: Pair, entries: IntArray, draws: tuple[Shares, Shares]) -> FloatArray:
    """Estimated loss at each single entry, shape (k,), by which entries are chosen."""
    found = np.zeros(entries.size)
    for at, entry in enumerate(entries.tolist()):
        score = _learned(pair[0], np.array([entry]), _ALONE, draws)
        first, second = (score(side.choose) for side in draws)
        ways = (first, second), (-second, -first)
        found[at] = max(_threshold(*sides, 0.0, _CHOOSING)[1] for sides in ways)
    return found


def _laws(
    mechanism: Mechanism, x: Values, entries: Sequence[int]
) -> Iterator[tuple[int, Values, FloatArray]]:
    """Yield entries with the values and probabilities of their stated laws; none if unknown."""
    marginal: Callable[..., tuple[Values, FloatArray]] | None = getattr(mechanism, "marginal", None)
    if marginal is None:
        return
    own = getattr(type(mechanism), "marginal", None)  # another class may state another law
    if isinstance(mechanism, Conditioned) and own is Conditioned.marginal:
        # large tables are filled once for all laws
        found: Iterable[tuple[Values, FloatArray]] = mechanism.marginals(entries, x)
    else:
        found = (marginal(entry, x) for entry in entries)
    for entry, (values, probabilities) in zip(entries, found, strict=True):
        yield entry, values, probabilities


def law_distance(
    mechanism: Mechanism, x: Values, entries: IntArray, draws: Shares, error: float
) -> float:
    """Lower bound on the total variation of draws from the stated marginal laws; 0 if unknown."""
    try:
        known = list(_laws(mechanism, x, entries.tolist()))
    except UnsupportedError:
        return 0.0
    best, chosen = -math.inf, None
    for entry, values, probabilities in known:
        # the event: values drawn more often than the law says, and all values that the law lacks
        law = np.append(np.clip(probabilities, 0.0, 1.0), 0.0)
        seen = np.bincount(_places(draws.learn[:, entry], values), minlength=law.size)
        event = seen > draws.learn.shape[0] * law
        event[-1] = True
        likely = float(law[event].sum())
        excess = float(event[_places(draws.choose[:, entry], values)].mean()) - likely
        if excess > best:
            best, chosen = excess, (entry, values, event, likely)
    if chosen is None:
        return 0.0
    entry, values, event, likely = chosen
    hits = int(event[_places(draws.test[:, entry], values)].sum())
    lower, _ = probability_bounds(hits, draws.test.shape[0], error)
    return max(0.0, lower - likely - _MARGINAL_ERROR)


def _places(drawn: Values, values: Values) -> IntArray:
    """Position of each draw among ascending values; their number if it is another value."""
    at = np.minimum(np.searchsorted(values, drawn), values.size - 1)
    return np.where(values[at] == drawn, at, values.size)


def _scores(
    mechanism: Mechanism, space: Space | None, pair: Pair, draws: tuple[Shares, Shares]
) -> list[Score]:
    """Scores of the releases, whose thresholds form the events."""
    x, other = pair
    changed = np.flatnonzero(x != other)
    alone = [changed[i : i + 1] for i in range(min(changed.size, MOST_ALONE))]

    def matches(z: Values) -> FloatArray:
        """Number of changed entries that equal those of a dataset."""
        one, two = z[:, changed] == x[changed], z[:, changed] == other[changed]
        return np.asarray(one.sum(axis=1) - two.sum(axis=1), dtype=np.float64)

    def whole(z: Values) -> FloatArray:
        """Whether a release is a dataset itself."""
        return np.asarray((z == x).all(axis=1) - (z == other).all(axis=1).astype(np.float64))

    scores = [matches, whole, *(_learned(x, columns, _ALONE, draws) for columns in alone)]
    if changed.size > 1:
        scores.append(_learned(x, changed[-_TOGETHER:], _WITH_OTHERS, draws))
    if space is not None:
        measured = changed[np.isfinite(space.mechanism.scales[changed])]
        power = 1 if space.mechanism.noise.measure == "pure" else 2
        scores.append(_distance(x, other, measured, space.mechanism.scales, power))
    log_prob: Callable[..., FloatArray] | None = getattr(mechanism, "log_prob", None)
    if log_prob is not None and draws[0].test.size <= _ORDERED_BY_LAW:
        try:
            log_prob(x, x)
        except UnsupportedError:
            return scores
        scores.append(_likelihood(log_prob, x, other))
    return scores


def _likelihood(log_prob: Callable[..., FloatArray], x: Values, other: Values) -> Score:
    """Log likelihood ratio by the stated law."""

    def score(z: Values) -> FloatArray:
        with np.errstate(invalid="ignore"):
            ratio = log_prob(z, x) - log_prob(z, other)
        return np.asarray(np.nan_to_num(ratio, nan=0.0, posinf=1e300, neginf=-1e300))

    return score


def _distance(x: Values, other: Values, at: IntArray, scales: FloatArray, power: int) -> Score:
    """Log ratio of the noise at the changed entries, without the invariant."""

    def score(z: Values) -> FloatArray:
        near, far = (np.abs(z[:, at] - side[at]) / scales[at] for side in (x, other))
        return np.asarray((far**power - near**power).sum(axis=1))

    return score


def _learned(x: Values, columns: IntArray, width: int, draws: tuple[Shares, Shares]) -> Score:
    """Empirical log ratio of the cells of a grid around the first dataset."""
    pooled = np.concatenate([side.learn[:, columns] for side in draws]) - x[columns]
    whole = pooled.dtype.kind == "i"
    spread = np.quantile(np.abs(pooled), 0.95, axis=0) / width if pooled.size else np.ones(1)
    size = np.maximum(1.0 if whole else 0.5, np.ceil(spread))

    def cells(z: Values) -> IntArray:
        steps = np.clip(np.rint((z[:, columns] - x[columns]) / size), -width, width)
        key = np.zeros(z.shape[0], dtype=np.int64)
        for column in steps.astype(np.int64).T:
            key = key * (2 * width + 1) + column + width
        return key

    learned = np.concatenate([cells(side.learn) for side in draws])
    known, at = np.unique(learned, return_inverse=True)
    first = draws[0].learn.shape[0]
    seen = [np.bincount(part, minlength=known.size + 1) for part in (at[:first], at[first:])]
    ratio = np.log((seen[0] + 0.5) / (seen[1] + 0.5))  # the last, of cells never seen, is 0

    def score(z: Values) -> FloatArray:
        return np.asarray(ratio[_places(cells(z), known)])

    return score


def _threshold(
    first: FloatArray, second: FloatArray, delta: float, error: float
) -> tuple[float, float]:
    """Threshold of the event with the largest estimated bound, and that bound."""
    first, second = np.sort(first), np.sort(second)
    pooled = np.unique(np.concatenate((first, second)))
    if pooled.size > _THRESHOLDS:
        pooled = pooled[np.linspace(0, pooled.size - 1, _THRESHOLDS).astype(np.int64)]
    size = first.size
    hits = [size - np.searchsorted(side, pooled) for side in (first, second)]
    # normal approximations of the bounds from the test half; choosing need not be exact
    z = math.sqrt(2.0 * math.log(1.0 / error))
    lower = _wilson(hits[0] / size, 2 * size, -z) - delta
    upper = _wilson(hits[1] / size, 2 * size, z)
    with np.errstate(divide="ignore"):
        bound = np.log(np.maximum(lower, 0.0)) - np.log(upper)
    best = int(np.argmax(bound))
    return float(pooled[best]), float(bound[best])


def _wilson(share: FloatArray, trials: int, z: float) -> FloatArray:
    """End of the Wilson interval of a probability, z standard errors from its centre."""
    centre = share + 0.5 * z * z / trials
    half = z * np.sqrt(share * (1.0 - share) / trials + 0.25 * z * z / trials**2)
    return np.asarray((centre + half) / (1.0 + z * z / trials))
