"""`posterior_by_parts(y, M, C, level)`: the law of the true counts, drawn part by part."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from congenial.conditioning.laws.by_parts import check_apart
from congenial.domain.tree import Tree, TreeSplit
from congenial.errors import UnsupportedError
from congenial.inference.measured import Problem, pose
from congenial.inference.posteriors import PriorName
from congenial.inference.priors import Prior
from congenial.inference.splits.dirichlet_tree import DirichletTree
from congenial.invariants.written import Invariant
from congenial.noise.additive import Additive, checked_size
from congenial.randomness import Randomness, resolve
from congenial.sum_network import SharedUnary, share_unary
from congenial.sum_network.joined import SplitSums
from congenial.types import IntArray


def posterior_by_parts(
    y: npt.ArrayLike,
    mechanism: Additive,
    invariant: Invariant,
    level: int,
    prior: PriorName | Prior | DirichletTree = "flat",
) -> PosteriorByParts:
    """Return the law of a tree's true counts given noisy measurements, drawn part by part.

    The tree is cut at a level, into the top and a part below each node of the level. Memory holds
    the tables of the top, or those of one part; the tables of each part are filled twice. The law
    is that of `congenial.posterior`. Only `y` is used, so it costs no privacy.

    Parameters
    ----------
    y : array_like, shape (n,)
        As for `congenial.posterior`.
    mechanism : Additive
        The noise of the measurements, which must be discrete; they may come from elsewhere.
    invariant : Invariant
        ``consistent(tree)``, with any pins and bounds.
    level : int
        Depth of the level; 0 is that of the roots.
    prior : {"flat"}
        Other priors are refused.

    Returns
    -------
    PosteriorByParts

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, shape or value, or there are no nodes below the level.
    InfeasibleError
        If no counts satisfy the invariant.
    UnsupportedError
        If the prior is not flat, the noise is not on the integers, or the invariant is more than a
        tree, pins and bounds.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_paths(["all/a/1", "all/a/2", "all/b/3", "all/b/4"])
    >>> M = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    >>> known = cg.consistent(tree) & cg.nonnegative()
    >>> y = [11, 6, 5, -1, 3, 2, 4]
    >>> law = cg.inference.posterior_by_parts(y, M, known, 1)
    >>> tree.is_consistent(law.sample(10, rng=cg.seeded(1)))
    True
    """
    if not (isinstance(prior, str) and prior == "flat"):
        given = repr(prior) if isinstance(prior, str) else f"a {type(prior).__name__}"
        raise UnsupportedError(
            f"prior is {given}, and only the flat prior is drawn in parts; give prior='flat', or "
            "draw the whole tree at once with congenial.posterior()."
        )
    problem = pose(y, mechanism, invariant, nonnegative_leaves=False)
    check_apart(problem.resolved)
    return PosteriorByParts(problem, problem.tree.split(level))


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorByParts:
    """The law of a tree's true counts under a flat prior; made by `posterior_by_parts`.

    Draws have exactly the law of the posterior. Memory holds the tables of the top, or those of one
    part.

    Attributes
    ----------
    problem : Problem
        The measurements of the whole tree, and the invariant.
    split : TreeSplit
        The tree, cut at a level.
    """

    problem: Problem
    split: TreeSplit

    @property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and the posterior law; proved."""
        return 0.0

    def sample(self, size: int | None = None, rng: Randomness | None = None) -> IntArray:
        """Draw independent trees of counts, exactly from the posterior law.

        The first call fills the tables of each part for its message; each call fills them again. A
        draw that some part refuses is repeated, which is rare.

        Parameters
        ----------
        size : int, optional
            Number of draws; by default, one vector.
        rng : Randomness, optional
            `secure()` by default.

        Returns
        -------
        ndarray of int64, shape (n,) or (size, n)

        Raises
        ------
        UnsupportedError
            If a flat prior gives a part no law of its own, or tables would be too large.
        NumericalError
            If the tables hold too little of the noise.
        """
        rows = checked_size(size)
        out = self.sums.draw(rows, resolve(rng))
        out += self._center
        self.problem.checked(out, None)
        return out[0] if size is None else out

    @cached_property
    def sums(self) -> SplitSums:
        """The sums of counts, and the weights of their measurements."""

        def weights_of(nodes: IntArray, _: Tree) -> SharedUnary:
            return share_unary(self.problem.unary(self._center, nodes))

        return SplitSums(self.split, weights_of)

    @cached_property
    def _center(self) -> IntArray:
        """The tree of counts at the zero of the weights, shape (n,)."""
        return self.problem.around(np.zeros(self.problem.tree.leaves.size))
