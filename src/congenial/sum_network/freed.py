"""Sums that constrain nothing, because one variable has no weight, no bound and no other sum.

Such a variable takes the value that its sum needs, so the others have the law that they have
without that sum. Tables are filled without the sum, and the variable is computed from the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from congenial.kernels.numerics import laws
from congenial.sum_network.forest import SumForest
from congenial.sum_network.weights import SharedUnary, Unary
from congenial.types import BoolArray, IntArray

Places = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Freed:
    """Variables that are added up from others once these are drawn."""

    follows: BoolArray  # shape (n,)
    # (variables, starts, terms, signs) in the order of addition. Variable i of a round is the sum
    # of signs times values at ``terms[starts[i] : starts[i + 1]]``.
    rounds: tuple[tuple[Places, Places, Places, Places], ...]

    def add_up(self, values: IntArray) -> None:
        """Fill the rows of these variables in `values`, shape (n or more, draws)."""
        for variables, starts, terms, signs in self.rounds:
            values[variables] = np.add.reduceat(signs[:, None] * values[terms], starts, axis=0)


def free_sums(
    forest: SumForest, weights: SharedUnary
) -> tuple[SumForest, SharedUnary, Freed] | None:
    """Return the forest without sums that constrain nothing, and its weights; None without any.

    The law is proper. Variables that follow keep their places, at 0 and in no sum.
    """
    unary, code = weights.unary, weights.code
    free = (unary.kind == laws.FLAT) & np.isneginf(unary.lo) & np.isposinf(unary.hi)
    if not free.any():
        return None
    n, m = forest.n, forest.m
    left, follows, rounds = np.ones(m, dtype=np.bool_), np.zeros(n, dtype=np.bool_), []
    above, owner, sign = forest.above.astype(np.intp), forest.owner.astype(np.intp), forest.sign
    while True:
        # every term of a sum that is left, summands and then owners
        summands = np.flatnonzero(above >= 0)
        summands = summands[left[above[summands]]]
        owned = np.flatnonzero(left & (owner >= 0))
        terms, sums = np.append(summands, owner[owned]), np.append(above[summands], owned)
        signs = np.append(np.ones(summands.size, dtype=np.intp), -sign[owned].astype(np.intp))
        alone = free[code[terms]] & (np.bincount(terms, minlength=n)[terms] == 1)
        if not alone.any():
            break
        # a proper law has at most one such variable in a sum
        dropped, first = np.unique(sums[alone], return_index=True)
        result, own = terms[alone][first], signs[alone][first]
        of = np.full(m, -1)
        of[dropped] = np.arange(dropped.size)
        at = np.flatnonzero(of[sums] >= 0)
        at = at[terms[at] != result[of[sums[at]]]]
        at = at[np.argsort(of[sums[at]], kind="stable")]
        number = of[sums[at]]
        filled, starts = np.unique(number, return_index=True)  # a sum may have no other term
        rounds.append((result[filled], starts, terms[at], -own[number] * signs[at]))
        follows[result], left[dropped] = True, False
    if left.all():
        return None
    renumbered = np.append(np.where(left, np.cumsum(left) - 1, -1), -1).astype(np.int32)
    joined = replace(
        forest,
        above=renumbered[forest.above],
        owner=forest.owner[left],
        sign=forest.sign[left],
        depth=forest.depth[left],
    )
    with_zero = Unary(
        np.append(unary.kind, laws.LAPLACE),
        np.append(unary.scale, 1.0),
        *(np.append(ends, 0.0) for ends in (unary.center, unary.lo, unary.hi)),
    )
    numbers = np.where(follows, np.int32(unary.kind.size), code)
    return joined, SharedUnary(with_zero, numbers), Freed(follows, tuple(reversed(rounds)))
