"""Draws of an update: noise first, and then each vector moved."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from congenial.errors import ArgumentError
from congenial.invariants.resolved import ResolvedInvariant
from congenial.noise.additive import Additive, checked_size, rolled_up
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray

Values = FloatArray | IntArray


def updated(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    update: Callable[[Values, Randomness], Values],
    x: npt.ArrayLike,
    size: int | None,
    rng: Randomness | None,
    *,
    integer: bool,
) -> Values:
    """Draw noisy values and update each of them.

    Returns
    -------
    ndarray, shape (n,) or (size, n)
        int64 where `integer`, float64 otherwise.

    Raises
    ------
    ArgumentError
        If `x` has the wrong shape or does not add up.
    """
    rows, source = checked_size(size), resolve(rng)
    noisy = measured(mechanism, resolved, x, rows, source)
    shape = (rows, resolved.n)
    out: Values = np.empty(shape, dtype=np.int64) if integer else np.empty(shape)
    for r in range(rows):
        out[r] = update(noisy[r], source)
    return out[0] if size is None else out


def measured(
    mechanism: Additive,
    resolved: ResolvedInvariant,
    x: npt.ArrayLike,
    size: int | None,
    rng: Randomness | None,
) -> Values:
    """Draw noisy values, exact ones where the invariant publishes them.

    Returns
    -------
    ndarray, shape (n,) or (size, n)
        As of `Additive.sample` where nothing is published exactly.

    Raises
    ------
    ArgumentError
        If `x` has the wrong shape or does not add up.
    """
    counts = mechanism.counts(x)
    if not _adds_up(resolved, counts):
        raise ArgumentError(f"x does not add up; {rolled_up(resolved.workload)}.")
    return np.where(resolved.pinned, counts, mechanism.sample(counts, size, rng))


def _adds_up(resolved: ResolvedInvariant, counts: npt.NDArray[np.int64 | np.float64]) -> bool:
    if resolved.sums is None or counts.dtype.kind == "i":
        return bool(resolved.adds_up(counts))
    gaps = np.abs(resolved.sums.gaps(counts))
    return bool((gaps <= 1e-9 * (1.0 + np.abs(counts).max())).all())
