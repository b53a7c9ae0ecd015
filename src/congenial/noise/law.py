"""The interface of noise laws, and their lookup by the file of their name beside this one."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from numbers import Real
from pkgutil import iter_modules
from sys import float_info
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError, UnsupportedError
from congenial.kernels.numerics import laws
from congenial.types import FloatArray, Words
from congenial.wording import show

Measure = Literal["pure", "zcdp"]

# Grid spacings are 2^-40 to 2^40 and scales at most 2^46 of them, so that products are exact.
_MOST_EXPONENT = 40
_MOST_STEPS = 2.0**46
# Smallest and largest scale: their squares and inverses stay within floating-point range.
_LEAST_SCALE, _MOST_SCALE = 1e-100, 1e100
_FOLDER = "congenial.noise"
# Modules of the folder that are no law.
_NO_LAWS = {"additive", "law"}
# Largest number of values of a tabulated half law, and its largest lost tail in nats (2^-60).
_MOST_TABULATED, _TAIL = 1 << 24, 60 * math.log(2.0)


# Returns a number of fresh uniform words, shape (count,).
More = Callable[[int], Words]


class NoiseLaw(Protocol):
    """A symmetric, unimodal, log-concave noise law with one scale an entry.

    Each is a frozen record in a file of its own: "discrete-laplace" is `LAW` in
    `noise/discrete_laplace.py`, a class that takes the scale first. The scale s states the privacy
    loss. A count that changes by k costs at most k / s where `measure` is "pure", and a zCDP rho of
    at most k ** 2 / (2 * s ** 2) where it is "zcdp".
    """

    @property
    def name(self) -> str:
        """The law's name in plans, that of its file."""

    @property
    def text(self) -> str:
        """The law's name in sentences."""

    @property
    def kind(self) -> int:
        """The law's code in the kernels; `laws.OTHER` if they have no weights for it."""

    @property
    def discrete(self) -> bool:
        """Whether the noise lies on a grid."""

    @property
    def granularity(self) -> float:
        """Spacing of the grid, a power of two, 1 for integers; 0 for continuous noise."""

    @property
    def measure(self) -> Measure:
        """Whether its privacy loss is stated as pure epsilon or as zCDP rho."""

    @property
    def spread(self) -> FloatArray:
        """The scale parameter, a scalar or one an entry; inf where nothing is measured."""

    @property
    def words_per_entry(self) -> int:
        """How many uniform words one draw of one entry takes."""

    def in_units(self) -> Self:
        """Return the law of noise / granularity, on the integers; a continuous law is its own."""

    def variances(self, scales: FloatArray) -> FloatArray:
        """Variance of the noise of each entry; inf where nothing is measured."""

    def log_pmf(self, noise: npt.ArrayLike, scales: FloatArray) -> FloatArray:
        """Log probability (or density) of each noise value; 0 where nothing is measured.

        Values off the grid have probability 0.
        """

    def draw(
        self, words: Words, scales: FloatArray, more: More, /
    ) -> npt.NDArray[np.int64 | np.float64]:
        """Noise of shape (rows, n) from words of shape (rows, n * words_per_entry).

        int64 on the integers, float64 that is exactly on the grid otherwise. `more` is asked for
        further words where those of an entry do not decide its noise.
        """

    def sampling_error(self, scales: FloatArray) -> float:
        """Bound on the total variation between `draw` and the law, summed over entries."""


class RealNoise(ABC):
    """Noise laws on real numbers: they have no grid, and draws without a useful error bound."""

    discrete = False
    granularity = 0.0

    @abstractmethod
    def standard(self, words: Words) -> FloatArray:
        """Noise of scale 1, shape (rows, n), from words as `draw` takes them."""

    def draw(self, words: Words, scales: FloatArray, _: More) -> FloatArray:
        """Noise of shape (rows, n) in floating point, which any words decide."""
        return scaled(self.standard(words), scales)

    def in_units(self) -> Self:
        """Return the law itself: it has no grid."""
        return self

    def sampling_error(self, scales: FloatArray) -> float:
        """Trivial bound: a floating-point draw has no useful one."""
        return 1.0 if scales.size else 0.0


class NoiseLaws(Protocol):
    """All laws of one name: called with a scale, or one an entry, it returns a law."""

    discrete: bool
    measure: Measure

    def __call__(self, scale: npt.ArrayLike, /) -> NoiseLaw:
        """Return the law of a scale."""


def law_names() -> tuple[str, ...]:
    """Return the names of all noise laws, sorted, without loading any of them."""
    found = (module.name for module in iter_modules(import_module(_FOLDER).__path__))
    return tuple(sorted(name.replace("_", "-") for name in found if name not in _NO_LAWS))


def find_law(name: str) -> NoiseLaws:
    """Return the class of the laws of a name, one of `law_names`; only its file is loaded."""
    known = law_names()
    if name not in known:
        raise ArgumentError(f"the noise law is {name!r}; give one of {', '.join(known)}.")
    law: NoiseLaws = import_module(f"{_FOLDER}.{name.replace('-', '_')}").LAW
    return law


def check_kernels(noise: NoiseLaw) -> None:
    """Refuse a law for which the kernels have no weights."""
    if noise.kind == laws.OTHER:
        raise UnsupportedError(
            f"conditional laws of {noise.name} noise are not known; take congenial.image instead "
            "of condition and posterior, or DiscreteLaplace or DiscreteGaussian noise."
        )


