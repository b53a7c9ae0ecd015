"""Checks of the arguments of conditional mechanisms: nodes, releases, counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from congenial.domain.given import several
from congenial.errors import ArgumentError, InvariantError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive, rolled_up
from congenial.types import Values


def find_node(mechanism: Additive, resolved: ResolvedInvariant, node: int | str) -> int:
    """Return the index of a node."""
    tree = mechanism.tree or resolved.tree
    if tree is not None:
        return tree.find(node)
    number = isinstance(node, int | np.integer) and not isinstance(node, bool)
    if not number or not 0 <= int(node) < mechanism.n:
        raise ArgumentError(f"node is {node!r}; give 0 to {mechanism.n - 1}.")
    return int(node)


def find_nodes(
    mechanism: Additive, resolved: ResolvedInvariant, nodes: Sequence[int | str]
) -> list[int]:
    """Return the indices of several nodes."""
    return [find_node(mechanism, resolved, node) for node in several(nodes)]


def checked_rows(mechanism: Additive, z: npt.ArrayLike) -> npt.NDArray[np.generic]:
    """Return releases as an array of numbers, shape (n,) or (size, n)."""
    try:
        values = np.asarray(z)
    except ValueError:  # rows of different lengths
        values = np.empty(0, dtype=object)
    if values.dtype.kind not in "biuf":
        raise ArgumentError(f"z is not an array of numbers; give {mechanism.n} values.")
    if values.ndim not in (1, 2) or values.shape[-1] != mechanism.n:
        raise ArgumentError(
            f"z has shape {values.shape}; give {mechanism.n} values, or rows of that length."
        )
    return values


def checked_counts(
    mechanism: Additive, resolved: ResolvedInvariant, x: npt.ArrayLike, *, bounds_hold: bool = True
) -> npt.NDArray[np.int64]:
    """Return counts, shape (n,), after checking that they satisfy the invariant themselves."""
    counts = mechanism.counts(x).astype(np.int64, copy=False)
    matrix, value = resolved.equalities
    check_equalities(resolved, counts, met=np.array_equal(matrix @ counts, value))
    if bounds_hold:
        within = bool(resolved.with_pins(counts).within_bounds(counts))
        check_inequalities(resolved, counts, within=within)
    return counts


def check_equalities(resolved: ResolvedInvariant, values: Values, *, met: bool) -> None:
    """Refuse data that do not add up or do not meet the linear conditions (not `met`)."""
    if not resolved.adds_up(values):
        raise ArgumentError(f"x does not add up; {rolled_up(resolved.workload)}.")
    if not met:
        raise InvariantError(
            "x does not satisfy a linear condition; the condition's value must be that of the data."
        )


def check_inequalities(resolved: ResolvedInvariant, values: Values, *, within: bool) -> None:
    """Refuse data that violate an at_least() condition or, if not `within`, a bound."""
    matrix, value = resolved.inequalities
    if not within or not (matrix @ values >= value).all():
        broken = "an at_least() condition" if within else "the bounds of some entry"
        raise InvariantError(
            f"x violates {broken}, and conditioning needs data that satisfy the invariant; relax "
            "the bounds, or use TopDown, imaging or the posterior, whose tables satisfy it "
            "whatever the data."
        )
