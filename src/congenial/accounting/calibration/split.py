"""The split of epsilon over the levels with the least noise for a stated goal."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from congenial.accounting.calibration.level_units import LevelUnits, joint_pairs, level_units
from congenial.accounting.calibration.target import Target
from congenial.accounting.loss.inequalities import Pairs, charged, sorted_pairs
from congenial.accounting.loss.together import Together, moving_together
from congenial.accounting.neighbours.single_moves import Neighbours, costs_through
from congenial.domain.tree import Tree
from congenial.invariants.resolved import ResolvedInvariant
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.types import BoolArray, FloatArray, IntArray

# Shares are multiples of 1 / UNITS, so that machines that round differently find the same shares.
UNITS = 10_000
# First step of the search, in units; each further step is half as long.
_FIRST_STEP = 512
# Relative difference below which two sums count as equal, since rounding may order them.
_TIE = 1e-12
# The same below the budget that a split needs; covers the rounding of the losses compared.
_MARGIN = 1e-9
# Largest number of kinds of siblings at which a tree is folded; 3^30 fits into int64.
_MOST_KINDS = 30


def best_split(
    tree: Tree, resolved: ResolvedInvariant, target: Target, goal: Mapping[int, float]
) -> dict[int, float]:
    """Find the shares of the budget that minimise a weighted sum of noise scales.

    Returns shares of the levels with a positive weight; multiples of 1 / `UNITS`, at least one
    each, adding up to 1.

    A level with share p of budget B has scale u / (p B), where u is 2 or 1, or the largest change
    if several records must move at once. If B does not depend on the shares, the sum over levels
    of w / p is least for shares proportional to the square roots of the weights (Cauchy and
    Schwarz), and with a power k to their (1 + k)-th roots (Hoelder). Under bounds, B grows with the
    share of the leaves. The search starts at these roots and moves units of share between levels
    while that lowers the sum, by ever shorter steps.
    """
    levels = sorted(level for level, weight in goal.items() if weight > 0)
    weights = [goal[level] / max(goal.values()) for level in levels]
    neighbours, pure = target.neighbours, target.delta is None
    power = 1.0 if pure else 0.5  # sigma falls with the square root of rho
    known = replace(resolved, pinned=resolved.determined)
    changes = level_units(tree, known, neighbours, power=1 if pure else 2)
    charge_bounds = pure and target.method == "conditioning"
    pairs = pairs_by_share(
        tree, known, neighbours, changes, charge_bounds=charge_bounds, one_sided=target.one_sided
    )

    def error(units: tuple[int, ...], least: float) -> float:
        share = np.zeros(tree.depth)
        share[levels] = np.array(units) / UNITS
        change = changes.of(share)[levels].tolist()
        each = zip(weights, units, change, strict=True)
        total = math.fsum(w * (u * UNITS / k) ** power for w, k, u in each)
        found = pairs(share)
        # a loss at one factor refutes most splits, and finding the budget takes fifty
        needed = (total / least) ** (1.0 / power) * (1.0 - _MARGIN)
        epsilon = target.epsilon / ((target.one_sided and found.worst) or 1.0)
        if not found.fits(needed, epsilon):
            return math.inf
        return float(total / found.budget(epsilon) ** power)

    start = _whole_units([weight ** (1.0 / (1.0 + power)) for weight in weights])
    found = _least(error, start)
    return {level: k / UNITS for level, k in zip(levels, found, strict=True)}


def _whole_units(parts: list[float]) -> tuple[int, ...]:
    """Divide `UNITS` in given proportions, at least one for each."""
    total = math.fsum(parts)
    units = [max(1, math.floor(UNITS * part / total)) for part in parts]
    largest = units.index(max(units))
    units[largest] += UNITS - sum(units)
    return tuple(units)


def _least(
    error: Callable[[tuple[int, ...], float], float], start: tuple[int, ...]
) -> tuple[int, ...]:
    """Move units between places until no move lowers the error.

    `error` takes the least error so far, and may return inf for a larger one.
    """
    moves = _moves(len(start))
    found, least = start, error(start, math.inf)
    known = {start: least}
    step = _FIRST_STEP
    while step:
        lower = True
        while lower:
            lower = False
            for move in moves:
                tried = tuple(k + step * m for k, m in zip(found, move, strict=True))
                if min(tried) < 1:
                    continue
                if tried not in known:
                    known[tried] = error(tried, least)
                if known[tried] < least * (1.0 - _TIE):
                    found, least, lower = tried, known[tried], True
        step //= 2
    return found


def _moves(n: int) -> list[tuple[int, ...]]:
    """Moves of one unit from one place to another, and of two to or from a pair of places."""
    moves = [{a: -1, b: 1} for a, b in itertools.permutations(range(n), 2)]
    for a, b, c in itertools.permutations(range(n), 3):
        if b < c:
            moves += [{a: -2, b: 1, c: 1}, {a: 2, b: -1, c: -1}]
    return [tuple(move.get(i, 0) for i in range(n)) for move in moves]


def pairs_by_share(
    tree: Tree,
    resolved: ResolvedInvariant,
    neighbours: Neighbours,
    changes: LevelUnits,
    *,
    charge_bounds: bool,
    one_sided: bool = False,
) -> Callable[[FloatArray], Pairs]:
    """Return a function from the levels' shares, shape (depth,), to the pairs at a budget of 1.

    Its cost does not grow with the number of siblings that are alike.
    """
    together = moving_together(resolved)
    proved = not (charge_bounds and resolved.n_inequalities) or together.one_line
    counts = np.zeros(len(tree), dtype=np.bool_)
    if charge_bounds and resolved.has_inequalities and proved:
        counts = charged(resolved)
    joint = changes.joint
    if joint is not None:
        known = counts if proved else None
        return lambda share: joint_pairs(changes, joint, share, resolved, tree, known)
    sizes, kind = _sizes(tree, together)
    folded = _Folded(tree, resolved, counts, kind)
    if not resolved.equalities[1].size:
        folded = _fold(folded)
    units = 2.0 if neighbours == "substitute" else 1.0

    def pairs(share: FloatArray) -> Pairs:
        each = share / units
        cost = np.where(folded.resolved.pinned, 0.0, each[folded.tree.level])
        of = folded.resolved, folded.tree, neighbours
        through = costs_through(cost, *of, one_sided=one_sided)
        if not proved:
            return Pairs(float(through.max()), np.zeros(0), np.zeros(0), 0.0)
        summed = (sizes @ each)[folded.size]
        return sorted_pairs(summed, through, folded.counts, steps=1.0)

    return pairs


def _sizes(tree: Tree, together: Together) -> tuple[FloatArray, IntArray]:
    """Count the nodes that move together with each node, by level.

    Returns the distinct counts, shape (k, depth), and those of each node, shape (n,).
    """
    alone = np.eye(tree.depth)
    many = np.bincount(together.first, minlength=len(tree))[together.first] > 1
    if not many.any():
        return alone, np.asarray(tree.level)
    sets, at = np.unique(together.first[many], return_inverse=True)
    inside = np.zeros((sets.size, tree.depth))
    np.add.at(inside, (at.ravel(), tree.level[many]), 1.0)
    distinct, kind = np.unique(inside, axis=0, return_inverse=True)
    of_node = tree.level.copy()
    of_node[many] = tree.depth + kind.ravel()[at.ravel()]
    return np.concatenate((alone, distinct)), of_node


def _numbered(values: IntArray) -> IntArray:
    """Number the distinct values from 0, in ascending order."""
    if values.min() == values.max():  # millions of leaves; spares sorting them
        return np.zeros(values.size, dtype=np.int64)
    return np.unique(values, return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class _Folded:
    """A tree, its invariant, the nodes whose bounds count, and kinds of sets; shape (n,)."""

    tree: Tree
    resolved: ResolvedInvariant
    counts: BoolArray
    size: IntArray  # The row of `_sizes` of each node.


def _fold(whole: _Folded) -> _Folded:
    """Keep two of the siblings whose subtrees are alike, because a pair never uses a third.

    The result has the tree and the pins that `costs_through` reads, and no bounds.
    """
    tree, pinned = whole.tree, whole.resolved.pinned
    n = len(tree)
    # for each node, the kind of its subtree; roots are siblings below the last place
    below = np.zeros(n + 1, dtype=np.int64)
    keep = np.ones(n, dtype=np.bool_)
    for depth in range(tree.depth - 1, -1, -1):
        nodes = np.flatnonzero(tree.level == depth)
        own = 4 * whole.size[nodes] + 2 * pinned[nodes] + whole.counts[nodes]
        kind = _numbered(_numbered(below[nodes]) * (int(own.max()) + 1) + own)
        if int(kind.max()) >= _MOST_KINDS:
            return whole
        above = tree.parents[nodes]
        group = above * _MOST_KINDS + kind
        order = np.argsort(group, kind="stable")
        group = group[order]
        # a node is left out if the two before it are of its group
        taken = np.ones(nodes.size, dtype=np.bool_)
        taken[2:] = group[2:] != group[:-2]
        keep[nodes[order[~taken]]] = False
        np.add.at(below, above[order[taken]], 3 ** kind[order[taken]])
    for depth in range(1, tree.depth):
        nodes = np.flatnonzero(tree.level == depth)
        keep[nodes] &= keep[tree.parents[nodes]]
    place = np.append(np.cumsum(keep) - 1, -1)
    small = Tree.from_parents(place[tree.parents[keep]])
    resolved = resolve_invariant(Invariant(()), len(small), small)
    pins = replace(resolved, pinned=pinned[keep])
    return _Folded(small, pins, whole.counts[keep], whole.size[keep])
