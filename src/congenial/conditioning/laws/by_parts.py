"""The conditional mechanism of a tree, drawn part by part in the memory of one part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy.typing as npt

from congenial.accounting.guarantee import Guarantee, Neighbours
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.conditioning.laws.questions import checked_counts
from congenial.domain.tree import TreeSplit
from congenial.errors import UnsupportedError
from congenial.invariants.resolved import ResolvedInvariant, checked_draws
from congenial.noise.additive import checked_size
from congenial.randomness import Randomness, resolve
from congenial.sum_network.joined import SplitSums
from congenial.types import IntArray


@dataclass(frozen=True, eq=False)
class ConditionedByParts:
    """A mechanism on a tree, conditioned and drawn part by part; made by `condition_by_parts`.

    The law and the guarantee are those of the mechanism drawn at once.
    Memory holds the tables of the top, or those of one part.

    Attributes
    ----------
    whole : Conditioned
        The mechanism of the whole tree.
    split : TreeSplit
        The tree, cut at a level.
    """

    whole: Conditioned
    split: TreeSplit

    @property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and its law, for every dataset."""
        return self.whole.error_bound

    def guarantee(self, neighbours: Neighbours) -> Guarantee:
        """Privacy guarantee of one draw; see `Conditioned.guarantee`."""
        return self.whole.guarantee(neighbours)

    def sample(
        self, x: npt.ArrayLike, size: int | None = None, rng: Randomness | None = None
    ) -> IntArray:
        """Draw releases, each independent and exactly from the law.

        The tables of each part are filled twice: for its message, and for its draws. A draw that
        some part refuses is repeated, which is rare.

        Parameters
        ----------
        x : array_like of int, shape (n,)
            Confidential values of all nodes, which satisfy the invariant.
        size : int, optional
            Number of draws; by default one vector.
        rng : Randomness, optional
            `secure()` by default.

        Returns
        -------
        ndarray of int64, shape (n,) or (size, n)

        Raises
        ------
        ArgumentError, InvariantError
            If `x` has the wrong shape, does not add up, or violates a bound.
        UnsupportedError, NumericalError
            If the tables of a part or of the top would be too large, or hold too little of the
            noise.
        """
        counts, rows = self._checked(x), checked_size(size)
        out = self.sums(counts).draw(rows, resolve(rng))
        out += counts
        checked_draws(self.whole.resolved, out, counts)
        return out[0] if size is None else out

    def sums(self, counts: IntArray) -> SplitSums:
        """Return the sums and weights of the noise, given counts that satisfy the invariant."""
        return self.whole.split_sums(counts, self.split)

    def _checked(self, x: npt.ArrayLike) -> IntArray:
        return checked_counts(self.whole.mechanism, self.whole.resolved, x)


def by_parts(whole: Conditioned, split: TreeSplit) -> ConditionedByParts:
    """Return a conditioned mechanism that is drawn in parts; raises as `check_apart`."""
    check_apart(whole.resolved)
    return ConditionedByParts(whole, split)


def check_apart(resolved: ResolvedInvariant) -> None:
    """Refuse an invariant that joins counts other than by the sums of the tree.

    Raises UnsupportedError.
    """
    if resolved.joins_parts:
        raise UnsupportedError(
            "an invariant compares or adds up counts of several parts; leave out linear(), "
            "at_least() and at_least_as_many(), or draw the whole tree at once."
        )
