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
_SIMULATED = 2_000
CLASSES = (0, 1, 10, 100, 1_000)
DECILES = 10


@dataclass(frozen=True, eq=False)
class Tally:
    """How one method did on the leaves of a tree.

    Attributes
    ----------
    method : str
    covered, width : ndarray of float64, shape (replicates, classes)
        Share of the leaves of a size class whose interval holds the count, and mean width.
    bias : ndarray of float64, shape (replicates, 10)
        Mean of estimate less count, by decile of the count.
    error : ndarray of float64, shape (replicates,)
        Mean absolute error of a leaf.
    """

    method: str
    covered: FloatArray
    width: FloatArray
    bias: FloatArray
    error: FloatArray


def methods(
    tree: Tree, x: IntArray, scale: float, source: Randomness
) -> dict[str, Callable[[IntArray], Answer]]:
    """Return the methods, each from noisy measurements; conditioning draws noise of its own."""
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

    def imaged(y: IntArray, *, least: bool) -> Answer:
        z = project(y, bounded if least else whole)
        return z, z - _NORMAL * spread, z + _NORMAL * spread

    def down(y: IntArray) -> Answer:
        z = topdown(y, tree, bounded, source)
        return z, z - raw, z + raw

    def after(y: IntArray, *, prior: Literal["flat", "negative-binomial"]) -> Answer:
        law = posterior(y, noisy, bounded, prior)
        return law.mean(), *law.intervals(ALPHA)

    return {
        "conditioning, adds up": partial(conditioned, mechanism=free),
        "conditioning, ≥ 0 too": partial(conditioned, mechanism=kept),
        "L2, normal": partial(imaged, least=False),
        "L2 ≥ 0, normal": partial(imaged, least=True),
        "TopDown, raw noise": down,
        "posterior, flat": partial(after, prior="flat"),
        "posterior, fitted": partial(after, prior="negative-binomial"),
    }


def tallies(
    tree: Tree, x: IntArray, scale: float, count: int, source: Randomness
) -> tuple[Tally, ...]:
    """Run every method on `count` measurements of the counts."""
    noisy = Additive(DiscreteLaplace(scale), tree)
    ways = methods(tree, x, scale, source)
    leaves = tree.leaves
    true = x[leaves]
    size = np.searchsorted(CLASSES, true, side="right") - 1
    members = np.bincount(size, minlength=len(CLASSES)).astype(np.float64)
    decile = np.array_split(np.argsort(true, kind="stable"), DECILES)
    found: dict[str, list[tuple[FloatArray, FloatArray, FloatArray, float]]] = {w: [] for w in ways}
    for _ in range(count):
        y = np.asarray(noisy.sample(x, rng=source), dtype=np.int64)
        for name, way in ways.items():
            estimate, low, high = (np.asarray(a, dtype=np.float64)[leaves] for a in way(y))
            with np.errstate(invalid="ignore"):
                inside = np.bincount(size, (low <= true) & (true <= high), len(CLASSES)) / members
                width = np.bincount(size, high - low, len(CLASSES)) / members
            off = estimate - true
            bias = np.array([off[part].mean() for part in decile])
            found[name].append((inside, width, bias, float(np.abs(off).mean())))
    return tuple(
        Tally(name, *(np.array(column) for column in zip(*rows, strict=True)))
        for name, rows in found.items()
    )


def _spread(noisy: Additive, tree: Tree, source: Randomness) -> FloatArray:
    """Standard deviation of the L2 image of every node, whatever the counts."""
    total = np.zeros(len(tree))
    nothing = np.zeros(len(tree), dtype=np.int64)
    rounds = max(20, min(_SIMULATED, 4_000_000 // len(tree)))
    for _ in range(rounds):
        z = project(noisy.sample(nothing, rng=source), consistent(tree))
        total += np.asarray(z, dtype=np.float64) ** 2
    return np.asarray(np.sqrt(total / rounds))
