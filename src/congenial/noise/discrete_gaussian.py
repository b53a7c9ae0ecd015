"""Discrete Gaussian noise on the integers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.errors import UnsupportedError
from congenial.kernels.numerics import elementwise, laws
from congenial.noise.law import (
    Measure,
    More,
    checked_granularity,
    checked_scale,
    in_steps,
    on_grid,
    placed,
)
from congenial.types import FloatArray, Words

# Sigmas (plus 8 integers) at which the support is truncated; the mass beyond is below 2^-100.
_REACH = 12.0
# Sigma, in steps, above which sums over the grid equal integrals up to exp(-2 pi^2 sigma^2).
_SMOOTH = 4.0
# Largest sigma, in steps, of a table in exact integers of `_BITS` bits, and of a table in doubles.
# A table has 24 entries for each step of sigma.
_MOST_EXACT, _BITS = 2.0**12, 256
# Units of 2^-64 around an entry of a table within which a word is undecided; tests take more.
_SLACK = 1
MOST_TABULATED = 2.0**20


@dataclass(frozen=True, eq=False)
class DiscreteGaussian:
    """Noise on a grid with pmf proportional to ``exp(-u ** 2 / (2 * sigma ** 2))``.

    Parameters
    ----------
    sigma : float or array_like of float, shape (n,)
        inf where a query is not measured.
    granularity : float
        The noise takes the multiples of this power of two; 1 gives integers.

    Raises
    ------
    ArgumentError
        If a sigma is not positive, or the granularity no power of two from 2^-40 to 2^40.

    References
    ----------
    Canonne, Kamath and Steinke (2020).
    """

    sigma: npt.ArrayLike
    granularity: float = 1.0
    spread: FloatArray = field(init=False, repr=False)
    name = "discrete-gaussian"
    text = "discrete Gaussian"
    kind = laws.GAUSSIAN
    discrete = True
    measure: ClassVar[Measure] = "zcdp"
    words_per_entry = 1

    def __post_init__(self) -> None:
        """Check sigma and the granularity."""
        object.__setattr__(self, "spread", checked_scale("sigma", self.sigma))
        object.__setattr__(self, "granularity", checked_granularity(self.granularity))

    def in_units(self) -> DiscreteGaussian:
        """Return the law of noise / granularity, on the integers."""
        return DiscreteGaussian(self.spread / self.granularity)

    def variances(self, scales: FloatArray) -> FloatArray:
        """Variance of each entry; sigma squared except for very small sigmas."""
        measured = np.isfinite(scales)
        _, variance = _moments(np.where(measured, scales, 1.0) / self.granularity)
        with np.errstate(under="ignore"):
            return np.where(measured, variance * self.granularity**2, np.inf)

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log probability of each noise value; 0 where nothing is measured."""
        measured = np.isfinite(scales)
        safe = np.where(measured, scales, 1.0)
        log_norm, _ = _moments(safe / self.granularity)
        u = np.asarray(noise, dtype=np.float64)
        log_p = -0.5 * (u / safe) ** 2 - log_norm
        return np.where(measured, np.where(on_grid(u, self.granularity), log_p, -np.inf), 0.0)

    def draw(
        self, words: Words, scales: FloatArray, more: More
    ) -> npt.NDArray[np.int64 | np.float64]:
        """Noise of shape (rows, n) by inversion of the tabulated distribution function.

        For a sigma of up to 2^12 steps the law is exact: the table has whole multiples of 2^-64,
        and a word beside an entry is decided in integers of 256 bits and more, with more words if
        need be; see ``proofs/exact-draws.md``. For a wider one, the table has sums of doubles.

        Raises
        ------
        UnsupportedError
            If a sigma is beyond 2^20 steps of the grid, too wide for a table.
        """
        steps = in_steps("sigma", scales, self.granularity)
        finite = np.unique(steps[np.isfinite(steps)])
        if finite.size and finite[-1] > MOST_TABULATED:
            raise UnsupportedError(
                f"sigma is {finite[-1] * self.granularity:g}, beyond 2^20 steps of the granularity "
                f"{self.granularity:g}; use a coarser granularity or less noise."
            )
        out = np.zeros((words.shape[0], scales.size), dtype=np.int64)
        for sigma in finite.tolist():
            columns = np.flatnonzero(steps == sigma)
            of = words[:, columns]
            if sigma > _MOST_EXACT:
                values, weights = _weights(sigma)
                cumulative = np.cumsum(weights)
                uniform = (of >> np.uint64(11)).astype(np.float64) * (2.0**-53 * cumulative[-1])
                index = np.searchsorted(cumulative, uniform, side="right")
                out[:, columns] = values[np.minimum(index, values.size - 1)]
                continue
            table = _thresholds(sigma)
            index = np.searchsorted(_doubtful(table, _SLACK), of, side="right")
            drawn = index // 2 - table.size // 2
            for r, i in np.argwhere(index & 1).tolist():
                drawn[r, i] = decided(int(of[r, i]), sigma, more)
            out[:, columns] = drawn
        return placed(out, self.granularity)

    def sampling_error(self, scales: FloatArray) -> float:
        """Bound on total variation: 0, or 2^-51 for each entry of a table of doubles.

        Such a table is a running sum, with an ulp of 2^-53. The tail beyond it is below 2^-100.
        """
        steps = scales[np.isfinite(scales)] / self.granularity
        entries = 2.0 * _REACH * steps + 20.0
        return float(np.sum(entries * np.where(steps <= _MOST_EXACT, 0.0, 2.0**-51)))


