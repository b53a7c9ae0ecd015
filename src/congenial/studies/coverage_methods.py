"""What the study of coverage computes: estimates and intervals of every method, tallied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import numpy as np
import numpy.typing as npt

from congenial.conditioning.condition import condition
from congenial.conditioning.conditioned import Conditioned
from congenial.imaging.project import project
from congenial.imaging.topdown import topdown
from congenial.inference.intervals import error_margins
from congenial.inference.posterior import posterior
from congenial.invariants import consistent, nonnegative
from congenial.mechanisms.additive import Additive
from congenial.mechanisms.discrete_laplace import DiscreteLaplace
from congenial.randomness import Randomness
from congenial.tree import Tree

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Estimates, and the lower and upper ends of intervals, of all nodes.
Answer = tuple[npt.NDArray[np.generic], npt.NDArray[np.generic], npt.NDArray[np.generic]]

ALPHA = 0.1
# The normal law's 95% point.
_NORMAL = 1.6448536269514722
# Simulated noise that the spread of L2 images is taken from.
_SIMULATED = 1_000
CLASSES = (0, 1, 10, 100, 1_000)
DECILES = 10


@dataclass(frozen=True, eq=False)
class Method:
    """How counts are estimated.

    Attributes
    ----------
    answer : callable
        Estimates and intervals from noisy measurements; conditioning draws noise of its own.
    slow : bool
        Whether tables are made anew for every replicate.
    """

    answer: Callable[[IntArray], Answer]
    slow: bool = False


@dataclass(frozen=True, eq=False)
class Tally:
    """How one method did on the leaves of a tree.

    Attributes
    ----------
    method : str
    covered, width : ndarray of float64, shape (replicates, classes + 1)
        Share of the leaves of a size class whose interval holds the count, and mean width; of all
        leaves at last.
    held : ndarray of float64, shape (replicates, classes + 1)
        Such shares by class of the estimate.
    bias, surplus : ndarray of float64, shape (replicates, 10)
        Mean of estimate less count, by decile of the count and by decile of the estimate.
    error : ndarray of float64, shape (replicates,)
        Mean absolute error of a leaf.
    """

    method: str
    covered: FloatArray
    width: FloatArray
    held: FloatArray
    bias: FloatArray
    surplus: FloatArray
    error: FloatArray


def methods(tree: Tree, x: IntArray, scale: float, source: Randomness) -> dict[str, Method]:
    """Return the methods by their names."""
    noisy = Additive(DiscreteLaplace(scale), tree)
    whole, bounded = consistent(tree), consistent(tree) & nonnegative()
    free = cast(Conditioned, condition(noisy, whole))
    kept = cast(Conditioned, condition(noisy, bounded))
    margin = error_margins(free, ALPHA)
    # a draw of noise: half a unit more than the quantile makes it discrete
    a = np.exp(-1.0 / scale)
    raw = int(np.ceil(np.log(ALPHA * (1.0 + a) / 2.0) / np.log(a))) - 1
    spread = _spread(noisy, tree, source)

    def conditioned(_: IntArray, *, mechanism: Conditioned) -> Answer:
        z = mechanism.sample(x, rng=source)
        return z, z - margin, z + margin

    def measured(y: IntArray) -> Answer:
        return y, y - raw, y + raw

    def imaged(y: IntArray, *, least: bool) -> Answer:
        z = project(y, bounded if least else whole)
        return z, z - _NORMAL * spread, z + _NORMAL * spread

    def down(y: IntArray) -> Answer:
        z = topdown(y, tree, bounded, source)
        return z, z - raw, z + raw

    def after(y: IntArray, *, prior: Literal["flat", "negative-binomial"]) -> Answer:
        found = posterior(y, noisy, bounded, prior).summary(ALPHA)
        return found.mean, found.lower, found.upper

    def released(_: IntArray) -> Answer:
        z = np.asarray(kept.sample(x, rng=source), dtype=np.int64)
        return after(z, prior="negative-binomial")

    return {
        "conditioning, adds up": Method(partial(conditioned, mechanism=free)),
        "conditioning, ≥ 0 too": Method(partial(conditioned, mechanism=kept), slow=True),
        "measurements": Method(measured),
        "L2, normal": Method(partial(imaged, least=False)),
        "L2 ≥ 0, normal": Method(partial(imaged, least=True)),
        "TopDown, raw noise": Method(down),
        "posterior, flat": Method(partial(after, prior="flat"), slow=True),
        "posterior, fitted": Method(partial(after, prior="negative-binomial"), slow=True),
        # exact for the prior times the normaliser of conditioning (congenial.reading)
        "conditioning, ≥ 0, posterior": Method(released, slow=True),
    }


def tallies(
    tree: Tree, x: IntArray, scale: float, count: int, slow: int, source: Randomness
) -> tuple[Tally, ...]:
    """Run every method on `count` measurements of the counts, slow ones on the first `slow`."""
    noisy = Additive(DiscreteLaplace(scale), tree)
    ways = methods(tree, x, scale, source)
    leaves = tree.leaves
    true = x[leaves]
    size = _class(true)
    of_true = _deciles(true)
    found: dict[str, list[tuple[FloatArray | float, ...]]] = {name: [] for name in ways}
    for made in range(count):
        y = np.asarray(noisy.sample(x, rng=source), dtype=np.int64)
        for name, way in ways.items():
            if way.slow and made >= slow:
                continue
            given = way.answer(y)
            estimate, low, high = (np.asarray(a, dtype=np.float64)[leaves] for a in given)
            holds = ((low <= true) & (true <= high)).astype(np.float64)
            shares = _by_class(holds, size), _by_class(high - low, size)
            held = _by_class(holds, _class(np.rint(estimate)))
            off = estimate - true
            by = (_means(off, parts) for parts in (of_true, _deciles(given[0][leaves])))
            found[name].append((*shares, held, *by, float(np.abs(off).mean())))
    return tuple(
        Tally(name, *(np.array(column) for column in zip(*rows, strict=True)))
        for name, rows in found.items()
    )


def _class(values: npt.NDArray[np.generic]) -> npt.NDArray[np.intp]:
    """Return the size class of each value; those below 0 are in the first."""
    return np.maximum(np.searchsorted(CLASSES, values, side="right") - 1, 0)


def _by_class(values: FloatArray, size: npt.NDArray[np.intp]) -> FloatArray:
    """Return means by class and over all; NaN where a class has no leaf."""
    count = len(CLASSES)
    with np.errstate(invalid="ignore"):
        means = np.bincount(size, values, count) / np.bincount(size, minlength=count)
    return np.append(means, values.mean())


def _deciles(values: npt.NDArray[np.generic]) -> list[npt.NDArray[np.intp]]:
    """Return the places of the least tenth, the next, and so on."""
    return np.array_split(np.argsort(values, kind="stable"), DECILES)


def _means(values: FloatArray, parts: list[npt.NDArray[np.intp]]) -> FloatArray:
    return np.array([values[part].mean() for part in parts])


def _spread(noisy: Additive, tree: Tree, source: Randomness) -> FloatArray:
    """Standard deviation of the L2 image of every node, whatever the counts."""
    total = np.zeros(len(tree))
    nothing = np.zeros(len(tree), dtype=np.int64)
    for _ in range(_SIMULATED):
        z = project(noisy.sample(nothing, rng=source), consistent(tree))
        total += np.asarray(z, dtype=np.float64) ** 2
    return np.asarray(np.sqrt(total / _SIMULATED))