def half_law(noise: NoiseLaw, scale: float) -> FloatArray:
    """Probabilities of 0, 1, 2, ... under a law on the integers, until less than 2^-60 is left."""
    size = 64
    while size <= _MOST_TABULATED:
        values = np.arange(size, dtype=np.float64)
        log_p = noise.log_pmf(values, np.full(size, scale))
        fall = log_p[-2] - log_p[-1]  # log-concave: it falls at least as fast beyond
        with np.errstate(under="ignore", over="ignore", invalid="ignore"):
            if np.isneginf(log_p[-1]) or (fall > 0 and log_p[-1] - np.log(np.expm1(fall)) < -_TAIL):
                return np.asarray(np.exp(log_p))
        size *= 2
    raise UnsupportedError(
        f"{noise.name} noise of scale {scale:g} has more than 2^24 values; use less noise."
    )


def checked_scale(name: str, value: npt.ArrayLike) -> FloatArray:
    """Return a scale parameter as an array; entries positive, inf allowed."""
    remedy = "give a positive number, or one for each query (inf where a query is not measured)."
    try:
        given = np.asarray(value)
        array = given.astype(np.float64, copy=False) if _are_real(given) else np.array(np.nan)
    except (TypeError, ValueError, OverflowError) as cause:
        raise ArgumentError(f"{name} is {show(value)}; {remedy}") from cause
    if array.ndim > 1 or np.isnan(array).any() or (array <= 0).any():
        raise ArgumentError(f"{name} is {show(value)}; {remedy}")
    finite = array[np.isfinite(array)]
    wrong = finite[(finite < _LEAST_SCALE) | (finite > _MOST_SCALE)]
    if wrong.size:
        raise ArgumentError(
            f"{name} is {wrong[0]:g}; give a number from {_LEAST_SCALE:g} to {_MOST_SCALE:g}, "
            "or inf where a query is not measured."
        )
    return array


def _are_real(array: npt.NDArray[Any]) -> bool:
    """Whether entries are real numbers; numpy also makes numbers of texts, times and bools."""
    if array.dtype.kind == "O":
        return all(isinstance(v, Real | Decimal) and not isinstance(v, bool) for v in array.flat)
    return array.dtype.kind in "iuf"


def checked_granularity(value: float) -> float:
    """Return the spacing of a grid, a power of two from 2^-40 to 2^40."""
    number = isinstance(value, int | float | np.integer | np.floating)
    if number and not isinstance(value, bool) and 0 < value <= float_info.max:
        mantissa, exponent = math.frexp(float(value))
        if mantissa == 0.5 and abs(exponent - 1) <= _MOST_EXPONENT:
            return float(value)
    raise ArgumentError(
        f"granularity is {show(value)}; give a power of two from 2^-{_MOST_EXPONENT} to "
        f"2^{_MOST_EXPONENT}, such as 1 for integers or 0.25."
    )


def in_steps(name: str, scales: FloatArray, granularity: float) -> FloatArray:
    """Return scales in steps of the grid; inf where nothing is measured."""
    steps = scales / granularity
    finite = steps[np.isfinite(steps)]
    if finite.size and finite.max() > _MOST_STEPS:
        raise UnsupportedError(
            f"{name} is {finite.max() * granularity:g}, beyond 2^46 steps of the granularity "
            f"{granularity:g}; use a coarser granularity or less noise."
        )
    return np.asarray(steps)


def on_grid(values: npt.ArrayLike, granularity: float) -> npt.NDArray[np.bool_]:
    """Whether each value is a multiple of the granularity; true for a granularity of 0."""
    array = np.asarray(values, dtype=np.float64)
    if granularity == 0.0:
        return np.ones(array.shape, dtype=np.bool_)
    with np.errstate(over="ignore"):
        steps = array / granularity
    return np.asarray(steps == np.rint(steps))


def placed(steps: npt.NDArray[np.int64], granularity: float) -> npt.NDArray[np.int64 | np.float64]:
    """Return whole steps as values: int64 for granularity 1, float64 otherwise; exact."""
    return steps if granularity == 1.0 else steps.astype(np.float64) * granularity


def scaled(standard: FloatArray, scales: FloatArray) -> FloatArray:
    """Return noise of scale 1 times its scale; 0 where nothing is measured."""
    measured = np.isfinite(scales)
    return np.where(measured, standard, 0.0) * np.where(measured, scales, 1.0)


def per_entry(spread: FloatArray, n: int) -> FloatArray:
    """Broadcast a scale parameter to n entries."""
    if spread.shape not in ((), (1,), (n,)):
        raise ArgumentError(f"the noise has {spread.size} scales; give one, or {n}.")
    return np.ascontiguousarray(np.broadcast_to(spread, (n,)), dtype=np.float64)


def too_far_from_zero(sizes: FloatArray) -> bool:
    """Whether noisy values, in units of the noise's scale, are too large for true counts of 0.

    By Chernoff's bound, that many exponential variables exceed the limit with a probability
    below 1e-17.
    """
    return bool(sizes.sum() > sizes.size + 9.0 * math.sqrt(sizes.size) + 40.0)
