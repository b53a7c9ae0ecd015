"""Replicates of the study of coverage: every method on the same draws, tallied by size class."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.randomness import Randomness, seeded
from congenial.types import FloatArray, IntArray
from papers.studies.coverage_methods import Answer, Methods, methods

CLASSES = (0, 1, 10, 100, 1_000)
DECILES = 10
# Replicates that are drawn from one seed and, under bounds, from the same tables.
BATCH = 10
# The entries of a tally, of one replicate.
Row = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float]


@dataclass(frozen=True, eq=False)
class Tally:
    """How one method did on the leaves of a tree, and on its levels.

    Attributes
    ----------
    method : str
    covered, width : ndarray of float64, shape (replicates, classes + 1)
        Share of the leaves of a size class whose interval holds the count, and mean width; of all
        leaves at last.
    held : ndarray of float64, shape (replicates, classes + 1)
        Such shares by class of the estimate.
    levels : ndarray of float64, shape (replicates, levels)
        Share of the nodes of each level of the tree whose interval holds the count.
    bias, surplus : ndarray of float64, shape (replicates, 10)
        Mean of estimate less count, by decile of the count and by decile of the estimate.
    error : ndarray of float64, shape (replicates,)
        Mean absolute error of a leaf.
    """

    method: str
    covered: FloatArray
    width: FloatArray
    held: FloatArray
    levels: FloatArray
    bias: FloatArray
    surplus: FloatArray
    error: FloatArray


def tallies(
    tree: Tree,
    x: IntArray,
    scale: float,
    count: int,
    source: Randomness,
    *,
    inverted: bool = False,
    workers: int = 1,
    notify: Callable[[str], None] = lambda _: None,
) -> tuple[Tally, ...]:
    """Run every method on `count` draws of measurements of the counts, and of releases.

    Draws are made in batches, each from a seed of its own, so that `workers` change nothing.

    Parameters
    ----------
    tree : Tree
    x : ndarray of int64, shape (n,)
    scale : float
    count : int
    source : Randomness
    inverted : bool
        Whether intervals by inversion are among the methods.
    workers : int
        Threads; nearly all of the work is in kernels, which run side by side. Each holds the tables
        of one posterior, some 0.7 GB on all blocks of a state.
    notify : callable
        Told what begins, how many replicates are done, and about how long the others take.
    """
    notify("simulating the noise of images")
    ways = methods(tree, scale, source, inverted=inverted)
    sizes = [min(BATCH, count - begin) for begin in range(0, count, BATCH)]
    seeds = source.bits(len(sizes)).tolist()
    true = x[tree.leaves]
    world = _World(ways, x, tree.leaves, tree.level, _class(true), _deciles(true))
    count_down = _CountDown(count, notify)
    batches = partial(_batch, world, count_down)
    # read in order, whichever ends first
    if workers == 1:
        found = list(map(batches, sizes, seeds))
    else:
        with ThreadPoolExecutor(workers) as pool:
            try:
                found = list(pool.map(batches, sizes, seeds))
            finally:
                # after an interrupt nobody waits for the rest
                count_down.stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
    rows = {name: [row for batch in found for row in batch[name]] for name in ways.by_name}
    return tuple(
        Tally(name, *(np.array(column) for column in zip(*columns, strict=True)))
        for name, columns in rows.items()
    )


@dataclass(frozen=True, eq=False)
class _World:
    """What all replicates share."""

    ways: Methods
    x: IntArray
    leaves: npt.NDArray[np.intp]
    level: npt.NDArray[np.integer]
    size: npt.NDArray[np.intp]
    deciles: list[npt.NDArray[np.intp]]


class _CountDown:
    """How many replicates are done, told from any thread; `stop` ends all of them early."""

    def __init__(self, count: int, notify: Callable[[str], None]) -> None:
        self.stop = Event()
        self._count, self._notify, self._done = count, notify, 0
        self._begun, self._lock = time.monotonic(), Lock()

    def one_more(self) -> None:
        """Tell that one more is done."""
        with self._lock:
            self._done += 1
            left = (time.monotonic() - self._begun) * (self._count / self._done - 1.0)
            time_left = f"{left / 60:.0f} min" if left > 90 else f"{left:.0f} s"
            self._notify(f"{self._done:,} of {self._count:,} replicates, {time_left} left")


def _batch(world: _World, count_down: _CountDown, size: int, seed: int) -> dict[str, list[Row]]:
    """Run every method on `size` draws, which share the tables that they are drawn from."""
    source = seeded(seed)
    ways, true = world.ways, world.x[world.leaves]
    given = {
        name: np.asarray(mechanism.sample(world.x, size, source), dtype=np.int64)
        for name, mechanism in ways.draws.items()
    }
    found: dict[str, list[Row]] = {name: [] for name in ways.by_name}
    for made in range(size):
        for name, way in ways.by_name.items():
            if count_down.stop.is_set():
                return found
            answer = way.answer(given[way.given][made], source)
            found[name].append(_row(answer, world, true))
        count_down.one_more()
    return found


def _row(answer: Answer, world: _World, true: IntArray) -> Row:
    """Return what a `Tally` has of one replicate."""
    all_of, lowest, highest = (np.asarray(a, dtype=np.float64) for a in answer)
    covered = ((lowest <= world.x) & (world.x <= highest)).astype(np.float64)
    levels = np.bincount(world.level, covered) / np.bincount(world.level)
    estimate, low, high, holds = (a[world.leaves] for a in (all_of, lowest, highest, covered))
    off = estimate - true
    return (
        _by_class(holds, world.size),
        _by_class(high - low, world.size),
        _by_class(holds, _class(np.rint(estimate))),
        levels,
        _means(off, world.deciles),
        _means(off, _deciles(answer[0][world.leaves])),
        float(np.abs(off).mean()),
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
