"""Discrete Laplace noise, the papers' double geometric mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.kernels.numerics import laws
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

# Multiple of the error of doubles within which a draw counts as undecided; tests take more.
_SLACK = 1.0


@dataclass(frozen=True, eq=False)
class DiscreteLaplace:
    """Noise on a grid: ``(1 - a) / (1 + a) * a ** k`` at ``k = abs(u) / granularity`` steps.

    Here ``a = exp(-granularity / scale)``, so that ``exp(-abs(u) / scale)`` is the weight of u.

    Parameters
    ----------
    scale : float or array_like of float, shape (n,)
        One over the privacy loss of a change by one; inf where a query is not measured.
    granularity : float
        The noise takes the multiples of this power of two; 1 gives integers.

    Raises
    ------
    ArgumentError
        If a scale is not positive, or the granularity no power of two from 2^-40 to 2^40.

    References
    ----------
    Gong and Meng (2020), Definition 1.2; Ghosh, Roughgarden and Sundararajan (2012).
    """

    scale: npt.ArrayLike
    granularity: float = 1.0
    spread: FloatArray = field(init=False, repr=False)
    name = "discrete-laplace"
    text = "discrete Laplace"
    kind = laws.LAPLACE
    discrete = True
    measure: ClassVar[Measure] = "pure"
    words_per_entry = 2

    def __post_init__(self) -> None:
        """Check the scale and the granularity."""
        object.__setattr__(self, "spread", checked_scale("scale", self.scale))
        object.__setattr__(self, "granularity", checked_granularity(self.granularity))

    def in_units(self) -> DiscreteLaplace:
        """Return the law of noise / granularity, on the integers."""
        return DiscreteLaplace(self.spread / self.granularity)

    def variances(self, scales: FloatArray) -> FloatArray:
        """Variance of each entry, ``granularity ** 2 * 2 * a / (1 - a) ** 2``."""
        measured = np.isfinite(scales)
        half = 0.5 * self.granularity / np.where(measured, scales, 1.0)
        with np.errstate(over="ignore", under="ignore"):
            return np.where(measured, 0.5 * (self.granularity / np.sinh(half)) ** 2, np.inf)

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log probability of each noise value; 0 where nothing is measured."""
        measured = np.isfinite(scales)
        safe = np.where(measured, scales, 1.0)
        norm = np.log(np.tanh(0.5 * self.granularity / safe))  # (1 - a) / (1 + a)
        log_p = norm - np.abs(np.asarray(noise)) / safe
        return np.where(measured, np.where(on_grid(noise, self.granularity), log_p, -np.inf), 0.0)

    def cdf(self, noise: npt.ArrayLike) -> FloatArray:
        """Probability that the noise is at most a value; broadcast against the scale.

        Raises
        ------
        ArgumentError
            If a scale is inf.

        References
        ----------
        Gong and Meng (2020), Appendix B.
        """
        steps = np.floor(np.asarray(noise, dtype=np.float64) / self.granularity)
        rate = self._rate()
        with np.errstate(under="ignore"):
            tail = np.exp(-np.where(steps < 0, -steps, steps + 1.0) * rate) / (1.0 + np.exp(-rate))
        return np.asarray(np.where(steps < 0, tail, 1.0 - tail))

    def quantile(self, probability: npt.ArrayLike) -> npt.NDArray[np.int64 | np.float64]:
        """Least noise whose `cdf` reaches a probability; broadcast against the scale.

        For studies. The papers' sampler draws the quantile of a uniform number, whose tails are
        coarse in floating point; releases use `draw` instead.

        Parameters
        ----------
        probability : array_like of float
            Between 0 and 1, neither included.

        Returns
        -------
        ndarray
            int64 for integers, float64 on another grid.

        Raises
        ------
        ArgumentError
            If a probability is out of range or a scale is inf.

        Notes
        -----
        With a = exp(-granularity / scale), ``ceil(-(ln v + ln(1 + a)) / ln a)`` up to v = 1/(1 + a)
        and ``ceil((ln(1 - v) + ln(1 + a)) / ln a) - 1`` above. The appendix prints the second
        without the ``- 1``, which would never give 1.

        References
        ----------
        Gong and Meng (2020), Appendix B.
        """
        v = np.asarray(probability, dtype=np.float64)
        if not ((v > 0) & (v < 1)).all():
            raise ArgumentError(
                "probability has an entry outside 0 to 1; give numbers between 0 and 1."
            )
        rate = self._rate()
        shared = np.log1p(np.exp(-rate))
        low = v <= 1.0 / (1.0 + np.exp(-rate))
        steps = np.where(
            low,
            np.ceil((np.log(v) + shared) / rate),
            np.ceil(-(np.log1p(-v) + shared) / rate) - 1.0,
        )
        # a rounded logarithm may miss the step by one
        steps = np.where(self.cdf((steps - 1.0) * self.granularity) >= v, steps - 1.0, steps)
        steps = np.where(self.cdf(steps * self.granularity) < v, steps + 1.0, steps)
        return placed(steps.astype(np.int64), self.granularity)

    def _rate(self) -> FloatArray:
        """Minus the logarithm of a: the granularity over the scale."""
        if not np.isfinite(self.spread).all():
            raise ArgumentError(
                "scale is inf for a query, which therefore has no noise; give finite scales."
            )
        return np.asarray(self.granularity / self.spread)

    def draw(
        self, words: Words, scales: FloatArray, more: More
    ) -> npt.NDArray[np.int64 | np.float64]:
        """Noise of shape (rows, n), the difference of two geometric variables each.

        The law is exact: an entry whose words lie so close to a boundary that doubles do not decide
        is worked out in decimals, with more words if need be; see ``proofs/exact-draws.md``.

        Raises
        ------
        UnsupportedError
            If a scale is beyond 2^46 steps of the grid.
        """
        steps = in_steps("scale", scales, self.granularity)
        out = np.zeros((words.shape[0], scales.size), dtype=np.int64)
        if laws.two_sided_geometric(words, steps, _SLACK, out):
            for r, i in np.argwhere(out == laws.UNDECIDED).tolist():
                scale = float(steps[i])
                up, down = (
                    geometric(int(word), scale, more) for word in words[r, 2 * i : 2 * i + 2]
                )
                out[r, i] = up - down
        return placed(out, self.granularity)

    def sampling_error(self, scales: FloatArray) -> float:  # noqa: ARG002 -- none has an error
        """0: every draw has exactly the law."""
        return 0.0


LAW = DiscreteLaplace


def geometric(word: int, scale: float, more: More) -> int:
    """Return floor(-scale log U) for a uniform U whose first 64 bits are `word`.

    Further bits are fetched until those known decide. Decimals round correctly, so each result here
    is off by less than ``(x + scale) 10^(3 - digits)``.
    """
    known, size = word, 64
    while True:
        with localcontext(prec=size // 3 + 25) as context:
            ends = []
            for top in (known + 1, known):
                x = -Decimal(scale) * (Decimal(top) / 2**size).ln() if top else Decimal("inf")
                off = (x + Decimal(scale)).scaleb(3 - context.prec)
                ends += [x - off, x + off] if top else [x]
            low, high = max(ends[0], Decimal(0)), ends[-1]
            if high.is_finite() and (found := int(low)) == int(high):
                return found
        known, size = known << 64 | int(more(1)[0]), size + 64
