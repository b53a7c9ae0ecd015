"""The integer solutions of sums as a lattice, and moves that reach every one from every other.

Without bounds, the vectors of a basis connect all solutions. With bounds they may not, but random
sums of them do: the difference of any two solutions is such a sum, and the line between them lies
within the bounds (Hara, Aoki and Takemura 2012).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np

from congenial.kernels.chains import lattice
from congenial.kernels.numerics import laws
from congenial.randomness import Randomness
from congenial.sum_network.cutset.systems import Row, SumSystem, rows_touching, substitute
from congenial.sum_network.weights import Unary
from congenial.types import BoolArray, IntArray

# Limits: sums, their entries, entries of a basis, products to shorten it, and size of an entry.
_MOST_ROWS = 1 << 11
_MOST_GIVEN = 1 << 14
_MOST_ENTRIES = 1 << 22
_MOST_PRODUCTS = 1 << 30
_LARGEST = 1 << 31
# Most vectors that are added to a basis because of bounds.
_MOST_SHORT = 512
# Moves in a sweep for each vector of the basis (they are far cheaper than blocks), and average
# number of random words for one move.
_MOVES, _WORDS = 32, 4


@dataclass(frozen=True, eq=False)
class Lattice:
    """Integer vectors that change no sum."""

    dimension: int  # Number of leading vectors that are a basis.
    start: IntArray  # shape (vectors + 1,): Where each vector's entries begin.
    at: IntArray  # shape (entries,): The variables of each vector, and its values there.
    by: IntArray

    @property
    def moves(self) -> int:
        """Moves of a sweep, on average."""
        return _MOVES * self.dimension


@dataclass(frozen=True, eq=False)
class Walk:
    """Chains that move along a lattice; the arrays change in place."""

    lattice: Lattice
    direction: IntArray  # shape (chains, size): The sum of vectors that is being drawn.
    grows: BoolArray  # shape (chains,): Whether the sum needs another vector.

    @staticmethod
    def of(found: Lattice, chains: int, size: int) -> Walk:
        """Return chains that have drawn nothing."""
        zero = np.zeros((chains, size), dtype=np.int64)
        return Walk(found, zero, np.ones(chains, dtype=np.bool_))

    def sweep(self, unary: Unary, state: IntArray, source: Randomness) -> None:
        """Move the noise `state`, shape (chains, size), in place."""
        found, chains = self.lattice, state.shape[0]
        width = _WORDS * found.moves
        words = source.bits(chains * width).reshape(chains, width)
        law, bounds = (unary.kind, unary.scale, unary.center), (unary.lo, unary.hi)
        vectors = (found.start, found.at, found.by, found.dimension)
        lattice.walk(*vectors, law, bounds, words, self.direction, self.grows, state)


def lattice_of(system: SumSystem, unary: Unary, counted: BoolArray) -> Lattice | None:
    """Return short vectors of the solutions; None if the sums are too large to find them."""
    free = np.array(system.free, dtype=np.int64)
    entries = sum(map(len, system.rows))
    if len(system.rows) > _MOST_ROWS or max(entries, free.size) > _MOST_GIVEN:
        return None
    measured = unary.kind[free] != laws.FLAT
    weight = 1.0 / np.where(measured, unary.scale[free], np.inf) ** 2
    # unmeasured variables count least
    weight = np.maximum(weight, 1e-6 * float(weight[measured].min(initial=1.0)))
    basis = integer_kernel(system.rows, free.tolist(), weight.tolist())
    if basis is None:
        return None
    k, n = basis.shape
    if 0 < k * k * n <= _MOST_PRODUCTS:
        lattice.shorten(basis, weight)
        few = None
        if counted[free].any():
            few = integer_kernel(system.rows, free.tolist(), counted[free].astype(float).tolist())
        if few is not None:
            lattice.shorten(few, np.where(counted[free], 1.0, 1e-6 * weight / weight.max()))
            basis = np.vstack((basis, _short(few, counted[free])))
    vector, column = np.nonzero(basis)
    start = np.searchsorted(vector, np.arange(basis.shape[0] + 1)).astype(np.int64)
    return Lattice(k, start, free[column], np.ascontiguousarray(basis[vector, column]))


def _short(basis: IntArray, counted: BoolArray) -> IntArray:
    """Extend a basis by sums and differences that change no more of the counted variables.

    The shortest vectors are combined first, with all others found so far, up to `_MOST_SHORT`.
    """
    found = _one_way(basis)
    seen = {row.tobytes() for row in found}
    done: set[int] = set()
    while found.shape[0] < _MOST_SHORT:
        size = np.abs(found[:, counted]).sum(axis=1)
        i = next((j for j in np.argsort(size, kind="stable").tolist() if j not in done), -1)
        if i < 0:
            break
        done.add(i)
        fresh = []
        for sign in (1, -1):
            both = found + sign * found[i]
            shorter = np.abs(both[:, counted]).sum(axis=1) <= np.maximum(size, size[i])
            for row in _one_way(both[shorter & both.any(axis=1)]):
                if row.tobytes() not in seen:
                    seen.add(row.tobytes())
                    fresh.append(row)
        if fresh:
            found = np.vstack((found, fresh[: _MOST_SHORT - found.shape[0]]))
    return found


def _one_way(vectors: IntArray) -> IntArray:
    """Turn vectors so that the first entry of each that is not zero is positive."""
    lead = vectors[np.arange(vectors.shape[0]), (vectors != 0).argmax(axis=1)]
    return np.ascontiguousarray(vectors * np.sign(lead)[:, None])


def integer_kernel(
    rows: tuple[Row, ...], free: list[int], rank: Sequence[float] = ()
) -> IntArray | None:
    """Return a basis of the integer solutions of sums, shape (k, len(free)).

    A variable is expressed by the others of its row. If its coefficient is not 1 or -1, the
    expression holds up to a multiple of the coefficient, and the multiple is a new variable (Knuth
    1997, section 4.5.2). Returns None if the basis would have more than 2^22 entries, or an entry
    beyond 2^31.
    """
    left = {k: dict(row) for k, row in enumerate(rows) if row}
    touching = {v: set[int]() for v in free}
    touching |= {v: set(of) for v, of in rows_touching(rows).items()}
    solved: list[tuple[int, Row]] = []
    fresh = max(free, default=-1) + 1
    ranks = dict(zip(free, rank, strict=True)) if len(rank) else dict.fromkeys(free, 0.0)
    entries = sum(map(len, left.values()))
    while left:
        # lowest ranks first
        lowest = {k: min(ranks[v] for v in row) for k, row in left.items()}
        k = min(left, key=lambda k: (lowest[k], len(left[k]), k))
        row, shared = left[k], gcd(*left[k].values())
        v = min(row, key=lambda v: (abs(row[v]), ranks[v], len(touching[v]), v))
        lead = row[v] // shared
        equals = {w: -(a // shared // lead) for w, a in row.items() if w != v}
        equals = {w: a for w, a in equals.items() if a}
        if abs(lead) != 1:
            equals[fresh] = 1
            touching[fresh], ranks[fresh] = set(), ranks[v]
            fresh += 1
        for j in touching.pop(v):
            entries += substitute(left[j], v, equals, touching, j)
            if not left[j]:
                del left[j]
        solved.append((v, equals))
        entries += len(equals)
        if entries > _MOST_ENTRIES:
            return None
    return _expressed(solved, free, sorted(touching))


def _expressed(
    solved: list[tuple[int, Row]], free: list[int], parameters: list[int]
) -> IntArray | None:
    """Return the coefficient of each parameter in every variable, a row for each parameter."""
    if len(parameters) * len(free) > _MOST_ENTRIES:
        return None
    found: dict[int, Row] = {v: {j: 1} for j, v in enumerate(parameters)}
    for v, equals in reversed(solved):
        total: Row = {}
        for w, a in equals.items():
            for j, b in found[w].items():
                total[j] = total.get(j, 0) + a * b
        found[v] = {j: b for j, b in total.items() if b}
        if any(abs(b) > _LARGEST for b in found[v].values()):
            return None
    basis = np.zeros((len(parameters), len(free)), dtype=np.int64)
    for column, v in enumerate(free):
        basis[list(found[v]), column] = list(found[v].values())
    return basis
