"""Releases of one table by every method that keeps the invariants, and their errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
import numpy.typing as npt

from congenial.accounting.calibration.scales import calibrate
from congenial.conditioning.choice import condition
from congenial.domain.tree import Tree
from congenial.errors import CongenialError
from congenial.imaging.top_down import topdown_image
from congenial.imaging.update import image
from congenial.inference.best_table import best_table
from congenial.inference.noise_intervals import noise_margin
from congenial.inference.posteriors import posterior
from congenial.invariants.written import consistent, exactly, nonnegative
from congenial.noise.additive import Additive
from congenial.randomness import seeded
from congenial.types import BoolArray, FloatArray, IntArray, Values

ALPHA = 0.1
# Least counts of the size classes of leaves.
SIZES = (0, 1, 10, 100, 1_000)
TABLE, CONDITIONED, NOISE = "least expected error", "conditioning", "noise alone"
PROJECTIONS = ("imaging, L2", "imaging, L1", "TopDown")
METHODS = (TABLE, *PROJECTIONS, CONDITIONED, NOISE)
RELEASED, SPLITS, LEAVES = "released", "posterior", "posterior, independent leaves"
INTERVALS = (RELEASED, SPLITS, LEAVES)


@dataclass(frozen=True, eq=False)
class World:
    """Counts that are released many times.

    Attributes
    ----------
    name, title : str
    level_names : tuple of str
        Of the levels below the root.
    read : callable
        Returns the tree and the counts.
    epsilons : tuple of float
    replicates : tuple of int
        Of the full study, for each epsilon.
    bounded : bool
        Whether conditioning, and the posterior under a prior of independent leaves, are among the
        methods; both take minutes where leaves are many.
    laws : bool
        Whether leaves are so many that the shares of their counts tell a law for each class of
        them.
    """

    name: str
    title: str
    level_names: tuple[str, ...]
    read: Callable[[], tuple[Tree, IntArray]]
    epsilons: tuple[float, ...]
    replicates: tuple[int, ...]
    bounded: bool = True
    laws: bool = False


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of nodes that errors are averaged over: the levels, and leaves by size.

    Attributes
    ----------
    names : tuple of str
    member : ndarray of bool, shape (groups, n)
    """

    names: tuple[str, ...]
    member: BoolArray

    def means(self, values: npt.ArrayLike) -> FloatArray:
        """Return the mean over each group, NaN where a group is empty."""
        array = np.asarray(values, dtype=np.float64)
        return np.array([array[at].mean() if at.any() else np.nan for at in self.member])


@dataclass(frozen=True, eq=False)
class Found:
    """What the releases of one world at one epsilon came to.

    Attributes
    ----------
    scales : tuple of float
        Of the noise on a count of each level, for methods that pay for no bounds.
    groups : Groups
    error, bias : dict of ndarray of float64, shape (replicates, groups)
        Mean absolute error and mean error of each method.
    spread : dict of ndarray of float64, shape (replicates, groups)
        Mean square of the difference in absolute error between the table of least expected error
        and each projection.
    covered, width : dict of ndarray of float64, shape (replicates, groups)
        Share of the intervals of each kind that hold the count, and their mean width.
    """

    scales: tuple[float, ...]
    groups: Groups
    error: dict[str, FloatArray]
    bias: dict[str, FloatArray]
    spread: dict[str, FloatArray]
    covered: dict[str, FloatArray]
    width: dict[str, FloatArray]


def groups(world: World, tree: Tree, x: IntArray) -> Groups:
    """Return the groups of a world's nodes; those of the root are left out."""
    names = list(world.level_names)
    member = [tree.level == depth for depth in range(1, tree.depth)]
    for low, high in pairwise((*SIZES, np.inf)):
        upto = f"{low:,} or more" if high == np.inf else f"{low:,}–{high - 1:,}"
        size = "0" if low == 0 else upto
        names.append(f"{world.level_names[-1]} of {size}")
        member.append(tree.is_leaf & (x >= low) & (x < high))
    return Groups(tuple(names), np.array(member))


def released(world: World, epsilon: float, seeds: Sequence[int], workers: int) -> Found:
    """Release a world's counts once for each seed, by every method, from the same measurements.

    Parameters
    ----------
    world : World
    epsilon : float
        Final, of substituting one record; the root is published exactly, and the levels below it
        share epsilon equally.
    seeds : sequence of int
    workers : int
        Threads; what is found does not depend on them.
    """
    tree, x = world.read()
    known = consistent(tree) & exactly([0]) & nonnegative()
    scales = calibrate(tree, known, epsilon=epsilon, neighbours="substitute", method="imaging")
    noisy = Additive(scales, tree)
    best = best_table(noisy, known)
    engines = {
        PROJECTIONS[0]: image(noisy, known, "l2", integer=True),
        PROJECTIONS[1]: image(noisy, known, "l1", integer=True),
        PROJECTIONS[2]: topdown_image(noisy, known),
    }
    conditioned = None
    if world.bounded:
        wider = calibrate(tree, known, epsilon=epsilon, neighbours="substitute")
        try:
            conditioned = condition(Additive(wider, tree), known)
        except CongenialError:
            conditioned = None
    here = groups(world, tree, x)
    margin = np.array([noise_margin(noisy.noise, s, ALPHA) for s in _levels(tree, noisy.scales)])

    def once(seed: int) -> list[dict[str, FloatArray]]:
        source = seeded(seed)
        y = cast(IntArray, engines[PROJECTIONS[0]].measure(x, rng=source))
        law = best.law(y)
        tables: dict[str, Values] = {TABLE: best.least(law, source)}
        tables |= {name: engine.apply(y, source) for name, engine in engines.items()}
        if conditioned is not None:
            tables[CONDITIONED] = np.asarray(conditioned.sample(x, rng=source))
        tables[NOISE] = y
        reach = margin[tree.level]
        ends = {
            RELEASED: (
                np.minimum(np.maximum(y - reach, 0), tables[TABLE]),
                np.maximum(y + reach, tables[TABLE]),
            ),
            SPLITS: law.intervals(ALPHA),
        }
        if world.bounded:
            own = posterior(y, noisy, known, "negative-binomial")
            ends[LEAVES] = own.intervals(ALPHA)
        error = {name: here.means(np.abs(z - x)) for name, z in tables.items()}
        bias = {name: here.means(z - x) for name, z in tables.items()}
        ours = np.abs(tables[TABLE] - x)
        spread = {p: here.means((ours - np.abs(tables[p] - x)) ** 2.0) for p in PROJECTIONS}
        covered = {name: here.means((low <= x) & (x <= high)) for name, (low, high) in ends.items()}
        width = {name: here.means(high - low) for name, (low, high) in ends.items()}
        return [error, bias, spread, covered, width]

    if workers == 1:
        rows = [once(seed) for seed in seeds]
    else:
        with ThreadPoolExecutor(workers) as pool:
            rows = list(pool.map(once, seeds))
    columns = [
        {name: np.array([row[at][name] for row in rows]) for name in rows[0][at]} for at in range(5)
    ]
    return Found(tuple(_levels(tree, noisy.scales)[1:]), here, *columns)


def _levels(tree: Tree, scales: FloatArray) -> list[float]:
    """Return the scale of each level, 0 where it is published exactly."""
    each = [float(scales[tree.level == depth][0]) for depth in range(tree.depth)]
    return [scale if np.isfinite(scale) else 0.0 for scale in each]
