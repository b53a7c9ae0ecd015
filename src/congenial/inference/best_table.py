"""The mechanism that publishes the table of least expected error given noisy measurements."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from congenial.domain.tree import Tree
from congenial.errors import ArgumentError, InfeasibleError, NumericalError, UnsupportedError
from congenial.imaging.noisy import Moved
from congenial.imaging.update import Imaged
from congenial.inference.laws import evidence_of
from congenial.inference.measured import Problem, pose_resolved
from congenial.inference.point_tables import level_weights
from congenial.inference.posteriors import Posterior
from congenial.inference.splits.empirical_bayes import LevelSplits, fit_splits, splits_at
from congenial.inference.splits.messages import FAR_LAPLACE, FAR_NORMAL, Evidence
from congenial.invariants.feasibility.feasible import check_feasible
from congenial.invariants.resolved import checked_draws, inequalities_in_units
from congenial.invariants.written import Invariant, resolve_invariant
from congenial.kernels.numerics import laws
from congenial.noise.additive import Additive
from congenial.randomness import Randomness
from congenial.types import FloatArray, IntArray

Loss = Literal["l1", "l2"]

# Largest relative difference of expected losses that rounding on another machine can cause.
GAP = 1e-6
# Errors of a posterior that cannot be computed. The measurements are paid for by then, so the
# closest table is released instead.
REFUSED = (NumericalError, InfeasibleError, UnsupportedError, MemoryError)
# Most products of one pass over a tree: some 25 minutes if counts are large, and 6 minutes for the
# 3.3 million sparse cells of Washington's blocks at scale 20.
MOST_WORK = 4e11
_NO_TREE = (
    "the best table needs counts that form a tree; impose consistent(tree), and of a workload ask "
    "for margins each of which divides the one before."
)


@dataclass(frozen=True, eq=False)
class BestTable(Moved):
    """Noise, then the table of least expected error given the noisy counts (`Posterior.point`).

    The prior is a `DirichletTree`, fitted to the measurements of each release. The table is a
    function of the measurements alone, so it costs no more privacy than the measurements do.
    Absolute errors are averaged within each level and added up over the levels.

    Attributes
    ----------
    mechanism : Additive
    resolved : ResolvedInvariant
    loss : {"l1", "l2"}
    splits : LevelSplits or None
        The prior; None fits one.
    """

    loss: Loss = "l1"
    splits: LevelSplits | None = None

    def __post_init__(self) -> None:
        """Check that the counts are integers on a tree."""
        if self.resolved.tree is None:
            raise UnsupportedError(_NO_TREE)
        if self.mechanism.granularity != 1.0:
            raise UnsupportedError(
                f"the noise has granularity {self.mechanism.granularity:g}, and the best table has "
                "integers; give noise of granularity 1."
            )

    @property
    def whole(self) -> bool:
        """Releases are integers."""
        return True

    @property
    def tree(self) -> Tree:
        """The tree of the counts."""
        if self.resolved.tree is None:
            raise UnsupportedError(_NO_TREE)
        return self.resolved.tree

    def fitted(self, noisy: npt.ArrayLike) -> BestTable:
        """Return the mechanism with the prior of largest likelihood given the measurements."""
        return replace(self, splits=fit_splits(self._evidence(self._problem(noisy))))

    def law(self, noisy: npt.ArrayLike) -> Posterior:
        """Return the law of the counts given measurements."""
        problem = self._problem(noisy)
        known = self._evidence(problem)
        splits = fit_splits(known) if self.splits is None else self.splits
        return Posterior(problem, *splits_at(known, splits))

    @property
    def projection(self) -> Imaged:
        """Imaging, whose table is released if the posterior cannot be computed (`REFUSED`)."""
        return Imaged(self.mechanism, self.resolved, "l2", integer=True)

    def move(self, noisy: npt.ArrayLike, rng: Randomness) -> IntArray:
        """Return the table of least expected error."""
        return self.least(self.law(noisy), rng)

    def least(self, law: Posterior, rng: Randomness) -> IntArray:
        """Return the table of least expected error under a law of the counts."""
        if self.loss == "l2":
            return law.point("l2", rng=rng)
        return law.point("l1", rng=rng, weights=self._weights)

    def apply(self, noisy: npt.ArrayLike, rng: Randomness) -> IntArray:
        """Return the table of least expected error, or the closest table if it is not known.

        If a prior is given, a posterior that cannot be computed is refused instead (`REFUSED`).
        """
        try:
            table = self.move(noisy, rng)
        except REFUSED:
            if self.splits is not None:
                raise
            table = np.asarray(self.projection.move(noisy, rng), dtype=np.int64)
        return checked_draws(self.resolved, table, np.asarray(noisy))

    def follows(self, noisy: npt.ArrayLike, released: IntArray, rng: Randomness) -> bool:
        """Whether the released table has the least expected error, up to a relative `GAP`.

        Among equally good tables, one is chosen at random, and rounding differs between machines.
        """
        law = self.law(noisy)
        found = self.least(law, rng)
        if self.loss == "l2":
            mean = law.mean()  # the variances are the same for all tables
            errors = [float(((mean - table) ** 2).sum()) for table in (released, found)]
        else:
            errors = [law.expected_error(table, self._weights) for table in (released, found)]
        return errors[0] <= errors[1] + GAP * (1.0 + errors[1])

    def explain(self) -> str:
        """Explain how a release is drawn, and why."""
        n, pinned = self.resolved.n, int(self.resolved.pinned.sum())
        absolute = self.loss == "l1"
        error = "absolute" if absolute else "squared"
        alike = " Every level has the same weight in this error." * absolute
        late = (
            " With so many counts and so much noise, the posterior may take too long. Then the "
            "closest table is released instead, and the certificate says so."
        ) * (most_work(self.mechanism) > MOST_WORK)
        return (
            f"posterior: adds {self.mechanism.noise.name} noise to {n - pinned} of {n} counts "
            f"({pinned} published exactly), then releases the table of integers that satisfies the "
            f"invariant and has the least expected {error} error given the noisy counts.{alike} "
            "The prior says how a count is split among its parts; it is fitted to the noisy "
            "counts. Only the noisy counts and the exact counts are used, so this costs no "
            "privacy. Small counts are moved towards values that are typical of the other parts of "
            f"the same place.{late}"
        )

    @property
    def _weights(self) -> FloatArray:
        return level_weights(self.tree, self.resolved.pinned)

    def _evidence(self, problem: Problem) -> Evidence:
        """Return the measurements as the prior takes them; refuse those that take too long."""
        known = evidence_of(problem)
        check_work(work(known), self.resolved.n)
        return known

    def _problem(self, noisy: npt.ArrayLike) -> Problem:
        resolved = inequalities_in_units(self.resolved)
        return pose_resolved(noisy, self.mechanism, resolved, nonnegative_leaves=True)


def work(known: Evidence, own: slice = slice(None)) -> float:
    """Approximate the number of products of one pass over a tree, or over some of its nodes."""
    normal, leaf = known.kind == laws.GAUSSIAN, known.tree.is_leaf
    above = np.where(normal, FAR_NORMAL, FAR_LAPLACE) * known.scale
    below = np.clip(known.y, 0.0, above)  # counts are not negative
    # Laplace noise gives geometric laws, whose sums take no convolution
    above = np.where(leaf & (known.y <= 0) & ~normal, 0.0, above)
    widths = (below + above + 1.0)[own][known.kind[own] != laws.FLAT]
    return float(widths @ widths)


def most_work(mechanism: Additive) -> float:
    """Return the most work of any measurements, about; small counts need less."""
    far = FAR_NORMAL if mechanism.noise.kind == laws.GAUSSIAN else FAR_LAPLACE
    widths = 2.0 * far * mechanism.scales[np.isfinite(mechanism.scales)] + 1.0
    return float(widths @ widths)


def check_work(products: float, counts: int) -> None:
    """Refuse a posterior that takes too many products in each pass."""
    if products > MOST_WORK:
        raise UnsupportedError(
            f"the posterior of {counts:,} counts with this noise takes about {products:.2g} "
            f"products in each pass, and the limit is {MOST_WORK:.2g}; use "
            'method.name = "imaging", or less noise.'
        )


def best_table(mechanism: Additive, invariant: Invariant, loss: Loss = "l1") -> BestTable:
    """Return the mechanism that releases the table of least expected error.

    Its measurements are those of `mechanism`. The table is computed from them alone, so it has the
    guarantee of imaging: bounds cost nothing.

    Parameters
    ----------
    mechanism : Additive
        Noise on the integers, at the nodes of a tree.
    invariant : Invariant
        ``consistent(tree)``, with any pins and bounds.
    loss : {"l1", "l2"}
        The expected error that is minimised: "l1" is the absolute error, averaged within each
        level and added up over the levels; "l2" is the squared error, summed over all nodes.

    Returns
    -------
    BestTable

    Raises
    ------
    ArgumentError
        If an argument is not valid.
    UnsupportedError
        If the noise is not on the integers, or the invariant is more than a tree, pins and bounds.
    InfeasibleError
        If no release can satisfy the invariant.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2009) for a single count.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> known = cg.consistent(tree) & cg.exactly([0]) & cg.nonnegative()
    >>> M = best_table(cg.Additive(cg.DiscreteLaplace(2.0), tree), known)
    >>> M.sample([5, 5, 0], rng=cg.seeded(1)).tolist()
    [5, 5, 0]
    >>> round(M.guarantee("substitute").epsilon, 9)
    1.0
    """
    if not isinstance(mechanism, Additive):
        raise ArgumentError(
            f"the mechanism is a {type(mechanism).__name__}; give congenial.Additive(noise, tree)."
        )
    if loss not in ("l1", "l2"):
        raise ArgumentError(f"loss is {loss!r}; give 'l1' or 'l2'.")
    resolved = resolve_invariant(invariant, mechanism.n, mechanism.domain, whole=True)
    check_feasible(resolved, invariant, whole=True, domain=mechanism.domain)
    return BestTable(mechanism, resolved, loss)