LAW = DiscreteGaussian


def _thresholds(sigma: float) -> Words:
    """Distribution function at -reach, ..., reach - 1, in units of 2^-64, rounded down.

    With ``q = exp(-1 / (2 sigma^2))`` the weights obey ``w(k + 1) = w(k) q^(2 k + 1)``. Rounding
    lowers q by less than 1 unit of 2^-256, its square by less than 3, the k-th ratio by less than
    1 + 4 k, and so w(k) by less than 2 k^2.
    """
    reach = int(np.ceil(_REACH * sigma)) + 8
    with localcontext(prec=100):
        q = int((-1 / (2 * Decimal(sigma) ** 2)).exp() * Decimal(2) ** _BITS)
    weights, ratio, square = [1 << _BITS], q, (q * q) >> _BITS
    for _ in range(reach):
        weights.append((weights[-1] * ratio) >> _BITS)
        ratio = (ratio * square) >> _BITS
    total = 2 * sum(weights) - weights[0]
    table, below = np.empty(2 * reach, dtype=np.uint64), 0
    for at in range(2 * reach):
        below += weights[abs(at - reach)]
        table[at] = min((below << 64) // total, 2**64 - 1)
    return table


def _doubtful(table: Words, slack: int) -> Words:
    """Return where words begin to be, and cease to be, too close to each entry to decide.

    The true value is less than 2 above its entry, and less than 1 below, so a word decides unless
    it is within 1 of the entry. An odd place among these ends is undecided, an even one is twice
    the number of entries below.
    """
    most = np.uint64(2**64 - 1)
    begin = table - np.minimum(table, np.uint64(slack))
    end = table + np.minimum(most - table, np.uint64(slack + 1))
    ends = np.maximum.accumulate(np.stack((begin, end), axis=1).ravel())
    full = np.flatnonzero(most - table <= np.uint64(slack))  # nothing decides from here on
    return ends if not full.size else ends[: 2 * full[0] + 1]


def decided(word: int, sigma: float, more: More) -> int:
    """Return the least k with U < P(noise <= k), for a uniform U whose first 64 bits are `word`.

    Further bits are fetched, and sums worked out more precisely, until those known decide.
    """
    known, size, bits = word, 64, 256
    while (found := _place(known, size, sigma, bits)) is None:
        known, size, bits = known << 64 | int(more(1)[0]), size + 64, bits + 128
    return found


def _place(known: int, size: int, sigma: float, bits: int) -> int | None:
    """Return the value of all U between known and known + 1, times 2^-size; None if there are more.

    Weights lie between two integers times 2^-bits, and the tails beyond the reach below a geometric
    series.
    """
    reach = math.ceil(sigma * math.sqrt(2.0 * math.log(2.0) * bits)) + 8
    with localcontext(prec=bits // 3 + 20):
        q = int((-1 / (2 * Decimal(sigma) ** 2)).exp() * 2**bits)
    low, ratio = [1 << bits], max(q - 1, 0)
    square = ratio * ratio >> bits
    for _ in range(reach):
        low.append(low[-1] * ratio >> bits)
        ratio = ratio * square >> bits
    high, ratio = [1 << bits], q + 2
    square = (ratio * ratio >> bits) + 1
    for _ in range(reach):
        high.append((high[-1] * ratio >> bits) + 1)
        ratio = (ratio * square >> bits) + 1
    if ratio >= 1 << bits:
        return None
    tail = ((high[-1] * ratio) // ((1 << bits) - ratio)) + 1
    least, most = 2 * sum(low) - low[0], 2 * (sum(high) + tail) - high[0]
    begin, end = known * least, (known + 1) * most
    under, above = 0, tail  # bounds on the weight of all values before k
    for k in range(-reach, reach + 1):
        under += low[abs(k)]
        if end <= under << size:
            return k if begin >= above << size else None
        above += high[abs(k)]
    return None


def _weights(sigma: float) -> tuple[npt.NDArray[np.int64], FloatArray]:
    reach = int(np.ceil(_REACH * sigma)) + 8
    values = np.arange(-reach, reach + 1, dtype=np.int64)
    with np.errstate(over="ignore", under="ignore"):
        return values, elementwise.exp(-0.5 * (values / sigma) ** 2)


def _moments(steps: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of the sum of the weights on the integers, and the variance, for each sigma."""
    sigmas, inverse = np.unique(steps, return_inverse=True)
    norms = sigmas * np.sqrt(2.0 * np.pi)
    variances = np.array([sigma**2 for sigma in sigmas.tolist()])  # rounds unlike numpy's square
    for at, sigma in enumerate(sigmas[sigmas <= _SMOOTH].tolist()):
        values, weights = _weights(sigma)
        norms[at] = weights.sum()
        variances[at] = (weights * values.astype(np.float64) ** 2).sum() / norms[at]
    return np.log(norms)[inverse], variances[inverse]
