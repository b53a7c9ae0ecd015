"""A prior that knows the hierarchy: every node's count is split among its children."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.errors import ArgumentError
from congenial.types import FloatArray


class SplitGradient(NamedTuple):
    """Derivatives with respect to the alpha of every node of a `DirichletTree`, shape (n,).

    They are 0 for roots. The odds, `DirichletTree.odds`, are constants.
    """

    alpha: FloatArray


@dataclass(frozen=True, eq=False)
class DirichletTree:
    """Dirichlet-multinomial splits from the roots down, under a flat prior of the roots' counts.

    Given a node's count, its children's counts have the Dirichlet-multinomial law of their
    `alpha`: the count is split by probabilities drawn from a Dirichlet law. A child's expected
    probability is its alpha over the sum of alpha of all children. The smaller this sum, the more
    the probabilities of one family differ from those of another, and the more children are empty.

    Parameters
    ----------
    alpha : array_like, shape (n,)
        Positive parameters, one for each node within its parent's split; entries of roots are not
        used.
    odds : float or array_like, shape (n,)
        Nonnegative factors, one for each node: in the node's split, each child's count of 0 has
        ``1 + odds`` times its weight, and the law is normalised. 0 by default; where it is
        positive, all children of the node have the same alpha.

    Raises
    ------
    ArgumentError
        If an alpha is no positive number of at most 2^40.

    References
    ----------
    Mosimann (1962), Biometrika 49, for one split; Minka (1999), "The Dirichlet-tree distribution".
    """

    alpha: FloatArray
    odds: FloatArray

    def __init__(self, alpha: npt.ArrayLike, odds: npt.ArrayLike = 0.0) -> None:
        """Check the numbers."""
        array = np.asarray(alpha)
        if array.dtype.kind not in "iuf" or array.ndim != 1:
            raise ArgumentError("alpha is no vector of numbers; give one number for each node.")
        real = array.astype(np.float64)
        if not ((real > 0.0) & (real <= 2.0**40)).all():
            raise ArgumentError(
                "alpha has an entry that is not positive, or larger than 2^40; give positive ones."
            )
        object.__setattr__(self, "alpha", real)
        more = np.asarray(odds)
        if more.dtype.kind not in "iuf" or more.shape not in ((), real.shape):
            raise ArgumentError("odds is neither a number nor one for each node; give either.")
        if not ((more >= 0.0) & (more <= 2.0**40)).all():
            raise ArgumentError("odds has an entry outside 0 to 2^40; give nonnegative ones.")
        object.__setattr__(self, "odds", np.broadcast_to(more.astype(np.float64), real.shape))

    def odds_of(self, tree: Tree) -> FloatArray:
        """Return the odds of each inner node, shape (n,).

        Raises
        ------
        ArgumentError
            If children have different alpha below a node with positive odds.
        """
        child = np.flatnonzero(tree.parents >= 0)
        odds = np.where(tree.is_leaf, 0.0, self.odds)
        starts, children = tree.children
        parent = tree.parents[child]
        first = self.alpha[children[np.minimum(starts[parent], max(children.size - 1, 0))]]
        unlike = np.abs(self.alpha[child] - first) > 1e-9 * first
        if (unlike & (odds[parent] > 0.0)).any():
            raise ArgumentError(
                "odds is positive for a node whose children have different alpha; give them the "
                "same, or odds of 0."
            )
        return odds

    def totals(self, tree: Tree) -> FloatArray:
        """Return the sum of the children's alpha, shape (n,); 0 of leaves.

        Raises
        ------
        ArgumentError
            If there are not as many entries as nodes.
        """
        n = len(tree)
        if self.alpha.size != n:
            raise ArgumentError(f"the prior has {self.alpha.size} entries of alpha; give {n}.")
        child = np.flatnonzero(tree.parents >= 0)
        out: FloatArray = np.zeros(n)
        np.add.at(out, tree.parents[child], self.alpha[child])
        return out
