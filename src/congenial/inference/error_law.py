"""Error margins of a release under equalities alone, where the noise has one law for all data.

For conditioning on the sums of a tree, the law of a single node's noise is known exactly. For
other sums, imaging, sums of nodes, and many nodes at once, margins come from simulated noise; their
coverage is proved all the same. The noise of the release and of N simulated releases are
exchangeable, so a statistic of the release exceeds its k-th smallest simulated value with
probability at most 1 - k / (N + 1), taken over the simulation too (Vovk, Gammerman and Shafer 2005,
Section 2.3). The error of imaging does not depend on the true counts, because these satisfy the
equalities. Under inequalities, the error depends on the confidential counts: see `inversion`, or
publish measurements and use `congenial.posterior`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial import sum_network
from congenial.conditioning.laws.cycles import WithCycles
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.questions import find_nodes
from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, UnsupportedError
from congenial.imaging.top_down import TopDown
from congenial.imaging.update import Imaged
from congenial.inference.simulated import MANY_VALUES, batches, largest, order_statistic, rank
from congenial.noise.additive import checked_alpha
from congenial.randomness import Randomness, resolve
from congenial.types import IntArray

# Most simulated errors in memory at once; of each node, only the largest errors are kept.
_MOST_ERRORS = 1 << 27

Mechanism = Conditioned | Imaged | TopDown


def error_margins(
    mechanism: Mechanism, alpha: float = 0.1, *, size: int = 9_999, rng: Randomness | None = None
) -> IntArray:
    """Error margin of every node, each for its node alone.

    Parameters
    ----------
    mechanism : Conditioned, Imaged or TopDown
        Under equalities alone.
    alpha : float
        Between 0 and 1.
    size : int
        Number of simulated releases, at least ``1 / alpha - 1``. None are needed for conditioning
        on the sums of a tree, whose law is known.
    rng : Randomness, optional
        For the simulated releases; `secure()` by default.

    Returns
    -------
    ndarray of int64, shape (n,)
        The true count lies between ``released - margin`` and ``released + margin`` with probability
        at least 1 - alpha: over the release and any simulation. It is 0 for counts published
        exactly.

    Raises
    ------
    ArgumentError
        If alpha is not between 0 and 1, or the simulation has too few or too many images.
    UnsupportedError
        If inequalities make the law depend on the confidential counts.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> K = cg.condition(cg.Additive(cg.DiscreteLaplace(1.0), tree), cg.consistent(tree))
    >>> error_margins(K).tolist()
    [1, 1, 1]
    """
    checked_alpha(alpha)
    _check_data_free(mechanism)
    tree = _tree_of(mechanism)
    if tree is None or not isinstance(mechanism, Conditioned):
        return _simulated_margins(mechanism, alpha, size, rng)
    return sum_network.reaches(mechanism.whole_tables, tree, alpha)


def _tree_of(mechanism: Mechanism) -> Tree | None:
    """Return the tree whose sums are those of conditioned noise, if there is one."""
    tree = mechanism.resolved.tree
    if tree is None or not isinstance(mechanism, Conditioned) or isinstance(mechanism, WithCycles):
        return None
    forest = mechanism.forest
    return tree if forest.n == len(tree) and (forest.owner >= 0).all() else None


def error_margin_of_sum(
    mechanism: Mechanism,
    nodes: Sequence[int | str],
    alpha: float = 0.1,
    *,
    size: int = 9_999,
    rng: Randomness | None = None,
) -> int:
    """Error margin of the sum of several nodes, by simulation with proved coverage.

    Parameters
    ----------
    nodes : sequence of int or str
        A node given twice counts once.
    mechanism, alpha, size, rng
        As for `error_margins`. With more simulated releases, the margin varies less.

    Returns
    -------
    int
        The true sum lies between ``released - margin`` and ``released + margin`` with probability
        at least 1 - alpha, over the release and the simulation.

    Raises
    ------
    ArgumentError
        If no node is named, `alpha` is out of range, or `size` is too small for it.
    UnsupportedError
        If the errors depend on the counts, as under bounds; the message says what to do instead.
    """
    return error_margins_of_sums(mechanism, [nodes], alpha, size=size, rng=rng)[0]


def error_margins_of_sums(
    mechanism: Mechanism,
    sums: Sequence[Sequence[int | str]],
    alpha: float,
    *,
    size: int,
    rng: Randomness | None,
) -> list[int]:
    """Return `error_margin_of_sum` for each of several sums, from one simulation."""
    _check_data_free(mechanism)
    named = [find_nodes(mechanism.mechanism, mechanism.resolved, nodes) for nodes in sums]
    found = [list(dict.fromkeys(at)) for at in named]
    drawn = _draws(mechanism, size, alpha, rng)
    many = mechanism.mechanism.n * size > MANY_VALUES
    if isinstance(mechanism, Conditioned) and not isinstance(mechanism, WithCycles) and many:
        nodes = np.unique(np.concatenate(found)).astype(np.int64)
        alone = _draws_of_some(mechanism, nodes, size, rng)
        if alone is not None:
            drawn, found = alone, [np.searchsorted(nodes, at).tolist() for at in found]
    parts = [[np.abs(u[:, at].sum(axis=1)).astype(np.float64) for at in found] for u in drawn]
    # half a unit less than an integer cannot be an error, so rounding errors are below that
    return [
        int(np.ceil(order_statistic(np.concatenate(values), alpha) - 1e-9))
        for values in zip(*parts, strict=True)
    ]


def simultaneous_error_margins(
    mechanism: Mechanism,
    nodes: Sequence[int | str] | None = None,
    alpha: float = 0.1,
    *,
    size: int = 9_999,
    rng: Randomness | None = None,
) -> IntArray:
    """Error margins that hold for several nodes at once, by simulation with proved coverage.

    Each margin is the node's own margin times a factor that all nodes share.

    Parameters
    ----------
    nodes : sequence of int or str, optional
        Such as ``numpy.flatnonzero(tree.level == 2)``; by default all nodes.
    mechanism, alpha, size, rng
        As for `error_margins`.

    Returns
    -------
    ndarray of int64, shape (nodes,)
        With probability at least 1 - alpha, over the release and the simulation, every true count
        lies within its margin of the released count.

    Raises
    ------
    ArgumentError
        If no node is named, `alpha` is out of range, or `size` is too small for it.
    UnsupportedError
        If the errors depend on the counts, as under bounds; the message says what to do instead.
    """
    source = resolve(rng)
    own = error_margins(mechanism, alpha, size=size, rng=source)
    at = np.arange(own.size)
    if nodes is not None:
        found = find_nodes(mechanism.mechanism, mechanism.resolved, nodes)
        at = np.array(found, dtype=np.int64)
    return stretched(mechanism, own, [at], alpha, size=size, rng=source)[0]


def stretched(
    mechanism: Mechanism,
    own: IntArray,
    groups: Sequence[IntArray],
    alpha: float,
    *,
    size: int,
    rng: Randomness | None,
) -> list[IntArray]:
    """Multiply the nodes' own margins so that the margins of each group hold at once.

    Returns the margins of each group's nodes.
    """
    # half a unit more, so that a margin of 0 grows too
    widths = [own[at] + 0.5 for at in groups]
    parts = [
        [(np.abs(u[:, at]) / width).max(axis=1) for at, width in zip(groups, widths, strict=True)]
        for u in _draws(mechanism, size, alpha, rng)
    ]
    fixed, out = mechanism.resolved.determined, []
    for at, width, values in zip(groups, widths, zip(*parts, strict=True), strict=True):
        factor = order_statistic(np.concatenate(values), alpha)
        # errors are integers, and rounding must not exclude an error that equals the margin
        margin = np.floor(factor * width * (1.0 + 1e-12)).astype(np.int64)
        out.append(np.where(fixed[at], 0, margin))
    return out


def _check_data_free(mechanism: Mechanism) -> None:
    if not isinstance(mechanism, Conditioned | Imaged | TopDown):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give a result of condition(), image() "
            "or imaging.topdown_image() of congenial."
        )
    resolved = mechanism.resolved
    if _tree_of(mechanism) is None and resolved.equalities[1].any():
        raise UnsupportedError(
            "these error margins are simulated with all counts 0, which violate the sums of "
            "linear(); publish these sums by exactly()."
        )
    if resolved.has_inequalities:
        remedy = "publish measurements and use congenial.posterior()"
        if isinstance(mechanism, Conditioned):
            remedy = "use congenial.inference.inverted_intervals() of the release"
        raise UnsupportedError(
            f"error margins that hold for every dataset exist only without bounds; {remedy}, or "
            "drop the bounds."
        )
    if not isinstance(mechanism, Conditioned):
        known = resolved.pinned | np.isfinite(mechanism.mechanism.scales)
        free = np.flatnonzero(~replace(resolved, pinned=known).determined)
        if free.size:
            raise UnsupportedError(
                f"{resolved.name(int(free[-1]))} is neither measured nor determined by measured "
                "counts, so its error has no bound; give it a finite scale."
            )


def _simulated_margins(
    mechanism: Mechanism, alpha: float, size: int, rng: Randomness | None
) -> IntArray:
    """Error margin of every node, from simulated releases."""
    n = mechanism.mechanism.n
    drawn = _draws(mechanism, size, alpha, rng)
    kept = int(size) - rank(int(size), alpha) + 1
    if kept * n > _MOST_ERRORS:
        raise ArgumentError(
            f"size is {size}, which would keep {kept} errors for each of {n} nodes, beyond the "
            f"limit of memory; simulate at most {int(_MOST_ERRORS / n / alpha)} releases."
        )
    margin = np.ceil(largest(drawn, kept) - 1e-9).astype(np.int64)
    return np.where(mechanism.resolved.determined, 0, margin)


def _draws_of_some(
    mechanism: Conditioned, nodes: IntArray, size: int, rng: Randomness | None
) -> Iterator[npt.NDArray[Any]] | None:
    """Yield the noise of some different nodes, drawn without all others; None if impossible."""
    few = sum_network.draws_of_some(mechanism.whole_tables, nodes)
    if few is None:
        return None
    orientation = mechanism.forest.orientation[nodes]

    def draw(count: int, source: Randomness) -> npt.NDArray[Any]:
        return sum_network.sample(few, count, source) * orientation

    return batches(draw, nodes.size, int(size), resolve(rng))


def _draws(
    mechanism: Mechanism, size: int, alpha: float, rng: Randomness | None
) -> Iterator[npt.NDArray[Any]]:
    """Check the arguments, and yield the noise of `size` releases batch by batch."""
    checked_alpha(alpha)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1 / alpha - 1:
        raise ArgumentError(
            f"size is {size!r}; give a number of simulated releases of at least "
            f"{int(np.ceil(1 / alpha)) - 1}."
        )
    n = mechanism.mechanism.n
    nothing = np.zeros(n, dtype=np.int64)

    def draw(count: int, source: Randomness) -> npt.NDArray[Any]:
        return mechanism.sample(nothing, count, source)

    return batches(draw, n, int(size), resolve(rng))
