"""TopDown on one forest, set up once for many vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.errors import NumericalError
from congenial.imaging.solvers.active_set import Levels, levels
from congenial.imaging.solvers.problem import (
    LARGEST,
    NO_WORDS,
    TOLERANCE,
    Links,
    as_floats,
    checked_values,
    link,
    prepare,
)
from congenial.invariants.resolved import ResolvedInvariant
from congenial.kernels.numerics.trees import read_only
from congenial.kernels.projection.check import reach
from congenial.kernels.projection.top_down import DONE, INFEASIBLE, SHARED, descend
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray, Words

Shares = npt.NDArray[np.uint16]


def words_for(n: int) -> int:
    """Return the number of words by which ties of n nodes are broken."""
    return -(-n // SHARED)


def shares(read: Callable[[int, int], Words], first: int, count: int) -> Shares:
    """Return the bits of `count` nodes from one on; `read` gives words by the same arguments."""
    skipped = first % SHARED
    words = read(first // SHARED, words_for(skipped + count))
    bits = words.astype("<u8").view("<u2")[skipped : skipped + count]
    return bits.astype(np.uint16)


def joined(bits: Shares) -> Words:
    """Return the words of nodes that have these bits each."""
    padded = np.zeros(SHARED * words_for(bits.size), dtype="<u2")
    padded[: bits.size] = bits
    return padded.view("<u8").astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Descent:
    """Consistency and bounds imposed family by family, parents first."""

    tree: Tree
    resolved: ResolvedInvariant  # The tree, pins and bounds, without further linear conditions.
    integer: bool

    @cached_property
    def _links(self) -> Links:
        return link(self.tree, self.resolved.n)

    @cached_property
    def levels(self) -> Levels:
        """The tree as the kernel reads it."""
        return levels(self._links)

    @cached_property
    def _ranges(self) -> tuple[FloatArray, FloatArray, bool]:
        """Bounds of the nodes, tightened to the ranges of subtrees; and whether they can hold."""
        lo, hi = self.resolved.lo.copy(), self.resolved.hi.copy()
        if self.integer:
            lo, hi = np.ceil(lo), np.floor(hi)
        return lo, hi, reach(self._links.forest, 0.0, lo, hi) < 0

    @cached_property
    def _placed(self) -> tuple[FloatArray, FloatArray, bool]:
        """The tightened bounds by place, and whether there are upper ones."""
        lo, hi, _ = self._ranges
        return self.levels.placed(lo), self.levels.placed(hi), bool((hi < np.inf).any())

    @cached_property
    def _pins(self) -> tuple[npt.NDArray[np.bool_], IntArray]:
        """Whether each root is pinned, by place, and the pins that are no roots."""
        pinned, root = self.resolved.pinned, self.tree.parents < 0
        return np.array(self.levels.placed(pinned)[: root.sum()]), np.flatnonzero(pinned & ~root)

    def apply(self, y: npt.ArrayLike, source: Randomness) -> FloatArray | IntArray:
        """Return a vector that keeps the invariant, shape (n,): int64 where `integer`.

        Raises ArgumentError if `y` has the wrong shape, or a number is not finite or beyond 2^53;
        InfeasibleError if nothing satisfies the invariant; NumericalError if the numbers are too
        far apart for double precision.
        """
        resolved, laid = self.resolved, self.levels
        values = as_floats(y, resolved.n)
        if resolved.relative.size:
            return replace(self, resolved=resolved.with_pins(values)).apply(values, source)
        lo, hi, capped = self._placed
        sound = self._ranges[2]
        fixed, pins = self._pins
        if pins.size:
            lo, hi = self._ranges[0].copy(), self._ranges[1].copy()
            kept = values[pins]
            sound = sound and bool(((kept >= lo[pins]) & (kept <= hi[pins])).all())
            lo[pins] = hi[pins] = kept
            slack = 0.0 if self.integer else TOLERANCE * max(1.0, float(np.abs(values).max()))
            sound = sound and reach(self._links.forest, slack, lo, hi) < 0
            lo, hi, capped = laid.placed(lo), laid.placed(hi), True
        words = source.bits(words_for(resolved.n)) if self.integer else NO_WORDS
        z = np.empty(resolved.n)
        state = INFEASIBLE
        if sound:
            given = read_only(values)
            state = descend(laid.rows, laid.order, fixed, lo, hi, capped, given, LARGEST, words, z)
        if state != DONE:
            self._refuse(values)
        return z.astype(np.int64) if self.integer else z

    def _refuse(self, values: FloatArray) -> NoReturn:
        """Raise the error for a family without a solution."""
        resolved = self.resolved
        domain = resolved.workload or self.tree
        values = checked_values(values, resolved.n, np.ones(resolved.n, dtype=np.bool_), domain)
        # raises if the invariants are infeasible
        prepare(
            self._links, resolved, np.zeros(0), values, np.ones(resolved.n), integer=self.integer
        )
        raise NumericalError(
            "topdown cannot keep the sums exact in double precision; give values of similar size."
        )
