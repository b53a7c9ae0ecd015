"""Losses of pairs at any size, computed from the law that a mechanism states, without enumerating.

Under discrete Laplace noise, conditioned on one set for both datasets, the loss is largest at the
dataset itself: ln p(x|x) - ln p(x|x') is the whole loss of the pair, E + ln Z(x')/Z(x)
(`proofs/inequalities.md`). Under Gaussian noise the Renyi divergence of an integer order a is

    D_a = a rho + (u(a x - (a - 1) x') - a u(x) + (a - 1) u(x')) / (a - 1),

with u(t) = -ln p(t|t), which is the log normaliser at t up to a constant, and with
rho = ln p(x'|x') - ln p(x|x') (`proofs/gaussian-bounds.md`). Both need the law at a few points.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from congenial.accounting.guarantee import Guarantee
from congenial.accounting.mechanism import Mechanism
from congenial.auditing.enumerated import ROUNDING
from congenial.auditing.finding import Finding, Notify, Pair, announced, ignore
from congenial.auditing.space import Space
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.mixtures import Mixture
from congenial.errors import NumericalError, UnsupportedError
from congenial.imaging.noisy import Moved
from congenial.kernels.numerics import laws
from congenial.sum_network import error_limit
from congenial.types import FloatArray, Values
from congenial.wording import many

Law = Callable[..., FloatArray]

# Orders at which divergences are compared with rho. A dataset beyond the pair, by this multiple of
# its change, must satisfy the bounds, so few pairs allow large orders.
ORDERS = (2, 3, 8)
# Relative rounding error of a log probability, apart from the truncation of tables.
_ROUNDINGS = 2.0**-46


def may_compute(mechanism: Mechanism, space: Space, guarantee: Guarantee) -> bool:
    """Whether a law is stated and a formula covers it: one noise law, with its own claim."""
    if space.mechanism.noise.kind == laws.OTHER:
        return False
    pure = space.mechanism.noise.measure == "pure"
    covered = pure == (guarantee.rho is None) and (pure or not isinstance(mechanism, Mixture))
    return covered and law_of(mechanism) is not None


def law_of(mechanism: Mechanism) -> Law | None:
    """Return the law that a mechanism states; for an image, the law of its measurements."""
    if isinstance(mechanism, Moved):
        return mechanism.mechanism.log_prob
    return getattr(mechanism, "log_prob", None)


def rounding_of(space: Space, size: float) -> float:
    """Bound the rounding error of sums of log probabilities up to `size`."""
    return 4.0 * error_limit(space.mechanism.n) + _ROUNDINGS * size


def computed(
    mechanism: Mechanism,
    space: Space,
    guarantee: Guarantee,
    pairs: Sequence[Pair],
    notify: Notify = ignore,
    *,
    left_out: str = "",
) -> tuple[Finding, ...]:
    """Compare the losses of pairs with a claim: one finding, or none if no formula covers it.

    `left_out` ends the finding's text, and says which pairs are not among them.
    """
    pure = space.mechanism.noise.measure == "pure"
    log_prob = law_of(mechanism)
    if not pairs or log_prob is None or not may_compute(mechanism, space, guarantee):
        return ()
    found, worst, points, refused, error = -np.inf, None, 0, 0, 0.0
    for pair in announced(pairs, notify, "computing losses of pair"):
        try:
            found_here = _loss(mechanism, pair) if pure else _divergence(mechanism, space, pair)
        except (NumericalError, UnsupportedError):
            refused += 1
            continue
        lost, tried, size = found_here
        points += tried
        if lost > found:
            found, worst = lost, pair
            error = rounding_of(space, size)
    if worst is None:
        return ()
    stated = guarantee.epsilon if guarantee.rho is None else guarantee.rho
    text = (
        "the largest privacy loss of any compared pair of datasets, from the probabilities that "
        "the mechanism states"
        if pure
        else f"the largest Rényi divergence of orders {', '.join(map(str, ORDERS))}, each divided "
        "by its order, from the probabilities that the mechanism states; delta is tested by draws"
    )
    if isinstance(mechanism, Moved):
        text += "; only measurements are compared, because the table is made from them"
    if refused:
        text += f"; no probabilities were computed for {many(refused, 'further pair')}"
    text += left_out
    check = "loss, computed" if pure else "rho, computed"
    passed, compared = found <= stated + ROUNDING * (1.0 + stated) + error, len(pairs) - refused
    return (Finding(check, passed, found, stated, compared, points, worst, f"{text}."),)


def _loss(mechanism: Mechanism, pair: Pair) -> tuple[float, int, float]:
    """Largest loss of a pair, the points tried, and the size of what was subtracted."""
    both = np.array(pair)
    laws = np.array([law(both) for law in _laws(mechanism, pair)])
    possible = np.flatnonzero(laws[[0, 1], [0, 1]] > -np.inf)  # refused for the law of other data
    own, swapped = laws[possible, possible], laws[1 - possible, possible]
    found = (own - swapped).max(initial=-np.inf)
    return float(found), 2, float(np.abs(own).max(initial=0.0))


def _divergence(mechanism: Mechanism, space: Space, pair: Pair) -> tuple[float, int, float]:
    """Largest Renyi divergence of a pair over its order; as `_loss`."""
    both = np.array(pair)
    further: list[tuple[int, int, Values]] = []
    for one, order in itertools.product((0, 1), ORDERS):
        x, y = pair[one], pair[1 - one]
        beyond = np.asarray(y + order * (x - y), dtype=x.dtype)
        if space.allows(beyond):
            further.append((one, order, beyond))
    first, second, *rest = _laws(mechanism, [*pair, *(beyond for *_, beyond in further)])
    laws, found = np.array([first(both), second(both)]), 0.0
    for (one, order, beyond), law in zip(further, rest, strict=True):
        other = 1 - one
        rho = float(laws[other, other] - laws[other, one])
        at = -float(law(beyond[None])[0])
        more = at + order * laws[one, one] - (order - 1) * laws[other, other]
        found = max(found, rho + float(more) / (order * (order - 1)))
    return found, len(further), 8.0 * float(np.abs(laws[[0, 1], [0, 1]]).max())


def _laws(mechanism: Mechanism, datasets: Sequence[Values]) -> list[Callable[[Values], FloatArray]]:
    """Log probabilities of rows, shape (k, n), at each of some datasets.

    Neighbours differ in a few entries, so most of their tables are equal, and filled once.
    """
    if type(mechanism) is Conditioned:  # another class may state another law
        try:
            logs = mechanism.log_normalizers(datasets)
        except UnsupportedError:
            pass  # tables of one dataset may fit in memory where those of all do not
        else:
            every = zip(datasets, logs.tolist(), strict=True)
            return [partial(_normalised, mechanism, x, log) for x, log in every]
    log_prob = law_of(mechanism)
    if log_prob is None:
        raise UnsupportedError("the mechanism states no law.")
    return [partial(_stated, log_prob, x) for x in datasets]


def _normalised(mechanism: Conditioned, x: Values, log: float, rows: Values) -> FloatArray:
    return mechanism.log_weights(rows, x.astype(np.int64)) - log


def _stated(log_prob: Law, x: Values, rows: Values) -> FloatArray:
    return log_prob(rows, x)
