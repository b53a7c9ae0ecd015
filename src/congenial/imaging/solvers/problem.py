"""The input of every projection on a forest: the links, the weights, the bounds, the values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from congenial.domain.given import as_array
from congenial.domain.tree import Tree
from congenial.domain.workload import Workload
from congenial.errors import ArgumentError, InfeasibleError, NumericalError, UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, named
from congenial.kernels.projection.check import add_determined, certify, reach, settle
from congenial.kernels.projection.forest import Costs, Forest
from congenial.types import FloatArray, Words

_FLOAT = np.dtype(np.float64)
# Largest number of a vector: integers up to it are exact.
LARGEST = 2.0**53
# Largest ratio of two weights, which double precision resolves; larger ratios are reduced to it.
WEIGHT_RATIO = 1e12
# Largest violation of the optimality conditions, relative to the largest number.
TOLERANCE = 1e-9
NO_WORDS: Words = np.zeros(0, dtype=np.uint64)
NO_WORDS.setflags(write=False)  # read-only like random words, so that kernels are compiled once


@dataclass(frozen=True, eq=False)
class Links:
    """A forest as the kernels read it."""

    tree: Tree  # The nodes; those after the first `n` stand for fixed sums.
    n: int  # Number of entries of a release.
    forest: Forest


@dataclass(frozen=True, eq=False)
class Task:
    """One vector to project, relative to a nearby vector of integers that adds up.

    All arrays have one entry for each node of `links.tree`. `y`, `lo`, `hi` and solutions are
    relative to `center`, so that rounding errors have the size of the noise, not of the counts.
    """

    links: Links
    center: FloatArray  # Integers that add up along the tree.
    y: FloatArray  # Noisy values; 0 where not measured.
    weight: FloatArray  # At most 1; 0 where not measured.
    # `lo` and `hi`: Range of each node, pins and the subtree's bounds included.
    lo: FloatArray
    hi: FloatArray
    prefer: FloatArray  # Preferred value of a node if the norm leaves a choice.

    @property
    def size(self) -> float:
        """Largest finite quantity, the unit of relative errors."""
        return max(1.0, float(np.abs(self.y).max()))

    @property
    def squares(self) -> Costs:
        """The costs ``weight / 2 * (z - y)**2`` as kernels read them."""
        return Costs(self.y, self.y, np.zeros_like(self.y), self.weight)

    def released(self, z: FloatArray) -> FloatArray:
        """Return a solution on the scale of the counts, shape (n,)."""
        return np.asarray(z + self.center)[: self.links.n]


def nested_tree(domain: Tree | Workload, caller: str) -> Tree:
    """Return the tree of counts, or that of a workload whose margins are nested."""
    if not isinstance(domain, Tree | Workload):
        raise ArgumentError(
            f"tree is a {type(domain).__name__}; give a Tree, or a nested Workload."
        )
    found = domain.tree if isinstance(domain, Workload) else domain
    if found is None:
        raise UnsupportedError(
            f"{caller} goes down a tree and the margins of the workload cross; give margins that "
            "are nested, or use project()."
        )
    return found


def link(tree: Tree, n: int) -> Links:
    """Lay a forest out for the kernels."""
    starts, children = tree.children
    downward = np.argsort(tree.level, kind="stable").astype(np.int64)
    return Links(tree, n, Forest(starts, children, downward, tree.parents < 0))


def as_floats(y: npt.ArrayLike, n: int, name: str = "y") -> FloatArray:
    """Return `y` as float64 of shape (n,); `name` is that of the argument."""
    if type(y) is np.ndarray and y.dtype == _FLOAT and y.shape == (n,):
        return y
    array = as_array(f"the entries of {name}", y)
    if array.shape != (n,) or array.dtype.kind not in "iuf":
        raise ArgumentError(
            f"{name} has shape {array.shape} and dtype {array.dtype}; give {n} numbers, one an "
            "entry."
        )
    return array.astype(np.float64, copy=False)


def checked_values(
    y: npt.ArrayLike,
    n: int,
    needed: npt.NDArray[np.bool_],
    domain: Tree | Workload | None,
    name: str = "y",
) -> FloatArray:
    """Return `y` as float64 of shape (n,), 0 for entries that are not needed.

    `domain` has the names of entries; `name` is the argument's.
    """
    values = np.where(needed, as_floats(y, n, name), 0.0)
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if bad.size:
        raise ArgumentError(
            f"{name} is not finite or beyond 2^53 in size at {named(domain, int(bad[0]))}; give "
            "smaller numbers."
        )
    return values


def checked_weights(weights: npt.ArrayLike | None, n: int) -> FloatArray:
    """Return weights relative to the largest, shape (n,); 1 by default."""
    if weights is None:
        return np.ones(n)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape not in ((), (n,)):
        raise ArgumentError(f"weights has shape {array.shape}; give one number, or {n}.")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ArgumentError(
            "weights has an entry that is negative or not finite; give 0 for an entry that is not "
            "measured, and exactly(nodes) for one that is known."
        )
    array = np.broadcast_to(array, (n,))
    largest = float(array.max())
    if largest == 0.0:
        return np.zeros(n)
    with np.errstate(under="ignore"):
        relative = array / largest
    return np.where(array > 0, np.maximum(relative, 1.0 / WEIGHT_RATIO), 0.0)


def prepare(
    links: Links,
    resolved: ResolvedInvariant,
    sums: FloatArray,
    values: FloatArray,
    weight: FloatArray,
    *,
    integer: bool,
) -> Task:
    """Set up one projection."""
    fixed = np.concatenate((resolved.pinned, np.ones(sums.size, dtype=np.bool_)))
    y = np.concatenate((values, sums))
    w = np.concatenate((np.where(resolved.pinned, 0.0, weight), np.zeros(sums.size)))
    lo = np.concatenate((resolved.lo, np.full(sums.size, -np.inf)))
    hi = np.concatenate((resolved.hi, np.full(sums.size, np.inf)))
    if integer:
        lo, hi = np.ceil(lo), np.floor(hi)
        wrong = fixed & (y != np.rint(y))
        _refuse(links, resolved, wrong, "must equal a number that is not an integer")
    _refuse(links, resolved, lo > hi, "has bounds that exclude each other")
    wrong = fixed & ((y < lo) | (y > hi))
    _refuse(links, resolved, wrong, "is to equal a value outside its own bounds")
    known = fixed | (w > 0)
    center = np.zeros(y.size)
    settle(links.forest, known, y, center)
    y = np.where(known, y - center, 0.0)
    lo, hi = np.where(fixed, y, lo - center), np.where(fixed, y, hi - center)
    return within_reach(Task(links, center, y, w, lo, hi, y), known, resolved)


def within_reach(task: Task, known: npt.NDArray[np.bool_], resolved: ResolvedInvariant) -> Task:
    """Tighten the bounds of a task, in place, to the range of each subtree; set what is preferred.

    `known` nodes, shape (n,), are measured or fixed. Raises InfeasibleError if no values add up.
    """
    links, lo, hi = task.links, task.lo, task.hi
    infeasible = reach(links.forest, TOLERANCE * task.size, lo, hi)
    if infeasible >= 0:
        raise InfeasibleError(
            f"the invariants on {_name(links, resolved, infeasible)} and on the nodes below it are "
            "infeasible: no values add up; relax bounds, or publish fewer counts exactly there."
        )
    prefer = np.where(known, task.y, -task.center)
    # a node determined by its children prefers their sum, so that an image moves with the counts
    add_determined(links.forest, known, prefer)
    return replace(task, prefer=np.where(known, task.y, np.clip(prefer, lo, hi)))


def _name(links: Links, resolved: ResolvedInvariant, v: int) -> str:
    return f"sum {v - links.n}" if v >= links.n else resolved.name(v)


def _refuse(
    links: Links, resolved: ResolvedInvariant, wrong: npt.NDArray[np.bool_], why: str
) -> None:
    if wrong.any():
        v = int(np.flatnonzero(wrong)[0])
        text = f"{_name(links, resolved, v)} {why}; change its bounds or what it must equal."
        raise InfeasibleError(text)


def residual(task: Task, z: FloatArray, costs: Costs, *, quadratic: bool) -> float:
    """Violation of a solution's optimality conditions, relative to the largest number.

    Returns the worst of sums, bounds and prices; at most `TOLERANCE` for a solution.
    """
    return float(np.divide(*certified(task, z, costs, quadratic=quadratic)[:2]))


def certified(
    task: Task, z: FloatArray, costs: Costs, *, quadratic: bool
) -> tuple[float, float, tuple[FloatArray, FloatArray]]:
    """Return a solution's worst violation, its largest number, and the prices of each subtree.

    The prices, least and largest, are those at which a subtree chooses its value in `z`.
    """
    size = max(task.size, float(np.abs(z).max()))
    outside = float(np.maximum(task.lo - z, z - task.hi).max())
    total, price, *prices = certify(
        task.links.forest, quadratic, costs, task.lo, task.hi, TOLERANCE * size * 1e-2, z
    )
    worst = float(max(outside, total, price if quadratic else price * size))
    return worst, size, (prices[0], prices[1])


def check_optimal(task: Task, z: FloatArray, costs: Costs, *, quadratic: bool) -> None:
    """Refuse a solution that violates its optimality conditions."""
    off = residual(task, z, costs, quadratic=quadratic)
    if not off <= TOLERANCE:
        raise missed(off)


def missed(off: float) -> NumericalError:
    """Return the error for a solution that violates its optimality conditions."""
    return NumericalError(
        f"the projection misses its optimality conditions by {off:.1e} of the largest number; "
        "bring the weights or the bounds closer together."
    )
