"""`posterior(y, M, C)`: the law of the true counts given noisy measurements, drawn exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from congenial import sum_network
from congenial.conditioning.chains import arviz_for
from congenial.domain.given import several
from congenial.errors import ArgumentError, UnsupportedError
from congenial.exhibits.plots import axes_or_new, draw_law
from congenial.imaging.closest import project
from congenial.inference import evidence, exports
from congenial.inference.evidence import Gradient
from congenial.inference.fitting import fit
from congenial.inference.laws import NO_EVIDENCE, NetworkLaw, evidence_of
from congenial.inference.measured import Problem, pose
from congenial.inference.point_tables import chances_of_draws, least_absolute
from congenial.inference.priors import Prior
from congenial.inference.simulated import MANY_VALUES, in_batches, truths
from congenial.inference.splits.dirichlet_tree import DirichletTree, SplitGradient
from congenial.inference.splits.empirical_bayes import fit_splits, splits_at
from congenial.inference.splits.messages import Laws, verified_law
from congenial.invariants.written import Invariant, bounds, consistent
from congenial.noise.additive import Additive, checked_alpha, checked_size, checked_together
from congenial.randomness import Randomness, resolve
from congenial.types import FloatArray, IntArray
from congenial.wording import html_facts, many

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PriorName = Literal["flat", "poisson", "negative-binomial", "dirichlet-tree"]
PRIORS = get_args(PriorName)


class Estimate(NamedTuple):
    """A probability estimated from draws, and its standard error."""

    probability: float
    standard_error: float


class Summary(NamedTuple):
    """Summary of the marginal law of every node; each array has shape (n,).

    Means add up as the counts do; medians and ends of intervals need not.
    """

    mean: FloatArray
    standard_deviation: FloatArray
    # `lower` to `upper`, ends included, is the shortest interval of at least the given probability.
    # Among several, it is the likeliest, then (up to 1e-9) the lowest.
    median: IntArray
    lower: IntArray
    upper: IntArray


def posterior(
    y: npt.ArrayLike,
    mechanism: Additive,
    invariant: Invariant,
    prior: PriorName | Prior | DirichletTree = "flat",
) -> Posterior:
    """Return the law of the true counts given noisy measurements.

    For counts z that satisfy the invariant, the probability is proportional to the prior times the
    product, over measured nodes, of the noise law at ``y - z``. Only `y` is used, so it costs no
    privacy.

    Parameters
    ----------
    y : array_like, shape (n,)
        Integer measurements; exact values at nodes that the invariant pins; any value, such as
        NaN, at nodes of infinite scale.
    mechanism : Additive
        The noise of the measurements, which must be discrete; they may come from elsewhere.
    invariant : Invariant
        ``consistent(tree)``, with any pins and bounds.
    prior : {"flat", "poisson", "negative-binomial", "dirichlet-tree"}, Prior or DirichletTree
        "flat" gives all counts the same weight; if counts cannot be negative, its estimates are
        biased towards equal leaves. The other names are fitted to `y` and have no negative leaves;
        see `Prior` and `congenial.inference.fitting.fit`. "dirichlet-tree" models the hierarchy;
        choose it for sparse, skewed counts (see `DirichletTree` and
        `inference.splits.empirical_bayes`). Under fitted priors, intervals of leaves have about the
        stated coverage, and those of sums without a measurement have less.

    Returns
    -------
    Posterior

    Raises
    ------
    ArgumentError
        If an argument has the wrong type, shape or value.
    InfeasibleError
        If no counts satisfy the invariant.
    UnsupportedError
        If the noise is not on the integers, the invariant is more than a tree, pins and bounds, or
        the law cannot be normalised.

    References
    ----------
    Gong and Meng (2020), Section 5, on inference from privatised data; Pearl (1988) for messages
    on trees.

    Examples
    --------
    >>> import congenial as cg
    >>> tree = cg.Tree.from_parents([-1, 0, 0])
    >>> M = cg.Additive(cg.DiscreteLaplace(1.0), tree)
    >>> found = posterior([7, 5, -1], M, cg.consistent(tree) & cg.nonnegative())
    >>> found.median().tolist()
    [7, 5, 1]
    >>> found.point(rng=cg.seeded(1)).tolist()
    [7, 6, 1]
    """
    flat = isinstance(prior, str) and prior == "flat"
    given = isinstance(prior, Prior | DirichletTree)
    if not flat and not given and prior not in PRIORS:
        raise ArgumentError(
            f"prior is {prior!r}; give one of {', '.join(PRIORS)}, or a Prior or DirichletTree of "
            "congenial.inference."
        )
    problem = pose(y, mechanism, invariant, nonnegative_leaves=not flat)
    if isinstance(prior, Prior):
        leaves = problem.tree.leaves
        prior.panjer(leaves.size)  # checks the number of parameters
        sum_network.check_zeros(np.where(problem.pinned[leaves], 0.0, prior.log_zero(leaves.size)))
        return Posterior(problem, prior)
    if isinstance(prior, DirichletTree):
        prior.totals(problem.tree)
        return Posterior(problem, prior)
    if prior == "dirichlet-tree":
        known = evidence_of(problem)
        return Posterior(problem, *splits_at(known, fit_splits(known)))
    return Posterior(problem, None if flat else fit(problem, prior))


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """The law of a tree's true counts given noisy measurements, from `congenial.posterior`.

    Attributes
    ----------
    problem : Problem
    prior : Prior, DirichletTree or None
        None is the flat prior.
    """

    problem: Problem
    prior: Prior | DirichletTree | None
    # Approximate counts, shape (n,), around which messages under a `DirichletTree` are centred.
    near: FloatArray | None = None

    @property
    def n(self) -> int:
        """Number of nodes."""
        return len(self.problem.tree)

    def __repr__(self) -> str:
        measured = many(int(self.problem.measured.sum()), "measurement")
        return f"Posterior({many(self.n, 'count')}, {measured}, {self._prior_text})"

    def _repr_html_(self) -> str:
        problem = self.problem
        facts: dict[str, object] = {
            "counts": self.n,
            "measurements": int(problem.measured.sum()),
            "exact counts": int(problem.pinned.sum()),
            "noise": problem.mechanism.noise.name,
            "prior": self._prior_text,
        }
        about = "summary() has the mean, median and interval of every count; sample() draws them."
        return html_facts("Posterior", facts, (about,))

    @property
    def _prior_text(self) -> str:
        return "flat prior" if self.prior is None else f"prior {type(self.prior).__name__}"

    @cached_property
    def error_bound(self) -> float:
        """Bound on the total variation between a draw and the posterior law.

        0 for a flat prior. For other priors, truncation is checked with wider windows and not
        proved; laws with two separate modes, for which this check may fail, are refused.
        """
        return self._law.error

    def sample(self, size: int | None = None, rng: Randomness | None = None) -> IntArray:
        """Draw independent trees of counts, each within `error_bound` of the posterior law.

        Parameters
        ----------
        size : int, optional
            Number of draws; by default, one vector.
        rng : Randomness, optional
            `secure()` by default.

        Returns
        -------
        ndarray of int64, shape (n,) or (size, n)
        """
        rows = checked_size(size)
        out = self._law.sample(rows, resolve(rng))
        self.problem.checked(out, self.prior)
        return out[0] if size is None else out

    def marginal(self, node: int | str) -> tuple[IntArray, FloatArray]:
        """Law of the count at a node.

        Parameters
        ----------
        node : int or str

        Returns
        -------
        values : ndarray of int64, shape (k,)
            Consecutive integers.
        probabilities : ndarray of float64, shape (k,)
            Under a `DirichletTree` without tails of less than 1e-11.
        """
        return self._law.marginal(self.problem.tree.find(node))

    def plot(self, node: int | str, *, alpha: float = 0.1, ax: Axes | None = None) -> Axes:
        """Plot the law of the count at a node, see `marginal`.

        Parameters
        ----------
        node : int or str
        alpha : float
            The counts of `interval` are darker.
        ax : matplotlib.axes.Axes, optional
            A new figure's by default.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ArgumentError
            If there is no such node, or alpha is not between 0 and 1.
        UnsupportedError
            If Matplotlib is not installed.
        """
        checked_alpha(alpha)
        ax, (values, probabilities) = axes_or_new(ax), self.marginal(node)
        ends = sum_network.interval_and_reach(values, probabilities, alpha)[:2]
        tree, names = self.problem.tree, self.problem.names
        at = tree.find(node)
        name = names[at] if names else "/".join(tree.path(at))
        title = f"Law of the true count of {name}, given the measurements"
        text = f"{100 * (1.0 - alpha):g}% interval, {ends[0]:,} to {ends[1]:,}"
        return draw_law(ax, values, probabilities, title, ends, text, "true count")

    def summary(self, alpha: float = 0.1) -> Summary:
        """Exact mean, standard deviation, median and interval of every node, in one pass."""
        checked_alpha(alpha)
        mean, variance, *ends = self._law.summary(alpha)
        return Summary(mean, np.sqrt(variance), *ends)

    def mean(self) -> FloatArray:
        """Posterior means, shape (n,), which minimise the expected squared error.

        They add up as the counts do. For all weights of the nodes, no vector of real numbers,
        consistent or not, has a smaller expected weighted sum of squared errors.
        """
        return self.summary().mean

    def standard_deviation(self) -> FloatArray:
        """Posterior standard deviations, shape (n,)."""
        return self.summary().standard_deviation

    def median(self) -> IntArray:
        """Posterior medians, shape (n,): each minimises its own node's expected absolute error.

        They need not add up; `point` gives a tree that does.
        """
        return self.summary().median

    def point(
        self,
        loss: Literal["l1", "l2"] = "l1",
        *,
        size: int = 101,
        rng: Randomness | None = None,
        weights: npt.ArrayLike | None = None,
    ) -> IntArray:
        """Return the integer tree of least expected error among those that satisfy the invariant.

        Parameters
        ----------
        loss : {"l1", "l2"}
            "l1" minimises the expected absolute error, summed over all nodes: exactly under a
            `DirichletTree`, as an average over `size` draws under other priors. "l2" rounds the
            means, which minimise the expected sum of squares, with the least total change.
        size : int
            Number of draws that "l1" averages over.
        rng : Randomness, optional
            `secure()` by default.
        weights : array_like of float, shape (n,), optional
            Positive factors of the absolute errors, 1 by default; "l2" takes none.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        if loss not in ("l1", "l2"):
            raise ArgumentError(f"loss is {loss!r}; give 'l1' or 'l2'.")
        if loss == "l2" and weights is not None:
            raise ArgumentError("weights are of absolute errors; give loss='l1', or no weights.")
        scaled = None if weights is None else self._checked_weights(weights)
        source = resolve(rng)
        law, tree = self._law, self.problem.tree
        if loss == "l1" and isinstance(law, NetworkLaw):
            draws = self.sample(max(checked_size(size), 1), source)
            chances = chances_of_draws(draws)
            return least_absolute(tree, chances, draws[0], self._limits, source, scaled)
        known = consistent(tree) & bounds(*self._limits)
        found = project(self.mean(), known, integer=True, rng=source).astype(np.int64)
        if loss == "l1" and isinstance(law, Laws):
            found = least_absolute(tree, law.chances, found, self._limits, source, scaled)
        return self.problem.checked(found, self.prior)

    def expected_error(self, table: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
        """Expected absolute error of a table, summed over its nodes, without tails below 1e-11.

        Parameters
        ----------
        table : array_like of int, shape (n,)
        weights : array_like of float, shape (n,), optional
            Positive factors of the errors, 1 by default.

        Raises
        ------
        UnsupportedError
            If the prior is not a `DirichletTree`.
        """
        law = self._law
        if not isinstance(law, Laws):
            raise UnsupportedError(
                "the expected error of a table is computed under a DirichletTree only; give "
                "prior='dirichlet-tree'."
            )
        scaled = self._checked_weights(1.0 if weights is None else weights)
        return law.expected_error(np.asarray(table, dtype=np.int64), scaled)

    def interval(self, node: int | str, alpha: float = 0.1) -> tuple[int, int]:
        """Shortest interval that contains the count of a node with probability at least 1 - alpha.

        Parameters
        ----------
        node : int or str
        alpha : float
            Between 0 and 1.
        """
        checked_alpha(alpha)
        values, probabilities = self.marginal(node)
        return sum_network.interval_and_reach(values, probabilities, alpha)[:2]

    def intervals(self, alpha: float = 0.1, *, together: int = 1) -> tuple[IntArray, IntArray]:
        """Lower and upper ends of `interval` at every node, each of shape (n,).

        Parameters
        ----------
        alpha : float
            Between 0 and 1.
        together : int
            Number of nodes whose intervals contain all their counts with probability at least
            1 - alpha, by a union bound.
        """
        checked_alpha(alpha)
        found = self.summary(alpha / checked_together(together))
        return found.lower, found.upper

    def interval_of_sum(
        self,
        nodes: Sequence[int | str],
        alpha: float = 0.1,
        *,
        size: int = 10_000,
        rng: Randomness | None = None,
    ) -> tuple[int, int]:
        """Shortest interval that contains the sum of several nodes in 1 - alpha of `size` draws.

        Parameters
        ----------
        nodes : sequence of int or str
            A node given twice counts once.
        alpha : float
        size : int
            Draws; the probability has a standard error of ``sqrt(alpha * (1 - alpha) / size)``.
            If all nodes would have over 2^28 values, the sum's nodes are drawn without the others.
            Under a flat prior, this changes their law by at most the probability that a draw of all
            nodes is rejected and begins again.
        rng : Randomness, optional
        """
        checked_alpha(alpha)
        at = list(dict.fromkeys(self.problem.tree.find(node) for node in several(nodes)))
        total = self._sums_alone(at, size, rng)
        if total is None:
            total = self._ask(size, rng, lambda z: z[:, at].sum(axis=1))
        values, counts = np.unique(total, return_counts=True)
        full = np.zeros(int(values[-1] - values[0]) + 1)
        full[values - values[0]] = counts / total.size
        whole = np.arange(values[0], values[-1] + 1)
        return sum_network.interval_and_reach(whole, full, alpha)[:2]

    def probability(
        self,
        event: Callable[[IntArray], npt.ArrayLike],
        *,
        size: int = 10_000,
        rng: Randomness | None = None,
    ) -> Estimate:
        """Estimate the probability of an event from draws.

        Parameters
        ----------
        event : callable
            Given draws of shape (k, n), returns k truth values, such as
            ``lambda z: z[:, a] > z[:, b]``.
        size : int
        rng : Randomness, optional

        Returns
        -------
        Estimate
            Share of draws with the event, and its standard error, both after adding one draw with
            the event and one without.
        """
        hits = self._ask(size, rng, truths(event))
        share = (hits.sum() + 1.0) / (hits.size + 2.0)
        return Estimate(float(hits.mean()), float(np.sqrt(share * (1.0 - share) / hits.size)))

    def log_evidence(self) -> float:
        """Log probability of the measurements under the prior, summed over all counts.

        Leaves published exactly contribute their prior probability. Nodes without a measurement
        contribute nothing.

        Raises
        ------
        UnsupportedError
            If the prior is flat, because it is not a probability.
        """
        if self.prior is None:
            raise UnsupportedError(NO_EVIDENCE)
        return evidence.log_evidence(self.problem, self.prior, self._law.log_total)

    def log_evidence_gradient(self) -> Gradient | SplitGradient:
        """Exact derivatives of `log_evidence` with respect to the prior's parameters.

        Returns
        -------
        Gradient
            ``mean`` and ``dispersion``, each of shape (leaves,); 0 for an infinite dispersion.
        SplitGradient
            ``alpha``, shape (n,), under a `DirichletTree`.

        Raises
        ------
        UnsupportedError
            If the prior is flat.
        """
        return self._law.gradient()

    def to_arviz(
        self,
        draws: int = 1000,
        *,
        rng: Randomness | None = None,
        level_names: Sequence[str] | None = None,
    ) -> Any:
        """Return independent draws, measurements and scales in ArviZ's format.

        Parameters
        ----------
        draws : int
        rng : Randomness, optional
        level_names : sequence of str, optional

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree from ArviZ 1.0 on
            See `congenial.inference.exports.inference_data`. Needs the extra `inference`.
        """
        arviz_for("to_arviz")  # before any draw
        groups = {"posterior": {"count": self.sample(draws, rng)}, **self.problem.groups}
        attributes = {"noise": self.problem.mechanism.noise.name, "about": self.explain()}
        tree, names = self.problem.tree, self.problem.names
        return exports.inference_data(tree, groups, level_names, names, attributes=attributes)

    def explain(self) -> str:
        """Describe the law and the accuracy of its draws."""
        problem = self.problem
        known = int(problem.measured.sum())
        kind = "a flat prior" if self.prior is None else "a prior of the leaves"
        accuracy = "and has exactly this law"
        if self.prior is not None:
            accuracy = (
                f"its numerical error at most {self.error_bound:.0e} in total variation (checked "
                "on wider windows, not proved)"
            )
        return (
            f"posterior of {self.n} nodes from {known} measurements under {kind}; each draw is "
            f"independent, {accuracy}. It uses only the measurements, so it costs no privacy."
        )

    def _sums_alone(self, at: list[int], size: int, rng: Randomness | None) -> IntArray | None:
        """Draw the sum of some of very many nodes without all others; None if all are drawn."""
        if checked_size(size) * self.n <= MANY_VALUES:
            return None
        law = self._law
        nodes, times = np.unique(at, return_counts=True)
        draw = law.draws_of(nodes)
        if draw is None:
            return None
        return in_batches(draw, nodes.size, size, resolve(rng), lambda z: z @ times)

    def _ask(
        self, size: int, rng: Randomness | None, ask: Callable[[IntArray], IntArray]
    ) -> IntArray:
        return in_batches(self.sample, self.n, size, resolve(rng), ask)

    def _checked_weights(self, weights: npt.ArrayLike) -> FloatArray:
        array = np.asarray(weights, dtype=np.float64)
        if array.shape not in ((), (self.n,)) or not ((array > 0.0) & np.isfinite(array)).all():
            raise ArgumentError(
                f"weights have shape {array.shape}, or an entry that is not positive; give "
                f"{self.n} positive numbers."
            )
        return np.broadcast_to(array, (self.n,))

    @property
    def _limits(self) -> tuple[FloatArray, FloatArray]:
        """Bounds of all nodes, including the bounds of a prior."""
        lo = self.problem.lo
        if self.prior is not None:
            lo = np.where(self.problem.tree.is_leaf, np.maximum(lo, 0.0), lo)
        return lo, self.problem.hi

    @cached_property
    def _law(self) -> NetworkLaw | Laws:
        if isinstance(self.prior, DirichletTree):
            return verified_law(evidence_of(self.problem), self.prior, self.near)
        return NetworkLaw(self.problem, self.prior)
