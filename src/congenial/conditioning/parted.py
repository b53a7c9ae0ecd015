"""`condition_by_parts(M, C, level)`: condition a mechanism on a tree, and draw it part by part."""

from __future__ import annotations

from congenial.conditioning.choice import condition
from congenial.conditioning.laws.by_parts import ConditionedByParts, by_parts
from congenial.conditioning.laws.forest_sampler import Conditioned
from congenial.errors import UnsupportedError
from congenial.invariants.written import Invariant
from congenial.noise.additive import Additive


def condition_by_parts(mechanism: Additive, invariant: Invariant, level: int) -> ConditionedByParts:
    """Condition a mechanism on an invariant of a tree, and draw it part by part.

    The tree is cut at a level, into the top and a part below each node of the level. Memory holds
    the tables of the top, or those of one part; the tables of each part are filled twice. The law
    and the guarantee are those of `condition`.

    Parameters
    ----------
    mechanism : Additive
        Discrete noise on a tree.
    invariant : Invariant
        Consistency, bounds, and nodes published exactly.
    level : int
        Depth of the level; 0 is that of the roots.

    Returns
    -------
    ConditionedByParts

    Raises
    ------
    ArgumentError
        If there are no nodes below the level.
    UnsupportedError
        If the noise is continuous, the queries are no tree, or an invariant joins counts other than
        by the sums of the tree.
    InvariantError, InfeasibleError
        As `condition`.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_paths(["all/a/1", "all/a/2", "all/b/3", "all/b/4"])
    >>> noisy = cg.Additive(cg.DiscreteLaplace(2.0), tree)
    >>> obeying = cg.consistent(tree) & cg.nonnegative()
    >>> parted = cg.conditioning.condition_by_parts(noisy, obeying, 1)
    >>> released = parted.sample(tree.roll_up([5, 0, 2, 3]), rng=cg.seeded(1))
    >>> tree.is_consistent(released)
    True
    """
    whole = condition(mechanism, invariant, "exact")
    tree = mechanism.tree
    if type(whole) is not Conditioned or tree is None or whole.resolved.tree is not tree:
        raise UnsupportedError(
            "only integer noise on a tree whose counts add up can be drawn in parts; give "
            "DiscreteLaplace or DiscreteGaussian noise on a Tree, and consistent(tree)."
        )
    return by_parts(whole, tree.split(level))
